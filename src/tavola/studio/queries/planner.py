"""Plan conditions as one GetItem, Query or Scan, and explain the choice.

A Query needs `=` on every partition attribute. Sort attributes are used from the left, each with `=` until one has a range.
The remaining conditions become a filter. DynamoDB rejects key attributes in a Query's filter, so the studio tests such a
condition on the returned items itself; that is cheaper than the Scan it would otherwise take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.design.access_paths import RANGE_OPERATORS, match_key
from tavola.expressions.nodes import And, Between, ConditionNode, Path
from tavola.expressions.nodes import Literal as Constant
from tavola.expressions.renderer import Renderer
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.conditions import (
    QueryCondition,
    check_condition,
    combine_conditions,
    condition_node,
)
from tavola.studio.queries.read_targets import ReadTarget, ReadTargets
from tavola.studio.types import AttributeValue
from tavola.values import compare

ReadOperation = Literal["GetItem", "Query", "Scan"]
ConditionRole = Literal["key", "filter", "studio"]

_ORDER = {"GetItem": 0, "Query": 1, "Scan": 2}
_FILTER: ConditionRole = "filter"
_TYPES = {"S": "text", "N": "a number", "B": "bytes"}


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """What is asked of a table; without an index the table is asked, or the index that serves the conditions best."""

    table: str
    index: str | None = None
    conditions: tuple[QueryCondition, ...] = ()
    choose: bool = True  # another way than the table may be taken where no index is named
    consistent: bool = False
    descending: bool = False
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class ReadRoute:
    """One way to answer: which conditions are the key's (by their numbers), and which are left."""

    target: ReadTarget
    operation: ReadOperation
    roles: tuple[ConditionRole, ...]  # of each condition
    pinned: int  # sort attributes that are asked
    nodes: tuple[ConditionNode, ...]  # of the key condition
    partition: Mapping[str, AttributeValue]  # what is asked of the partition key

    def numbers(self, role: ConditionRole) -> tuple[int, ...]:
        """Return which conditions have a role."""
        return tuple(at for at, told in enumerate(self.roles) if told == role)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The way that is taken, the request without a page's limits, and what a person should know of it."""

    route: ReadRoute
    request: Mapping[str, Any]
    studio_test: (
        ConditionNode | None
    )  # what DynamoDB could not be asked, and the studio holds against the items
    consistent: bool
    sentence: str
    why: str
    notes: tuple[str, ...]
    others: tuple[ReadRoute, ...]  # further ways that would be no Scan


def plan_query(ways: ReadTargets, question: ItemQuery, *, together: bool = False) -> QueryPlan:
    """Return how a question is answered; refuse one that cannot be asked.

    `together` says that who writes the items writes all attributes of an index's key or none, as a design's client does.
    """
    question = replace(question, conditions=tuple(map(check_condition, question.conditions)))
    asked = ways.target(question.index)
    first = _route(ways, asked, question.conditions)
    unheld = _unprojected_attributes(ways, first, question.conditions)
    if unheld:
        raise _unprojected_error(asked, unheld)
    routes = [first]
    passed: list[str] = []
    if asked is ways.table_target and question.choose:
        found = [_route(ways, way, question.conditions) for way in ways.indexes if way.ready]
        # A consistent answer is the table's to give, or a local index's, wherever that is no Scan.
        found = [
            each
            for each in found
            if each.target.local or not question.consistent or first.operation == "Scan"
        ]
        passed = [
            told
            for each in found
            if each.operation == "Query" and (told := _rejection_reason(ways, each, question.conditions))
        ]
        indexed = [each for each in found if not _rejection_reason(ways, each, question.conditions)]
        # An index has only items with all of its key; where the table can be asked, what it would miss must be nothing.
        routes += [each for each in indexed if first.operation == "Scan" or _is_complete(each)]
    routes.sort(key=_preference)
    route = first if routes[0].operation == "Scan" else routes[0]
    consistent = question.consistent and (route.target.index is None or route.target.local)
    return QueryPlan(
        route,
        _request(ways, route, question, consistent),
        combine_conditions([question.conditions[at] for at in route.numbers("studio")]),
        consistent,
        _sentence(route, question.conditions),
        _why(ways, route, question.conditions, bool(passed)),
        (*_notes(ways, route, question, together), *(passed if route.operation == "Scan" else ())),
        tuple(each for each in routes if each.operation != "Scan" and each is not route),
    )


def _unprojected_attributes(
    ways: ReadTargets, route: ReadRoute, conditions: Sequence[QueryCondition]
) -> tuple[str, ...]:
    """Return what a filter names that the index does not hold: a Query of it is refused, a Scan finds nothing."""
    held = ways.projected_attributes(route.target)
    if held is None:
        return ()
    names = [str(conditions[at].steps[0]) for at in route.numbers("filter")]
    return tuple(name for name in dict.fromkeys(names) if name not in held)


def _unprojected_error(way: ReadTarget, names: Sequence[str]) -> RequestRefused:
    return RequestRefused(
        "filter-unprojected",
        "The index does not hold what is asked",
        f"{way.index} has no {_join_words(names)} in its entries, and a filter there finds nothing by what an index lacks.",
        "Ask the table, or project the attribute into the index.",
    )


def _rejection_reason(ways: ReadTargets, route: ReadRoute, conditions: Sequence[QueryCondition]) -> str:
    """Return why an index is not taken although it could be asked; empty: nothing stands against it."""
    lacked = _unprojected_attributes(ways, route, conditions)
    if lacked:
        return (
            f"{route.target.index} would make it a Query, but it does not hold {_join_words(lacked)}: "
            "leave that condition out to use it."
        )
    absent = _absent_sort_attributes(route, conditions)
    if absent:
        return (
            f"{route.target.index} would make it a Query, but items without {_join_words(absent)} are not in it, and they are "
            "asked for too: ask on its tab to leave them out."
        )
    return ""


def _absent_sort_attributes(route: ReadRoute, conditions: Sequence[QueryCondition]) -> tuple[str, ...]:
    """Return the sort attributes of an index of which a condition holds where an item has none: these are not in it."""
    names = {str(each.steps[0]) for each in conditions if each.matches_absent}
    return tuple(name for name in route.target.range[route.pinned :] if name in names)


def _is_complete(route: ReadRoute) -> bool:
    """Tell whether every item that the conditions hold of is in the index: each part of its key is asked."""
    return route.operation != "Scan" and route.pinned == len(route.target.range)


def _preference(route: ReadRoute) -> tuple[Any, ...]:
    way = route.target
    left = len(route.numbers("studio"))
    return (
        _ORDER[route.operation], -route.pinned, left, way.index is not None, way.projection != "ALL", not way.local,
        way.index or "",
    )  # fmt: skip


def _route(ways: ReadTargets, way: ReadTarget, conditions: Sequence[QueryCondition]) -> ReadRoute:
    equal = {name: at for name in way.attributes if (at := _equality(ways, name, conditions)) is not None}
    ranges = {name: _range_conditions(ways, name, conditions) for name in way.range}
    match = match_key(way.hash, way.range, equals=equal.__contains__, ranges=lambda name: bool(ranges[name]))
    if match.missing:
        return ReadRoute(way, "Scan", tuple(_FILTER for _ in conditions), 0, (), {})
    compared = (*way.hash, *match.equal)
    nodes = [condition_node(conditions[equal[name]]) for name in compared]
    taken = {equal[name] for name in compared}
    if match.ranged:
        name = match.rest[0]
        nodes.append(_range_node(name, [conditions[at] for at in ranges[name]]))
        taken.update(ranges[name])
    partition = {name: conditions[equal[name]].values[0] for name in way.hash}
    pinned = len(match.equal) + match.ranged
    whole = way.index is None and len(taken) == len(conditions) == len(way.attributes)
    exact = whole and all(condition.operator == "=" for condition in conditions)
    roles = tuple(_role(way, condition, at in taken) for at, condition in enumerate(conditions))
    return ReadRoute(way, "GetItem" if exact else "Query", roles, pinned, tuple(nodes), partition)


def _role(way: ReadTarget, condition: QueryCondition, taken: bool) -> ConditionRole:
    if taken:
        return "key"
    return "studio" if str(condition.steps[0]) in way.attributes else "filter"


def _fits(ways: ReadTargets, name: str, condition: QueryCondition) -> bool:
    """Tell whether a condition is of a key attribute, with values that it may have: of its type, and never empty."""
    wanted = ways.types[name]
    return condition.name == name and all(value.get(wanted) for value in condition.values)


def _equality(ways: ReadTargets, name: str, conditions: Sequence[QueryCondition]) -> int | None:
    for at, condition in enumerate(conditions):
        if condition.operator == "=" and _fits(ways, name, condition):
            return at
    return None


def _range_conditions(ways: ReadTargets, name: str, conditions: Sequence[QueryCondition]) -> tuple[int, ...]:
    """Return the conditions that make the range of a sort attribute: one, or >= and <= together."""
    found = {
        condition.operator: at
        for at, condition in reversed(list(enumerate(conditions)))
        if condition.operator in RANGE_OPERATORS and _fits(ways, name, condition)
    }
    if not found:
        return ()
    if ">=" in found and "<=" in found:
        lower, upper = found[">="], found["<="]
        # DynamoDB refuses a range that ends before it begins; asked one by one, nothing is in both.
        if compare(dict(conditions[lower].values[0]), dict(conditions[upper].values[0])) in (-1, 0):
            return (lower, upper)
    return (min(found.values()),)


def _range_node(name: str, conditions: Sequence[QueryCondition]) -> ConditionNode:
    if len(conditions) == 1:
        return condition_node(conditions[0])
    lower, upper = (Constant(dict(condition.values[0])) for condition in conditions)
    return Between(Path((name,)), lower, upper)


def _request(ways: ReadTargets, route: ReadRoute, question: ItemQuery, consistent: bool) -> dict[str, Any]:
    request: dict[str, Any] = {"TableName": ways.table}
    conditions = question.conditions
    if route.operation == "GetItem":
        request["Key"] = _key(route.target, conditions)
    else:
        if route.target.index is not None:
            request["IndexName"] = route.target.index
        renderer = Renderer()
        if route.nodes:
            node = route.nodes[0] if len(route.nodes) == 1 else And(route.nodes)
            request["KeyConditionExpression"] = renderer.condition(node)
        left = combine_conditions([conditions[at] for at in route.numbers("filter")])
        if left is not None:
            request["FilterExpression"] = renderer.condition(left)
        if renderer.names:
            request["ExpressionAttributeNames"] = renderer.names
        if renderer.values:
            request["ExpressionAttributeValues"] = renderer.values
        if question.descending and route.operation == "Query":
            request["ScanIndexForward"] = False
    if consistent:
        request["ConsistentRead"] = True
    return request


def _key(way: ReadTarget, conditions: Sequence[QueryCondition]) -> dict[str, AttributeValue]:
    held = {condition.name: condition.values[0] for condition in conditions}
    return {name: held[name] for name in way.attributes}


def _sentence(route: ReadRoute, conditions: Sequence[QueryCondition]) -> str:
    keys = _join_words([str(conditions[at]) for at in route.numbers("key")])
    match route.operation:
        case "GetItem":
            return f"Get of one item: {keys}."
        case "Query":
            told = f"Query of {route.target}: {keys}"
        case "Scan":
            told = f"Scan of {route.target}: every item is read"
    left = route.numbers("filter")
    if left:
        told += f"; then {_join_words([str(conditions[at]) for at in left])} filters what was read"
    kept = route.numbers("studio")
    if kept:
        told += f"; {_join_words([str(conditions[at]) for at in kept])} is tested by the studio on what comes"
    return told + "."


def _why(ways: ReadTargets, route: ReadRoute, conditions: Sequence[QueryCondition], passed: bool) -> str:
    way = route.target
    match route.operation:
        case "GetItem":
            return "Every part of the table's key is given with =, and nothing else is asked."
        case "Query":
            told = f"{_join_words(way.hash)}, the partition key of {way}, is given with ="
            if route.pinned:
                told += f", and its sort key {_join_words(way.range[: route.pinned])} bounds what is read"
            elif way.range:
                told += (
                    f"; its sort key {_join_words(way.range)} is not asked, so the whole collection is read"
                )
            return told + "."
        case "Scan":
            if not conditions:
                return "Nothing is asked, so everything is read, page by page."
            if passed:
                return "No index whose partition key is given has all that is asked for."
            keys = [_join_words(each.hash) for each in (ways.targets if way is ways.table_target else (way,))]
            return f"No partition key is given with = (it would be {' or '.join(dict.fromkeys(keys))})."


def _notes(ways: ReadTargets, route: ReadRoute, question: ItemQuery, together: bool) -> tuple[str, ...]:
    notes: list[str] = []
    way = route.target
    if question.consistent and way.index is not None and not way.local:
        notes.append("A global index is never read consistently; what comes may be a moment old.")
    if question.descending and route.operation == "Scan":
        notes.append("A Scan has no first and last: it comes as the table keeps it.")
    if way.projection != "ALL":
        notes.append(
            f"Entries of {way.index} have only a part of the item's attributes; open one to see it whole."
        )
    if way.index is not None and question.index is None and not _is_complete(route) and not together:
        lacked = _join_words(way.range[route.pinned :])
        notes.append(
            f"Items without {lacked} are not in {way.index}, and not found there; ask the table alone for them."
        )
    for condition in question.conditions:
        name = condition.name
        if name is None or name not in ways.types:
            continue
        wanted = ways.types[name]
        if (condition.operator == "=" or condition.operator in RANGE_OPERATORS) and not _fits(
            ways, name, condition
        ):
            notes.append(
                f"{name} is never empty in an item with this key, so that an empty value is no key condition."
                if all(wanted in value for value in condition.values)
                else f"{name} is {_TYPES[wanted]} in every item with this key; the value is of another type."
            )
        if condition.operator == "in" and name in {each for way in ways.targets for each in way.hash}:
            notes.append(f"IN is no key condition: ask for one value of {name} with = to have a Query.")
    return tuple(dict.fromkeys(notes))


def _join_words(words: Sequence[str]) -> str:
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
