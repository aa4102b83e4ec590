"""Solver: keys and indexes for entities and access patterns, found and explained.

Holds the search over what could serve the questions of a design, its price by the cost room's units, and the writing
down of the result, as a design or as Python declarations. Judges by `cost` and `lint` and knows no other judge;
touches no table.
"""

from tavola.design.solver.declarations import declared
from tavola.design.solver.errors import SolveRefused
from tavola.design.solver.explain import SCENARIOS, Alternative, Choice
from tavola.design.solver.plans import STYLES, Style
from tavola.design.solver.report import as_document, as_text
from tavola.design.solver.solver import Solved, solve

__all__ = [
    "SCENARIOS",
    "STYLES",
    "Alternative",
    "Choice",
    "SolveRefused",
    "Solved",
    "Style",
    "as_document",
    "as_text",
    "declared",
    "solve",
]
