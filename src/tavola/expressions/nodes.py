"""The AST: frozen nodes, nothing else.

A parsed tree holds placeholders (`NameRef`, `ValueRef`); a built or bound one holds attribute names and
`Literal` values. Rows of AND and OR are kept flat, so a long condition is not a deep one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tavola.values import Value


@dataclass(frozen=True, slots=True)
class NameRef:
    """A placeholder of an attribute name, such as `#n`."""

    name: str


Step: TypeAlias = "str | int | NameRef"


@dataclass(frozen=True, slots=True)
class Path:
    """A document path: an attribute, then names into maps and indexes into lists."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ValueRef:
    """A placeholder of a value, such as `:v`."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in the tree itself: from a builder or from a legacy parameter."""

    value: Value


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its operands."""

    function: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition as an operand: the BOOL that it comes to. Statements have it, expressions do not."""

    condition: ConditionNode


Operand: TypeAlias = "Path | ValueRef | Literal | Call | Truth"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two operands with one of = <> < <= > >= between them."""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between:
    """An operand and its bounds, both inclusive."""

    operand: Operand
    lower: Operand
    upper: Operand


@dataclass(frozen=True, slots=True)
class Member:
    """An operand and the choices of IN."""

    operand: Operand
    choices: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    part: ConditionNode


@dataclass(frozen=True, slots=True)
class And:
    """Two or more conditions that must all hold."""

    parts: tuple[ConditionNode, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more conditions of which one must hold."""

    parts: tuple[ConditionNode, ...]


Leaf: TypeAlias = "Comparison | Between | Member | Call"
ConditionNode: TypeAlias = "Leaf | Not | And | Or"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A sum or difference, the one operator that a SET value may have."""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Set:
    """Put a value at a path."""

    path: Path
    value: Operand | Arithmetic


@dataclass(frozen=True, slots=True)
class Remove:
    """Take away what is at a path."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add:
    """Add a number to a number, or members to a set."""

    path: Path
    value: ValueRef | Literal


@dataclass(frozen=True, slots=True)
class Delete:
    """Take members out of a set."""

    path: Path
    value: ValueRef | Literal


Action: TypeAlias = "Set | Remove | Add | Delete"


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """The actions of an update, those of one section next to each other."""

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class ProjectionNode:
    """The paths that a read asks for."""

    paths: tuple[Path, ...]


Tree: TypeAlias = "ConditionNode | UpdateNode | ProjectionNode"
