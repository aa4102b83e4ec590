"""Verification: what somebody did to a review past the library is found and told, kind by kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tavola import ManualClock, to_item
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import ReviewStatus
from tavola.apps.terraform_review.model import Review, Reviews, RunReview
from tavola.apps.terraform_review.results import Assessment
from tavola.apps.terraform_review.store import ReviewStore
from tavola.apps.terraform_review.verification import verify_review
from tavola.patterns import FolderBlobs, HistoryAhead
from tests.apps.conftest import Run, Target
from tests.apps.terraform_review.conftest import ReviewHistory, finding, fix_of, open_history, result


async def _put(history: ReviewHistory, item: dict[str, Any]) -> None:
    """Put an item past the library, in a transaction, which is what a policy lets through."""
    name = history.db.context.name_of(Reviews)
    await history.db.call(
        "TransactWriteItems", {"TransactItems": [{"Put": {"TableName": name, "Item": item}}]}
    )


async def _problems(history: ReviewHistory, review: Review) -> list[str]:
    return [problem.what for problem in (await verify_review(history.store, review.review_id)).problems]


async def _made(history: ReviewHistory) -> Review:
    review = await history.record("run-1", "A", "B")
    history.clock.advance(60)
    return await service.apply_fix(history.store, review.review_id, fix_of(review, "A"), by="eng-07")


def test_a_version_that_was_slipped_in_is_found(history: ReviewHistory, run: Run[Any]) -> None:
    """A version 99 that shows first in the list of versions is told."""

    async def work() -> None:
        review = await _made(history)
        item = to_item(await service.get_version(history.store, review.review_id, 2))
        forged = {"SK": {"S": item["SK"]["S"][:-2] + "99"}, "Version": {"N": "99"}}
        await _put(history, {**item, **forged})
        assert await _problems(history, review) == ["there is a version past the current record"]

    run(work())


def test_a_link_that_leads_elsewhere_is_found(history: ReviewHistory, run: Run[Any]) -> None:
    """A link from a run that was written over, taken away or added is told by the review of that run."""

    async def work() -> None:
        review, other = await _made(history), await history.record("run-2")
        found = (await history.db.query(RunReview.OfRun(run_id="run-1"))).items
        link = to_item(found[0])
        await _put(history, {**link, "ReviewId": {"S": other.review_id}})
        assert (await _problems(history, review))[0] == "the link from the run run-1 was altered"
        await _put(history, link)
        assert await _problems(history, review) == []
        late = {**link, "SK": {"S": link["SK"]["S"].replace("2026", "2027")}}
        await _put(
            history,
            {**late, "ReviewId": {"S": other.review_id}, "CreatedAt": {"S": "2027-03-02T12:00:00.000000Z"}},
        )
        assert (await service.latest_run_review(history.store, "run-1")) == other
        assert await _problems(history, review) == [
            f"the run run-1 has a link to version 1 of {other.review_id}, which does not name it"
        ]

    run(work())


def test_a_run_may_lead_to_two_reviews(history: ReviewHistory, run: Run[Any]) -> None:
    """A link to another review that names the run as well is no fault."""

    async def work() -> None:
        review, other = await _made(history), await history.record("run-2")
        await service.add_version(history.store, other.review_id, Assessment(), by="eng-01", run_id="run-1")
        assert await _problems(history, review) == await _problems(history, other) == []

    run(work())


def test_what_hides_in_an_index_is_found(history: ReviewHistory, run: Run[Any]) -> None:
    """A finding that answers for no issue, or has an attribute more, and an audit row under another actor are told."""

    async def work() -> None:
        review = await _made(history)
        one, other = await service.list_findings(
            history.store, await service.get_version(history.store, review.review_id, 1)
        )
        await _put(history, {**to_item(one), "GSI3PK": {"S": "ISSUE#nowhere"}})
        await _put(history, {**to_item(other), "Extra": {"S": "x"}})
        row = to_item((await service.list_audit_entries(history.store, review.review_id)).items[0])
        await _put(history, {**row, "GSI4PK": {"S": "ACTOR#eng-99"}})
        assert sorted(await _problems(history, review)) == [
            "its audit row has another place in an index than its fields say",
            f"the finding {one.finding_id} has wrong index keys",
            f"the finding {other.finding_id} was altered",
        ]

    run(work())


def test_a_finding_that_nobody_recorded_is_a_stray(history: ReviewHistory, run: Run[Any]) -> None:
    """A forged finding is no part of the review, so that one verifies; among the occurrences of its issue it is found."""

    async def work() -> None:
        review = await _made(history)
        (real,) = await service.list_findings(history.store, review)
        await _put(history, {**to_item(real), "PK": {"S": "FINDING#evil"}, "FindingId": {"S": "evil"}})
        assert await _problems(history, review) == []
        assert [
            each.finding_id for each in await service.find_unlisted_findings(history.store, real.issue_hash)
        ] == ["evil"]

    run(work())


def test_code_that_is_gone_or_damaged_is_found(run: Run[Any], clock: ManualClock, tmp_path: Path) -> None:
    """The code of a version is sealed by its digest: a blob that is gone or is another one is told, once for all who share it."""

    async def work(history: ReviewHistory) -> None:
        review = await history.record("run-1", terraform_code="x" * 500)
        await service.change_status(history.store, review.review_id, ReviewStatus.PENDING, by="eng-01")
        (file,) = (each for each in (tmp_path / "blobs").rglob("*") if each.is_file())
        assert await _problems(history, review) == []
        file.write_bytes(b"something else")
        assert await _problems(history, review) == ["the blob of its code is damaged"]
        file.unlink()
        assert await _problems(history, review) == ["the blob of its code is missing"]

    with open_history(
        Target("memory", "memory:", ""), run, clock, tmp_path, code_inline_bytes=100
    ) as history:
        run(work(history))


@pytest.mark.parametrize("secret", [None, b"another secret, of 32 bytes and more"])
def test_another_secret_is_told_as_such(
    run: Run[Any], clock: ManualClock, tmp_path: Path, secret: bytes | None
) -> None:
    """Who verifies with another secret than the one that sealed is told so: nothing was altered."""

    async def work(history: ReviewHistory) -> None:
        review = await history.record("run-1", "A")
        other = ReviewStore(history.db, FolderBlobs(tmp_path / "blobs"), secret=secret)
        verification = await verify_review(other, review.review_id)
        assert [problem.what for problem in verification.problems] == [
            "its audit row was signed with a different secret"
        ]

    target = Target("memory", "memory:", "")
    with open_history(target, run, clock, tmp_path, secret=b"the secret of this store, 32 bytes") as history:
        run(work(history))


def test_a_review_is_verified_by_one_reading(history: ReviewHistory, run: Run[Any]) -> None:
    """However many versions there are, each is read once: a query of them, one of their audit rows, and what they name."""

    async def work() -> None:
        review = await history.record("run-1", findings=(finding("A"),))
        for number in range(12):
            status = ReviewStatus.COMPLETED if number % 2 else ReviewStatus.PENDING
            review = await service.change_status(history.store, review.review_id, status, by="eng-01")
        with history.db.measure() as measured:
            assert await verify_review(history.store, review.review_id)
        assert measured.operations == {"BatchGetItem": 3, "Query": 3}

    run(work())


@pytest.mark.parametrize("request_", [None, "key-1"])
def test_a_history_without_its_record_is_not_written_over(
    history: ReviewHistory, run: Run[Any], request_: str | None
) -> None:
    """Where the current record is gone, recording the run again is refused in words that say what to do."""

    async def work() -> None:
        review = await history.record("run-1", "A")
        await history.db.delete(Review.Key(review_id=review.review_id))
        with pytest.raises(HistoryAhead, match=r"run verify\(\)"):
            await service.record_review(history.store, result("run-1", "A"), idempotency_key=request_)
        assert await _problems(history, review) == ["the current record is gone, and its history is there"]

    run(work())
