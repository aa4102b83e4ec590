"""The observer that the studio sets on an engine, and the mark that excludes the studio's own calls.

`Monitor` passes every call to the request metrics and the heat recorder. Several threads may call the engine, so one lock
guards both; a page takes the same lock while it copies.

A page reads what it shows through the engine it monitors. Those calls would look like traffic, so the studio's connection sets
a context variable around each call and the monitor skips marked calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from tavola.client.backend import (
    AsOfUnsupported,
    AsyncAsOfBackend,
    AsyncBackend,
    AsyncConcurrentBackend,
    encode_request,
)
from tavola.client.connection import AsyncConnection
from tavola.clock import SYSTEM_CLOCK, Clock, monotonic
from tavola.engine import ItemAccess, ObserverNotifier
from tavola.errors import TavolaError
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.protocol.faults import Fault, InternalServerFault
from tavola.studio.monitoring.heat_recorder import HeatRecorder
from tavola.studio.monitoring.request_metrics import RequestMetrics
from tavola.studio.monitoring.request_shapes import is_read, qualified_arn

_own: ContextVar[bool] = ContextVar("tavola_studio_own", default=False)
_counted: ContextVar[bool] = ContextVar("tavola_studio_counted", default=False)


def is_studio_call() -> bool:
    """Return whether the current call is the studio's own."""
    return _own.get()


@contextmanager
def count_own_calls() -> Iterator[None]:
    """Count the studio's calls like a program's in this context."""
    before = _counted.set(True)
    try:
        yield
    finally:
        _counted.reset(before)


@contextmanager
def _mark_calls() -> Iterator[None]:
    before = _own.set(not _counted.get())
    try:
        yield
    finally:
        _own.reset(before)


def mark_connection(connection: AsyncConnection) -> AsyncConnection:
    """Return the same connection with calls marked as the studio's own."""
    return AsyncConnection(_mark_backend(connection.backend), connection.target, connection.context)


def _mark_backend(backend: AsyncBackend) -> MarkedBackend:
    return (
        _MarkedBatchBackend(backend)
        if isinstance(backend, AsyncConcurrentBackend)
        else MarkedBackend(backend)
    )


class MarkedBackend:
    """Passes calls to another backend, marked as the studio's own."""

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other backend's response."""
        with _mark_calls():
            return await self.backend.call(operation, request)

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as of a moment."""
        if not isinstance(self.backend, AsyncAsOfBackend):
            raise AsOfUnsupported("The endpoint")
        return _mark_backend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the other backend."""
        await self.backend.close()


class _MarkedBatchBackend(MarkedBackend):
    """The same for a backend that takes several calls at once."""

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return the other backend's response to each call."""
        assert isinstance(self.backend, AsyncConcurrentBackend), "see _mark_backend"
        with _mark_calls():
            return await self.backend.call_all(calls)


class Monitor:
    """Records the calls to an engine; pass it to `Engine.observe`."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self.lock = Lock()  # held while a call is recorded, and by readers
        self.began_s = clock.now()
        self.metrics = RequestMetrics(clock)
        self.heat = HeatRecorder(clock)
        self.own_calls = 0  # of the studio itself

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Record a call, unless it is the studio's own."""
        with self.lock:
            if is_studio_call():
                self.own_calls += 1
                return
            self.metrics.note(operation, scope, began_s, took_s, accesses, fault, body)
            self.heat.note(operation, scope, began_s, took_s, accesses, fault, body)


class AccountMonitors:
    """An observer with one monitor for each account, so that no person sees the requests of another account."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._monitors: dict[str, Monitor] = {}

    def monitor(self, account: str) -> Monitor:
        """Return the monitor of an account."""
        known = self._monitors.get(account)
        return known if known is not None else self._monitors.setdefault(account, Monitor(self._clock))

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Record a call with the monitor of the caller's account."""
        self.monitor(scope.account).note(operation, scope, began_s, took_s, accesses, fault, body)


METERED = frozenset(
    {
        *("BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "DeleteItem", "ExecuteStatement"),
        *("ExecuteTransaction", "GetItem", "PutItem", "Query", "Scan", "TransactGetItems"),
        *("TransactWriteItems", "UpdateItem"),
    }
)
"""Operations that can report consumed capacity."""
_INDEXES = ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")


def observe_connection(
    connection: AsyncConnection, monitor: Monitor, scope: Scope = DEFAULT_SCOPE
) -> AsyncConnection:
    """Return the same connection with every call recorded by a monitor."""
    return AsyncConnection(ObservedBackend(connection.backend, monitor, scope), connection.target)


class ObservedBackend:
    """Passes calls to another backend and reports each to a monitor as an engine would, but without keys."""

    def __init__(self, backend: AsyncBackend, monitor: Monitor, scope: Scope = DEFAULT_SCOPE) -> None:
        self.backend = backend
        self._clock = monitor.clock
        self._notifier = ObserverNotifier(monitor)
        self._scope = scope

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return or raise what the other backend does."""
        mode = request.get("ReturnConsumedCapacity", "NONE")
        # Invalid modes are the endpoint's to refuse
        adds_units = operation in METERED and mode in (
            "NONE",
            "TOTAL",
        )
        sent = {**request, "ReturnConsumedCapacity": "INDEXES"} if adds_units else request
        body = encode_request(operation, request)
        began_s, began = self._clock.now(), monotonic()
        try:
            response = await self.backend.call(operation, sent)
        except TavolaError as error:
            fault = error if isinstance(error, Fault) else InternalServerFault(str(error))
            self._notifier.report((operation, self._scope, began_s, began, (), fault, body))
            raise
        accesses = consumed_accesses(response, self._scope, writes=not is_read(operation, request))
        self._notifier.report((operation, self._scope, began_s, began, accesses, None, body))
        if adds_units and mode == "NONE":
            response.pop("ConsumedCapacity", None)
        elif adds_units and "ConsumedCapacity" in response:
            response["ConsumedCapacity"] = _total(response["ConsumedCapacity"])
        return response

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as of a moment; those calls are not recorded."""
        if not isinstance(self.backend, AsyncAsOfBackend):
            raise AsOfUnsupported("The endpoint")
        return await self.backend.as_of(at_us)

    async def close(self) -> None:
        """Close the other backend."""
        await self.backend.close()


def consumed_accesses(response: Mapping[str, Any], scope: Scope, *, writes: bool) -> tuple[ItemAccess, ...]:
    """Return the capacity a response reports, by table and index; `writes` says how to count undivided units."""
    consumed = response.get("ConsumedCapacity") or ()
    accesses: list[ItemAccess] = []
    for table_capacity in (consumed,) if isinstance(consumed, Mapping) else consumed:
        arn = qualified_arn(scope, table_capacity.get("TableName", ""))
        places: list[tuple[str | None, Mapping[str, Any]]] = [(None, table_capacity.get("Table") or {})]
        for member in _INDEXES:
            places += (table_capacity.get(member) or {}).items()
        for index, units in places:
            read, written = _units(units, writes=writes)
            if read or written:
                accesses.append(ItemAccess(arn, index, None, read, written))
    return tuple(accesses)


def _units(consumed: Mapping[str, Any], *, writes: bool) -> tuple[float, float]:
    if "ReadCapacityUnits" in consumed or "WriteCapacityUnits" in consumed:
        return float(consumed.get("ReadCapacityUnits", 0.0)), float(consumed.get("WriteCapacityUnits", 0.0))
    units = float(consumed.get("CapacityUnits", 0.0))
    return (0.0, units) if writes else (units, 0.0)


def _total(consumed: Any) -> Any:
    """Return consumed capacity as in TOTAL mode: without tables and indexes."""
    if not isinstance(consumed, Mapping):
        return [_total(table_capacity) for table_capacity in consumed]
    return {name: units for name, units in consumed.items() if name not in ("Table", *_INDEXES)}
