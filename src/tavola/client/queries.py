"""Queries: a typed question as the requests that answer it, one for each shard."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tavola.client.context import Context
from tavola.client.requests import all_of, expressed, node_of
from tavola.expressions import Between, Call, Comparison, ConditionNode, Literal, Path
from tavola.model import (
    SHARD,
    Entity,
    KeyShape,
    Pattern,
    QueryRefused,
    Question,
    Range,
    Source,
    plain,
    shape_of,
    shard_of,
)
from tavola.values import Item, Value

TIME_SHARDS_MAX = 1000

_OPERATORS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_STEP = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, ready to be paged: a request for each shard, and how their answers are put in order."""

    pattern: Pattern
    requests: tuple[dict[str, Any], ...]
    in_turn: bool  # the shards follow each other in order, so that they need not be merged
    accepts: Callable[[Entity], bool] | None  # compares once more what a key tells without its last digits
    key_attributes: tuple[str, ...]  # what a place in the answer is told by
    empty: bool = False


def plan_query(
    context: Context,
    question: Question,
    *,
    newest_first: bool = False,
    consistent: bool | None = None,
    also: Sequence[ConditionNode] = (),
) -> Asked:
    """Return the requests of a question; `also` is filtered for besides what it says itself."""
    pattern = question.pattern
    shape = shape_of(pattern.owner)
    table = shape.home
    key = pattern.key
    assert shape.key is not None
    base: dict[str, Any] = {"TableName": context.name_of(table)}
    if key.index is not None:
        base["IndexName"] = key.index.name
    if consistent is None:
        consistent = pattern.access is not None and pattern.access.consistent
    if consistent:
        if key.index is not None and not key.index.local:
            raise QueryRefused(
                pattern.place,
                "a global index is read eventually; only the table and local indexes can be read consistently",
            )
        base["ConsistentRead"] = True
    if newest_first:
        base["ScanIndexForward"] = False
    sort_node, exact, empty = _sort_condition(pattern, question)
    filter_ = all_of([node_of(question.filter), *also])
    requests = []
    shards, in_turn = _shards(pattern, question, context)
    if newest_first and in_turn:
        shards = shards[::-1]
    for shard in shards:
        nodes = [
            _partition(pattern, source, {**question.values, **question.fixed, **shard}) for source in key.hash
        ]
        requests.append(expressed(dict(base), key_condition=all_of([*nodes, sort_node]), filter_=filter_))
    attributes = dict.fromkeys(
        (*(s.attribute for s in shape.key.key.sources), *(s.attribute for s in key.sources))
    )
    return Asked(
        pattern, tuple(requests), in_turn, None if exact else _comparer(question), tuple(attributes), empty
    )


def _partition(pattern: Pattern, source: Source, values: Mapping[str, Any]) -> ConditionNode:
    found = source.value({name: plain(value) for name, value in values.items()})
    if found is None:
        raise QueryRefused(pattern.place, f"the partition needs {', '.join(source.fields)}")
    return Comparison("=", Path((source.attribute,)), Literal(found))


def _sort_condition(pattern: Pattern, question: Question) -> tuple[ConditionNode | None, bool, bool]:
    """Return the condition on the sort key, whether it is exact, and whether nothing can satisfy it."""
    nodes: list[ConditionNode] = []
    fixed = {n: plain(v) for n, v in {**question.values, **question.fixed}.items()}
    exact = True
    for source in pattern.key.range:
        path = Path((source.attribute,))
        if source.field is not None:
            name = source.field.name
            if name in fixed:
                nodes.append(Comparison("=", path, Literal(source.field.encode(fixed[name]))))
                continue
            if question.range is not None and question.range.part == name:
                nodes.append(_native_range(path, source, question.range))
            break
        assert source.template is not None
        known: dict[str, Any] = {}
        for name in source.template.fields:
            if name not in fixed:
                break
            known[name] = fixed[name]
        ahead = source.template.fields[len(known) :]
        if question.range is not None and ahead and ahead[0] == question.range.part:
            operands = tuple(map(plain, question.range.operands))
            span = source.template.bounds(known, question.range.operator, *operands)
        else:
            span = source.template.bounds(known)
        exact = exact and span.exact
        if span.empty:
            return None, exact, True
        told = span.condition()
        if told is not None:
            nodes.append(_text_condition(path, *told))
        if ahead:
            break
    return all_of(nodes), exact, False


def _text_condition(path: Path, operator: str, texts: tuple[str, ...]) -> ConditionNode:
    literals = [Literal({"S": text}) for text in texts]
    if operator == "begins_with":
        return Call("begins_with", (path, literals[0]))
    if operator == "BETWEEN":
        return Between(path, literals[0], literals[1])
    return Comparison(operator, path, literals[0])


def _native_range(path: Path, source: Source, range_: Range) -> ConditionNode:
    assert source.field is not None
    literals = [Literal(source.field.encode(operand)) for operand in range_.operands]
    if range_.operator == "between":
        return Between(path, literals[0], literals[1])
    if range_.operator == "begins_with":
        return Call("begins_with", (path, literals[0]))
    return Comparison(_OPERATORS[range_.operator], path, literals[0])


def _shards(pattern: Pattern, question: Question, context: Context) -> tuple[list[dict[str, Any]], bool]:
    """Return what to add to the values for each shard, and whether the shards follow each other in order."""
    shards = pattern.key.shards
    if shards is None:
        return [{}], False
    if shards.by != "time":
        if pattern.key.index is None and shards.of and set(shards.of) <= question.values.keys():
            return [{SHARD: shard_of(shards, shape_of(pattern.owner), question.values)}], False
        return [{SHARD: number} for number in range(shards.reads)], False
    field = shards.of[0]
    told = {**question.values, **question.fixed}
    if field in told:
        return [{field: told[field]}], True
    range_ = question.range
    if range_ is None or range_.part != field or range_.operator in ("lt", "lte", "begins_with"):
        raise QueryRefused(
            pattern.place,
            f"it is sharded by the {shards.bucket} of {field}; ask with {field}.between(…) or {field}.gte(…)",
        )
    now = datetime.fromtimestamp(context.clock.now(), UTC)
    start, end = range_.operands[0], range_.operands[1] if range_.operator == "between" else now
    buckets = _buckets(start, end, shards.bucket)
    if len(buckets) > TIME_SHARDS_MAX:
        raise QueryRefused(
            pattern.place, f"the range is {len(buckets)} shards long; ask for {TIME_SHARDS_MAX} at most"
        )
    sorts = pattern.key.range[0].fields if pattern.key.range else ()
    return [{field: bucket} for bucket in buckets], bool(sorts) and sorts[0] == field


def _buckets(start: datetime, end: datetime, bucket: str) -> list[datetime]:
    """Return a moment in each stretch of time from one moment to another."""
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
        if bucket in _STEP:
            at += _STEP[bucket]
        elif bucket == "month":
            at = (at + timedelta(days=32)).replace(day=1)
        else:
            at = at.replace(year=at.year + 1)
    return found


def _comparer(question: Question) -> Callable[[Entity], bool]:
    """Return what decides, on the entity itself, a comparison that the key's text decides only roughly."""
    fixed = dict(question.fixed)
    range_ = question.range

    def accepts(entity: Entity) -> bool:
        values = entity.__dict__
        if any(name in values and values[name] != value for name, value in fixed.items()):
            return False
        if range_ is None or range_.part not in values:
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


def sort_place(key: KeyShape, item: Mapping[str, Value], attributes: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what an item sorts by among those of other shards: its sort key, then its whole key."""
    return tuple(
        _sortable(item[name]) for name in (*(s.attribute for s in key.range), *attributes) if name in item
    )


def _sortable(value: Value) -> Any:
    tag, content = next(iter(value.items()))
    if tag == "N":
        return Decimal(content)
    if tag == "B":
        return b64decode(content)
    return content


def start_key(asked: Asked, item: Mapping[str, Value]) -> Item:
    """Return the place of an item in an answer, from which to go on."""
    return {name: item[name] for name in asked.key_attributes if name in item}
