"""Requests against one key: GetItem, BatchGetItem, or one Query per shard or time bucket.

    values ──► partition key × shards ──► one Query each ──► items ──► re-check what the key cannot decide

A key condition cannot always decide alone. A template may drop digits of a field, and a sort key takes one condition where
a need has two. Such a query returns too many items; `item_checker` builds the predicate that drops the surplus afterwards.
The surplus was read and is paid for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from tavola.limits import BATCH_GET_KEYS_MAX
from tavola.model import SHARD
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, TableDesign
from tavola.studio.access_patterns.input_values import from_attribute, parse_value, to_attribute
from tavola.studio.access_patterns.requests import (
    WORDS,
    Clause,
    FieldRange,
    KeyQuery,
    Order,
    OutgoingRequest,
    RequestPlan,
    RunOptions,
    describe_clauses,
    render_conditions,
    render_key_attribute,
    sort_value,
)
from tavola.studio.problems import RequestRefused
from tavola.studio.types import AttributeValue, Item

_COMPARED: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "between": lambda value, low, high: bool(low <= value <= high),
    "begins_with": lambda value, start: str(value).startswith(str(start)),
}


def is_in_range(value: Any, field_range: FieldRange) -> bool:
    """Return whether a field's value is in a range."""
    operands = (comparable_value(field_range.field, operand) for operand in field_range.operands)
    return bool(_COMPARED[field_range.operator](value, *operands))


def comparable_value(field: FieldDesign, operand: Any) -> Any:
    """Return an operand for comparison: a number stored as text becomes a number again."""
    return parse_value(field, operand) if isinstance(operand, str) else operand


def combine_ranges(ranges: Sequence[FieldRange]) -> tuple[FieldRange, tuple[FieldRange, ...]]:
    """Return one range that covers several ranges of a field, and the ranges to check afterwards."""
    if len(ranges) == 1:
        return ranges[0], ()
    starts = [range_ for range_ in ranges if range_.operator == "begins_with"]
    if starts:
        return starts[0], tuple(ranges)
    field = ranges[0].field

    def comparable(operand: Any) -> Any:
        return comparable_value(field, operand)

    lows = [range_.operands[0] for range_ in ranges if range_.operator in (">", ">=", "between")]
    highs = [range_.operands[-1] for range_ in ranges if range_.operator in ("<", "<=", "between")]
    if lows and highs:
        combined = FieldRange(field, "between", (max(lows, key=comparable), min(highs, key=comparable)))
    elif lows:
        combined = FieldRange(field, ">=", (max(lows, key=comparable),))
    else:
        combined = FieldRange(field, "<=", (min(highs, key=comparable),))
    return combined, tuple(ranges)


def item_checker(
    entity: EntityDesign, key: KeyDesign, queries: Sequence[KeyQuery], rough: Collection[str]
) -> Callable[[Item], bool] | None:
    """Return a predicate that drops surplus items; None if the key condition is exact."""
    checks = [_range_checks(query, rough) for query in queries]
    if not any(checks):
        return None

    def accepts(item: Item) -> bool:
        return any(
            all(_meets_check(entity, key, check, item) for check in query_checks) for query_checks in checks
        )

    return accepts


def check_comparable(
    table: TableDesign, key: KeyDesign, entity: EntityDesign, rough: Collection[str]
) -> None:
    """Refuse a comparison that needs a field which the index neither has in its key nor projects."""
    index = None if key.index is None else table.index(key.index)
    if index is None or index.projection == "ALL":
        return
    key_attributes = {*table.settings.key_names, *index.attributes}
    key_attributes |= set() if index.projection == "KEYS_ONLY" else set(index.projection)
    absent = sorted(name for name in rough if entity.field(name).attribute not in key_attributes)
    if absent:
        raise RequestRefused(
            "parameter-rough",
            f"{', '.join(absent)} cannot be compared on {index.name}",
            f"The key of {index.name} contains {', '.join(absent)} only in rounded form, and the index does not project it.",
            "Use a value that the key contains exactly, or project the field.",
        )


def _range_checks(query: KeyQuery, rough: Collection[str]) -> tuple[FieldRange, ...]:
    fixed = [
        FieldRange(query.entity.field(name), "=", (query.fixed[name],))
        for name in rough
        if name in query.fixed
    ]
    field_range = query.field_range
    ranges = [field_range] if field_range is not None and field_range.field.name in rough else []
    return (*fixed, *ranges, *query.checks)


def _meets_check(entity: EntityDesign, key: KeyDesign, check: FieldRange, item: Item) -> bool:
    value = _field_value(entity, key, check.field, item)
    return value is None or is_in_range(value, check)  # None: checked again once the whole item is fetched


def _field_value(entity: EntityDesign, key: KeyDesign, field: FieldDesign, item: Item) -> Any:
    """Return a field's value from an item, or from the key of an index entry."""
    stored = item.get(field.attribute)
    if stored is not None:
        return from_attribute(field, stored)
    for source in key.sources:
        bound, text = entity.bind_template(source), item.get(source.attribute, {}).get("S")
        if bound is not None and text is not None and field.name not in bound.lossy_fields:
            value = (bound.read(text) or {}).get(field.name)
            if value is not None:
                return value
    return None


REQUESTS_MAX = 100  # per run

_STEPS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


def check_request_count(count: int) -> None:
    """Refuse a run with too many requests."""
    if count > REQUESTS_MAX:
        raise RequestRefused(
            "too-many-requests",
            f"Too many requests: {count:,}",
            f"A run makes at most {REQUESTS_MAX} requests.",
            "Choose a shorter time range or fewer values.",
        )


def shard_values(query: KeyQuery, newest_first: bool) -> tuple[Sequence[Mapping[str, Any]], Order]:
    """Return the values to add for each shard, and how the shards' results are ordered."""
    key, shards = query.key, query.key.shards
    if shards is None:
        return [{}], "in turn"
    if shards.by != "time":
        decides = key.index is None or (shards.by == "hash" and shards.reading is None)
        # A lossy field, such as the day of a time, matches items with other values, so it cannot select the shard.
        if shards.of and decides and set(shards.of) <= query.fixed.keys() - _lossy_fields(query):
            return [{SHARD: shard_number(query.entity, key, query.fixed)}], "in turn"
        return [{SHARD: number} for number in range(shards.reads)], "merged"
    name = shards.of[0]
    if name in query.fixed:
        return [{name: query.fixed[name]}], "in turn"
    field_range = query.field_range
    if field_range is None or field_range.field.name != name or field_range.operator != "between":
        raise RequestRefused(
            "parameter-missing",
            f"{name} needs a range with both ends",
            f"The key is sharded by the {shards.bucket} of {name}, so both ends are needed to find the shards.",
            f"Use “between” for {name}.",
        )
    start, end = field_range.operands
    buckets = time_buckets(start, end, shards.bucket)
    descends = _descends(query, name, buckets)
    if descends is not None and descends != newest_first:
        buckets = buckets[::-1]
    return [{name: bucket} for bucket in buckets], "merged" if descends is None else "in turn"


def _lossy_fields(query: KeyQuery) -> set[str]:
    bounds = (query.entity.bind_template(source) for source in query.key.sources)
    return {name for bound in bounds if bound is not None for name in bound.lossy_fields}


def _descends(query: KeyQuery, name: str, buckets: Sequence[Any]) -> bool | None:
    """Return whether the sort key descends over time; None if it is not ordered by these buckets."""
    source = next(iter(query.key.range), None)
    if source is None or source.fields[:1] != (name,):
        return None
    bound = query.entity.bind_template(source)
    if bound is None:
        return False
    part = bound.steps[0].part
    if not part.ordered or (
        part.is_lossy and len({part.encode(bucket) for bucket in buckets}) < len(buckets)
    ):
        return None
    return part.descending


def shard_number(entity: EntityDesign, key: KeyDesign, values: Mapping[str, Any]) -> int:
    """Return the shard of an item from the fields that select it, as the client computes it."""
    assert key.shards is not None
    names = key.shards.of or tuple(sorted(name for name in key.fields if name != SHARD))
    spelt = "\x00".join(
        f"{name}={next(iter(to_attribute(entity.field(name), values[name]).values()))}" for name in names
    )
    return crc32(spelt.encode()) % key.shards.count


def time_buckets(start: Any, end: Any, bucket: str) -> list[Any]:
    """Return the start of each time bucket in a range, as datetimes or as dates."""
    days = not isinstance(start, datetime)
    at, last = (
        (
            datetime(end_time.year, end_time.month, end_time.day, tzinfo=UTC)
            if days
            else end_time.astimezone(UTC)
        )
        for end_time in (start, end)
    )
    at = at.replace(microsecond=0)
    for grain, zero in (("second", "second"), ("minute", "minute"), ("hour", "hour")):
        if bucket == grain:
            break
        at = at.replace(**{zero: 0})  # type: ignore[arg-type]  # one of the three
    at = at.replace(day=1) if bucket in ("month", "year") else at
    at = at.replace(month=1) if bucket == "year" else at
    buckets: list[Any] = []
    while at <= last and len(buckets) <= REQUESTS_MAX:
        buckets.append(at.date() if days else at)
        if bucket in _STEPS:
            at += timedelta(seconds=_STEPS[bucket])
        elif bucket == "month":
            at = (at + timedelta(days=32)).replace(day=1)
        else:
            at = at.replace(year=at.year + 1)
    return buckets


NO_MATCHING_KEY = "The range is empty, so no request is made."


def plan_get(
    table: TableDesign,
    entity: EntityDesign,
    key: KeyDesign,
    fixed: Mapping[str, Any],
    options: RunOptions,
    *,
    transactional: bool = False,
) -> RequestPlan:
    """Return the request for one item by its key."""
    item = render_key(entity, key, fixed)
    clauses = [Clause(name, "=", (value,)) for name, value in item.items()]
    body: dict[str, Any] = {"TableName": table.name, "Key": item}
    if transactional:
        return RequestPlan(
            "TransactGetItems",
            (OutgoingRequest({"TransactItems": [{"Get": body}]}, describe_clauses(clauses)),),
        )
    if options.consistent:
        body["ConsistentRead"] = True
    return RequestPlan("GetItem", (OutgoingRequest(body, describe_clauses(clauses)),))


def render_key(entity: EntityDesign, key: KeyDesign, fixed: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the primary key that these values render."""
    if key.shards is not None and key.shards.by != "time":
        fixed = {**fixed, SHARD: shard_number(entity, key, fixed)}
    return {source.attribute: render_key_attribute(entity, source, fixed) for source in key.sources}


def plan_batch_get(
    table: TableDesign, keys: Sequence[Mapping[str, AttributeValue]], options: RunOptions
) -> RequestPlan:
    """Return the requests for several items by key, without duplicates."""
    once = list({tuple(map(str, key.values())): dict(key) for key in keys}.values())
    requests = []
    for position in range(0, len(once), BATCH_GET_KEYS_MAX):
        chunk = once[position : position + BATCH_GET_KEYS_MAX]
        keys_and_attributes: dict[str, Any] = {"Keys": chunk} | (
            {"ConsistentRead": True} if options.consistent else {}
        )
        first = describe_clauses([Clause(name, "=", (value,)) for name, value in chunk[0].items()])
        ending = "" if len(chunk) == 1 else f", and {len(chunk) - 1} more"
        requests.append(
            OutgoingRequest({"RequestItems": {table.name: keys_and_attributes}}, f"{first}{ending}")
        )
    check_request_count(len(requests))
    return RequestPlan("BatchGetItem", tuple(requests))


def plan_queries(
    queries: Sequence[KeyQuery], options: RunOptions, *, fetches: bool = False, notes: tuple[str, ...] = ()
) -> RequestPlan:
    """Return the plan for queries against one key, with one request per shard."""
    first = queries[0]
    table, key = first.table, first.key
    index = None if key.index is None else table.index(key.index)
    requests: list[OutgoingRequest] = []
    order: Order = "in turn"
    rough: set[str] = set()
    for query in queries:
        sort, inexact, empty = _sort_clauses(query)
        rough |= inexact
        shards, ordered = shard_values(query, options.newest_first)
        order = "merged" if ordered == "merged" or len(queries) > 1 else order
        for shard in () if empty else shards:
            partition = [
                Clause(
                    source.attribute,
                    "=",
                    (render_key_attribute(query.entity, source, {**query.fixed, **query.grain, **shard}),),
                )
                for source in key.hash
            ]
            body = query_body(
                table, key.index, options, consistent=options.consistent and (index is None or index.local)
            )
            body |= render_conditions([*partition, *sort], query.filters)
            requests.append(
                OutgoingRequest(body, describe_clauses([*partition, *sort]), describe_clauses(query.filters))
            )
    check_request_count(len(requests))
    if not fetches:
        check_comparable(table, key, first.entity, rough)
    sort_attributes = dict.fromkeys([*(s.attribute for s in key.range), *table.settings.key_names])
    if not requests:
        notes = (*notes, NO_MATCHING_KEY)
    return RequestPlan(
        "Query",
        tuple(requests),
        order,
        tuple(sort_attributes),
        options.limit,
        options.newest_first,
        fetches,
        item_checker(first.entity, key, queries, rough),
        notes,
    )


def query_body(
    table: TableDesign, index: str | None, options: RunOptions, *, consistent: bool
) -> dict[str, Any]:
    """Return a Query or Scan request without conditions."""
    body: dict[str, Any] = {"TableName": table.name}
    if index is not None:
        body["IndexName"] = index
    if consistent:
        body["ConsistentRead"] = True
    if options.newest_first:
        body["ScanIndexForward"] = False
    return body


def _sort_clauses(query: KeyQuery) -> tuple[list[Clause], set[str], bool]:
    """Return the sort key conditions, the fields they match only inexactly, and whether the range is empty."""
    clauses: list[Clause] = []
    rough: set[str] = set()
    fixed, field_range = query.fixed, query.field_range
    for source in query.key.range:
        bound = query.entity.bind_template(source)
        if bound is None:
            assert source.field is not None
            field = query.entity.field(source.field)
            if field.name in fixed:
                clauses.append(Clause(source.attribute, "=", (to_attribute(field, fixed[field.name]),)))
                continue
            if field_range is not None and field_range.field.name == field.name:
                operands = tuple(to_attribute(field, operand) for operand in field_range.operands)
                if field_range.operator == "between" and sort_value(operands[0]) > sort_value(operands[1]):
                    return [], rough, True
                clauses.append(Clause(source.attribute, expression_operator(field_range.operator), operands))
            break
        known: dict[str, Any] = {}
        for name in bound.fields:
            if name not in fixed:
                break
            known[name] = fixed[name]
        ahead = bound.fields[len(known) :]
        compared = set(known)
        if field_range is not None and ahead and ahead[0] == field_range.field.name:
            span = bound.bounds(known, WORDS[field_range.operator], *field_range.operands)
            compared.add(field_range.field.name)
        else:
            span = bound.bounds(known)
        if not span.exact:
            rough |= bound.lossy_fields & compared
        if span.empty:
            return [], rough, True
        if (condition := span.condition()) is not None:
            word, texts = condition
            clauses.append(Clause(source.attribute, word, tuple({"S": text} for text in texts)))
        if ahead:
            break
    return clauses, rough, False


def expression_operator(word: str) -> str:
    """Return an operator as expressions spell it."""
    return "BETWEEN" if word == "between" else word
