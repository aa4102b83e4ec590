"""The syntax tree: frozen nodes.

Nodes are msgspec structs: 22 frozen dataclasses would take 12 ms of every start to build.

A parsed tree has placeholders (`NameRef`, `ValueRef`); a built or bound one has attribute names and `Literal` values.
Chains of AND and OR are flat, so a long condition is not a deep tree.
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
    """A value in the tree itself, from Python code or a legacy parameter."""

    value: Value


class FunctionCall(Struct, frozen=True):
    """A function and its operands."""

    function: str
    operands: tuple[Operand, ...]


class Truth(Struct, frozen=True):
    """A condition used as a BOOL operand; PartiQL has it, expressions do not."""

    condition: ConditionNode


Operand: TypeAlias = "Path | ValueRef | Literal | FunctionCall | Truth"


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


class InList(Struct, frozen=True):
    """An operand and the choices of IN."""

    operand: Operand
    choices: tuple[Operand, ...]


class Not(Struct, frozen=True):
    """The negation of a condition."""

    part: ConditionNode


class And(Struct, frozen=True):
    """Two or more conditions that must all hold."""

    parts: tuple[ConditionNode, ...]


class Or(Struct, frozen=True):
    """Two or more conditions of which one must hold."""

    parts: tuple[ConditionNode, ...]


Leaf: TypeAlias = "Comparison | Between | InList | FunctionCall"
ConditionNode: TypeAlias = "Leaf | Not | And | Or"


class Arithmetic(Struct, frozen=True):
    """A sum or difference in a SET value."""

    operator: str
    left: Operand
    right: Operand


class Set(Struct, frozen=True):
    """SET: store a value at a path."""

    path: Path
    value: Operand | Arithmetic


class Remove(Struct, frozen=True):
    """REMOVE: delete the value at a path."""

    path: Path


class Add(Struct, frozen=True):
    """ADD: add a number to a number, or members to a set."""

    path: Path
    value: ValueRef | Literal


class DeleteElements(Struct, frozen=True):
    """DELETE: remove members from a set."""

    path: Path
    value: ValueRef | Literal


Action: TypeAlias = "Set | Remove | Add | DeleteElements"


class UpdateNode(Struct, frozen=True):
    """The actions of an update, grouped by section."""

    actions: tuple[Action, ...]


class ProjectionNode(Struct, frozen=True):
    """The paths that a read returns."""

    paths: tuple[Path, ...]


Tree: TypeAlias = "ConditionNode | UpdateNode | ProjectionNode"
