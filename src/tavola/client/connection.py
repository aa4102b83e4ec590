"""`Connection` and `AsyncConnection`: store and read entities through one backend.

The operations are programs in `items`, `reading`, `batches`, `transactions` and `maintenance`; the classes here turn them
into methods and run them with a driver on the backend. Pages, transactions and subscriptions are iterated or entered, so they
are classes of their own per kind. `tavola.connect` chooses the backend.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

from tavola.client import batches, items, maintenance, reading, transactions
from tavola.client.backend import AsOfBackend, AsOfUnsupported, AsyncAsOfBackend, AsyncBackend, Backend
from tavola.client.consumption import ConsumedCapacity, measure_units
from tavola.client.context import Context
from tavola.client.effects import (
    AsyncDriver,
    Driver,
    Program,
    Run,
    RunAsync,
    async_method,
    blocking_method,
    describe_method,
    run_program,
    run_program_async,
)
from tavola.client.pages import NO_TRUTH_VALUE, FetchedPage
from tavola.client.transactions import Intents
from tavola.clock import pause
from tavola.errors import TavolaError
from tavola.model import Table
from tavola.protocol.instants import instant_of, instant_text

if TYPE_CHECKING:  # loaded when `explain` or `subscribe` is first used
    from tavola.client.checkpoints import CheckpointStore
    from tavola.client.explain.explain import AsyncExplain, Explain
    from tavola.client.subscriptions import AsyncSubscription, ChangeFeed, From, OnLoss, Subscription

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _BasePage(Generic[T]):
    """What `Page` and `AsyncPage` share."""

    def __init__(self, fetched: FetchedPage[T], next_page: Callable[[str], Any] | None) -> None:
        self.items = fetched.items
        self.cursor = fetched.cursor  # where the next page starts; None: this is the last
        self.scanned = fetched.scanned  # items that were read and paid for
        self.requests = fetched.requests
        self._next_page = next_page  # None: only this page was requested

    def __bool__(self) -> NoReturn:
        raise TypeError(NO_TRUTH_VALUE)

    def __repr__(self) -> str:
        position = "the last page" if self.cursor is None else "more pages follow"
        return f"<{type(self).__name__} of {len(self.items)}, {position}>"


class Page(_BasePage[T]):
    """Some results in `items`; iterating continues with the following pages, unless a limit was given.

    A page has no length and no truth value, because more results may follow: `count()` counts.
    """

    def __iter__(self) -> Iterator[T]:
        page = self
        while True:
            yield from page.items
            if page.cursor is None or page._next_page is None:
                return
            page = page._next_page(page.cursor)


class AsyncPage(_BasePage[T]):
    """Some results in `items`; `async for` continues with the following pages, unless a limit was given."""

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
            raise TypeError("use `async for`, because more pages may follow, or use page.items")


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
    """Writes that are made together when the `with` block ends, or not at all; see `Connection.transaction`."""

    def __init__(self, run: Run, context: Context, token: str | None) -> None:
        super().__init__(context, token)
        self._run = run

    def commit(self) -> None:
        """Make the writes now instead of at the end of the `with` block; raise `TransactionCancelled` on failure."""
        self._run(transactions.commit(self._context, self._close(), self._token))

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._is_closed:
            self.commit()


class AsyncTransaction(Intents):
    """Writes that are made together when the `async with` block ends, or not at all."""

    def __init__(self, run: RunAsync, context: Context, token: str | None) -> None:
        super().__init__(context, token)
        self._run = run

    async def commit(self) -> None:
        """Make the writes now instead of at the end of the `async with` block; raise `TransactionCancelled` on failure."""
        await self._run(transactions.commit(self._context, self._close(), self._token))

    async def __aenter__(self) -> AsyncTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._is_closed:
            await self.commit()


def _subscribe(
    context: Context,
    table: type[Table] | str,
    *,
    from_: From = "now",
    checkpoint: str | os.PathLike[str] | CheckpointStore | None = None,
    follow: bool = True,
    on_loss: OnLoss = "raise",
    poll_s: float = 0.5,
) -> Program[ChangeFeed]:
    """Return the changes of a table from its stream, from now on or from the oldest record (up to a day old).

    With a `checkpoint`, a file's path or an object of your own, reading continues after the last processed record.
    `follow` waits for more and polls every `poll_s` seconds; without it, iteration stops at the end. If records expired
    before they were read, `RecordsLost` is raised, unless `on_loss` is "continue" or a function that is called with the loss.
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


class ConnectionClosed(TavolaError):
    """The connection was used after it was closed."""

    def __init__(self, target: str) -> None:
        self.target = target
        super().__init__(f"The connection to {target} is closed; connect again")


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """An item as it was from one time until the next version."""

    since: datetime | None  # None: from before the start of the recorded history
    item: dict[str, Any] | None  # None: the item did not exist
    expired: bool = False  # it was deleted by time to live


def _parse_versions(response: Mapping[str, Any]) -> Iterator[ItemVersion]:
    for version in response["Versions"]:
        since = version.get("Since")
        yield ItemVersion(
            None if since is None else _EPOCH + timedelta(microseconds=round(since * 1_000_000)),
            version.get("Item"),
            version.get("Expired", False),
        )


class _BaseConnection:
    """What `Connection` and `AsyncConnection` share."""

    context: Context  # table names, clock, entropy and retry policy that all operations share
    target: str
    _closed: bool = False

    def measure(self) -> AbstractContextManager[ConsumedCapacity]:
        """Return a context manager that adds up the capacity consumed by the calls inside, by table and index."""
        return measure_units()

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionClosed(self.target)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.target}{', closed' if self._closed else ''}>"


class Connection(_BaseConnection):
    """A connection to DynamoDB: stores and reads entities; closing it closes the backend. Each call blocks until it is done."""

    def __init__(self, backend: Backend, target: str = "a backend", context: Context | None = None) -> None:
        self.backend = backend
        self.target = target
        self.context = context or Context()
        self._perform = Driver(backend, self.context.retry_policy, pause).perform

    def run(self, program: Program[R]) -> R:
        """Run a client program and return its result; for code built on the client."""
        self._check_open()
        return run_program(program, self._perform)

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

    def call(self, operation: str, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send an operation and return its response, both in DynamoDB JSON; raise the `Fault` that AWS would return.

        In the request, a B value may be `bytes`; in the response it is base64 text.
        """
        self._check_open()
        return self.backend.call(operation, {} if request is None else request)

    def as_of(self, moment: datetime | float | str) -> Connection:
        """Return a read-only connection to the same tables as they were at a time.

        `moment` is an aware `datetime`, epoch seconds or ISO 8601 text (UTC unless it has an offset), within the table's
        point-in-time recovery window. Closing the new connection leaves this one open.
        """
        self._check_open()
        if not isinstance(self.backend, AsOfBackend):
            raise AsOfUnsupported(self.target)
        at_us = instant_of(moment)
        return Connection(
            self.backend.as_of(at_us), f"{self.target} as of {instant_text(at_us)}", self.context
        )

    def history(self, table: str, key: Mapping[str, Any]) -> Iterator[ItemVersion]:
        """Return an iterator over the versions of an item that the table has recorded, oldest first, up to the current one.

        The key is DynamoDB JSON.
        """
        self._check_open()
        return self._versions({"TableName": table, "Key": key})

    def _versions(self, request: dict[str, Any]) -> Iterator[ItemVersion]:
        while True:
            response = self.backend.call("ListItemVersions", request)
            yield from _parse_versions(response)
            if "NextToken" not in response:
                return
            request["NextToken"] = response["NextToken"]

    def close(self) -> None:
        """Close the backend; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self.backend.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncConnection(_BaseConnection):
    """A connection to DynamoDB for programs on an event loop: the methods are those of `Connection`, awaited."""

    def __init__(
        self, backend: AsyncBackend, target: str = "a backend", context: Context | None = None
    ) -> None:
        self.backend = backend
        self.target = target
        self.context = context or Context()
        self._perform = AsyncDriver(backend, self.context.retry_policy).perform

    async def run(self, program: Program[R]) -> R:
        """Run a client program and return its result; for code built on the client."""
        self._check_open()
        return await run_program_async(program, self._perform)

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

    async def call(self, operation: str, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send an operation and return its response, both in DynamoDB JSON; raise the `Fault` that AWS would return."""
        self._check_open()
        return await self.backend.call(operation, {} if request is None else request)

    async def as_of(self, moment: datetime | float | str) -> AsyncConnection:
        """Return a read-only connection to the tables as they were at a time, as `Connection.as_of` does."""
        self._check_open()
        if not isinstance(self.backend, AsyncAsOfBackend):
            raise AsOfUnsupported(self.target)
        at_us = instant_of(moment)
        return AsyncConnection(
            await self.backend.as_of(at_us), f"{self.target} as of {instant_text(at_us)}", self.context
        )

    def history(self, table: str, key: Mapping[str, Any]) -> AsyncIterator[ItemVersion]:
        """Return an iterator over the versions of an item, as `Connection.history` does."""
        self._check_open()
        return self._versions({"TableName": table, "Key": key})

    async def _versions(self, request: dict[str, Any]) -> AsyncIterator[ItemVersion]:
        while True:
            response = await self.backend.call("ListItemVersions", request)
            for version in _parse_versions(response):
                yield version
            if "NextToken" not in response:
                return
            request["NextToken"] = response["NextToken"]

    async def close(self) -> None:
        """Close the backend; a second call does nothing."""
        if not self._closed:
            self._closed = True
            await self.backend.close()

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
