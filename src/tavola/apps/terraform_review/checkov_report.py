"""Checkov's report: its JSON in, an analysis out.

What is read is checked first, so that a report in another shape is told as that and not as an error of ours.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tavola.apps.terraform_review.analysers import Analysis, Breakdown, Found
from tavola.apps.terraform_review.checkov_rules import rule_of, severity_of

KEYS_TOLD_MAX: Final = 5

_INNER_KEYS: Final = frozenset(
    {"resource_type", "networking", "connected_node"}
)  # checkov's own, no attributes
_SURE: Final = Decimal("0.95")  # an attribute says so
_RELATED: Final = Decimal("0.85")  # a resource that it looked for is not there; it may be in another folder
_LIKELY: Final = Decimal("0.7")  # text that looks like a secret

_Said = Annotated[
    str, Field(max_length=100_000)
]  # a bound lets pydantic look inside: halves of signs are refused
_Name = Annotated[_Said, Field(min_length=1)]
_Count = Annotated[int, Field(ge=0, le=10**9)]


class ReportRefused(Exception):
    """Output that is no report of checkov's; the sentence says why."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)  # what it says besides is not asked for, and may change


class Summary(_Part):
    """The counts of a report, and the version of who made it."""

    checkov_version: _Said | None = None
    resource_count: _Count = 0
    parsing_errors: _Count = 0
    skipped: _Count = 0  # by comments in the code


class Outcome(_Part):
    """What a check looked at."""

    evaluated_keys: tuple[_Said, ...] | None = None


class Check(_Part):
    """One check that failed."""

    check_id: _Name
    check_name: _Name
    check_class: _Said | None = None
    check_result: Outcome | None = None
    file_path: _Said | None = None
    file_line_range: tuple[int | None, ...] | None = None
    resource: _Said | None = None
    severity: _Said | None = None
    guideline: _Said | None = None


class Results(_Part):
    """The checks that failed, and the files that are no Terraform."""

    failed_checks: tuple[Check, ...] = ()
    parsing_errors: tuple[_Said, ...] = ()


class Report(_Part):
    """What one framework of checkov's found."""

    check_type: str
    results: Results = Results()
    summary: Summary


_REPORTS: Final = TypeAdapter(Annotated[tuple[Report, ...], Field(min_length=1)])
_SUMMARY: Final = TypeAdapter(Summary)


def read_report(told: bytes) -> Analysis:
    """Return the findings of a report as checkov prints it; `ReportRefused` where it is none.

    Where a file could not be parsed there are none: what is in the others would look like all there is.
    """
    reports = reports_in(told)
    summaries = [report.summary for report in reports]
    versions = {summary.checkov_version for summary in summaries if summary.checkov_version}
    analyser = " ".join(["checkov", *sorted(versions)[:1]])
    unread = sum(summary.parsing_errors for summary in summaries)
    if unread:
        return Analysis(
            analyser, (), 0, Breakdown("unreadable-code", f"{unread} files are not valid Terraform")
        )
    found = {
        _found(check): None  # a dict: a module that is used twice is found twice, and told once
        for report in reports
        for check in report.results.failed_checks
    }
    findings = sorted(
        found, key=lambda each: (each.file_path, each.line_number or 0, each.title, each.description)
    )
    return Analysis(
        analyser,
        tuple(findings),
        sum(summary.resource_count for summary in summaries),
        skipped_count=sum(summary.skipped for summary in summaries),
    )


def reports_in(told: bytes) -> tuple[Report, ...]:
    """Return the reports, one for each framework that had something to look at."""
    try:
        found = json.loads(told)
    except (ValueError, RecursionError) as error:
        raise ReportRefused(f"checkov printed no JSON: {_short(told)}") from error
    reports: list[Any] = found if isinstance(found, list) else [found]
    try:
        match reports:
            case [{"resource_count": _, **more}] if "check_type" not in more:
                # What it prints where no framework had anything to look at.
                return (Report(check_type="", summary=_SUMMARY.validate_python(reports[0])),)
            case _:
                return _REPORTS.validate_python(reports)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ReportRefused(
            f"checkov printed JSON that is no report: {_short(told)} ({place}: {first['msg']})"
        ) from error


def _found(check: Check) -> Found:
    secret = check.check_id.startswith("CKV_SECRET")
    rule = rule_of(check.check_id, check.check_name)
    first = (check.file_line_range or (None,))[0]
    line = first if first is not None and first > 0 else None
    resource = "" if secret else check.resource or ""  # of a secret it is the secret's digest
    related = ".graph." in (check.check_class or "")
    name = check.check_name.rstrip(".") or check.check_id
    return Found(
        category=rule.category,
        severity=severity_of(check.severity, rule),
        title=f"Secret in the code: {check.check_name}" if secret else name,
        description=f"{resource or f'Line {line}'} fails {check.check_id}{f': {rule.meaning}' if rule.meaning else ''}.",
        rule_id=check.check_id,
        file_path=(check.file_path or "").lstrip("/"),
        line_number=line,
        recommendation=_recommendation(check, resource, secret=secret),
        confidence=_LIKELY if secret else _RELATED if related else _SURE,
    )


def _keys(check: Check) -> list[str]:
    """Return the attributes that were looked at, in an order that is the same in each run: checkov's is not."""
    told = (check.check_result and check.check_result.evaluated_keys) or ()
    plain = {key.replace("/", ".").replace(".[0]", "").replace(".*", "") for key in told}
    return sorted(plain - _INNER_KEYS)[:KEYS_TOLD_MAX]


def _recommendation(check: Check, resource: str, *, secret: bool) -> str:
    keys = _keys(check)
    if secret:
        advice = "Take it out of the code, make it invalid, and read a new one from a secret store."
    elif keys:
        advice = f"Look at {', '.join(keys)} of {resource}."
    else:
        advice = f"See {check.check_id} in checkov's list of policies."
    return f"{advice} {check.guideline}" if check.guideline else advice


def _short(told: bytes) -> str:
    return repr(told[:80].decode(errors="replace"))
