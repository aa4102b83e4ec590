"""`db.explain`: the methods of `db`, each returning its requests and their cost instead of making them.

print(db.explain.query(Ticket.ByStatus(status="open")))
db.explain.put(ticket).usd_per_million
db.explain.query(Ticket.ByCustomer(customer_id="c1").where(Ticket.priority > 3), run=True).waste
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable
from types import TracebackType
from typing import Protocol, TypeVar

from tavola.client.context import Context
from tavola.client.effects import Program
from tavola.client.errors import TransactionRefused
from tavola.client.explain import programs
from tavola.client.explain.explanation import Explanation
from tavola.client.explain.programs import ExplainContext
from tavola.client.explain.walk import Prices, prices_in
from tavola.client.intents import Intents
from tavola.client.methods import async_method, blocking_method
from tavola.model import Entity

R = TypeVar("R")


class Run(Protocol):
    """Runs a program and returns its result."""

    def __call__(self, program: Program[R], /) -> R: ...


class RunAsync(Protocol):
    """Runs a program on an event loop."""

    def __call__(self, program: Program[R], /) -> Awaitable[R]: ...


class _Explained(Intents):
    """A transaction that is explained instead of committed."""

    def __init__(
        self,
        context: ExplainContext,
        token: str | None,
        *,
        run: bool,
        item_bytes: int | None,
        current: tuple[Entity, ...],
    ) -> None:
        super().__init__(context.client, token)
        self._explain_context = context
        self._run_it = run
        self._item_bytes = item_bytes
        self._current = current
        self._explanation: Explanation[None] | None = None

    @property
    def explanation(self) -> Explanation[None]:
        """Its requests and their cost, once its block has ended."""
        if self._explanation is None:
            raise TransactionRefused(
                "it is explained when its `with` ends; look at it after that", self.intents
            )
        return self._explanation

    def _program(self) -> Program[Explanation[None]]:
        return programs.transaction(
            self._explain_context, self._closed(), self._token,
            run=self._run_it, item_bytes=self._item_bytes, current=self._current,
        )  # fmt: skip


class ExplainedTransaction(_Explained):
    """A transaction that is explained when its `with` block ends; see `Explain.transaction`."""

    def __init__(
        self,
        run_program: Run,
        context: ExplainContext,
        token: str | None,
        *,
        run: bool,
        item_bytes: int | None,
        current: tuple[Entity, ...],
    ) -> None:
        super().__init__(context, token, run=run, item_bytes=item_bytes, current=current)
        self._run = run_program

    def __enter__(self) -> ExplainedTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._explanation = self._run(self._program())


class AsyncExplainedTransaction(_Explained):
    """A transaction that is explained when its `async with` block ends; see `AsyncExplain.transaction`."""

    def __init__(
        self,
        run_program: RunAsync,
        context: ExplainContext,
        token: str | None,
        *,
        run: bool,
        item_bytes: int | None,
        current: tuple[Entity, ...],
    ) -> None:
        super().__init__(context, token, run=run, item_bytes=item_bytes, current=current)
        self._run = run_program

    async def __aenter__(self) -> AsyncExplainedTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._explanation = await self._run(self._program())


class Explain:
    """Returns what operations request and cost without making them; with `run=True` they are made and measured.

    `item_bytes` is the size of an item if the design declares none; `current` is the entity as it is stored now, which
    makes the estimate of a write exact.
    """

    def __init__(self, run: Run, context: Context, prices: Prices | None = None) -> None:
        self.run = run
        self.context = ExplainContext(context, prices or prices_in(context))

    def priced(self, region: str, date: datetime.date | None = None) -> Explain:
        """Return the same with the prices of another region, the newest or those of a date."""
        return Explain(self.run, self.context.client, Prices(region, date, chosen=True))

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
        return ExplainedTransaction(
            self.run, self.context, token, run=run, item_bytes=item_bytes, current=current
        )


class AsyncExplain:
    """The same for an asynchronous client."""

    def __init__(self, run: RunAsync, context: Context, prices: Prices | None = None) -> None:
        self.run = run
        self.context = ExplainContext(context, prices or prices_in(context))

    def priced(self, region: str, date: datetime.date | None = None) -> AsyncExplain:
        """Return the same with the prices of another region, the newest or those of a date."""
        return AsyncExplain(self.run, self.context.client, Prices(region, date, chosen=True))

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
        return AsyncExplainedTransaction(
            self.run, self.context, token, run=run, item_bytes=item_bytes, current=current
        )
