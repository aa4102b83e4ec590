"""Reads: the key ranges that a WHERE clause reads, or the single item it selects.

A WHERE clause is split into *branches*: the alternatives that OR and IN allow. If every branch fixes the partition key
with `=` or IN, the SELECT is a query and each branch reads one key range; otherwise it is a scan. The clause is then
evaluated as a filter over the rows read, so a branch may read too much but never too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cmp_to_key
from itertools import pairwise

from msgspec import Struct, field

from tavola.expressions.nodes import (
    And,
    Between,
    Comparison,
    ConditionNode,
    FunctionCall,
    InList,
    Not,
    Operand,
    Or,
    Path,
    ValueRef,
)
from tavola.expressions.partiql.errors import StatementError
from tavola.expressions.paths import leaves_of, paths_of, steps_of
from tavola.keys import Bounds, KeyAttribute, KeyRefused, KeySchema, SortCondition, partition_bounds
from tavola.limits import STATEMENT_READS_MAX
from tavola.values import Value, compare, equal

Values = Mapping[str, Value]

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"
_TOO_MANY = "Too many decomposed read operations for a given query."


class KeyTest(Struct, frozen=True):
    """A condition on one key attribute that a key range can express."""

    name: str
    operator: str
    values: tuple[Value, ...]


class Branch(Struct):
    """One alternative of a WHERE clause: its key tests, and its other conditions."""

    tests: list[KeyTest] = field(default_factory=list)
    filters: list[ConditionNode] = field(default_factory=list)


class PartitionRange(Struct, frozen=True):
    """The key range of one partition that a query reads."""

    partition: Value
    bounds: Bounds
    at_most_one: bool  # every key attribute is fixed by `=`


class PartitionRanges(Struct, frozen=True):
    """All ranges of a query in key order, and whether they express the whole clause."""

    ranges: tuple[PartitionRange, ...]
    exact: bool
    filtered: tuple[tuple[str, ...], ...]  # for each branch, the attributes it filters by

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return sum(
            not position or not equal(self.ranges[position - 1].partition, range_.partition)
            for position, range_ in enumerate(self.ranges)
        )

    def in_order(self, *, descending: bool, reverse: bool) -> list[PartitionRange]:
        """Return the ranges with partitions, and ranges within a partition, in the given order."""
        if descending == reverse:
            return list(self.ranges[::-1] if reverse else self.ranges)
        grouped: list[list[PartitionRange]] = []
        for range_ in self.ranges:
            if grouped and equal(grouped[-1][0].partition, range_.partition):
                grouped[-1].append(range_)
            else:
                grouped.append([range_])
        if descending:
            grouped.reverse()
        return [partition for group in grouped for partition in (group[::-1] if reverse else group)]


class SingleKey(Struct, frozen=True):
    """The item that a WHERE clause selects by equalities on its key."""

    key: dict[str, Value]
    repeated: str | None  # a key attribute that would have to equal two values
    has_other_conditions: bool


def ranges_of(tree: ConditionNode | None, schema: KeySchema, values: Values) -> PartitionRanges | None:
    """Return the ranges that a SELECT queries, in key order; None if it must scan."""
    if tree is None or not _fixes_attribute(tree, schema.hash[0].name, values):
        return None
    names = frozenset(schema.names)
    branches = _branches(tree, names, values)
    check_types(branches, schema)
    if len(branches) == 1:
        (branch,) = branches
        exact = not branch.filters and _is_exact(branch)
        return PartitionRanges((_range(branch, schema),), exact, (_filter_attributes(branch),))
    read_ranges = [_range(branch, schema) for branch in branches]
    _check_disjoint(branches, read_ranges, schema)
    ordered = sorted(zip(read_ranges, branches, strict=True), key=_by_key)
    filtered = tuple(_filter_attributes(branch) for _, branch in ordered)
    return PartitionRanges(tuple(_merge_ranges([read_range for read_range, _ in ordered])), False, filtered)


def branches_of(tree: ConditionNode, schema: KeySchema, values: Values) -> list[Branch]:
    """Return the branches of a clause; none unless each fixes the partition key."""
    if not _fixes_attribute(tree, schema.hash[0].name, values):
        return []
    return _branches(tree, frozenset(schema.names), values)


def check_types(branches: list[Branch], schema: KeySchema) -> None:
    """Raise StatementError if a key attribute is compared with a value of another type."""
    for branch in branches:
        for part in schema.attributes:
            for test in branch.tests:
                if test.name == part.name and any(part.type not in value for value in test.values):
                    raise StatementError(
                        f"Key attribute's data type should match its data type in table's schema: Key {part.name}"
                    )


def single_key(
    tree: ConditionNode | None, schema: KeySchema, values: Values, *, members: bool = False
) -> SingleKey | None:
    """Return the key of the only item that a clause can select; None if it may select several.

    With `members`, IN with one value counts as `=`.
    """
    key: dict[str, Value] = {}
    repeated: str | None = None
    has_other = False
    for part in _conjuncts(tree):
        test = _test(part, values)
        equality = test is not None and len(test.values) == 1 and test.operator in ("=", "IN")
        if test is None or not equality or test.name not in schema.names:
            has_other = True
        elif test.operator == "IN" and not members:
            has_other = True
        elif test.name not in key:
            key[test.name] = test.values[0]
        elif not equal(key[test.name], test.values[0]):
            repeated, has_other = test.name, True
    if len(key) < len(schema.names):
        return None
    return SingleKey({name: key[name] for name in schema.names}, repeated, has_other)


def pinned_values(tree: ConditionNode, values: Values) -> dict[str, list[Value]]:
    """Return, by top-level attribute, the values of which it must equal one if the condition holds."""
    match tree:
        case And(parts):
            pins_by_name: dict[str, list[Value]] = {}
            for part in parts:
                for name, pinned in pinned_values(part, values).items():
                    pins_by_name.setdefault(name, []).extend(pinned)
            return pins_by_name
        case Or(parts):
            pins = [pinned_values(part, values) for part in parts]
            shared = [name for name in pins[0] if all(name in pinned for pinned in pins)]
            return {name: [value for pinned in pins for value in pinned[name]] for name in shared}
        case _:
            test = _test(tree, values)
            if test is None or test.operator not in ("=", "IN"):
                return {}
            return {test.name: list(test.values)}


def _test(node: ConditionNode, values: Values) -> KeyTest | None:
    """Return a leaf as a test of one top-level attribute; None for anything else."""
    match node:
        case Comparison(operator, Path() as path, ValueRef(ref)) if operator in _MIRRORED:
            return _key_test(path, operator, (values[ref],))
        case Comparison(operator, ValueRef(ref), Path() as path) if operator in _MIRRORED:
            return _key_test(path, _MIRRORED[operator], (values[ref],))
        case Between(Path() as path, ValueRef(lower), ValueRef(upper)):
            return _key_test(path, "BETWEEN", (values[lower], values[upper]))
        case FunctionCall("begins_with", (Path() as path, ValueRef(ref))):
            return _key_test(path, "begins_with", (values[ref],))
        case InList(Path() as path, choices):
            operands = [values[choice.name] for choice in choices if isinstance(choice, ValueRef)]
            return _key_test(path, "IN", tuple(operands)) if len(operands) == len(choices) else None
        case _:
            return None


def _key_test(path: Path, operator: str, operands: tuple[Value, ...]) -> KeyTest | None:
    steps = steps_of(path)
    return KeyTest(str(steps[0]), operator, operands) if len(steps) == 1 else None


def _conjuncts(tree: ConditionNode | None) -> Iterator[ConditionNode]:
    pending = [] if tree is None else [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending.extend(reversed(node.parts))
        else:
            yield node


def _fixes_attribute(node: ConditionNode, name: str, values: Values) -> bool:
    """Return whether every branch of a condition fixes an attribute with `=` or IN."""
    match node:
        case And(parts):
            return any(_fixes_attribute(part, name, values) for part in parts)
        case Or(parts):
            return all(_fixes_attribute(part, name, values) for part in parts)
        case _:
            test = _test(node, values)
            return test is not None and test.name == name and test.operator in ("=", "IN")


def _branches(node: ConditionNode, names: frozenset[str], values: Values) -> list[Branch]:
    """Return the branches of a condition; an OR that tests no key attribute is a filter, not several branches."""
    match node:
        case And(parts):
            combined = [Branch()]
            for part in parts:
                branches = _branches(part, names, values)
                _check_count(len(combined) * len(branches))
                combined = [
                    Branch(one.tests + two.tests, one.filters + two.filters)
                    for one in combined
                    for two in branches
                ]
            return combined
        case Or(parts) if _tests_key(node, names, values):
            combined = []
            for part in parts:
                combined += _branches(part, names, values)
                _check_count(len(combined))
            return combined
    test = _test(node, values)
    if test is None or test.name not in names:
        return [Branch(filters=[node])]
    if test.operator != "IN":
        return [Branch([test])]
    _check_count(len(test.values))
    return [Branch([KeyTest(test.name, "=", (value,))]) for value in test.values]


def _check_count(count: int) -> None:
    if count > STATEMENT_READS_MAX:
        raise StatementError(_TOO_MANY)


def _tests_key(node: ConditionNode, names: frozenset[str], values: Values) -> bool:
    match node:
        case And(parts) | Or(parts):
            return any(_tests_key(part, names, values) for part in parts)
        case _:
            test = _test(node, values)
            return test is not None and test.name in names


def _range(branch: Branch, schema: KeySchema) -> PartitionRange:
    hash_, *sort = schema.attributes
    equal_to = [test.values[0] for test in branch.tests if test.name == hash_.name and test.operator == "="]
    partition = equal_to[0]
    try:
        bounds = partition_bounds(schema, (partition,))
        at_most_one = not sort
        for test in branch.tests:
            if sort and test.name == sort[0].name:
                at_most_one = at_most_one or test.operator == "="
                bounds = _intersect(bounds, _sort_bounds(test, schema, partition, sort[0]))
    except KeyRefused as refused:
        raise StatementError(str(refused)) from refused
    if any(not equal(partition, value) for value in equal_to):
        bounds = Bounds(bounds.lower, bounds.lower)
    return PartitionRange(partition, bounds, at_most_one)


def _sort_bounds(test: KeyTest, schema: KeySchema, partition: Value, part: KeyAttribute) -> Bounds:
    if test.operator == "=":
        if not test.values[0][part.type]:
            raise KeyRefused("empty", part.name, part.type)
        return partition_bounds(schema, (partition,), test.values)
    return partition_bounds(schema, (partition,), (), SortCondition(test.operator, test.values))


def _intersect(one: Bounds, two: Bounds) -> Bounds:
    uppers = [bounds.upper for bounds in (one, two) if bounds.upper is not None]
    lower = max(one.lower, two.lower)
    upper = min(uppers) if uppers else None
    return Bounds(lower, lower if upper is not None and upper < lower else upper)


def _is_empty(bounds: Bounds) -> bool:
    return bounds.upper is not None and bounds.upper <= bounds.lower


def _check_disjoint(branches: list[Branch], read_ranges: list[PartitionRange], schema: KeySchema) -> None:
    """Raise StatementError if two branches read the same key; branches that negate a test of the sort key are exempt."""
    sort = schema.range[0].name if schema.range else None
    checked = [
        read_range
        for read_range, branch in zip(read_ranges, branches, strict=True)
        if not _is_empty(read_range.bounds) and not any(_is_negated(part, sort) for part in branch.filters)
    ]
    checked.sort(key=lambda read_range: read_range.bounds.lower)
    for one, two in pairwise(checked):
        if one.bounds.upper is None or two.bounds.lower < one.bounds.upper:
            raise StatementError(_OVERLAPPING)


def _is_negated(node: ConditionNode, name: str | None) -> bool:
    """Return whether a condition is `<>` or NOT on an attribute."""
    match node:
        case Not(part):
            return any(_mentions(operand, name) for operand in paths_of(part))
        case Comparison("<>", left, right):
            return _mentions(left, name) or _mentions(right, name)
        case _:
            return False


def _mentions(operand: Operand, name: str | None) -> bool:
    return isinstance(operand, Path) and operand.steps[0] == name


def _order(one: PartitionRange, two: PartitionRange) -> int:
    order = compare(one.partition, two.partition)
    assert order is not None, "the values of one key attribute have one type"
    return order or (one.bounds.lower > two.bounds.lower) - (one.bounds.lower < two.bounds.lower)


def _order_pairs(one: tuple[PartitionRange, Branch], two: tuple[PartitionRange, Branch]) -> int:
    return _order(one[0], two[0])


_by_key = cmp_to_key(_order_pairs)


def _merge_ranges(ranges: list[PartitionRange]) -> list[PartitionRange]:
    """Return ranges in order without overlaps, and without empty ones; if all are empty, the first."""
    merged: list[PartitionRange] = []
    for range_ in ranges:
        if _is_empty(range_.bounds):
            continue
        last = merged[-1] if merged else None
        if last is None or not equal(last.partition, range_.partition) or _ends_before(last, range_):
            merged.append(range_)
            continue
        uppers = [bounds.upper for bounds in (last.bounds, range_.bounds) if bounds.upper is not None]
        upper = max(uppers) if len(uppers) == 2 else None
        merged[-1] = PartitionRange(last.partition, Bounds(last.bounds.lower, upper), at_most_one=False)
    return merged or ranges[:1]


def _ends_before(one: PartitionRange, two: PartitionRange) -> bool:
    return one.bounds.upper is not None and one.bounds.upper <= two.bounds.lower


def _is_exact(branch: Branch) -> bool:
    """Return whether the range of a branch expresses all its conditions."""
    return len({test.name for test in branch.tests}) == len(branch.tests)


def _filter_attributes(branch: Branch) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for node in branch.filters:
        for leaf in leaves_of(node):
            for path in paths_of(leaf):
                names[str(steps_of(path)[0])] = None
    return tuple(names)
