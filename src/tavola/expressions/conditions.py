"""Evaluation of conditions.

A condition is compiled once to functions, one per node, which are called for each item; that is several times faster
than walking the tree. A missing attribute satisfies no comparison except `<>`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping

from msgspec import Struct

from tavola.expressions.nodes import (
    And,
    Between,
    Comparison,
    ConditionNode,
    FunctionCall,
    InList,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Truth,
    ValueRef,
)
from tavola.expressions.paths import compile_reader, steps_of
from tavola.values import Item, Value, binary_size, compare, equal

Values = Mapping[str, Value]
Test = Callable[[Item, Values], bool]
Read = Callable[[Item, Values], Value | None]

_NOTHING: Item = {}
_SET_OF = {"S": "SS", "N": "NS", "B": "BS"}
_SCALARS = ("S", "N", "B", "BOOL", "NULL")


class Condition(Struct, frozen=True):
    """A compiled condition, and the attributes and placeholders it uses."""

    tree: ConditionNode
    test: Test
    attributes: frozenset[str]  # top-level attributes used
    nested: frozenset[str]  # attributes that a path goes into with `.` or `[]`
    names_used: frozenset[str]
    values_used: frozenset[str]


def evaluate(condition: Condition, item: Item | None, values: Values) -> bool:
    """Return whether an item meets a condition; None is a missing item."""
    return condition.test(_NOTHING if item is None else item, values)


def compile_decider(node: ConditionNode, types: Mapping[str, str] | None = None) -> Test:
    """Return the function that evaluates a checked condition; `types` are those of its values, if known."""
    return _Compiler({} if types is None else types).test(node)


def size_of(value: Value) -> int | None:
    """Return the result of `size`: UTF-16 units of a string, bytes of a binary, members of the rest."""
    for tag, content in value.items():
        if tag == "S":
            return (
                len(content) if content.isascii() else len(content.encode("utf-16-le", "surrogatepass")) // 2
            )
        if tag == "B":
            return binary_size(content)
        if tag not in _SCALARS:
            return len(content)
    return None


def begins_with(value: Value, prefix: Value) -> bool:
    """Return whether a string or binary begins with another."""
    text, start = value.get("S"), prefix.get("S")
    if text is not None and start is not None:
        return bool(text.startswith(start))
    text, start = value.get("B"), prefix.get("B")
    return text is not None and start is not None and b64decode(text).startswith(b64decode(start))


def contains(value: Value, sought: Value) -> bool:
    """Return whether a string or binary contains a part, a set a member, or a list an equal element."""
    for tag, content in value.items():
        if tag == "L":
            return any(equal(element, sought) for element in content)
        for sought_tag, part in sought.items():
            if tag == sought_tag:
                if tag == "S":
                    return part in content
                return tag == "B" and b64decode(part) in b64decode(content)
            return tag == _SET_OF.get(sought_tag) and part in content
    return False


def _has_type(value: Value, tag: Value) -> bool:
    return tag["S"] in value


_RELATIONS = {"begins_with": begins_with, "contains": contains, "attribute_type": _has_type}


class _Compiler:
    """Compiles nodes to functions."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self.types = types

    def test(self, node: ConditionNode) -> Test:
        match node:
            case And(parts):
                return _all(tuple(map(self.test, parts)))
            case Or(parts):
                return _any(tuple(map(self.test, parts)))
            case Not(part):
                test = self.test(part)
                return lambda item, values: not test(item, values)
            case Comparison("=", left, right):
                return self.equality(left, right)
            case Comparison("<>", left, right):
                same = self.equality(left, right)
                return lambda item, values: not same(item, values)
            case Comparison(operator, left, right):
                return _ordered(operator, self.read(left), self.read(right))
            case Between(operand, lower, upper):
                return _between(self.read(operand), self.read(lower), self.read(upper))
            case InList(operand, choices):
                return _member(self.read(operand), tuple(map(self.read, choices)))
            case FunctionCall(function, operands):
                return self.call(function, operands)

    def equality(self, left: Operand, right: Operand) -> Test:
        if isinstance(left, ValueRef) and isinstance(right, Path):
            left, right = right, left
        if isinstance(left, Path) and isinstance(right, ValueRef):
            ref = right.name
            if len(left.steps) == 1 and self.types.get(ref) in _SCALARS:
                # Canonical scalars are equal exactly if their dicts are, and None equals no dict.
                name = steps_of(left)[0]
                return lambda item, values: item.get(name) == values[ref]  # type: ignore[arg-type]  # a text here
        first, second = self.read(left), self.read(right)

        def same(item: Item, values: Values) -> bool:
            a = first(item, values)
            if a is None:
                return False
            b = second(item, values)
            return b is not None and equal(a, b)

        return same

    def read(self, operand: Operand) -> Read:
        match operand:
            case ValueRef(name):
                return lambda item, values: values[name]
            case Literal(value):
                return lambda item, values: value
            case Path():
                steps = steps_of(operand)
                if len(steps) == 1:
                    first = steps[0]
                    return lambda item, values: item.get(first)  # type: ignore[arg-type]  # a name is first
                at = compile_reader(steps)
                return lambda item, values: at(item)
            case FunctionCall("size", (inner,)):
                return _size(self.read(inner))
            case Truth(condition):
                test = self.test(condition)
                return lambda item, values: {"BOOL": test(item, values)}
            case FunctionCall(function):
                raise AssertionError(f"{function} gives no value, and was checked to be asked for none")

    def call(self, function: str, operands: tuple[Operand, ...]) -> Test:
        first = self.read(operands[0])
        if function in ("attribute_exists", "attribute_not_exists"):
            return _existence(operands[0], first, function == "attribute_exists")
        return _both(_RELATIONS[function], first, self.read(operands[1]))


def _existence(operand: Operand, read: Read, wanted: bool) -> Test:
    if isinstance(operand, Path) and len(operand.steps) == 1:
        name = operand.steps[0]
        if wanted:
            return lambda item, values: name in item
        return lambda item, values: name not in item
    if wanted:
        return lambda item, values: read(item, values) is not None
    return lambda item, values: read(item, values) is None


def _all(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda item, values: first(item, values) and second(item, values)

    def test(item: Item, values: Values) -> bool:
        for each in tests:  # noqa: SIM110  # a generator costs more than the test
            if not each(item, values):
                return False
        return True

    return test


def _any(tests: tuple[Test, ...]) -> Test:
    def test(item: Item, values: Values) -> bool:
        for each in tests:  # noqa: SIM110  # a generator costs more than the test
            if each(item, values):
                return True
        return False

    return test


def _ordered(operator: str, left: Read, right: Read) -> Test:
    wanted = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}[operator]

    def test(item: Item, values: Values) -> bool:
        a = left(item, values)
        if a is None:
            return False
        b = right(item, values)
        return b is not None and compare(a, b) in wanted

    return test


def _between(operand: Read, lower: Read, upper: Read) -> Test:
    def test(item: Item, values: Values) -> bool:
        value = operand(item, values)
        low, high = lower(item, values), upper(item, values)
        if value is None or low is None or high is None:
            return False
        return compare(low, value) in (-1, 0) and compare(value, high) in (-1, 0)

    return test


def _member(operand: Read, choices: tuple[Read, ...]) -> Test:
    def test(item: Item, values: Values) -> bool:
        value = operand(item, values)
        if value is None:
            return False
        for read in choices:
            choice = read(item, values)
            if choice is not None and equal(value, choice):
                return True
        return False

    return test


def _both(relation: Callable[[Value, Value], bool], left: Read, right: Read) -> Test:
    def test(item: Item, values: Values) -> bool:
        a = left(item, values)
        if a is None:
            return False
        b = right(item, values)
        return b is not None and relation(a, b)

    return test


def _size(read: Read) -> Read:
    def size(item: Item, values: Values) -> Value | None:
        value = read(item, values)
        count = None if value is None else size_of(value)
        return None if count is None else {"N": str(count)}

    return size
