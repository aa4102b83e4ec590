"""The programs behind `db.explain`: each dry-runs the program of one client operation with what the model says of its items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from tavola.client import batches, items, reading, transactions
from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.explain.dry_run import PriceSource, Subject, explain_program, known_items
from tavola.client.explain.explanation import Explanation
from tavola.client.marshalling import describe_item, item_of, resolve_target
from tavola.client.pages import FetchedPage
from tavola.client.queries import shard_count
from tavola.client.reading import check_collection, check_scanned
from tavola.client.updates import IndexKeyUpdate
from tavola.client.writes import Intent
from tavola.model import (
    AccessPattern,
    Change,
    Collection,
    Condition,
    Entity,
    EntityShape,
    PrimaryKey,
    Selection,
    Table,
    members_of,
    request_of,
    shape_of,
)
from tavola.values import Item

E = TypeVar("E", bound=Entity)
C = TypeVar("C", bound=Collection)
R = TypeVar("R")

_PAGES = "further requests of the same kind, 1 MB each, until the last page"
_HYDRATE = "BatchGetItem for the entries found, since the index does not hold whole items"
_REPEAT = "the same again with the newer item, if another writer changes it between the read and the write"


@dataclass(frozen=True, slots=True)
class ExplainContext:
    """What all explanations of one client share: the client's context and the prices to use."""

    client: Context
    prices: PriceSource


def get(
    context: ExplainContext,
    key: PrimaryKey[E],
    *,
    consistent: bool | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[E | None]]:
    """Explain `db.get`."""
    shape, _, _ = resolve_target(key)
    known = known_items(context.client, [shape], item_bytes=_read_bytes(item_bytes, shape))
    program: Program[E | None] = items.get(context.client, key, consistent=consistent)
    return explain_program(Subject(f"get {key!r}", known), program, context.prices, run=run)


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
    return _explain_put(context, "put", entity, program, run, current)


def create(context: ExplainContext, entity: E, *, run: bool = False) -> Program[Explanation[E]]:
    """Explain `db.create`."""
    return _explain_put(context, "create", entity, items.create(context.client, entity), run, None)


def _explain_put(
    context: ExplainContext, verb: str, entity: E, program: Program[E], run: bool, current: E | None
) -> Program[Explanation[E]]:
    shape, keys, _ = resolve_target(entity)
    known = known_items(context.client, [shape], current=_items_of(context.client, current))
    subject = Subject(f"{verb} {describe_item(shape, keys)}", known, writes=True)
    return explain_program(subject, program, context.prices, run=run)


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
    shape, keys, _ = resolve_target(target)
    index_keys = IndexKeyUpdate(shape, keys, changes, when, create)
    reads_first = bool(index_keys.undetermined) and shape.policy == "read"
    known = known_items(
        context.client,
        [shape],
        item_bytes=_write_bytes(item_bytes, shape, "update", index_keys.touched),
        current=_items_of(context.client, current),
    )
    subject = Subject(
        f"update {describe_item(shape, keys)}",
        known,
        more=_REPEAT if reads_first else "",
        warnings=(_why_it_reads(shape, index_keys),) if reads_first else (),
        writes=True,
    )
    program = items.update(context.client, target, *changes, when=when, create=create)
    return explain_program(subject, program, context.prices, run=run)


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
    shape, keys, entity = resolve_target(target)
    known = known_items(
        context.client,
        [shape],
        item_bytes=_write_bytes(item_bytes, shape, "delete", frozenset()),
        current=_items_of(context.client, current) or _items_of(context.client, entity),
    )
    subject = Subject(f"delete {describe_item(shape, keys)}", known, writes=True)
    program = items.delete(context.client, target, when=when)
    return explain_program(subject, program, context.prices, run=run)


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
    hydrates = request_of(selection).pattern.hydrate
    program = _all_pages(
        lambda start: reading.query(
            context.client, selection, limit=limit, cursor=start, newest_first=newest_first,
            consistent=consistent, page_size=page_size,
        ),
        limit,
        cursor,
    )  # fmt: skip
    open_end = _HYDRATE if hydrates else _PAGES if limit is None else ""
    subject = _query_subject(context, "query", selection, open_end, item_bytes, hydrates=hydrates and not run)
    return explain_program(subject, program, context.prices, run=run)


def count(
    context: ExplainContext,
    selection: Selection[Any],
    *,
    consistent: bool | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[int]]:
    """Explain `db.count`, which reads everything that it counts."""
    subject = _query_subject(context, "count", selection, _PAGES, item_bytes)
    program = reading.count(context.client, selection, consistent=consistent)
    return explain_program(subject, program, context.prices, run=run)


def _query_subject(
    context: ExplainContext,
    verb: str,
    selection: Selection[Any],
    more: str,
    item_bytes: int | None,
    *,
    hydrates: bool = False,  # when run, each request is estimated as it is made
) -> Subject:
    request = request_of(selection)
    pattern = request.pattern
    shape = shape_of(pattern.owner)
    known = known_items(
        context.client,
        [shape],
        item_bytes=_read_bytes(item_bytes, shape, pattern.access),
        items=_items_per_request(pattern.access, shard_count(pattern, request)),
        hydrates=hydrates,
    )
    return Subject(f"{verb} {_describe_selection(selection)}", known, more=more)


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
    subject = _scan_subject(context, what.__name__, [shape_of(what)], limit, item_bytes)
    return explain_program(subject, program, context.prices, run=run)


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
    shapes = [shape_of(entity) for entity in table.entities.values()]
    subject = _scan_subject(context, table.__name__, shapes, limit, item_bytes)
    return explain_program(subject, program, context.prices, run=run)


def _scan_subject(
    context: ExplainContext, name: str, shapes: list[EntityShape], limit: int | None, item_bytes: int | None
) -> Subject:
    known = known_items(context.client, shapes, item_bytes=item_bytes)
    return Subject(f"scan {name}", known, more=_PAGES if limit is None else "")


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
    check_collection(collection)
    kind = type(collection)
    shapes = [shape_of(member.entity) for member in members_of(kind)]
    access = kind.__access__
    known = known_items(
        context.client,
        shapes,
        item_bytes=_read_bytes(item_bytes, shapes[0], access),
        items=_items_per_request(access, 1),
    )
    subject = Subject(f"collect {collection!r}", known, more=_PAGES if limit is None else "")
    program = reading.collect(
        context.client, collection, consistent=consistent, newest_first=newest_first, limit=limit
    )
    return explain_program(subject, program, context.prices, run=run)


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
    return explain_program(
        _gets_subject(context, "get_many", key_list, item_bytes), program, context.prices, run=run
    )


def get_all(
    context: ExplainContext,
    *keys: PrimaryKey[Any],
    consistent: bool | None = None,
    run: bool = False,
    item_bytes: int | None = None,
) -> Program[Explanation[tuple[Any, ...]]]:
    """Explain `db.get_all`."""
    program: Program[Any] = batches.get_all(context.client, *keys, consistent=consistent)
    return explain_program(
        _gets_subject(context, "get_all", keys, item_bytes), program, context.prices, run=run
    )


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
    return explain_program(
        _gets_subject(context, "get_together", key_list, item_bytes), program, context.prices, run=run
    )


def _gets_subject(
    context: ExplainContext, verb: str, keys: Sequence[PrimaryKey[Any]], item_bytes: int | None
) -> Subject:
    shapes = [resolve_target(key)[0] for key in keys]
    sizes = {_read_bytes(item_bytes, shape) for shape in shapes}
    known = known_items(context.client, shapes, item_bytes=sizes.pop() if len(sizes) == 1 else None)
    return Subject(f"{verb} of {len(keys):,} keys", known)


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
    entities, deleted = list(puts), list(deletes)
    known = known_items(
        context.client,
        [resolve_target(entity)[0] for entity in (*entities, *deleted)],
        item_bytes=item_bytes,
        current=_items_of(context.client, *(entity for entity in deleted if isinstance(entity, Entity))),
    )
    parts = [f"put_many of {len(entities):,} entities"] if entities else []
    parts += [f"delete_many of {len(deleted):,} keys"] if deleted else []
    subject = Subject(" and ".join(parts) or "nothing", known, writes=True)
    program = batches.write_many(context.client, puts=entities, deletes=deleted)
    return explain_program(subject, program, context.prices, run=run)


def transaction(
    context: ExplainContext,
    intents: Sequence[Intent[Any]],
    token: str | None,
    *,
    run: bool,
    item_bytes: int | None,
    current: Sequence[Entity],
) -> Program[Explanation[None]]:
    """Explain a transaction; items that its requests depend on are read."""
    client = context.client
    deleted = [intent.entity for intent in intents if intent.kind == "delete"]
    known = known_items(
        client,
        [intent.shape for intent in intents],
        item_bytes=item_bytes,
        current=_items_of(client, *current, *deleted),
    )
    writes = ", ".join(f"{intent.kind} {intent.what}" for intent in intents)
    subject = Subject(f"transaction of {writes}", known, writes=True)
    return explain_program(subject, transactions.commit(client, intents, token), context.prices, run=run)


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


def _items_of(context: Context, *entities: Entity | None) -> tuple[Item, ...]:
    return tuple(
        item_of(shape_of(type(entity)), entity, context) for entity in entities if entity is not None
    )


def _describe_selection(selection: Selection[Any]) -> str:
    request = request_of(selection)
    parts = [f"{name}={value!r}" for name, value in {**request.values, **request.fixed}.items()]
    if request.range is not None:
        operands = ", ".join(map(repr, request.range.operands))
        parts.append(f"{request.range.part}.{request.range.operator}({operands})")
    filtered = "" if request.filter is None else ", filtered"
    return f"{request.pattern.place}({', '.join(parts)}){filtered}"


def _read_bytes(
    item_bytes: int | None, shape: EntityShape, access: AccessPattern | None = None
) -> int | None:
    """Return the size of an item: the caller's, that of the access pattern, or that of the key's access pattern."""
    key_access = None if shape.key is None else shape.key.access
    sizes = (item_bytes, *(pattern.item_bytes for pattern in (access, key_access) if pattern is not None))
    return next((size for size in sizes if size is not None), None)


def _write_bytes(
    item_bytes: int | None, shape: EntityShape, kind: str, touched: frozenset[str]
) -> int | None:
    """Return the size of an item that is replaced: the caller's, or that of a write pattern."""
    if item_bytes is not None:
        return item_bytes
    declared = [write for write in shape.writes if write.kind == kind and write.item_bytes is not None]
    # Patterns of the same changes first
    declared.sort(key=lambda pattern: frozenset(pattern.changes) != touched)
    return declared[0].item_bytes if declared else _read_bytes(item_bytes, shape)


def _items_per_request(access: AccessPattern | None, requests: int) -> int | None:
    if access is None or access.items is None:
        return None
    return -(-access.items // requests)


def _why_it_reads(shape: EntityShape, update: IndexKeyUpdate) -> str:
    indexes = " and ".join(key.index.label for key in update.undetermined if key.index is not None)
    absent = sorted({name for key in update.undetermined for name in key.fields - update.known.keys()})
    fixed = " & ".join(f"({shape.entity.__name__}.{name} == …)" for name in absent)
    return (
        f"The item is read first, because its key in {indexes} also contains {' and '.join(absent)}; with "
        f"when={fixed} one request is enough."
    )
