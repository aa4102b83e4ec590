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
    """Tell whether a value of a field lies in a stretch of it."""
    operands = (comparable_value(field_range.field, operand) for operand in field_range.operands)
    return bool(_COMPARED[field_range.operator](value, *operands))


def comparable_value(field: FieldDesign, operand: Any) -> Any:
    """Return an operand as it compares: a number that a key has as text is a number again."""
    return parse_value(field, operand) if isinstance(operand, str) else operand


def combine_ranges(ranges: Sequence[FieldRange]) -> tuple[FieldRange, tuple[FieldRange, ...]]:
    """Return the one stretch that a key can be asked with for several of a field, and those that it does not decide alone."""
    if len(ranges) == 1:
        return ranges[0], ()
    starts = [each for each in ranges if each.operator == "begins_with"]
    if starts:
        return starts[0], tuple(ranges)
    field = ranges[0].field

    def place(operand: Any) -> Any:
        return comparable_value(field, operand)

    lows = [each.operands[0] for each in ranges if each.operator in (">", ">=", "between")]
    highs = [each.operands[-1] for each in ranges if each.operator in ("<", "<=", "between")]
    if lows and highs:
        combined = FieldRange(field, "between", (max(lows, key=place), min(highs, key=place)))
    elif lows:
        combined = FieldRange(field, ">=", (max(lows, key=place),))
    else:
        combined = FieldRange(field, "<=", (min(highs, key=place),))
    return combined, tuple(ranges)


def item_checker(
    entity: EntityDesign, key: KeyDesign, queries: Sequence[KeyQuery], rough: Collection[str]
) -> Callable[[Item], bool] | None:
    """Return what decides on an item whether it was asked for; None where its key has decided."""
    checks = [_range_checks(each, rough) for each in queries]
    if not any(checks):
        return None

    def accepts(item: Item) -> bool:
        return any(all(_meets_check(entity, key, check, item) for check in each) for each in checks)

    return accepts


def check_comparable(
    table: TableDesign, key: KeyDesign, entity: EntityDesign, rough: Collection[str]
) -> None:
    """Refuse to compare what neither an index's key nor its entries tell: the answer would have items nobody asked for."""
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
            f"The key of {index.name} has {', '.join(absent)} without its last digits, and its entries do not have it either.",
            "Ask with a value that the key tells whole, or project the field.",
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
    return value is None or is_in_range(value, check)  # what is fetched first is compared when it is there


def _field_value(entity: EntityDesign, key: KeyDesign, field: FieldDesign, item: Item) -> Any:
    """Return a field's value in an item, or in an index entry that has it in its key alone."""
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


REQUESTS_MAX = 100  # that one run may fan out to

_STEPS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


def check_request_count(count: int) -> None:
    """Refuse a run that would fan out further than one may."""
    if count > REQUESTS_MAX:
        raise RequestRefused(
            "too-many-requests",
            f"That would be {count:,} requests",
            f"A run fans out to {REQUESTS_MAX} at most.",
            "Ask for a shorter stretch of time, or for fewer values.",
        )


def shard_values(query: KeyQuery, newest_first: bool) -> tuple[Sequence[Mapping[str, Any]], Order]:
    """Return what to add to the values for each shard, and how the shards' answers are put in order."""
    key, shards = query.key, query.key.shards
    if shards is None:
        return [{}], "in turn"
    if shards.by != "time":
        decides = key.index is None or (shards.by == "hash" and shards.reading is None)
        # Of a field that the key has a part of, such as the day of a time, the items that are found have other values.
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
            f"{name} needs both ends",
            f"It is sharded by the {shards.bucket} of {name}, and only a range with both ends says which shards to ask.",
            f"Give {name} with “between”.",
        )
    start, end = field_range.operands
    buckets = time_buckets(start, end, shards.bucket)
    falls = _descends(query, name, buckets)
    if falls is not None and falls != newest_first:
        buckets = buckets[::-1]
    return [{name: bucket} for bucket in buckets], "merged" if falls is None else "in turn"


def _lossy_fields(query: KeyQuery) -> set[str]:
    bounds = (query.entity.bind_template(source) for source in query.key.sources)
    return {name for bound in bounds if bound is not None for name in bound.lossy_fields}


def _descends(query: KeyQuery, name: str, buckets: Sequence[Any]) -> bool | None:
    """Return whether the sort key falls as time rises; None where it does not go by time, bucket by bucket."""
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
    """Return the shard of an item by the fields that decide it, as the client takes it."""
    assert key.shards is not None
    names = key.shards.of or tuple(sorted(name for name in key.fields if name != SHARD))
    spelt = "\x00".join(
        f"{name}={next(iter(to_attribute(entity.field(name), values[name]).values()))}" for name in names
    )
    return crc32(spelt.encode()) % key.shards.count


def time_buckets(start: Any, end: Any, bucket: str) -> list[Any]:
    """Return a moment in each stretch of time from one to another, or a day where they are days."""
    days = not isinstance(start, datetime)
    at, last = (
        (datetime(each.year, each.month, each.day, tzinfo=UTC) if days else each.astimezone(UTC))
        for each in (start, end)
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


NO_MATCHING_KEY = "Nothing can answer it: no key lies in this stretch, so no request is made."


def plan_get(
    table: TableDesign,
    entity: EntityDesign,
    key: KeyDesign,
    fixed: Mapping[str, Any],
    how: RunOptions,
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
    if how.consistent:
        body["ConsistentRead"] = True
    return RequestPlan("GetItem", (OutgoingRequest(body, describe_clauses(clauses)),))


def render_key(entity: EntityDesign, key: KeyDesign, fixed: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the key of the item that has these values."""
    if key.shards is not None and key.shards.by != "time":
        fixed = {**fixed, SHARD: shard_number(entity, key, fixed)}
    return {source.attribute: render_key_attribute(entity, source, fixed) for source in key.sources}


def plan_batch_get(
    table: TableDesign, keys: Sequence[Mapping[str, AttributeValue]], how: RunOptions
) -> RequestPlan:
    """Return the requests for several items by their keys, each key once."""
    once = list({tuple(map(str, key.values())): dict(key) for key in keys}.values())
    requests = []
    for at in range(0, len(once), BATCH_GET_KEYS_MAX):
        chunk = once[at : at + BATCH_GET_KEYS_MAX]
        keys_and_attributes: dict[str, Any] = {"Keys": chunk} | (
            {"ConsistentRead": True} if how.consistent else {}
        )
        first = describe_clauses([Clause(name, "=", (value,)) for name, value in chunk[0].items()])
        more = "" if len(chunk) == 1 else f", and {len(chunk) - 1} more"
        requests.append(
            OutgoingRequest({"RequestItems": {table.name: keys_and_attributes}}, f"{first}{more}")
        )
    check_request_count(len(requests))
    return RequestPlan("BatchGetItem", tuple(requests))


def plan_queries(
    queries: Sequence[KeyQuery], how: RunOptions, *, fetches: bool = False, notes: tuple[str, ...] = ()
) -> RequestPlan:
    """Return the queries of questions to one key, a request for each of its shards."""
    first = queries[0]
    table, key = first.table, first.key
    index = None if key.index is None else table.index(key.index)
    requests: list[OutgoingRequest] = []
    order: Order = "in turn"
    rough: set[str] = set()
    for each in queries:
        sort, inexact, empty = _sort_clauses(each)
        rough |= inexact
        shards, ordered = shard_values(each, how.newest_first)
        order = "merged" if ordered == "merged" or len(queries) > 1 else order
        for shard in () if empty else shards:
            partition = [
                Clause(
                    source.attribute,
                    "=",
                    (render_key_attribute(each.entity, source, {**each.fixed, **each.grain, **shard}),),
                )
                for source in key.hash
            ]
            body = query_body(
                table, key.index, how, consistent=how.consistent and (index is None or index.local)
            )
            body |= render_conditions([*partition, *sort], each.filters)
            requests.append(
                OutgoingRequest(body, describe_clauses([*partition, *sort]), describe_clauses(each.filters))
            )
    check_request_count(len(requests))
    if not fetches:
        check_comparable(table, key, first.entity, rough)
    places = dict.fromkeys([*(s.attribute for s in key.range), *table.settings.key_names])
    if not requests:
        notes = (*notes, NO_MATCHING_KEY)
    return RequestPlan(
        "Query",
        tuple(requests),
        order,
        tuple(places),
        how.limit,
        how.newest_first,
        fetches,
        item_checker(first.entity, key, queries, rough),
        notes,
    )


def query_body(table: TableDesign, index: str | None, how: RunOptions, *, consistent: bool) -> dict[str, Any]:
    """Return a query without its conditions."""
    body: dict[str, Any] = {"TableName": table.name}
    if index is not None:
        body["IndexName"] = index
    if consistent:
        body["ConsistentRead"] = True
    if how.newest_first:
        body["ScanIndexForward"] = False
    return body


def _sort_clauses(query: KeyQuery) -> tuple[list[Clause], set[str], bool]:
    """Return the conditions on the sort key, the fields that they tell only roughly, and whether nothing can meet them."""
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
    """Return a comparison as an expression spells it."""
    return "BETWEEN" if word == "between" else word
