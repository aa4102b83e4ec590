"""Explain: `db.explain`, with the methods of `db`, each telling what it would do.

print(db.explain.query(Ticket.ByStatus(status="open")))
db.explain.put(ticket).usd_per_million
db.explain.query(Ticket.ByCustomer(customer_id="c1").where(Ticket.priority > 3), run=True).waste
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Protocol, TypeVar, overload

from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.errors import TransactionRefused
from tavola.client.explain import subjects
from tavola.client.explain.explanation import Explanation
from tavola.client.explain.subjects import Wish
from tavola.client.explain.walk import Prices
from tavola.client.intents import Intents
from tavola.client.reading import Paging
from tavola.model import Change, Collection, Condition, Entity, PrimaryKey, Selection, Table

E = TypeVar("E", bound=Entity)
C = TypeVar("C", bound=Collection)
R = TypeVar("R")


class Running(Protocol):
    """Does steps."""

    def __call__(self, steps: Program[R], /) -> R: ...


class ExplainedTransaction(Intents):
    """A transaction that is explained when its `with` ends, instead of being done; see `Explain.transaction`."""

    def __init__(self, run: Running, context: Context, wish: Wish, token: str | None) -> None:
        super().__init__(context, token)
        self._run = run
        self._wish = wish
        self._explanation: Explanation[None] | None = None

    @property
    def explanation(self) -> Explanation[None]:
        """What it asks and costs; there once its `with` has ended."""
        if self._explanation is None:
            raise TransactionRefused(
                "it is explained when its `with` ends; look at it after that", self.intents
            )
        return self._explanation

    def __enter__(self) -> ExplainedTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            steps = subjects.transaction(self._context, self._wish, self._closed(), self._token)
            self._explanation = self._run(steps)


class Explain:
    """What operations ask and cost, told without doing them; with `run=True` they are done and measured.

    `item_bytes` is the size of an item where the design declares none; `standing` is the entity as it stands,
    which makes the estimate of a write over it exact.
    """

    def __init__(self, run: Running, context: Context, prices: Prices) -> None:
        self._run = run
        self._context = context
        self._prices = prices

    def priced(self, region: str, date: datetime.date | None = None) -> Explain:
        """Return the same with the prices of a region, the newest or those at a date."""
        return Explain(self._run, self._context, Prices(region, date, chosen=True))

    def get(
        self,
        key: PrimaryKey[E],
        *,
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[E | None]:
        """Explain `db.get`."""
        wish = Wish(self._prices, run, item_bytes)
        return self._run(subjects.get(self._context, wish, key, consistent))

    def put(
        self, entity: E, *, when: Condition[E] | None = None, run: bool = False, standing: E | None = None
    ) -> Explanation[E]:
        """Explain `db.put`; over `standing` if it is given, else as of a new item."""
        wish = Wish(self._prices, run, standing=given(standing))
        return self._run(subjects.put(self._context, wish, entity, when))

    def create(self, entity: E, *, run: bool = False) -> Explanation[E]:
        """Explain `db.create`."""
        return self._run(subjects.put(self._context, Wish(self._prices, run), entity, None, new=True))

    def update(
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
        return self._run(subjects.update(self._context, wish, target, changes, when, create))

    def delete(
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
        return self._run(subjects.delete(self._context, wish, target, when))

    def query(
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
        return self._run(subjects.query(self._context, wish, selection, paging, consistent))

    def count(
        self,
        selection: Selection[Any],
        *,
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[int]:
        """Explain `db.count`."""
        wish = Wish(self._prices, run, item_bytes)
        return self._run(subjects.count(self._context, wish, selection, consistent))

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
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[list[E]]:
        """Explain `db.scan`; run without a limit, the whole table is read."""
        wish = Wish(self._prices, run, item_bytes)
        paging = Paging(limit, page_size, cursor)
        return self._run(subjects.scan(self._context, wish, what, where, paging, segments, consistent))

    def scan_table(
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
        return self._run(subjects.scan(self._context, wish, table, None, paging, segments, consistent))

    def collect(
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
        return self._run(steps)

    def get_many(
        self,
        keys: Iterable[PrimaryKey[E]],
        *,
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[list[E | None]]:
        """Explain `db.get_many`."""
        wish = Wish(self._prices, run, item_bytes)
        return self._run(subjects.get_many(self._context, wish, keys, consistent))

    def get_all(
        self,
        *keys: PrimaryKey[Any],
        consistent: bool | None = None,
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[tuple[Any, ...]]:
        """Explain `db.get_all`."""
        wish = Wish(self._prices, run, item_bytes)
        return self._run(subjects.get_all(self._context, wish, keys, consistent))

    def put_many(self, entities: Iterable[Entity], *, run: bool = False) -> Explanation[int]:
        """Explain `db.put_many`, as of new items."""
        return self._run(subjects.write_many(self._context, Wish(self._prices, run), entities, ()))

    def delete_many(
        self, keys: Iterable[PrimaryKey[Any] | Entity], *, run: bool = False, item_bytes: int | None = None
    ) -> Explanation[int]:
        """Explain `db.delete_many`; of entities, by their size."""
        return self._run(subjects.write_many(self._context, Wish(self._prices, run, item_bytes), (), keys))

    def write_many(
        self,
        *,
        puts: Iterable[Entity] = (),
        deletes: Iterable[PrimaryKey[Any] | Entity] = (),
        run: bool = False,
        item_bytes: int | None = None,
    ) -> Explanation[int]:
        """Explain `db.write_many`: puts as of new items, deletes of entities by their size."""
        wish = Wish(self._prices, run, item_bytes)
        return self._run(subjects.write_many(self._context, wish, puts, deletes))

    @overload
    def get_together(
        self, keys: Iterable[PrimaryKey[E]], /, *, run: bool = False, item_bytes: int | None = None
    ) -> Explanation[list[E | None]]: ...
    @overload
    def get_together(
        self, *keys: PrimaryKey[Any], run: bool = False, item_bytes: int | None = None
    ) -> Explanation[list[Any]]: ...
    def get_together(self, *keys: Any, run: bool = False, item_bytes: int | None = None) -> Any:
        """Explain `db.get_together`."""
        wanted = keys if all(isinstance(key, PrimaryKey) for key in keys) else list(keys[0])
        wish = Wish(self._prices, run, item_bytes)
        return self._run(subjects.get_together(self._context, wish, wanted))

    def transaction(
        self,
        token: str | None = None,
        *,
        run: bool = False,
        item_bytes: int | None = None,
        standing: tuple[Entity, ...] = (),
    ) -> ExplainedTransaction:
        """Explain `db.transaction`: when its `with` ends, its `explanation` is there, and nothing is done."""
        wish = Wish(self._prices, run, item_bytes, standing)
        return ExplainedTransaction(self._run, self._context, wish, token)


def given(standing: Entity | None) -> tuple[Entity, ...]:
    """Return what was given as standing, or nothing."""
    return () if standing is None else (standing,)
