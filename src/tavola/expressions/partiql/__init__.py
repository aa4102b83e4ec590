"""PartiQL: statements, complete without a table.

Holds the language of ExecuteStatement and its kin: lexed with places, parsed, translated into the trees of
expressions, checked with parameters, and read for the keys that a clause gives. Knows expressions, keys and
values; no request and no table. Why no evaluator of its own: a statement must mean what the native request does.
"""

from tavola.expressions.partiql.errors import Place, StatementError
from tavola.expressions.partiql.facts import equalities, is_full_scan, mentioned_attributes
from tavola.expressions.partiql.lexer import fits_scale
from tavola.expressions.partiql.nodes import Statement
from tavola.expressions.partiql.parser import parse_statement
from tavola.expressions.partiql.plans import StatementPlan, compile_statement
from tavola.expressions.partiql.reads import (
    Range,
    Ranges,
    SingleKey,
    branches_of,
    ranges_of,
    single_key,
)

__all__ = [
    "Place",
    "Range",
    "Ranges",
    "SingleKey",
    "Statement",
    "StatementError",
    "StatementPlan",
    "branches_of",
    "compile_statement",
    "equalities",
    "fits_scale",
    "is_full_scan",
    "mentioned_attributes",
    "parse_statement",
    "ranges_of",
    "single_key",
]
