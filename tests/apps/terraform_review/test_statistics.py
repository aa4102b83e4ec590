"""Statistics: derived from facts by the stream, exact under redelivery, restart, two readers, expiry and loss."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tavola import AnyChange, EntityChange, ManualClock, to_item
from tavola.apps.shell import Follower
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import Category, ReviewStatus, issue_hash
from tavola.apps.terraform_review.model import (
    RUNS_MAX,
    Review,
    ReviewAudit,
    ReviewFinding,
    Reviews,
    ReviewVersion,
    RunReview,
    StatisticsMark,
)
from tavola.apps.terraform_review.results import Assessment
from tavola.apps.terraform_review.statistics import latest_runs, statistic_key, statistic_name
from tavola.apps.terraform_review.store import ReviewStore
from tavola.apps.terraform_review.verification import verify_review
from tavola.patterns import FolderBlobs, Rebuilt
from tests.apps.conftest import Run, Target
from tests.apps.terraform_review.conftest import (
    NOON,
    ReviewHistory,
    compared_fields,
    failed_result,
    finding,
    fix_of,
    open_history,
)

YEARS_9 = timedelta(days=9 * 365).total_seconds()


async def _month(history: ReviewHistory) -> None:
    """Make some reviews that come, change, fail and are fixed."""
    for number in range(6):
        titles = [f"Issue {which}" for which in range(number % 4 + 1)]
        review = await history.record(f"run-{number}", *titles, stack_id=f"stack-{number % 2}")
        history.clock.advance(300)
        if number % 2:
            await service.apply_fix(
                history.store, review.review_id, fix_of(review, "Issue 0", risk=f"0.{number}"), by="eng-02"
            )
        if number % 3 == 0:
            await service.change_status(history.store, review.review_id, ReviewStatus.PENDING, by="eng-03")
    await service.record_review(history.store, failed_result("run-x", stack_id="stack-0"))


async def _changes(history: ReviewHistory) -> list[AnyChange]:
    return [change async for change in await history.db.subscribe(Reviews, from_="start", follow=False)]


@pytest.mark.usefixtures("wide")
def test_r02_statistics_are_entities_of_their_own(history: ReviewHistory, run: Run[Any]) -> None:
    """A stack's numbers and an issue's frequency have the attributes of the design, of reviews as they are now."""

    async def work() -> None:
        cost = finding("Too large", category=Category.COST)
        await history.record("run-1", findings=(finding("Public"), cost), overall_risk_score=Decimal("0.8"))
        history.clock.advance(60)
        review = await history.record("run-2", "Public", overall_risk_score=Decimal("0.5"))
        await service.record_review(history.store, failed_result("run-3"))
        await history.count()

        stats = await service.get_stack_stats(history.store, "prod-net")
        assert stats is not None
        assert (stats.total_reviews, stats.assessed_reviews, stats.failed_reviews) == (3, 2, 1)
        assert stats.average_risk_score == Decimal("0.6500")
        assert (stats.high_risk_count, stats.medium_risk_count, stats.low_risk_count) == (1, 1, 0)
        assert (stats.total_findings, stats.security_findings, stats.cost_findings) == (3, 2, 1)
        assert stats.last_review_at == NOON + timedelta(seconds=60)
        assert [each.stack_id for each in await service.list_stacks(history.store)] == ["prod-net"]
        history.clock.advance(60)
        await service.apply_fix(
            history.store, review.review_id, fix_of(review, "Public", risk="0.1"), by="eng-02"
        )
        await history.count()
        stats = await service.get_stack_stats(history.store, "prod-net")
        assert stats is not None
        assert (stats.low_risk_count, stats.fixed_reviews, stats.total_findings) == (1, 1, 2)
        await history.exact()

    run(work())


@pytest.mark.usefixtures("wide")
def test_redelivery_changes_nothing(history: ReviewHistory, run: Run[Any]) -> None:
    """Records that come again, in another order, one by one or in halves, leave the statistics as they are."""

    async def work() -> None:
        await _month(history)
        changes = await _changes(history)
        await history.store.projector.apply(changes)
        statistics = await history.exact()
        chance = Random(7)
        for _ in range(3):
            chance.shuffle(changes)
            for at in range(0, len(changes), 9):
                await history.store.projector.apply(changes[at : at + 9])
        assert await history.store.projector.read_statistics() == statistics

    run(work())


def test_records_out_of_order_come_to_the_same(history: ReviewHistory, run: Run[Any]) -> None:
    """However the records of different items are mixed, and each in a batch of its own, the end is what the items say."""

    async def work() -> None:
        await _month(history)
        changes = await _changes(history)
        Random(3).shuffle(changes)
        for change in changes:
            await history.store.projector.apply([change])
        await history.exact()

    run(work())


@pytest.mark.usefixtures("wide")
def test_a_stopped_projector_catches_up(
    target: Target, run: Run[Any], clock: ManualClock, tmp_path: Path
) -> None:
    """A follower that was stopped goes on where it was, and the numbers are exact again."""

    async def work(history: ReviewHistory) -> None:
        def follower() -> Follower:
            return Follower(
                history.store.projector, Reviews, history.db, checkpoint=tmp_path / "place", poll_s=0.01
            )

        async with follower() as first:
            await _month(history)
            await first.catch_up()
            await history.exact()
        await history.record("late-1", "Issue 0", "Issue 9")
        await history.record("late-2", "Issue 9")
        async with follower() as second:
            await second.catch_up()
            assert "stack/prod-net" in await history.exact()

    with open_history(target, run, clock, tmp_path) as history:
        run(work(history))


@pytest.mark.usefixtures("wide")
def test_two_readers_count_once(history: ReviewHistory, run: Run[Any]) -> None:
    """Two projectors on one stream at once are told apart by the marks: everything is counted once."""

    async def work() -> None:
        await _month(history)
        changes = await _changes(history)
        other = ReviewStore(history.db, FolderBlobs("unused")).projector
        halves = [changes[at::3] for at in range(3)]
        await asyncio.gather(
            *(reader.apply(half) for half in halves for reader in (history.store.projector, other))
        )
        await history.exact()

    run(work())


def test_what_expires_leaves_the_counts(run: Run[Any], clock: ManualClock, tmp_path: Path) -> None:
    """After their years reviews and findings are deleted and leave the counts; that an issue was first seen then stays told."""

    async def work(history: ReviewHistory) -> None:
        await _month(history)
        await history.count()
        history.clock.advance(YEARS_9)
        await history.record("new", "Issue 0", stack_id="stack-0")  # what is due is swept meanwhile
        for _ in range(50):
            await history.db.call("ListTables")
            history.clock.advance(120)
        await history.count()
        stats = await service.get_stack_stats(history.store, "stack-0")
        assert stats is not None
        assert (stats.total_reviews, stats.total_findings) == (1, 1)
        gone = await service.get_stack_stats(history.store, "stack-1")
        assert gone is not None
        assert (gone.total_reviews, gone.risk_sum, gone.total_findings) == (0, Decimal(0), 0)
        found = await service.get_issue(history.store, issue_hash("Issue 0", Category.SECURITY, "main.tf"))
        assert found is not None
        assert (found.total.occurrence_count, found.total.first_seen) == (1, NOON)

    with open_history(Target("memory", "memory:", ""), run, clock, tmp_path) as history:
        run(work(history))


@pytest.mark.usefixtures("wide")
def test_a_rebuild_heals(history: ReviewHistory, run: Run[Any]) -> None:
    """What the stream lost, what was counted otherwise and what is gone is put right by a look at the table, as often as it happens."""

    async def work() -> None:
        await _month(history)
        projector = history.store.projector
        assert (await projector.rebuild()).counted > 0  # nothing was read of the stream
        statistics = await history.exact()
        assert await projector.rebuild() == Rebuilt(0)
        review = await service.latest_run_review(history.store, "run-0")
        assert review is not None
        key = StatisticsMark.Key(source=f"review/{review.review_id}", projector=projector.name)
        for _ in range(2):
            mark = await history.db.get(key, consistent=True)
            assert mark is not None
            await history.db.put(mark.model_copy(update={"shares": {}}))  # as if it had added nothing
            assert (await projector.rebuild()).counted == 1
            assert compared_fields(await history.exact()) == compared_fields(statistics)
        first = await service.latest_run_review(history.store, "run-1")
        assert first is not None
        await history.db.delete(Review.Key(review_id=first.review_id))
        for ident in (await service.get_version(history.store, first.review_id, 1)).findings:
            await history.db.delete(
                ReviewFinding.Key(finding_id=ident, review_id=first.review_id), erase=True
            )
        assert (await projector.rebuild()).removed == 3

    run(work())


@pytest.mark.parametrize("wrong", [None, {"total_reviews": 7, "risk_sum": Decimal(9), "fixed_reviews": 0}])
@pytest.mark.usefixtures("wide")
def test_a_rebuild_makes_statistics_again(
    history: ReviewHistory, run: Run[Any], wrong: dict[str, Any] | None
) -> None:
    """A statistic that was lost or overwritten, of a stack, a day or an issue, is what the items say after a rebuild, and after the next change."""

    async def work() -> None:
        await _month(history)
        await history.count()
        statistics = await history.exact()
        for entity in statistics.values():
            if wrong is None:
                await history.db.delete(statistic_key(statistic_name(entity)))
            else:
                numbers = {"reviews": 7, "open_count": 5, "occurrence_count": 4, **wrong}
                wrong_values = {
                    name: value for name, value in numbers.items() if name in type(entity).model_fields
                }
                await history.db.put(entity.model_copy(update=wrong_values))
        await history.store.projector.rebuild()
        assert compared_fields(await history.exact()) == compared_fields(statistics)
        review = await service.latest_run_review(history.store, "run-2")
        assert review is not None
        await service.change_status(history.store, review.review_id, ReviewStatus.PENDING, by="eng-01")
        await history.count()
        await history.exact()

    run(work())


@pytest.mark.usefixtures("wide")
def test_a_rebuild_beside_a_reader_loses_nothing(history: ReviewHistory, run: Run[Any]) -> None:
    """While the stream is counted a rebuild puts nothing back: what was counted meanwhile stays counted."""

    async def work() -> None:
        await _month(history)
        await history.count()
        stats = (await history.exact())["stack/stack-0"]
        await history.db.put(stats.model_copy(update={"total_reviews": 70}))
        projector = history.store.projector
        real, looks = projector._scan, 0

        async def busy() -> Any:
            nonlocal looks
            looks += 1
            found = await real()
            if looks < 4:
                await history.record(f"meanwhile-{looks}", "Issue 0", stack_id="stack-0")
                await history.count()
            return found

        projector._scan = busy  # type: ignore[method-assign]
        await projector.rebuild()
        projector._scan = real  # type: ignore[method-assign]
        await projector.rebuild()
        await history.exact()

    run(work())


@pytest.mark.usefixtures("wide")
def test_findings_whose_blob_is_gone_stop_nobody(
    target: Target, run: Run[Any], clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can never be made is logged; everything else is counted, and `verify` tells what is missing."""

    async def dies(*_: Any) -> int:
        raise KeyboardInterrupt

    async def work(history: ReviewHistory) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(history.store, "write_remaining_findings", dies)
            with pytest.raises(KeyboardInterrupt):
                await history.record("run-1", *(f"Issue {number}" for number in range(95)))
        for file in (tmp_path / "blobs").rglob("*"):
            if file.is_file():
                file.unlink()
        await history.record("run-2", "Issue 0")
        await history.count()
        stats = await service.get_stack_stats(history.store, "prod-net")
        assert stats is not None
        assert stats.total_reviews == 2
        review = await service.latest_run_review(history.store, "run-1")
        assert review is not None
        problems = {
            problem.what for problem in (await verify_review(history.store, review.review_id)).problems
        }
        assert "the blob of its findings is missing" in problems
        assert len(problems) == 7  # the code's blob, the findings', and five findings

    with open_history(target, run, clock, tmp_path, code_inline_bytes=10) as history:
        run(work(history))


def test_what_is_open_is_what_reviews_name(history: ReviewHistory, run: Run[Any]) -> None:
    """An issue is fixed in a stack when no review of it names it any more, however the records come: not while one does."""

    async def work() -> None:
        store = history.store
        named = finding("A", finding_id="find-1")
        one = await history.record("run-1", findings=(named, finding("A", line_number=9)))
        two = await history.record("run-2", "A")
        ident = issue_hash("A", Category.SECURITY, "main.tf")

        async def read_counts() -> tuple[int, bool]:
            await history.count()
            found = await service.get_issue(store, ident)
            assert found is not None
            assert found.total.open_count == found.stacks[0].open_count
            await history.exact()
            return found.stacks[0].open_count, found.stacks[0].fix_applied

        assert await read_counts() == (3, False)
        history.clock.advance(60)
        whole = fix_of(one, "A")
        part = whole.model_copy(update={"fixes_applied": whole.fixes_applied[:1]})
        one = await service.apply_fix(store, one.review_id, part, by="e")
        assert await read_counts() == (2, False)
        one = await service.apply_fix(store, one.review_id, fix_of(one, "A"), by="e")
        assert await read_counts() == (1, False)
        await service.apply_fix(store, two.review_id, fix_of(two, "A"), by="e")
        assert await read_counts() == (0, True)
        await service.add_version(store, one.review_id, Assessment(findings=(named,)), by="e")
        assert await read_counts() == (1, False)
        await service.add_version(store, one.review_id, Assessment(), by="e")
        assert await read_counts() == (0, True)
        changes = await _changes(history)
        Random(5).shuffle(changes)
        for change in changes:
            await store.projector.apply([change])
        assert await read_counts() == (0, True)

    run(work())


def test_loading_fills_the_same(history: ReviewHistory, run: Run[Any]) -> None:
    """Statistics written in batches after a load are those that the stream would have made."""

    async def work() -> None:
        await _month(history)
        await history.store.projector.fill()
        filled = await history.exact()
        await history.count()
        assert compared_fields(await history.store.projector.read_statistics()) == compared_fields(filled)

    run(work())


def test_an_erased_review_may_come_again(history: ReviewHistory, run: Run[Any]) -> None:
    """A review that was erased and recorded anew counts again, though its mark says that it was gone."""

    async def work() -> None:
        review = await history.record("run-1")
        await history.count()
        await history.db.delete(Review.Key(review_id=review.review_id))
        await history.count()
        gone = await service.get_stack_stats(history.store, "prod-net")
        assert gone is not None
        assert gone.total_reviews == 0
        erased = (
            ReviewVersion.Key(review_id=review.review_id, version=1),
            ReviewAudit.Key(review_id=review.review_id, version=1),
            RunReview.Key(
                run_id="run-1", created_at=review.created_at, review_id=review.review_id, version=1
            ),
        )
        for key in erased:
            await history.db.delete(key, erase=True)
        history.clock.advance(60)
        await history.record("run-1")
        await history.count()
        await history.exact()

    run(work())


def test_an_event_of_lambda_is_counted(history: ReviewHistory, run: Run[Any]) -> None:
    """The handler takes the records of an event; an item that cannot be read is reported alone."""

    async def work() -> None:
        await history.record("run-1", "A")
        changes = await _changes(history)
        records: list[dict[str, Any]] = [
            {
                "eventName": "INSERT",
                "eventSourceARN": change.origin.stream,
                "dynamodb": {
                    "Keys": change.keys,
                    "NewImage": to_item(change.new),
                    "SequenceNumber": change.sequence,
                },
            }
            for change in changes
            if isinstance(change, EntityChange) and change.new is not None
        ]
        for record in records:
            if record["dynamodb"]["NewImage"]["EntityType"]["S"] == "FINDING":
                record["dynamodb"]["NewImage"]["Severity"] = {"S": "grave"}
                broken = record["dynamodb"]["SequenceNumber"]
        response = await history.store.projector.handler({"Records": records})
        assert response == {"batchItemFailures": [{"itemIdentifier": broken}]}
        stats = await service.get_stack_stats(history.store, "prod-net")
        assert stats is not None
        assert stats.total_reviews == 1

    run(work())


def test_so_many_runs_are_told() -> None:
    """An issue names the latest runs alone: a list that grows for ever would end at 400 KB."""
    runs = {f"run-{number:03}": NOON + timedelta(minutes=number) for number in range(50)}
    runs_listed = latest_runs(runs.items())

    assert len(runs_listed) == RUNS_MAX
    assert next(iter(runs_listed)) == "run-049"


def test_a_review_done_again_moves_its_numbers(history: ReviewHistory, run: Run[Any]) -> None:
    """The numbers follow the current version: what version 1 said is taken out when version 2 is counted."""

    async def work() -> None:
        review = await history.record("run-1", "A", "B", overall_risk_score=Decimal("0.9"))
        await history.count()
        again = Assessment(overall_risk_score=Decimal("0.2"), findings=(finding("C"),))
        await service.add_version(history.store, review.review_id, again, by="eng-01")
        await history.count()
        stats = await service.get_stack_stats(history.store, "prod-net")
        assert stats is not None
        assert (stats.high_risk_count, stats.low_risk_count, stats.risk_sum) == (0, 1, Decimal("0.2"))
        assert stats.total_findings == 1
        most = await service.list_frequent_issues(history.store, Category.SECURITY)
        assert sorted(each.title for each in most) == ["A", "B", "C"]  # they were found, all of them
        await history.exact()

    run(work())


@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.usefixtures("wide")
def test_a_batch_of_any_size_fits(history: ReviewHistory, run: Run[Any], count: int) -> None:
    """A batch of records is counted in as many transactions as it takes."""

    async def work() -> None:
        for number in range(3):
            await history.record(f"run-{number}", *(f"Issue {number}-{which}" for which in range(count)))
        await history.store.projector.apply(await _changes(history))
        await history.exact()

    run(work())
