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
from tavola.design.text import join_names
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
from tavola.studio.table_layouts import TableLayout, TargetLayout
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
    choose: bool = True  # if no index is named, the planner may choose one
    consistent: bool = False
    descending: bool = False
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class ReadRoute:
    """One table or index that can answer a query, and the role of each condition there."""

    target: TargetLayout
    operation: ReadOperation
    roles: tuple[ConditionRole, ...]  # of each condition
    pinned: int  # sort attributes that are asked
    nodes: tuple[ConditionNode, ...]  # of the key condition
    partition: Mapping[str, AttributeValue]  # what is asked of the partition key

    def numbers(self, role: ConditionRole) -> tuple[int, ...]:
        """Return which conditions have a role."""
        return tuple(at for at, condition_role in enumerate(self.roles) if condition_role == role)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The chosen route, its request without page limits, and explanations for the user."""

    route: ReadRoute
    request: Mapping[str, Any]
    studio_test: (
        ConditionNode | None
    )  # what DynamoDB could not be asked, and the studio holds against the items
    consistent: bool
    sentence: str
    why: str
    notes: tuple[str, ...]
    others: tuple[ReadRoute, ...]  # further layout that would be no Scan


def plan_query(layout: TableLayout, question: ItemQuery, *, together: bool = False) -> QueryPlan:
    """Return how a question is answered; refuse one that cannot be asked.

    `together` says that who writes the items writes all attributes of an index's key or none, as a design's client does.
    """
    question = replace(question, conditions=tuple(map(check_condition, question.conditions)))
    requested = layout.target(question.index)
    first = _route(layout, requested, question.conditions)
    unheld = _unprojected_attributes(layout, first, question.conditions)
    if unheld:
        raise _unprojected_error(requested, unheld)
    routes = [first]
    passed: list[str] = []
    if requested is layout.table_target and question.choose:
        candidates = [
            _route(layout, target, question.conditions) for target in layout.indexes if target.ready
        ]
        # A consistent answer is the table's to give, or a local index's, wherever that is no Scan.
        candidates = [
            each
            for each in candidates
            if each.target.local or not question.consistent or first.operation == "Scan"
        ]
        passed = [
            rejected
            for each in candidates
            if each.operation == "Query"
            and (rejected := _rejection_reason(layout, each, question.conditions))
        ]
        indexed = [each for each in candidates if not _rejection_reason(layout, each, question.conditions)]
        # An index has only items with all of its key; where the table can be asked, what it would miss must be nothing.
        routes += [each for each in indexed if first.operation == "Scan" or _is_complete(each)]
    routes.sort(key=_preference)
    route = first if routes[0].operation == "Scan" else routes[0]
    consistent = question.consistent and (route.target.index is None or route.target.local)
    return QueryPlan(
        route,
        _request(layout, route, question, consistent),
        combine_conditions([question.conditions[at] for at in route.numbers("studio")]),
        consistent,
        _sentence(route, question.conditions),
        _why(layout, route, question.conditions, bool(passed)),
        (*_notes(layout, route, question, together), *(passed if route.operation == "Scan" else ())),
        tuple(each for each in routes if each.operation != "Scan" and each is not route),
    )


def _unprojected_attributes(
    layout: TableLayout, route: ReadRoute, conditions: Sequence[QueryCondition]
) -> tuple[str, ...]:
    """Return what a filter names that the index does not hold: a Query of it is refused, a Scan finds nothing."""
    projected = route.target.projected
    if projected is None:
        return ()
    names = [str(conditions[at].steps[0]) for at in route.numbers("filter")]
    return tuple(name for name in dict.fromkeys(names) if name not in projected)


def _unprojected_error(target: TargetLayout, names: Sequence[str]) -> RequestRefused:
    return RequestRefused(
        "filter-unprojected",
        "The index does not hold what is asked",
        f"{target.index} has no {join_names(names)} in its entries, and a filter there finds nothing by what an index lacks.",
        "Ask the table, or project the attribute into the index.",
    )


def _rejection_reason(layout: TableLayout, route: ReadRoute, conditions: Sequence[QueryCondition]) -> str:
    """Return why an index is not taken although it could be asked; empty: nothing stands against it."""
    lacked = _unprojected_attributes(layout, route, conditions)
    if lacked:
        return (
            f"{route.target.index} would make it a Query, but it does not hold {join_names(lacked)}: "
            "leave that condition out to use it."
        )
    absent = _absent_sort_attributes(route, conditions)
    if absent:
        return (
            f"{route.target.index} would make it a Query, but items without {join_names(absent)} are not in it, and they are "
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
    target = route.target
    untested = len(route.numbers("studio"))
    return (
        _ORDER[route.operation], -route.pinned, untested, target.index is not None, target.projection != "ALL", not target.local,
        target.index or "",
    )  # fmt: skip


def _route(layout: TableLayout, target: TargetLayout, conditions: Sequence[QueryCondition]) -> ReadRoute:
    equal = {
        name: at for name in target.attributes if (at := _equality(layout, name, conditions)) is not None
    }
    ranges = {name: _range_conditions(layout, name, conditions) for name in target.range}
    match = match_key(
        target.hash, target.range, equals=equal.__contains__, ranges=lambda name: bool(ranges[name])
    )
    if match.missing:
        return ReadRoute(target, "Scan", tuple(_FILTER for _ in conditions), 0, (), {})
    compared = (*target.hash, *match.equal)
    nodes = [condition_node(conditions[equal[name]]) for name in compared]
    taken = {equal[name] for name in compared}
    if match.ranged:
        name = match.rest[0]
        nodes.append(_range_node(name, [conditions[at] for at in ranges[name]]))
        taken.update(ranges[name])
    partition = {name: conditions[equal[name]].values[0] for name in target.hash}
    pinned = len(match.equal) + match.ranged
    whole = target.index is None and len(taken) == len(conditions) == len(target.attributes)
    exact = whole and all(condition.operator == "=" for condition in conditions)
    roles = tuple(_role(target, condition, at in taken) for at, condition in enumerate(conditions))
    return ReadRoute(target, "GetItem" if exact else "Query", roles, pinned, tuple(nodes), partition)


def _role(target: TargetLayout, condition: QueryCondition, taken: bool) -> ConditionRole:
    if taken:
        return "key"
    return "studio" if str(condition.steps[0]) in target.attributes else "filter"


def _fits(layout: TableLayout, name: str, condition: QueryCondition) -> bool:
    """Tell whether a condition is of a key attribute, with values that it may have: of its type, and never empty."""
    key_type = layout.types[name]
    return condition.name == name and all(value.get(key_type) for value in condition.values)


def _equality(layout: TableLayout, name: str, conditions: Sequence[QueryCondition]) -> int | None:
    for at, condition in enumerate(conditions):
        if condition.operator == "=" and _fits(layout, name, condition):
            return at
    return None


def _range_conditions(
    layout: TableLayout, name: str, conditions: Sequence[QueryCondition]
) -> tuple[int, ...]:
    """Return the conditions that make the range of a sort attribute: one, or >= and <= together."""
    by_operator = {
        condition.operator: at
        for at, condition in reversed(list(enumerate(conditions)))
        if condition.operator in RANGE_OPERATORS and _fits(layout, name, condition)
    }
    if not by_operator:
        return ()
    if ">=" in by_operator and "<=" in by_operator:
        lower, upper = by_operator[">="], by_operator["<="]
        # DynamoDB refuses a range that ends before it begins; asked one by one, nothing is in both.
        if compare(dict(conditions[lower].values[0]), dict(conditions[upper].values[0])) in (-1, 0):
            return (lower, upper)
    return (min(by_operator.values()),)


def _range_node(name: str, conditions: Sequence[QueryCondition]) -> ConditionNode:
    if len(conditions) == 1:
        return condition_node(conditions[0])
    lower, upper = (Constant(dict(condition.values[0])) for condition in conditions)
    return Between(Path((name,)), lower, upper)


def _request(layout: TableLayout, route: ReadRoute, question: ItemQuery, consistent: bool) -> dict[str, Any]:
    request: dict[str, Any] = {"TableName": layout.table}
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
        filter_node = combine_conditions([conditions[at] for at in route.numbers("filter")])
        if filter_node is not None:
            request["FilterExpression"] = renderer.condition(filter_node)
        if renderer.names:
            request["ExpressionAttributeNames"] = renderer.names
        if renderer.values:
            request["ExpressionAttributeValues"] = renderer.values
        if question.descending and route.operation == "Query":
            request["ScanIndexForward"] = False
    if consistent:
        request["ConsistentRead"] = True
    return request


def _key(target: TargetLayout, conditions: Sequence[QueryCondition]) -> dict[str, AttributeValue]:
    values = {condition.name: condition.values[0] for condition in conditions}
    return {name: values[name] for name in target.attributes}


def _sentence(route: ReadRoute, conditions: Sequence[QueryCondition]) -> str:
    keys = join_names([str(conditions[at]) for at in route.numbers("key")])
    match route.operation:
        case "GetItem":
            return f"Get of one item: {keys}."
        case "Query":
            sentence = f"Query of {route.target}: {keys}"
        case "Scan":
            sentence = f"Scan of {route.target}: every item is read"
    filters = route.numbers("filter")
    if filters:
        sentence += f"; then {join_names([str(conditions[at]) for at in filters])} filters what was read"
    studio_conditions = route.numbers("studio")
    if studio_conditions:
        sentence += f"; {join_names([str(conditions[at]) for at in studio_conditions])} is tested by the studio on what comes"
    return sentence + "."


def _why(layout: TableLayout, route: ReadRoute, conditions: Sequence[QueryCondition], passed: bool) -> str:
    target = route.target
    match route.operation:
        case "GetItem":
            return "Every part of the table's key is given with =, and nothing else is asked."
        case "Query":
            sentence = f"{join_names(target.hash)}, the partition key of {target}, is given with ="
            if route.pinned:
                sentence += (
                    f", and its sort key {join_names(target.range[: route.pinned])} bounds what is read"
                )
            elif target.range:
                sentence += (
                    f"; its sort key {join_names(target.range)} is not asked, so the whole collection is read"
                )
            return sentence + "."
        case "Scan":
            if not conditions:
                return "Nothing is asked, so everything is read, page by page."
            if passed:
                return "No index whose partition key is given has all that is asked for."
            keys = [
                join_names(each.hash)
                for each in (layout.targets if target is layout.table_target else (target,))
            ]
            return f"No partition key is given with = (it would be {' or '.join(dict.fromkeys(keys))})."


def _notes(layout: TableLayout, route: ReadRoute, question: ItemQuery, together: bool) -> tuple[str, ...]:
    notes: list[str] = []
    target = route.target
    if question.consistent and target.index is not None and not target.local:
        notes.append("A global index is never read consistently; what comes may be a moment old.")
    if question.descending and route.operation == "Scan":
        notes.append("A Scan has no first and last: it comes as the table keeps it.")
    if target.projection != "ALL":
        notes.append(
            f"Entries of {target.index} have only a part of the item's attributes; open one to see it whole."
        )
    if target.index is not None and question.index is None and not _is_complete(route) and not together:
        lacked = join_names(target.range[route.pinned :])
        notes.append(
            f"Items without {lacked} are not in {target.index}, and not found there; ask the table alone for them."
        )
    for condition in question.conditions:
        name = condition.name
        if name is None or name not in layout.types:
            continue
        key_type = layout.types[name]
        if (condition.operator == "=" or condition.operator in RANGE_OPERATORS) and not _fits(
            layout, name, condition
        ):
            notes.append(
                f"{name} is never empty in an item with this key, so that an empty value is no key condition."
                if all(key_type in value for value in condition.values)
                else f"{name} is {_TYPES[key_type]} in every item with this key; the value is of another type."
            )
        if condition.operator == "in" and name in {each for target in layout.targets for each in target.hash}:
            notes.append(f"IN is no key condition: ask for one value of {name} with = to have a Query.")
    return tuple(dict.fromkeys(notes))
