"""Query, scan, count and collect: the programs behind `Db` and `AsyncDb`."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tavola.client.arguments import check_collection, check_condition, check_scanned
from tavola.client.context import Context
from tavola.client.effects import Call, Program
from tavola.client.entries import Entries, hides_expiry
from tavola.client.expiry import alive, expired
from tavola.client.marshalling import entity_of, is_kind, recognised
from tavola.client.pages import FetchedPage, Finish, read_all, read_page
from tavola.client.queries import PreparedQuery, plan_query, told_condition
from tavola.client.requests import all_of, expressed, node_of
from tavola.expressions.nodes import Between, Comparison, ConditionNode, FunctionCall, Literal, Or, Path
from tavola.keys import Template
from tavola.limits import SCAN_SEGMENTS_MAX
from tavola.model import (
    UNIQUE_ATTRIBUTE,
    Collection,
    CollectionMember,
    Condition,
    Entity,
    ItemUnreadable,
    KeyShape,
    ModelError,
    Selection,
    Shape,
    Table,
    members_of,
    request_of,
    result_entity,
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
    context: Context,
    selection: Selection[E],
    *,
    limit: int | None = None,
    cursor: str | None = None,
    newest_first: bool = False,
    consistent: bool | None = None,
    page_size: int | None = None,
    unreadable: Callable[[ItemUnreadable], object] | None = None,
) -> Program[FetchedPage[E]]:
    """Return the entities that match a query, in the order of its sort key.

    With a `limit`, the page holds that many, and its cursor continues after them; without, iterating gives all matches.
    An item that does not fit its entity raises `ItemUnreadable`; with `unreadable`, that function gets the error and the
    item is left out.
    """
    paging = Paging(limit, page_size, cursor, newest_first)
    question = request_of(selection)
    pattern = question.pattern
    paging.check(pattern.place)
    asked = plan_query(context, question, newest_first=paging.newest_first, consistent=consistent)
    if asked.empty:
        return FetchedPage([], None, 0, 0)
    owner = shape_of(pattern.owner)
    result = owner.entity if pattern.result == owner.entity.__name__ else result_entity(pattern)
    entries = Entries(
        context, owner, pattern.key, result,
        hydrate=pattern.hydrate, filter_=node_of(question.filter), accepts=asked.accepts, unreadable=unreadable,
    )  # fmt: skip
    return (yield from _page(context, asked, entries.made, paging))


def _page(
    context: Context, asked: PreparedQuery, finish: Finish[Any], paging: Paging
) -> Program[FetchedPage[Any]]:
    stretch: FetchedPage[Any] = yield from read_page(
        context, asked, finish, limit=paging.limit, page_size=paging.page_size, cursor=paging.cursor
    )
    return stretch


def scan(
    context: Context,
    what: type[E],
    *,
    where: Condition[E] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    page_size: int | None = None,
    segments: int = 1,
    consistent: bool = False,
) -> Program[FetchedPage[E]]:
    """Return all entities of one class, in no order; every item of the table is read and paid for."""
    return _scan(context, what, where, Paging(limit, page_size, cursor), segments, consistent)


def scan_table(
    context: Context,
    table: type[Table],
    *,
    limit: int | None = None,
    cursor: str | None = None,
    page_size: int | None = None,
    segments: int = 1,
    consistent: bool = False,
) -> Program[FetchedPage[Entity]]:
    """Return the entities of all classes in a table, in no order; items that are of no class are left out."""
    return _scan(context, table, None, Paging(limit, page_size, cursor), segments, consistent)


def _scan(
    context: Context,
    what: type[Entity] | type[Table],
    where: Condition[Any] | None,
    paging: Paging,
    segments: int,
    consistent: bool,
    kinds: Container[type[Entity]] | None = None,
) -> Program[FetchedPage[Any]]:
    """Return a page of a table's items, or of those of one entity; `kinds` limits a table's to some entities."""
    shape: Shape | None = None
    check_scanned(what)
    if issubclass(what, Entity):
        shape = shape_of(what)
        check_condition(shape, where, "scan", "where")
        table = shape.home
    else:
        table = what
    paging.check(what.__name__)
    _check_segments(what.__name__, segments)
    filter_ = all_of([_tagged(shape, table), node_of(where)])
    base: dict[str, Any] = {"TableName": context.name_of(table)}
    if consistent:
        base["ConsistentRead"] = True
    request = expressed(base, filter_=filter_)
    requests = [request]
    if segments > 1:
        requests = [{**request, "Segment": segment, "TotalSegments": segments} for segment in range(segments)]
    kind = None if shape is None else shape.name
    asked = PreparedQuery(
        "Scan", tuple(requests), "any", table.settings.key_names,
        lambda: ["Scan", context.name_of(table), kind, told_condition(node_of(where))],
    )  # fmt: skip

    def finish(items: Sequence[Item]) -> Program[list[Entity | None]]:
        yield from ()
        now_s = context.clock.now()
        return [
            None if expired(table, item, now_s) else _scanned(shape, table, item, kinds) for item in items
        ]

    return (yield from _page(context, asked, finish, paging))


def _check_segments(place: str, segments: int) -> None:
    if not 1 <= segments <= SCAN_SEGMENTS_MAX:
        raise ModelError(
            place,
            f"segments={segments!r} is no way to share a scan; give 1 to {SCAN_SEGMENTS_MAX:,}, about as many as "
            "there are connections to read with",
        )


def _scanned(
    shape: Shape | None, table: type[Table], item: Item, kinds: Container[type[Entity]] | None
) -> Entity | None:
    if shape is not None:
        return entity_of(shape.entity, item) if is_kind(shape, table, item) else None
    kind = recognised(table, item)
    return None if kind is None or (kinds is not None and kind not in kinds) else entity_of(kind, item)


def scan_kinds(
    context: Context, table: type[Table], kinds: Container[type[Entity]], cursor: str | None
) -> Program[FetchedPage[Entity]]:
    """Return a page of the items of some entities, read consistently; for those who build on the client."""
    return _scan(context, table, None, Paging(cursor=cursor), 1, True, kinds)


def _tagged(shape: Shape | None, table: type[Table]) -> ConditionNode | None:
    """Return the filter that leaves one entity's items; those without a tag are told by their keys."""
    tag = table.settings.tag
    if shape is None or tag is None:
        return None
    path = Path((tag,))
    return Or(
        (Comparison("=", path, Literal({"S": shape.name})), FunctionCall("attribute_not_exists", (path,)))
    )


def count(context: Context, selection: Selection[Any], *, consistent: bool | None = None) -> Program[int]:
    """Return how many items match a query; every one is read and paid for, though few are transferred."""
    question = request_of(selection)
    owner, key = shape_of(question.pattern.owner), question.pattern.key
    table, now_s = owner.home, context.clock.now()
    also, told = _count_filter(owner, key, now_s)
    projection = () if told else _telling(owner, key)
    asked = plan_query(context, question, consistent=consistent, also=also, projection=projection)
    if asked.empty:
        return 0
    if asked.accepts is not None or hides_expiry(owner, key):
        return (yield from _count_read(context, selection, consistent))
    total = 0

    def receive(answer: dict[str, Any]) -> None:
        nonlocal total
        if told:
            total += answer["Count"]
            return
        items = answer["Items"]
        total += sum(is_kind(owner, table, item) and not expired(table, item, now_s) for item in items)

    requests = [{**request, "Select": "COUNT"} for request in asked.requests] if told else asked.requests
    yield from read_all("Query", requests, receive)
    return total


def _count_filter(owner: Shape, key: KeyShape, now_s: float) -> tuple[list[ConditionNode], bool]:
    """Return the filter that leaves what a query would give, and whether it leaves nothing else.

    An attribute that an index does not hold cannot be asked for, nor can one that is its key; and without a tag only
    the table's key tells the kinds apart.
    """
    settings = owner.home.settings
    also: list[ConditionNode] = []
    told = True
    tagged = _tagged(owner, owner.home)
    if tagged is not None and (key.index is None or key.index.holds(settings.tag or "")):
        also.append(tagged)
    else:
        told = False
    ttl = settings.ttl
    if ttl is not None and (key.index is None or key.index.holds(ttl)):
        if key.index is not None and ttl in key.index.attributes:
            told = False
        else:
            also.append(alive(ttl, now_s))
    return also, told


def _telling(owner: Shape, key: KeyShape) -> tuple[str, ...]:
    """Return the attributes, of those that are there to be read, by which an item's kind and end are told."""
    settings = owner.home.settings
    more = (name for name in (settings.tag, settings.ttl, UNIQUE_ATTRIBUTE) if name is not None)
    index = key.index
    return (*settings.key_names, *(name for name in more if index is None or index.holds(name)))


def _count_read(context: Context, selection: Selection[Any], consistent: bool | None) -> Program[int]:
    """Return how many items a question finds whose keys tell its values only roughly: they must be looked at."""
    total = 0
    cursor = None
    while True:
        stretch = yield from query(context, selection, cursor=cursor, consistent=consistent)
        total += len(stretch.items)
        cursor = stretch.cursor
        if cursor is None:
            return total


def collect(
    context: Context,
    collection: C,
    *,
    consistent: bool | None = None,
    newest_first: bool = False,
    limit: int | None = None,
) -> Program[C]:
    """Return a collection with its members, entities of several classes, from one query; `limit` counts items."""
    check_collection(collection)
    Paging(limit).check(type(collection).__qualname__)
    kind = type(collection)
    members = members_of(kind)
    first = members[0]
    shape = shape_of(first.entity)
    table = shape.home
    request = _collection_request(context, collection, first.key, table, consistent)
    if newest_first:
        request["ScanIndexForward"] = False
    items: list[Item] = []
    if limit is None:
        yield from read_all("Query", [request], lambda answer: items.extend(answer["Items"]))
    else:
        yield from _read_some(request, limit, items)
    by_entity: dict[type[Entity] | None, list[Item]] = {}
    for item in items:
        by_entity.setdefault(recognised(table, item), []).append(item)
    found: dict[str, list[Entity]] = {}
    for member in members:
        entries = Entries(context, shape_of(member.entity), member.key, member.entity)
        made = yield from entries.made(by_entity.get(member.entity, ()))
        found[member.name] = [entity for entity in made if entity is not None]
    filled = kind(**{name: collection.__dict__[name] for name in kind.__parts__})
    for member in members:
        entities = found[member.name]
        filled.__dict__[member.name] = entities if member.many else next(iter(entities), None)
    return filled


def _read_some(request: dict[str, Any], limit: int, items: list[Item]) -> Program[None]:
    """Add the first items of a query; a page may have fewer than were asked for."""
    while True:
        answer = yield Call("Query", {**request, "Limit": limit - len(items)})
        items.extend(answer["Items"])
        if len(items) >= limit or "LastEvaluatedKey" not in answer:
            return
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


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
    elif (stretch := _stretch(members_of(kind))) is not None:
        first, last = (Literal({"S": text}) for text in stretch)
        nodes.append(Between(Path((key.range[0].attribute,)), first, last))
    request: dict[str, Any] = {"TableName": context.name_of(table)}
    if key.index is not None:
        request["IndexName"] = key.index.name
    access = kind.__access__
    if consistent or (consistent is None and access is not None and access.consistent):
        request["ConsistentRead"] = True
    return expressed(request, key_condition=all_of(nodes))


def _stretch(members: Sequence[CollectionMember]) -> tuple[str, str] | None:
    """Return between which sort keys the members of a collection stand, None where that is not known.

    What else is in the partition before and after them is then neither read nor paid for.
    """
    ends: list[tuple[str, str]] = []
    for member in members:
        template = member.key.range[0].template if len(member.key.range) == 1 else None
        if template is None or not template.literal_prefix:
            return None
        prefix = template.literal_prefix
        after = chr(ord(prefix[-1]) + 1)
        if "\ud800" <= after <= "\udfff":
            return None
        ends.append((prefix, template.constant or prefix[:-1] + after))
    return min(first for first, _ in ends), max(last for _, last in ends)
