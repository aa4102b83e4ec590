"""The tree of a statement: frozen nodes with their places, nothing else.

`Statement` is what a text asks for; inside it stand expressions as they were written, which the translation
makes into the nodes that conditions and updates have everywhere. Rows of AND and OR are kept flat.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tavola.expressions.partiql.errors import Place

Kind: TypeAlias = Literal["select", "insert", "update", "delete", "exists"]


@dataclass(frozen=True, slots=True)
class Name:
    """The name of an attribute, a table or an index."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Path:
    """A term and what is looked up in it: names after a dot, expressions in brackets, `*` as None."""

    root: Expression
    steps: tuple[Name | Expression | None, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number, boolean, NULL or MISSING as it was written."""

    kind: Literal["S", "N", "BOOL", "NULL", "MISSING"]
    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Parameter:
    """A question mark, and how many stood before it."""

    position: int
    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list `[…]`, a bag `<<…>>`, or several values in parentheses."""

    kind: Literal["list", "bag"]
    items: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Struct:
    """A map `{'k': v}`."""

    fields: tuple[tuple[Expression, Expression], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Function:
    """A function and its operands; `*` counts as none."""

    name: str
    operands: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Prefix:
    """An operator before one operand: + - NOT @."""

    operator: str
    operand: Expression
    place: Place


@dataclass(frozen=True, slots=True)
class Infix:
    """An operator between operands: one of AND and OR has two or more, BETWEEN three, all others two."""

    operator: str
    operands: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Typed:
    """IS and the name of a type."""

    operand: Expression
    type: str
    negated: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Assignment:
    """SET: a path, and what is to stand there."""

    path: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Removal:
    """REMOVE: a path."""

    path: Expression


@dataclass(frozen=True, slots=True)
class Column:
    """One thing that SELECT names."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Ordering:
    """One thing that ORDER BY names."""

    expression: Expression
    descending: bool


@dataclass(frozen=True, slots=True)
class Returning:
    """Which image an update or delete answers with: ALL or MODIFIED, OLD or NEW."""

    part: str
    image: str

    @property
    def text(self) -> str:
        """Return the clause as DynamoDB prints it."""
        return f"RETURNING {self.part} {self.image} *"


@dataclass(frozen=True, slots=True)
class Statement:
    """What one text asks for; of EXISTS, what the read in it asks for."""

    kind: Kind
    table: str  # a name or an ARN
    index: str | None
    where: Expression | None = None
    columns: tuple[Column, ...] | None = None  # None: `*`
    orderings: tuple[Ordering, ...] = ()
    changes: tuple[Assignment | Removal, ...] = ()
    item: Expression | None = None
    returning: Returning | None = None
    parameters: int = 0  # how many question marks it has
    refused: tuple[str, Place] | None = None  # a clause that DynamoDB's own PartiQL does not have, and where
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Source:
    """What FROM, INTO or UPDATE names, before it is known to be a table."""

    expression: Expression
    alias: Place | None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement inside an expression: as a whole text it becomes a `Statement`, elsewhere it is refused."""

    kind: Kind
    source: Source
    where: Expression | None
    place: Place
    columns: tuple[Column, ...] | None = None
    aliased: bool = False
    orderings: tuple[Ordering, ...] = ()
    changes: tuple[Assignment | Removal, ...] = ()
    item: Expression | None = None
    returning: Returning | None = None
    refused: tuple[str, Place] | None = None


Expression: TypeAlias = (
    "Name | Path | Scalar | Parameter | Sequence | Struct | Function | Prefix | Infix | Typed | Parsed"
)
