"""Drafts: build the next version of a review, and its new findings, from what a reviewer submitted. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from tavola.apps.terraform_review.domain import (
    TRANSITIONS,
    Category,
    FindingSeverity,
    ReviewStatus,
    compute_fix_result,
    expiry_time,
    issue_hash,
    round_score,
    utc_day,
)
from tavola.apps.terraform_review.errors import FindingUnknown, ReviewTransitionRefused
from tavola.apps.terraform_review.model import Review, ReviewFinding
from tavola.apps.terraform_review.results import (
    Assessment,
    ErrorDetails,
    FindingResult,
    FixRequest,
    ReviewResult,
)
from tavola.apps.terraform_review.review_fields import CategoryCounts, FindingRef, FixDetails
from tavola.patterns import Blob

_ID_CHARACTERS_KEPT = 160  # of a submitted id, before a suffix that makes it unique

COUNT_FIELDS = {
    Category.SECURITY: "security_findings",
    Category.COST: "cost_findings",
    Category.RELIABILITY: "reliability_findings",
}


def first_version(
    result: ReviewResult, review_id: str, code: Blob, recorded: str, now: datetime
) -> tuple[Review, list[ReviewFinding]]:
    """Return version 1 of a review, and its findings."""
    score = round_score(result.overall_risk_score)
    review = Review(
        review_id=review_id,
        run_id=result.spacelift_run_id,
        stack_id=result.stack_id,
        code=code,
        status_since=now,
        found_risk_score=score,
        context=result.spacelift_context,
        created_at=now,
        created_on=utc_day(now),
        created_by=result.created_by,
        recorded=recorded,
        **_assessment_fields(result),
    )
    refs, findings = _identify_findings(review, result.findings, 1, now)
    return review.model_copy(update=finding_fields(refs)), findings


def reassessed_version(
    before: Review, assessment: Assessment, code: Blob, now: datetime, run_id: str | None
) -> tuple[Review, list[ReviewFinding]]:
    """Return the next version of a review with a new assessment, and the findings that are new in it."""
    check_transition(before, assessment.status)
    number = before.version + 1
    values: dict[str, Any] = {
        **_assessment_fields(assessment),
        "code": code,
        "run_id": run_id or before.run_id,
        "fix_applied": False,
        "fix_details": None,
        "more_findings": None,
    }
    after = before.model_copy(update=_with_derived_values(before, values, now))
    refs, new_findings = _identify_findings(after, assessment.findings, number, now)
    return after.model_copy(update=finding_fields(refs)), new_findings


def reuse_existing_findings(
    review: Review, new_findings: Iterable[ReviewFinding], existing: Mapping[str, ReviewFinding]
) -> tuple[Review, list[ReviewFinding]]:
    """Replace new findings whose ids are taken by `existing` items; return the review and the findings still to write.

    If the existing item says the same, the finding was resolved before and has returned: the item is used again. Otherwise the
    new finding gets another id.
    """
    refs = dict(review.findings)
    unwritten: list[ReviewFinding] = []
    for finding in new_findings:
        stored = existing.get(finding.finding_id)
        if stored is None:
            unwritten.append(finding)
            continue
        ref = refs.pop(finding.finding_id)
        if (stored.issue_hash, stored.severity) == (ref.issue_hash, ref.severity):
            refs[finding.finding_id] = _finding_ref(stored)
        else:
            new_id = _unused_id(
                f"{finding.finding_id[:_ID_CHARACTERS_KEPT]}.{finding.version}", {*refs, *existing}
            )
            renamed = finding.model_copy(update={"finding_id": new_id})
            refs[new_id] = _finding_ref(renamed)
            unwritten.append(renamed)
    return review.model_copy(update=finding_fields(refs)), unwritten


def fixed_version(before: Review, fix: FixRequest, code: Blob, now: datetime) -> Review:
    """Return the next version of a review with a fix applied."""
    check_transition(before, ReviewStatus.COMPLETED)
    finding_ids = [applied_fix.finding_id for applied_fix in fix.fixes_applied]
    for finding_id in finding_ids:
        if finding_id not in before.findings:
            raise FindingUnknown(before.review_id, finding_id)
    score = round_score(fix.overall_risk_score)
    result = compute_fix_result(before.overall_risk_score, score, before.findings, finding_ids)
    details = FixDetails(
        fix_version=before.version + 1,
        previous_version=before.version,
        fixes_applied=[
            applied_fix.model_copy(
                update={"effectiveness_score": round_score(applied_fix.effectiveness_score)}
            )
            for applied_fix in fix.fixes_applied
        ],
        applied_at=now,
        risk_reduction=result.risk_reduction,
        findings_resolved=result.findings_resolved,
        findings_remaining=result.findings_remaining,
        resolved={finding_id: before.findings[finding_id] for finding_id in dict.fromkeys(finding_ids)},
    )
    unresolved = {
        finding_id: ref for finding_id, ref in before.findings.items() if finding_id not in details.resolved
    }
    values: dict[str, Any] = {
        "status": ReviewStatus.COMPLETED,
        "overall_risk_score": score,
        "reliability_score": before.reliability_score
        if fix.reliability_score is None
        else round_score(fix.reliability_score),
        **finding_fields(unresolved),
        "code": code,
        "run_id": fix.spacelift_run_id or before.run_id,
        "fix_applied": True,
        "fix_details": details,
        "error_details": None,
        "metadata": {**before.metadata, **fix.metadata},
        "more_findings": None,
    }
    return before.model_copy(update=_with_derived_values(before, values, now))


def version_with_status(
    before: Review, status: ReviewStatus, error: ErrorDetails | None, now: datetime
) -> Review:
    """Return the next version of a review with another status; a failed review has no known risk."""
    check_transition(before, status)
    score = None if status is ReviewStatus.FAILED else before.overall_risk_score
    values: dict[str, Any] = {
        "status": status,
        "overall_risk_score": score,
        "error_details": error if status is ReviewStatus.FAILED else None,
        "more_findings": None,
    }
    return before.model_copy(update=_with_derived_values(before, values, now))


def default_reason(before: Review | None, after: Review) -> str:
    """Return the reason that the audit trail records for a change without one."""
    if before is None:
        return "Recorded"
    if after.fix_details is not None and after.fix_details.fix_version == before.version + 1:
        return "Fix applied"
    return (
        "Reviewed again"
        if after.status is before.status
        else f"Status changed from {before.status} to {after.status}"
    )


def check_transition(before: Review, after: ReviewStatus) -> None:
    """Raise `ReviewTransitionRefused` if a review cannot change to this status."""
    if after not in TRANSITIONS[before.status]:
        raise ReviewTransitionRefused(before.review_id, before.status, after)


def finding_fields(refs: Mapping[str, FindingRef]) -> dict[str, Any]:
    """Return the fields of a review that depend on its findings."""
    counts: dict[Category, dict[str, int]] = {category: defaultdict(int) for category in COUNT_FIELDS}
    for ref in refs.values():
        counts[ref.category][ref.severity] += 1
    return {
        "findings": dict(refs),
        "findings_total": len(refs),
        "high_findings": sum(ref.severity is FindingSeverity.HIGH for ref in refs.values()),
        **{
            name: CategoryCounts(total=sum(counts[category].values()), **counts[category])
            for category, name in COUNT_FIELDS.items()
        },
    }


def _with_derived_values(before: Review, values: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Add the values of a next version that depend on the others."""
    if values["status"] is not before.status:
        values["status_since"] = now
    if before.found_risk_score is None:
        values["found_risk_score"] = values["overall_risk_score"]
    return values


def _assessment_fields(assessment: Assessment) -> dict[str, Any]:
    return {
        "status": assessment.status,
        "overall_risk_score": round_score(assessment.overall_risk_score),
        "reliability_score": round_score(assessment.reliability_score),
        "cost_analysis": assessment.cost_analysis,
        "ai_review_result": assessment.ai_review_result,
        "error_details": assessment.error_details,
        "metadata": assessment.metadata,
    }


def _identify_findings(
    review: Review, submitted: Sequence[FindingResult], version: int, now: datetime
) -> tuple[dict[str, FindingRef], list[ReviewFinding]]:
    """Return all findings of a version by id, and those that are new.

    If a submitted finding has the id of a current one, or the same issue and severity, it is the current finding. With another severity, or
    with the id of a different issue, it is a new finding: items are never rewritten, and what a version says of a finding must match its item.
    """
    before = review.findings
    submitted_ids = {result.finding_id for result in submitted if result.finding_id is not None}
    matching: dict[tuple[str, FindingSeverity], list[str]] = defaultdict(list)
    for current_id, ref in before.items():
        if current_id not in submitted_ids:
            matching[ref.issue_hash, ref.severity].append(current_id)
    refs: dict[str, FindingRef] = {}
    new_findings: list[ReviewFinding] = []
    for number, result in enumerate(submitted, 1):
        issue = issue_hash(result.title, result.category, result.file_path)
        finding_id = result.finding_id
        if finding_id is None:
            candidates = matching[issue, result.severity]
            generated_id = f"{review.review_id[:13]}.{version}.{number}"
            finding_id = (
                candidates.pop(0)
                if candidates
                else _unused_id(generated_id, {*submitted_ids, *before, *refs})
            )
        elif finding_id in before and (before[finding_id].issue_hash, before[finding_id].severity) != (
            issue,
            result.severity,
        ):
            finding_id = _unused_id(
                f"{finding_id[:_ID_CHARACTERS_KEPT]}.{version}", {*submitted_ids, *before, *refs}
            )
        if finding_id in before:
            refs[finding_id] = before[finding_id]
        else:
            finding = _finding(review, finding_id, issue, result, version, now)
            refs[finding_id] = _finding_ref(finding)
            new_findings.append(finding)
    return refs, new_findings


def _unused_id(preferred: str, taken: Set[str]) -> str:
    """Return `preferred`, or the first id after it that is not taken."""
    candidate, number = preferred, 1
    while candidate in taken:
        number += 1
        candidate = f"{preferred}.{number}"
    return candidate


def _finding_ref(finding: ReviewFinding) -> FindingRef:
    return FindingRef(
        issue_hash=finding.issue_hash,
        category=finding.category,
        severity=finding.severity,
        title=finding.title,
        digest=finding.digest(),
    )


def _finding(
    review: Review, finding_id: str, issue: str, result: FindingResult, version: int, now: datetime
) -> ReviewFinding:
    return ReviewFinding(
        finding_id=finding_id,
        review_id=review.review_id,
        stack_id=review.stack_id,
        run_id=review.run_id,
        version=version,
        category=result.category,
        severity=result.severity,
        title=result.title,
        description=result.description,
        line_number=result.line_number,
        file_path=result.file_path,
        recommendation=result.recommendation,
        issue_hash=issue,
        confidence_score=round_score(result.confidence_score),
        estimated_cost_impact=result.estimated_cost_impact,
        rule_id=result.rule_id,
        created_at=now,
        expires_at=expiry_time(review.created_at),
    )
