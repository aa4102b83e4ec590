"""Checkov's report: parse its JSON, and turn failed checks into findings.

The JSON is validated first, so that a report of another shape is reported as such. Without a key for its paid platform, checkov reports no
severities, and its checks have no category for cost or reliability. Both are derived here from the check's name: the first of
`RULES` whose words match decides. A severity that checkov does report takes precedence.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tavola.apps.terraform_review.analysers import AnalyserFinding, Analysis, AnalysisFailure
from tavola.apps.terraform_review.domain import Category, FindingSeverity

ATTRIBUTES_MAX: Final = 5

# Internal to checkov, not attributes
_INNER_KEYS: Final = frozenset({"resource_type", "networking", "connected_node"})
_SURE: Final = Decimal("0.95")  # an attribute of the resource says so
_RELATED: Final = Decimal("0.85")  # a related resource is missing, which may be in another folder
_LIKELY: Final = Decimal("0.7")  # text that looks like a secret

_Text = Annotated[str, Field(max_length=100_000)]  # with a length limit pydantic also refuses lone surrogates
_Name = Annotated[_Text, Field(min_length=1)]
_Count = Annotated[int, Field(ge=0, le=10**9)]


class ReportRefused(Exception):
    """The output is not a report of checkov."""


class _ReportPart(BaseModel):
    model_config = ConfigDict(frozen=True)  # other members are ignored, and may change


class ReportSummary(_ReportPart):
    """The counts of a report, and checkov's version."""

    checkov_version: _Text | None = None
    resource_count: _Count = 0
    parsing_errors: _Count = 0
    skipped: _Count = 0  # suppressed by comments in the code


class CheckResult(_ReportPart):
    """The attributes that a check evaluated."""

    evaluated_keys: tuple[_Text, ...] | None = None


class FailedCheck(_ReportPart):
    """A failed check."""

    check_id: _Name
    check_name: _Name
    check_class: _Text | None = None
    check_result: CheckResult | None = None
    file_path: _Text | None = None
    file_line_range: tuple[int | None, ...] | None = None
    resource: _Text | None = None
    severity: _Text | None = None
    guideline: _Text | None = None


class ReportResults(_ReportPart):
    """The failed checks, and the files that could not be parsed."""

    failed_checks: tuple[FailedCheck, ...] = ()
    parsing_errors: tuple[_Text, ...] = ()


class FrameworkReport(_ReportPart):
    """The report of one of checkov's frameworks."""

    check_type: str
    results: ReportResults = ReportResults()
    summary: ReportSummary


_REPORTS: Final = TypeAdapter(Annotated[tuple[FrameworkReport, ...], Field(min_length=1)])
_SUMMARY: Final = TypeAdapter(ReportSummary)


def read_report(output: bytes) -> Analysis:
    """Return the findings of a report that checkov printed; raise `ReportRefused` if it is not one.

    If a file could not be parsed, the analysis fails: the findings of the other files would look like all of them.
    """
    reports = parse_reports(output)
    summaries = [report.summary for report in reports]
    versions = {summary.checkov_version for summary in summaries if summary.checkov_version}
    analyser = " ".join(["checkov", *sorted(versions)[:1]])
    unparsed_files = sum(summary.parsing_errors for summary in summaries)
    if unparsed_files:
        return Analysis(
            analyser,
            (),
            0,
            AnalysisFailure("unreadable-code", f"{unparsed_files} files are not valid Terraform"),
        )
    distinct = {
        _to_finding(check): None  # a dict, because a module that is used twice is reported twice
        for report in reports
        for check in report.results.failed_checks
    }
    findings = sorted(
        distinct,
        key=lambda finding: (finding.file_path, finding.line_number or 0, finding.title, finding.description),
    )
    return Analysis(
        analyser,
        tuple(findings),
        sum(summary.resource_count for summary in summaries),
        skipped_count=sum(summary.skipped for summary in summaries),
    )


def parse_reports(output: bytes) -> tuple[FrameworkReport, ...]:
    """Return the reports, one per framework that had files to check."""
    try:
        document = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise ReportRefused(f"checkov did not print JSON: {_short(output)}") from error
    reports: list[Any] = document if isinstance(document, list) else [document]
    try:
        match reports:
            case [{"resource_count": _, **more}] if "check_type" not in more:
                # The output if no framework had files to check.
                return (FrameworkReport(check_type="", summary=_SUMMARY.validate_python(reports[0])),)
            case _:
                return _REPORTS.validate_python(reports)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        location = ".".join(str(part) for part in problem["loc"])
        raise ReportRefused(
            f"checkov printed JSON that is not a report: {_short(output)} ({location}: {problem['msg']})"
        ) from error


def _to_finding(check: FailedCheck) -> AnalyserFinding:
    secret = check.check_id.startswith("CKV_SECRET")
    rule = rule_of(check.check_id, check.check_name)
    first = (check.file_line_range or (None,))[0]
    line = first if first is not None and first > 0 else None
    resource = "" if secret else check.resource or ""  # for a secret, this is its digest
    related = ".graph." in (check.check_class or "")
    name = check.check_name.rstrip(".") or check.check_id
    return AnalyserFinding(
        category=rule.category,
        severity=severity_of(check.severity, rule),
        title=f"Secret in code: {check.check_name}" if secret else name,
        description=f"{resource or f'Line {line}'} fails {check.check_id}{f': {rule.meaning}' if rule.meaning else ''}.",
        rule_id=check.check_id,
        file_path=(check.file_path or "").lstrip("/"),
        line_number=line,
        recommendation=_recommendation(check, resource, secret=secret),
        confidence=_LIKELY if secret else _RELATED if related else _SURE,
    )


def _evaluated_attributes(check: FailedCheck) -> list[str]:
    """Return the evaluated attributes in a stable order; checkov's order varies between runs."""
    keys = (check.check_result and check.check_result.evaluated_keys) or ()
    names = {key.replace("/", ".").replace(".[0]", "").replace(".*", "") for key in keys}
    return sorted(names - _INNER_KEYS)[:ATTRIBUTES_MAX]


def _recommendation(check: FailedCheck, resource: str, *, secret: bool) -> str:
    attributes = _evaluated_attributes(check)
    if secret:
        advice = "Remove it from the code, revoke it, and read a new one from a secret store."
    elif attributes:
        advice = f"Check {', '.join(attributes)} of {resource}."
    else:
        advice = f"See {check.check_id} in the checkov policy index."
    return f"{advice} {check.guideline}" if check.guideline else advice


def _short(output: bytes) -> str:
    return repr(output[:80].decode(errors="replace"))


# The category and severity of checks.


@dataclass(frozen=True, slots=True)
class CheckRule:
    """Checks with certain words in their names, and what it means if one fails."""

    words: re.Pattern[str]
    category: Category
    severity: FindingSeverity
    meaning: str


def _rule(words: str, category: Category, severity: FindingSeverity, meaning: str) -> CheckRule:
    return CheckRule(re.compile(words, re.IGNORECASE), category, severity, meaning)


DEFAULT_RULE: Final = CheckRule(re.compile(""), Category.SECURITY, FindingSeverity.MEDIUM, "")

# Exposure first; rules whose words also appear in names that a later rule is for ("backups are encrypted") come early.
RULES: Final = (
    _rule(
        r"hard.?coded|expose secrets?|credentials? exposure|basic credentials|password is not exposed",
        Category.SECURITY,
        FindingSeverity.HIGH,
        "a secret can be read",
    ),
    _rule(
        r"0\.0\.0\.0|::/0|publicly|public (read|write|access|ip|endpoint)|\bnot (be )?public\b|anonymous|"
        r"any principal|internet access|everyone|all ?users|unrestricted|global view",
        Category.SECURITY,
        FindingSeverity.HIGH,
        "publicly accessible",
    ),
    _rule(
        r"administrative|full .*privilege|privilege escalation|exfiltration|permissions management|"
        r"\bwildcard|\"\*\" as|root (account|user)",
        Category.SECURITY,
        FindingSeverity.HIGH,
        "excessive permissions",
    ),
    _rule(
        r"customer.(managed|supplied)|\bCMKs?\b|customer master key|\bKMS\b|key rotation",
        Category.SECURITY,
        FindingSeverity.LOW,
        "not encrypted with a customer-managed key",
    ),
    _rule(
        r"encrypt|\bSSL\b|\bTLS\b|HTTPS|in transit|secure protocols?",
        Category.SECURITY,
        FindingSeverity.MEDIUM,
        "data is not encrypted in transit or at rest",
    ),
    _rule(
        r"multi-?az|availability zones?|back(up|ed up)|point.in.time|recovery|snapshot|deletion protection|"
        r"replication|versioning|dead letter|failover|health ?check|redundan|auto.?(repair|upgrade)|"
        r"minor (version )?upgrades?|minor versions|create before destroy|soft.?delete|purge protection|"
        r"concurrent execution limit|scale sets",
        Category.RELIABILITY,
        FindingSeverity.MEDIUM,
        "risk of data loss or longer outages",
    ),
    _rule(
        r"lifecycle|specifies retention days|caching is enabled|attached to another",
        Category.COST,
        FindingSeverity.LOW,
        "unnecessary cost",
    ),
    _rule(
        r"monitoring|performance insights|x-ray|tracing|event notifications|ebs optimi[sz]ed",
        Category.RELIABILITY,
        FindingSeverity.LOW,
        "problems may go unnoticed",
    ),
    _rule(r"\blog(s|ging|ged)?\b|audit", Category.SECURITY, FindingSeverity.LOW, "no audit trail"),
    _rule(
        r"commit hash|version number|immutable|tag should be fixed",
        Category.RELIABILITY,
        FindingSeverity.LOW,
        "version is not pinned",
    ),
    _rule(
        r"description|naming|\btags?\b",
        Category.RELIABILITY,
        FindingSeverity.LOW,
        "hard to maintain",
    ),
)

_CHECKOV_SEVERITIES: Final[dict[str, FindingSeverity]] = {
    "CRITICAL": FindingSeverity.HIGH,
    "HIGH": FindingSeverity.HIGH,
    "MEDIUM": FindingSeverity.MEDIUM,
    "MODERATE": FindingSeverity.MEDIUM,
    "LOW": FindingSeverity.LOW,
    "INFO": FindingSeverity.LOW,
    "NONE": FindingSeverity.LOW,
}


def rule_of(check_id: str, name: str) -> CheckRule:
    """Return the rule for a check; secrets are recognised by the check's id."""
    if check_id.startswith("CKV_SECRET"):
        return RULES[0]
    return next((rule for rule in RULES if rule.words.search(name)), DEFAULT_RULE)


def severity_of(reported: str | None, rule: CheckRule) -> FindingSeverity:
    """Return the severity that checkov reported, or else the rule's."""
    return _CHECKOV_SEVERITIES.get((reported or "").upper(), rule.severity)
