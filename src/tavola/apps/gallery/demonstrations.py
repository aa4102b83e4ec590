"""Sample designs and their demonstrations, whose steps return results with their cost.

A demonstration runs on any connection and returns steps: a title, the items, the consumed capacity and its price. Demonstrations
that write restore the items before they start and after they end, so that each can be repeated even after an aborted run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
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

REGION = "us-east-1"  # prices for connections without a region

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of a demonstration."""

    title: str
    items: tuple[Any, ...] = ()  # entities, or plain values
    reads: float = 0.0
    writes: float = 0.0
    scanned: int | None = None  # items read; None if unknown
    usd_per_million: Decimal | None = None  # on-demand price of a million such calls
    request: str = ""  # the explanation of the request
    cursor: str | None = None  # of the next page
    error: str = ""  # why the request was refused, if it was


Run = Callable[[AsyncConnection], Coroutine[Any, Any, tuple[StepResult, ...]]]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A demonstration of an access pattern."""

    name: str
    title: str
    run: Run
    writes: bool = False  # it changes items and restores them


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample design: its tables, its sample items and its demonstrations."""

    name: str
    title: str
    summary: str
    source: str  # the document and section that describes the pattern
    tables: tuple[type[Table], ...]
    entities: Callable[[], tuple[Entity, ...]]
    demonstrations: list[Demonstration] = field(default_factory=list)

    def demonstrate(self, name: str, title: str, *, writes: bool = False) -> Callable[[Run], Run]:
        """Return a decorator that adds a function to the sample's demonstrations."""

        def add(run: Run) -> Run:
            self.demonstrations.append(Demonstration(name, title, run, writes))
            return run

        return add

    def demonstration(self, name: str) -> Demonstration | None:
        """Return the demonstration with this name, or None."""
        return next(
            (demonstration for demonstration in self.demonstrations if demonstration.name == name), None
        )

    async def load(self, db: AsyncConnection) -> int:
        """Create the tables and write all items, replacing existing ones; return how many."""
        await db.create_tables(*self.tables)
        return await db.put_many(self.entities())

    async def load_missing(self, db: AsyncConnection) -> int:
        """Create the tables and write the items that are missing, as after an aborted load; return how many."""
        await db.create_tables(*self.tables)
        existing: set[tuple[str, ...]] = set()
        for table in self.tables:
            existing |= await _read_keys(db, table)
        missing = []
        for entity in self.entities():
            item = to_item(entity)
            if not any(_key(item, table) in existing for table in self.tables):
                missing.append(entity)
        return await db.put_many(missing) if missing else 0


async def _read_keys(db: AsyncConnection, table: type[Table]) -> set[tuple[str, ...]]:
    """Return the keys of all items in a table, which is small."""
    names = {f"#{number}": name for number, name in enumerate(table.settings.key_names)}
    request: dict[str, Any] = {
        "TableName": db.context.name_of(table),
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ConsistentRead": True,
    }
    keys: set[tuple[str, ...]] = set()
    while True:
        response = await db.call("Scan", dict(request))
        keys |= {_key(item, table) for item in response["Items"]}
        if "LastEvaluatedKey" not in response:
            return keys
        request["ExclusiveStartKey"] = response["LastEvaluatedKey"]


def _key(item: Mapping[str, Any], table: type[Table]) -> tuple[str, ...]:
    return (table.__name__, *(str(item.get(name)) for name in table.settings.key_names))


async def run_query(
    db: AsyncConnection,
    title: str,
    selection: Selection[Any],
    *,
    limit: int | None = None,
    newest_first: bool = False,
) -> StepResult:
    """Run a query and return its items, request and cost."""
    explanation = await db.explain.query(selection, limit=limit, newest_first=newest_first, run=True)
    return _explained_result(title, explanation, explanation.result or ())


async def run_get(db: AsyncConnection, title: str, key: PrimaryKey[Any]) -> StepResult:
    """Get an item by its key and return it with its request and cost."""
    explanation = await db.explain.get(key, run=True)
    items = () if explanation.result is None else (explanation.result,)
    return _explained_result(title, explanation, items)


async def run_collect(db: AsyncConnection, title: str, collection: Collection) -> StepResult:
    """Read a collection and return its members in the order of their declaration, with request and cost."""
    explanation = await db.explain.collect(collection, run=True)
    members: list[Any] = []
    for member in vars(explanation.result or collection).values():
        if isinstance(member, Entity):
            members.append(member)
        elif isinstance(member, list | tuple):
            members.extend(member)
    return _explained_result(title, explanation, members)


async def run_measured(db: AsyncConnection, title: str, program: Awaitable[Any]) -> StepResult:
    """Await a program of several calls and return its result with their total cost."""
    with db.measure() as spent:
        result = await program
    usd = spent.usd(load_book(db.context.region or REGION)) * 1_000_000
    cursor = getattr(result, "cursor", None)
    return StepResult(title, _members(result), spent.reads, spent.writes, usd_per_million=usd, cursor=cursor)


def expect_refusal(title: str, build: Callable[[], object]) -> StepResult:
    """Build an invalid query and return the client's error; nothing is sent."""
    try:
        build()
    except (
        TavolaError,
        AttributeError,
    ) as error:  # a key part after a range is no attribute of the selection
        return StepResult(title, error=str(error))
    return StepResult(title)


async def expect_async_refusal(title: str, request: Awaitable[object]) -> StepResult:
    """Send a request that is refused, and return the error."""
    try:
        await request
    except TavolaError as error:
        return StepResult(title, error=str(error))
    return StepResult(title)


def entities(result: StepResult, kind: type[E]) -> tuple[E, ...]:
    """Return the items of a step that are entities of a class."""
    return tuple(item for item in result.items if isinstance(item, kind))


def _explained_result(title: str, explanation: Explanation[Any], items: Iterable[Any]) -> StepResult:
    counts = [request.scanned for request in explanation.requests if request.scanned is not None]
    units = explanation.consumed
    return StepResult(
        title,
        tuple(items),
        units.reads if units else 0.0,
        units.writes if units else 0.0,
        sum(counts) if counts else None,
        explanation.usd_per_million,
        str(explanation),
    )


def _members(result: Any) -> tuple[Any, ...]:
    if result is None:
        return ()
    items = getattr(result, "items", result)
    if isinstance(items, list | tuple):
        return tuple(items)
    return tuple(result.items()) if isinstance(result, dict) else (result,)
