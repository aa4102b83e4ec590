"""PartiQL: statements, without any table.

The language of ExecuteStatement, BatchExecuteStatement and ExecuteTransaction: lexed with positions, parsed,
translated to the trees of expressions, checked with parameters, and reduced to the keys that a WHERE clause selects.
The package knows expressions, keys and values; no request and no table. It has no evaluator of its own, so that a
statement means the same as the native request.
"""

from tavola.expressions.partiql.errors import StatementError, StatementPosition
from tavola.expressions.partiql.facts import equalities, is_full_scan, mentioned_attributes
from tavola.expressions.partiql.lexer import fits_scale
from tavola.expressions.partiql.nodes import Statement
from tavola.expressions.partiql.parser import parse_statement
from tavola.expressions.partiql.plans import StatementPlan, compile_statement
from tavola.expressions.partiql.reads import (
    PartitionRange,
    PartitionRanges,
    SingleKey,
    branches_of,
    ranges_of,
    single_key,
)

__all__ = [
    "PartitionRange",
    "PartitionRanges",
    "SingleKey",
    "Statement",
    "StatementError",
    "StatementPlan",
    "StatementPosition",
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
