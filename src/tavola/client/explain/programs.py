"""The programs behind `db.explain`: each walks the program of one client operation with what the model says of its items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from tavola.client import batches, items, reading, transactions
from tavola.client.arguments import check_collection, check_scanned
from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.explain.explanation import Explanation
from tavola.client.explain.walk import Prices, Subject, explained, known_of
from tavola.client.intents import Intent
from tavola.client.marshalling import item_of
from tavola.client.pages import FetchedPage
from tavola.client.queries import shards_asked
from tavola.client.updates import PreparedUpdate
from tavola.client.writes import keyed, named
from tavola.model import (
    AccessPattern,
    Change,
    Collection,
    Condition,
    Entity,
    PrimaryKey,
    Selection,
    Shape,
    Table,
    members_of,
    request_of,
    shape_of,
)
from tavola.values import Item

E = TypeVar("E", bound=Entity)
C = TypeVar("C", bound=Collection)
R = TypeVar("R")

_PAGES = "further requests of the same kind, 1 MB each, while the answer goes on"
_FETCHED = "BatchGetItem for the entries found, since the index does not hold whole items"
_AGAIN = "the same again on the newer item, if another writer comes between the read and the write"


@dataclass(frozen=True, slots=True)
class ExplainContext:
    """What every explanation of one client shares: the client's context and the prices to use."""

    client: Context
    prices: Prices


@dataclass(frozen=True, slots=True)
class _Options:
    """What a caller of one explanation gave: whether to run the operation, and what is known of its items."""

    run: bool = False
    item_bytes: int | None = None  # size of one item where the design declares none
    current: tuple[
        Entity, ...
    ] = ()  # entities as they are stored now, which makes the estimate of a write exact


def get(
    context: ExplainContext,
    key: PrimaryKey[E],
    *,
    consistent: bool | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[E | None]]:
    """Explain `db.get`."""
    client, options = context.client, _Options(run, item_bytes)
    shape, _, _ = keyed(key)
    known = known_of(client, [shape], item_bytes=_read_bytes(options, shape))
    program: Program[E | None] = items.get(client, key, consistent=consistent)
    return explained(Subject(f"get {key!r}", known), program, context.prices, run=run)


def put(
    context: ExplainContext,
    entity: E,
    *,
    when: Condition[E] | None = None,
    run: bool = False,
    current: E | None = None,
) -> Program[Explanation[E]]:
    """Explain `db.put`, replacing the `current` entity if given, or else storing a new item."""
    program = items.put(context.client, entity, when=when)
    return _explain_put(context, "put", entity, program, _Options(run, current=_as_tuple(current)))


def create(context: ExplainContext, entity: E, *, run: bool = False) -> Program[Explanation[E]]:
    """Explain `db.create`."""
    return _explain_put(context, "create", entity, items.create(context.client, entity), _Options(run))


def _explain_put(
    context: ExplainContext, verb: str, entity: E, program: Program[E], options: _Options
) -> Program[Explanation[E]]:
    shape, keys, _ = keyed(entity)
    known = known_of(
        context.client, [shape], item_bytes=None, standing=_items_of(context.client, options.current)
    )
    subject = Subject(f"{verb} {named(shape, keys)}", known, writes=True)
    return explained(subject, program, context.prices, run=options.run)


def update(
    context: ExplainContext,
    target: PrimaryKey[E] | E,
    *changes: Change[E],
    when: Condition[E] | None = None,
    create: bool = False,
    run: bool = False,
    item_bytes: int | None = None,
    current: E | None = None,
) -> Program[Explanation[E]]:
    """Explain `db.update`; an update that must read before it writes does read, and shows both requests."""
    client, options = context.client, _Options(run, item_bytes, _as_tuple(current))
    shape, keys, _ = keyed(target)
    plan = PreparedUpdate(shape, keys, changes, when, create)
    reads = bool(plan.unsettled) and shape.policy == "read"
    known = known_of(
        client,
        [shape],
        item_bytes=_write_bytes(options, shape, "update", plan.touched),
        standing=_items_of(client, options.current),
    )
    subject = Subject(
        f"update {named(shape, keys)}",
        known,
        more=_AGAIN if reads else "",
        warnings=(_read_first(shape, plan),) if reads else (),
        writes=True,
    )
    program = items.update(client, target, *changes, when=when, create=create)
    return explained(subject, program, context.prices, run=run)


def delete(
    context: ExplainContext,
    target: PrimaryKey[E] | E,
    *,
    when: Condition[E] | None = None,
    run: bool = False,
    item_bytes: int | None = None,
    current: E | None = None,
) -> Program[Explanation[E | None]]:
    """Explain `db.delete`; an entity is estimated by its own size."""
    client, options = context.client, _Options(run, item_bytes, _as_tuple(current))
    shape, keys, entity = keyed(target)
    standing = _items_of(client, options.current)
    if entity is not None and not standing:
        standing = (item_of(shape, entity, client),)
    bytes_ = _write_bytes(options, shape, "delete", frozenset())
    known = known_of(client, [shape], item_bytes=bytes_, standing=standing)
    subject = Subject(f"delete {named(shape, keys)}", known, writes=True)
    return explained(subject, items.delete(client, target, when=when), context.prices, run=run)


def query(
    context: ExplainContext,
    selection: Selection[E],
    *,
    limit: int | None = None,
    cursor: str | None = None,
    newest_first: bool = False,
    consistent: bool | None = None,
    page_size: int | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[list[E]]]:
    """Explain `db.query`; with `run` and without a limit, all results are read."""
    client, options = context.client, _Options(run, item_bytes)
    question = request_of(selection)
    pattern = question.pattern
    shape = shape_of(pattern.owner)
    known = known_of(
        client,
        [shape],
        item_bytes=_read_bytes(options, shape, pattern.access),
        items=_per_request(pattern.access, shards_asked(pattern, question)),
        fetches=pattern.hydrate and not run,  # when run, each request is estimated as it is made
    )
    more = _FETCHED if pattern.hydrate else _PAGES if limit is None else ""
    program = _all_pages(
        lambda start: reading.query(
            client, selection, limit=limit, cursor=start, newest_first=newest_first,
            consistent=consistent, page_size=page_size,
        ),
        limit,
        cursor,
    )  # fmt: skip
    subject = Subject(f"query {_told(selection)}", known, more=more)
    return explained(subject, program, context.prices, run=run)


def count(
    context: ExplainContext,
    selection: Selection[Any],
    *,
    consistent: bool | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[int]]:
    """Explain `db.count`, which reads everything that it counts."""
    client, options = context.client, _Options(run, item_bytes)
    question = request_of(selection)
    pattern = question.pattern
    shape = shape_of(pattern.owner)
    known = known_of(
        client,
        [shape],
        item_bytes=_read_bytes(options, shape, pattern.access),
        items=_per_request(pattern.access, shards_asked(pattern, question)),
    )
    subject = Subject(f"count {_told(selection)}", known, more=_PAGES)
    return explained(
        subject, reading.count(client, selection, consistent=consistent), context.prices, run=run
    )


def scan(
    context: ExplainContext,
    what: type[E],
    *,
    where: Condition[E] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    page_size: int | None = None,
    segments: int = 1,
    consistent: bool = False,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[list[E]]]:
    """Explain `db.scan`; with `run` and without a limit, the whole table is read."""
    check_scanned(what)
    program = _all_pages(
        lambda start: reading.scan(
            context.client, what, where=where, limit=limit, cursor=start,
            page_size=page_size, segments=segments, consistent=consistent,
        ),
        limit,
        cursor,
    )  # fmt: skip
    return _explain_scan(context, what, program, limit, _Options(run, item_bytes))


def scan_table(
    context: ExplainContext,
    table: type[Table],
    *,
    limit: int | None = None,
    cursor: str | None = None,
    page_size: int | None = None,
    segments: int = 1,
    consistent: bool = False,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[list[Entity]]]:
    """Explain `db.scan_table`; with `run` and without a limit, the whole table is read."""
    check_scanned(table)
    program = _all_pages(
        lambda start: reading.scan_table(
            context.client, table, limit=limit, cursor=start,
            page_size=page_size, segments=segments, consistent=consistent,
        ),
        limit,
        cursor,
    )  # fmt: skip
    return _explain_scan(context, table, program, limit, _Options(run, item_bytes))


def _explain_scan(
    context: ExplainContext,
    what: type[Entity] | type[Table],
    program: Program[list[R]],
    limit: int | None,
    options: _Options,
) -> Program[Explanation[list[R]]]:
    shapes = [shape_of(what)] if issubclass(what, Entity) else [shape_of(e) for e in what.entities.values()]
    known = known_of(context.client, shapes, item_bytes=options.item_bytes)
    subject = Subject(f"scan {what.__name__}", known, more=_PAGES if limit is None else "")
    return explained(subject, program, context.prices, run=options.run)


def collect(
    context: ExplainContext,
    collection: C,
    *,
    consistent: bool | None = None,
    newest_first: bool = False,
    limit: int | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[C]]:
    """Explain `db.collect`."""
    client, options = context.client, _Options(run, item_bytes)
    check_collection(collection)
    kind = type(collection)
    shapes = [shape_of(member.entity) for member in members_of(kind)]
    access = kind.__access__
    known = known_of(
        client, shapes, item_bytes=_read_bytes(options, shapes[0], access), items=_per_request(access, 1)
    )
    subject = Subject(f"collect {collection!r}", known, more=_PAGES if limit is None else "")
    program = reading.collect(
        client, collection, consistent=consistent, newest_first=newest_first, limit=limit
    )
    return explained(subject, program, context.prices, run=run)


def get_many(
    context: ExplainContext,
    keys: Iterable[PrimaryKey[E]],
    *,
    consistent: bool | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[list[E | None]]]:
    """Explain `db.get_many`; each get costs as much as by itself."""
    key_list = list(keys)
    program = batches.get_many(context.client, key_list, consistent=consistent)
    return _explain_gets(context, "get_many", key_list, program, _Options(run, item_bytes))


def get_all(
    context: ExplainContext,
    *keys: PrimaryKey[Any],
    consistent: bool | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[tuple[Any, ...]]]:
    """Explain `db.get_all`."""
    program: Program[Any] = batches.get_all(context.client, *keys, consistent=consistent)
    return _explain_gets(context, "get_all", keys, program, _Options(run, item_bytes))


@overload
def get_together(
    context: ExplainContext,
    keys: Iterable[PrimaryKey[E]],
    /,
    *,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[list[E | None]]]: ...
@overload
def get_together(
    context: ExplainContext, *keys: PrimaryKey[Any], run: bool = False, item_bytes: int | None = None
) -> Program[Explanation[list[Any]]]: ...
def get_together(
    context: ExplainContext, *keys: Any, run: bool = False, item_bytes: int | None = None
) -> Program[Explanation[Any]]:
    """Explain `db.get_together`, whose reads cost four times as much as eventually consistent ones."""
    key_list = list(keys if all(isinstance(key, PrimaryKey) for key in keys) else keys[0])
    program = transactions.get_together(context.client, key_list)
    return _explain_gets(context, "get_together", key_list, program, _Options(run, item_bytes))


def _explain_gets(
    context: ExplainContext,
    verb: str,
    keys: Sequence[PrimaryKey[Any]],
    program: Program[R],
    options: _Options,
) -> Program[Explanation[R]]:
    shapes = [keyed(key)[0] for key in keys]
    sizes = {_read_bytes(options, shape) for shape in shapes}
    known = known_of(context.client, shapes, item_bytes=sizes.pop() if len(sizes) == 1 else None)
    return explained(
        Subject(f"{verb} of {len(keys):,} keys", known), program, context.prices, run=options.run
    )


def put_many(
    context: ExplainContext, entities: Iterable[Entity], *, run: bool = False
) -> Program[Explanation[int]]:
    """Explain `db.put_many`, storing new items."""
    return write_many(context, puts=entities, run=run)


def delete_many(
    context: ExplainContext,
    keys: Iterable[PrimaryKey[Any] | Entity],
    *,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[int]]:
    """Explain `db.delete_many`; entities are estimated by their size."""
    return write_many(context, deletes=keys, run=run, item_bytes=item_bytes)


def write_many(
    context: ExplainContext,
    *,
    puts: Iterable[Entity] = (),
    deletes: Iterable[PrimaryKey[Any] | Entity] = (),
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[int]]:
    """Explain `db.write_many`: puts store new items, deleted entities are estimated by their size."""
    client = context.client
    entities, deleted = list(puts), list(deletes)
    shapes = [keyed(each)[0] for each in (*entities, *deleted)]
    standing = _items_of(client, [each for each in deleted if isinstance(each, Entity)])
    known = known_of(client, shapes, item_bytes=item_bytes, standing=standing)
    parts = [f"put_many of {len(entities):,} entities"] if entities else []
    parts += [f"delete_many of {len(deleted):,} keys"] if deleted else []
    subject = Subject(" and ".join(parts) or "nothing", known, writes=True)
    program = batches.write_many(client, puts=entities, deletes=deleted)
    return explained(subject, program, context.prices, run=run)


def transaction(
    context: ExplainContext,
    intents: Sequence[Intent[Any]],
    token: str | None,
    *,
    run: bool,
    item_bytes: int | None,
    current: Sequence[Entity],
) -> Program[Explanation[None]]:
    """Explain a transaction; items it must know before its requests are known are read."""
    client = context.client
    deleted = [each.entity for each in intents if each.kind == "delete" and each.entity is not None]
    standing = _items_of(client, [*current, *deleted])
    known = known_of(client, [each.shape for each in intents], item_bytes=item_bytes, standing=standing)
    writes = ", ".join(f"{each.kind} {each.what}" for each in intents)
    subject = Subject(f"transaction of {writes}", known, writes=True)
    return explained(subject, transactions.commit(client, intents, token), context.prices, run=run)


def _all_pages(
    read: Callable[[str | None], Program[FetchedPage[R]]], limit: int | None, cursor: str | None
) -> Program[list[R]]:
    """Return the results of all pages, or of the first if there is a limit."""
    page = yield from read(cursor)
    results = list(page.items)
    while limit is None and page.cursor is not None:
        page = yield from read(page.cursor)
        results += page.items
    return results


def _as_tuple(entity: Entity | None) -> tuple[Entity, ...]:
    return () if entity is None else (entity,)


def _items_of(context: Context, entities: Iterable[Entity]) -> tuple[Item, ...]:
    return tuple(item_of(shape_of(type(entity)), entity, context) for entity in entities)


def _told(selection: Selection[Any]) -> str:
    question = request_of(selection)
    told = [f"{name}={value!r}" for name, value in {**question.values, **question.fixed}.items()]
    if question.range is not None:
        operands = ", ".join(map(repr, question.range.operands))
        told.append(f"{question.range.part}.{question.range.operator}({operands})")
    filtered = "" if question.filter is None else ", filtered"
    return f"{question.pattern.place}({', '.join(told)}){filtered}"


def _read_bytes(options: _Options, shape: Shape, access: AccessPattern | None = None) -> int | None:
    """Return the size of an item: as it was given, as the access pattern says, or as the key's own says."""
    own = None if shape.key is None else shape.key.access
    told = (options.item_bytes, *(each.item_bytes for each in (access, own) if each is not None))
    return next((bytes_ for bytes_ in told if bytes_ is not None), None)


def _write_bytes(options: _Options, shape: Shape, kind: str, touched: frozenset[str]) -> int | None:
    """Return the size of an item that is written over: as it was given, or as a write pattern says."""
    if options.item_bytes is not None:
        return options.item_bytes
    declared = [each for each in shape.writes if each.kind == kind and each.item_bytes is not None]
    declared.sort(key=lambda each: frozenset(each.changes) != touched)  # one of just these changes first
    return declared[0].item_bytes if declared else _read_bytes(options, shape)


def _per_request(access: AccessPattern | None, requests: int) -> int | None:
    if access is None or access.items is None:
        return None
    return -(-access.items // requests)


def _read_first(shape: Shape, plan: PreparedUpdate) -> str:
    indexes = " and ".join(key.index.label for key in plan.unsettled if key.index is not None)
    absent = sorted({name for key in plan.unsettled for name in key.fields - plan.known.keys()})
    fixed = " & ".join(f"({shape.entity.__name__}.{name} == …)" for name in absent)
    return (
        f"The item is read first, because its key in {indexes} is made of {' and '.join(absent)} too; with "
        f"when={fixed} one request is enough."
    )
