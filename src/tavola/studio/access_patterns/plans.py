"""Plan the requests that answer an access pattern, from the design and the entered values.

A declared pattern uses its own key, a collection its partition, and a need its route or the key that serves it best. The
plan holds one request per shard, time bucket and combination of values, as the entity client would send them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import product
from math import prod
from typing import Any

from tavola.design.access_paths import key_parts
from tavola.errors import TavolaError
from tavola.model.document import CollectionDesign, EntityDesign, FieldDesign, Given, Route, TableDesign
from tavola.studio.access_patterns.catalogue import PatternEntry, has_full_route, need_conditions
from tavola.studio.access_patterns.input_values import from_attribute, parse_value, to_attribute
from tavola.studio.access_patterns.key_queries import (
    NO_MATCHING_KEY,
    check_request_count,
    combine_ranges,
    expression_operator,
    is_in_range,
    plan_batch_get,
    plan_get,
    plan_queries,
    query_body,
    render_key,
    time_buckets,
)
from tavola.studio.access_patterns.requests import (
    WORDS,
    Clause,
    EnteredValue,
    FieldRange,
    KeyQuery,
    OutgoingRequest,
    RequestPlan,
    RunOptions,
    describe_clauses,
    format_operand,
    parse_key_part,
    parse_range,
    render_conditions,
    require_value,
    sort_value,
)
from tavola.studio.problems import RequestRefused
from tavola.studio.types import AttributeValue, Item

_BUCKETS = ("year", "month", "day", "hour", "minute")


def plan_need(
    entry: PatternEntry, entered: Mapping[str, EnteredValue], options: RunOptions, now_s: float
) -> RequestPlan:
    """Return the plan of a need; time buckets of a range without an upper end stop at `now_s`."""
    table, entity, need = entry.table, entry.entity, entry.need
    assert table is not None
    assert entity is not None
    assert need is not None
    conditions = [
        (name, field, condition, role, _operands(name, field, condition, entered))
        for name, field, condition, role in need_conditions(table, entity, need)
    ]
    keyed = [(f, c, values) for _, f, c, role, values in conditions if role != "filter"]
    filters = tuple(_filter_clause(f, c, values) for _, f, c, role, values in conditions if role == "filter")
    if need.route is not None and has_full_route(need):
        return _plan_route(table, need.route, _combine_conditions(keyed), keyed, filters, options)
    key = entry.key
    assert key is not None, "a runnable need has a key or a route"
    remaining = tuple(_filter_clause(f, c, values) for f, c, values in keyed if c in entry.filtered)
    terms = _combine_conditions(
        [key_condition for key_condition in keyed if key_condition[1] not in entry.filtered]
    )
    values_by_field = {
        name: [_key_part(term.field, value) for value in term.values]
        for name, term in terms.items()
        if term.values is not None
    }
    ranged = next((term for term in terms.values() if term.field_range is not None), None)
    field_range, checks = (None, ()) if ranged is None else (ranged.field_range, ranged.checks)
    notes: tuple[str, ...] = ()
    bucket_values: list[dict[str, Any]] = [{}]
    if entry.bucketed_fields and field_range is not None:
        parts = (part for part in key_parts(key.hash) if part.field == field_range.field.name)
        grain = next((part.grain for part in parts if part.grain in _BUCKETS), "day")
        bucket_values = [
            {field_range.field.name: bucket}
            for bucket in time_buckets(*_range_ends(field_range, now_s), grain)
        ]
        notes = (f"One query for each {grain} of {field_range.field.name}: {len(bucket_values)} queries.",)
    choices = _combinations(values_by_field)
    check_request_count(len(choices) * len(bucket_values))
    if not choices or not bucket_values:
        return RequestPlan("Query", (), notes=(*notes, NO_MATCHING_KEY))
    if entry.summary.operation in ("GetItem", "BatchGetItem"):
        if len(choices) == 1:
            return plan_get(table, entity, key, choices[0], options)
        return plan_batch_get(table, [render_key(entity, key, fixed) for fixed in choices], options)
    queries = [
        KeyQuery(table, entity, key, fixed, field_range, remaining, grain=bucket, checks=checks)
        for bucket in bucket_values
        for fixed in choices
    ]
    return plan_queries(queries, options, notes=notes)


@dataclass(frozen=True, slots=True)
class _FieldCondition:
    """The combined conditions on one field: values, or a range and the ranges to check afterwards."""

    field: FieldDesign
    values: tuple[AttributeValue, ...] | None
    field_range: FieldRange | None = None
    checks: tuple[FieldRange, ...] = ()


_Condition = tuple[FieldDesign, Given, tuple[AttributeValue, ...]]


def _combine_conditions(conditions: Iterable[_Condition]) -> dict[str, _FieldCondition]:
    """Combine the conditions on each field; all of them must hold."""
    by_field: dict[str, list[_Condition]] = {}
    for field_condition in conditions:
        by_field.setdefault(field_condition[0].name, []).append(field_condition)
    combined: dict[str, _FieldCondition] = {}
    for name, field_conditions in by_field.items():
        field = field_conditions[0][0]
        equal = [values for _, condition, values in field_conditions if condition.operator in ("=", "in")]
        ranges = [
            FieldRange(field, condition.operator, tuple(_key_part(field, value) for value in values))
            for _, condition, values in field_conditions
            if condition.operator in WORDS
        ]
        if equal:
            shared = set.intersection(*({_hashable(value) for value in values} for values in equal))
            distinct = [dict([pair]) for pair in dict.fromkeys(map(_hashable, equal[0])) if pair in shared]
            accepted = (
                value
                for value in distinct
                if all(is_in_range(from_attribute(field, value), range_) for range_ in ranges)
            )
            combined[name] = _FieldCondition(field, tuple(accepted))
        elif ranges:
            combined[name] = _FieldCondition(field, None, *combine_ranges(ranges))
    return combined


def _hashable(value: AttributeValue) -> tuple[str, Any]:
    """Return a key value as a hashable pair of type and content."""
    return next(iter(value.items()))


def _combinations(values_by_name: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of the fields' values; refuse too many."""
    check_request_count(prod(map(len, values_by_name.values())))
    return [dict(zip(values_by_name, values, strict=True)) for values in product(*values_by_name.values())]


def _operands(
    name: str, field: FieldDesign, condition: Given, entered_values: Mapping[str, EnteredValue]
) -> tuple[AttributeValue, ...]:
    """Return the operands of a condition as attribute values: constants of the design, or entered values."""
    if condition.operator == "exists":
        return ()
    if condition.value is not None:
        is_list = condition.operator in ("in", "between")
        return tuple(condition.value["L"]) if is_list else (condition.value,)
    entered = entered_values.get(name)
    if entered is None:
        raise RequestRefused(
            "parameter-missing",
            f"{name} is missing",
            f"The pattern needs {name}.",
            f"Enter a value for {name}.",
        )
    if condition.operator == "between":
        if entered.until == "":
            raise RequestRefused(
                "parameter-missing",
                f"{name} needs a second value",
                "“between” needs a lower and an upper bound.",
                "Enter both.",
            )
        texts = [entered.value, entered.until]
    elif condition.operator == "in":
        texts = [text.strip() for text in entered.value.split(",") if text.strip()]
        if not texts:
            raise RequestRefused(
                "parameter-missing",
                f"{name} is missing",
                "The value contains only commas.",
                "Enter at least one value.",
            )
    else:
        texts = [entered.value]
    return tuple(to_attribute(field, parse_value(field, text)) for text in texts)


def _key_part(field: FieldDesign, stored: AttributeValue) -> Any:
    value = from_attribute(field, stored)
    if value is None:
        raise RequestRefused(
            "parameter-malformed",
            f"The design's value for {field.name} is invalid",
            f"The design compares {field.name} with {format_operand(stored)}, which the field cannot hold.",
            "Correct the need's condition in the design.",
        )
    if field.key_kind == "text" and not isinstance(value, str):
        return str(next(iter(stored.values())))
    return value


def _filter_clause(field: FieldDesign, condition: Given, values: tuple[AttributeValue, ...]) -> Clause:
    word = {"between": "BETWEEN", "in": "IN"}.get(condition.operator, condition.operator)
    return Clause(field.attribute, word, values)


def _range_ends(field_range: FieldRange, now_s: float) -> tuple[Any, Any]:
    if field_range.operator == "between":
        return field_range.operands[0], field_range.operands[1]
    now = datetime.fromtimestamp(now_s, UTC)
    start = field_range.operands[0]
    return start, now if isinstance(start, datetime) else date(now.year, now.month, now.day)


def _plan_route(
    table: TableDesign,
    route: Route,
    terms: Mapping[str, _FieldCondition],
    keyed: Sequence[_Condition],
    filters: tuple[Clause, ...],
    options: RunOptions,
) -> RequestPlan:
    """Return the requests of a need's route, in terms of the table's attributes."""
    index = None if route.index is None else table.index(route.index)
    consistent = options.consistent and (index is None or index.local)
    if route.operation == "scan":
        clauses = [*(_filter_clause(*key_condition) for key_condition in keyed), *filters]
        body = query_body(table, route.index, RunOptions(), consistent=consistent) | render_conditions(
            (), clauses
        )
        return RequestPlan(
            "Scan", (OutgoingRequest(body, "", describe_clauses(clauses)),), limit=options.limit
        )
    if route.operation in ("get", "batch_get"):
        return _plan_keys(table, route, terms, options)
    values_by_attribute = {
        term.field.attribute: term.values for term in terms.values() if term.values is not None
    }
    ranges = [term for term in terms.values() if term.field_range is not None]
    sort = [_range_clause(term.field_range) for term in ranges if term.field_range is not None]
    requests = []
    for values in [] if any(map(_is_empty_range, sort)) else _combinations(values_by_attribute):
        keys = [*(Clause(name, "=", (value,)) for name, value in values.items()), *sort]
        body = query_body(table, route.index, options, consistent=consistent) | render_conditions(
            keys, filters
        )
        requests.append(OutgoingRequest(body, describe_clauses(keys), describe_clauses(filters)))
    range_ = table.settings.key_names[1:] if index is None else index.range
    checks = tuple(check for term in ranges for check in term.checks)
    return RequestPlan(
        "Query",
        tuple(requests),
        "merged" if len(requests) > 1 else "in turn",
        sort_attributes=tuple(dict.fromkeys([*range_, *table.settings.key_names])),
        limit=options.limit,
        newest_first=options.newest_first,
        accepts=_range_checker(checks) if checks else None,
        notes=() if requests else (NO_MATCHING_KEY,),
    )


def _plan_keys(
    table: TableDesign, route: Route, terms: Mapping[str, _FieldCondition], options: RunOptions
) -> RequestPlan:
    """Return the requests for items by key; the n-th values of the attributes form the n-th key."""
    lists = {term.field.attribute: term.values or () for term in terms.values()}
    key_count = max(map(len, lists.values()))
    for name, values in lists.items():
        if len(values) not in (1, key_count):
            raise RequestRefused(
                "parameter-refused",
                f"{name} has {len(values)} values for {key_count} keys",
                "Each key takes one value of each attribute, in order.",
                f"Enter one value of {name} for all keys, or {key_count} values.",
            )
    keys = [
        {name: values[min(position, len(values) - 1)] for name, values in lists.items()}
        for position in range(key_count)
    ]
    if route.operation == "batch_get":
        return plan_batch_get(table, keys, options)
    body: dict[str, Any] = {"TableName": table.name, "Key": keys[0]}
    if options.consistent:
        body["ConsistentRead"] = True
    clauses = [Clause(name, "=", (value,)) for name, value in keys[0].items()]
    return RequestPlan("GetItem", (OutgoingRequest(body, describe_clauses(clauses)),))


def _range_clause(field_range: FieldRange) -> Clause:
    operands = tuple(to_attribute(field_range.field, operand) for operand in field_range.operands)
    return Clause(field_range.field.attribute, expression_operator(field_range.operator), operands)


def _is_empty_range(clause: Clause) -> bool:
    return clause.operator == "BETWEEN" and sort_value(clause.operands[0]) > sort_value(clause.operands[1])


def _range_checker(checks: Sequence[FieldRange]) -> Callable[[Item], bool]:
    def accepts(item: Item) -> bool:
        read = ((check, from_attribute(check.field, item[check.field.attribute])) for check in checks)
        return all(value is None or is_in_range(value, check) for check, value in read)

    return accepts


def plan_pattern(
    entry: PatternEntry, values: Sequence[EnteredValue], options: RunOptions, now_s: float
) -> RequestPlan:
    """Return the plan of a pattern; refuse patterns that cannot be run and invalid values."""
    if not entry.summary.runnable or entry.table is None or entry.entity is None:
        raise RequestRefused(
            "pattern-not-run", "This pattern cannot be run", entry.summary.reason, "See its estimate instead."
        )
    entered = {value.name: value for value in values if value.value != ""}
    for name in entered:
        if all(parameter.name != name for parameter in entry.summary.parameters):
            raise RequestRefused(
                "parameter-unknown",
                f"Unknown parameter {name}",
                f"{entry.summary.place} has the parameters {', '.join(p.name for p in entry.summary.parameters) or '(none)'}.",
                "Remove it.",
            )
    try:
        if entry.collection is not None:
            return _plan_collection(entry.table, entry.entity, entry.collection, entered, options)
        if entry.need is not None:
            return plan_need(entry, entered, options, now_s)
        return _plan_pattern(entry, entered, options)
    except RequestRefused:
        raise
    except TavolaError as error:  # a value that the key cannot contain
        raise RequestRefused("parameter-refused", "Invalid key value", str(error)) from error


def _plan_pattern(
    entry: PatternEntry, entered_values: Mapping[str, EnteredValue], options: RunOptions
) -> RequestPlan:
    table, entity, key, pattern = entry.table, entry.entity, entry.key, entry.pattern
    assert table is not None
    assert entity is not None
    assert key is not None
    assert pattern is not None
    fixed = {
        name: parse_key_part(entity.field(name), require_value(entered_values, name))
        for name in pattern.partition
    }
    if pattern is entity.primary:
        fixed |= {
            name: parse_key_part(entity.field(name), require_value(entered_values, name))
            for name in pattern.sorts
        }
        return plan_get(table, entity, key, fixed, options, transactional=entry.summary.transactional)
    field_range: FieldRange | None = None
    blocking = ""
    for name in pattern.sorts:
        entered = entered_values.get(name)
        if entered is None:
            blocking = blocking or name
            continue
        if blocking:
            raise RequestRefused(
                "parameter-gap",
                f"{name} needs {blocking}",
                f"{blocking} comes before {name} in the sort key, so a key condition on {name} needs {blocking} too.",
                f"Enter {blocking} with =, or remove {name}.",
            )
        field = entity.field(name)
        if entered.operator == "=":
            fixed[name] = parse_key_part(field, entered.value)
        else:
            field_range = parse_range(field, entered)
            blocking = name
    query = KeyQuery(table, entity, key, fixed, field_range)
    return plan_queries([query], options, fetches=pattern.hydrate)


def _plan_collection(
    table: TableDesign,
    entity: EntityDesign,
    collection: CollectionDesign,
    entered: Mapping[str, EnteredValue],
    options: RunOptions,
) -> RequestPlan:
    """Return the query of a collection, limited to the sort keys of its members."""
    index = None if collection.index is None else table.index(collection.index)
    hash_ = table.settings.hash if index is None else index.hash[0]
    range_ = table.settings.range if index is None else next(iter(index.range), None)
    fixed = {
        name: parse_key_part(entity.field(name), require_value(entered, name)) for name in collection.parts
    }
    key = entity.key_on(collection.index)
    hash_source = (
        next((source for source in key.hash if source.attribute == hash_), None) if key is not None else None
    )
    if hash_source is not None and hash_source.template is None:
        partition = to_attribute(entity.field(collection.parts[0]), fixed[collection.parts[0]])
    else:
        parts = {name: part for name in collection.parts if (part := entity.field(name).part) is not None}
        partition = {"S": collection.partition.bind(parts).render(fixed)}
    clauses = [Clause(hash_, "=", (partition,))]
    if collection.prefix and range_ is not None:
        clauses.append(Clause(range_, "begins_with", ({"S": collection.prefix},)))
    elif range_ is not None and (ends := _sort_key_range(table, collection)) is not None:
        clauses.append(Clause(range_, "BETWEEN", tuple({"S": text} for text in ends)))
    body = query_body(
        table, collection.index, options, consistent=options.consistent and (index is None or index.local)
    )
    sort_attributes = tuple(dict.fromkeys([*([range_] if range_ else []), *table.settings.key_names]))
    return RequestPlan(
        "Query",
        (OutgoingRequest(body | render_conditions(clauses, ()), describe_clauses(clauses)),),
        sort_attributes=sort_attributes,
        limit=options.limit,
        newest_first=options.newest_first,
    )


def _sort_key_range(table: TableDesign, collection: CollectionDesign) -> tuple[str, str] | None:
    """Return the first and last sort key of a collection's members; None if unknown."""
    ends: list[tuple[str, str]] = []
    for member in collection.members:
        entity = table.entity(member.entity)
        key = entity.key_on(collection.index)
        bound = entity.bind_template(key.range[0]) if key is not None and len(key.range) == 1 else None
        if bound is None or not bound.literal_prefix:
            return None
        prefix = bound.literal_prefix
        after = chr(ord(prefix[-1]) + 1)
        if "\ud800" <= after <= "\udfff":
            return None
        ends.append((prefix, bound.constant or prefix[:-1] + after))
    return min(first for first, _ in ends), max(last for _, last in ends)
