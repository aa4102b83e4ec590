"""Expressions: the expression language, complete without a table.

Holds conditions, key conditions, updates and projections: parsed, checked in DynamoDB's order and words,
then evaluated or applied; the legacy parameters and PartiQL's statements as the same trees; and the way
back, from a tree built in Python to text and placeholders. Knows values and keys; no request, no table, no
item but the one it is given.
Why plans: requests repeat their texts, so each is parsed and checked once and kept as functions.
"""

from tavola.expressions.bindings import Bindings, bind, check_placeholder_keys, check_placeholders
from tavola.expressions.builder import F, Where, literal, projection, update
from tavola.expressions.conditions import Condition, decider_of, evaluate
from tavola.expressions.errors import ExpressionError, UpdateRefused
from tavola.expressions.key_conditions import KeyClause, KeyCondition, KeyRange, key_bounds
from tavola.expressions.legacy import (
    legacy_attributes,
    legacy_expected,
    legacy_filter,
    legacy_key_conditions,
    legacy_updates,
)
from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    ConditionNode,
    Delete,
    Literal,
    Member,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.parser import parse_condition, parse_projection, parse_update
from tavola.expressions.partiql import (
    Range,
    Ranges,
    SingleKey,
    Statement,
    StatementError,
    StatementPlan,
    branches_of,
    compile_statement,
    equalities,
    fits_scale,
    is_full_scan,
    mentioned_attributes,
    parse_statement,
    ranges_of,
    single_key,
)
from tavola.expressions.plans import (
    compile_condition,
    compile_key_condition,
    compile_projection,
    compile_update,
)
from tavola.expressions.projections import Projection, project
from tavola.expressions.renderer import Renderer
from tavola.expressions.reserved import RESERVED_WORDS, is_reserved
from tavola.expressions.search_conditions import SearchClause, search_clauses
from tavola.expressions.updates import Applied, Update, apply, change_of, touched_part
from tavola.expressions.walks import paths_of

__all__ = [
    "RESERVED_WORDS",
    "Action",
    "Add",
    "And",
    "Applied",
    "Arithmetic",
    "Between",
    "Bindings",
    "Call",
    "Comparison",
    "Condition",
    "ConditionNode",
    "Delete",
    "ExpressionError",
    "F",
    "KeyClause",
    "KeyCondition",
    "KeyRange",
    "Literal",
    "Member",
    "Not",
    "Operand",
    "Or",
    "Path",
    "Projection",
    "ProjectionNode",
    "Range",
    "Ranges",
    "Remove",
    "Renderer",
    "SearchClause",
    "Set",
    "SingleKey",
    "Statement",
    "StatementError",
    "StatementPlan",
    "Update",
    "UpdateNode",
    "UpdateRefused",
    "ValueRef",
    "Where",
    "apply",
    "bind",
    "branches_of",
    "change_of",
    "check_placeholder_keys",
    "check_placeholders",
    "compile_condition",
    "compile_key_condition",
    "compile_projection",
    "compile_statement",
    "compile_update",
    "decider_of",
    "equalities",
    "evaluate",
    "fits_scale",
    "is_full_scan",
    "is_reserved",
    "key_bounds",
    "legacy_attributes",
    "legacy_expected",
    "legacy_filter",
    "legacy_key_conditions",
    "legacy_updates",
    "literal",
    "mentioned_attributes",
    "parse_condition",
    "parse_projection",
    "parse_statement",
    "parse_update",
    "paths_of",
    "project",
    "projection",
    "ranges_of",
    "search_clauses",
    "single_key",
    "touched_part",
    "update",
]
