"""Placeholders of a request, and their substitution in a tree; `plans` checks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, field

from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    DeleteElements,
    FunctionCall,
    InList,
    Leaf,
    Literal,
    NameRef,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Tree,
    Truth,
    UpdateNode,
    ValueRef,
)
from tavola.values import Value

TreeT = TypeVar("TreeT", bound=Tree)


class Bindings(Struct, frozen=True):
    """The attribute names and checked values behind a request's placeholders."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)


def bind(tree: TreeT, bindings: Bindings) -> TreeT:
    """Return a parsed tree with every placeholder replaced by its name or value."""
    return Substitution(bindings.names, bindings.values).tree(tree)


class Substitution:
    """Replaces name placeholders in a tree and, given values, value placeholders too."""

    def __init__(self, names: Mapping[str, str], values: Mapping[str, Value] | None = None) -> None:
        self.names = names
        self.values = values

    def tree(self, tree: TreeT) -> TreeT:
        """Return the tree with its placeholders replaced."""
        replaced: Tree
        match tree:
            case And(parts):
                replaced = And(tuple(map(self.tree, parts)))
            case Or(parts):
                replaced = Or(tuple(map(self.tree, parts)))
            case Not(part):
                replaced = Not(self.tree(part))
            case UpdateNode(actions):
                replaced = UpdateNode(tuple(map(self._action, actions)))
            case ProjectionNode(paths):
                replaced = ProjectionNode(tuple(map(self.path, paths)))
            case _:
                replaced = self._leaf(tree)
        return replaced  # type: ignore[return-value]  # a node is replaced by one of its kind

    def path(self, path: Path) -> Path:
        """Return the path with its name placeholders replaced."""
        return Path(tuple(self.names[s.name] if isinstance(s, NameRef) else s for s in path.steps))

    def operand(self, operand: Operand) -> Operand:
        """Return the operand with its placeholders replaced."""
        match operand:
            case Path():
                return self.path(operand)
            case ValueRef():
                return self._value(operand)
            case FunctionCall(function, operands):
                return FunctionCall(function, tuple(map(self.operand, operands)))
            case Truth(condition):
                return Truth(self.tree(condition))
            case Literal():
                return operand

    def _leaf(self, leaf: Leaf) -> Leaf:
        match leaf:
            case Comparison(operator, left, right):
                return Comparison(operator, self.operand(left), self.operand(right))
            case Between(operand, lower, upper):
                return Between(self.operand(operand), self.operand(lower), self.operand(upper))
            case InList(operand, choices):
                return InList(self.operand(operand), tuple(map(self.operand, choices)))
            case FunctionCall(function, operands):
                return FunctionCall(function, tuple(map(self.operand, operands)))

    def _value(self, value: ValueRef | Literal) -> ValueRef | Literal:
        if self.values is None or isinstance(value, Literal):
            return value
        return Literal(self.values[value.name])

    def _action(self, action: Action) -> Action:
        path = self.path(action.path)
        match action:
            case Set(_, Arithmetic(operator, left, right)):
                return Set(path, Arithmetic(operator, self.operand(left), self.operand(right)))
            case Set(_, value):
                assert not isinstance(value, Arithmetic)
                return Set(path, self.operand(value))
            case Add(_, amount):
                return Add(path, self._value(amount))
            case DeleteElements(_, amount):
                return DeleteElements(path, self._value(amount))
            case Remove():
                return Remove(path)
