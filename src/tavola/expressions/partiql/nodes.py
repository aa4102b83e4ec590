"""The syntax tree of a statement: frozen nodes with their positions.

A `Statement` holds its expressions as written; `translation` turns them into the nodes of conditions and updates.
Chains of AND and OR are flat.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from tavola.expressions.partiql.errors import StatementPosition

Kind: TypeAlias = Literal["select", "insert", "update", "delete", "exists"]


class Name(msgspec.Struct, frozen=True):
    """The name of an attribute, a table or an index."""

    text: str
    place: StatementPosition


class PathExpression(msgspec.Struct, frozen=True):
    """A term and the steps into it: names after a dot, expressions in brackets, `*` as None."""

    root: Expression
    steps: tuple[Name | Expression | None, ...]
    place: StatementPosition


class Scalar(msgspec.Struct, frozen=True):
    """A string, number, boolean, NULL or MISSING as it was written."""

    kind: Literal["S", "N", "BOOL", "NULL", "MISSING"]
    text: str
    place: StatementPosition


class Parameter(msgspec.Struct, frozen=True):
    """A question mark, and the number of those before it."""

    position: int
    place: StatementPosition


class CollectionLiteral(msgspec.Struct, frozen=True):
    """A list `[…]`, a bag `<<…>>`, or several values in parentheses."""

    kind: Literal["list", "bag"]
    items: tuple[Expression, ...]
    place: StatementPosition


class Struct(msgspec.Struct, frozen=True):
    """A map `{'k': v}`."""

    fields: tuple[tuple[Expression, Expression], ...]
    place: StatementPosition


class FunctionExpression(msgspec.Struct, frozen=True):
    """A function and its operands; `*` counts as none."""

    name: str
    operands: tuple[Expression, ...]
    place: StatementPosition


class PrefixOperator(msgspec.Struct, frozen=True):
    """An operator before one operand: + - NOT @."""

    operator: str
    operand: Expression
    place: StatementPosition


class InfixOperator(msgspec.Struct, frozen=True):
    """An operator between operands: AND and OR have two or more, BETWEEN three, all others two."""

    operator: str
    operands: tuple[Expression, ...]
    place: StatementPosition


class Typed(msgspec.Struct, frozen=True):
    """IS and a type name."""

    operand: Expression
    type: str
    negated: bool
    place: StatementPosition


class Assignment(msgspec.Struct, frozen=True):
    """SET: a path and its new value."""

    path: Expression
    value: Expression


class Removal(msgspec.Struct, frozen=True):
    """REMOVE: a path."""

    path: Expression


class Column(msgspec.Struct, frozen=True):
    """One column of a SELECT."""

    expression: Expression


class Ordering(msgspec.Struct, frozen=True):
    """One column of an ORDER BY."""

    expression: Expression
    descending: bool


class Returning(msgspec.Struct, frozen=True):
    """The image that a write returns: ALL or MODIFIED, OLD or NEW."""

    part: str
    image: str

    @property
    def text(self) -> str:
        """Return the clause as DynamoDB prints it."""
        return f"RETURNING {self.part} {self.image} *"


@dataclass(frozen=True, slots=True)
class Statement:
    """A parsed statement; for EXISTS, the SELECT in it."""

    kind: Kind
    table: str  # a name or an ARN
    index: str | None
    where: Expression | None = None
    columns: tuple[Column, ...] | None = None  # None: `*`
    orderings: tuple[Ordering, ...] = ()
    changes: tuple[Assignment | Removal, ...] = ()
    item: Expression | None = None
    returning: Returning | None = None
    parameters: int = 0  # number of question marks
    refused: tuple[str, StatementPosition] | None = (
        None  # a clause that DynamoDB's own PartiQL does not have, and where
    )
    text: str = field(default="", compare=False)


class TableReference(msgspec.Struct, frozen=True):
    """The operand of FROM, INTO or UPDATE, before it is known to be a table."""

    expression: Expression
    alias: StatementPosition | None


class NestedStatement(msgspec.Struct, frozen=True):
    """A statement inside an expression: valid only as the whole text."""

    kind: Kind
    source: TableReference
    where: Expression | None
    place: StatementPosition
    columns: tuple[Column, ...] | None = None
    aliased: bool = False
    orderings: tuple[Ordering, ...] = ()
    changes: tuple[Assignment | Removal, ...] = ()
    item: Expression | None = None
    returning: Returning | None = None
    refused: tuple[str, StatementPosition] | None = None


Expression: TypeAlias = (
    "Name | PathExpression | Scalar | Parameter | CollectionLiteral | Struct | FunctionExpression | PrefixOperator"
    " | InfixOperator | Typed | NestedStatement"
)
