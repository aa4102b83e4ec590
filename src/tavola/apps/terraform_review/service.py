"""The use cases of the review history: one function each, on a `ReviewStore`.

Every change of a review creates its next version, in one transaction with the audit entry and the new findings. A caller that
passes `expected_version` gets a `VersionConflict` if the review is at another version; a caller that passes none gets one if
the review changes while the new version is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from tavola import AsyncPage, AsyncTransaction, CursorRefused, ItemMissing, TransactionCancelled
from tavola.apps.queries import query_slice, select_between
from tavola.apps.terraform_review import drafts
from tavola.apps.terraform_review.domain import (
    EDITABLE_FOR,
    HIGH_FROM,
    Category,
    FindingSeverity,
    ReviewStatus,
    review_id_for_run,
)
from tavola.apps.terraform_review.errors import (
    RangeRefused,
    ReviewClosed,
    ReviewMissing,
    RunRecorded,
    VersionMissing,
)
from tavola.apps.terraform_review.model import (
    DayRisk,
    IssueFrequency,
    IssueTotal,
    Review,
    ReviewAudit,
    ReviewFinding,
    ReviewSummary,
    ReviewVersion,
    RunReview,
    StackStats,
)
from tavola.apps.terraform_review.results import Assessment, ErrorDetails, FixRequest, ReviewResult
from tavola.apps.terraform_review.store import RecordReceipt, ReviewStore, VersionDraft
from tavola.patterns import Difference, Slice, Staged, VersionConflict, digest_of

DAYS_MAX = 366  # of one request for high-risk reviews, which queries each day
TREND_DAYS_MAX = 3_660  # of one trend, which is a single query
_CONCURRENT_DAYS = 16


@dataclass(frozen=True, slots=True)
class RecordedReview:
    """The current review of a run, and what the request that recorded it did."""

    review: Review
    replayed: bool  # the review existed before this request
    created: bool  # by this request, or by the first one with its idempotency key
    version: int  # at the time of recording


@dataclass(frozen=True, slots=True)
class Issue:
    """The counts of an issue over all stacks, and per stack."""

    total: IssueTotal
    stacks: tuple[IssueFrequency, ...]


# R1: reviews in versions.


async def record_review(
    store: ReviewStore, result: ReviewResult, *, idempotency_key: str | None = None
) -> RecordedReview:
    """Store the review of a run as version 1, with its findings; recording the same result again changes nothing.

    A run has one review, whose id is derived from the run's id, so a result may be sent any number of times. The same run with
    another result raises `RunRecorded`. Reusing an idempotency key for another result raises `IdempotencyMismatch`.
    """
    digest = digest_of(result)
    if idempotency_key is None:
        return await _record_without_key(store, result, digest)

    staged_versions: list[Staged[Review]] = []

    async def fill(tx: AsyncTransaction) -> RecordReceipt:
        recorded = await _recorded_review(store, result, digest)
        if recorded is not None:
            return RecordReceipt(
                review_id=recorded.review_id, version=recorded.version, already_recorded=True
            )
        draft = await _draft_first_version(store, result, digest)
        staged = store.stage_version(tx, None, draft, by=result.created_by, why="")
        staged_versions.append(staged)
        return RecordReceipt(review_id=staged.record.review_id, version=staged.record.version)

    for attempt in (1, 2):
        try:
            answer = await store.requests.together(idempotency_key, result, fill)
            break
        except TransactionCancelled as error:
            # The run may have been recorded meanwhile, under another key or none: the second attempt finds it.
            if attempt == 2 or await _recorded_review(store, result, digest) is None:
                conflict = store.versions.conflict(error, staged_versions[-1]) if staged_versions else None
                raise error if conflict is None else conflict from error
    receipt = answer.value
    review = await get_review(store, receipt.review_id)
    await store.write_remaining_findings(review)
    created = not receipt.already_recorded
    return RecordedReview(review, answer.replayed or not created, created, receipt.version)


async def add_version(
    store: ReviewStore,
    review_id: str,
    assessment: Assessment,
    *,
    by: str,
    why: str = "",
    expected_version: int | None = None,
    run_id: str | None = None,
) -> Review:
    """Store a reviewer's new assessment as the next version; it completes a pending review or replaces the last assessment.

    The assessment lists all current findings. A finding with the id of an earlier one, or of the same issue, is the earlier
    finding, unless its severity differs: then it is a new finding.
    """

    async def draft_version(before: Review, now: datetime) -> VersionDraft:
        code = before.code
        if assessment.terraform_code is not None:
            code = await store.store_code(assessment.terraform_code, before.code)
        after, new_findings = drafts.reassessed_version(before, assessment, code, now, run_id)
        while existing := await store.read_existing_findings(new_findings):  # resolved once, and now back
            after, new_findings = drafts.reuse_existing_findings(after, new_findings, existing)
        return await store.prepare_draft(after, new_findings)

    return await _change_review(store, review_id, draft_version, by, why, expected_version)


async def apply_fix(
    store: ReviewStore,
    review_id: str,
    fix: FixRequest,
    *,
    by: str,
    why: str = "",
    expected_version: int | None = None,
) -> Review:
    """Store a fix as the next version: its findings are resolved, and `fix_details` holds the effect."""

    async def draft_version(before: Review, now: datetime) -> VersionDraft:
        code = before.code
        if fix.terraform_code is not None:
            code = await store.store_code(fix.terraform_code, before.code)
        return VersionDraft(drafts.fixed_version(before, fix, code, now))

    return await _change_review(store, review_id, draft_version, by, why, expected_version)


async def change_status(
    store: ReviewStore,
    review_id: str,
    status: ReviewStatus,
    *,
    by: str,
    why: str = "",
    error: ErrorDetails | None = None,
    expected_version: int | None = None,
) -> Review:
    """Store another status, pending or failed, as the next version. The risk of a failed review is unknown."""

    async def draft_version(before: Review, now: datetime) -> VersionDraft:
        return VersionDraft(drafts.version_with_status(before, status, error, now))

    return await _change_review(store, review_id, draft_version, by, why, expected_version)


async def get_review(store: ReviewStore, review_id: str) -> Review:
    """Return the current version of a review; raise `ReviewMissing` if there is none."""
    review = await store.versions.latest(Review.Key(review_id=review_id))
    if review is None:
        raise ReviewMissing(review_id)
    return review


async def get_version(store: ReviewStore, review_id: str, number: int) -> ReviewVersion:
    """Return one version of a review; raise `VersionMissing` if there is none."""
    version = await store.versions.version(Review.Key(review_id=review_id), number)
    if version is None:
        raise VersionMissing(review_id, number)
    return version


async def list_versions(
    store: ReviewStore, review_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Slice[ReviewVersion]:
    """Return the versions of a review, newest first; all of them without a limit."""
    return await store.versions.versions(Review.Key(review_id=review_id), limit=limit, cursor=cursor)


async def compare_versions(
    store: ReviewStore, review_id: str, one: int, other: int
) -> tuple[Difference, ...]:
    """Return the differences between two versions by field; version 0 is an empty review."""
    try:
        return await store.versions.diff(Review.Key(review_id=review_id), one, other)
    except ItemMissing as error:
        for number in (one, other):
            if number:
                await get_version(store, review_id, number)  # raises for the version that is missing
        raise VersionMissing(review_id, one) from error


async def read_code(store: ReviewStore, review: Review | ReviewVersion) -> str:
    """Return the whole Terraform code of a version, from the item or from the blob store."""
    return (await store.read_blob(review.code)).decode()


async def list_findings(store: ReviewStore, review: Review | ReviewVersion) -> list[ReviewFinding]:
    """Return the findings of a version, most severe first.

    A finding that is not an item yet is read from the version that introduced it. One that was removed from the table is left
    out; `verify_review` reports it.
    """
    keys = [ReviewFinding.Key(finding_id=finding, review_id=review.review_id) for finding in review.findings]
    findings = [finding for finding in await store.db.get_many(keys) if finding is not None] if keys else []
    if len(findings) < len(keys):
        missing = review.findings.keys() - {finding.finding_id for finding in findings}
        for version in (await list_versions(store, review.review_id)).items:
            remaining = await store.read_remaining_findings(version)
            findings += [finding for finding in remaining if finding.finding_id in missing]
    rank = list(FindingSeverity)
    return sorted(
        findings,
        key=lambda finding: (
            rank.index(finding.severity),
            finding.category,
            finding.title,
            finding.finding_id,
        ),
    )


# R3: stacks and runs.


async def list_stack_reviews(
    store: ReviewStore,
    stack_id: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 20,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[ReviewSummary]:
    """Return the reviews of a stack that were created in a time range."""
    query = Review.ByStack(stack_id=stack_id)
    selection = select_between(query, query.created_at, since, until)
    return await query_slice(store.db, selection, limit, cursor, newest_first=newest_first)


async def latest_stack_review(store: ReviewStore, stack_id: str) -> ReviewSummary | None:
    """Return the newest review of a stack, or None."""
    page = await store.db.query(Review.ByStack(stack_id=stack_id), newest_first=True, limit=1)
    return page.items[0] if page.items else None


async def latest_run_review(store: ReviewStore, run_id: str) -> Review | None:
    """Return the review that a run created or changed last, in its current version; None if there is none."""
    links = RunReview.OfRun(run_id=run_id)
    page = await store.db.query(links, newest_first=True, limit=1, consistent=True)
    if not page.items:
        return None
    return await store.versions.latest(Review.Key(review_id=page.items[0].review_id))


async def list_stacks(
    store: ReviewStore, *, limit: int = 100, cursor: str | None = None
) -> Slice[StackStats]:
    """Return all stacks by name, with their statistics."""
    return await query_slice(store.db, StackStats.ByName(), limit, cursor)


async def get_stack_stats(store: ReviewStore, stack_id: str) -> StackStats | None:
    """Return the statistics of a stack; None if it has none."""
    return await store.db.get(StackStats.Key(stack_id=stack_id))


# R4: risk.


async def get_day_risk(store: ReviewStore, day: date) -> DayRisk:
    """Return the risk of the reviews created on a day; all counts are zero for a day without reviews."""
    return await store.db.get(DayRisk.Key(day=day)) or DayRisk(day=day)


async def list_high_risk(
    store: ReviewStore,
    start: date,
    end: date,
    *,
    min_risk: Decimal = HIGH_FROM,
    limit: int = 100,
    cursor: str | None = None,
) -> Slice[ReviewSummary]:
    """Return the reviews of a range of days with at least `min_risk`: the latest day first, within a day the riskiest first.

    Reviews are indexed by day and risk, so each day is one query. Up to `DAYS_MAX` days are queried, sixteen at a time, until
    `limit` reviews and one more are found. A cursor is the day to continue with, a dot, and the cursor within that day. Reviews
    of unknown risk are not included.
    """
    _check_range(start, end, DAYS_MAX)
    last, day_cursor = (end, None) if cursor is None else _parse_day_cursor(cursor, start, end)

    async def query_day(day: date, count: int) -> AsyncPage[ReviewSummary]:
        return await store.db.query(
            Review.ByRisk(created_on=day).overall_risk_score.gte(min_risk),
            newest_first=True,
            limit=count,
            cursor=day_cursor if day == last else None,
        )

    reviews: list[ReviewSummary] = []
    days = [last - timedelta(days=back) for back in range((last - start).days + 1)]
    for first in range(0, len(days), _CONCURRENT_DAYS):
        batch = days[first : first + _CONCURRENT_DAYS]
        pages = await asyncio.gather(*(query_day(day, max(1, limit - len(reviews))) for day in batch))
        for day, page in zip(batch, pages, strict=True):
            left = limit - len(reviews)
            if not left and page.items:
                return Slice(tuple(reviews), day.isoformat())
            if not left:
                continue
            # Earlier days of the batch used up a part of the limit: query again to get the cursor at the right place.
            fitting = page if len(page.items) <= left else await query_day(day, left)
            reviews += fitting.items
            if fitting.cursor is not None:
                return Slice(tuple(reviews), f"{day.isoformat()}.{fitting.cursor}")
    return Slice(tuple(reviews), None)


async def list_day_risks(store: ReviewStore, start: date, end: date) -> list[DayRisk]:
    """Return the risk of each day with reviews in a range, earliest first, with a single query."""
    _check_range(start, end, TREND_DAYS_MAX)
    return [day async for day in await store.db.query(DayRisk.ByDay().day.between(start, end))]


# R5: issues.


async def list_occurrences(
    store: ReviewStore, issue_hash: str, *, limit: int = 50, cursor: str | None = None
) -> Slice[ReviewFinding]:
    """Return the findings of an issue in all stacks, newest first."""
    selection = ReviewFinding.Occurrences(issue_hash=issue_hash)
    return await query_slice(store.db, selection, limit, cursor, newest_first=True)


async def list_frequent_issues(
    store: ReviewStore, category: Category, *, limit: int = 20, cursor: str | None = None
) -> Slice[IssueTotal]:
    """Return the issues of a category over all stacks, most frequent first."""
    selection = IssueTotal.MostFrequent(category=category).occurrence_count.gte(1)
    return await query_slice(store.db, selection, limit, cursor, newest_first=True)


async def list_stack_issues(
    store: ReviewStore,
    stack_id: str,
    *,
    min_occurrences: int = 3,
    limit: int = 50,
    cursor: str | None = None,
) -> Slice[IssueFrequency]:
    """Return the issues of a stack with at least `min_occurrences`, most frequent first."""
    selection = IssueFrequency.ByStack(stack_id=stack_id).occurrence_count.gte(min_occurrences)
    return await query_slice(store.db, selection, limit, cursor, newest_first=True)


async def get_issue(store: ReviewStore, issue_hash: str) -> Issue | None:
    """Return the counts of an issue over all stacks and per stack; None if it never occurred."""
    total = await store.db.get(IssueTotal.Key(issue_hash=issue_hash))
    if total is None:
        return None
    page = await store.db.query(IssueFrequency.OfIssue(issue_hash=issue_hash))
    frequencies = [frequency async for frequency in page]
    return Issue(
        total,
        tuple(sorted(frequencies, key=lambda frequency: (-frequency.occurrence_count, frequency.stack_id))),
    )


# R6: by status.


async def list_by_status(
    store: ReviewStore,
    status: ReviewStatus,
    *,
    limit: int = 20,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[ReviewSummary]:
    """Return the reviews with a status, by the time they got it."""
    selection = Review.ByStatus(status=status)
    return await query_slice(store.db, selection, limit, cursor, newest_first=newest_first)


async def list_pending(
    store: ReviewStore,
    *,
    older_than: timedelta = timedelta(hours=1),
    limit: int = 50,
    cursor: str | None = None,
) -> Slice[ReviewSummary]:
    """Return the reviews that have been pending for longer than `older_than`, longest first."""
    selection = Review.ByStatus(status=ReviewStatus.PENDING).status_since.lt(store.now() - older_than)
    return await query_slice(store.db, selection, limit, cursor)


# R7: audit.


async def list_audit_entries(
    store: ReviewStore, review_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Slice[ReviewAudit]:
    """Return the audit trail of a review, newest first."""
    return await store.versions.history(Review.Key(review_id=review_id), limit=limit, cursor=cursor)


async def list_changes_by(
    store: ReviewStore,
    actor: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Slice[ReviewAudit]:
    """Return the changes that one person made to any review, newest first."""
    return await store.versions.by_actor(actor, since=since, until=until, limit=limit, cursor=cursor)


async def find_unlisted_findings(store: ReviewStore, issue_hash: str) -> list[ReviewFinding]:
    """Return the occurrences of an issue that no version of their review lists: items that this application did not write.

    Reads every occurrence, and every version of the reviews that they belong to.
    """
    cursor: str | None = None
    by_review: dict[str, list[ReviewFinding]] = {}
    while True:
        page = await list_occurrences(store, issue_hash, limit=100, cursor=cursor)
        for finding in page.items:
            by_review.setdefault(finding.review_id, []).append(finding)
        cursor = page.cursor
        if cursor is None:
            break
    unlisted: list[ReviewFinding] = []
    for review_id, findings in by_review.items():
        versions = (await list_versions(store, review_id)).items
        listed = {finding_id for version in versions for finding_id in version.findings}
        unlisted += [finding for finding in findings if finding.finding_id not in listed]
    return unlisted


# Shared steps.


async def _record_without_key(store: ReviewStore, result: ReviewResult, digest: str) -> RecordedReview:
    recorded = await _recorded_review(store, result, digest)
    if recorded is not None:
        await store.write_remaining_findings(recorded)
        return RecordedReview(recorded, replayed=True, created=False, version=recorded.version)
    draft = await _draft_first_version(store, result, digest)
    try:
        review = await _commit_version(store, None, draft, result.created_by, "")
    except VersionConflict:
        recorded = await _recorded_review(store, result, digest)
        if recorded is None:
            raise
        return RecordedReview(recorded, replayed=True, created=False, version=recorded.version)
    return RecordedReview(review, replayed=False, created=True, version=review.version)


async def _recorded_review(store: ReviewStore, result: ReviewResult, digest: str) -> Review | None:
    """Return the review of a run if the same result was recorded before; raise `RunRecorded` for another result."""
    run_id = result.spacelift_run_id
    review = await store.versions.latest(Review.Key(review_id=review_id_for_run(run_id)))
    if review is not None and review.recorded != digest:
        raise RunRecorded(run_id, review.review_id)
    return review


async def _draft_first_version(store: ReviewStore, result: ReviewResult, digest: str) -> VersionDraft:
    code = await store.store_code(result.terraform_code or "")
    review_id = review_id_for_run(result.spacelift_run_id)
    return await store.prepare_draft(*drafts.first_version(result, review_id, code, digest, store.now()))


async def _change_review(
    store: ReviewStore,
    review_id: str,
    draft_version: Callable[[Review, datetime], Awaitable[VersionDraft]],
    by: str,
    why: str,
    expected_version: int | None,
) -> Review:
    before = await get_review(store, review_id)
    closes_at = before.created_at + EDITABLE_FOR
    if store.now() >= closes_at:
        raise ReviewClosed(review_id, closes_at)
    if expected_version is not None and before.version != expected_version:
        raise VersionConflict(store.versions.records.describe(before), expected_version, before)
    return await _commit_version(store, before, await draft_version(before, store.now()), by, why)


async def _commit_version(
    store: ReviewStore, before: Review | None, draft: VersionDraft, by: str, why: str
) -> Review:
    transaction = store.db.transaction()
    staged = store.stage_version(transaction, before, draft, by=by, why=why)
    try:
        await transaction.commit()
    except TransactionCancelled as error:
        conflict = store.versions.conflict(error, staged)
        if conflict is None:
            raise
        raise conflict from error
    await store.write_remaining_findings(staged.record)
    return staged.record


def _parse_day_cursor(cursor: str, start: date, end: date) -> tuple[date, str | None]:
    """Return the day that a cursor of `list_high_risk` continues with, and the cursor within that day."""
    day_text, _, day_cursor = cursor.partition(".")
    try:
        day = date.fromisoformat(day_text)
    except ValueError:
        raise CursorRefused("it is not a cursor of this list") from None
    if not start <= day <= end:
        raise CursorRefused("it belongs to another range of days")
    return day, day_cursor or None


def _check_range(start: date, end: date, days_max: int) -> None:
    if not 0 <= (end - start).days < days_max:
        raise RangeRefused(start, end, days_max)
