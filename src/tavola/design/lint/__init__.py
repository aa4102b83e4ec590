"""Lint: what is wrong with a design, rule by rule.

A rule is one file of `rules`, named for the defect. The room knows designs, what one access costs, and nothing of
files or screens: `lint` gives a report, `sarif_log` writes it for the tools that read such reports.
"""

from tavola.design.lint.documents import report_document, rule_document, severity_counts
from tavola.design.lint.errors import LintError, RulesMissing, RuleUnknown
from tavola.design.lint.reading import Location, Source, located, locations
from tavola.design.lint.remedies import MENDERS, Mended, mend
from tavola.design.lint.rule import Rule, Subject
from tavola.design.lint.rules import RULES
from tavola.design.lint.runner import Report, lint, rule_named
from tavola.design.lint.sarif import sarif_log

__all__ = [
    "MENDERS",
    "RULES",
    "LintError",
    "Location",
    "Mended",
    "Report",
    "Rule",
    "RuleUnknown",
    "RulesMissing",
    "Source",
    "Subject",
    "lint",
    "located",
    "locations",
    "mend",
    "report_document",
    "rule_document",
    "rule_named",
    "sarif_log",
    "severity_counts",
]
