"""Reviews in versions: sequential and never overwritten, one winner of two, code of any size, findings in one transaction."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tavola import ItemImmutable, ManualClock, ValueNotStorable, to_item
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import (
    Category,
    FindingSeverity,
    ReviewStatus,
    issue_hash,
    review_id_for_run,
    round_score,
)
from tavola.apps.terraform_review.errors import (
    FindingUnknown,
    ReviewMissing,
    ReviewTransitionRefused,
    RunRecorded,
    VersionMissing,
)
from tavola.apps.terraform_review.model import Review, ReviewFinding, ReviewVersion
from tavola.apps.terraform_review.results import (
    AppliedFix,
    Assessment,
    CostAnalysis,
    ErrorDetails,
    FixRequest,
)
from tavola.apps.terraform_review.verification import verify_review
from tavola.patterns import IdempotencyMismatch, VersionConflict
from tests.apps.conftest import Run, Target
from tests.apps.terraform_review.conftest import ReviewHistory, finding, fix_of, open_history, result


def test_r01_versions_are_sequential_and_kept(history: ReviewHistory, run: Run[Any]) -> None:
    """Create, next version, fix: three versions, each readable as it was; a fix tells what it came to."""

    async def work() -> None:
        store = history.store
        first = await history.record("run-1", "Bucket is public", "No encryption", "No log")
        history.clock.advance(60)
        again = Assessment(
            overall_risk_score=Decimal("0.75"),
            findings=(finding("Bucket is public"), finding("No encryption"), finding("No log")),
        )
        second = await service.add_version(store, first.review_id, again, by="eng-02", why="new model")
        history.clock.advance(60)
        fix = fix_of(second, "Bucket is public", "No log")
        third = await service.apply_fix(store, first.review_id, fix, by="eng-03", why="pull request 7")

        assert (first.version, second.version, third.version) == (1, 2, 3)
        assert second.findings.keys() == first.findings.keys()  # the same issues are the same findings
        assert third.fix_applied
        assert third.fix_details is not None
        details = third.fix_details
        assert (details.fix_version, details.previous_version) == (3, 2)
        assert (details.findings_resolved, details.findings_remaining) == (2, 1)
        assert details.risk_reduction == Decimal("0.40")
        assert third.security_findings.total == third.findings_total == 1
        assert await service.get_review(store, first.review_id) == third
        assert [each.version for each in await service.list_versions(store, first.review_id)] == [3, 2, 1]
        assert (await service.get_version(store, first.review_id, 1)).overall_risk_score == Decimal("0.72")
        assert [each.title for each in await service.list_findings(store, third)] == ["No encryption"]
        assert await verify_review(store, first.review_id)

    run(work())


def test_r01_what_is_not_there_is_told(history: ReviewHistory, run: Run[Any]) -> None:
    """No review, no version, no such finding, no such step: each is an error of its own that says what to do."""

    async def work() -> None:
        store = history.store
        review = await history.record("run-1", "Bucket is public")
        with pytest.raises(ReviewMissing):
            await service.get_review(store, "none")
        with pytest.raises(VersionMissing):
            await service.get_version(store, review.review_id, 2)
        with pytest.raises(VersionMissing) as missing:
            await service.compare_versions(store, review.review_id, 1, 7)
        assert missing.value.version == 7
        with pytest.raises(ReviewTransitionRefused, match="allowed: "):
            await service.change_status(store, review.review_id, ReviewStatus.FAILED, by="eng-01")
        wrong = fix_of(review, "Bucket is public")
        wrong = wrong.model_copy(
            update={"fixes_applied": (wrong.fixes_applied[0].model_copy(update={"finding_id": "x"}),)}
        )
        with pytest.raises(FindingUnknown):
            await service.apply_fix(store, review.review_id, wrong, by="eng-01")
        assert (await service.get_review(store, review.review_id)).version == 1

    run(work())


def test_r01_a_run_is_recorded_once(history: ReviewHistory, run: Run[Any]) -> None:
    """The same run and result again is the review that is there, also at once; another result of it is refused."""

    async def work() -> None:
        many = await asyncio.gather(
            *(service.record_review(history.store, result("run-1", "A")) for _ in range(8))
        )
        assert len({each.review.review_id for each in many}) == 1
        assert sorted(each.replayed for each in many).count(False) == 1
        with pytest.raises(RunRecorded, match="different result"):
            await service.record_review(history.store, result("run-1", "B"))
        await service.apply_fix(
            history.store, many[0].review.review_id, fix_of(many[0].review, "A"), by="eng-02"
        )
        late = await service.record_review(history.store, result("run-1", "A"))
        assert (late.replayed, late.review.version) == (True, 2)

    run(work())


def test_r01_a_key_makes_a_request_once(history: ReviewHistory, run: Run[Any]) -> None:
    """With an idempotency key the answer is kept; the key with something else is refused."""

    async def work() -> None:
        first = await service.record_review(history.store, result("run-1", "A"), idempotency_key="key-1")
        again = await service.record_review(history.store, result("run-1", "A"), idempotency_key="key-1")
        other = await service.record_review(history.store, result("run-1", "A"), idempotency_key="key-2")
        assert (first.replayed, again.replayed) == (False, True)
        assert first.review == again.review == other.review
        with pytest.raises(IdempotencyMismatch):
            await service.record_review(history.store, result("run-2", "A"), idempotency_key="key-1")
        both = await asyncio.gather(
            service.record_review(history.store, result("run-3"), idempotency_key="key-3"),
            service.record_review(history.store, result("run-3"), idempotency_key="key-4"),
            service.record_review(history.store, result("run-3")),
        )
        assert len({each.review.review_id for each in both}) == 1

    run(work())


def test_wrong_20_version_ten_comes_after_nine(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 20: versions, counts and scores sort as numbers: the latest of twelve is the twelfth."""

    async def work() -> None:
        review = await history.record("run-1")
        for number in range(2, 13):
            status = ReviewStatus.PENDING if number % 2 == 0 else ReviewStatus.COMPLETED
            review = await service.change_status(history.store, review.review_id, status, by="eng-01")

        found = await service.list_versions(history.store, review.review_id)
        assert [each.version for each in found] == list(range(12, 0, -1))
        assert (await service.get_review(history.store, review.review_id)).version == 12
        page = await service.list_versions(history.store, review.review_id, limit=2)
        assert [each.version for each in page] == [12, 11]

    run(work())


def test_wrong_24_of_two_updates_one_wins(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 24: of many who change a version at once one wins, the others are told; no number is given twice or left out."""

    async def work() -> None:
        review = await history.record("run-1", "A", "B", "C")
        at_once = [
            service.change_status(
                history.store, review.review_id, ReviewStatus.PENDING, by=f"eng-{n:02}", expected_version=1
            )
            for n in range(6)
        ]
        done = await asyncio.gather(*at_once, return_exceptions=True)
        won = [each for each in done if isinstance(each, Review)]
        conflicts = [each for each in done if isinstance(each, VersionConflict)]
        assert (len(won), len(conflicts)) == (1, 5)
        assert all((each.expected, each.winner.changed_by) == (1, won[0].changed_by) for each in conflicts)
        assert [each.version for each in await service.list_versions(history.store, review.review_id)] == [
            2,
            1,
        ]
        assert await verify_review(history.store, review.review_id)

    run(work())


def test_wrong_23_facts_are_not_written_again(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 23: versions, audit rows, findings and links are created and never written again; statistics are replaced."""

    async def work() -> None:
        review = await history.record("run-1", "A")
        await history.count()
        version = ReviewVersion.Key(review_id=review.review_id, version=1)
        with pytest.raises(ItemImmutable):
            await history.db.update(version, ReviewVersion.status.set(ReviewStatus.FAILED))
        (found,) = await service.list_findings(history.store, review)
        with pytest.raises(ItemImmutable):
            await history.db.put(found)
        with pytest.raises(ItemImmutable):
            await history.db.delete(
                ReviewFinding.Key(finding_id=found.finding_id, review_id=review.review_id)
            )
        stats = await service.get_stack_stats(history.store, "prod-net")
        assert stats is not None
        assert await history.db.put(stats) == stats

    run(work())


def test_r01_large_code_is_in_the_blob_store(
    target: Target, run: Run[Any], clock: ManualClock, tmp_path: Path
) -> None:
    """Code over the limit is compressed beside the table and read back whole; versions share what did not change."""
    long = "".join(f'resource "aws_instance" "i{n}" {{}} # é\n' for n in range(9000))

    async def work(history: ReviewHistory) -> None:
        store = history.store
        small = await history.record("run-1", terraform_code="x = 1\n" * 2000)
        large = await history.record("run-2", terraform_code=long)
        second = await service.change_status(store, large.review_id, ReviewStatus.PENDING, by="eng-01")
        same = await service.add_version(store, large.review_id, Assessment(terraform_code=long), by="eng-01")
        other = await service.add_version(
            store, large.review_id, Assessment(terraform_code=long + "# more"), by="eng-01"
        )
        assert small.code.place is None
        assert large.code.place is not None
        assert large.code.encoding == "zlib"
        assert large.code == second.code == same.code != other.code
        assert await service.read_code(store, large) == long
        assert (
            await service.read_code(store, await service.get_version(store, large.review_id, 4))
            == long + "# more"
        )
        assert len([each for each in (tmp_path / "blobs").rglob("*") if each.is_file()]) == 2
        assert not (await store.sweep_blobs()).orphans
        assert await service.read_code(store, same) == long

    with open_history(target, run, clock, tmp_path) as history:
        run(work(history))
    with open_history(target, run, clock, tmp_path, code_inline_bytes=100) as history:
        assert run(history.record("run-9", terraform_code="y" * 101)).code.place is not None


@pytest.mark.parametrize("count", [40, 96, 250])
@pytest.mark.usefixtures("wide")
def test_r02_all_findings_are_kept(history: ReviewHistory, run: Run[Any], count: int) -> None:
    """A review with its findings is one transaction; those that do not fit are whole with it and items a moment later."""

    async def work() -> None:
        review = await history.record("run-1", *(f"Issue {number}" for number in range(count)))
        assert len(await service.list_findings(history.store, review)) == review.findings_total == count
        await history.count()
        stats = await service.get_stack_stats(history.store, "prod-net")
        assert stats is not None
        assert stats.security_findings == count
        await history.exact()

    run(work())


def _keys(review: Review) -> list[ReviewFinding.Key]:
    return [ReviewFinding.Key(finding_id=each, review_id=review.review_id) for each in review.findings]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.usefixtures("wide")
def test_r02_findings_that_did_not_fit_come_with_the_projector(
    history: ReviewHistory, run: Run[Any], monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    """A program that dies after its transaction leaves the review whole: the projector makes the items that are missing, by the stream or by a rebuild alone."""

    async def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    async def work() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(history.store, "write_remaining_findings", dies)
            with pytest.raises(KeyboardInterrupt):
                await history.record("run-1", *(f"Issue {number}" for number in range(120)))
        review = await service.latest_run_review(history.store, "run-1")
        assert review is not None
        assert len([each for each in await history.db.get_many(_keys(review)) if each]) == 90
        assert (
            len(await service.list_findings(history.store, review)) == 120
        )  # they are read where they are kept
        await (history.store.projector.rebuild() if alone else history.count())
        assert len([each for each in await history.db.get_many(_keys(review)) if each]) == 120
        assert len(await service.list_findings(history.store, review)) == 120
        await history.count()
        assert await verify_review(history.store, review.review_id)
        await history.exact()

    run(work())


def test_r02_a_finding_that_comes_back_is_the_one_that_was(history: ReviewHistory, run: Run[Any]) -> None:
    """A finding with an id of its own that was resolved and is found again is not written again; the review still verifies."""

    async def work() -> None:
        named = finding("A", finding_id="find-1")
        review = await history.record("run-1", findings=(named, finding("B")))
        review = await service.apply_fix(history.store, review.review_id, fix_of(review, "A"), by="eng-01")
        history.clock.advance(3600)
        back = Assessment(findings=(named, finding("B")), overall_risk_score=Decimal("0.5"))
        review = await service.add_version(history.store, review.review_id, back, by="eng-01")
        assert [each.title for each in await service.list_findings(history.store, review)] == ["A", "B"]
        assert (await service.list_findings(history.store, review))[0].version == 1
        assert await verify_review(history.store, review.review_id)

    run(work())


def test_r02_what_is_judged_otherwise_is_another_finding(history: ReviewHistory, run: Run[Any]) -> None:
    """A version says what its findings say: under one id, or as the same issue, but with another severity or title it is a new finding."""

    async def work() -> None:
        store = history.store
        named = finding("A", finding_id="f1")
        review = await history.record("run-1", findings=(named, finding("X", line_number=3)))
        other = finding("Else", finding_id="f1", severity=FindingSeverity.LOW, category=Category.COST)
        less = finding("X", severity=FindingSeverity.LOW, line_number=77)
        review = await service.add_version(
            store, review.review_id, Assessment(findings=(other, less)), by="e"
        )
        found = await service.list_findings(store, review)
        assert {(each.title, each.severity) for each in found} == {
            (ref.title, ref.severity) for ref in review.findings.values()
        }
        assert (review.high_findings, review.cost_findings.total) == (0, 1)
        assert "f1.2" in review.findings
        assert {each.line_number for each in found} == {None, 77}
        back = Assessment(findings=(finding("B", finding_id="f1"), less))
        review = await service.add_version(store, review.review_id, back, by="e")
        assert {ref.title for ref in review.findings.values()} == {"B", "X"}
        assert "f1.3" in review.findings  # f1 is the id of what was found first
        assert await verify_review(store, review.review_id)
        await history.count()
        await history.exact()

    run(work())


def test_r02_ids_that_are_made_meet_no_others(history: ReviewHistory, run: Run[Any]) -> None:
    """A given id that is the one which would be made for another finding is nobody else's."""

    async def work() -> None:
        ident = f"{review_id_for_run('run-1')[:13]}.1.2"
        review = await history.record("run-1", findings=(finding("A", finding_id=ident), finding("B")))
        assert {ref.title for ref in review.findings.values()} == {"A", "B"}
        taken = f"{review_id_for_run('run-1')[:13]}.2.3"
        again = Assessment(findings=(finding("C", finding_id=taken), finding("B"), finding("D")))
        review = await service.add_version(history.store, review.review_id, again, by="e")
        assert sorted(ref.title for ref in review.findings.values()) == ["B", "C", "D"]
        assert await verify_review(history.store, review.review_id)

    run(work())


def test_r03_a_run_leads_to_the_review_that_named_it_last(history: ReviewHistory, run: Run[Any]) -> None:
    """Each version has its link, also a further one of the same run, or at the same moment; none is in another's way."""

    async def work() -> None:
        store = history.store
        first = await history.record("run-1")
        history.clock.advance(60)
        other = await history.record("run-2")
        for run_id in ("run-1", "run-2", "run-1"):
            await service.add_version(store, other.review_id, Assessment(), by="e", run_id=run_id)
        assert (await service.latest_run_review(store, "run-1")).review_id == other.review_id  # type: ignore[union-attr]
        history.clock.advance(60)
        await service.add_version(store, first.review_id, Assessment(), by="e", run_id="run-1")
        assert (await service.latest_run_review(store, "run-1")).review_id == first.review_id  # type: ignore[union-attr]
        assert await verify_review(store, first.review_id)
        assert await verify_review(store, other.review_id)

    run(work())


def test_what_a_version_holds_is_limited() -> None:
    """Titles and code of fixes that no item could hold are refused in words, before anything is written."""
    with pytest.raises(ValidationError, match="shorten the titles"):
        result("run-1", findings=tuple(finding(f"{n} " + "x" * 290) for n in range(400)))
    with pytest.raises(ValidationError, match="only the changed lines"):
        FixRequest(
            fixes_applied=tuple(AppliedFix(finding_id=f"f{n}", original_code="x" * 40_000) for n in range(3))
        )


def test_wrong_10_times_are_aware(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 10: moments have a zone, days are of UTC, and time to live is the epoch second seven years on."""

    async def work() -> None:
        review = await history.record("run-1")
        item = to_item(review)
        ends = review.created_at + timedelta(days=365 + 2555)
        assert review.created_at.tzinfo is not None
        assert item["TTL"] == {"N": str(int(ends.timestamp()))}
        assert item["CreatedAt"]["S"].endswith("Z")
        naive = review.model_copy(update={"created_at": review.created_at.replace(tzinfo=None)})
        with pytest.raises(ValueNotStorable):
            to_item(naive)

    run(work())


def test_wrong_13_no_digit_is_lost(history: ReviewHistory, run: Run[Any]) -> None:
    """Pitfall 13: scores and money are decimals from the JSON on; a float in a document is kept as its shortest decimal."""

    async def work() -> None:
        submitted = result("run-1").model_dump_json().replace('"0.72"', "0.1")
        posted = type(result()).model_validate_json(submitted)
        cost = CostAnalysis.model_validate_json('{"estimated_monthly_cost": 1200.10}')
        posted = posted.model_copy(update={"cost_analysis": cost, "metadata": {"share": 0.1, "n": 3}})
        recorded = await service.record_review(history.store, posted)
        review = await service.get_review(history.store, recorded.review.review_id)
        item = to_item(review)
        assert item["OverallRiskScore"] == {"N": "0.1"}
        assert item["CostAnalysis"]["M"]["estimated_monthly_cost"] == {"N": "1200.1"}
        assert item["Metadata"]["M"]["share"] == {"N": "0.1"}
        assert review.metadata == {"share": 0.1, "n": 3}

    run(work())


def test_a_score_has_four_places() -> None:
    """Scores are rounded to even at the fourth place, so that they sort and add up as they are shown."""
    assert round_score(Decimal("0.70")) == Decimal("0.7")
    assert str(round_score(Decimal("0.12345"))) == "0.1234"
    assert round_score(None) is None


def test_an_issue_is_told_by_title_category_and_file() -> None:
    """The same issue has the same hash wherever it is found; parts that meet otherwise are another one."""
    assert issue_hash("ab", Category.COST, "c") == issue_hash("ab", Category.COST, "c")
    assert issue_hash("ab", Category.COST, "c") != issue_hash("a", Category.COST, "bc")


@pytest.mark.parametrize(
    "values",
    [
        {"overall_risk_score": "1.1"},
        {"overall_risk_score": "-0.1"},
        {"stack_id": "a/b"},
        {"stack_id": ""},
        {"metadata": {"": 1}},
        {"metadata": {"n": 10**40}},
        {"metadata": {"n": float("inf")}},
        {"status": ReviewStatus.FAILED},
        {"error_details": ErrorDetails(error_type="X")},
        {"findings": (finding("A", finding_id="x"), finding("B", finding_id="x"))},
    ],
)
def test_what_cannot_be_a_result_is_refused(values: dict[str, Any]) -> None:
    """A result is checked where it enters: scores, ids, documents that a table can hold, parts that agree."""
    with pytest.raises(ValidationError):
        result("run-1", **values)
