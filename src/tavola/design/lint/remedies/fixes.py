"""Mending: the first way to do what a remedy says that ends the finding and brings no other error.

A proposal is judged before anybody sees it: the rule is asked again, then all of them. So what is shown as a remedy is one.
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
    """A design without a finding that it had: what was changed, in a sentence, and what the rules say of it now."""

    design: Design
    summary: str
    report: LintReport


def propose_fix(
    design: Design, finding: Finding, *, production: bool = False, before: LintReport | None = None
) -> LintFix | None:
    """Return a design as a finding's remedy would have it; None where no change of the design alone does it.

    `before` is what the rules found, where the caller knows. Of several ways the first is taken that ends the finding and brings
    no new warning, else the first that brings no new error.
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
    """Return what the rules say of a proposal; None where it is no design, or the finding still stands."""
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
    """Tell whether a design is the same after it was written down and read."""
    try:
        return read_document(write_document(design)) == design
    except TavolaError:
        return False


def _has_finding(report: LintReport, finding: Finding) -> bool:
    return any(each.rule == finding.rule and each.place == finding.place for each in report.findings)


def _has_new_findings(before: LintReport, after: LintReport, severity: Severity) -> bool:
    """Tell whether there are findings of a severity at a place that had fewer of that rule."""
    had = Counter((each.rule, each.place) for each in before.findings)
    has = Counter((each.rule, each.place) for each in after.findings if each.severity == severity)
    return any(count > had[what] for what, count in has.items())
