"""Remedies: what a finding says to do, done to a copy of the design.

Where a remedy is mechanical, a design is altered so that the finding ends, for whoever wants to see the difference or
take it over. Nobody's source and nobody's table is touched; what takes a person (a question nobody asks any more, a body that moves to
a blob store) is left to the rule's own words.
"""

from tavola.design.lint.remedies.fixes import FIXERS, LintFix, propose_fix
from tavola.design.lint.remedies.proposal import Fixer, Proposal

__all__ = ["FIXERS", "Fixer", "LintFix", "Proposal", "propose_fix"]
