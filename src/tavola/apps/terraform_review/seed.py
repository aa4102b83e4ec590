"""Demo data: a month of reviews, two thousand runs of forty stacks, the same for the same entropy.

`await load(store, entropy=…, now=…, reviews=2000, rebuild=True, progress=None)` writes the items that the versions pattern would have
written at those times, so that the audit trail verifies. Statistics are written at the end, unless `rebuild` is False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from tavola import Entropy, Progress
from tavola.apps.seeding import RandomChoices, write_entities
from tavola.apps.terraform_review import drafts
from tavola.apps.terraform_review.domain import (
    Category,
    FindingSeverity,
    ReviewStatus,
    expiry_time,
    review_id_for_run,
)
from tavola.apps.terraform_review.model import (
    Review,
    ReviewAudit,
    ReviewFinding,
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
from tavola.apps.terraform_review.seed_issues import (
    ISSUES,
    STACKS,
    KnownIssue,
    issue_fix,
    issue_lines,
    render_code,
)
from tavola.apps.terraform_review.store import ReviewStore, run_link
from tavola.patterns import Blob, inline_blob

REVIEWS = 2000
DAYS = 30
LONG_HISTORIES = 8  # reviews with more than ten versions
LARGE_CODES = 3  # reviews with code that is too large for an item

_ROWS_AT_ONCE = 100  # four concurrent batches
_RISK_WEIGHTS = {
    FindingSeverity.HIGH: Decimal("0.48"),
    FindingSeverity.MEDIUM: Decimal("0.14"),
    FindingSeverity.LOW: Decimal("0.05"),
}
_ERRORS = (
    ErrorDetails(error_type="AI_SERVICE_ERROR", error_message="The model API is rate limited", error_code="RATE_LIMIT", retry_after=60),
    ErrorDetails(error_type="PLAN_UNREADABLE", error_message="The plan has an unsupported format version"),
    ErrorDetails(error_type="TIMEOUT", error_message="No response within five minutes", retry_after=300),
)  # fmt: skip

_CHANGES = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2)  # of a completed review, equally likely

Row = Review | ReviewVersion | ReviewAudit | ReviewFinding | RunReview


@dataclass(frozen=True, slots=True)
class SeedStack:
    """A stack: the issues that can be in its code, and those that it repeats."""

    name: str
    issues: tuple[KnownIssue, ...]
    repeated: tuple[KnownIssue, ...]
    lines: dict[KnownIssue, int]
    monthly: Decimal
    resources: int
    codes: dict[frozenset[KnownIssue], Blob] = field(default_factory=dict)

    def code(self, present: frozenset[KnownIssue]) -> Blob:
        """Return the code with these issues."""
        blob = self.codes.get(present)
        if blob is None:
            blob = self.codes[present] = inline_blob(render_code(self.name, self.issues, present).encode())
        return blob

    def cost(self, random: RandomChoices) -> CostAnalysis:
        """Return the cost of a plan, with a little variation."""
        monthly = (self.monthly * (94 + random.below(13)) / 100).quantize(Decimal("0.01"))
        return CostAnalysis.model_construct(
            estimated_monthly_cost=monthly, estimated_annual_cost=monthly * 12, resource_count=self.resources
        )


@dataclass(frozen=True, slots=True)
class SeedCommit:
    """Code to review, and the issues in it."""

    issues: frozenset[KnownIssue]
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
    """Load a month of reviews into an empty table; return the number of items."""
    random = RandomChoices(entropy)
    stacks = [_stack(random, name) for name in STACKS]
    written = 0
    counted: list[Review | ReviewFinding | ReviewVersion] = []
    unwritten: list[Row] = []
    for number in range(reviews):
        # The first stacks are busier
        stack = stacks[min(random.below(len(stacks)), random.below(len(stacks)))]
        commit = _commit(random, stack)
        if number < LARGE_CODES:
            text = render_code(stack.name, stack.issues, commit.issues) + _large_code(store.code_inline_bytes)
            commit = replace(commit, code=await store.store_code(text))
        unwritten += _review_rows(store, random, stack, commit, number, reviews, now)
        if len(unwritten) >= _ROWS_AT_ONCE or number == reviews - 1:
            counted += [row for row in unwritten if isinstance(row, Review | ReviewFinding | ReviewVersion)]
            written += len(unwritten)
            await write_entities(store.db, Reviews, unwritten)
            unwritten = []
            if progress is not None:
                progress(Progress(number, reviews))
    if rebuild:
        await store.projector.fill(counted)
    if progress is not None:
        progress(Progress(reviews, reviews))
    return written


def _stack(random: RandomChoices, name: str) -> SeedStack:
    issues = random.sample(ISSUES, 11 + random.below(5))
    monthly = Decimal(20_000 + random.below(900_000)) / 100
    return SeedStack(
        name,
        issues,
        random.sample(issues, 5 + random.below(5)),
        issue_lines(issues),
        monthly,
        len(issues) + random.below(40),
    )


def _commit(random: RandomChoices, stack: SeedStack) -> SeedCommit:
    """Return code of a stack with some of its repeated issues, and now and then another."""
    issues = random.sample(stack.repeated, random.below(4))
    if random.chance(20):
        issues += random.sample(stack.issues, 1 + random.below(2))
    present = frozenset(issues)
    return SeedCommit(present, stack.code(present))


def _large_code(size: int) -> str:
    """Return code that is longer than `size` bytes: many similar modules."""
    modules = [
        f'module "worker_{number:05}" {{\n  source = "./modules/worker"\n  queue  = "jobs-{number:05}"\n}}\n'
        for number in range(size // 60)
    ]
    return "\n# ==> workers.tf <==\n" + "\n".join(modules)


def _review_rows(
    store: ReviewStore,
    random: RandomChoices,
    stack: SeedStack,
    commit: SeedCommit,
    number: int,
    reviews: int,
    now: datetime,
) -> Iterator[Row]:
    """Generate all items of one review: its versions from the first to the current one, and what each adds."""
    at = _creation_time(random, number, reviews, now)
    by = f"eng-{1 + random.below(24):02}"
    run = f"run-{number:05}"
    waiting = number >= reviews - 12 and number % 2 == 0  # some of the latest are still pending
    status = ReviewStatus.PENDING if waiting or random.chance(10) else ReviewStatus.COMPLETED
    assessment = _assessment(random, stack, commit, status)
    result = ReviewResult(
        spacelift_run_id=run,
        stack_id=stack.name,
        created_by=by,
        spacelift_context=SpaceliftContext(
            status="FINISHED",
            changed_files=tuple(sorted({finding.file_path for finding in assessment.findings}))[:5],
            commit_sha=f"{number * 2654435761 % 2**40:010x}",
            branch="main" if stack.name.startswith("prod") else "develop",
        ),
        **dict(assessment),
    )
    review, findings = drafts.first_version(result, review_id_for_run(run), commit.code, f"seed-{number}", at)
    changes = (
        0
        if waiting or number < LARGE_CODES
        else 11 + random.below(4)
        if number % (max(reviews // LONG_HISTORIES, 1)) == 5
        else random.choose(_CHANGES)
    )
    before: Review | None = None
    while True:
        expires = expiry_time(review.created_at)
        review = review.model_copy(update={"expires_at": expires})
        current, version, entry = store.versions.rows(
            before,
            review,
            by=by,
            why=drafts.default_reason(before, review),
            at=at,
            stack_id=stack.name,
            expires_at=expires,
        )
        yield version
        yield entry
        yield from findings
        yield run_link(version)
        later = at + timedelta(seconds=60 + random.below(6 * 3600 if changes > 3 else 30 * 3600))
        if current.status is ReviewStatus.PENDING:
            later = at + timedelta(seconds=20 + random.below(240))
        failed = current.status is ReviewStatus.FAILED and random.chance(60)
        done = waiting or failed or (changes <= 0 and current.status is ReviewStatus.COMPLETED)
        if done or later >= now:
            yield current
            return
        before, at, changes = current, later, changes - 1
        by = f"eng-{1 + random.below(24):02}" if random.chance(40) else "system-reviewer"
        review, findings, commit = _next_version(random, stack, commit, current, at)


def _next_version(
    random: RandomChoices, stack: SeedStack, commit: SeedCommit, before: Review, at: datetime
) -> tuple[Review, list[ReviewFinding], SeedCommit]:
    """Return the next version of a review: completed, failed, fixed, or reviewed again with newer code."""
    if before.status is ReviewStatus.PENDING and random.chance(30):
        return (
            drafts.version_with_status(before, ReviewStatus.FAILED, _ERRORS[random.below(3)], at),
            [],
            commit,
        )
    if before.status is ReviewStatus.FAILED or (before.status is ReviewStatus.COMPLETED and random.chance(8)):
        return drafts.version_with_status(before, ReviewStatus.PENDING, None, at), [], commit
    if before.status is ReviewStatus.COMPLETED and before.findings and random.chance(75):
        return _next_with_fixes(random, stack, commit, before, at)
    if before.status is ReviewStatus.COMPLETED:
        commit = _commit(random, stack)
    assessment = _assessment(random, stack, commit, ReviewStatus.COMPLETED)
    return *drafts.reassessed_version(before, assessment, commit.code, at, None), commit


def _next_with_fixes(
    random: RandomChoices, stack: SeedStack, commit: SeedCommit, before: Review, at: datetime
) -> tuple[Review, list[ReviewFinding], SeedCommit]:
    """Return the next version with fixes of some findings."""
    known = {(issue.title, issue.category): issue for issue in stack.issues}
    fixed_ids = [finding_id for finding_id in before.findings if random.chance(55)] or [
        next(iter(before.findings))
    ]
    issues = {finding_id: known[ref.title, ref.category] for finding_id, ref in before.findings.items()}
    unfixed = frozenset(issue for finding_id, issue in issues.items() if finding_id not in fixed_ids)
    commit = SeedCommit(unfixed, stack.code(unfixed))
    fixes: list[AppliedFix] = []
    for number, finding_id in enumerate(fixed_ids, 1):
        wrong, right = issue_fix(issues[finding_id])
        fix = AppliedFix(
            finding_id=finding_id,
            fix_id=f"fix-{number}",
            original_code=wrong,
            applied_code=right,
            effectiveness_score=Decimal(80 + random.below(20)) / 100,
        )
        fixes.append(fix)
    request = FixRequest(
        fixes_applied=tuple(fixes),
        overall_risk_score=risk_of([issue.severity for issue in unfixed]),
        reliability_score=before.reliability_score,
    )
    return drafts.fixed_version(before, request, commit.code, at), [], commit


def _assessment(
    random: RandomChoices, stack: SeedStack, commit: SeedCommit, status: ReviewStatus
) -> Assessment:
    if status is ReviewStatus.PENDING:
        return Assessment(status=status)
    issues = [issue for issue in stack.issues if issue in commit.issues]
    return Assessment.model_construct(
        status=status,
        terraform_code=None,
        overall_risk_score=risk_of([issue.severity for issue in issues]),
        reliability_score=1
        - risk_of([issue.severity for issue in issues if issue.category is Category.RELIABILITY]),
        findings=tuple(_finding(random, issue, stack.lines[issue]) for issue in issues),
        cost_analysis=stack.cost(random),
        ai_review_result={},
        error_details=None,
        metadata={"model_used": "reviewer-2"},
    )


def _finding(random: RandomChoices, known: KnownIssue, line: int) -> FindingResult:
    return FindingResult.model_construct(
        finding_id=None,
        category=known.category,
        severity=known.severity,
        title=known.title,
        description=f"{known.title}, by rule {known.rule_id}",
        line_number=line,
        file_path=known.file_path,
        recommendation=known.recommendation,
        confidence_score=Decimal(70 + random.below(30)) / 100,
        estimated_cost_impact=Decimal(20 + random.below(900)) if known.category is Category.COST else None,
        rule_id=known.rule_id,
    )


def risk_of(severities: Sequence[FindingSeverity]) -> Decimal:
    """Return the risk of findings: each reduces what is still safe by its weight."""
    safe = Decimal(1)
    for severity in severities:
        safe *= 1 - _RISK_WEIGHTS[severity]
    return (1 - safe).quantize(Decimal("0.0001"))


def _creation_time(random: RandomChoices, number: int, reviews: int, now: datetime) -> datetime:
    """Return when a review is created: spread over the month, mostly on workdays in the daytime, the last ones just now."""
    if number >= reviews - 12:
        return now - timedelta(minutes=15 * (reviews - number) - random.below(10), seconds=random.below(60))
    day = now - timedelta(days=DAYS - number * DAYS // reviews)
    if day.weekday() >= 5 and random.chance(85):
        day -= timedelta(days=day.weekday() - random.below(5))  # moved from the weekend to a workday
    second = 7 * 3600 + random.below(12 * 3600) if random.chance(85) else random.below(86400)
    moment = day.replace(hour=0, minute=0, second=0, microsecond=random.below(10**6)) + timedelta(
        seconds=second
    )
    return min(moment, now - timedelta(hours=4, seconds=random.below(3600)))
