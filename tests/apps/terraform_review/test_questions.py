"""What is asked of the history: stacks, runs, risk, issues, status, audit; each by a query, none by a scan."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tavola import CursorRefused, to_item
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import Category, ReviewStatus, issue_hash
from tavola.apps.terraform_review.errors import RangeRefused
from tavola.apps.terraform_review.model import DayRisk, Review, Reviews, ReviewSummary
from tavola.apps.terraform_review.results import Assessment, FixRequest
from tests.apps.conftest import Run
from tests.apps.terraform_review.conftest import NOON, ReviewHistory, failed_result, finding, fix_of, result

DAY = timedelta(days=1)


def test_r03_a_stacks_history_by_time(history: ReviewHistory, run: Run[Any]) -> None:
    """The reviews of a stack newest first, in a range, page by page; the latest of a stack; another stack's are not there."""

    async def work() -> None:
        store = history.store
        for number in range(5):
            await history.record(f"run-{number}")
            await history.record(f"other-{number}", stack_id="stage-net")
            history.clock.advance(86400)
        newest = await service.list_stack_reviews(store, "prod-net")
        assert [each.run_id for each in newest] == [f"run-{n}" for n in (4, 3, 2, 1, 0)]
        middle = await service.list_stack_reviews(store, "prod-net", since=NOON + DAY, until=NOON + 3 * DAY)
        assert [each.run_id for each in middle] == ["run-3", "run-2", "run-1"]
        since = await service.list_stack_reviews(store, "prod-net", since=NOON + 3 * DAY, newest_first=False)
        assert [each.run_id for each in since] == ["run-3", "run-4"]
        page = await service.list_stack_reviews(store, "prod-net", until=NOON + 3 * DAY, limit=2)
        more = await service.list_stack_reviews(
            store, "prod-net", until=NOON + 3 * DAY, limit=2, cursor=page.cursor
        )
        assert [each.run_id for each in (*page, *more)] == ["run-3", "run-2", "run-1", "run-0"]
        latest = await service.latest_stack_review(store, "prod-net")
        assert latest is not None
        assert latest.run_id == "run-4"
        assert await service.latest_stack_review(store, "none") is None

    run(work())


def test_wrong_22_a_run_leads_to_its_review(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 22: every pattern has an item that feeds it: a run's link is written with the version that the run made."""

    async def work() -> None:
        store = history.store
        review = await history.record("run-1", "A")
        fix = fix_of(review, "A").model_copy(update={"spacelift_run_id": "run-2"})
        history.clock.advance(60)
        await service.apply_fix(store, review.review_id, fix, by="eng-02")
        history.clock.advance(60)
        await service.add_version(store, review.review_id, Assessment(), by="eng-02", run_id="run-3")

        for name in ("run-1", "run-2", "run-3"):
            found = await service.latest_run_review(store, name)
            assert found is not None
            assert (found.review_id, found.version, found.run_id) == (review.review_id, 3, "run-3")
        assert await service.latest_run_review(store, "run-4") is None

    run(work())


def test_wrong_22_every_declared_pattern_finds_something(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 22: with one review counted, there is an item in each index for each entity that declares a query on it."""

    async def work() -> None:
        review = await history.record("run-1", "A")
        await history.count()
        fed: set[tuple[str, str]] = set()
        page = await history.db.scan_table(Reviews)
        async for entity in page:
            item = to_item(entity)
            fed |= {
                (type(entity).__name__, name)
                for name in ("GSI1", "GSI2", "GSI3", "GSI4")
                if f"{name}PK" in item
            }
        assert fed == {
            ("Review", "GSI1"),
            ("Review", "GSI2"),
            ("Review", "GSI4"),
            ("ReviewAudit", "GSI4"),
            ("ReviewFinding", "GSI3"),
            ("StackStats", "GSI3"),
            ("IssueFrequency", "GSI3"),
            ("IssueTotal", "GSI3"),
        }
        assert review.version == 1

    run(work())


@pytest.mark.usefixtures("wide")
def test_r04_the_risk_of_a_day(history: ReviewHistory, run: Run[Any]) -> None:
    """How many reviews of a day are high, medium, low or unknown, their mean, and what it was before fixes."""

    async def work() -> None:
        store = history.store
        review = await history.record("run-1", "A", overall_risk_score=Decimal("0.9"))
        await history.record("run-2", overall_risk_score=Decimal("0.7"))
        await history.record("run-3", overall_risk_score=Decimal("0.6999"))
        await history.record("run-4", overall_risk_score=Decimal("0.1"))
        await service.record_review(store, failed_result("run-5"))
        await service.record_review(
            store, result("run-6", status=ReviewStatus.PENDING, overall_risk_score=None)
        )
        history.clock.advance(7200)
        await service.apply_fix(store, review.review_id, fix_of(review, "A", risk="0.2"), by="eng-01")
        await history.count()

        day = await service.get_day_risk(store, NOON.date())
        assert (day.high, day.medium, day.low, day.failed, day.pending) == (1, 1, 2, 1, 1)
        assert (day.reviews, day.assessed, day.fixed) == (6, 4, 1)
        assert day.average_risk == Decimal("0.4250")
        assert day.average_found == Decimal("0.6000")
        assert (await service.get_day_risk(store, date(2020, 1, 1))).reviews == 0

    run(work())


def test_r04_high_risk_of_a_range(history: ReviewHistory, run: Run[Any]) -> None:
    """From some risk on, the latest day first and of a day the riskiest first; scores sort as numbers."""

    async def work() -> None:
        store = history.store
        for day in range(3):
            for score in ("0.07", "0.7", "0.70001", "1", "0.699"):
                await history.record(f"run-{day}-{score}", overall_risk_score=Decimal(score))
            history.clock.advance(86400)
        start, end = NOON.date(), NOON.date() + 2 * DAY
        found = (await service.list_high_risk(store, start, end)).items
        assert [str(each.overall_risk_score) for each in found] == ["1", "0.7", "0.7"] * 3
        assert [each.created_at.date() for each in found] == [end] * 3 + [start + DAY] * 3 + [start] * 3
        assert len((await service.list_high_risk(store, start, start, min_risk=Decimal(1))).items) == 1
        assert not (await service.list_high_risk(store, end + DAY, end + 40 * DAY)).items
        with pytest.raises(RangeRefused):
            await service.list_high_risk(store, end, start)
        with pytest.raises(RangeRefused, match="1 to 366 days"):
            await service.list_high_risk(store, start, start + 366 * DAY)

    run(work())


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 9, 100])
def test_r04_high_risk_goes_on_where_it_was_cut(history: ReviewHistory, run: Run[Any], limit: int) -> None:
    """Whatever a page holds, the cursors lead through all days once, and the last page has none."""

    async def work() -> None:
        store = history.store
        for day in range(40):
            for score in ("0.7", "0.7", "0.9", "0.1") if day in (0, 1, 38, 39) else ("0.1",):
                await history.record(f"run-{day}-{history.clock.now()}", overall_risk_score=Decimal(score))
                history.clock.advance(1)
            history.clock.advance(86400)
        start, end = NOON.date(), NOON.date() + 41 * DAY
        whole = (await service.list_high_risk(store, start, end)).items
        found: list[ReviewSummary] = []
        cursor: str | None = None
        while True:
            page = await service.list_high_risk(store, start, end, limit=limit, cursor=cursor)
            found += page.items
            cursor = page.cursor
            if cursor is None:
                break
            assert len(page.items) == limit
        assert found == list(whole)
        assert len(found) == 12

    run(work())


def test_r04_a_cursor_of_other_days_is_refused(history: ReviewHistory, run: Run[Any]) -> None:
    """A cursor is of the days and the risk that it was given for."""

    async def work() -> None:
        store, day = history.store, NOON.date()
        for number in range(3):
            await history.record(f"run-{number}", overall_risk_score=Decimal("0.8"))
        cursor = (await service.list_high_risk(store, day, day, limit=2)).cursor
        assert cursor is not None
        for refused in ("tomorrow", "", (day + DAY).isoformat(), f"{day.isoformat()}.forged"):
            with pytest.raises(CursorRefused):
                await service.list_high_risk(store, day, day, cursor=refused)
        with pytest.raises(CursorRefused):
            await service.list_high_risk(store, day, day, min_risk=Decimal("0.5"), cursor=cursor)

    run(work())


def test_wrong_25_a_trend_is_one_query(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 25: days are aggregated as reviews come, so ten years are one query whose cost is told beforehand."""

    async def work() -> None:
        store, day = history.store, date(2016, 1, 1)
        days = [
            DayRisk(day=day + timedelta(days=n), reviews=5, assessed=5, risk_sum=Decimal(2))
            for n in range(3650)
        ]
        await history.db.put_many(days)
        explanation = await history.db.explain.query(
            DayRisk.ByDay().day.between(day, day + 3650 * DAY), item_bytes=250
        )
        assert explanation.operation == "Query"
        with history.db.measure() as spent:
            trend = await service.list_day_risks(store, day, day + 3649 * DAY)
        assert len(trend) == 3650
        assert spent.reads < 80  # a day at a time it would be 1825, whatever is in it
        assert await service.list_day_risks(store, date(2030, 1, 1), date(2030, 2, 1)) == []
        with pytest.raises(RangeRefused):
            await service.list_day_risks(store, day, day + 4000 * DAY)

    run(work())


def test_wrong_26_an_unknown_risk_is_not_the_highest(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 26: a failed review has no score, so it is in no risk index, no band and no mean; when it is known it enters."""

    async def work() -> None:
        store, today = history.store, NOON.date()
        recorded = await service.record_review(store, failed_result("run-1"))
        item = to_item(recorded.review)
        assert {"GSI2PK", "GSI2SK", "OverallRiskScore"}.isdisjoint(item)
        assert not (await service.list_high_risk(store, today, today, min_risk=Decimal(0))).items
        done = Assessment(overall_risk_score=Decimal("0.9"))
        await service.add_version(store, recorded.review.review_id, done, by="eng-01")
        assert len((await service.list_high_risk(store, today, today)).items) == 1
        await service.change_status(store, recorded.review.review_id, ReviewStatus.PENDING, by="eng-01")
        await service.change_status(store, recorded.review.review_id, ReviewStatus.FAILED, by="eng-01")
        assert not (await service.list_high_risk(store, today, today, min_risk=Decimal(0))).items
        await history.count()
        day = await service.get_day_risk(store, today)
        assert (day.reviews, day.assessed, day.high, day.failed) == (1, 0, 0, 1)
        assert day.average_risk is None

    run(work())


@pytest.mark.usefixtures("wide")
def test_r05_repeated_issues(history: ReviewHistory, run: Run[Any]) -> None:
    """All occurrences of one, the most frequent of a category over all stacks, those of a stack from a count on."""

    async def work() -> None:
        store = history.store
        for number in range(4):
            await history.record(f"run-{number}", "Public", *(["No log"] if number < 2 else []))
            history.clock.advance(3600)
        await history.record("run-9", "Public", stack_id="stage-net")
        cost = finding("Too large", category=Category.COST)
        await history.record("run-10", findings=(cost, cost.model_copy(update={"line_number": 9})))
        await history.count()

        public = issue_hash("Public", Category.SECURITY, "main.tf")
        page = await service.list_occurrences(store, public, limit=3)
        rest = await service.list_occurrences(store, public, limit=3, cursor=page.cursor)
        assert [each.run_id for each in (*page, *rest)] == ["run-9", "run-3", "run-2", "run-1", "run-0"]
        most = await service.list_frequent_issues(store, Category.SECURITY)
        assert [(each.title, each.occurrence_count) for each in most] == [("Public", 5), ("No log", 2)]
        assert [each.title for each in await service.list_frequent_issues(store, Category.COST)] == [
            "Too large"
        ]
        often = await service.list_stack_issues(store, "prod-net", min_occurrences=3)
        assert [(each.title, each.occurrence_count) for each in often] == [("Public", 4)]
        found = await service.get_issue(store, public)
        assert found is not None
        assert [(each.stack_id, each.occurrence_count) for each in found.stacks] == [
            ("prod-net", 4),
            ("stage-net", 1),
        ]
        assert list(found.stacks[0].affected_runs) == ["run-3", "run-2", "run-1", "run-0"]
        assert (found.stacks[0].first_seen, found.stacks[0].last_seen) == (NOON, NOON + timedelta(hours=3))
        assert await service.get_issue(store, "none") is None

    run(work())


@pytest.mark.usefixtures("wide")
def test_wrong_20_fifteen_is_more_than_nine(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 20: an issue found fifteen times comes before one found nine times."""

    async def work() -> None:
        counts = {"Nine": 9, "Fifteen": 15, "Two": 2}
        for number in range(15):
            titles = [title for title, times in counts.items() if number < times]
            await history.record(f"run-{number}", *titles)
        await history.count()
        most = await service.list_frequent_issues(history.store, Category.SECURITY)
        assert [each.occurrence_count for each in most] == [15, 9, 2]
        often = await service.list_stack_issues(history.store, "prod-net", min_occurrences=9)
        assert [each.title for each in often] == ["Fifteen", "Nine"]

    run(work())


def test_r05_a_fixed_issue_is_told_until_it_comes_back(history: ReviewHistory, run: Run[Any]) -> None:
    """An issue is fixed in a stack from the fix on until it is found there again; its count stays what it was."""

    async def work() -> None:
        store = history.store
        review = await history.record("run-1", "Public")
        public = issue_hash("Public", Category.SECURITY, "main.tf")
        history.clock.advance(60)
        await service.apply_fix(store, review.review_id, fix_of(review, "Public"), by="eng-01")
        await history.count()
        fixed = await service.get_issue(store, public)
        assert fixed is not None
        assert (fixed.stacks[0].fix_applied, fixed.total.occurrence_count) == (True, 1)
        history.clock.advance(60)
        await history.record("run-2", "Public")
        await history.count()
        back = await service.get_issue(store, public)
        assert back is not None
        assert (back.stacks[0].fix_applied, back.total.occurrence_count) == (False, 2)
        await history.exact()

    run(work())


def test_wrong_21_only_the_current_version_has_a_status(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 21: a review that was pending once and is done is not among the pending ones, though version 1 says so."""

    async def work() -> None:
        store = history.store
        await service.record_review(
            store, result("run-1", status=ReviewStatus.PENDING, overall_risk_score=None)
        )
        await service.record_review(
            store, result("run-2", status=ReviewStatus.PENDING, overall_risk_score=None)
        )
        history.clock.advance(3 * 3600)
        review = await service.latest_run_review(store, "run-1")
        assert review is not None
        await service.add_version(store, review.review_id, Assessment(), by="eng-01")

        assert [each.run_id for each in await service.list_pending(store)] == ["run-2"]
        assert (await service.get_version(store, review.review_id, 1)).status is ReviewStatus.PENDING
        assert [each.run_id for each in await service.list_by_status(store, ReviewStatus.COMPLETED)] == [
            "run-1"
        ]

    run(work())


def test_r06_reviews_by_status(history: ReviewHistory, run: Run[Any]) -> None:
    """Completed and failed ones newest first over all shards, page by page; pending ones that wait for over an hour, the oldest first."""

    async def work() -> None:
        store = history.store
        for number in range(12):
            status = ReviewStatus.PENDING if number % 2 else ReviewStatus.COMPLETED
            await service.record_review(store, result(f"run-{number}", status=status))
            history.clock.advance(600)
        for number in range(3):
            await service.record_review(store, failed_result(f"failed-{number}"))
            history.clock.advance(1)
        page = await service.list_by_status(store, ReviewStatus.COMPLETED, limit=4)
        more = await service.list_by_status(store, ReviewStatus.COMPLETED, limit=4, cursor=page.cursor)
        assert [each.run_id for each in (*page, *more)] == [f"run-{n}" for n in (10, 8, 6, 4, 2, 0)]
        assert more.cursor is None
        assert [each.run_id for each in await service.list_pending(store)] == ["run-1", "run-3", "run-5"]
        assert len(await service.list_by_status(store, ReviewStatus.FAILED)) == 3

    run(work())


def test_r07_the_audit_trail(history: ReviewHistory, run: Run[Any]) -> None:
    """Who changed what, when and why, field by field; by review, by actor and in a stretch of time."""

    async def work() -> None:
        store = history.store
        review = await history.record("run-1", "A", "B")
        history.clock.advance(3600)
        await service.apply_fix(
            store, review.review_id, fix_of(review, "A"), by="eng-02", why="pull request 7"
        )
        history.clock.advance(3600)
        await service.change_status(
            store, review.review_id, ReviewStatus.PENDING, by="eng-02", why="once more"
        )
        await history.record("run-2", created_by="eng-02")

        trail = await service.list_audit_entries(store, review.review_id)
        assert [(row.version, row.actor, row.why, row.kind) for row in trail] == [
            (3, "eng-02", "once more", "changed"),
            (2, "eng-02", "pull request 7", "changed"),
            (1, "eng-01", "Recorded", "created"),
        ]
        assert [row.at for row in trail] == [NOON + timedelta(hours=n) for n in (2, 1, 0)]
        values = {found.path: (found.before, found.after) for found in trail.items[1].differences}
        assert values["overall_risk_score"] == (Decimal("0.72"), Decimal("0.35"))
        assert values["findings_total"] == (2, 1)
        assert values["fix_applied"] == (False, True)
        assert not [path for path in values if "expires" in path]
        assert {found.path for found in trail.items[0].differences} == {"status", "status_since"}
        assert {found.path for found in await service.compare_versions(store, review.review_id, 1, 3)} >= {
            "status",
            "overall_risk_score",
        }
        mine = await service.list_changes_by(store, "eng-02")
        assert sorted((row.review_id == review.review_id, row.version) for row in mine) == [
            (False, 1),
            (True, 2),
            (True, 3),
        ]
        early = await service.list_changes_by(store, "eng-02", until=NOON + timedelta(hours=1))
        assert [row.version for row in early] == [2]
        page = await service.list_changes_by(store, "eng-02", limit=2)
        assert len(page) == 2
        assert len(await service.list_changes_by(store, "eng-02", limit=2, cursor=page.cursor)) == 1
        assert not await service.list_changes_by(store, "nobody", since=datetime(2020, 1, 1, tzinfo=UTC))

    run(work())


def test_a_fix_may_leave_the_risk_unknown(history: ReviewHistory, run: Run[Any]) -> None:
    """Where nobody judged the code after a fix, there is no reduction to tell, and the review leaves the risk index."""

    async def work() -> None:
        review = await history.record("run-1", "A")
        fix: FixRequest = fix_of(review, "A", risk=None)
        after: Review = await service.apply_fix(history.store, review.review_id, fix, by="eng-01")
        assert after.fix_details is not None
        assert after.fix_details.risk_reduction is None
        assert (after.overall_risk_score, after.found_risk_score) == (None, Decimal("0.72"))

    run(work())
