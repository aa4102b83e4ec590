"""Use cases of the review history: one function each, on a `ReviewStore`.

What changes a review makes its next version, in one transaction with the audit row and the findings that are new. Who gives
`version` is told by a `VersionConflict` where another came first; so is who gives none and is overtaken while writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from tavola import (
    AsyncPage,
    AsyncTransaction,
    CursorRefused,
    Entity,
    ItemMissing,
    Selection,
    TransactionCancelled,
)
from tavola.apps.terraform_review import drafts
from tavola.apps.terraform_review.domain import HIGH_FROM, OPEN, Category, Severity, Status, review_id_of
from tavola.apps.terraform_review.errors import (
    RangeRefused,
    ReviewClosed,
    ReviewMissing,
    RunRecorded,
    VersionMissing,
)
from tavola.apps.terraform_review.model import (
    DayRisk,
    Finding,
    IssueFrequency,
    IssueTotal,
    Review,
    ReviewAudit,
    ReviewSummary,
    ReviewVersion,
    RunReview,
    StackStats,
)
from tavola.apps.terraform_review.results import Assessment, ErrorDetails, FixRequest, ReviewResult
from tavola.apps.terraform_review.store import Draft, Receipt, ReviewStore
from tavola.apps.terraform_review.verification import verified
from tavola.patterns import Difference, Slice, Staged, Verification, VersionConflict, digest_of

E = TypeVar("E", bound=Entity)

DAYS_MAX = 366  # of one question for high-risk reviews, which asks each day
TREND_DAYS_MAX = 3_660  # of one trend, which is one query
_DAYS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Recorded:
    """A review of a run as it is now, and what the request that recorded it came to."""

    review: Review
    replayed: bool  # it was there before this request
    made: bool  # by this request, or by the first one with its key
    version: int  # that it had then


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue over all stacks, and stack by stack."""

    total: IssueTotal
    stacks: tuple[IssueFrequency, ...]


# R1: reviews in versions.


async def record(store: ReviewStore, result: ReviewResult, *, request: str | None = None) -> Recorded:
    """Store the review of a run as version 1, with its findings; the same run and result again is what is there.

    A run has one review, whose id is made of the run's. So a result may come any number of times; the same run with another result is
    a `RunRecorded`. With `request`, an idempotency key, its reuse for something else is an `IdempotencyMismatch`.
    """
    digest = digest_of(result)
    if request is None:
        return await _recorded(store, result, digest)

    told: list[Staged[Review]] = []

    async def fill(tx: AsyncTransaction) -> Receipt:
        standing = await _standing(store, result, digest)
        if standing is not None:
            return Receipt(review_id=standing.review_id, version=standing.version, there=True)
        staged = store.stage(tx, None, await _first(store, result, digest), by=result.created_by, why="")
        told.append(staged)
        return Receipt(review_id=staged.record.review_id, version=staged.record.version)

    for attempt in (1, 2):
        try:
            answer = await store.requests.together(request, result, fill)
            break
        except TransactionCancelled as error:
            # The run was recorded meanwhile, under another key or none: then it is there the second time.
            if attempt == 2 or await _standing(store, result, digest) is None:
                conflict = store.versions.conflict(error, told[-1]) if told else None
                raise error if conflict is None else conflict from error
    receipt = answer.value
    review = await latest(store, receipt.review_id)
    await store.complete(review)
    return Recorded(review, answer.replayed or receipt.there, not receipt.there, receipt.version)


async def new_version(
    store: ReviewStore,
    review_id: str,
    assessment: Assessment,
    *,
    by: str,
    why: str = "",
    version: int | None = None,
    run_id: str | None = None,
) -> Review:
    """Store what a reviewer says now as the next version: a review that was pending is done, or is done again.

    Findings are those that stand now. One that has the id, or is the same issue, of one that stood before is that one, unless it is
    judged otherwise now: as more or less severe it is a new finding.
    """

    async def drafted(before: Review, now: datetime) -> Draft:
        kept = before.code
        if assessment.terraform_code is not None:
            kept = await store.keep_code(assessment.terraform_code, before.code)
        after, fresh = drafts.revised(before, assessment, kept, now, run_id)
        while there := await store.found(fresh):  # some were resolved, and are back under their own ids
            after, fresh = drafts.returned(after, fresh, there)
        return await store.drafted(after, fresh)

    return await _changed(store, review_id, drafted, by, why, version)


async def apply_fix(
    store: ReviewStore, review_id: str, fix: FixRequest, *, by: str, why: str = "", version: int | None = None
) -> Review:
    """Store a fix as the next version: its findings are resolved, and `fix_details` says what that came to."""

    async def drafted(before: Review, now: datetime) -> Draft:
        kept = before.code
        if fix.terraform_code is not None:
            kept = await store.keep_code(fix.terraform_code, before.code)
        return Draft(drafts.repaired(before, fix, kept, now))

    return await _changed(store, review_id, drafted, by, why, version)


async def change_status(
    store: ReviewStore,
    review_id: str,
    status: Status,
    *,
    by: str,
    why: str = "",
    error: ErrorDetails | None = None,
    version: int | None = None,
) -> Review:
    """Store another status as the next version: pending again, or failed. A failed review's risk is unknown."""

    async def drafted(before: Review, now: datetime) -> Draft:
        return Draft(drafts.restated(before, status, error, now))

    return await _changed(store, review_id, drafted, by, why, version)


async def latest(store: ReviewStore, review_id: str) -> Review:
    """Return the current version of a review; `ReviewMissing` where there is none."""
    found = await store.versions.latest(Review.Key(review_id=review_id))
    if found is None:
        raise ReviewMissing(review_id)
    return found


async def version(store: ReviewStore, review_id: str, number: int) -> ReviewVersion:
    """Return one version of a review; `VersionMissing` where there is none."""
    found = await store.versions.version(Review.Key(review_id=review_id), number)
    if found is None:
        raise VersionMissing(review_id, number)
    return found


async def versions(
    store: ReviewStore, review_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Slice[ReviewVersion]:
    """Return the versions of a review, newest first: so many and a cursor for more, or all of them."""
    return await store.versions.versions(Review.Key(review_id=review_id), limit=limit, cursor=cursor)


async def compare(store: ReviewStore, review_id: str, one: int, other: int) -> tuple[Difference, ...]:
    """Return what differs between two versions, place by place; version 0 is nothing."""
    try:
        return await store.versions.diff(Review.Key(review_id=review_id), one, other)
    except ItemMissing as error:
        for number in (one, other):
            if number:
                await version(store, review_id, number)  # which tells the one that is missing
        raise VersionMissing(review_id, one) from error


async def code(store: ReviewStore, review: Review | ReviewVersion) -> str:
    """Return the Terraform code of a version whole, from the item or from the blob store."""
    return await store.read_code(review.code)


async def findings(store: ReviewStore, review: Review | ReviewVersion) -> list[Finding]:
    """Return the findings that stand in a version, as they were found, the gravest first.

    One whose item is yet to be made is read from the version that it came with; one that is gone is left out, and `verify` tells it.
    """
    keys = [Finding.Key(finding_id=each, review_id=review.review_id) for each in review.findings]
    found = [each for each in await store.db.get_many(keys) if each is not None] if keys else []
    if len(found) < len(keys):
        missing = review.findings.keys() - {each.finding_id for each in found}
        for each in (await versions(store, review.review_id)).items:
            found += [other for other in await store.kept_with(each) if other.finding_id in missing]
    rank = list(Severity)
    return sorted(
        found, key=lambda each: (rank.index(each.severity), each.category, each.title, each.finding_id)
    )


# R3: stacks and runs.


async def stack_history(
    store: ReviewStore,
    stack_id: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 20,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[ReviewSummary]:
    """Return the reviews of a stack by when they were made, from one moment to another."""
    asked: Selection[ReviewSummary] = Review.OfStack(stack_id=stack_id)
    if since is not None and until is not None:
        asked = Review.OfStack(stack_id=stack_id).created_at.between(since, until)
    elif since is not None:
        asked = Review.OfStack(stack_id=stack_id).created_at.gte(since)
    elif until is not None:
        asked = Review.OfStack(stack_id=stack_id).created_at.lte(until)
    return await _page(store, asked, limit, cursor, newest_first=newest_first)


async def latest_of_stack(store: ReviewStore, stack_id: str) -> ReviewSummary | None:
    """Return the review of a stack that was made last, None if it has none."""
    found = await store.db.query(Review.OfStack(stack_id=stack_id), newest_first=True, limit=1)
    return found.items[0] if found.items else None


async def latest_of_run(store: ReviewStore, run_id: str) -> Review | None:
    """Return the review of a run as it is now: of those that name the run in a version, the one of the latest such; None if there is none."""
    found = await store.db.query(RunReview.OfRun(run_id=run_id), newest_first=True, limit=1, consistent=True)
    if not found.items:
        return None
    return await store.versions.latest(Review.Key(review_id=found.items[0].review_id))


async def stacks(store: ReviewStore, *, limit: int = 100, cursor: str | None = None) -> Slice[StackStats]:
    """Return all stacks by name, with their statistics."""
    return await _page(store, StackStats.All(), limit, cursor)


async def stack_stats(store: ReviewStore, stack_id: str) -> StackStats | None:
    """Return the statistics of a stack, None if nothing was counted of it."""
    return await store.db.get(StackStats.Key(stack_id=stack_id))


# R4: risk.


async def risk_distribution(store: ReviewStore, day: date) -> DayRisk:
    """Return how risky the reviews of a day are; a day without reviews is one of zeros."""
    return await store.db.get(DayRisk.Key(day=day)) or DayRisk(day=day)


async def high_risk(
    store: ReviewStore,
    start: date,
    end: date,
    *,
    min_risk: Decimal = HIGH_FROM,
    limit: int = 100,
    cursor: str | None = None,
) -> Slice[ReviewSummary]:
    """Return the reviews of a range of days from some risk on: the latest day first, and of a day the riskiest first.

    Each day is a query, sixteen of them at a time and up to `DAYS_MAX`; it ends where there are enough and one more is known. A review whose
    risk is unknown is in none.
    """
    _check_range(start, end, DAYS_MAX)
    last, within = (end, None) if cursor is None else _day_of(cursor, start, end)

    async def asked(day: date, count: int) -> AsyncPage[ReviewSummary]:
        of_day = Review.ByRisk(created_on=day).overall_risk_score.gte(min_risk)
        return await store.db.query(
            of_day, newest_first=True, limit=count, cursor=within if day == last else None
        )

    found: list[ReviewSummary] = []
    days = [last - timedelta(days=back) for back in range((last - start).days + 1)]
    for at in range(0, len(days), _DAYS_AT_ONCE):
        some = days[at : at + _DAYS_AT_ONCE]
        pages = await asyncio.gather(*(asked(day, max(1, limit - len(found))) for day in some))
        for day, page in zip(some, pages, strict=True):
            left = limit - len(found)
            if not left and page.items:
                return Slice(tuple(found), day.isoformat())
            if not left:
                continue
            kept = page if len(page.items) <= left else await asked(day, left)  # for the cursor there
            found += kept.items
            if kept.cursor is not None:
                return Slice(tuple(found), f"{day.isoformat()}.{kept.cursor}")
    return Slice(tuple(found), None)


async def risk_trend(store: ReviewStore, start: date, end: date) -> list[DayRisk]:
    """Return the risk of each day of a range that has reviews, the earliest first: one query, whatever the range."""
    _check_range(start, end, TREND_DAYS_MAX)
    return [day async for day in await store.db.query(DayRisk.Range().day.between(start, end))]


# R5: issues.


async def occurrences(
    store: ReviewStore, issue_hash: str, *, limit: int = 50, cursor: str | None = None
) -> Slice[Finding]:
    """Return where an issue was found, in all stacks, newest first."""
    return await _page(store, Finding.Occurrences(issue_hash=issue_hash), limit, cursor, newest_first=True)


async def most_frequent(
    store: ReviewStore, category: Category, *, limit: int = 20, cursor: str | None = None
) -> Slice[IssueTotal]:
    """Return the issues of a category that were found most often, over all stacks."""
    asked = IssueTotal.MostFrequent(category=category).occurrence_count.gte(1)
    return await _page(store, asked, limit, cursor, newest_first=True)


async def stack_issues(
    store: ReviewStore,
    stack_id: str,
    *,
    min_occurrences: int = 3,
    limit: int = 50,
    cursor: str | None = None,
) -> Slice[IssueFrequency]:
    """Return the issues of a stack that were found at least so often, the most frequent first."""
    asked = IssueFrequency.OfStack(stack_id=stack_id).occurrence_count.gte(min_occurrences)
    return await _page(store, asked, limit, cursor, newest_first=True)


async def issue(store: ReviewStore, issue_hash: str) -> Issue | None:
    """Return an issue, over all stacks and stack by stack; None where nobody found it."""
    total = await store.db.get(IssueTotal.Key(issue_hash=issue_hash))
    if total is None:
        return None
    page = await store.db.query(IssueFrequency.OfIssue(issue_hash=issue_hash))
    found = [each async for each in page]
    return Issue(total, tuple(sorted(found, key=lambda each: (-each.occurrence_count, each.stack_id))))


# R6: by status.


async def by_status(
    store: ReviewStore,
    status: Status,
    *,
    limit: int = 20,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[ReviewSummary]:
    """Return the reviews that have a status now, by when they got it."""
    return await _page(store, Review.ByStatus(status=status), limit, cursor, newest_first=newest_first)


async def pending(
    store: ReviewStore,
    *,
    older_than: timedelta = timedelta(hours=1),
    limit: int = 50,
    cursor: str | None = None,
) -> Slice[ReviewSummary]:
    """Return the reviews that have been pending for so long, the longest first."""
    asked = Review.ByStatus(status=Status.PENDING).status_since.lt(store.now() - older_than)
    return await _page(store, asked, limit, cursor)


# R7: audit.


async def audit_trail(
    store: ReviewStore, review_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Slice[ReviewAudit]:
    """Return who changed a review, when, why and what, newest first."""
    return await store.versions.history(Review.Key(review_id=review_id), limit=limit, cursor=cursor)


async def changes_by(
    store: ReviewStore,
    actor: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Slice[ReviewAudit]:
    """Return what somebody changed, in whatever reviews, newest first."""
    return await store.versions.by_actor(actor, since=since, until=until, limit=limit, cursor=cursor)


async def verify(store: ReviewStore, review_id: str) -> Verification:
    """Read all of a review and tell what is not as it was written; `verification` says what that covers, and what it cannot."""
    return await verified(store, review_id)


async def strays(store: ReviewStore, issue_hash: str) -> list[Finding]:
    """Return occurrences of an issue that no version of their review names: nobody recorded them. All of them are read, and the versions."""
    cursor: str | None = None
    found: dict[str, list[Finding]] = {}
    while True:
        page = await occurrences(store, issue_hash, limit=100, cursor=cursor)
        for each in page.items:
            found.setdefault(each.review_id, []).append(each)
        cursor = page.cursor
        if cursor is None:
            break
    told: list[Finding] = []
    for review_id, some in found.items():
        named = {ident for each in (await versions(store, review_id)).items for ident in each.findings}
        told += [each for each in some if each.finding_id not in named]
    return told


# How.


async def _recorded(store: ReviewStore, result: ReviewResult, digest: str) -> Recorded:
    standing = await _standing(store, result, digest)
    if standing is not None:
        await store.complete(standing)
        return Recorded(standing, replayed=True, made=False, version=standing.version)
    draft = await _first(store, result, digest)
    try:
        review = await _committed(store, None, draft, result.created_by, "")
    except VersionConflict:
        standing = await _standing(store, result, digest)
        if standing is None:
            raise
        return Recorded(standing, replayed=True, made=False, version=standing.version)
    return Recorded(review, replayed=False, made=True, version=review.version)


async def _standing(store: ReviewStore, result: ReviewResult, digest: str) -> Review | None:
    """Return the review of a run if it was recorded before; `RunRecorded` if that was with another result."""
    run_id = result.spacelift_run_id
    standing = await store.versions.latest(Review.Key(review_id=review_id_of(run_id)))
    if standing is not None and standing.recorded != digest:
        raise RunRecorded(run_id, standing.review_id)
    return standing


async def _first(store: ReviewStore, result: ReviewResult, digest: str) -> Draft:
    kept = await store.keep_code(result.terraform_code or "")
    review_id = review_id_of(result.spacelift_run_id)
    return await store.drafted(*drafts.first(result, review_id, kept, digest, store.now()))


async def _changed(
    store: ReviewStore,
    review_id: str,
    drafted: Callable[[Review, datetime], Awaitable[Draft]],
    by: str,
    why: str,
    expected: int | None,
) -> Review:
    """Read a review, make its next version of it and store that, unless another was made meanwhile."""
    before = await latest(store, review_id)
    if store.now() >= before.created_at + OPEN:
        raise ReviewClosed(review_id, before.created_at + OPEN)
    if expected is not None and before.version != expected:
        raise VersionConflict(store.versions.records.describe(before), expected, before)
    return await _committed(store, before, await drafted(before, store.now()), by, why)


async def _committed(store: ReviewStore, before: Review | None, draft: Draft, by: str, why: str) -> Review:
    told: list[Staged[Review]] = []
    try:
        async with store.db.transaction() as tx:
            told.append(store.stage(tx, before, draft, by=by, why=why))
    except TransactionCancelled as error:
        conflict = store.versions.conflict(error, told[0])
        if conflict is None:
            raise
        raise conflict from error
    await store.complete(told[0].record)
    return told[0].record


async def _page(
    store: ReviewStore, asked: Selection[E], limit: int, cursor: str | None, *, newest_first: bool = False
) -> Slice[E]:
    page = await store.db.query(asked, limit=limit, cursor=cursor, newest_first=newest_first)
    return Slice(tuple(page.items), page.cursor)


def _day_of(cursor: str, start: date, end: date) -> tuple[date, str | None]:
    """Return where a list goes on that is asked day by day: the day, and the place in it."""
    told, _, within = cursor.partition(".")
    try:
        day = date.fromisoformat(told)
    except ValueError:
        raise CursorRefused("it is none that was given here") from None
    if not start <= day <= end:
        raise CursorRefused("it was given for other days")
    return day, within or None


def _check_range(start: date, end: date, days_max: int) -> None:
    if not 0 <= (end - start).days < days_max:
        raise RangeRefused(start, end, days_max)
