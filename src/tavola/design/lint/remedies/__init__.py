"""Remedies: functions that carry out the remedy of a finding on a copy of the design.

Only mechanical remedies are here. What needs a decision, such as removing a feature or moving data elsewhere, is left to the
text of the rule. Source files and tables are never changed.
"""

from tavola.design.lint.remedies.fixes import FIXERS, LintFix, propose_fix
from tavola.design.lint.remedies.proposal import Fixer, Proposal

__all__ = ["FIXERS", "Fixer", "LintFix", "Proposal", "propose_fix"]
