"""AsyncExplain: `db.explain` of an asynchronous client, over the same subjects."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Iterable
from types import TracebackType
from typing import Any, Protocol, TypeVar, overload

from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.errors import TransactionRefused
from tavola.client.explain import subjects
from tavola.client.explain.explanation import Explanation
from tavola.client.explain.shells import given
from tavola.client.explain.subjects import Wish
from tavola.client.explain.walk import Prices
from tavola.client.intents import Intents
from tavola.client.reading import Paging
from tavola.model import Change, Collection, Condition, Entity, PrimaryKey, Selection, Table

E = TypeVar("E", bound=Entity)
C = TypeVar("C", bound=Collection)
R = TypeVar("R")


class RunningAsync(Protocol):
    """Does steps on a loop."""

    def __call__(self, steps: Program[R], /) -> Awaitable[R]: ...


class AsyncExplainedTransaction(Intents):
    """A transaction that is explained when its `async with` ends, instead of being done; see `AsyncExplain.transaction`."""

    def __init__(self, run: RunningAsync, context: Context, wish: Wish, token: str | None) -> None:
        super().__init__(context, token)
        self._run = run
        self._wish = wish
        self._explanation: Explanation[None] | None = None

    @property
    def explanation(self) -> Explanation[None]:
        """What it asks and costs; there once its `async with` has ended."""
        if self._explanation is None:
            raise TransactionRefused(
                "it is explained when its `async with` ends; look at it after that", self.intents
            )
        return self._explanation

    async def __aenter__(self) -> AsyncExplainedTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            steps = subjects.transaction(self._context, self._wish, self._closed(), self._token)
            self._explanation = await self._run(steps)


class AsyncExplain:
    """The same for a loop: the methods of `Explain`, awaited."""

    def __init__(self, run: RunningAsync, context: Context, prices: Prices) -> None:
        self._run = run
        self._context = context
        self._prices = prices

    def priced(self, region: str, date: datetime.date | None = None) -> AsyncExplain:
        """Return the same with the prices of a region, the newest or those at a date."""
        return AsyncExplain(self._run, self._context, Prices(region, date, chosen=True))

    async def get(
        self,
        key: PrimaryKey[E],
        *,
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[E | None]:
        """Explain `db.get`."""
        wish = Wish(self._prices, run, item_bytes)
        return await self._run(subjects.get(self._context, wish, key, consistent))

    async def put(
        self, entity: E, *, when: Condition[E] | None = None, run: bool = False, standing: E | None = None
    ) -> Explanation[E]:
        """Explain `db.put`; over `standing` if it is given, else as of a new item."""
        wish = Wish(self._prices, run, standing=given(standing))
        return await self._run(subjects.put(self._context, wish, entity, when))

    async def create(self, entity: E, *, run: bool = False) -> Explanation[E]:
        """Explain `db.create`."""
        return await self._run(subjects.put(self._context, Wish(self._prices, run), entity, None, new=True))

    async def update(
        self,
        target: PrimaryKey[E] | E,
        *changes: Change[E],
        when: Condition[E] | None = None,
        create: bool = False,
        run: bool = False,
        item_bytes: int | None = None,
        standing: E | None = None,
    ) -> Explanation[E]:
        """Explain `db.update`; one that must read before it writes does read, and shows both."""
        wish = Wish(self._prices, run, item_bytes, given(standing))
        return await self._run(subjects.update(self._context, wish, target, changes, when, create))

    async def delete(
        self,
        target: PrimaryKey[E] | E,
        *,
        when: Condition[E] | None = None,
        run: bool = False,
        item_bytes: int | None = None,
        standing: E | None = None,
    ) -> Explanation[E | None]:
        """Explain `db.delete`; of an entity, by that entity's size."""
        wish = Wish(self._prices, run, item_bytes, given(standing))
        return await self._run(subjects.delete(self._context, wish, target, when))

    async def query(
        self,
        selection: Selection[E],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        newest_first: bool = False,
        consistent: bool | None = None,
        page_size: int | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[list[E]]:
        """Explain `db.query`; run without a limit, the whole answer is read."""
        wish = Wish(self._prices, run, item_bytes)
        paging = Paging(limit, page_size, cursor, newest_first)
        return await self._run(subjects.query(self._context, wish, selection, paging, consistent))

    async def count(
        self,
        selection: Selection[Any],
        *,
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[int]:
        """Explain `db.count`."""
        wish = Wish(self._prices, run, item_bytes)
        return await self._run(subjects.count(self._context, wish, selection, consistent))

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
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[list[E]]:
        """Explain `db.scan`; run without a limit, the whole table is read."""
        wish = Wish(self._prices, run, item_bytes)
        paging = Paging(limit, page_size, cursor)
        return await self._run(subjects.scan(self._context, wish, what, where, paging, segments, consistent))

    async def scan_table(
        self,
        table: type[Table],
        *,
        limit: int | None = None,
        cursor: str | None = None,
        page_size: int | None = None,
        segments: int = 1,
        consistent: bool = False,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[list[Entity]]:
        """Explain `db.scan_table`; run without a limit, the whole table is read."""
        wish = Wish(self._prices, run, item_bytes)
        paging = Paging(limit, page_size, cursor)
        return await self._run(subjects.scan(self._context, wish, table, None, paging, segments, consistent))

    async def collect(
        self,
        collection: C,
        *,
        consistent: bool | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[C]:
        """Explain `db.collect`."""
        wish = Wish(self._prices, run, item_bytes)
        steps = subjects.collect(self._context, wish, collection, consistent, newest_first, limit)
        return await self._run(steps)

    async def get_many(
        self,
        keys: Iterable[PrimaryKey[E]],
        *,
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[list[E | None]]:
        """Explain `db.get_many`."""
        wish = Wish(self._prices, run, item_bytes)
        return await self._run(subjects.get_many(self._context, wish, keys, consistent))

    async def get_all(
        self,
        *keys: PrimaryKey[Any],
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[tuple[Any, ...]]:
        """Explain `db.get_all`."""
        wish = Wish(self._prices, run, item_bytes)
        return await self._run(subjects.get_all(self._context, wish, keys, consistent))

    async def put_many(self, entities: Iterable[Entity], *, run: bool = False) -> Explanation[int]:
        """Explain `db.put_many`, as of new items."""
        return await self._run(subjects.write_many(self._context, Wish(self._prices, run), entities, ()))

    async def delete_many(
        self, keys: Iterable[PrimaryKey[Any] | Entity], *, run: bool = False, item_bytes: int | None = None
    ) -> Explanation[int]:
        """Explain `db.delete_many`; of entities, by their size."""
        return await self._run(
            subjects.write_many(self._context, Wish(self._prices, run, item_bytes), (), keys)
        )

    async def write_many(
        self,
        *,
        puts: Iterable[Entity] = (),
        deletes: Iterable[PrimaryKey[Any] | Entity] = (),
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[int]:
        """Explain `db.write_many`: puts as of new items, deletes of entities by their size."""
        wish = Wish(self._prices, run, item_bytes)
        return await self._run(subjects.write_many(self._context, wish, puts, deletes))

    @overload
    async def get_together(
        self, keys: Iterable[PrimaryKey[E]], /, *, run: bool = False, item_bytes: int | None = None
    ) -> Explanation[list[E | None]]: ...
    @overload
    async def get_together(
        self, *keys: PrimaryKey[Any], run: bool = False, item_bytes: int | None = None
    ) -> Explanation[list[Any]]: ...
    async def get_together(self, *keys: Any, run: bool = False, item_bytes: int | None = None) -> Any:
        """Explain `db.get_together`."""
        wanted = keys if all(isinstance(key, PrimaryKey) for key in keys) else list(keys[0])
        wish = Wish(self._prices, run, item_bytes)
        return await self._run(subjects.get_together(self._context, wish, wanted))

    def transaction(
        self,
        token: str | None = None,
        *,
        run: bool = False,
        item_bytes: int | None = None,
        standing: tuple[Entity, ...] = (),
    ) -> AsyncExplainedTransaction:
        """Explain `db.transaction`: when its `with` ends, its `explanation` is there, and nothing is done."""
        wish = Wish(self._prices, run, item_bytes, standing)
        return AsyncExplainedTransaction(self._run, self._context, wish, token)
