"""The linter: finds defects in a design.

A rule is one module in `rules`, named after the defect. `lint` runs the rules and returns a report, `propose_fix` alters a design
so that a finding disappears, `sarif_log` and `report_document` render a report. The package reads no files and prints nothing.
"""

from tavola.design.errors import LintError, RulesMissing, RuleUnknown
from tavola.design.lint.documents import report_document, rule_document, severity_counts
from tavola.design.lint.locations import SourceFile, SourceLocation, find_locations, locate_place
from tavola.design.lint.remedies import FIXERS, LintFix, propose_fix
from tavola.design.lint.rule import LintContext, Rule
from tavola.design.lint.rules import RULES
from tavola.design.lint.runner import LintReport, find_rule, lint
from tavola.design.lint.sarif import sarif_log

__all__ = [
    "FIXERS",
    "RULES",
    "LintContext",
    "LintError",
    "LintFix",
    "LintReport",
    "Rule",
    "RuleUnknown",
    "RulesMissing",
    "SourceFile",
    "SourceLocation",
    "find_locations",
    "find_rule",
    "lint",
    "locate_place",
    "propose_fix",
    "report_document",
    "rule_document",
    "sarif_log",
    "severity_counts",
]
