"""`db.explain`: the methods of `db`, each returning its requests and their cost instead of making them.

print(db.explain.query(Ticket.ByStatus(status="open")))
db.explain.put(ticket).usd_per_million
db.explain.query(Ticket.ByCustomer(customer_id="c1").where(Ticket.priority > 3), run=True).waste

Each method is defined once, in `programs`; the classes here list them for the two ways to run a program.
"""

from __future__ import annotations

import datetime
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from tavola.client.context import Context
from tavola.client.effects import Program, Run, RunAsync, async_method, blocking_method
from tavola.client.errors import TransactionRefused
from tavola.client.explain import programs
from tavola.client.explain.dry_run import PriceSource, prices_in
from tavola.client.explain.explanation import Explanation
from tavola.client.explain.programs import ExplainContext
from tavola.client.transactions import Intents
from tavola.model import Entity


class _ExplainedIntents(Intents):
    """A transaction that is explained instead of committed; `options` are those of `Explain.transaction`."""

    def __init__(self, run_program: Any, context: ExplainContext, token: str | None, **options: Any) -> None:
        super().__init__(context.client, token)
        self._run = run_program
        self._explain_context = context
        self._options = options
        self._explanation: Explanation[None] | None = None

    @property
    def explanation(self) -> Explanation[None]:
        """Its requests and their cost, after its `with` block."""
        if self._explanation is None:
            raise TransactionRefused(
                "its explanation is available after its `with` block; read it there", self.intents
            )
        return self._explanation

    def _program(self) -> Program[Explanation[None]]:
        return programs.transaction(self._explain_context, self._close(), self._token, **self._options)


class ExplainedTransaction(_ExplainedIntents):
    """A transaction that is explained when its `with` block ends; see `Explain.transaction`."""

    def __enter__(self) -> ExplainedTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._explanation = self._run(self._program())


class AsyncExplainedTransaction(_ExplainedIntents):
    """A transaction that is explained when its `async with` block ends; see `AsyncExplain.transaction`."""

    async def __aenter__(self) -> AsyncExplainedTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._explanation = await self._run(self._program())


RunT = TypeVar("RunT", Run, RunAsync)


class _BaseExplain(Generic[RunT]):
    """What `Explain` and `AsyncExplain` share."""

    def __init__(self, run: RunT, context: Context, prices: PriceSource | None = None) -> None:
        self.run: RunT = run
        self.context = ExplainContext(context, prices or prices_in(context))

    def with_prices(self, region: str, date: datetime.date | None = None) -> Self:
        """Return the same with the prices of another region, the newest or those of a date."""
        return type(self)(self.run, self.context.client, PriceSource(region, date, chosen=True))


class Explain(_BaseExplain[Run]):
    """Returns what operations request and cost without making them; with `run=True` they are made and measured.

    `item_bytes` is the size of an item if the design declares none; `current` is the entity as it is stored now, which
    makes the estimate of a write exact.
    """

    get = blocking_method(programs.get)
    put = blocking_method(programs.put)
    create = blocking_method(programs.create)
    update = blocking_method(programs.update)
    delete = blocking_method(programs.delete)
    query = blocking_method(programs.query)
    count = blocking_method(programs.count)
    scan = blocking_method(programs.scan)
    scan_table = blocking_method(programs.scan_table)
    collect = blocking_method(programs.collect)
    get_many = blocking_method(programs.get_many)
    get_all = blocking_method(programs.get_all)
    get_together = blocking_method(programs.get_together)
    put_many = blocking_method(programs.put_many)
    delete_many = blocking_method(programs.delete_many)
    write_many = blocking_method(programs.write_many)

    def transaction(
        self,
        token: str | None = None,
        *,
        run: bool = False,
        item_bytes: int | None = None,
        current: tuple[Entity, ...] = (),
    ) -> ExplainedTransaction:
        """Explain `db.transaction`: its `explanation` is available after its `with` block, and nothing is written."""
        options = {"run": run, "item_bytes": item_bytes, "current": current}
        return ExplainedTransaction(self.run, self.context, token, **options)


class AsyncExplain(_BaseExplain[RunAsync]):
    """`Explain` for an asynchronous client."""

    get = async_method(programs.get)
    put = async_method(programs.put)
    create = async_method(programs.create)
    update = async_method(programs.update)
    delete = async_method(programs.delete)
    query = async_method(programs.query)
    count = async_method(programs.count)
    scan = async_method(programs.scan)
    scan_table = async_method(programs.scan_table)
    collect = async_method(programs.collect)
    get_many = async_method(programs.get_many)
    get_all = async_method(programs.get_all)
    get_together = async_method(programs.get_together)
    put_many = async_method(programs.put_many)
    delete_many = async_method(programs.delete_many)
    write_many = async_method(programs.write_many)

    def transaction(
        self,
        token: str | None = None,
        *,
        run: bool = False,
        item_bytes: int | None = None,
        current: tuple[Entity, ...] = (),
    ) -> AsyncExplainedTransaction:
        """Explain `db.transaction`: its `explanation` is available after its `async with` block, and nothing is written."""
        options = {"run": run, "item_bytes": item_bytes, "current": current}
        return AsyncExplainedTransaction(self.run, self.context, token, **options)
