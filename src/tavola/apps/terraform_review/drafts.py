"""Drafts: what a reviewer said, as the review that shall be stored and the findings that are new with it. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from tavola.apps.terraform_review.contents import FindingCounts, FindingRef, FixDetails
from tavola.apps.terraform_review.domain import (
    NEXT,
    Category,
    Severity,
    Status,
    day_of,
    expiry_of,
    fixed,
    issue_hash,
    score_of,
)
from tavola.apps.terraform_review.errors import FindingUnknown, TransitionRefused
from tavola.apps.terraform_review.model import Finding, Review
from tavola.apps.terraform_review.results import (
    Assessment,
    ErrorDetails,
    FindingResult,
    FixRequest,
    ReviewResult,
)
from tavola.patterns import Blob

_ID_LEFT = 160  # characters of a given id that are kept where it gets an end of ours

COUNTS = {
    Category.SECURITY: "security_findings",
    Category.COST: "cost_findings",
    Category.RELIABILITY: "reliability_findings",
}


def first(
    result: ReviewResult, review_id: str, code: Blob, recorded: str, now: datetime
) -> tuple[Review, list[Finding]]:
    """Return version 1 of a review, and its findings."""
    score = score_of(result.overall_risk_score)
    review = Review(
        review_id=review_id,
        run_id=result.spacelift_run_id,
        stack_id=result.stack_id,
        code=code,
        status_since=now,
        found_risk_score=score,
        context=result.spacelift_context,
        created_at=now,
        created_on=day_of(now),
        created_by=result.created_by,
        recorded=recorded,
        **_assessed(result),
    )
    refs, fresh = _identified(review, result.findings, 1, now)
    return review.model_copy(update=counts_of(refs)), fresh


def revised(
    before: Review, assessment: Assessment, code: Blob, now: datetime, run_id: str | None
) -> tuple[Review, list[Finding]]:
    """Return a review's next version by what is said of it now, and the findings that it did not have before."""
    check_transition(before, assessment.status)
    number = before.version + 1
    values: dict[str, Any] = {
        **_assessed(assessment),
        "code": code,
        "run_id": run_id or before.run_id,
        "fix_applied": False,
        "fix_details": None,
        "more_findings": None,
    }
    after = before.model_copy(update=_stated(before, values, now))
    refs, fresh = _identified(after, assessment.findings, number, now)
    return after.model_copy(update=counts_of(refs)), fresh


def returned(
    review: Review, fresh: Iterable[Finding], there: Mapping[str, Finding]
) -> tuple[Review, list[Finding]]:
    """Return a review whose new findings are not all new, and those that are: `there` are items under ids of theirs.

    One that says the same was resolved before, and is back as it was kept. One that says something else gets an id of its own.
    """
    refs = dict(review.findings)
    left: list[Finding] = []
    for each in fresh:
        kept = there.get(each.finding_id)
        if kept is None:
            left.append(each)
            continue
        ref = refs.pop(each.finding_id)
        if (kept.issue_hash, kept.severity) == (ref.issue_hash, ref.severity):
            refs[each.finding_id] = _ref(kept)
        else:
            ident = _free(f"{each.finding_id[:_ID_LEFT]}.{each.version}", {*refs, *there})
            other = each.model_copy(update={"finding_id": ident})
            refs[ident] = _ref(other)
            left.append(other)
    return review.model_copy(update=counts_of(refs)), left


def repaired(before: Review, fix: FixRequest, code: Blob, now: datetime) -> Review:
    """Return a review's next version with a fix applied, and what that came to."""
    check_transition(before, Status.COMPLETED)
    wanted = [each.finding_id for each in fix.fixes_applied]
    for finding_id in wanted:
        if finding_id not in before.findings:
            raise FindingUnknown(before.review_id, finding_id)
    score = score_of(fix.overall_risk_score)
    told = fixed(before.overall_risk_score, score, before.findings, wanted)
    details = FixDetails(
        fix_version=before.version + 1,
        previous_version=before.version,
        fixes_applied=[
            each.model_copy(update={"effectiveness_score": score_of(each.effectiveness_score)})
            for each in fix.fixes_applied
        ],
        applied_at=now,
        risk_reduction=told.risk_reduction,
        findings_resolved=told.findings_resolved,
        findings_remaining=told.findings_remaining,
        resolved={ident: before.findings[ident] for ident in dict.fromkeys(wanted)},
    )
    left = {ident: ref for ident, ref in before.findings.items() if ident not in details.resolved}
    values: dict[str, Any] = {
        "status": Status.COMPLETED,
        "overall_risk_score": score,
        "reliability_score": before.reliability_score
        if fix.reliability_score is None
        else score_of(fix.reliability_score),
        **counts_of(left),
        "code": code,
        "run_id": fix.spacelift_run_id or before.run_id,
        "fix_applied": True,
        "fix_details": details,
        "error_details": None,
        "metadata": {**before.metadata, **fix.metadata},
        "more_findings": None,
    }
    return before.model_copy(update=_stated(before, values, now))


def restated(before: Review, status: Status, error: ErrorDetails | None, now: datetime) -> Review:
    """Return a review's next version with another status; what failed has no risk that anybody knows."""
    check_transition(before, status)
    score = None if status is Status.FAILED else before.overall_risk_score
    values: dict[str, Any] = {
        "status": status,
        "overall_risk_score": score,
        "error_details": error if status is Status.FAILED else None,
        "more_findings": None,
    }
    return before.model_copy(update=_stated(before, values, now))


def said(before: Review | None, after: Review) -> str:
    """Return what the audit trail says of a change for which nobody gave a reason."""
    if before is None:
        return "recorded"
    if after.fix_details is not None and after.fix_details.fix_version == before.version + 1:
        return "fix applied"
    return "reviewed again" if after.status is before.status else f"{before.status} to {after.status}"


def check_transition(before: Review, after: Status) -> None:
    """Refuse a step that a review cannot take."""
    if after not in NEXT[before.status]:
        raise TransitionRefused(before.review_id, before.status, after)


def counts_of(refs: Mapping[str, FindingRef]) -> dict[str, Any]:
    """Return the fields of a review that its findings come to."""
    by: dict[Category, dict[str, int]] = {category: defaultdict(int) for category in COUNTS}
    for ref in refs.values():
        by[ref.category][ref.severity] += 1
    return {
        "findings": dict(refs),
        "findings_total": len(refs),
        "high_findings": sum(ref.severity is Severity.HIGH for ref in refs.values()),
        **{
            field: FindingCounts(total=sum(by[category].values()), **by[category])
            for category, field in COUNTS.items()
        },
    }


def _stated(before: Review, values: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the values of a next version with what follows from them."""
    if values["status"] is not before.status:
        values["status_since"] = now
    if before.found_risk_score is None:
        values["found_risk_score"] = values["overall_risk_score"]
    return values


def _assessed(told: Assessment) -> dict[str, Any]:
    return {
        "status": told.status,
        "overall_risk_score": score_of(told.overall_risk_score),
        "reliability_score": score_of(told.reliability_score),
        "cost_analysis": told.cost_analysis,
        "ai_review_result": told.ai_review_result,
        "error_details": told.error_details,
        "metadata": told.metadata,
    }


def _identified(
    review: Review, told: Sequence[FindingResult], version: int, now: datetime
) -> tuple[dict[str, FindingRef], list[Finding]]:
    """Return the findings of a version by their ids, and those that the review did not have before.

    What has the id, or is the same issue, of one that stands is that one, as it was kept. Judged otherwise, as more or less severe or under the
    id of another issue, it is a new one: an item is never written again, and a version says nothing else than its findings.
    """
    before = review.findings
    given = {each.finding_id for each in told if each.finding_id is not None}
    standing: dict[tuple[str, Severity], list[str]] = defaultdict(list)
    for stood, ref in before.items():
        if stood not in given:
            standing[ref.issue_hash, ref.severity].append(stood)
    refs: dict[str, FindingRef] = {}
    fresh: list[Finding] = []
    for at, each in enumerate(told, 1):
        hashed = issue_hash(each.title, each.category, each.file_path)
        ident = each.finding_id
        if ident is None:
            same = standing[hashed, each.severity]
            made = f"{review.review_id[:13]}.{version}.{at}"
            ident = same.pop(0) if same else _free(made, {*given, *before, *refs})
        elif ident in before and (before[ident].issue_hash, before[ident].severity) != (
            hashed,
            each.severity,
        ):
            ident = _free(f"{ident[:_ID_LEFT]}.{version}", {*given, *before, *refs})
        if ident in before:
            refs[ident] = before[ident]
        else:
            finding = _finding(review, ident, hashed, each, version, now)
            refs[ident] = _ref(finding)
            fresh.append(finding)
    return refs, fresh


def _free(wanted: str, taken: Set[str]) -> str:
    """Return an id that is not taken: the wanted one, or the first after it."""
    ident, number = wanted, 1
    while ident in taken:
        number += 1
        ident = f"{wanted}.{number}"
    return ident


def _ref(finding: Finding) -> FindingRef:
    return FindingRef(
        issue_hash=finding.issue_hash,
        category=finding.category,
        severity=finding.severity,
        title=finding.title,
        seal=finding.digest(),
    )


def _finding(
    review: Review, ident: str, hashed: str, told: FindingResult, version: int, now: datetime
) -> Finding:
    return Finding(
        finding_id=ident,
        review_id=review.review_id,
        stack_id=review.stack_id,
        run_id=review.run_id,
        version=version,
        category=told.category,
        severity=told.severity,
        title=told.title,
        description=told.description,
        line_number=told.line_number,
        file_path=told.file_path,
        recommendation=told.recommendation,
        issue_hash=hashed,
        confidence_score=score_of(told.confidence_score),
        estimated_cost_impact=told.estimated_cost_impact,
        rule_id=told.rule_id,
        created_at=now,
        expires_at=expiry_of(review.created_at),
    )
