"""Showing: what a sample design is, and how its demonstrations tell what they found and what it took.

A demonstration runs on any connection and gives steps: what was asked in words, what came, the units and the money. The pages print
them, the tests look at them. Those that write put things as they were before they begin and after they end, so that each can be run again,
whatever became of the run before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from tavola import (
    AsyncConnection,
    Collection,
    Entity,
    Explanation,
    PrimaryKey,
    Selection,
    Table,
    TavolaError,
    to_item,
)
from tavola.prices import load_book

REGION = "us-east-1"  # whose prices are told where a connection does not say where it is

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class Told:
    """One step of a demonstration."""

    what: str
    found: tuple[Any, ...] = ()  # entities, or plain values
    reads: float = 0.0
    writes: float = 0.0
    scanned: int | None = None  # items that were read; None: nobody counted
    usd_per_million: Decimal | None = None  # of such calls, on demand
    request: str = ""  # the whole explanation, for reading
    cursor: str | None = None  # of a page that leads on
    refused: str = ""  # why it was refused; empty: it was not


Run = Callable[[AsyncConnection], Coroutine[Any, Any, tuple[Told, ...]]]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An access pattern at work."""

    name: str
    title: str
    run: Run
    writes: bool = False  # it changes items, and puts them back


@dataclass(frozen=True, slots=True)
class Sample:
    """A small design: what it shows, where it is from, its tables, its items and what can be asked."""

    name: str
    title: str
    shows: str
    source: str  # the document and the section that it is from
    tables: tuple[type[Table], ...]
    entities: Callable[[], tuple[Entity, ...]]
    demonstrations: tuple[Demonstration, ...]

    def demonstration(self, name: str) -> Demonstration | None:
        """Return a demonstration by its name, None if there is none."""
        return next((each for each in self.demonstrations if each.name == name), None)

    async def load(self, db: AsyncConnection) -> int:
        """Make the tables and store the items over what may be there; return how many."""
        await db.create_tables(*self.tables)
        return await db.put_many(self.entities())

    async def complete(self, db: AsyncConnection) -> int:
        """Make the tables and store the items that are not there, as after a load that broke off; return how many."""
        await db.create_tables(*self.tables)
        there: set[tuple[str, ...]] = set()
        for table in self.tables:
            there |= await _keys(db, table)
        missing = []
        for entity in self.entities():
            item = to_item(entity)
            if not any(_key(item, table) in there for table in self.tables):
                missing.append(entity)
        return await db.put_many(missing) if missing else 0


async def _keys(db: AsyncConnection, table: type[Table]) -> set[tuple[str, ...]]:
    """Return the keys of all items in a table, which is small."""
    names = {f"#{number}": name for number, name in enumerate(table.settings.key_names)}
    request: dict[str, Any] = {
        "TableName": db.context.name_of(table),
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ConsistentRead": True,
    }
    found: set[tuple[str, ...]] = set()
    while True:
        answer = await db.call("Scan", dict(request))
        found |= {_key(item, table) for item in answer["Items"]}
        if "LastEvaluatedKey" not in answer:
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _key(item: Mapping[str, Any], table: type[Table]) -> tuple[str, ...]:
    return (table.__name__, *(str(item.get(name)) for name in table.settings.key_names))


async def asked(
    db: AsyncConnection,
    what: str,
    selection: Selection[Any],
    *,
    limit: int | None = None,
    newest_first: bool = False,
) -> Told:
    """Ask a question and tell what came of it, with its request and its cost."""
    told = await db.explain.query(selection, limit=limit, newest_first=newest_first, run=True)
    return _explained(what, told, told.result or ())


async def got(db: AsyncConnection, what: str, key: PrimaryKey[Any]) -> Told:
    """Get an item by its key and tell it, with its request and its cost."""
    told = await db.explain.get(key, run=True)
    return _explained(what, told, () if told.result is None else (told.result,))


async def fetched(db: AsyncConnection, what: str, collection: Collection) -> Told:
    """Fetch a collection and tell its members, in the order of the declaration."""
    told = await db.explain.collect(collection, run=True)
    members: list[Any] = []
    for member in vars(told.result or collection).values():
        if isinstance(member, Entity):
            members.append(member)
        elif isinstance(member, list | tuple):
            members.extend(member)
    return _explained(what, told, members)


async def measured(db: AsyncConnection, what: str, doing: Awaitable[Any]) -> Told:
    """Do something that takes several calls, and tell what came of it and what all of them took."""
    with db.measured() as spent:
        result = await doing
    usd = spent.usd(load_book(db.context.region or REGION)) * 1_000_000
    cursor = getattr(result, "cursor", None)
    return Told(what, _members(result), spent.reads, spent.writes, usd_per_million=usd, cursor=cursor)


def refused(what: str, ask: Callable[[], object]) -> Told:
    """Ask what cannot be asked, and tell how the client says so, before anything is sent."""
    try:
        ask()
    except (TavolaError, AttributeError) as error:  # a part after a range is no attribute of the question
        return Told(what, refused=str(error))
    return Told(what)


async def refused_later(what: str, asking: Awaitable[object]) -> Told:
    """Ask what is refused only when it is sent off, and tell how."""
    try:
        await asking
    except TavolaError as error:
        return Told(what, refused=str(error))
    return Told(what)


def entities(told: Told, kind: type[E]) -> tuple[E, ...]:
    """Return the entities of a kind that a step found."""
    return tuple(each for each in told.found if isinstance(each, kind))


def _explained(what: str, told: Explanation[Any], found: Iterable[Any]) -> Told:
    counts = [each.scanned for each in told.requests if each.scanned is not None]
    units = told.consumed
    return Told(
        what,
        tuple(found),
        units.reads if units else 0.0,
        units.writes if units else 0.0,
        sum(counts) if counts else None,
        told.usd_per_million,
        str(told),
    )


def _members(result: Any) -> tuple[Any, ...]:
    if result is None:
        return ()
    held = getattr(result, "items", result)
    if isinstance(held, list | tuple):
        return tuple(held)
    return tuple(result.items()) if isinstance(result, dict) else (result,)
