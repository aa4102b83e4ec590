"""Queries: a typed query as DynamoDB requests, one for each shard."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from typing import Literal as Literal_

from tavola.client.context import Context
from tavola.client.requests import add_expressions, all_of, node_of
from tavola.expressions.nodes import Between, Comparison, ConditionNode, FunctionCall, Literal, Path, ValueRef
from tavola.expressions.renderer import Renderer
from tavola.model import (
    SHARD,
    Entity,
    EntityShape,
    KeyShape,
    KeySource,
    Pattern,
    QueryRefused,
    Range,
    SelectionRequest,
    enum_value,
    result_entity,
    shape_of,
    shard_of,
)
from tavola.values import Item, Value

TIME_SHARDS_MAX = 1000

Order = Literal_["merged", "in turn", "any"]

_OPERATORS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_EMPTY: tuple[Value, ...] = ({"S": ""}, {"B": ""})  # values that no key can have
_STEP = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query or scan ready to be paged: a request for each shard, and how their results are ordered."""

    operation: str
    requests: tuple[dict[str, Any], ...]
    order: Order  # of the shards: merged by sort key, one after another, or as they come
    key_attributes: tuple[str, ...]  # the attributes of a position in the results
    identity: Callable[[], list[Any]]  # equal for equal queries, in every process
    sort_attributes: tuple[str, ...] = ()  # merge the results of shards by these
    newest_first: bool = False
    accepts: Callable[[Entity], bool] | None = None  # repeats comparisons that the key cannot make exactly
    empty: bool = False  # no item can match, so nothing is sent


def prepare_query(
    context: Context,
    query: SelectionRequest,
    *,
    newest_first: bool = False,
    consistent: bool | None = None,
    also: Sequence[ConditionNode] = (),
    projection: Sequence[str] = (),
) -> PreparedQuery:
    """Return the requests of a query; `also` adds conditions to its filter."""
    pattern = query.pattern
    shape = shape_of(pattern.owner)
    key = pattern.key
    assert shape.key is not None
    sort_node, inexact, empty = _sort_condition(pattern, query)
    if inexact:
        _check_comparable(pattern, shape, inexact)
    shards, order = _shards(pattern, query, newest_first)
    # The requests of the shards differ only in the values of the partition key, which are added last.
    nodes: list[ConditionNode | None] = [
        Comparison("=", Path((source.attribute,)), ValueRef(f":p{number}"))
        for number, source in enumerate(key.hash)
    ]
    request = add_expressions(
        _base(context, pattern, shape, newest_first, consistent),
        key_condition=all_of([*nodes, sort_node]),
        filter_=all_of([node_of(query.filter), *also]),
        projection=projection,
    )
    shared_values = request.get("ExpressionAttributeValues", {})
    values = {name: enum_value(value) for name, value in (*query.values.items(), *query.fixed.items())}
    requests = []
    for shard in shards:
        partition = _partition_values(pattern, {**values, **shard})
        empty = empty or any(value in _EMPTY for value in partition.values())
        requests.append({**request, "ExpressionAttributeValues": {**partition, **shared_values}})
    attributes = dict.fromkeys(s.attribute for s in (*shape.key.key.sources, *key.sources))
    sort_attributes = dict.fromkeys((*(source.attribute for source in key.range), *attributes))
    return PreparedQuery(
        "Query", tuple(requests), order, tuple(attributes),
        lambda: _identity(context, query, newest_first), tuple(sort_attributes), newest_first,
        _make_comparison(query) if inexact else None, empty or not requests,
    )  # fmt: skip


def _base(
    context: Context, pattern: Pattern, shape: EntityShape, newest_first: bool, consistent: bool | None
) -> dict[str, Any]:
    index = pattern.key.index
    base: dict[str, Any] = {"TableName": context.name_of(shape.home)}
    if index is not None:
        base["IndexName"] = index.name
    if consistent is None:
        consistent = pattern.access is not None and pattern.access.consistent
    if consistent:
        if index is not None and not index.local:
            raise QueryRefused(
                pattern.place,
                "a global index has only eventually consistent reads; read the table or a local index instead",
            )
        base["ConsistentRead"] = True
    if newest_first:
        base["ScanIndexForward"] = False
    return base


def _identity(context: Context, query: SelectionRequest, newest_first: bool) -> list[Any]:
    """Return a query as data that is the same in every process, and independent of sharding."""
    pattern, range_ = query.pattern, query.range
    shape = shape_of(pattern.owner)
    index = pattern.key.index

    def encode(name: str, value: Any) -> Value:
        return shape.fields[name].encode(enum_value(value))

    return [
        "Query", context.name_of(shape.home), None if index is None else index.name, pattern.place, newest_first,
        {name: encode(name, value) for name, value in query.values.items()},
        {name: encode(name, value) for name, value in query.fixed.items()},
        None if range_ is None else [range_.part, range_.operator, *(encode(range_.part, o) for o in range_.operands)],
        condition_identity(node_of(query.filter)),
    ]  # fmt: skip


def condition_identity(node: ConditionNode | None) -> list[Any] | None:
    """Return a condition as data, equal for equal conditions."""
    if node is None:
        return None
    renderer = Renderer()
    return [renderer.condition(node), renderer.names, renderer.values]


def _partition_values(pattern: Pattern, values: Mapping[str, Any]) -> dict[str, Value]:
    """Return the values of the partition key, by their names in the expression."""
    encoded: dict[str, Value] = {}
    for number, source in enumerate(pattern.key.hash):
        value = source.value(values)
        if value is None:
            raise QueryRefused(pattern.place, f"the partition key needs {', '.join(source.fields)}")
        encoded[f":p{number}"] = value
    return encoded


def _sort_condition(pattern: Pattern, query: SelectionRequest) -> tuple[ConditionNode | None, set[str], bool]:
    """Return the condition on the sort key, the fields it cannot compare exactly, and whether nothing can match."""
    nodes: list[ConditionNode | None] = []
    fixed = {n: enum_value(v) for n, v in {**query.values, **query.fixed}.items()}
    range_ = query.range
    inexact: set[str] = set()
    for source in pattern.key.range:
        path = Path((source.attribute,))
        if source.field is not None:
            name = source.field.name
            if name in fixed:
                value = source.field.encode(fixed[name])
                if value in _EMPTY:
                    return None, inexact, True
                nodes.append(Comparison("=", path, Literal(value)))
                continue
            if range_ is not None and range_.part == name:
                node, empty = _native_range(path, source, range_)
                if empty:
                    return None, inexact, True
                nodes.append(node)
            break
        assert source.template is not None
        known: dict[str, Any] = {}
        for name in source.template.fields:
            if name not in fixed:
                break
            known[name] = fixed[name]
        rest = source.template.fields[len(known) :]
        compared = set(known)
        if range_ is not None and rest and rest[0] == range_.part:
            span = source.template.bounds(known, range_.operator, *map(enum_value, range_.operands))
            compared.add(range_.part)
        else:
            span = source.template.bounds(known)
        if not span.exact:
            inexact |= source.template.lossy_fields & compared
        if span.empty:
            return None, inexact, True
        condition = span.condition()
        if condition is not None:
            nodes.append(_text_condition(path, *condition))
        if rest:
            break
    return all_of(nodes), inexact, False


def _check_comparable(pattern: Pattern, owner: EntityShape, inexact: set[str]) -> None:
    """Refuse a comparison that neither the key nor the returned view can make exactly."""
    if pattern.hydrate or pattern.result == owner.entity.__name__:
        return
    absent = sorted(inexact - shape_of(result_entity(pattern)).fields.keys())
    if absent:
        raise QueryRefused(
            pattern.place,
            f"the key contains {', '.join(absent)} rounded, and {pattern.result} does not have the field, so it "
            f"cannot be compared exactly; add the field to {pattern.result}, set hydrate=True, or use gte or lt with a "
            "value that the key contains without rounding",
        )


def _text_condition(path: Path, operator: str, texts: tuple[str, ...]) -> ConditionNode:
    literals = [Literal({"S": text}) for text in texts]
    if operator == "begins_with":
        return FunctionCall("begins_with", (path, literals[0]))
    if operator == "BETWEEN":
        return Between(path, literals[0], literals[1])
    return Comparison(operator, path, literals[0])


def _native_range(path: Path, source: KeySource, range_: Range) -> tuple[ConditionNode | None, bool]:
    """Return the condition on a field that is a key attribute itself, None if not needed, and whether nothing can match."""
    assert source.field is not None
    operator = range_.operator
    values = [source.field.encode(operand) for operand in range_.operands]
    if operator == "between" and _sortable(values[0]) > _sortable(values[1]):
        return None, True
    if values[-1] in _EMPTY:  # no key is empty, so all keys sort after it, and DynamoDB rejects empty values
        return None, operator in ("lt", "lte", "between")
    literals = [Literal(value) for value in values]
    if operator == "between":
        if values[0] in _EMPTY:
            return Comparison("<=", path, literals[1]), False
        return Between(path, literals[0], literals[1]), False
    if operator == "begins_with":
        return FunctionCall("begins_with", (path, literals[0])), False
    return Comparison(_OPERATORS[operator], path, literals[0]), False


def shard_count(pattern: Pattern, query: SelectionRequest) -> int:
    """Return the number of shards that a query reads; 1 without sharding."""
    return len(_shards(pattern, query, newest_first=False)[0])


def _shards(
    pattern: Pattern, query: SelectionRequest, newest_first: bool
) -> tuple[Sequence[dict[str, Any]], Order]:
    """Return the values of each shard, and how the results of the shards are ordered."""
    shards = pattern.key.shards
    if shards is None:
        return [{}], "in turn"
    if shards.by != "time":
        values = _shard_values(pattern.key, query)
        if shards.of and set(shards.of) <= values.keys():
            return [{SHARD: shard_of(shards, shape_of(pattern.owner), values)}], "in turn"
        return [{SHARD: number} for number in range(shards.reads)], "merged"
    field = shards.of[0]
    values = {**query.values, **query.fixed}
    if field in values:
        return [{field: values[field]}], "in turn"
    range_ = query.range
    if range_ is None or range_.part != field or range_.operator != "between":
        raise QueryRefused(
            pattern.place,
            f"it is sharded by the {shards.bucket} of {field}, and only a range with both ends says which shards to "
            f"read; use {field}.between(start, end)",
        )
    start, end = range_.operands
    buckets = _buckets(start, end, shards.bucket)
    if len(buckets) > TIME_SHARDS_MAX:
        raise QueryRefused(
            pattern.place, f"the range covers more than {TIME_SHARDS_MAX} shards; use a shorter range"
        )
    descending = _is_descending(pattern.key, field, buckets)
    if descending is not None and descending != newest_first:
        buckets = buckets[::-1]
    return [{field: bucket} for bucket in buckets], "merged" if descending is None else "in turn"


def _shard_values(key: KeyShape, query: SelectionRequest) -> dict[str, Any]:
    """Return the fields of a query that determine the shard of its items.

    In an index these are none while the number of shards is being changed, because items may still be in their former shard.
    Nor do fields count that the key contains rounded, such as the day of a time: matching items have different values.
    """
    assert key.shards is not None
    if key.index is None:
        return dict(query.values)
    if key.shards.by != "hash" or key.shards.reading is not None:
        return {}
    lossy = {name for source in key.sources if source.template for name in source.template.lossy_fields}
    return {n: v for n, v in {**query.values, **query.fixed}.items() if n not in lossy}


def _is_descending(key: KeyShape, field: str, buckets: Sequence[date]) -> bool | None:
    """Return whether the sort key descends with time; None if it is not ordered by time bucket."""
    source = next(iter(key.range), None)
    if source is None or source.fields[:1] != (field,):
        return None
    if source.template is None:
        return False
    part = source.template.steps[0].part
    if not part.ordered or (
        part.is_lossy and len({part.encode(bucket) for bucket in buckets}) < len(buckets)
    ):
        return None
    return part.descending


def _buckets(start: date, end: date, bucket: str) -> Sequence[date]:
    """Return the start of each time bucket in a range, as dates if the bounds are dates."""
    if isinstance(start, datetime) and isinstance(end, datetime):
        return _bucket_starts(start, end, bucket)
    first, last = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in (start, end))
    return [moment.date() for moment in _bucket_starts(first, last, bucket)]


def _bucket_starts(start: datetime, end: datetime, bucket: str) -> list[datetime]:
    at = start.astimezone(UTC).replace(second=0, microsecond=0)
    if bucket != "minute":
        at = at.replace(minute=0)
    if bucket not in ("minute", "hour"):
        at = at.replace(hour=0)
    if bucket in ("month", "year"):
        at = at.replace(day=1)
    if bucket == "year":
        at = at.replace(month=1)
    starts: list[datetime] = []
    while at <= end and len(starts) <= TIME_SHARDS_MAX:
        starts.append(at)
        try:
            if bucket in _STEP:
                at += _STEP[bucket]
            elif bucket == "month":
                at = (at + timedelta(days=32)).replace(day=1)
            else:
                at = at.replace(year=at.year + 1)
        except (OverflowError, ValueError):
            break  # past the last date that Python supports
    return starts


def _make_comparison(query: SelectionRequest) -> Callable[[Entity], bool]:
    """Return a function that repeats the query's comparisons on the entity, for keys that contain rounded values."""
    fixed = dict(query.fixed)
    range_ = query.range

    def accepts(entity: Entity) -> bool:
        values = entity.__dict__
        if any(name in values and values[name] != value for name, value in fixed.items()):
            return False
        if range_ is None or range_.part not in values:  # the key contains it without rounding
            return True
        value, (first, *_) = values[range_.part], range_.operands
        match range_.operator:
            case "lt":
                return bool(value < first)
            case "lte":
                return bool(value <= first)
            case "gt":
                return bool(value > first)
            case "gte":
                return bool(value >= first)
            case "between":
                return bool(first <= value <= range_.operands[1])
            case _:
                return bool(value.startswith(first))

    return accepts


def sort_value(attributes: Sequence[str], item: Mapping[str, Value]) -> tuple[Any, ...]:
    """Return what items of several shards are merged by: the sort key, then the whole key."""
    return tuple([_sortable(item[name]) for name in attributes if name in item])


def _sortable(value: Value) -> Any:
    tag, content = next(iter(value.items()))
    if tag == "N":
        return Decimal(content)
    if tag == "B":
        return b64decode(content)
    return content


def start_key(query: PreparedQuery, item: Mapping[str, Value]) -> Item:
    """Return the ExclusiveStartKey that continues after an item."""
    return {name: item[name] for name in query.key_attributes if name in item}
