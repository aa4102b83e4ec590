"""Queries: a typed question as the requests that answer it, one for each shard."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from typing import Literal as Literal_

from tavola.client.context import Context
from tavola.client.requests import all_of, expressed, node_of
from tavola.expressions.nodes import Between, Comparison, ConditionNode, FunctionCall, Literal, Path, ValueRef
from tavola.expressions.renderer import Renderer
from tavola.model import (
    SHARD,
    Entity,
    KeyShape,
    KeySource,
    Pattern,
    QueryRefused,
    QueryRequest,
    Range,
    Shape,
    enum_value,
    result_entity,
    shape_of,
    shard_of,
)
from tavola.values import Item, Value

TIME_SHARDS_MAX = 1000

Order = Literal_["merged", "in turn", "any"]

_OPERATORS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_NOTHING: tuple[Value, ...] = ({"S": ""}, {"B": ""})  # what no key can be
_STEP = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A question, ready to be paged: a request for each shard, and how their answers are put in order."""

    operation: str
    requests: tuple[dict[str, Any], ...]
    order: Order  # of the shards: by sort key, one after another, or as they come
    key_attributes: tuple[str, ...]  # what a place in the answer is told by
    identity: Callable[[], list[Any]]  # what makes it this question, whoever asks it and when
    places: tuple[str, ...] = ()  # the attributes that put the answers of shards in order
    newest_first: bool = False
    accepts: Callable[[Entity], bool] | None = None  # compares once more what a key tells only roughly
    empty: bool = False


def plan_query(
    context: Context,
    question: QueryRequest,
    *,
    newest_first: bool = False,
    consistent: bool | None = None,
    also: Sequence[ConditionNode] = (),
    projection: Sequence[str] = (),
) -> PreparedQuery:
    """Return the requests of a question; `also` is filtered for besides what it says itself."""
    pattern = question.pattern
    shape = shape_of(pattern.owner)
    key = pattern.key
    assert shape.key is not None
    sort_node, rough, empty = _sort_condition(pattern, question)
    if rough:
        _check_comparable(pattern, shape, rough)
    shards, order = _shards(pattern, question, newest_first)
    # The shards' requests are one but for the values of the partition, which are put in last.
    nodes: list[ConditionNode | None] = [
        Comparison("=", Path((source.attribute,)), ValueRef(f":p{number}"))
        for number, source in enumerate(key.hash)
    ]
    request = expressed(
        _base(context, pattern, shape, newest_first, consistent),
        key_condition=all_of([*nodes, sort_node]),
        filter_=all_of([node_of(question.filter), *also]),
        projection=projection,
    )
    told = request.get("ExpressionAttributeValues", {})
    values = {name: enum_value(value) for name, value in (*question.values.items(), *question.fixed.items())}
    requests = []
    for shard in shards:
        partition = _partition(pattern, {**values, **shard})
        empty = empty or any(value in _NOTHING for value in partition.values())
        requests.append({**request, "ExpressionAttributeValues": {**partition, **told}})
    attributes = dict.fromkeys(s.attribute for s in (*shape.key.key.sources, *key.sources))
    places = dict.fromkeys((*(source.attribute for source in key.range), *attributes))
    return PreparedQuery(
        "Query", tuple(requests), order, tuple(attributes),
        lambda: _identity(context, question, newest_first), tuple(places), newest_first,
        _comparer(question) if rough else None, empty or not requests,
    )  # fmt: skip


def _base(
    context: Context, pattern: Pattern, shape: Shape, newest_first: bool, consistent: bool | None
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
                "a global index is read eventually; only the table and local indexes can be read consistently",
            )
        base["ConsistentRead"] = True
    if newest_first:
        base["ScanIndexForward"] = False
    return base


def _identity(context: Context, question: QueryRequest, newest_first: bool) -> list[Any]:
    """Return what a question is, as data that is the same in every process and however it is sharded."""
    pattern, range_ = question.pattern, question.range
    shape = shape_of(pattern.owner)
    index = pattern.key.index

    def spelled(name: str, value: Any) -> Value:
        return shape.fields[name].encode(enum_value(value))

    return [
        "Query", context.name_of(shape.home), None if index is None else index.name, pattern.place, newest_first,
        {name: spelled(name, value) for name, value in question.values.items()},
        {name: spelled(name, value) for name, value in question.fixed.items()},
        None if range_ is None else [range_.part, range_.operator, *(spelled(range_.part, o) for o in range_.operands)],
        told_condition(node_of(question.filter)),
    ]  # fmt: skip


def told_condition(node: ConditionNode | None) -> list[Any] | None:
    """Return a condition as data, equal for equal ones."""
    if node is None:
        return None
    renderer = Renderer()
    return [renderer.condition(node), renderer.names, renderer.values]


def _partition(pattern: Pattern, values: Mapping[str, Any]) -> dict[str, Value]:
    """Return the values of the partition, by the places that the requests have for them."""
    found: dict[str, Value] = {}
    for number, source in enumerate(pattern.key.hash):
        value = source.value(values)
        if value is None:
            raise QueryRefused(pattern.place, f"the partition needs {', '.join(source.fields)}")
        found[f":p{number}"] = value
    return found


def _sort_condition(pattern: Pattern, question: QueryRequest) -> tuple[ConditionNode | None, set[str], bool]:
    """Return the condition on the sort key, which fields it compares only roughly, and whether nothing can meet it."""
    nodes: list[ConditionNode | None] = []
    fixed = {n: enum_value(v) for n, v in {**question.values, **question.fixed}.items()}
    range_ = question.range
    rough: set[str] = set()
    for source in pattern.key.range:
        path = Path((source.attribute,))
        if source.field is not None:
            name = source.field.name
            if name in fixed:
                value = source.field.encode(fixed[name])
                if value in _NOTHING:
                    return None, rough, True
                nodes.append(Comparison("=", path, Literal(value)))
                continue
            if range_ is not None and range_.part == name:
                node, empty = _native_range(path, source, range_)
                if empty:
                    return None, rough, True
                nodes.append(node)
            break
        assert source.template is not None
        known: dict[str, Any] = {}
        for name in source.template.fields:
            if name not in fixed:
                break
            known[name] = fixed[name]
        ahead = source.template.fields[len(known) :]
        compared = set(known)
        if range_ is not None and ahead and ahead[0] == range_.part:
            span = source.template.bounds(known, range_.operator, *map(enum_value, range_.operands))
            compared.add(range_.part)
        else:
            span = source.template.bounds(known)
        if not span.exact:
            rough |= source.template.lossy_fields & compared
        if span.empty:
            return None, rough, True
        told = span.condition()
        if told is not None:
            nodes.append(_text_condition(path, *told))
        if ahead:
            break
    return all_of(nodes), rough, False


def _check_comparable(pattern: Pattern, owner: Shape, rough: set[str]) -> None:
    """Refuse a comparison that the key decides only roughly, and that what comes back does not tell either."""
    if pattern.hydrate or pattern.result == owner.entity.__name__:
        return
    absent = sorted(rough - shape_of(result_entity(pattern)).fields.keys())
    if absent:
        raise QueryRefused(
            pattern.place,
            f"the key tells {', '.join(absent)} without its last digits, and {pattern.result} does not have it, so this "
            f"cannot be compared; give {pattern.result} the field, say hydrate=True, or ask with gte or lt and a value "
            "that the key tells whole",
        )


def _text_condition(path: Path, operator: str, texts: tuple[str, ...]) -> ConditionNode:
    literals = [Literal({"S": text}) for text in texts]
    if operator == "begins_with":
        return FunctionCall("begins_with", (path, literals[0]))
    if operator == "BETWEEN":
        return Between(path, literals[0], literals[1])
    return Comparison(operator, path, literals[0])


def _native_range(path: Path, source: KeySource, range_: Range) -> tuple[ConditionNode | None, bool]:
    """Return the condition on a field that is its own key, None where it is none, and whether nothing can meet it."""
    assert source.field is not None
    operator = range_.operator
    values = [source.field.encode(operand) for operand in range_.operands]
    if operator == "between" and _sortable(values[0]) > _sortable(values[1]):
        return None, True
    if values[-1] in _NOTHING:  # no key is empty: each comes after it, and DynamoDB is not to be asked for it
        return None, operator in ("lt", "lte", "between")
    literals = [Literal(value) for value in values]
    if operator == "between":
        if values[0] in _NOTHING:
            return Comparison("<=", path, literals[1]), False
        return Between(path, literals[0], literals[1]), False
    if operator == "begins_with":
        return FunctionCall("begins_with", (path, literals[0])), False
    return Comparison(_OPERATORS[operator], path, literals[0]), False


def shards_asked(pattern: Pattern, question: QueryRequest) -> int:
    """Return how many shards a question asks; one, where there are none."""
    return len(_shards(pattern, question, newest_first=False)[0])


def _shards(
    pattern: Pattern, question: QueryRequest, newest_first: bool
) -> tuple[Sequence[dict[str, Any]], Order]:
    """Return what to add to the values for each shard, and how the shards' answers are put in order."""
    shards = pattern.key.shards
    if shards is None:
        return [{}], "in turn"
    if shards.by != "time":
        told = _deciding(pattern.key, question)
        if shards.of and set(shards.of) <= told.keys():
            return [{SHARD: shard_of(shards, shape_of(pattern.owner), told)}], "in turn"
        return [{SHARD: number} for number in range(shards.reads)], "merged"
    field = shards.of[0]
    told = {**question.values, **question.fixed}
    if field in told:
        return [{field: told[field]}], "in turn"
    range_ = question.range
    if range_ is None or range_.part != field or range_.operator != "between":
        raise QueryRefused(
            pattern.place,
            f"it is sharded by the {shards.bucket} of {field}, and only a range with both ends says which shards to "
            f"ask; ask with {field}.between(start, end)",
        )
    start, end = range_.operands
    buckets = _buckets(start, end, shards.bucket)
    if len(buckets) > TIME_SHARDS_MAX:
        raise QueryRefused(
            pattern.place, f"the range is more than {TIME_SHARDS_MAX} shards long; ask for a shorter one"
        )
    falling = _falling(pattern.key, field, buckets)
    if falling is not None and falling != newest_first:
        buckets = buckets[::-1]
    return [{field: bucket} for bucket in buckets], "merged" if falling is None else "in turn"


def _deciding(key: KeyShape, question: QueryRequest) -> dict[str, Any]:
    """Return the fields by which a question says in which shard its items are.

    In an index that is none while the count is being changed, for items may stand where it was; nor is it a field of which the
    key holds a part alone, such as the day of a time, for the items that are found have others.
    """
    assert key.shards is not None
    if key.index is None:
        return dict(question.values)
    if key.shards.by != "hash" or key.shards.reading is not None:
        return {}
    lossy = {name for source in key.sources if source.template for name in source.template.lossy_fields}
    return {n: v for n, v in {**question.values, **question.fixed}.items() if n not in lossy}


def _falling(key: KeyShape, field: str, buckets: Sequence[date]) -> bool | None:
    """Return whether the sort key falls as time rises; None where it does not go by time, bucket by bucket."""
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
    """Return a moment in each stretch of time from one moment to another, or a day where they are days."""
    if isinstance(start, datetime) and isinstance(end, datetime):
        return _moments(start, end, bucket)
    first, last = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in (start, end))
    return [moment.date() for moment in _moments(first, last, bucket)]


def _moments(start: datetime, end: datetime, bucket: str) -> list[datetime]:
    at = start.astimezone(UTC).replace(second=0, microsecond=0)
    if bucket != "minute":
        at = at.replace(minute=0)
    if bucket not in ("minute", "hour"):
        at = at.replace(hour=0)
    if bucket in ("month", "year"):
        at = at.replace(day=1)
    if bucket == "year":
        at = at.replace(month=1)
    found: list[datetime] = []
    while at <= end and len(found) <= TIME_SHARDS_MAX:
        found.append(at)
        try:
            if bucket in _STEP:
                at += _STEP[bucket]
            elif bucket == "month":
                at = (at + timedelta(days=32)).replace(day=1)
            else:
                at = at.replace(year=at.year + 1)
        except (OverflowError, ValueError):
            break  # the last there is
    return found


def _comparer(question: QueryRequest) -> Callable[[Entity], bool]:
    """Return what decides, on the entity itself, a comparison that the key's text decides only roughly."""
    fixed = dict(question.fixed)
    range_ = question.range

    def accepts(entity: Entity) -> bool:
        values = entity.__dict__
        if any(name in values and values[name] != value for name, value in fixed.items()):
            return False
        if range_ is None or range_.part not in values:  # the key has told it whole
            return True
        found, (first, *_) = values[range_.part], range_.operands
        match range_.operator:
            case "lt":
                return bool(found < first)
            case "lte":
                return bool(found <= first)
            case "gt":
                return bool(found > first)
            case "gte":
                return bool(found >= first)
            case "between":
                return bool(first <= found <= range_.operands[1])
            case _:
                return bool(found.startswith(first))

    return accepts


def sort_place(places: Sequence[str], item: Mapping[str, Value]) -> tuple[Any, ...]:
    """Return what an item sorts by among those of other shards: its sort key, then its whole key."""
    return tuple([_sortable(item[name]) for name in places if name in item])


def _sortable(value: Value) -> Any:
    tag, content = next(iter(value.items()))
    if tag == "N":
        return Decimal(content)
    if tag == "B":
        return b64decode(content)
    return content


def start_key(asked: PreparedQuery, item: Mapping[str, Value]) -> Item:
    """Return the place of an item in an answer, from which to go on."""
    return {name: item[name] for name in asked.key_attributes if name in item}
