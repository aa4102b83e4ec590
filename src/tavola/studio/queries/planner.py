"""Plan conditions as one GetItem, Query or Scan, and explain the choice.

A Query needs `=` on every partition attribute. Sort attributes are used from the left, each with `=` until one has a range.
The remaining conditions become a filter. DynamoDB rejects key attributes in a Query's filter, so the studio tests such
conditions on the returned items itself, which is cheaper than a Scan. Which key attributes a query can use is decided by
`design.access_paths.match_key`, as in the linter and the solver.
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

_OPERATION_RANK = {"GetItem": 0, "Query": 1, "Scan": 2}
_FILTER: ConditionRole = "filter"
_TYPES = {"S": "a string", "N": "a number", "B": "binary"}


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """A query of a table; without an index the planner uses the table or the best index."""

    table: str
    index: str | None = None
    conditions: tuple[QueryCondition, ...] = ()
    choose: bool = True  # whether the planner may choose an index
    consistent: bool = False
    descending: bool = False
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class ReadRoute:
    """A table or index that can execute a query, and the role of each condition there."""

    target: TargetLayout
    operation: ReadOperation
    roles: tuple[ConditionRole, ...]  # of each condition
    pinned: int  # number of sort attributes in the key condition
    nodes: tuple[ConditionNode, ...]  # of the key condition
    partition: Mapping[str, AttributeValue]  # the partition key

    def positions(self, role: ConditionRole) -> tuple[int, ...]:
        """Return the positions of conditions with a role."""
        return tuple(position for position, condition_role in enumerate(self.roles) if condition_role == role)


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The chosen route, its request without page limits, and explanations for the user."""

    route: ReadRoute
    request: Mapping[str, Any]
    studio_test: ConditionNode | None  # the conditions that the studio tests on the returned items
    consistent: bool
    sentence: str
    why: str
    notes: tuple[str, ...]
    others: tuple[ReadRoute, ...]  # further routes that are not a Scan


def plan_query(layout: TableLayout, question: ItemQuery, *, full_index_keys: bool = False) -> QueryPlan:
    """Return the plan of a query; refuse an invalid one.

    `full_index_keys`: every item has either all attributes of an index key or none, as Tavola's client writes them.
    """
    question = replace(question, conditions=tuple(map(check_condition, question.conditions)))
    requested = layout.target(question.index)
    first = _build_route(layout, requested, question.conditions)
    unprojected = _unprojected_attributes(layout, first, question.conditions)
    if unprojected:
        raise _unprojected_error(requested, unprojected)
    routes = [first]
    rejections: list[str] = []
    if requested is layout.table_target and question.choose:
        candidates = [
            _build_route(layout, target, question.conditions) for target in layout.indexes if target.ready
        ]
        # A consistent read needs the table or a local index, unless the table would be scanned.
        candidates = [
            candidate
            for candidate in candidates
            if candidate.target.local or not question.consistent or first.operation == "Scan"
        ]
        rejections = [
            rejected
            for candidate in candidates
            if candidate.operation == "Query"
            and (rejected := _rejection_reason(layout, candidate, question.conditions))
        ]
        indexed = [
            candidate
            for candidate in candidates
            if not _rejection_reason(layout, candidate, question.conditions)
        ]
        # An index has only items with its whole key. If the table can be queried, the index must not miss any item.
        routes += [candidate for candidate in indexed if first.operation == "Scan" or _is_complete(candidate)]
    routes.sort(key=_preference)
    route = first if routes[0].operation == "Scan" else routes[0]
    consistent = question.consistent and (route.target.index is None or route.target.local)
    return QueryPlan(
        route,
        _build_request(layout, route, question, consistent),
        combine_conditions([question.conditions[position] for position in route.positions("studio")]),
        consistent,
        _describe_route(route, question.conditions),
        _explain_choice(layout, route, question.conditions, bool(rejections)),
        (
            *_notes(layout, route, question, full_index_keys),
            *(rejections if route.operation == "Scan" else ()),
        ),
        tuple(other for other in routes if other.operation != "Scan" and other is not route),
    )


def _unprojected_attributes(
    layout: TableLayout, route: ReadRoute, conditions: Sequence[QueryCondition]
) -> tuple[str, ...]:
    """Return the filtered attributes that the index does not project: a Query would fail, a Scan find nothing."""
    projected = route.target.projected
    if projected is None:
        return ()
    names = [str(conditions[position].steps[0]) for position in route.positions("filter")]
    return tuple(name for name in dict.fromkeys(names) if name not in projected)


def _unprojected_error(target: TargetLayout, names: Sequence[str]) -> RequestRefused:
    return RequestRefused(
        "filter-unprojected",
        "The index does not project the attribute",
        f"{target.index} does not contain {join_names(names)}, so a filter on it would match nothing.",
        "Query the table, or project the attribute into the index.",
    )


def _rejection_reason(layout: TableLayout, route: ReadRoute, conditions: Sequence[QueryCondition]) -> str:
    """Return why an index cannot be used although its key matches; empty if it can."""
    unprojected = _unprojected_attributes(layout, route, conditions)
    if unprojected:
        return (
            f"{route.target.index} would allow a Query, but it does not project {join_names(unprojected)}: "
            "remove that condition to use it."
        )
    absent = _absent_sort_attributes(route, conditions)
    if absent:
        return (
            f"{route.target.index} would allow a Query, but it lacks items without {join_names(absent)}, which also match: "
            "query the index directly to leave them out."
        )
    return ""


def _absent_sort_attributes(route: ReadRoute, conditions: Sequence[QueryCondition]) -> tuple[str, ...]:
    """Return the sort attributes whose condition also matches items without them; the index lacks those items."""
    names = {str(condition.steps[0]) for condition in conditions if condition.matches_absent}
    return tuple(name for name in route.target.range[route.pinned :] if name in names)


def _is_complete(route: ReadRoute) -> bool:
    """Return whether the index contains every matching item, because each part of its key is in a condition."""
    return route.operation != "Scan" and route.pinned == len(route.target.range)


def _preference(route: ReadRoute) -> tuple[Any, ...]:
    """Return a sort key, best route first: the cheapest operation, the narrowest key range, then the most complete result."""
    target = route.target
    studio_tests = len(route.positions("studio"))
    return (
        _OPERATION_RANK[route.operation], -route.pinned, studio_tests, target.index is not None, target.projection != "ALL", not target.local,
        target.index or "",
    )  # fmt: skip


def _build_route(
    layout: TableLayout, target: TargetLayout, conditions: Sequence[QueryCondition]
) -> ReadRoute:
    equal = {
        name: at for name in target.attributes if (at := _find_equality(layout, name, conditions)) is not None
    }
    ranges = {name: _range_conditions(layout, name, conditions) for name in target.range}
    match = match_key(
        target.hash, target.range, equals=equal.__contains__, ranges=lambda name: bool(ranges[name])
    )
    if match.missing:
        return ReadRoute(target, "Scan", tuple(_FILTER for _ in conditions), 0, (), {})
    compared = (*target.hash, *match.equal)
    nodes = [condition_node(conditions[equal[name]]) for name in compared]
    used = {equal[name] for name in compared}
    if match.ranged:
        name = match.rest[0]
        nodes.append(_range_node(name, [conditions[position] for position in ranges[name]]))
        used.update(ranges[name])
    partition = {name: conditions[equal[name]].values[0] for name in target.hash}
    pinned = len(match.equal) + match.ranged
    covers_primary_key = target.index is None and len(used) == len(conditions) == len(target.attributes)
    is_get = covers_primary_key and all(condition.operator == "=" for condition in conditions)
    roles = tuple(_role(target, condition, position in used) for position, condition in enumerate(conditions))
    return ReadRoute(target, "GetItem" if is_get else "Query", roles, pinned, tuple(nodes), partition)


def _role(target: TargetLayout, condition: QueryCondition, is_key_condition: bool) -> ConditionRole:
    if is_key_condition:
        return "key"
    return "studio" if str(condition.steps[0]) in target.attributes else "filter"


def _fits(layout: TableLayout, name: str, condition: QueryCondition) -> bool:
    """Return whether a condition is on a key attribute, with non-empty values of its type."""
    key_type = layout.types[name]
    return condition.name == name and all(value.get(key_type) for value in condition.values)


def _find_equality(layout: TableLayout, name: str, conditions: Sequence[QueryCondition]) -> int | None:
    for position, condition in enumerate(conditions):
        if condition.operator == "=" and _fits(layout, name, condition):
            return position
    return None


def _range_conditions(
    layout: TableLayout, name: str, conditions: Sequence[QueryCondition]
) -> tuple[int, ...]:
    """Return the conditions for the range of a sort attribute: one, or >= and <= together."""
    by_operator = {
        condition.operator: position
        for position, condition in reversed(list(enumerate(conditions)))
        if condition.operator in RANGE_OPERATORS and _fits(layout, name, condition)
    }
    if not by_operator:
        return ()
    if ">=" in by_operator and "<=" in by_operator:
        lower, upper = by_operator[">="], by_operator["<="]
        # DynamoDB rejects a BETWEEN that ends before it begins, so such conditions stay separate.
        if compare(dict(conditions[lower].values[0]), dict(conditions[upper].values[0])) in (-1, 0):
            return (lower, upper)
    return (min(by_operator.values()),)


def _range_node(name: str, conditions: Sequence[QueryCondition]) -> ConditionNode:
    if len(conditions) == 1:
        return condition_node(conditions[0])
    lower, upper = (Constant(dict(condition.values[0])) for condition in conditions)
    return Between(Path((name,)), lower, upper)


def _build_request(
    layout: TableLayout, route: ReadRoute, question: ItemQuery, consistent: bool
) -> dict[str, Any]:
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
        filter_node = combine_conditions([conditions[position] for position in route.positions("filter")])
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


def _describe_route(route: ReadRoute, conditions: Sequence[QueryCondition]) -> str:
    keys = join_names([str(conditions[position]) for position in route.positions("key")])
    match route.operation:
        case "GetItem":
            return f"GetItem: {keys}."
        case "Query":
            sentence = f"Query on {route.target}: {keys}"
        case "Scan":
            sentence = f"Scan of {route.target}: reads every item"
    filters = route.positions("filter")
    if filters:
        sentence += (
            f"; filtered after reading by {join_names([str(conditions[position]) for position in filters])}"
        )
    studio_conditions = route.positions("studio")
    if studio_conditions:
        sentence += f"; the studio filters the results by {join_names([str(conditions[position]) for position in studio_conditions])}"
    return sentence + "."


def _explain_choice(
    layout: TableLayout, route: ReadRoute, conditions: Sequence[QueryCondition], has_rejections: bool
) -> str:
    target = route.target
    match route.operation:
        case "GetItem":
            return "The conditions give the whole primary key with =."
        case "Query":
            sentence = f"The partition key of {target}, {join_names(target.hash)}, is given with ="
            if route.pinned:
                sentence += (
                    f", and the sort key {join_names(target.range[: route.pinned])} limits what is read"
                )
            elif target.range:
                sentence += f"; there is no condition on the sort key {join_names(target.range)}, so the whole item collection is read"
            return sentence + "."
        case "Scan":
            if not conditions:
                return "There are no conditions, so everything is read, page by page."
            if has_rejections:
                return "No index with a matching partition key contains all matching items."
            keys = [
                join_names(key_target.hash)
                for key_target in (layout.targets if target is layout.table_target else (target,))
            ]
            return f"No condition gives a partition key ({' or '.join(dict.fromkeys(keys))}) with =."


def _notes(
    layout: TableLayout, route: ReadRoute, question: ItemQuery, full_index_keys: bool
) -> tuple[str, ...]:
    notes: list[str] = []
    target = route.target
    if question.consistent and target.index is not None and not target.local:
        notes.append("Global indexes do not support consistent reads; results may be slightly stale.")
    if question.descending and route.operation == "Scan":
        notes.append("A Scan has no order, so it cannot be descending.")
    if target.projection != "ALL":
        notes.append(f"{target.index} projects only some attributes; open a row to see the whole item.")
    if (
        target.index is not None
        and question.index is None
        and not _is_complete(route)
        and not full_index_keys
    ):
        missing_attributes = join_names(target.range[route.pinned :])
        notes.append(
            f"Items without {missing_attributes} are not in {target.index}; choose “Don't use indexes” to include them."
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
                f"{name} is a key attribute and never empty, so an empty value matches nothing."
                if all(key_type in value for value in condition.values)
                else f"{name} is a key attribute and always {_TYPES[key_type]}; the value has another type."
            )
        if condition.operator == "in" and name in {
            attribute for target in layout.targets for attribute in target.hash
        }:
            notes.append(f"A key condition cannot use IN: use = with one value of {name} for a Query.")
    return tuple(dict.fromkeys(notes))
