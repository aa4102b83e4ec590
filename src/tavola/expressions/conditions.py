"""Evaluation of conditions.

A condition is compiled once to functions, one per node, which are called for each item; that is several times faster
than walking the tree. A missing attribute satisfies no comparison except `<>`.

A filter is evaluated for every item of a page. Before that, `prepare_values` puts the constant operands of each `IN` into
a set, so that 100 operands cost one lookup per item and not 100 comparisons.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from typing import Any

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
from tavola.values import Item, Steps, Value, binary_size, compare, equal, tag_of

Values = Mapping[str, Value]
Test = Callable[[Item, Values], bool]
Read = Callable[[Item, Values], Value | None]

_NOTHING: Item = {}
_SET_OF = {"S": "SS", "N": "NS", "B": "BS"}
_SCALARS = ("S", "N", "B", "BOOL", "NULL")
_HASHED_FROM = 4  # operands of an IN; comparing fewer is as fast


class OperandSet(Struct, frozen=True):
    """The scalar placeholders of one `IN`, and the name under which `prepare_values` keeps their set."""

    name: str  # not a placeholder's, which begin with a colon
    placeholders: tuple[str, ...]


class CompiledCondition(Struct, frozen=True):
    """A compiled condition, and the attributes and placeholders it uses."""

    tree: ConditionNode
    test: Test
    attributes: frozenset[str]  # top-level attributes used
    nested: frozenset[str]  # attributes that a path goes into with `.` or `[]`
    names_used: frozenset[str]
    values_used: frozenset[str]
    operand_sets: tuple[OperandSet, ...] = ()


def prepare_values(condition: CompiledCondition, values: Values) -> Values:
    """Return the values for evaluating a condition many times: with the operands of each long `IN` as a set."""
    if not condition.operand_sets:
        return values
    prepared: dict[str, Any] = dict(values)
    for operands in condition.operand_sets:
        prepared[operands.name] = _pairs(values[name] for name in operands.placeholders)
    return prepared


def evaluate(condition: CompiledCondition, item: Item | None, values: Values) -> bool:
    """Return whether an item meets a condition; None is a missing item."""
    return condition.test(_NOTHING if item is None else item, values)


def evaluate_in_steps(node: ConditionNode, item: Item, values: Values) -> Steps[bool]:
    """Return whether an item meets a checked condition; pauses after each comparison, because a large item makes each expensive."""
    match node:
        case And(parts):
            for part in parts:
                if not (yield from evaluate_in_steps(part, item, values)):
                    return False
            return True
        case Or(parts):
            for part in parts:
                if (yield from evaluate_in_steps(part, item, values)):
                    return True
            return False
        case Not(part):
            return not (yield from evaluate_in_steps(part, item, values))
        case _:
            yield
            return compile_decider(node)(item, values)


def compile_decider(node: ConditionNode) -> Test:
    """Return the function that evaluates a checked condition."""
    return compile_with_sets(node, {})[0]


def compile_with_sets(node: ConditionNode, types: Mapping[str, str]) -> tuple[Test, tuple[OperandSet, ...]]:
    """Return the function that evaluates a checked condition, and the sets that `prepare_values` adds to its values.

    `types` are those of the values, where they are known.
    """
    compiler = _Compiler(types)
    return compiler.test(node), tuple(compiler.operand_sets)


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
            if tag_of(sought) in _SCALARS:  # canonical scalars are equal exactly if their dicts are
                return sought in content
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
        self.operand_sets: list[OperandSet] = []

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
                return _order_test(operator, self.read(left), self.read(right))
            case Between(operand, lower, upper):
                return _between(self.read(operand), self.read(lower), self.read(upper))
            case InList(operand, choices):
                return self.membership(operand, choices)
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

    def membership(self, operand: Operand, choices: tuple[Operand, ...]) -> Test:
        """Return the test of an `IN`; where most of its operands are scalar literals or placeholders, by lookup."""
        literals: list[Value] = []
        placeholders: list[str] = []
        others: list[Read] = []
        for choice in choices:
            if isinstance(choice, Literal) and tag_of(choice.value) in _SCALARS:
                literals.append(choice.value)
            elif isinstance(choice, ValueRef) and self.types.get(choice.name) in _SCALARS:
                placeholders.append(choice.name)
            else:
                others.append(self.read(choice))
        read = self.read(operand)
        compare_all = _member(read, tuple(map(self.read, choices)))
        if len(literals) + len(placeholders) < _HASHED_FROM:
            return compare_all
        test = _member(read, tuple(others))
        if placeholders:
            operand_set = OperandSet(f"IN {len(self.operand_sets)}", tuple(placeholders))
            self.operand_sets.append(operand_set)
            test = _prepared_member(read, operand_set.name, test, compare_all)
        return _hashed_member(read, _pairs(literals), test) if literals else test

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
                raise AssertionError(f"the checker lets {function} be used as a condition only")

    def call(self, function: str, operands: tuple[Operand, ...]) -> Test:
        first = self.read(operands[0])
        if function in ("attribute_exists", "attribute_not_exists"):
            return _existence(operands[0], first, function == "attribute_exists")
        return _both(_RELATIONS[function], first, self.read(operands[1]))


def _existence(operand: Operand, read: Read, exists: bool) -> Test:
    if isinstance(operand, Path) and len(operand.steps) == 1:
        name = operand.steps[0]
        if exists:
            return lambda item, values: name in item
        return lambda item, values: name not in item
    if exists:
        return lambda item, values: read(item, values) is not None
    return lambda item, values: read(item, values) is None


def _all(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 2:
        first, second = tests
        return lambda item, values: first(item, values) and second(item, values)

    def test(item: Item, values: Values) -> bool:
        for test in tests:  # noqa: SIM110  # a generator costs more than the test
            if not test(item, values):
                return False
        return True

    return test


def _any(tests: tuple[Test, ...]) -> Test:
    def test(item: Item, values: Values) -> bool:
        for test in tests:  # noqa: SIM110  # a generator costs more than the test
            if test(item, values):
                return True
        return False

    return test


def _order_test(operator: str, left: Read, right: Read) -> Test:
    accepted_orders = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}[operator]

    def test(item: Item, values: Values) -> bool:
        a = left(item, values)
        if a is None:
            return False
        b = right(item, values)
        return b is not None and compare(a, b) in accepted_orders

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


def _pairs(scalars: Iterable[Value]) -> frozenset[tuple[str, Any]]:
    """Return scalars as pairs of tag and content. Canonical scalars are equal exactly if their pairs are."""
    return frozenset(pair for scalar in scalars for pair in scalar.items())


def _hashed_member(operand: Read, members: frozenset[tuple[str, Any]], compare_others: Test) -> Test:
    """Return the test of an `IN` with literal operands."""

    def test(item: Item, values: Values) -> bool:
        value = operand(item, values)
        return value is not None and (_is_member(value, members) or compare_others(item, values))

    return test


def _prepared_member(operand: Read, name: str, compare_others: Test, compare_all: Test) -> Test:
    """Return the test of an `IN` whose operands may have been put into a set by `prepare_values`.

    A condition of a write is evaluated once: comparing its operands is cheaper than hashing them.
    """

    def test(item: Item, values: Values) -> bool:
        members: Any = values.get(name)
        if members is None:
            return compare_all(item, values)
        value = operand(item, values)
        return value is not None and (_is_member(value, members) or compare_others(item, values))

    return test


def _is_member(value: Value, members: frozenset[tuple[str, Any]]) -> bool:
    for pair in value.items():
        return pair[0] in _SCALARS and pair in members
    return False


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
