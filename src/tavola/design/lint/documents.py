"""Lint reports and rules as JSON documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tavola.design.findings import SEVERITIES, Finding
from tavola.design.lint.locations import SourceFile, find_locations, locate_place
from tavola.design.lint.rule import Rule
from tavola.design.lint.runner import LintReport


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


def severity_counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings of each severity, the worst first."""
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}
