"""Mistakes with versions and idempotency, one a line; nothing here is ever run."""

from __future__ import annotations

from tavola import AsyncConnection, Connection
from tavola.patterns import Idempotency, Versions
from tests.typing.ok_records import R1, V1, Receipt, Requests, Review, ReviewAudit, ReviewVersion, done


def called(db: Connection) -> None:
    """Versions and requests take what they say."""
    Versions(db, Review, ReviewAudit, ReviewVersion)  # error: an audit row is no version
    reviews = Versions(db, Review, ReviewVersion, ReviewAudit)
    reviews.create(Review(review_id="r1"))  # error: nobody did it
    reviews.create(ReviewVersion(review_id="r1"), by="ann")  # error: a version is no current record
    reviews.change(V1, done, by="ann")  # error: versions do not change
    reviews.change(R1, "done", by="ann")  # error: no edit
    reviews.latest(R1).status  # error: None is not handled
    reviews.restore(R1, "1", by="ann")  # error: a version is a number
    Idempotency(db, Review, Receipt)  # error: no outcome
    requests = Idempotency(db, Requests, Receipt)
    requests.once("k1", {}, lambda lease: 3)  # error: the answer is of another type
    requests.together(1, {}, lambda writes: Receipt(review_id="r1"))  # error: a key is text

    @requests.idempotent("key")
    def review(key: str, number: int) -> Receipt:
        return Receipt(review_id=f"{number}")

    review("k1", "3")  # error: a number is no text


async def awaited(db: AsyncConnection) -> None:
    """What is awaited is not the result itself."""
    Versions(db, Review, ReviewVersion, ReviewAudit).latest(R1).status  # error: it is not awaited
