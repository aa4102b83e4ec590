"""Lint: what is wrong with a design, rule by rule.

A rule is one file of `rules`, named for the defect. The room knows designs, what one access costs, and nothing of
files or screens: `lint` gives a report, `sarif_log` writes it for the tools that read such reports.
"""

from tavola.design.lint.documents import report_document, rule_document, severity_counts
from tavola.design.lint.errors import LintError, RulesMissing, RuleUnknown
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
