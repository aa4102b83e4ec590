"""Fixes: the first proposal that removes a finding without adding an error.

Each proposal is checked before it is returned: first with the rule of the finding, then with all rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tavola.design.findings import Finding, Severity
from tavola.design.lint.old_names import current_rule_name
from tavola.design.lint.remedies import access, declarations, keys, policies
from tavola.design.lint.remedies.proposal import Fixer, Proposal
from tavola.design.lint.rules import RULES
from tavola.design.lint.runner import LintReport, lint
from tavola.errors import TavolaError
from tavola.model.document import Design, Ignore, read_document, write_document


def _ignores_at(design: Design, finding: Finding) -> tuple[Ignore, ...]:
    return tuple(ignore for ignore in design.ignores if ignore.place in (finding.place.name, "*"))


def _remove_ignore(design: Design, finding: Finding) -> Iterator[Proposal]:
    for ignore in _ignores_at(design, finding):
        rest = tuple(other_ignore for other_ignore in design.ignores if other_ignore is not ignore)
        yield Proposal(
            replace(design, ignores=rest),
            f"Removes the ignore of {ignore.rule} at {ignore.place}; in Python it is the comment # tavola: ignore[{ignore.rule}]",
        )


def _correct_rule_name(design: Design, finding: Finding) -> Iterator[Proposal]:
    for ignore in _ignores_at(design, finding):
        near = get_close_matches(ignore.rule, RULES, 1, 0.6)
        if current_rule_name(ignore.rule) not in RULES and near:
            corrected = replace(ignore, rule=near[0])
            yield Proposal(
                replace(
                    design,
                    ignores=tuple(
                        corrected if candidate is ignore else candidate for candidate in design.ignores
                    ),
                ),
                f"Ignores {near[0]} instead",
            )
    yield from _remove_ignore(design, finding)


FIXERS: dict[str, Fixer] = {
    **access.FIXERS,
    **declarations.FIXERS,
    **keys.FIXERS,
    **policies.FIXERS,
    "ignore-without-reason": _remove_ignore,
    "unknown-ignore": _correct_rule_name,
    "unused-ignore": _remove_ignore,
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
        fix = LintFix(proposal.design, proposal.summary, report)
        if not _has_new_findings(known, report, "warning"):
            return fix
        second = second or fix
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
    return any(
        candidate.rule == finding.rule and candidate.place == finding.place for candidate in report.findings
    )


def _has_new_findings(before: LintReport, after: LintReport, severity: Severity) -> bool:
    """Return whether a rule has more findings at some place than before, of this severity."""
    had = Counter((finding.rule, finding.place) for finding in before.findings)
    has = Counter((finding.rule, finding.place) for finding in after.findings if finding.severity == severity)
    return any(count > had[what] for what, count in has.items())
