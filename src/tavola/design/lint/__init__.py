"""The linter: finds defects in a design.

A rule is one module in `rules`, named after the defect. `lint` runs the rules and returns a report, `propose_fix` alters a design
so that a finding disappears, `sarif_log` and `report_document` render a report. The package reads no files and prints nothing.
"""

from tavola.design.errors import LintError, NoRulesSelected, UnknownRule
from tavola.design.lint.locations import SourceFile, SourceLocation, find_locations, locate_place
from tavola.design.lint.old_names import OLD_RULE_NAMES, current_rule_name
from tavola.design.lint.remedies import FIXERS, LintFix, propose_fix
from tavola.design.lint.reports import report_document, rule_document, sarif_log, severity_counts
from tavola.design.lint.rule import LintContext, Rule
from tavola.design.lint.rules import RULES
from tavola.design.lint.runner import LintReport, find_rule, lint
from tavola.design.lint.spelling import FileFormat, spell_for

__all__ = [
    "FIXERS",
    "OLD_RULE_NAMES",
    "RULES",
    "FileFormat",
    "LintContext",
    "LintError",
    "LintFix",
    "LintReport",
    "NoRulesSelected",
    "Rule",
    "SourceFile",
    "SourceLocation",
    "UnknownRule",
    "current_rule_name",
    "find_locations",
    "find_rule",
    "lint",
    "locate_place",
    "propose_fix",
    "report_document",
    "rule_document",
    "sarif_log",
    "severity_counts",
    "spell_for",
]
