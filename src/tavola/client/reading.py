"""Reading: query, scan, count and collect, as steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tavola.client.batches import get_items
from tavola.client.context import Context
from tavola.client.expiry import alive, expired
from tavola.client.marshalling import entity_of, is_kind, recognised, view_of
from tavola.client.pages import Stretch, read_page
from tavola.client.queries import Asked, plan_query
from tavola.client.requests import all_of, expressed, key_only
from tavola.client.steps import Call, Steps, Together
from tavola.errors import TavolaError
from tavola.expressions import Call as FunctionCall
from tavola.expressions import Comparison, ConditionNode, Literal, Or, Path
from tavola.keys import Template
from tavola.model import (
    Collection,
    Condition,
    Entity,
    KeyShape,
    ModelError,
    Pattern,
    Selection,
    Shape,
    Table,
    entity_given,
    members_of,
    question_of,
    shape_of,
)
from tavola.values import Item

E = TypeVar("E", bound=Entity)
C = TypeVar("C", bound=Collection)


@dataclass(frozen=True, slots=True)
class Paging:
    """How much of an answer is wanted, and from where."""

    limit: int | None = None
    page_size: int | None = None
    cursor: str | None = None
    newest_first: bool = False

    def check(self, place: str) -> None:
        """Refuse limits that are none."""
        for name in ("limit", "page_size"):
            told = getattr(self, name)
            if told is not None and told < 1:
                raise ModelError(place, f"{name}={told} is none; give 1 or more, or leave it out")


def query(
    context: Context, selection: Selection[E], paging: Paging, consistent: bool | None
) -> Steps[Stretch[E]]:
    """Return a page of what a question finds."""
    question = question_of(selection)
    pattern = question.pattern
    paging.check(pattern.place)
    asked = plan_query(context, question, newest_first=paging.newest_first, consistent=consistent)
    if asked.empty:
        return Stretch([], None, 0, 0)
    owner = shape_of(pattern.owner)
    if pattern.hydrate:
        return (yield from _hydrated(context, asked, owner, paging))
    stretch: Stretch[E] = yield from read_page(
        context, asked, "Query", owner.home, _converter(pattern, owner, asked),
        limit=paging.limit, page_size=paging.page_size, cursor=paging.cursor,
        newest_first=paging.newest_first, key=pattern.key,
    )  # fmt: skip
    return stretch


def _hydrated(context: Context, asked: Asked, owner: Shape, paging: Paging) -> Steps[Stretch[Any]]:
    """Return a page of whole entities, of which the index holds only a part; what is gone meanwhile is left out."""
    table = owner.home
    entries: Stretch[Item] = yield from read_page(
        context, asked, "Query", table, lambda item: item if fits_index(owner, table, item) else None,
        limit=paging.limit, page_size=paging.page_size, cursor=paging.cursor,
        newest_first=paging.newest_first, key=asked.pattern.key,
    )  # fmt: skip
    items = yield from get_items(context, table, [key_only(owner, entry) for entry in entries.items], False)
    now_s = context.clock.now()
    found = [entity_of(owner.entity, i) for i in items if i is not None and not expired(table, i, now_s)]
    if asked.accepts is not None:
        found = [entity for entity in found if asked.accepts(entity)]
    return Stretch(found, entries.cursor, entries.scanned, entries.requests)


def fits_index(owner: Shape, table: type[Table], item: Item) -> bool:
    """Return whether an index's entry is of an entity; the tag is looked at where it is projected."""
    return is_kind(owner, table, item)


def _converter(pattern: Pattern, owner: Shape, asked: Asked) -> Callable[[Item], Any]:
    table = owner.home
    result = owner.entity
    if pattern.result != owner.entity.__name__:
        result = entity_given(pattern)
    key, accepts = pattern.key, asked.accepts
    whole = result is owner.entity and (key.index is None or key.index.projection == "ALL")

    def convert(item: Item) -> Any:
        if not is_kind(owner, table, item):
            return None
        entity = entity_of(result, item) if whole else view_of(result, item, key, owner)
        return entity if accepts is None or accepts(entity) else None

    return convert


def scan(
    context: Context,
    what: type[Entity] | type[Table],
    where: Condition[Any] | None,
    paging: Paging,
    segments: int,
    consistent: bool,
) -> Steps[Stretch[Any]]:
    """Return a page of everything in a table, or of all items of one entity; each item of the table is read."""
    shape: Shape | None = None
    if issubclass(what, Entity):
        shape = shape_of(what)
        table = shape.home
    else:
        table = what
    paging.check(what.__name__)
    filter_ = all_of([_tagged(shape, table), None if where is None else where.node])
    base: dict[str, Any] = {"TableName": context.name_of(table)}
    if consistent:
        base["ConsistentRead"] = True
    requests = []
    for segment in range(segments):
        more = {} if segments == 1 else {"Segment": segment, "TotalSegments": segments}
        requests.append(expressed({**base, **more}, filter_=filter_))
    settings = table.settings
    keys = (settings.hash,) if settings.range is None else (settings.hash, settings.range)
    pattern: Any = None if shape is None else shape.key
    asked = Asked(pattern, tuple(requests), False, None, keys)

    def convert(item: Item) -> Entity | None:
        if shape is not None:
            return entity_of(shape.entity, item) if is_kind(shape, table, item) else None
        kind = recognised(table, item)
        return None if kind is None else entity_of(kind, item)

    stretch: Stretch[Any] = yield from read_page(
        context, asked, "Scan", table, convert,
        limit=paging.limit, page_size=paging.page_size, cursor=paging.cursor, newest_first=False, key=None,
    )  # fmt: skip
    return stretch


def _tagged(shape: Shape | None, table: type[Table]) -> ConditionNode | None:
    """Return the filter that leaves one entity's items; those without a tag are told by their keys."""
    tag = table.settings.tag
    if shape is None or tag is None:
        return None
    path = Path((tag,))
    return Or(
        (Comparison("=", path, Literal({"S": shape.name})), FunctionCall("attribute_not_exists", (path,)))
    )


def count(context: Context, selection: Selection[Any], consistent: bool | None) -> Steps[int]:
    """Return how many items a question finds; they are read and paid for, and not sent."""
    question = question_of(selection)
    owner = shape_of(question.pattern.owner)
    index = question.pattern.key.index
    also: list[ConditionNode] = []
    if (
        index is None or index.projection == "ALL"
    ):  # else neither the tag nor the time to live can be asked for
        tagged = _tagged(owner, owner.home)
        also += [] if tagged is None else [tagged]
        ttl = owner.home.settings.ttl
        also += [] if ttl is None else [alive(ttl, context.clock.now())]
    asked = plan_query(context, question, consistent=consistent, also=also)
    if asked.empty:
        return 0
    if asked.accepts is not None:
        return (yield from _count_read(context, selection, consistent))
    requests = [{**request, "Select": "COUNT"} for request in asked.requests]
    total = 0
    while requests:
        if len(requests) == 1:
            answers: list[Any] = [(yield Call("Query", requests[0]))]
        else:
            answers = yield Together(tuple(Call("Query", request) for request in requests))
        following = []
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, TavolaError):
                raise answer
            total += answer["Count"]
            if "LastEvaluatedKey" in answer:
                following.append({**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]})
        requests = following
    return total


def _count_read(context: Context, selection: Selection[Any], consistent: bool | None) -> Steps[int]:
    """Return how many items a question finds whose keys tell its values only roughly: they must be looked at."""
    total = 0
    cursor = None
    while True:
        stretch = yield from query(context, selection, Paging(cursor=cursor), consistent)
        total += len(stretch.items)
        cursor = stretch.cursor
        if cursor is None:
            return total


def collect(context: Context, collection: C, consistent: bool | None, newest_first: bool) -> Steps[C]:
    """Return a collection with its members filled: one query, all its pages."""
    kind = type(collection)
    members = members_of(kind)
    first = members[0]
    shape = shape_of(first.entity)
    table = shape.home
    request = _collection_request(context, collection, first.key, table, consistent)
    if newest_first:
        request["ScanIndexForward"] = False
    found: dict[str, list[Entity]] = {member.name: [] for member in members}
    names = {member.entity: member for member in members}
    now_s = context.clock.now()
    while True:
        answer = yield Call("Query", request)
        for item in answer["Items"]:
            member = names.get(recognised(table, item) or Entity)
            if member is None or expired(table, item, now_s):
                continue
            index = member.key.index
            whole = index is None or index.projection == "ALL"
            owner = shape_of(member.entity)
            found[member.name].append(
                entity_of(member.entity, item) if whole else view_of(member.entity, item, member.key, owner)
            )
        if "LastEvaluatedKey" not in answer:
            break
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}
    filled = kind(**{name: collection.__dict__[name] for name in kind.__parts__})
    for member in members:
        entities = found[member.name]
        filled.__dict__[member.name] = entities if member.many else next(iter(entities), None)
    return filled


def _collection_request(
    context: Context, collection: Collection, key: KeyShape, table: type[Table], consistent: bool | None
) -> dict[str, Any]:
    kind = type(collection)
    source = key.hash[0]
    pk = kind.__pk__ or (f"{{{source.fields[0]}}}" if source.template is None else source.template.source)
    names = Template.parse(pk, table.settings.delimiter).fields
    values = dict(zip(source.fields, (collection.__dict__[name] for name in names), strict=True))
    found = source.value(values)
    assert found is not None
    nodes: list[ConditionNode] = [Comparison("=", Path((source.attribute,)), Literal(found))]
    if kind.__sk__:
        nodes.append(
            FunctionCall("begins_with", (Path((key.range[0].attribute,)), Literal({"S": kind.__sk__})))
        )
    request: dict[str, Any] = {"TableName": context.name_of(table)}
    if key.index is not None:
        request["IndexName"] = key.index.name
    access = kind.__access__
    if consistent or (consistent is None and access is not None and access.consistent):
        request["ConsistentRead"] = True
    return expressed(request, key_condition=all_of(nodes))
