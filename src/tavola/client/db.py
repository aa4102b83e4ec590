"""`Db` and `AsyncDb`: store and read entities through a backend.

The operations are programs in `items`, `reading`, `batches`, `transactions` and `maintenance`; the classes here turn them
into methods. Pages, transactions and subscriptions are iterated or entered, so they are classes of their own per kind.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

from tavola.client import batches, items, maintenance, reading, transactions
from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.intents import Intents
from tavola.client.metering import Spent, measure
from tavola.client.methods import async_method, blocking_method, describe_method
from tavola.client.pages import NEITHER, FetchedPage
from tavola.model import Table

if TYPE_CHECKING:  # loaded when `explain` or `subscribe` is first used
    from tavola.client.checkpoints import CheckpointStore
    from tavola.client.explain.explain import AsyncExplain, Explain
    from tavola.client.subscriptions import AsyncSubscription, ChangeFeed, From, OnLoss, Subscription

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Page(Generic[T]):
    """Some results in `items`; iterating continues with the following pages, unless a limit was given.

    A page has no length and no truth value, because more results may follow: `count()` counts.
    """

    def __init__(self, fetched: FetchedPage[T], next_page: Callable[[str], Page[T]] | None) -> None:
        self.items = fetched.items
        self.cursor = fetched.cursor  # where the next page starts; None: this is the last
        self.scanned = fetched.scanned  # items that were read and paid for
        self.requests = fetched.requests
        self._next_page = next_page  # None: only this page was requested

    def __iter__(self) -> Iterator[T]:
        page = self
        while True:
            yield from page.items
            if page.cursor is None or page._next_page is None:
                return
            page = page._next_page(page.cursor)

    def __bool__(self) -> NoReturn:
        raise TypeError(NEITHER)

    def __repr__(self) -> str:
        return f"<Page of {len(self.items)}, {'the last' if self.cursor is None else 'more to come'}>"


class AsyncPage(Generic[T]):
    """Some results in `items`; `async for` continues with the following pages, unless a limit was given."""

    def __init__(
        self, fetched: FetchedPage[T], next_page: Callable[[str], Awaitable[AsyncPage[T]]] | None
    ) -> None:
        self.items = fetched.items
        self.cursor = fetched.cursor
        self.scanned = fetched.scanned
        self.requests = fetched.requests
        self._next_page = next_page

    async def __aiter__(self) -> AsyncIterator[T]:
        page = self
        while True:
            for item in page.items:
                yield item
            if page.cursor is None or page._next_page is None:
                return
            page = await page._next_page(page.cursor)

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(
                "more pages may follow, which are waited for: write `async for`, or take page.items"
            )

    def __bool__(self) -> NoReturn:
        raise TypeError(NEITHER)

    def __repr__(self) -> str:
        return f"<AsyncPage of {len(self.items)}, {'the last' if self.cursor is None else 'more to come'}>"


def _blocking_pages(
    program: Callable[Concatenate[Context, P], Program[FetchedPage[T]]],
) -> Callable[Concatenate[Any, P], Page[T]]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        def next_page(cursor: str) -> Any:
            return method(self, *args, **{**kwargs, "cursor": cursor})

        fetched = self.run(program(self.context, *args, **kwargs))
        return Page(fetched, next_page if kwargs.get("limit") is None else None)

    return describe_method(method, program, lambda text: text.replace("FetchedPage", "Page"))  # type: ignore[no-any-return]


def _async_pages(
    program: Callable[Concatenate[Context, P], Program[FetchedPage[T]]],
) -> Callable[Concatenate[Any, P], Awaitable[AsyncPage[T]]]:
    async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        async def next_page(cursor: str) -> Any:
            return await method(self, *args, **{**kwargs, "cursor": cursor})

        fetched = await self.run(program(self.context, *args, **kwargs))
        return AsyncPage(fetched, next_page if kwargs.get("limit") is None else None)

    return describe_method(method, program, lambda text: text.replace("FetchedPage", "AsyncPage"))  # type: ignore[no-any-return]


class Transaction(Intents):
    """Writes that are made together when the `with` block ends, or not at all; see `Db.transaction`."""

    def __init__(self, run: Callable[[Program[None]], None], context: Context, token: str | None) -> None:
        super().__init__(context, token)
        self._run = run

    def commit(self) -> None:
        """Make the writes now instead of at the end of the `with` block; raise `TransactionCancelled` on failure."""
        self._run(transactions.commit(self._context, self._closed(), self._token))

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._over:
            self.commit()


class AsyncTransaction(Intents):
    """Writes that are made together when the `async with` block ends, or not at all."""

    def __init__(
        self, run: Callable[[Program[None]], Awaitable[None]], context: Context, token: str | None
    ) -> None:
        super().__init__(context, token)
        self._run = run

    async def commit(self) -> None:
        """Make the writes now instead of at the end of the `async with` block; raise `TransactionCancelled` on failure."""
        await self._run(transactions.commit(self._context, self._closed(), self._token))

    async def __aenter__(self) -> AsyncTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._over:
            await self.commit()


def _subscribe(
    context: Context,
    table: type[Table] | str,
    *,
    from_: From = "now",
    checkpoint: str | os.PathLike[str] | CheckpointStore | None = None,
    follow: bool = True,
    on_loss: OnLoss = "refuse",
    poll_s: float = 0.5,
) -> Program[ChangeFeed]:
    """Return the changes of a table from its stream, from now on or from the oldest record (up to a day old).

    With a `checkpoint`, a file's path or an object of your own, reading continues after the last processed record.
    `follow` waits for more and polls every `poll_s` seconds; without it, iteration stops at the end. If records expired
    before they were read, `RecordsLost` is raised, unless `on_loss` is "go on" or a function that is called with the loss.
    For a table given by name, every change is a `RawChange`.
    """
    from tavola.client.checkpoints import open_checkpoints  # noqa: PLC0415 - see above
    from tavola.client.subscriptions import ChangeFeed, SubscriptionOptions  # noqa: PLC0415

    feed = ChangeFeed(
        context, table, SubscriptionOptions(from_, follow, poll_s, on_loss, open_checkpoints(checkpoint))
    )
    yield from feed.start()
    return feed


def _blocking_subscribe(
    program: Callable[Concatenate[Context, P], Program[ChangeFeed]],
) -> Callable[Concatenate[Any, P], Subscription]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        from tavola.client.subscriptions import Subscription  # noqa: PLC0415 - see above

        return Subscription(self.run, self.run(program(self.context, *args, **kwargs)))

    return describe_method(method, program, lambda _: "Subscription")  # type: ignore[no-any-return]


def _async_subscribe(
    program: Callable[Concatenate[Context, P], Program[ChangeFeed]],
) -> Callable[Concatenate[Any, P], Awaitable[AsyncSubscription]]:
    async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        from tavola.client.subscriptions import AsyncSubscription  # noqa: PLC0415 - see above

        return AsyncSubscription(self.run, await self.run(program(self.context, *args, **kwargs)))

    return describe_method(method, program, lambda _: "AsyncSubscription")  # type: ignore[no-any-return]


class Db:
    """Stores and reads entities through a backend; each call blocks until it is done."""

    context: Context  # table names, clock, entropy and retry policy that all operations share

    def run(self, program: Program[R]) -> R:
        """Return the result of a client program, for code built on the client."""
        raise NotImplementedError

    get = blocking_method(items.get)
    put = blocking_method(items.put)
    create = blocking_method(items.create)
    update = blocking_method(items.update)
    delete = blocking_method(items.delete)

    query = _blocking_pages(reading.query)
    scan = _blocking_pages(reading.scan)
    scan_table = _blocking_pages(reading.scan_table)
    count = blocking_method(reading.count)
    collect = blocking_method(reading.collect)

    get_many = blocking_method(batches.get_many)
    get_all = blocking_method(batches.get_all)
    get_together = blocking_method(transactions.get_together)
    put_many = blocking_method(batches.put_many)
    delete_many = blocking_method(batches.delete_many)
    write_many = blocking_method(batches.write_many)

    create_tables = blocking_method(maintenance.create_tables)
    delete_tables = blocking_method(maintenance.delete_tables)
    table_changes = blocking_method(maintenance.table_changes)
    apply_changes = blocking_method(maintenance.apply_changes)
    verify_keys = blocking_method(maintenance.verify_keys)
    plan_migration = blocking_method(maintenance.plan_migration)
    backfill = blocking_method(maintenance.backfill)

    subscribe = _blocking_subscribe(_subscribe)

    def transaction(self, token: str | None = None) -> Transaction:
        """Begin a transaction: its writes are made when its `with` block ends, all of them or none.

        DynamoDB makes transactions with the same `token` once within ten minutes; without one, a new token is used.
        """
        return Transaction(self.run, self.context, token)

    @property
    def explain(self) -> Explain:
        """The same methods, each returning the requests it would make and their cost instead of making them."""
        from tavola.client.explain.explain import Explain  # noqa: PLC0415 - see above

        return Explain(self.run, self.context)

    def measured(self) -> AbstractContextManager[Spent]:
        """Return a context manager that adds up the capacity consumed by the calls inside, by table and index."""
        return measure()


class AsyncDb:
    """Stores and reads entities through a backend on an event loop; the methods are those of `Db`, awaited."""

    context: Context  # table names, clock, entropy and retry policy that all operations share

    async def run(self, program: Program[R]) -> R:
        """Return the result of a client program, for code built on the client."""
        raise NotImplementedError

    get = async_method(items.get)
    put = async_method(items.put)
    create = async_method(items.create)
    update = async_method(items.update)
    delete = async_method(items.delete)

    query = _async_pages(reading.query)
    scan = _async_pages(reading.scan)
    scan_table = _async_pages(reading.scan_table)
    count = async_method(reading.count)
    collect = async_method(reading.collect)

    get_many = async_method(batches.get_many)
    get_all = async_method(batches.get_all)
    get_together = async_method(transactions.get_together)
    put_many = async_method(batches.put_many)
    delete_many = async_method(batches.delete_many)
    write_many = async_method(batches.write_many)

    create_tables = async_method(maintenance.create_tables)
    delete_tables = async_method(maintenance.delete_tables)
    table_changes = async_method(maintenance.table_changes)
    apply_changes = async_method(maintenance.apply_changes)
    verify_keys = async_method(maintenance.verify_keys)
    plan_migration = async_method(maintenance.plan_migration)
    backfill = async_method(maintenance.backfill)

    subscribe = _async_subscribe(_subscribe)

    def transaction(self, token: str | None = None) -> AsyncTransaction:
        """Begin a transaction: its writes are made when its `async with` block ends, all of them or none.

        DynamoDB makes transactions with the same `token` once within ten minutes; without one, a new token is used.
        """
        return AsyncTransaction(self.run, self.context, token)

    @property
    def explain(self) -> AsyncExplain:
        """The same methods, each returning the requests it would make and their cost instead of making them."""
        from tavola.client.explain.explain import AsyncExplain  # noqa: PLC0415 - see above

        return AsyncExplain(self.run, self.context)

    def measured(self) -> AbstractContextManager[Spent]:
        """Return a context manager that adds up the capacity consumed by the calls inside, by table and index."""
        return measure()
