"""Versions and idempotency on both clients: records, versions, audit rows and answers are of the user's own types."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, assert_type

from pydantic import BaseModel

from tavola import (
    AsyncConnection,
    AsyncTransaction,
    Attr,
    Connection,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    Transaction,
    attr,
    sort,
)
from tavola.patterns import (
    Answer,
    AuditEntry,
    Difference,
    Idempotency,
    Lease,
    Outcome,
    Slice,
    Staged,
    Verification,
    Versioned,
    Versions,
)

Status = Literal["pending", "done"]


class Reviews(Table, name="typed-reviews", ttl="expires_at"):
    """The one table."""

    states = Gsi(pk="g1pk", sk="g1sk")


TABLES = (Reviews,)


class ReviewFields(Versioned):
    """What a review says."""

    review_id: Attr[str]
    status: Attr[Status] = attr(default="pending")


class Review(ReviewFields, table=Reviews):
    """The current one."""

    class Key(PrimaryKey["Review"], pk="REVIEW#{review_id}", sk="CURRENT"):
        review_id: str

    class ByStatus(Query["Review"], on=Reviews.states, pk="STATUS#{status}", sk="{changed_at}"):
        status: Status
        changed_at: Sort[datetime] = sort()


class ReviewVersion(ReviewFields, table=Reviews, immutable=True):
    """One that was current once."""

    class Key(PrimaryKey["ReviewVersion"], pk="HISTORY#{review_id}", sk="VERSION#{version}"):
        review_id: str
        version: int

    class All(Query["ReviewVersion"], on=Key):
        review_id: str
        version: Sort[int] = sort()


class ReviewAudit(AuditEntry, table=Reviews):
    """Who did it."""

    review_id: Attr[str]

    class Key(PrimaryKey["ReviewAudit"], pk="HISTORY#{review_id}", sk="AUDIT#{version}"):
        review_id: str
        version: int

    class All(Query["ReviewAudit"], on=Key):
        review_id: str
        version: Sort[int] = sort()


class Requests(Outcome, table=Reviews):
    """What became of requests."""

    class Key(PrimaryKey["Requests"], pk="REQUEST#{scope}#{request}", sk="OUTCOME"):
        scope: str
        request: str


class Receipt(BaseModel):
    """What a request is answered with."""

    review_id: str


R1 = Review.Key(review_id="r1")
V1 = ReviewVersion.Key(review_id="r1", version=1)


def done(review: Review) -> None:
    """Edit a review in place."""
    review.status = "done"


def use(db: Connection) -> None:
    """Call each once."""
    reviews = Versions(db, Review, ReviewVersion, ReviewAudit, chained=True)
    assert_type(reviews.create(Review(review_id="r1"), by="ann"), Review)
    assert_type(reviews.change(R1, done, by="ann", why="checked", attempts=3), Review)
    assert_type(reviews.latest(R1), Review | None)
    assert_type(reviews.version(R1, 1), ReviewVersion | None)
    assert_type(reviews.versions(R1, limit=5), Slice[ReviewVersion])
    assert_type(reviews.history(R1), Slice[ReviewAudit])
    assert_type(reviews.diff(R1, 1, 2), tuple[Difference, ...])
    assert_type(reviews.restore(R1, 1, by="ann"), Review)
    assert_type(reviews.verify(R1), Verification)
    with db.transaction() as tx:
        assert_type(reviews.stage(tx, None, Review(review_id="r2"), by="ann"), Staged[Review])

    requests = Idempotency(db, Requests, Receipt)

    def fill(writes: Transaction) -> Receipt:
        reviews.stage(writes, None, Review(review_id="r3"), by="ann")
        return Receipt(review_id="r3")

    def work(lease: Lease) -> Receipt:
        assert_type(lease.token, int)
        return Receipt(review_id="r4")

    assert_type(requests.together("k1", {}, fill), Answer[Receipt])
    assert_type(requests.once("k2", {}, work).value, Receipt)
    assert_type(requests.begin("k3", {}), Lease | Answer[Receipt])

    @requests.idempotent("key")
    def review(key: str, number: int) -> Receipt:
        return Receipt(review_id=f"{number}")

    assert_type(review("k4", number=3), Receipt)


async def use_async(db: AsyncConnection) -> None:
    """Await each once."""
    reviews = Versions(db, Review, ReviewVersion, ReviewAudit)
    assert_type(await reviews.create(Review(review_id="r1"), by="ann"), Review)
    assert_type(await reviews.change(R1, done, by="ann"), Review)
    assert_type(await reviews.versions(R1), Slice[ReviewVersion])

    requests = Idempotency(db, Requests, Receipt)

    async def fill(writes: AsyncTransaction) -> Receipt:
        reviews.stage(writes, None, Review(review_id="r3"), by="ann")
        return Receipt(review_id="r3")

    assert_type(await requests.together("k1", {}, fill), Answer[Receipt])

    @requests.idempotent("key")
    async def review(key: str, number: int) -> Receipt:
        return Receipt(review_id=f"{number}")

    assert_type(await review("k4", number=3), Receipt)
