"""Subjects: for each operation of the client its own steps, and what the model tells of the items they meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tavola.client import batches, items, reading, transactions
from tavola.client.arguments import check_collection, check_scanned
from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.explain.explanation import Explanation
from tavola.client.explain.walk import Prices, Subject, explained, known_of
from tavola.client.intents import Intent
from tavola.client.marshalling import item_of
from tavola.client.pages import Stretch
from tavola.client.queries import shards_asked
from tavola.client.reading import Paging
from tavola.client.updates import UpdatePlan
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
    question_of,
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
class Wish:
    """How an explanation is wanted: by which prices, run or not, and what is known of the items."""

    prices: Prices
    run: bool = False
    item_bytes: int | None = None  # of one item, where the design does not declare it
    standing: tuple[Entity, ...] = ()  # entities as they stand, which makes the estimate of a write exact


def get(
    context: Context, wish: Wish, key: PrimaryKey[E], consistent: bool | None
) -> Program[Explanation[E | None]]:
    """Explain a get."""
    shape, _, _ = keyed(key)
    known = known_of(context, [shape], item_bytes=_read_bytes(wish, shape), standing=_standing(context, wish))
    subject = Subject(f"get {key!r}", known)
    return explained(subject, items.get(context, key, consistent), wish.prices, run=wish.run)


def put(
    context: Context, wish: Wish, entity: E, when: Condition[E] | None, *, new: bool = False
) -> Program[Explanation[E]]:
    """Explain a put, or a create."""
    shape, keys, _ = keyed(entity)
    verb = "create" if new else "put"
    subject = Subject(
        f"{verb} {named(shape, keys)}",
        known_of(context, [shape], item_bytes=wish.item_bytes, standing=_standing(context, wish)),
        writes=True,
    )
    steps = items.create(context, entity) if new else items.put(context, entity, when)
    return explained(subject, steps, wish.prices, run=wish.run)


def update(
    context: Context,
    wish: Wish,
    target: PrimaryKey[E] | E,
    changes: Sequence[Change[E]],
    when: Condition[E] | None,
    create: bool,
) -> Program[Explanation[E]]:
    """Explain an update: of one that must read first, the read as well."""
    shape, keys, _ = keyed(target)
    standing = _standing(context, wish)
    plan = UpdatePlan(shape, keys, changes, when, create)
    reads = bool(plan.unsettled) and shape.policy == "read"
    subject = Subject(
        f"update {named(shape, keys)}",
        known_of(
            context, [shape], item_bytes=_write_bytes(wish, shape, "update", plan.touched), standing=standing
        ),
        more=_AGAIN if reads else "",
        warnings=(_read_first(shape, plan),) if reads else (),
        writes=True,
    )
    steps: Program[E] = items.update(context, target, changes, when, create)
    return explained(subject, steps, wish.prices, run=wish.run)


def delete(
    context: Context, wish: Wish, target: PrimaryKey[E] | E, when: Condition[E] | None
) -> Program[Explanation[E | None]]:
    """Explain a delete; of an entity, by its own size."""
    shape, keys, entity = keyed(target)
    standing = _standing(context, wish)
    if entity is not None and not standing:
        standing = (item_of(shape, entity, context),)
    known = known_of(
        context, [shape], item_bytes=_write_bytes(wish, shape, "delete", frozenset()), standing=standing
    )
    subject = Subject(f"delete {named(shape, keys)}", known, writes=True)
    return explained(subject, items.delete(context, target, when), wish.prices, run=wish.run)


def query(
    context: Context, wish: Wish, selection: Selection[E], paging: Paging, consistent: bool | None
) -> Program[Explanation[list[E]]]:
    """Explain a query; run without a limit, it reads the whole answer."""
    question = question_of(selection)
    pattern = question.pattern
    shape = shape_of(pattern.owner)
    known = known_of(
        context,
        [shape],
        item_bytes=_read_bytes(wish, shape, pattern.access),
        items=_per_request(pattern.access, shards_asked(pattern, question)),
        fetches=pattern.hydrate and not wish.run,  # where it is run, each request is estimated as it is asked
    )
    more = _FETCHED if pattern.hydrate else _PAGES if paging.limit is None else ""
    subject = Subject(f"query {_told(selection)}", known, more=more)
    steps = _whole(lambda page: reading.query(context, selection, page, consistent), paging)
    return explained(subject, steps, wish.prices, run=wish.run)


def count(
    context: Context, wish: Wish, selection: Selection[Any], consistent: bool | None
) -> Program[Explanation[int]]:
    """Explain a count, which reads everything that it counts."""
    question = question_of(selection)
    pattern = question.pattern
    shape = shape_of(pattern.owner)
    known = known_of(
        context,
        [shape],
        item_bytes=_read_bytes(wish, shape, pattern.access),
        items=_per_request(pattern.access, shards_asked(pattern, question)),
    )
    subject = Subject(f"count {_told(selection)}", known, more=_PAGES)
    return explained(subject, reading.count(context, selection, consistent), wish.prices, run=wish.run)


def scan(
    context: Context,
    wish: Wish,
    what: type[Entity] | type[Table],
    where: Condition[Any] | None,
    paging: Paging,
    segments: int,
    consistent: bool,
) -> Program[Explanation[list[Any]]]:
    """Explain a scan of an entity or of a whole table; run without a limit, it reads all of it."""
    check_scanned(what)
    shapes = [shape_of(what)] if issubclass(what, Entity) else [shape_of(e) for e in what.entities.values()]
    known = known_of(context, shapes, item_bytes=wish.item_bytes)
    more = _PAGES if paging.limit is None else ""
    subject = Subject(f"scan {what.__name__}", known, more=more)
    steps = _whole(lambda page: reading.scan(context, what, where, page, segments, consistent), paging)
    return explained(subject, steps, wish.prices, run=wish.run)


def collect(
    context: Context,
    wish: Wish,
    collection: C,
    consistent: bool | None,
    newest_first: bool,
    limit: int | None,
) -> Program[Explanation[C]]:
    """Explain the query of a collection."""
    check_collection(collection)
    kind = type(collection)
    shapes = [shape_of(member.entity) for member in members_of(kind)]
    access = kind.__access__
    known = known_of(
        context, shapes, item_bytes=_read_bytes(wish, shapes[0], access), items=_per_request(access, 1)
    )
    subject = Subject(f"collect {collection!r}", known, more=_PAGES if limit is None else "")
    steps = reading.collect(context, collection, consistent, newest_first, limit)
    return explained(subject, steps, wish.prices, run=wish.run)


def get_many(
    context: Context, wish: Wish, keys: Iterable[PrimaryKey[E]], consistent: bool | None
) -> Program[Explanation[list[E | None]]]:
    """Explain a batch of gets, each of which is paid as if it were alone."""
    wanted = list(keys)
    steps = batches.get_many(context, wanted, consistent)
    return explained(_gotten(context, wish, "get_many", wanted), steps, wish.prices, run=wish.run)


def get_all(
    context: Context, wish: Wish, keys: Sequence[PrimaryKey[Any]], consistent: bool | None
) -> Program[Explanation[tuple[Any, ...]]]:
    """Explain a batch of a few gets of any kinds."""

    def steps() -> Program[tuple[Any, ...]]:
        return tuple((yield from batches.get_many(context, keys, consistent)))

    return explained(_gotten(context, wish, "get_all", keys), steps(), wish.prices, run=wish.run)


def _gotten(context: Context, wish: Wish, verb: str, keys: Sequence[PrimaryKey[Any]]) -> Subject:
    shapes = [keyed(key)[0] for key in keys]
    told = {_read_bytes(wish, shape) for shape in shapes}
    known = known_of(context, shapes, item_bytes=told.pop() if len(told) == 1 else None)
    return Subject(f"{verb} of {len(keys):,} keys", known)


def write_many(
    context: Context, wish: Wish, puts: Iterable[Entity], deletes: Iterable[PrimaryKey[Any] | Entity]
) -> Program[Explanation[int]]:
    """Explain a batch of writes, each of which is paid as if it were alone."""
    entities, gone = list(puts), list(deletes)
    shapes = [keyed(each)[0] for each in (*entities, *gone)]
    standing = [item_of(shape_of(type(each)), each, context) for each in gone if isinstance(each, Entity)]
    known = known_of(context, shapes, item_bytes=wish.item_bytes, standing=tuple(standing))
    told = [f"put_many of {len(entities):,} entities"] if entities else []
    told += [f"delete_many of {len(gone):,} keys"] if gone else []
    subject = Subject(" and ".join(told) or "nothing", known, writes=True)
    return explained(subject, batches.write_many(context, entities, gone, None), wish.prices, run=wish.run)


def get_together(
    context: Context, wish: Wish, keys: Sequence[PrimaryKey[Any]]
) -> Program[Explanation[list[Any]]]:
    """Explain gets of one moment, which cost four times as much as eventual ones."""
    shapes = [keyed(key)[0] for key in keys]
    told = {_read_bytes(wish, shape) for shape in shapes}
    known = known_of(context, shapes, item_bytes=told.pop() if len(told) == 1 else None)
    subject = Subject(f"get_together of {len(keys)} keys", known)
    return explained(subject, transactions.get_together(context, keys), wish.prices, run=wish.run)


def transaction(
    context: Context, wish: Wish, intents: Sequence[Intent[Any]], token: str | None
) -> Program[Explanation[None]]:
    """Explain a transaction; what must be read before it can be worked out is read."""
    gone = [
        (each.shape, each.entity) for each in intents if each.kind == "delete" and each.entity is not None
    ]
    standing = (*_standing(context, wish), *(item_of(shape, entity, context) for shape, entity in gone))
    known = known_of(context, [each.shape for each in intents], item_bytes=wish.item_bytes, standing=standing)
    told = ", ".join(f"{each.kind} {each.what}" for each in intents)
    subject = Subject(f"transaction of {told}", known, writes=True)
    return explained(subject, transactions.commit(context, intents, token), wish.prices, run=wish.run)


def _whole(ask: Callable[[Paging], Program[Stretch[R]]], paging: Paging) -> Program[list[R]]:
    """Return everything that an answer holds: all its pages, unless a limit is given."""
    stretch = yield from ask(paging)
    found = list(stretch.items)
    while paging.limit is None and stretch.cursor is not None:
        stretch = yield from ask(replace(paging, cursor=stretch.cursor))
        found += stretch.items
    return found


def _told(selection: Selection[Any]) -> str:
    question = question_of(selection)
    told = [f"{name}={value!r}" for name, value in {**question.values, **question.fixed}.items()]
    if question.range is not None:
        operands = ", ".join(map(repr, question.range.operands))
        told.append(f"{question.range.part}.{question.range.operator}({operands})")
    filtered = "" if question.filter is None else ", filtered"
    return f"{question.pattern.place}({', '.join(told)}){filtered}"


def _standing(context: Context, wish: Wish) -> tuple[Item, ...]:
    return tuple(item_of(shape_of(type(entity)), entity, context) for entity in wish.standing)


def _read_bytes(wish: Wish, shape: Shape, access: AccessPattern | None = None) -> int | None:
    """Return the size of an item: as it was given, as the access pattern says, or as the key's own says."""
    own = None if shape.key is None else shape.key.access
    told = (wish.item_bytes, *(each.item_bytes for each in (access, own) if each is not None))
    return next((bytes_ for bytes_ in told if bytes_ is not None), None)


def _write_bytes(wish: Wish, shape: Shape, kind: str, touched: frozenset[str]) -> int | None:
    """Return the size of an item that is written over: as it was given, or as a write pattern says."""
    if wish.item_bytes is not None:
        return wish.item_bytes
    declared = [each for each in shape.writes if each.kind == kind and each.item_bytes is not None]
    declared.sort(key=lambda each: frozenset(each.changes) != touched)  # one of just these changes first
    return declared[0].item_bytes if declared else _read_bytes(wish, shape)


def _per_request(access: AccessPattern | None, requests: int) -> int | None:
    if access is None or access.items is None:
        return None
    return -(-access.items // requests)


def _read_first(shape: Shape, plan: UpdatePlan) -> str:
    indexes = " and ".join(key.index.label for key in plan.unsettled if key.index is not None)
    absent = sorted({name for key in plan.unsettled for name in key.fields - plan.known.keys()})
    fixed = " & ".join(f"({shape.entity.__name__}.{name} == …)" for name in absent)
    return (
        f"The item is read first, because its key in {indexes} is made of {' and '.join(absent)} too; with "
        f"when={fixed} one request is enough."
    )
