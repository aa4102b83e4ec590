"""Lint reports and rules as JSON documents, and as SARIF for tools that show findings next to the code.

SARIF is the OASIS format 2.1.0. Suppressed findings are included with their reason. Files inside the repository have a
relative path with the base id that code hosts expect; others have an absolute URI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tavola.design.findings import SEVERITIES, Finding, Severity
from tavola.design.lint.locations import SourceFile, SourceLocation, find_locations, locate_place
from tavola.design.lint.rule import Rule
from tavola.design.lint.runner import LintReport
from tavola.model.document import Ignore

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"
LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "advice": "note"}


def report_document(report: LintReport, sources: Sequence[SourceFile] = ()) -> dict[str, Any]:
    """Return a report as JSON; findings have a file and line if sources are given."""
    known = find_locations(sources)

    def finding_document(finding: Finding) -> dict[str, Any]:
        at = locate_place(finding.place, known, sources)
        return {
            "rule": finding.rule,
            "severity": finding.severity,
            "place": finding.place.name,
            "kind": finding.place.kind,
            "table": finding.place.table,
            "file": None if at is None else at.file,
            "line": None if at is None else at.line,
            "message": finding.message,
            "remedy": finding.remedy,
        }

    return {
        "findings": [finding_document(finding) for finding in report.findings],
        "ignored": [
            {**finding_document(finding), "reason": ignore.reason} for finding, ignore in report.ignored
        ],
        "counts": severity_counts(report.findings),
    }


def rule_document(rule: Rule) -> dict[str, str]:
    """Return a rule's texts as JSON."""
    return {
        "name": rule.name,
        "severity": rule.severity,
        "title": rule.title,
        "why": rule.why,
        "example": rule.example,
        "instead": rule.remedy,
    }


def severity_counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Return the number of findings of each severity, the worst first."""
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}


def sarif_log(
    report: LintReport,
    rules: Sequence[Rule],
    sources: Sequence[SourceFile],
    version: str,
    root: Path | None = None,
) -> dict[str, Any]:
    """Return a report as a SARIF log of one run, with findings at the lines of their declarations.

    `root` is the folder of the repository, else the current one.
    """
    base = (root or Path()).resolve()
    order = {rule.name: position for position, rule in enumerate(rules)}
    known = find_locations(sources)
    results: list[tuple[Finding, Ignore | None]] = [(finding, None) for finding in report.findings]
    results += report.ignored
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "tavola", "version": version, "rules": [_rule(rule) for rule in rules]}
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": f"{base.as_uri()}/"}},
                "results": [
                    _result(
                        finding,
                        ignore,
                        order[finding.rule],
                        locate_place(finding.place, known, sources),
                        base,
                    )
                    for finding, ignore in results
                ],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    text = f"{rule.why}\n\nExample: {rule.example}\n\nInstead: {rule.remedy}"
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": text, "markdown": f"**{rule.title}**\n\n{text}"},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _artifact(file: str, base: Path) -> dict[str, str]:
    """Return a file's location relative to the repository, or absolute if it is outside."""
    path = Path(file).resolve()
    if path.is_relative_to(base):
        return {"uri": quote(path.relative_to(base).as_posix()), "uriBaseId": _ROOT}
    return {"uri": path.as_uri()}


def _result(
    finding: Finding, ignore: Ignore | None, at: int, location: SourceLocation | None, base: Path
) -> dict[str, Any]:
    place: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": finding.place.name, "kind": finding.place.kind}]
    }
    if location is not None:
        place["physicalLocation"] = {
            "artifactLocation": _artifact(location.file, base),
            "region": {"startLine": location.line},
        }
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": at,
        "level": LEVELS[finding.severity],
        "message": {"text": f"{finding.place.name}: {finding.message}. {finding.remedy}."},
        "locations": [place],
        "partialFingerprints": {"place/v1": f"{finding.rule}:{finding.place.table}:{finding.place.name}"},
    }
    if ignore is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": ignore.reason}]
    return result
