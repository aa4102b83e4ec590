"""The AST: frozen nodes, nothing else.

Nodes are msgspec structs: 22 frozen dataclasses would take 12 ms of every start to build.

A parsed tree holds placeholders (`NameRef`, `ValueRef`); a built or bound one holds attribute names and
`Literal` values. Rows of AND and OR are kept flat, so a long condition is not a deep one.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tavola.values import Value


class NameRef(Struct, frozen=True):
    """A placeholder of an attribute name, such as `#n`."""

    name: str


Step: TypeAlias = "str | int | NameRef"


class Path(Struct, frozen=True):
    """A document path: an attribute, then names into maps and indexes into lists."""

    steps: tuple[Step, ...]


class ValueRef(Struct, frozen=True):
    """A placeholder of a value, such as `:v`."""

    name: str


class Literal(Struct, frozen=True):
    """A value in the tree itself: from a builder or from a legacy parameter."""

    value: Value


class Call(Struct, frozen=True):
    """A function and its operands."""

    function: str
    operands: tuple[Operand, ...]


class Truth(Struct, frozen=True):
    """A condition as an operand: the BOOL that it comes to. Statements have it, expressions do not."""

    condition: ConditionNode


Operand: TypeAlias = "Path | ValueRef | Literal | Call | Truth"


class Comparison(Struct, frozen=True):
    """Two operands with one of = <> < <= > >= between them."""

    operator: str
    left: Operand
    right: Operand


class Between(Struct, frozen=True):
    """An operand and its bounds, both inclusive."""

    operand: Operand
    lower: Operand
    upper: Operand


class Member(Struct, frozen=True):
    """An operand and the choices of IN."""

    operand: Operand
    choices: tuple[Operand, ...]


class Not(Struct, frozen=True):
    """The opposite of a condition."""

    part: ConditionNode


class And(Struct, frozen=True):
    """Two or more conditions that must all hold."""

    parts: tuple[ConditionNode, ...]


class Or(Struct, frozen=True):
    """Two or more conditions of which one must hold."""

    parts: tuple[ConditionNode, ...]


Leaf: TypeAlias = "Comparison | Between | Member | Call"
ConditionNode: TypeAlias = "Leaf | Not | And | Or"


class Arithmetic(Struct, frozen=True):
    """A sum or difference, the one operator that a SET value may have."""

    operator: str
    left: Operand
    right: Operand


class Set(Struct, frozen=True):
    """Put a value at a path."""

    path: Path
    value: Operand | Arithmetic


class Remove(Struct, frozen=True):
    """Take away what is at a path."""

    path: Path


class Add(Struct, frozen=True):
    """Add a number to a number, or members to a set."""

    path: Path
    value: ValueRef | Literal


class Delete(Struct, frozen=True):
    """Take members out of a set."""

    path: Path
    value: ValueRef | Literal


Action: TypeAlias = "Set | Remove | Add | Delete"


class UpdateNode(Struct, frozen=True):
    """The actions of an update, those of one section next to each other."""

    actions: tuple[Action, ...]


class ProjectionNode(Struct, frozen=True):
    """The paths that a read asks for."""

    paths: tuple[Path, ...]


Tree: TypeAlias = "ConditionNode | UpdateNode | ProjectionNode"
