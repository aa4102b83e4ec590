"""AsyncDb: the client as an asynchronous shell over the same steps."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from tavola.client import batches, items, reading, transactions
from tavola.client.checkpoints import Checkpoints, kept_in
from tavola.client.context import Context
from tavola.client.effects import AsyncDriver, Program
from tavola.client.explain.async_shells import AsyncExplain
from tavola.client.explain.walk import prices_in
from tavola.client.intents import Intents
from tavola.client.metering import Spent, measure
from tavola.client.pages import NEITHER, Stretch
from tavola.client.progress import Telling
from tavola.client.reading import Paging
from tavola.client.subscriptions import AsyncSubscription, Following, From, Manner, OnLoss
from tavola.client.upkeep import AsyncUpkeep
from tavola.model import (
    Change,
    Collection,
    Condition,
    Entity,
    ItemUnreadable,
    PrimaryKey,
    Selection,
    Table,
)

E = TypeVar("E", bound=Entity)
E2 = TypeVar("E2", bound=Entity)
E3 = TypeVar("E3", bound=Entity)
E4 = TypeVar("E4", bound=Entity)
E5 = TypeVar("E5", bound=Entity)
C = TypeVar("C", bound=Collection)
T = TypeVar("T")
R = TypeVar("R")


class AsyncPage(Generic[T]):
    """The same for a loop: `async for` goes on through the following pages."""

    def __init__(self, stretch: Stretch[T], following: Any) -> None:
        self.items = stretch.items
        self.cursor = stretch.cursor
        self.scanned = stretch.scanned
        self.requests = stretch.requests
        self._following = following

    async def __aiter__(self) -> AsyncIterator[T]:
        page = self
        while True:
            for item in page.items:
                yield item
            if page.cursor is None or page._following is None:
                return
            page = await page._following(page.cursor)

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(
                "more pages may follow, which are waited for: write `async for`, or take page.items"
            )

    def __bool__(self) -> NoReturn:
        raise TypeError(NEITHER)

    def __repr__(self) -> str:
        return f"<AsyncPage of {len(self.items)}, {'the last' if self.cursor is None else 'more to come'}>"


class AsyncTransaction(Intents):
    """Several writes that are done together when the `async with` ends, or not at all."""

    def __init__(
        self, run: Callable[[Program[None]], Awaitable[None]], context: Context, token: str | None
    ) -> None:
        super().__init__(context, token)
        self._run = run

    async def commit(self) -> None:
        """Do it now; the end of the `async with` does nothing more. Raise `TransactionCancelled` if it cannot be."""
        await self._run(transactions.commit(self._context, self._closed(), self._token))

    async def __aenter__(self) -> AsyncTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._over:
            await self.commit()


class AsyncDb(AsyncUpkeep):
    """Entities in, entities out, over a backend on an event loop; the methods are those of `Db`."""

    _context: Context
    _driver: AsyncDriver

    @property
    def context(self) -> Context:
        """What its operations share: names of tables, time, chance, patience; for what is built on the client."""
        return self._context

    async def _run(self, steps: Program[R]) -> R:
        return await self._driver.run(steps)

    async def run(self, steps: Program[R]) -> R:
        """Return what steps of the client come to; for what is built on it."""
        return await self._run(steps)

    @overload
    async def get(self, key: PrimaryKey[E], *, consistent: bool | None = None) -> E | None: ...
    @overload
    async def get(
        self, key: PrimaryKey[Any], *, view: type[E], consistent: bool | None = None
    ) -> E | None: ...
    async def get(
        self, key: PrimaryKey[Any], *, view: type[Entity] | None = None, consistent: bool | None = None
    ) -> Any:
        """Return the entity under a key, None if there is none, or one that has expired.

        With a `view`, an entity without a Key that has some of its fields, only these are sent; it costs as much.
        """
        return await self._run(items.get(self._context, key, consistent, view))

    async def put(self, entity: E, *, when: Condition[E] | None = None) -> E:
        """Store an entity, over what may be there; `when` must hold of that."""
        return await self._run(items.put(self._context, entity, when))

    async def create(self, entity: E) -> E:
        """Store an entity that is not there yet; raise `ItemExists` if it is."""
        return await self._run(items.create(self._context, entity))

    async def update(
        self,
        target: PrimaryKey[E] | E,
        *changes: Change[E],
        when: Condition[E] | None = None,
        create: bool = False,
    ) -> E:
        """Change an item and every index key that depends on it, and return the entity as it is now.

        An item that is not there is an `ItemMissing`; with `create` it is made of the key and the changes.
        """
        return await self._run(items.update(self._context, target, changes, when, create))

    async def delete(
        self, target: PrimaryKey[E] | E, *, when: Condition[E] | None = None, erase: bool = False
    ) -> E | None:
        """Delete an item and return what it was, None if there was none; an immutable one only with `erase`."""
        return await self._run(items.delete(self._context, target, when, erase))

    async def query(
        self,
        selection: Selection[E],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        newest_first: bool = False,
        consistent: bool | None = None,
        page_size: int | None = None,
        unreadable: Callable[[ItemUnreadable], object] | None = None,
    ) -> AsyncPage[E]:
        """Return what a question finds, in the order of its sort key.

        With a limit, the page holds so many and its cursor leads on; without, iterating gives everything. An item that does
        not fit its entity is raised; with `unreadable`, it is told to that and left out.
        """

        async def at(place: str | None) -> AsyncPage[E]:
            paging = Paging(limit, page_size, place, newest_first)
            stretch = await self._run(reading.query(self._context, selection, paging, consistent, unreadable))
            return AsyncPage(stretch, at if limit is None else None)

        return await at(cursor)

    async def scan(
        self,
        what: type[E],
        *,
        where: Condition[E] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
        segments: int = 1,
        consistent: bool = False,
    ) -> AsyncPage[E]:
        """Return all items of an entity, reading every item of its table; in no order."""

        async def at(place: str | None) -> AsyncPage[E]:
            paging = Paging(limit, page_size, place)
            stretch = await self._run(reading.scan(self._context, what, where, paging, segments, consistent))
            return AsyncPage(stretch, at if limit is None else None)

        return await at(cursor)

    async def scan_table(
        self,
        table: type[Table],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
        segments: int = 1,
        consistent: bool = False,
    ) -> AsyncPage[Entity]:
        """Return every entity in a table, of whatever kind; items of no known kind are left out."""

        async def at(place: str | None) -> AsyncPage[Entity]:
            paging = Paging(limit, page_size, place)
            stretch = await self._run(reading.scan(self._context, table, None, paging, segments, consistent))
            return AsyncPage(stretch, at if limit is None else None)

        return await at(cursor)

    async def count(self, selection: Selection[Any], *, consistent: bool | None = None) -> int:
        """Return how many items a question finds; each is read and paid for."""
        return await self._run(reading.count(self._context, selection, consistent))

    async def collect(
        self,
        collection: C,
        *,
        consistent: bool | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> C:
        """Return a collection with its members: several entities, one query; with a limit, no more than its first items."""
        return await self._run(reading.collect(self._context, collection, consistent, newest_first, limit))

    async def get_many(
        self, keys: Iterable[PrimaryKey[E]], *, consistent: bool | None = None
    ) -> list[E | None]:
        """Return the entities under keys, in their order, a hundred to a request; None where there is none.

        What DynamoDB leaves unprocessed is asked again; `BatchUnfinished` tells what is left in the end.
        """
        return await self._run(batches.get_many(self._context, keys, consistent))

    @overload
    async def get_all(
        self, k1: PrimaryKey[E], k2: PrimaryKey[E2], /, *, consistent: bool | None = None
    ) -> tuple[E | None, E2 | None]: ...
    @overload
    async def get_all(
        self, k1: PrimaryKey[E], k2: PrimaryKey[E2], k3: PrimaryKey[E3], /, *, consistent: bool | None = None
    ) -> tuple[E | None, E2 | None, E3 | None]: ...
    @overload
    async def get_all(
        self,
        k1: PrimaryKey[E],
        k2: PrimaryKey[E2],
        k3: PrimaryKey[E3],
        k4: PrimaryKey[E4],
        /,
        *,
        consistent: bool | None = None,
    ) -> tuple[E | None, E2 | None, E3 | None, E4 | None]: ...
    @overload
    async def get_all(
        self,
        k1: PrimaryKey[E],
        k2: PrimaryKey[E2],
        k3: PrimaryKey[E3],
        k4: PrimaryKey[E4],
        k5: PrimaryKey[E5],
        /,
        *,
        consistent: bool | None = None,
    ) -> tuple[E | None, E2 | None, E3 | None, E4 | None, E5 | None]: ...
    async def get_all(self, *keys: PrimaryKey[Any], consistent: bool | None = None) -> Any:
        """Return the entities under two to five keys of any kinds as a tuple, each with its own type."""
        return tuple(await self._run(batches.get_many(self._context, keys, consistent)))

    @overload
    async def get_together(self, keys: Iterable[PrimaryKey[E]], /) -> list[E | None]: ...
    @overload
    async def get_together(self, key: PrimaryKey[E], /) -> tuple[E | None]: ...
    @overload
    async def get_together(
        self, key: PrimaryKey[E], key2: PrimaryKey[E2], /
    ) -> tuple[E | None, E2 | None]: ...
    @overload
    async def get_together(
        self, key: PrimaryKey[E], key2: PrimaryKey[E2], key3: PrimaryKey[E3], /
    ) -> tuple[E | None, E2 | None, E3 | None]: ...
    @overload
    async def get_together(
        self, key: PrimaryKey[E], key2: PrimaryKey[E2], key3: PrimaryKey[E3], key4: PrimaryKey[E4], /
    ) -> tuple[E | None, E2 | None, E3 | None, E4 | None]: ...
    @overload
    async def get_together(
        self,
        key: PrimaryKey[E],
        key2: PrimaryKey[E2],
        key3: PrimaryKey[E3],
        key4: PrimaryKey[E4],
        key5: PrimaryKey[E5],
        /,
    ) -> tuple[E | None, E2 | None, E3 | None, E4 | None, E5 | None]: ...
    async def get_together(self, *keys: Any) -> Any:
        """Return the entities under up to 100 keys as they are at one moment; None where there is none.

        Of up to five keys the answer is a tuple, each member typed as its key is; a list of keys gives a list.
        """
        if len(keys) == 1 and not isinstance(keys[0], PrimaryKey):
            return await self._run(transactions.get_together(self._context, list(keys[0])))
        return tuple(await self._run(transactions.get_together(self._context, keys)))

    def transaction(self, token: str | None = None) -> AsyncTransaction:
        """Begin a transaction: what is told to it is done when its `async with` ends, all of it or nothing.

        `token` makes the same transaction count once within ten minutes; without one, it is given its own.
        """
        return AsyncTransaction(self._run, self._context, token)

    async def put_many(self, entities: Iterable[Entity], *, progress: Telling | None = None) -> int:
        """Store entities over whatever is there, 25 to a request, and return how many; no conditions hold.

        They are taken as they come, so a generator of a million is never held. Of two with one key the later stands.
        """
        return await self._run(batches.write_many(self._context, entities, (), progress))

    async def delete_many(
        self, keys: Iterable[PrimaryKey[Any] | Entity], *, progress: Telling | None = None
    ) -> int:
        """Delete items, 25 to a request, and return how many keys were given; what is not there is no error."""
        return await self._run(batches.write_many(self._context, (), keys, progress))

    async def write_many(
        self,
        *,
        puts: Iterable[Entity] = (),
        deletes: Iterable[PrimaryKey[Any] | Entity] = (),
        progress: Telling | None = None,
    ) -> int:
        """Store entities, then delete others, as `put_many` and `delete_many` do, in the same requests."""
        return await self._run(batches.write_many(self._context, puts, deletes, progress))

    async def subscribe(
        self,
        table: type[Table] | str,
        *,
        from_: From = "now",
        checkpoint: str | os.PathLike[str] | Checkpoints | None = None,
        follow: bool = True,
        on_loss: OnLoss = "refuse",
        poll_s: float = 0.5,
    ) -> AsyncSubscription:
        """Return the changes of a table as its stream tells them, from now or from the start of what it keeps (a day).

        With a `checkpoint`, a file's path or an object of one's own, it goes on after what was dealt with. `follow`
        waits for more, looking every `poll_s` seconds; without, it ends at the end. Where changes were lost because
        nobody read them for a day, it raises `RecordsLost` unless `on_loss` is "go on", or a function that is told.
        A table given by its name is followed as it is: every change is a `RawChange`.
        """
        manner = Manner(from_, follow, poll_s, on_loss, kept_in(checkpoint))
        following = Following(self._context, table, manner)
        await self._run(following.start())
        return AsyncSubscription(self._run, following)

    @property
    def explain(self) -> AsyncExplain:
        """The same methods, each telling what it would ask and cost instead of doing it."""
        return AsyncExplain(self._run, self._context, prices_in(self._context))

    def measured(self) -> AbstractContextManager[Spent]:
        """Give what the calls inside a `with` consume, by table and index."""
        return measure()
