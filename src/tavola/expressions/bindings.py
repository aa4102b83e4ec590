"""Placeholders of a request: their checks, and their substitution in a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field

from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    Delete,
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
from tavola.limits import EXPRESSION_PLACEHOLDER_BYTES_MAX
from tavola.values import Value

_NAME_KEY = re.compile(r"#[A-Za-z0-9_]+")
_VALUE_KEY = re.compile(r":[A-Za-z0-9_]+")

TreeT = TypeVar("TreeT", bound=Tree)


class Bindings(Struct, frozen=True):
    """The attribute names and checked values behind a request's placeholders."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)


class Plan(Protocol):
    """A compiled expression, as seen by placeholder checks."""

    @property
    def names_used(self) -> frozenset[str]:
        """The name placeholders that the expression uses."""

    @property
    def values_used(self) -> frozenset[str]:
        """The value placeholders that the expression uses."""


def check_placeholder_keys(names: Mapping[str, str] | None, values: Mapping[str, Any] | None) -> None:
    """Refuse an empty map of placeholders, an invalid placeholder and an empty name."""
    if names is not None:
        _check_keys("ExpressionAttributeNames", names, _NAME_KEY)
        for key, name in names.items():
            if not name:
                raise ExpressionError(
                    f"ExpressionAttributeNames contains invalid value: Empty attribute name for key {key}"
                )
    if values is not None:
        _check_keys("ExpressionAttributeValues", values, _VALUE_KEY)


def _check_keys(parameter: str, entries: Mapping[str, Any], form: re.Pattern[str]) -> None:
    if not entries:
        raise ExpressionError(f"{parameter} must not be empty")
    for key in entries:
        if len(key) > EXPRESSION_PLACEHOLDER_BYTES_MAX:
            raise ExpressionError(
                f"{parameter} contains invalid key: The expression attribute map contains a key that is "
                f"too long; size of key: {len(key.encode(errors='surrogatepass'))}"
            )
        if not form.fullmatch(key):
            raise ExpressionError(f'{parameter} contains invalid key: Syntax error; key: "{key}"')


def check_placeholders(bindings: Bindings, plans: Iterable[Plan]) -> None:
    """Refuse placeholders that no expression of the request uses; names are checked before values."""
    if bindings.names or bindings.values:
        plans = tuple(plans)
    if bindings.names:
        _check_used("ExpressionAttributeNames", bindings.names, [plan.names_used for plan in plans])
    if bindings.values:
        _check_used("ExpressionAttributeValues", bindings.values, [plan.values_used for plan in plans])


def _check_used(parameter: str, bound: Mapping[str, Any], used: list[frozenset[str]]) -> None:
    if len(used) == 1 and bound.keys() <= used[0]:
        return
    unused = [key for key in bound if not any(key in some for some in used)]
    if unused:
        raise ExpressionError(
            f"Value provided in {parameter} unused in expressions: keys: {{{', '.join(unused)}}}"
        )


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
            case Delete(_, amount):
                return Delete(path, self._value(amount))
            case Remove():
                return Remove(path)
