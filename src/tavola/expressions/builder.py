"""The Python spelling, `F("total") > 10`, to AST.

    F("status") == "open"                    a condition
    (F("total") > 10) & F("paid").exists()   conditions combine with & | ~
    F("address", "street"), F("lines")[0]    document paths
    update(F("n").set(F("n") + 1), F("old").remove())

Plain Python values become literals; an attribute value that is ready goes in as `Literal`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    ConditionNode,
    Delete,
    FunctionCall,
    InList,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    UpdateNode,
)
from tavola.values import Value, canonical_number

_SECTION_ORDER = (Set, Remove, Add, Delete)
_SET_TAGS = {str: "SS", int: "NS", Decimal: "NS", bytes: "BS"}


def literal(value: Any) -> Literal:
    """Return a plain Python value as a literal: text, numbers, bytes, booleans, None and containers."""
    return value if isinstance(value, Literal) else Literal(_value(value))


def _value(value: Any) -> Value:
    match value:
        case Literal():
            return value.value
        case bool():
            return {"BOOL": value}
        case None:
            return {"NULL": True}
        case str():
            return {"S": value}
        case int() | Decimal():
            return {"N": canonical_number(str(value))}
        case bytes():
            return {"B": b64encode(value).decode()}
        case list() | tuple():
            return {"L": [_value(element) for element in value]}
        case dict():
            return {"M": {name: _value(member) for name, member in value.items()}}
        case set() | frozenset():
            return _set(value)
        case _:
            raise TypeError(
                f"{type(value).__name__} is no attribute value; give text, a number, bytes or a container"
            )


def _set(members: Iterable[Any]) -> Value:
    tags = {_SET_TAGS.get(type(member)) for member in members}
    tag = tags.pop() if len(tags) == 1 else None
    if tag is None:
        raise TypeError("a set holds text, numbers or bytes, one of these and at least one member")
    scalar = tag[0]
    return {tag: sorted({_value(member)[scalar] for member in members})}


def _operand(value: Any) -> Operand:
    return value.node if isinstance(value, Expression) else literal(value)


@dataclass(frozen=True, slots=True, eq=False)
class Where:
    """A condition under construction."""

    node: ConditionNode

    def __and__(self, other: Where) -> Where:
        return Where(And((*_row(self.node, And), *_row(other.node, And))))

    def __or__(self, other: Where) -> Where:
        return Where(Or((*_row(self.node, Or), *_row(other.node, Or))))

    def __invert__(self) -> Where:
        return Where(Not(self.node))

    def __bool__(self) -> bool:
        raise TypeError("a condition is decided against an item; combine conditions with & | ~")


def _row(node: ConditionNode, kind: type[And] | type[Or]) -> tuple[ConditionNode, ...]:
    return node.parts if isinstance(node, kind) else (node,)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An operand under construction: what can be compared, and what SET can be given."""

    node: Operand

    __hash__ = None  # type: ignore[assignment]  # == makes a condition, so there is no set of these

    def __eq__(self, other: object) -> Where:  # type: ignore[override]  # a condition, not an answer
        return Where(Comparison("=", self.node, _operand(other)))

    def __ne__(self, other: object) -> Where:  # type: ignore[override]  # a condition, not an answer
        return Where(Comparison("<>", self.node, _operand(other)))

    def __lt__(self, other: Any) -> Where:
        return Where(Comparison("<", self.node, _operand(other)))

    def __le__(self, other: Any) -> Where:
        return Where(Comparison("<=", self.node, _operand(other)))

    def __gt__(self, other: Any) -> Where:
        return Where(Comparison(">", self.node, _operand(other)))

    def __ge__(self, other: Any) -> Where:
        return Where(Comparison(">=", self.node, _operand(other)))

    def __add__(self, other: Any) -> Arithmetic:
        return Arithmetic("+", self.node, _operand(other))

    def __sub__(self, other: Any) -> Arithmetic:
        return Arithmetic("-", self.node, _operand(other))

    def between(self, lower: Any, upper: Any) -> Where:
        """Return the condition that this is between two bounds, inclusive."""
        return Where(Between(self.node, _operand(lower), _operand(upper)))

    def is_in(self, *choices: Any) -> Where:
        """Return the condition that this equals one of the choices."""
        return Where(InList(self.node, tuple(map(_operand, choices))))

    def begins_with(self, prefix: Any) -> Where:
        """Return the condition that this text or binary begins with a prefix."""
        return Where(FunctionCall("begins_with", (self.node, _operand(prefix))))

    def contains(self, part: Any) -> Where:
        """Return the condition that this text contains a part, or this set or list a member."""
        return Where(FunctionCall("contains", (self.node, _operand(part))))

    def append(self, more: Any) -> Expression:
        """Return this list with another after it."""
        return Expression(FunctionCall("list_append", (self.node, _operand(more))))

    def prepend(self, more: Any) -> Expression:
        """Return this list with another before it."""
        return Expression(FunctionCall("list_append", (_operand(more), self.node)))


class F(Expression):
    """A document path under construction: an attribute, then names and indexes into it."""

    __slots__ = ()
    __hash__ = None

    def __init__(self, *steps: str | int) -> None:
        super().__init__(Path(steps))

    @property
    def path(self) -> Path:
        """The path so far."""
        assert isinstance(self.node, Path)
        return self.node

    def __getitem__(self, step: str | int) -> F:
        return F(*(inner for inner in self.path.steps if isinstance(inner, str | int)), step)

    def exists(self) -> Where:
        """Return the condition that an item has this attribute or element."""
        return Where(FunctionCall("attribute_exists", (self.path,)))

    def not_exists(self) -> Where:
        """Return the condition that an item lacks this attribute or element."""
        return Where(FunctionCall("attribute_not_exists", (self.path,)))

    def has_type(self, tag: str) -> Where:
        """Return the condition that this has a type, such as `SS`."""
        return Where(FunctionCall("attribute_type", (self.path, literal(tag))))

    def size(self) -> Expression:
        """Return the size of this: characters, bytes or members."""
        return Expression(FunctionCall("size", (self.path,)))

    def if_not_exists(self, fallback: Any) -> Expression:
        """Return this, or a fallback if an item lacks it."""
        return Expression(FunctionCall("if_not_exists", (self.path, _operand(fallback))))

    def set(self, value: Any) -> Set:
        """Return the action that sets a value here."""
        return Set(self.path, value if isinstance(value, Arithmetic) else _operand(value))

    def remove(self) -> Remove:
        """Return the action that removes this."""
        return Remove(self.path)

    def add(self, amount: Any) -> Add:
        """Return the action that adds to this number or set."""
        return Add(self.path, literal(amount))

    def delete(self, members: Any) -> Delete:
        """Return the action that removes members from this set."""
        return Delete(self.path, literal(members))


def update(*actions: Action) -> UpdateNode:
    """Return an update of actions, grouped by section."""
    return UpdateNode(
        tuple(action for kind in _SECTION_ORDER for action in actions if isinstance(action, kind))
    )


def projection(*paths: F) -> ProjectionNode:
    """Return a projection of paths."""
    return ProjectionNode(tuple(path.path for path in paths))
