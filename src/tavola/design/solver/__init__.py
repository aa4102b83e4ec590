"""Find keys and indexes for entities and access patterns, and explain them.

Owns the search over candidate keys, their price in the units of `cost`, and the result as a design or as Python declarations. Candidates
are judged by `cost` and `lint` only. It never touches a table.
"""

from tavola.design.errors import SolverError
from tavola.design.solver.declarations import render_declarations
from tavola.design.solver.explain import SCENARIOS, Alternative, Choice
from tavola.design.solver.proposals import STYLES, Style
from tavola.design.solver.report import as_document, as_text
from tavola.design.solver.solver import SolvedDesign, solve

__all__ = [
    "SCENARIOS",
    "STYLES",
    "Alternative",
    "Choice",
    "SolvedDesign",
    "SolverError",
    "Style",
    "as_document",
    "as_text",
    "render_declarations",
    "solve",
]
