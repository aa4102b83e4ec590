"""Verification: what somebody did to a review past the library is found and told, kind by kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tavola import ManualClock, to_item
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import Status
from tavola.apps.terraform_review.model import Review, Reviews, RunReview
from tavola.apps.terraform_review.results import Assessment
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import FolderBlobs, HistoryAhead
from tests.apps.conftest import Run, Target
from tests.apps.terraform_review.conftest import House, finding, fix_of, opened, result


async def _put(house: House, item: dict[str, Any]) -> None:
    """Put an item past the library, in a transaction, which is what a policy lets through."""
    name = house.db.context.name_of(Reviews)
    await house.db.call("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": name, "Item": item}}]})


async def _told(house: House, review: Review) -> list[str]:
    return [problem.what for problem in (await service.verify_review(house.store, review.review_id)).problems]


async def _made(house: House) -> Review:
    review = await house.record("run-1", "A", "B")
    house.clock.advance(60)
    return await service.apply_fix(house.store, review.review_id, fix_of(review, "A"), by="eng-07")


def test_a_version_that_was_slipped_in_is_found(house: House, run: Run[Any]) -> None:
    """A version 99 that shows first in the list of versions is told."""

    async def work() -> None:
        review = await _made(house)
        item = to_item(await service.get_version(house.store, review.review_id, 2))
        forged = {"SK": {"S": item["SK"]["S"][:-2] + "99"}, "Version": {"N": "99"}}
        await _put(house, {**item, **forged})
        assert await _told(house, review) == ["there is a version past the current record"]

    run(work())


def test_a_link_that_leads_elsewhere_is_found(house: House, run: Run[Any]) -> None:
    """A link from a run that was written over, taken away or added is told by the review of that run."""

    async def work() -> None:
        review, other = await _made(house), await house.record("run-2")
        found = (await house.db.query(RunReview.OfRun(run_id="run-1"))).items
        link = to_item(found[0])
        await _put(house, {**link, "ReviewId": {"S": other.review_id}})
        assert (await _told(house, review))[0] == "the link from the run run-1 was altered"
        await _put(house, link)
        assert await _told(house, review) == []
        late = {**link, "SK": {"S": link["SK"]["S"].replace("2026", "2027")}}
        await _put(
            house,
            {**late, "ReviewId": {"S": other.review_id}, "CreatedAt": {"S": "2027-03-02T12:00:00.000000Z"}},
        )
        assert (await service.latest_run_review(house.store, "run-1")) == other
        assert await _told(house, review) == [
            f"the run run-1 has a link to version 1 of {other.review_id}, which does not name it"
        ]

    run(work())


def test_a_run_may_lead_to_two_reviews(house: House, run: Run[Any]) -> None:
    """A link to another review that names the run as well is no fault."""

    async def work() -> None:
        review, other = await _made(house), await house.record("run-2")
        await service.add_version(house.store, other.review_id, Assessment(), by="eng-01", run_id="run-1")
        assert await _told(house, review) == await _told(house, other) == []

    run(work())


def test_what_hides_in_an_index_is_found(house: House, run: Run[Any]) -> None:
    """A finding that answers for no issue, or has an attribute more, and an audit row under another actor are told."""

    async def work() -> None:
        review = await _made(house)
        one, other = await service.list_findings(
            house.store, await service.get_version(house.store, review.review_id, 1)
        )
        await _put(house, {**to_item(one), "GSI3PK": {"S": "ISSUE#nowhere"}})
        await _put(house, {**to_item(other), "Extra": {"S": "x"}})
        row = to_item((await service.list_audit_entries(house.store, review.review_id)).items[0])
        await _put(house, {**row, "GSI4PK": {"S": "ACTOR#eng-99"}})
        assert sorted(await _told(house, review)) == [
            "its audit row has another place in an index than its fields say",
            f"the finding {one.finding_id} has another place in an index",
            f"the finding {other.finding_id} was altered",
        ]

    run(work())


def test_a_finding_that_nobody_recorded_is_a_stray(house: House, run: Run[Any]) -> None:
    """A forged finding is no part of the review, so that one verifies; among the occurrences of its issue it is found."""

    async def work() -> None:
        review = await _made(house)
        (real,) = await service.list_findings(house.store, review)
        await _put(house, {**to_item(real), "PK": {"S": "FINDING#evil"}, "FindingId": {"S": "evil"}})
        assert await _told(house, review) == []
        assert [
            each.finding_id for each in await service.find_unlisted_findings(house.store, real.issue_hash)
        ] == ["evil"]

    run(work())


def test_code_that_is_gone_or_damaged_is_found(run: Run[Any], clock: ManualClock, tmp_path: Path) -> None:
    """The code of a version is sealed by its digest: a blob that is gone or is another one is told, once for all who share it."""

    async def work(house: House) -> None:
        review = await house.record("run-1", terraform_code="x" * 500)
        await service.change_status(house.store, review.review_id, Status.PENDING, by="eng-01")
        (file,) = (each for each in (tmp_path / "blobs").rglob("*") if each.is_file())
        assert await _told(house, review) == []
        file.write_bytes(b"something else")
        assert await _told(house, review) == ["the blob of its code is damaged"]
        file.unlink()
        assert await _told(house, review) == ["the blob of its code is gone"]

    with opened(Target("memory", "memory:", ""), run, clock, tmp_path, code_inline_bytes=100) as house:
        run(work(house))


@pytest.mark.parametrize("secret", [None, b"another secret, of 32 bytes and more"])
def test_another_secret_is_told_as_such(
    run: Run[Any], clock: ManualClock, tmp_path: Path, secret: bytes | None
) -> None:
    """Who verifies with another secret than the one that sealed is told so: nothing was altered."""

    async def work(house: House) -> None:
        review = await house.record("run-1", "A")
        other = ReviewStore(house.db, FolderBlobs(tmp_path / "blobs"), secret=secret)
        told = await service.verify_review(other, review.review_id)
        assert [problem.what for problem in told.problems] == [
            "its audit row was sealed with another secret than the one given here"
        ]

    target = Target("memory", "memory:", "")
    with opened(target, run, clock, tmp_path, secret=b"the secret of this store, 32 bytes") as house:
        run(work(house))


def test_a_review_is_verified_by_one_reading(house: House, run: Run[Any]) -> None:
    """However many versions there are, each is read once: a query of them, one of their audit rows, and what they name."""

    async def work() -> None:
        review = await house.record("run-1", findings=(finding("A"),))
        for number in range(12):
            status = Status.COMPLETED if number % 2 else Status.PENDING
            review = await service.change_status(house.store, review.review_id, status, by="eng-01")
        with house.db.measured() as measured:
            assert await service.verify_review(house.store, review.review_id)
        assert measured.operations == {"BatchGetItem": 3, "Query": 3}

    run(work())


@pytest.mark.parametrize("request_", [None, "key-1"])
def test_a_history_without_its_record_is_not_written_over(
    house: House, run: Run[Any], request_: str | None
) -> None:
    """Where the current record is gone, recording the run again is refused in words that say what to do."""

    async def work() -> None:
        review = await house.record("run-1", "A")
        await house.db.delete(Review.Key(review_id=review.review_id))
        with pytest.raises(HistoryAhead, match="verify it"):
            await service.record_review(house.store, result("run-1", "A"), idempotency_key=request_)
        assert await _told(house, review) == ["the current record is gone, and its history is there"]

    run(work())
