"""Db: the client as a synchronous shell; each method hands its steps to a driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar, overload

from tavola.client import batches, items, reading, transactions
from tavola.client.checkpoints import Checkpoints, kept_in
from tavola.client.context import Context
from tavola.client.effects import Driver, Program
from tavola.client.explain.shells import Explain
from tavola.client.explain.walk import prices_in
from tavola.client.intents import Intents
from tavola.client.metering import Spent, measure
from tavola.client.pages import NEITHER, Stretch
from tavola.client.progress import Telling
from tavola.client.reading import Paging
from tavola.client.subscriptions import Following, From, Manner, OnLoss, Subscription
from tavola.client.upkeep import Upkeep
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


class Page(Generic[T]):
    """A stretch of an answer; iterating goes on through the following ones, unless a limit was given.

    `items` are those of this stretch. A page has no length and is neither true nor false: `count()` counts.
    """

    def __init__(self, stretch: Stretch[T], following: Any) -> None:
        self.items = stretch.items
        self.cursor = stretch.cursor  # from where to go on; None: that was all
        self.scanned = stretch.scanned  # items that were read, and paid for
        self.requests = stretch.requests
        self._following = (
            following  # a function from a cursor to the page there; None: this page alone is wanted
        )

    def __iter__(self) -> Iterator[T]:
        page = self
        while True:
            yield from page.items
            if page.cursor is None or page._following is None:
                return
            page = page._following(page.cursor)

    def __bool__(self) -> NoReturn:
        raise TypeError(NEITHER)

    def __repr__(self) -> str:
        return f"<Page of {len(self.items)}, {'the last' if self.cursor is None else 'more to come'}>"


class Transaction(Intents):
    """Several writes that are done together when the `with` ends, or not at all; see `Db.transaction`."""

    def __init__(self, run: Callable[[Program[None]], None], context: Context, token: str | None) -> None:
        super().__init__(context, token)
        self._run = run

    def commit(self) -> None:
        """Do it now; the end of the `with` does nothing more. Raise `TransactionCancelled` if it cannot be."""
        self._run(transactions.commit(self._context, self._closed(), self._token))

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._over:
            self.commit()


class Db(Upkeep):
    """Entities in, entities out, over a backend."""

    _context: Context
    _driver: Driver

    @property
    def context(self) -> Context:
        """What its operations share: names of tables, time, chance, patience; for what is built on the client."""
        return self._context

    def _run(self, steps: Program[R]) -> R:
        return self._driver.run(steps)

    def run(self, steps: Program[R]) -> R:
        """Return what steps of the client come to; for what is built on it."""
        return self._run(steps)

    @overload
    def get(self, key: PrimaryKey[E], *, consistent: bool | None = None) -> E | None: ...
    @overload
    def get(self, key: PrimaryKey[Any], *, view: type[E], consistent: bool | None = None) -> E | None: ...
    def get(
        self, key: PrimaryKey[Any], *, view: type[Entity] | None = None, consistent: bool | None = None
    ) -> Any:
        """Return the entity under a key, None if there is none, or one that has expired.

        With a `view`, an entity without a Key that has some of its fields, only these are sent; it costs as much.
        """
        return self._run(items.get(self._context, key, consistent, view))

    def put(self, entity: E, *, when: Condition[E] | None = None) -> E:
        """Store an entity, over what may be there; `when` must hold of that."""
        return self._run(items.put(self._context, entity, when))

    def create(self, entity: E) -> E:
        """Store an entity that is not there yet; raise `ItemExists` if it is."""
        return self._run(items.create(self._context, entity))

    def update(
        self,
        target: PrimaryKey[E] | E,
        *changes: Change[E],
        when: Condition[E] | None = None,
        create: bool = False,
    ) -> E:
        """Change an item and every index key that depends on it, and return the entity as it is now.

        An item that is not there is an `ItemMissing`; with `create` it is made of the key and the changes.
        """
        return self._run(items.update(self._context, target, changes, when, create))

    def delete(
        self, target: PrimaryKey[E] | E, *, when: Condition[E] | None = None, erase: bool = False
    ) -> E | None:
        """Delete an item and return what it was, None if there was none; an immutable one only with `erase`."""
        return self._run(items.delete(self._context, target, when, erase))

    def query(
        self,
        selection: Selection[E],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        newest_first: bool = False,
        consistent: bool | None = None,
        page_size: int | None = None,
        unreadable: Callable[[ItemUnreadable], object] | None = None,
    ) -> Page[E]:
        """Return what a question finds, in the order of its sort key.

        With a limit, the page holds so many and its cursor leads on; without, iterating gives everything. An item that does
        not fit its entity is raised; with `unreadable`, it is told to that and left out.
        """

        def at(place: str | None) -> Page[E]:
            paging = Paging(limit, page_size, place, newest_first)
            stretch = self._run(reading.query(self._context, selection, paging, consistent, unreadable))
            return Page(stretch, at if limit is None else None)

        return at(cursor)

    def scan(
        self,
        what: type[E],
        *,
        where: Condition[E] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
        segments: int = 1,
        consistent: bool = False,
    ) -> Page[E]:
        """Return all items of an entity, reading every item of its table; in no order."""

        def at(place: str | None) -> Page[E]:
            paging = Paging(limit, page_size, place)
            stretch = self._run(reading.scan(self._context, what, where, paging, segments, consistent))
            return Page(stretch, at if limit is None else None)

        return at(cursor)

    def scan_table(
        self,
        table: type[Table],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
        segments: int = 1,
        consistent: bool = False,
    ) -> Page[Entity]:
        """Return every entity in a table, of whatever kind; items of no known kind are left out."""

        def at(place: str | None) -> Page[Entity]:
            paging = Paging(limit, page_size, place)
            stretch = self._run(reading.scan(self._context, table, None, paging, segments, consistent))
            return Page(stretch, at if limit is None else None)

        return at(cursor)

    def count(self, selection: Selection[Any], *, consistent: bool | None = None) -> int:
        """Return how many items a question finds; each is read and paid for."""
        return self._run(reading.count(self._context, selection, consistent))

    def collect(
        self,
        collection: C,
        *,
        consistent: bool | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> C:
        """Return a collection with its members: several entities, one query; with a limit, no more than its first items."""
        return self._run(reading.collect(self._context, collection, consistent, newest_first, limit))

    def get_many(self, keys: Iterable[PrimaryKey[E]], *, consistent: bool | None = None) -> list[E | None]:
        """Return the entities under keys, in their order, a hundred to a request; None where there is none.

        What DynamoDB leaves unprocessed is asked again; `BatchUnfinished` tells what is left in the end.
        """
        return self._run(batches.get_many(self._context, keys, consistent))

    @overload
    def get_all(
        self, k1: PrimaryKey[E], k2: PrimaryKey[E2], /, *, consistent: bool | None = None
    ) -> tuple[E | None, E2 | None]: ...
    @overload
    def get_all(
        self, k1: PrimaryKey[E], k2: PrimaryKey[E2], k3: PrimaryKey[E3], /, *, consistent: bool | None = None
    ) -> tuple[E | None, E2 | None, E3 | None]: ...
    @overload
    def get_all(
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
    def get_all(
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
    def get_all(self, *keys: PrimaryKey[Any], consistent: bool | None = None) -> Any:
        """Return the entities under two to five keys of any kinds as a tuple, each with its own type."""
        return tuple(self._run(batches.get_many(self._context, keys, consistent)))

    @overload
    def get_together(self, keys: Iterable[PrimaryKey[E]], /) -> list[E | None]: ...
    @overload
    def get_together(self, key: PrimaryKey[E], /) -> tuple[E | None]: ...
    @overload
    def get_together(self, key: PrimaryKey[E], key2: PrimaryKey[E2], /) -> tuple[E | None, E2 | None]: ...
    @overload
    def get_together(
        self, key: PrimaryKey[E], key2: PrimaryKey[E2], key3: PrimaryKey[E3], /
    ) -> tuple[E | None, E2 | None, E3 | None]: ...
    @overload
    def get_together(
        self, key: PrimaryKey[E], key2: PrimaryKey[E2], key3: PrimaryKey[E3], key4: PrimaryKey[E4], /
    ) -> tuple[E | None, E2 | None, E3 | None, E4 | None]: ...
    @overload
    def get_together(
        self,
        key: PrimaryKey[E],
        key2: PrimaryKey[E2],
        key3: PrimaryKey[E3],
        key4: PrimaryKey[E4],
        key5: PrimaryKey[E5],
        /,
    ) -> tuple[E | None, E2 | None, E3 | None, E4 | None, E5 | None]: ...
    def get_together(self, *keys: Any) -> Any:
        """Return the entities under up to 100 keys as they are at one moment; None where there is none.

        Of up to five keys the answer is a tuple, each member typed as its key is; a list of keys gives a list.
        """
        if len(keys) == 1 and not isinstance(keys[0], PrimaryKey):
            return self._run(transactions.get_together(self._context, list(keys[0])))
        return tuple(self._run(transactions.get_together(self._context, keys)))

    def transaction(self, token: str | None = None) -> Transaction:
        """Begin a transaction: what is told to it is done when its `with` ends, all of it or nothing.

        `token` makes the same transaction count once within ten minutes; without one, it is given its own.
        """
        return Transaction(self._run, self._context, token)

    def put_many(self, entities: Iterable[Entity], *, progress: Telling | None = None) -> int:
        """Store entities over whatever is there, 25 to a request, and return how many; no conditions hold.

        They are taken as they come, so a generator of a million is never held. Of two with one key the later stands.
        """
        return self._run(batches.write_many(self._context, entities, (), progress))

    def delete_many(
        self, keys: Iterable[PrimaryKey[Any] | Entity], *, progress: Telling | None = None
    ) -> int:
        """Delete items, 25 to a request, and return how many keys were given; what is not there is no error."""
        return self._run(batches.write_many(self._context, (), keys, progress))

    def write_many(
        self,
        *,
        puts: Iterable[Entity] = (),
        deletes: Iterable[PrimaryKey[Any] | Entity] = (),
        progress: Telling | None = None,
    ) -> int:
        """Store entities, then delete others, as `put_many` and `delete_many` do, in the same requests."""
        return self._run(batches.write_many(self._context, puts, deletes, progress))

    def subscribe(
        self,
        table: type[Table] | str,
        *,
        from_: From = "now",
        checkpoint: str | os.PathLike[str] | Checkpoints | None = None,
        follow: bool = True,
        on_loss: OnLoss = "refuse",
        poll_s: float = 0.5,
    ) -> Subscription:
        """Return the changes of a table as its stream tells them, from now or from the start of what it keeps (a day).

        With a `checkpoint`, a file's path or an object of one's own, it goes on after what was dealt with. `follow`
        waits for more, looking every `poll_s` seconds; without, it ends at the end. Where changes were lost because
        nobody read them for a day, it raises `RecordsLost` unless `on_loss` is "go on", or a function that is told.
        A table given by its name is followed as it is: every change is a `RawChange`.
        """
        manner = Manner(from_, follow, poll_s, on_loss, kept_in(checkpoint))
        following = Following(self._context, table, manner)
        self._run(following.start())
        return Subscription(self._run, following)

    @property
    def explain(self) -> Explain:
        """The same methods, each telling what it would ask and cost instead of doing it."""
        return Explain(self._run, self._context, prices_in(self._context))

    def measured(self) -> AbstractContextManager[Spent]:
        """Give what the calls inside a `with` consume, by table and index."""
        return measure()
