"""Reads: the key ranges of a WHERE clause, and the single item it selects.

A SELECT is a query if each way to satisfy its WHERE fixes the partition key with `=` or IN; otherwise it is a scan.
Each such way is a *branch* and reads one key range. The clause is then evaluated as a filter over the rows read, so a
branch may read too much but never too little.
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
from tavola.expressions.paths import steps_of
from tavola.expressions.walks import leaves_of, paths_of
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
    """One way to satisfy a WHERE clause: its key tests, and its other conditions."""

    tests: list[KeyTest] = field(default_factory=list)
    filters: list[ConditionNode] = field(default_factory=list)


class Range(Struct, frozen=True):
    """The key range of one partition that a query reads."""

    partition: Value
    bounds: Bounds
    at_most_one: bool  # every key attribute is fixed by `=`


class Ranges(Struct, frozen=True):
    """All ranges of a query in key order, and whether they express the whole clause."""

    ranges: tuple[Range, ...]
    exact: bool
    filtered: tuple[tuple[str, ...], ...]  # for each branch, the attributes it filters by

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return sum(
            not at or not equal(self.ranges[at - 1].partition, each.partition)
            for at, each in enumerate(self.ranges)
        )

    def ordered(self, *, descending: bool, reverse: bool) -> list[Range]:
        """Return the ranges with partitions, and ranges within a partition, in the given order."""
        if descending == reverse:
            return list(self.ranges[::-1] if reverse else self.ranges)
        grouped: list[list[Range]] = []
        for each in self.ranges:
            if grouped and equal(grouped[-1][0].partition, each.partition):
                grouped[-1].append(each)
            else:
                grouped.append([each])
        if descending:
            grouped.reverse()
        return [each for group in grouped for each in (group[::-1] if reverse else group)]


class SingleKey(Struct, frozen=True):
    """The item that a WHERE clause selects by equalities on its key."""

    key: dict[str, Value]
    repeated: str | None  # a key attribute that is to equal two values
    has_other_conditions: bool  # the clause has other conditions too


def ranges_of(tree: ConditionNode | None, schema: KeySchema, values: Values) -> Ranges | None:
    """Return the ranges that a SELECT queries, in key order; None if it must scan."""
    if tree is None or not _fixes_attribute(tree, schema.hash[0].name, values):
        return None
    names = frozenset(schema.names)
    branches = _branches(tree, names, values)
    check_types(branches, schema)
    if len(branches) == 1:
        (branch,) = branches
        exact = not branch.filters and _is_exact(branch)
        return Ranges((_range(branch, schema),), exact, (_filtered(branch),))
    found = [_range(branch, schema) for branch in branches]
    _check_disjoint(branches, found, schema)
    ordered = sorted(zip(found, branches, strict=True), key=_by_key)
    filtered = tuple(_filtered(branch) for _, branch in ordered)
    return Ranges(tuple(_merge_ranges([each for each, _ in ordered])), False, filtered)


def branches_of(tree: ConditionNode, schema: KeySchema, values: Values) -> list[Branch]:
    """Return the ways to satisfy a clause that fixes the partition key; none if it does not."""
    if not _fixes_attribute(tree, schema.hash[0].name, values):
        return []
    return _branches(tree, frozenset(schema.names), values)


def check_types(branches: list[Branch], schema: KeySchema) -> None:
    """Refuse a test of a key attribute with a value of another type than the schema's."""
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
    """Return the key that a clause selects, None if it does not.

    `members`: IN with one value counts as `=`.
    """
    key: dict[str, Value] = {}
    doubled: str | None = None
    more = False
    for part in _conjuncts(tree):
        test = _test(part, values)
        equality = test is not None and len(test.values) == 1 and test.operator in ("=", "IN")
        if test is None or not equality or test.name not in schema.names:
            more = True
        elif test.operator == "IN" and not members:
            more = True
        elif test.name not in key:
            key[test.name] = test.values[0]
        elif not equal(key[test.name], test.values[0]):
            doubled, more = test.name, True
    if len(key) < len(schema.names):
        return None
    return SingleKey({name: key[name] for name in schema.names}, doubled, more)


def pinned_values(tree: ConditionNode, values: Values) -> dict[str, list[Value]]:
    """Return, by top-level attribute, the values of which it must equal one for a condition to hold."""
    match tree:
        case And(parts):
            found: dict[str, list[Value]] = {}
            for part in parts:
                for name, pinned in pinned_values(part, values).items():
                    found.setdefault(name, []).extend(pinned)
            return found
        case Or(parts):
            each = [pinned_values(part, values) for part in parts]
            shared = [name for name in each[0] if all(name in pinned for pinned in each)]
            return {name: [value for pinned in each for value in pinned[name]] for name in shared}
        case _:
            test = _test(tree, values)
            if test is None or test.operator not in ("=", "IN"):
                return {}
            return {test.name: list(test.values)}


def _test(node: ConditionNode, values: Values) -> KeyTest | None:
    """Return a leaf as a test of one top-level attribute; None for anything else."""
    match node:
        case Comparison(operator, Path() as path, ValueRef(ref)) if operator in _MIRRORED:
            return _named(path, operator, (values[ref],))
        case Comparison(operator, ValueRef(ref), Path() as path) if operator in _MIRRORED:
            return _named(path, _MIRRORED[operator], (values[ref],))
        case Between(Path() as path, ValueRef(lower), ValueRef(upper)):
            return _named(path, "BETWEEN", (values[lower], values[upper]))
        case FunctionCall("begins_with", (Path() as path, ValueRef(ref))):
            return _named(path, "begins_with", (values[ref],))
        case InList(Path() as path, choices):
            given = [values[choice.name] for choice in choices if isinstance(choice, ValueRef)]
            return _named(path, "IN", tuple(given)) if len(given) == len(choices) else None
        case _:
            return None


def _named(path: Path, operator: str, given: tuple[Value, ...]) -> KeyTest | None:
    steps = steps_of(path)
    return KeyTest(str(steps[0]), operator, given) if len(steps) == 1 else None


def _conjuncts(tree: ConditionNode | None) -> Iterator[ConditionNode]:
    pending = [] if tree is None else [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending.extend(reversed(node.parts))
        else:
            yield node


def _fixes_attribute(node: ConditionNode, name: str, values: Values) -> bool:
    """Return whether every way to satisfy a condition fixes an attribute with `=` or IN."""
    match node:
        case And(parts):
            return any(_fixes_attribute(part, name, values) for part in parts)
        case Or(parts):
            return all(_fixes_attribute(part, name, values) for part in parts)
        case _:
            test = _test(node, values)
            return test is not None and test.name == name and test.operator in ("=", "IN")


def _branches(node: ConditionNode, names: frozenset[str], values: Values) -> list[Branch]:
    """Return the ways to satisfy a condition, distinguished only by their key tests."""
    match node:
        case And(parts):
            found = [Branch()]
            for part in parts:
                ways = _branches(part, names, values)
                _check_count(len(found) * len(ways))
                found = [
                    Branch(one.tests + way.tests, one.filters + way.filters) for one in found for way in ways
                ]
            return found
        case Or(parts) if _tests_key(node, names, values):
            found = []
            for part in parts:
                found += _branches(part, names, values)
                _check_count(len(found))
            return found
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


def _range(branch: Branch, schema: KeySchema) -> Range:
    hash_, *sort = schema.attributes
    equal_to = [test.values[0] for test in branch.tests if test.name == hash_.name and test.operator == "="]
    partition = equal_to[0]
    try:
        bounds = partition_bounds(schema, (partition,))
        at_most_one = not sort
        for test in branch.tests:
            if sort and test.name == sort[0].name:
                at_most_one = at_most_one or test.operator == "="
                bounds = _both(bounds, _sorted(test, schema, partition, sort[0]))
    except KeyRefused as refused:
        raise StatementError(str(refused)) from refused
    if any(not equal(partition, value) for value in equal_to):
        bounds = Bounds(bounds.lower, bounds.lower)
    return Range(partition, bounds, at_most_one)


def _sorted(test: KeyTest, schema: KeySchema, partition: Value, part: KeyAttribute) -> Bounds:
    if test.operator == "=":
        if not test.values[0][part.type]:
            raise KeyRefused("empty", part.name, part.type)
        return partition_bounds(schema, (partition,), test.values)
    return partition_bounds(schema, (partition,), (), SortCondition(test.operator, test.values))


def _both(one: Bounds, two: Bounds) -> Bounds:
    uppers = [bounds.upper for bounds in (one, two) if bounds.upper is not None]
    lower = max(one.lower, two.lower)
    upper = min(uppers) if uppers else None
    return Bounds(lower, lower if upper is not None and upper < lower else upper)


def _is_empty(bounds: Bounds) -> bool:
    return bounds.upper is not None and bounds.upper <= bounds.lower


def _check_disjoint(branches: list[Branch], found: list[Range], schema: KeySchema) -> None:
    """Refuse two branches that read a key twice; a negated test of the sort key is exempt."""
    sort = schema.range[0].name if schema.range else None
    checked = [
        each
        for each, branch in zip(found, branches, strict=True)
        if not _is_empty(each.bounds) and not any(_denies(part, sort) for part in branch.filters)
    ]
    checked.sort(key=lambda each: each.bounds.lower)
    for one, two in pairwise(checked):
        if one.bounds.upper is None or two.bounds.lower < one.bounds.upper:
            raise StatementError(_OVERLAPPING)


def _denies(node: ConditionNode, name: str | None) -> bool:
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


def _order(one: Range, two: Range) -> int:
    order = compare(one.partition, two.partition)
    assert order is not None, "the values of one key attribute have one type"
    return order or (one.bounds.lower > two.bounds.lower) - (one.bounds.lower < two.bounds.lower)


def _order_pairs(one: tuple[Range, Branch], two: tuple[Range, Branch]) -> int:
    return _order(one[0], two[0])


_by_key = cmp_to_key(_order_pairs)


def _merge_ranges(ranges: list[Range]) -> list[Range]:
    """Return ranges in order without overlaps, and without empty ones unless all are."""
    merged: list[Range] = []
    for each in ranges:
        if _is_empty(each.bounds):
            continue
        last = merged[-1] if merged else None
        if last is None or not equal(last.partition, each.partition) or _ends_before(last, each):
            merged.append(each)
            continue
        uppers = [bounds.upper for bounds in (last.bounds, each.bounds) if bounds.upper is not None]
        upper = max(uppers) if len(uppers) == 2 else None
        merged[-1] = Range(last.partition, Bounds(last.bounds.lower, upper), at_most_one=False)
    return merged or ranges[:1]


def _ends_before(one: Range, two: Range) -> bool:
    return one.bounds.upper is not None and one.bounds.upper <= two.bounds.lower


def _is_exact(branch: Branch) -> bool:
    """Return whether the range of a branch expresses all its conditions."""
    return len({test.name for test in branch.tests}) == len(branch.tests)


def _filtered(branch: Branch) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for node in branch.filters:
        for leaf in leaves_of(node):
            for path in paths_of(leaf):
                names[str(steps_of(path)[0])] = None
    return tuple(names)
