"""A believable month of reviews: two thousand runs of forty stacks, the same from the same seed.

`await load(store, entropy=…, now=…, reviews=2000, rebuild=True, progress=None)`. What is loaded is what the versions pattern would have
written, row by row, at the times at which it would have been: seals hold. Statistics are made at the end, unless `rebuild` is False.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tavola import Entropy, Progress, to_item
from tavola.apps.terraform_review import drafts
from tavola.apps.terraform_review.catalogue import ISSUES, STACKS, Known, code_of, fix_of, lines_of
from tavola.apps.terraform_review.domain import Category, Severity, Status, expiry_of, review_id_of
from tavola.apps.terraform_review.model import (
    Finding,
    Review,
    ReviewAudit,
    Reviews,
    ReviewVersion,
    RunReview,
)
from tavola.apps.terraform_review.results import (
    AppliedFix,
    Assessment,
    CostAnalysis,
    ErrorDetails,
    FindingResult,
    FixRequest,
    ReviewResult,
    SpaceliftContext,
)
from tavola.apps.terraform_review.store import ReviewStore, link_of
from tavola.patterns import Blob, inline_blob

REVIEWS = 2000
DAYS = 30
LONG = 8  # reviews that are made again so often that versions pass ten
LARGE = 3  # reviews of code that is too large for an item

_TOGETHER = 25  # items of a request
_AT_ONCE = 4  # requests under way
_WEIGHT = {Severity.HIGH: Decimal("0.48"), Severity.MEDIUM: Decimal("0.14"), Severity.LOW: Decimal("0.05")}
_ERRORS = (
    ErrorDetails(error_type="AI_SERVICE_ERROR", error_message="The model answered too many requests", error_code="RATE_LIMIT", retry_after=60),
    ErrorDetails(error_type="PLAN_UNREADABLE", error_message="The plan is of a newer format"),
    ErrorDetails(error_type="TIMEOUT", error_message="No answer within five minutes", retry_after=300),
)  # fmt: skip

_STEPS = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2)  # how many changes a review sees once it is done

Row = Review | ReviewVersion | ReviewAudit | Finding | RunReview


class Draw:
    """Chance, as the month needs it."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._pool = memoryview(b"")

    def below(self, bound: int) -> int:
        """Return a number below a bound."""
        if len(self._pool) < 4:
            self._pool = memoryview(self._entropy.bytes(8192))
        drawn = int.from_bytes(self._pool[:4], "big")
        self._pool = self._pool[4:]
        return drawn * bound >> 32

    def chance(self, percent: int) -> bool:
        """Return true so often in a hundred times."""
        return self.below(100) < percent

    def some(self, given: Sequence[Known], count: int) -> tuple[Known, ...]:
        """Return so many of them, in their order."""
        left = list(range(len(given)))
        drawn = sorted(left.pop(self.below(len(left))) for _ in range(min(count, len(left))))
        return tuple(given[at] for at in drawn)


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack: what is in its code, and the issues that it has again and again."""

    name: str
    issues: tuple[Known, ...]  # that can be in its code
    habits: tuple[Known, ...]
    lines: dict[Known, int]
    monthly: Decimal
    resources: int
    codes: dict[frozenset[Known], Blob] = field(default_factory=dict)

    def code(self, standing: frozenset[Known]) -> Blob:
        """Return the code in which these issues are."""
        found = self.codes.get(standing)
        if found is None:
            found = self.codes[standing] = inline_blob(code_of(self.name, self.issues, standing).encode())
        return found

    def cost(self, draw: Draw) -> CostAnalysis:
        """Return what a plan of it would cost: a little more or less than the others."""
        monthly = (self.monthly * (94 + draw.below(13)) / 100).quantize(Decimal("0.01"))
        return CostAnalysis.model_construct(
            estimated_monthly_cost=monthly, estimated_annual_cost=monthly * 12, resource_count=self.resources
        )


@dataclass(frozen=True, slots=True)
class Commit:
    """Code that is reviewed: its issues, and itself."""

    standing: frozenset[Known]
    code: Blob


async def load(
    store: ReviewStore,
    *,
    entropy: Entropy,
    now: datetime,
    reviews: int = REVIEWS,
    rebuild: bool = True,
    progress: Callable[[Progress], object] | None = None,
) -> int:
    """Load a month of reviews into an empty table and return how many items they are."""
    draw = Draw(entropy)
    stacks = [_stack(draw, name) for name in STACKS]
    written = 0
    counts: list[Review | Finding | ReviewVersion] = []
    waiting: list[Row] = []
    for number in range(reviews):
        stack = stacks[min(draw.below(len(stacks)), draw.below(len(stacks)))]  # some are busier than others
        commit = _commit(draw, stack)
        if number < LARGE:
            text = code_of(stack.name, stack.issues, commit.standing) + _modules(store.code_inline_bytes)
            commit = replace(commit, code=await store.keep_code(text))
        waiting += _life(store, draw, stack, commit, number, reviews, now)
        if len(waiting) >= _TOGETHER * _AT_ONCE or number == reviews - 1:
            counts += [row for row in waiting if isinstance(row, Review | Finding | ReviewVersion)]
            written += len(waiting)
            await _write(store, waiting)
            waiting = []
            if progress is not None:
                progress(Progress(number, reviews))
    if rebuild:
        await store.projector.fill(counts)
    if progress is not None:
        progress(Progress(reviews, reviews))
    return written


def _stack(draw: Draw, name: str) -> Stack:
    issues = draw.some(ISSUES, 11 + draw.below(5))
    monthly = Decimal(20_000 + draw.below(900_000)) / 100
    return Stack(
        name,
        issues,
        draw.some(issues, 5 + draw.below(5)),
        lines_of(issues),
        monthly,
        len(issues) + draw.below(40),
    )


def _commit(draw: Draw, stack: Stack) -> Commit:
    """Return some code of a stack: it has some of its habits, and now and then something else."""
    known = draw.some(stack.habits, draw.below(4))
    if draw.chance(20):
        known += draw.some(stack.issues, 1 + draw.below(2))
    standing = frozenset(known)
    return Commit(standing, stack.code(standing))


def _modules(size: int) -> str:
    """Return code that is longer than so many bytes: modules, one like the other."""
    told = [
        f'module "worker_{number:05}" {{\n  source = "./modules/worker"\n  queue  = "jobs-{number:05}"\n}}\n'
        for number in range(size // 60)
    ]
    return "\n# ==> workers.tf <==\n" + "\n".join(told)


async def _write(store: ReviewStore, rows: Sequence[Row]) -> None:
    """Write rows in batches: nothing stands in an empty table, so what is immutable is written once all the same."""
    name = store.db.context.name_of(Reviews)
    left: list[dict[str, Any]] = [{"PutRequest": {"Item": to_item(row)}} for row in rows]
    while left:
        batches = [left[at : at + _TOGETHER] for at in range(0, len(left), _TOGETHER)]
        answers = await asyncio.gather(
            *(store.db.call("BatchWriteItem", {"RequestItems": {name: some}}) for some in batches)
        )
        left = [each for told in answers for each in told.get("UnprocessedItems", {}).get(name, ())]


def _life(
    store: ReviewStore, draw: Draw, stack: Stack, commit: Commit, number: int, reviews: int, now: datetime
) -> Iterator[Row]:
    """Give all rows of one review: its versions from the first to the current one, and what is new with each."""
    at = _moment(draw, number, reviews, now)
    by = f"eng-{1 + draw.below(24):02}"
    run = f"run-{number:05}"
    waiting = number >= reviews - 12 and number % 2 == 0  # the latest are still looked at
    begins = Status.PENDING if waiting or draw.chance(10) else Status.COMPLETED
    told = _assessment(draw, stack, commit, begins)
    result = ReviewResult(
        spacelift_run_id=run,
        stack_id=stack.name,
        created_by=by,
        spacelift_context=SpaceliftContext(
            status="FINISHED",
            changed_files=tuple(sorted({each.file_path for each in told.findings}))[:5],
            commit_sha=f"{number * 2654435761 % 2**40:010x}",
            branch="main" if stack.name.startswith("prod") else "develop",
        ),
        **dict(told),
    )
    review, found = drafts.first(result, review_id_of(run), commit.code, f"seed-{number}", at)
    steps = (
        0
        if waiting or number < LARGE
        else 11 + draw.below(4)
        if number % (max(reviews // LONG, 1)) == 5
        else _STEPS[draw.below(10)]
    )
    before: Review | None = None
    while True:
        expires = expiry_of(review.created_at)
        review = review.model_copy(update={"expires_at": expires})
        current, version, entry = store.versions.rows(
            before,
            review,
            by=by,
            why=drafts.said(before, review),
            at=at,
            stack_id=stack.name,
            expires_at=expires,
        )
        yield version
        yield entry
        yield from found
        yield link_of(version)
        later = at + timedelta(seconds=60 + draw.below(6 * 3600 if steps > 3 else 30 * 3600))
        if current.status is Status.PENDING:
            later = at + timedelta(seconds=20 + draw.below(240))
        failed = current.status is Status.FAILED and draw.chance(60)
        done = waiting or failed or (steps <= 0 and current.status is Status.COMPLETED)
        if done or later >= now:
            yield current
            return
        before, at, steps = current, later, steps - 1
        by = f"eng-{1 + draw.below(24):02}" if draw.chance(40) else "system-reviewer"
        review, found, commit = _next(draw, stack, commit, current, at)


def _next(
    draw: Draw, stack: Stack, commit: Commit, before: Review, at: datetime
) -> tuple[Review, list[Finding], Commit]:
    """Return what becomes of a review next: it is done, fails, is fixed or is done again, of newer code."""
    if before.status is Status.PENDING and draw.chance(30):
        return drafts.restated(before, Status.FAILED, _ERRORS[draw.below(3)], at), [], commit
    if before.status is Status.FAILED or (before.status is Status.COMPLETED and draw.chance(8)):
        return drafts.restated(before, Status.PENDING, None, at), [], commit
    if before.status is Status.COMPLETED and before.findings and draw.chance(75):
        return _fixed(draw, stack, commit, before, at)
    if before.status is Status.COMPLETED:
        commit = _commit(draw, stack)
    told = _assessment(draw, stack, commit, Status.COMPLETED)
    return *drafts.revised(before, told, commit.code, at, None), commit


def _fixed(
    draw: Draw, stack: Stack, commit: Commit, before: Review, at: datetime
) -> tuple[Review, list[Finding], Commit]:
    """Return a review with fixes: the lines of some of its findings are other ones now."""
    known = {(each.title, each.category): each for each in stack.issues}
    gone = [ident for ident in before.findings if draw.chance(55)] or [next(iter(before.findings))]
    issues = {ident: known[ref.title, ref.category] for ident, ref in before.findings.items()}
    standing = frozenset(issue for ident, issue in issues.items() if ident not in gone)
    commit = Commit(standing, stack.code(standing))
    fixes: list[AppliedFix] = []
    for number, ident in enumerate(gone, 1):
        wrong, right = fix_of(issues[ident])
        fix = AppliedFix(
            finding_id=ident,
            fix_id=f"fix-{number}",
            original_code=wrong,
            applied_code=right,
            effectiveness_score=Decimal(80 + draw.below(20)) / 100,
        )
        fixes.append(fix)
    told = FixRequest(
        fixes_applied=tuple(fixes),
        overall_risk_score=risk_of([issue.severity for issue in standing]),
        reliability_score=before.reliability_score,
    )
    return drafts.repaired(before, told, commit.code, at), [], commit


def _assessment(draw: Draw, stack: Stack, commit: Commit, status: Status) -> Assessment:
    if status is Status.PENDING:
        return Assessment(status=status)
    known = [each for each in stack.issues if each in commit.standing]
    return Assessment.model_construct(
        status=status,
        terraform_code=None,
        overall_risk_score=risk_of([each.severity for each in known]),
        reliability_score=1
        - risk_of([each.severity for each in known if each.category is Category.RELIABILITY]),
        findings=tuple(_finding(draw, each, stack.lines[each]) for each in known),
        cost_analysis=stack.cost(draw),
        ai_review_result={},
        error_details=None,
        metadata={"model_used": "reviewer-2"},
    )


def _finding(draw: Draw, known: Known, line: int) -> FindingResult:
    return FindingResult.model_construct(
        finding_id=None,
        category=known.category,
        severity=known.severity,
        title=known.title,
        description=f"{known.title}, by rule {known.rule_id}",
        line_number=line,
        file_path=known.file_path,
        recommendation=known.recommendation,
        confidence_score=Decimal(70 + draw.below(30)) / 100,
        estimated_cost_impact=Decimal(20 + draw.below(900)) if known.category is Category.COST else None,
        rule_id=known.rule_id,
    )


def risk_of(severities: Sequence[Severity]) -> Decimal:
    """Return the risk of findings: each takes its part of what is still safe."""
    safe = Decimal(1)
    for severity in severities:
        safe *= 1 - _WEIGHT[severity]
    return (1 - safe).quantize(Decimal("0.0001"))


def _moment(draw: Draw, number: int, reviews: int, now: datetime) -> datetime:
    """Return when a review is made: over the month, mostly in the day and on workdays, the last ones just now."""
    if number >= reviews - 12:
        return now - timedelta(minutes=15 * (reviews - number) - draw.below(10), seconds=draw.below(60))
    day = now - timedelta(days=DAYS - number * DAYS // reviews)
    if day.weekday() >= 5 and draw.chance(85):
        day -= timedelta(days=day.weekday() - draw.below(5))  # what would be of a weekend is of its week
    second = 7 * 3600 + draw.below(12 * 3600) if draw.chance(85) else draw.below(86400)
    moment = day.replace(hour=0, minute=0, second=0, microsecond=draw.below(10**6)) + timedelta(
        seconds=second
    )
    return min(moment, now - timedelta(hours=4, seconds=draw.below(3600)))
