"""Query, scan, count and collect: the programs behind `Connection` and `AsyncConnection`.

An item of the table, or of an index with the ALL projection, is read as its entity. Other indexes hold entries, from which a
view is read. If an entry does not hold enough (the query hydrates, or the entry lacks the time to live or the schema version,
or has an older version), the item itself is fetched from the table. Indexes are eventually consistent, so an item that has
moved since is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tavola.client.batches import get_items
from tavola.client.context import Context
from tavola.client.effects import Call, Program
from tavola.client.marshalling import (
    VERSION,
    describe_type,
    entity_of,
    identify_entity,
    is_item_of,
    version_of,
    view_from,
    view_of,
)
from tavola.client.pages import Convert, FetchedPage, read_all, read_page
from tavola.client.queries import PreparedQuery, condition_identity, prepare_query
from tavola.client.requests import (
    add_expressions,
    all_of,
    check_condition,
    is_expired,
    node_of,
    not_expired_node,
    table_key,
    ttl_attribute,
)
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import Between, Comparison, ConditionNode, FunctionCall, Literal, Or, Path
from tavola.keys import Template
from tavola.limits import SCAN_SEGMENTS_MAX
from tavola.model import (
    UNIQUE_ATTRIBUTE,
    Collection,
    CollectionMember,
    Condition,
    Entity,
    EntityShape,
    ItemUnreadable,
    KeyShape,
    ModelError,
    QueryRefused,
    Selection,
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
class PageOptions:
    """How many results a page has, and where it starts."""

    limit: int | None = None
    page_size: int | None = None
    cursor: str | None = None

    def check(self, place: str) -> None:
        """Refuse limits below 1."""
        for name in ("limit", "page_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ModelError(place, f"{name}={value} is not valid; use 1 or more, or omit it")


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
    options = PageOptions(limit, page_size, cursor)
    request = request_of(selection)
    pattern = request.pattern
    options.check(pattern.place)
    prepared = prepare_query(context, request, newest_first=newest_first, consistent=consistent)
    if prepared.empty:
        return FetchedPage([], None, 0, 0)
    owner = shape_of(pattern.owner)
    result = owner.entity if pattern.result == owner.entity.__name__ else result_entity(pattern)
    entries = EntryReader(
        context, owner, pattern.key, result,
        hydrate=pattern.hydrate, filter_=node_of(request.filter), accepts=prepared.accepts, unreadable=unreadable,
    )  # fmt: skip
    return (yield from _read_page(context, prepared, entries.read, options))


def _read_page(
    context: Context, query: PreparedQuery, convert: Convert[Any], options: PageOptions
) -> Program[FetchedPage[Any]]:
    return (
        yield from read_page(
            context, query, convert, limit=options.limit, page_size=options.page_size, cursor=options.cursor
        )
    )


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
    return _scan(context, what, where, PageOptions(limit, page_size, cursor), segments, consistent)


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
    """Return the entities of all classes in a table, in no order; items of no class are left out."""
    return _scan(context, table, None, PageOptions(limit, page_size, cursor), segments, consistent)


def _scan(
    context: Context,
    what: type[Entity] | type[Table],
    where: Condition[Any] | None,
    options: PageOptions,
    segments: int,
    consistent: bool,
    entities: Container[type[Entity]] | None = None,
) -> Program[FetchedPage[Any]]:
    """Return a page of one entity, or of a table; `entities` restricts the page of a table to these classes."""
    shape: EntityShape | None = None
    check_scanned(what)
    if issubclass(what, Entity):
        shape = shape_of(what)
        check_condition(shape, where, "scan", "where")
        table = shape.home
    else:
        table = what
    options.check(what.__name__)
    _check_segments(what.__name__, segments)
    filter_ = all_of([_tag_filter(shape, table), node_of(where)])
    base: dict[str, Any] = {"TableName": context.name_of(table)}
    if consistent:
        base["ConsistentRead"] = True
    request = add_expressions(base, filter_=filter_)
    requests = [request]
    if segments > 1:
        requests = [{**request, "Segment": segment, "TotalSegments": segments} for segment in range(segments)]
    entity_name = None if shape is None else shape.name
    prepared = PreparedQuery(
        "Scan", tuple(requests), "any", table.settings.key_names,
        lambda: ["Scan", context.name_of(table), entity_name, condition_identity(node_of(where))],
    )  # fmt: skip

    def convert(items: Sequence[Item]) -> Program[list[Entity | None]]:
        yield from ()
        now_s = context.clock.now()
        return [
            None if is_expired(table, item, now_s) else _read_scanned(shape, table, item, entities)
            for item in items
        ]

    return (yield from _read_page(context, prepared, convert, options))


def _check_segments(place: str, segments: int) -> None:
    if not 1 <= segments <= SCAN_SEGMENTS_MAX:
        raise ModelError(
            place,
            f"segments={segments!r} is not valid; use 1 to {SCAN_SEGMENTS_MAX:,}, about one for each connection",
        )


def _read_scanned(
    shape: EntityShape | None, table: type[Table], item: Item, entities: Container[type[Entity]] | None
) -> Entity | None:
    if shape is not None:
        return entity_of(shape.entity, item) if is_item_of(shape, table, item) else None
    entity = identify_entity(table, item)
    if entity is None or (entities is not None and entity not in entities):
        return None
    return entity_of(entity, item)


def scan_entities(
    context: Context, table: type[Table], entities: Container[type[Entity]], cursor: str | None
) -> Program[FetchedPage[Entity]]:
    """Return a page of the items of some entity classes, read consistently; for code built on the client."""
    return _scan(context, table, None, PageOptions(cursor=cursor), 1, True, entities)


def _tag_filter(shape: EntityShape | None, table: type[Table]) -> ConditionNode | None:
    """Return the filter that selects one entity's items; those without a tag are identified by their keys later."""
    tag = table.settings.tag
    if shape is None or tag is None:
        return None
    path = Path((tag,))
    return Or(
        (Comparison("=", path, Literal({"S": shape.name})), FunctionCall("attribute_not_exists", (path,)))
    )


def count(context: Context, selection: Selection[Any], *, consistent: bool | None = None) -> Program[int]:
    """Return how many items match a query; every one is read and paid for, though few are transferred."""
    request = request_of(selection)
    owner, key = shape_of(request.pattern.owner), request.pattern.key
    table, now_s = owner.home, context.clock.now()
    also, is_exact = _count_filter(owner, key, now_s)
    projection = () if is_exact else _identifying_attributes(owner, key)
    prepared = prepare_query(context, request, consistent=consistent, also=also, projection=projection)
    if prepared.empty:
        return 0
    if prepared.accepts is not None or hides_expiry(owner, key):
        return (yield from _count_entities(context, selection, consistent))
    total = 0

    def receive(response: dict[str, Any]) -> None:
        nonlocal total
        if is_exact:
            total += response["Count"]
            return
        items = response["Items"]
        total += sum(is_item_of(owner, table, item) and not is_expired(table, item, now_s) for item in items)

    requests = prepared.requests
    if is_exact:
        requests = tuple({**request, "Select": "COUNT"} for request in requests)
    yield from read_all("Query", requests, receive)
    return total


def _count_filter(owner: EntityShape, key: KeyShape, now_s: float) -> tuple[list[ConditionNode], bool]:
    """Return the filter that selects what a query returns, and whether it is exact.

    A filter cannot use attributes that the index does not hold or that are part of its key; and without a tag, entities
    differ only in their primary keys.
    """
    settings = owner.home.settings
    also: list[ConditionNode] = []
    is_exact = True
    tag_filter = _tag_filter(owner, owner.home)
    if tag_filter is not None and (key.index is None or key.index.holds(settings.tag or "")):
        also.append(tag_filter)
    else:
        is_exact = False
    ttl = settings.ttl
    if ttl is not None and (key.index is None or key.index.holds(ttl)):
        if key.index is not None and ttl in key.index.attributes:
            is_exact = False
        else:
            also.append(not_expired_node(ttl, now_s))
    return also, is_exact


def _identifying_attributes(owner: EntityShape, key: KeyShape) -> tuple[str, ...]:
    """Return the available attributes that identify an item's entity and its expiry."""
    settings = owner.home.settings
    service_attributes = (name for name in (settings.tag, settings.ttl, UNIQUE_ATTRIBUTE) if name is not None)
    index = key.index
    return (*settings.key_names, *(name for name in service_attributes if index is None or index.holds(name)))


def _count_entities(context: Context, selection: Selection[Any], consistent: bool | None) -> Program[int]:
    """Return the number of results by reading them, for queries that DynamoDB cannot decide by key and filter."""
    total = 0
    cursor = None
    while True:
        page = yield from query(context, selection, cursor=cursor, consistent=consistent)
        total += len(page.items)
        cursor = page.cursor
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
    PageOptions(limit).check(type(collection).__qualname__)
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
        yield from read_all("Query", [request], lambda response: items.extend(response["Items"]))
    else:
        yield from _read_first(request, limit, items)
    by_entity: dict[type[Entity] | None, list[Item]] = {}
    for item in items:
        by_entity.setdefault(identify_entity(table, item), []).append(item)
    filled = kind(**{name: collection.__dict__[name] for name in kind.__parts__})
    for member in members:
        entries = EntryReader(context, shape_of(member.entity), member.key, member.entity)
        results = yield from entries.read(by_entity.get(member.entity, ()))
        entities = [entity for entity in results if entity is not None]
        filled.__dict__[member.name] = entities if member.many else next(iter(entities), None)
    return filled


def _read_first(request: dict[str, Any], limit: int, items: list[Item]) -> Program[None]:
    """Append the first items of a query; a page may have fewer than its Limit."""
    while True:
        response = yield Call("Query", {**request, "Limit": limit - len(items)})
        items.extend(response["Items"])
        if len(items) >= limit or "LastEvaluatedKey" not in response:
            return
        request = {**request, "ExclusiveStartKey": response["LastEvaluatedKey"]}


def _collection_request(
    context: Context, collection: Collection, key: KeyShape, table: type[Table], consistent: bool | None
) -> dict[str, Any]:
    kind = type(collection)
    source = key.hash[0]
    pk = kind.__pk__ or (f"{{{source.fields[0]}}}" if source.template is None else source.template.source)
    names = Template.parse(pk, table.settings.delimiter).fields
    values = dict(zip(source.fields, (collection.__dict__[name] for name in names), strict=True))
    partition = source.value(values)
    assert partition is not None
    nodes: list[ConditionNode] = [Comparison("=", Path((source.attribute,)), Literal(partition))]
    if kind.__sk__:
        nodes.append(
            FunctionCall("begins_with", (Path((key.range[0].attribute,)), Literal({"S": kind.__sk__})))
        )
    elif (bounds := _sort_key_range(members_of(kind))) is not None:
        first, last = (Literal({"S": text}) for text in bounds)
        nodes.append(Between(Path((key.range[0].attribute,)), first, last))
    request: dict[str, Any] = {"TableName": context.name_of(table)}
    if key.index is not None:
        request["IndexName"] = key.index.name
    access = kind.__access__
    if consistent or (consistent is None and access is not None and access.consistent):
        request["ConsistentRead"] = True
    return add_expressions(request, key_condition=all_of(nodes))


def _sort_key_range(members: Sequence[CollectionMember]) -> tuple[str, str] | None:
    """Return the range of sort keys that contains all members of a collection, None if it is not known.

    Other items of the partition, before and after the range, are neither read nor paid for.
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


class EntryReader:
    """Converts the items found by one key into entities or views of one class."""

    def __init__(
        self,
        context: Context,
        owner: EntityShape,
        key: KeyShape,
        result: type[Entity],
        *,
        hydrate: bool = False,
        filter_: ConditionNode | None = None,
        accepts: Callable[[Entity], bool] | None = None,
        unreadable: Callable[[ItemUnreadable], object] | None = None,
    ) -> None:
        self._context = context
        self._owner = owner
        self._table = owner.home
        self._key = key
        self._result = result
        self._filter = filter_
        self._accepts = accepts
        self._unreadable = unreadable
        index = key.index
        self._is_complete = index is None or index.projection == "ALL"
        self._always_fetch = hydrate or hides_expiry(owner, key)
        self._versioned = owner.version > 1 and not self._is_complete
        if self._versioned and index is not None and not index.holds(VERSION):
            self._always_fetch = True

    def read(self, items: Sequence[Item]) -> Program[list[Any | None]]:
        """Return the entities of items, in their order; None for those of another class, expired, moved or unreadable."""
        owner, table = self._owner, self._table
        now_s = self._context.clock.now()
        results: list[Any | None] = [None] * len(items)
        to_fetch: list[int] = []
        for position, item in enumerate(items):
            if not is_item_of(owner, table, item) or is_expired(table, item, now_s):
                continue
            try:
                if self._is_complete and self._result is owner.entity:
                    results[position] = self._if_accepted(entity_of(self._result, item))
                elif self._always_fetch or (self._versioned and version_of(owner, item) != owner.version):
                    to_fetch.append(position)
                elif self._is_complete and owner.version != 1 and version_of(owner, item) != owner.version:
                    results[position] = self._as_result(entity_of(owner.entity, item))
                else:
                    results[position] = self._if_accepted(view_of(self._result, item, self._key, owner))
            except ItemUnreadable as error:
                self._report_unreadable(error)
        if to_fetch:
            keys = [table_key(table, items[position]) for position in to_fetch]
            current = yield from get_items(self._context, table, keys, False)
            for position, current_item in zip(to_fetch, current, strict=True):
                if current_item is None or not self._still_matches(items[position], current_item):
                    continue
                try:
                    results[position] = self._as_result(entity_of(owner.entity, current_item))
                except ItemUnreadable as error:
                    self._report_unreadable(error)
        return results

    def _report_unreadable(self, error: ItemUnreadable) -> None:
        """Pass the error of an unreadable item to the caller's function, or raise it if there is none."""
        if self._unreadable is None:
            raise error
        self._unreadable(error)

    def _as_result(self, entity: Entity) -> Entity | None:
        """Return a complete entity as the query's result class."""
        accepted = self._if_accepted(entity)
        if accepted is None or self._result is self._owner.entity:
            return accepted
        return view_from(self._result, accepted)

    def _if_accepted(self, entity: Entity) -> Entity | None:
        return entity if self._accepts is None or self._accepts(entity) else None

    def _still_matches(self, entry: Item, item: Item) -> bool:
        """Return whether an item still matches the query that found its entry."""
        names = () if self._key.index is None else self._key.index.attributes
        return (
            is_item_of(self._owner, self._table, item)
            and not is_expired(self._table, item, self._context.clock.now())
            and all(entry.get(name) == item.get(name) for name in names)
            and (self._filter is None or compile_decider(self._filter)(item, {}))
        )


def hides_expiry(owner: EntityShape, key: KeyShape) -> bool:
    """Return whether an entity's items expire, and its entries in the index do not hold the time to live."""
    ttl = ttl_attribute(owner)
    return ttl is not None and key.index is not None and not key.index.holds(ttl)


def check_collection(collection: Any) -> None:
    """Refuse a value that is not an instance of a collection."""
    if isinstance(collection, Collection):
        return
    if isinstance(collection, type) and issubclass(collection, Collection):
        parts = ", ".join(f"{name}=…" for name in collection.__parts__)
        raise QueryRefused(
            collection.__name__, f"this is a class; create an instance with {collection.__name__}({parts})"
        )
    raise QueryRefused(
        "collect", f"it takes a collection such as TicketFile(ticket_id=…), not {describe_type(collection)}"
    )


def check_scanned(what: Any) -> None:
    """Refuse a value that is neither an entity class nor a table class."""
    if isinstance(what, type) and issubclass(what, Entity | Table):
        return
    raise QueryRefused("scan", f"it takes an entity class such as Ticket, not {describe_type(what)}")
