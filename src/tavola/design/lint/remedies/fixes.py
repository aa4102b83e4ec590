"""Fixes: the first proposal that removes a finding without adding an error.

Each proposal is checked before it is returned: first with the rule of the finding, then with all rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tavola.design.findings import Finding, Severity
from tavola.design.lint.remedies import fields, ignores, indexes, keys, needs, policies, settings, writes
from tavola.design.lint.remedies.proposal import Fixer, Proposal
from tavola.design.lint.rules import RULES
from tavola.design.lint.runner import LintReport, lint
from tavola.errors import TavolaError
from tavola.model.document import Design, read_document, write_document

FIXERS: dict[str, Fixer] = {
    name: fixer
    for module in (fields, ignores, indexes, keys, needs, policies, settings, writes)
    for name, fixer in module.FIXERS.items()
}


@dataclass(frozen=True, slots=True)
class LintFix:
    """A design without the finding, a sentence about the change, and the report of the new design."""

    design: Design
    summary: str
    report: LintReport


def propose_fix(
    design: Design, finding: Finding, *, production: bool = False, before: LintReport | None = None
) -> LintFix | None:
    """Return a fix for a finding; None if no change of the design alone removes it.

    Pass the current report as `before` if known. Prefers the first proposal that adds no warning, else the first that adds no
    error.
    """
    fixer = FIXERS.get(finding.rule)
    if fixer is None:
        return None
    known = before if before is not None else lint(design, production=production)
    second: LintFix | None = None
    for proposal in fixer(design, finding):
        report = _check_proposal(design, proposal, finding, production)
        if report is None or _has_new_findings(known, report, "error"):
            continue
        found = LintFix(proposal.design, proposal.summary, report)
        if not _has_new_findings(known, report, "warning"):
            return found
        second = second or found
    return second


def _check_proposal(
    design: Design, proposal: Proposal, finding: Finding, production: bool
) -> LintReport | None:
    """Return the report of a proposal; None if it is invalid or still has the finding."""
    if proposal.design == design:
        return None
    if not _survives_round_trip(proposal.design) and _survives_round_trip(design):
        return None
    if not RULES[finding.rule].last:
        again = lint(proposal.design, production=production, select=[finding.rule])
        if _has_finding(again, finding):
            return None
    report = lint(proposal.design, production=production)
    return None if _has_finding(report, finding) else report


def _survives_round_trip(design: Design) -> bool:
    """Return whether a design is the same after it is written as a document and read again."""
    try:
        return read_document(write_document(design)) == design
    except TavolaError:
        return False


def _has_finding(report: LintReport, finding: Finding) -> bool:
    return any(each.rule == finding.rule and each.place == finding.place for each in report.findings)


def _has_new_findings(before: LintReport, after: LintReport, severity: Severity) -> bool:
    """Return whether a rule has more findings at some place than before, of this severity."""
    had = Counter((each.rule, each.place) for each in before.findings)
    has = Counter((each.rule, each.place) for each in after.findings if each.severity == severity)
    return any(count > had[what] for what, count in has.items())
