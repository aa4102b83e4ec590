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

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncBackend, AsyncGathering, AsyncRemembering, encode_request
from tavola.clock import SYSTEM_CLOCK, Clock, monotonic
from tavola.engine import ItemAccess, ObserverNotifier
from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope, table_arn
from tavola.protocol.faults import Fault, InternalServerFault
from tavola.studio.monitoring.heat_recorder import HeatRecorder
from tavola.studio.monitoring.request_metrics import RequestMetrics
from tavola.studio.monitoring.request_shapes import is_read

_own: ContextVar[bool] = ContextVar("tavola_studio_own", default=False)
_counted: ContextVar[bool] = ContextVar("tavola_studio_counted", default=False)


def is_studio_call() -> bool:
    """Whether the call that is made here and now is the studio's."""
    return _own.get()


@contextmanager
def count_own_calls() -> Iterator[None]:
    """Have the studio's calls counted as a program's: they are made to be seen."""
    before = _counted.set(True)
    try:
        yield
    finally:
        _counted.reset(before)


@contextmanager
def _marked() -> Iterator[None]:
    before = _own.set(not _counted.get())
    try:
        yield
    finally:
        _own.reset(before)


def mark_connection(connection: AsyncConnection) -> AsyncConnection:
    """Return the same connection, whose calls are marked as the studio's."""
    context = connection.context
    return AsyncConnection(_mark_backend(connection.backend), connection.target, context)


def _mark_backend(backend: AsyncBackend) -> MarkedBackend:
    return _MarkedBatchBackend(backend) if isinstance(backend, AsyncGathering) else MarkedBackend(backend)


class MarkedBackend:
    """Passes calls on under the mark."""

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers."""
        with _marked():
            return await self.backend.call(operation, request)

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as they were."""
        if not isinstance(self.backend, AsyncRemembering):
            raise PastUnavailable("The endpoint")
        return _mark_backend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the backend behind."""
        await self.backend.close()


class _MarkedBatchBackend(MarkedBackend):
    """The same of a backend that takes several calls at once."""

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return what the backend behind makes of each call."""
        assert isinstance(self.backend, AsyncGathering), "it was chosen for that"
        with _marked():
            return await self.backend.call_all(calls)


class Monitor:
    """Keeps what was asked of an engine since it was made; `Engine.observe` takes it."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self.lock = Lock()  # held while a call is noted, and by whoever reads what was noted
        self.began_s = clock.now()
        self.metrics = RequestMetrics(clock)
        self.heat = HeatRecorder(clock)
        self.own_calls = 0  # calls of the studio itself

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
        """Take note of a call, unless it is the studio's own."""
        with self.lock:
            if is_studio_call():
                self.own_calls += 1
                return
            self.metrics.note(operation, scope, began_s, took_s, accesses, fault, body)
            self.heat.note(operation, scope, began_s, took_s, accesses, fault, body)


METERED = frozenset(
    {
        *("BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "DeleteItem", "ExecuteStatement"),
        *("ExecuteTransaction", "GetItem", "PutItem", "Query", "Scan", "TransactGetItems"),
        *("TransactWriteItems", "UpdateItem"),
    }
)
"""Operations that can say what they consumed."""
_INDEXES = ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")


def observe_connection(
    connection: AsyncConnection, monitor: Monitor, scope: Scope = DEFAULT_SCOPE
) -> AsyncConnection:
    """Return the same connection, of whose calls a watch is told."""
    return AsyncConnection(ObservedBackend(connection.backend, monitor, scope), connection.target)


class ObservedBackend:
    """Passes calls on, and tells a watch of each as an engine would; keys are not told."""

    def __init__(self, backend: AsyncBackend, monitor: Monitor, scope: Scope = DEFAULT_SCOPE) -> None:
        self.backend = backend
        self._clock = monitor.clock
        self._telling = ObserverNotifier(monitor)
        self._scope = scope

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers, or raise what it raises."""
        mode = request.get("ReturnConsumedCapacity", "NONE")
        asks = operation in METERED and mode in ("NONE", "TOTAL")  # what it may not be, the endpoint refuses
        sent = {**request, "ReturnConsumedCapacity": "INDEXES"} if asks else request
        body = encode_request(operation, request)
        began_s, began = self._clock.now(), monotonic()
        try:
            response = await self.backend.call(operation, sent)
        except TavolaError as error:
            fault = error if isinstance(error, Fault) else InternalServerFault(str(error))
            self._telling.report((operation, self._scope, began_s, began, (), fault, body))
            raise
        accesses = consumed_accesses(response, self._scope, writes=not is_read(operation, request))
        self._telling.report((operation, self._scope, began_s, began, accesses, None, body))
        if asks and mode == "NONE":
            response.pop("ConsumedCapacity", None)
        elif asks and "ConsumedCapacity" in response:
            response["ConsumedCapacity"] = _total(response["ConsumedCapacity"])
        return response

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as they were; what is asked of the past is not told."""
        if not isinstance(self.backend, AsyncRemembering):
            raise PastUnavailable("The endpoint")
        return await self.backend.as_of(at_us)

    async def close(self) -> None:
        """Close the backend behind."""
        await self.backend.close()


def consumed_accesses(response: Mapping[str, Any], scope: Scope, *, writes: bool) -> tuple[ItemAccess, ...]:
    """Return what an answer says was consumed, by table and index; of units that are not told apart, whether they are written."""
    consumed = response.get("ConsumedCapacity") or ()
    accesses: list[ItemAccess] = []
    for each in (consumed,) if isinstance(consumed, Mapping) else consumed:
        arn = _arn(each.get("TableName", ""), scope)
        places: list[tuple[str | None, Mapping[str, Any]]] = [(None, each.get("Table") or {})]
        for member in _INDEXES:
            places += (each.get(member) or {}).items()
        for index, units in places:
            read, written = _units(units, writes=writes)
            if read or written:
                accesses.append(ItemAccess(arn, index, None, read, written))
    return tuple(accesses)


def _arn(name: str, scope: Scope) -> str:
    return name if name.startswith("arn:") else table_arn(scope, name)


def _units(consumed: Mapping[str, Any], *, writes: bool) -> tuple[float, float]:
    if "ReadCapacityUnits" in consumed or "WriteCapacityUnits" in consumed:
        return float(consumed.get("ReadCapacityUnits", 0.0)), float(consumed.get("WriteCapacityUnits", 0.0))
    units = float(consumed.get("CapacityUnits", 0.0))
    return (0.0, units) if writes else (units, 0.0)


def _total(consumed: Any) -> Any:
    """Return what was consumed as who asked for the total is told it: without the places."""
    if not isinstance(consumed, Mapping):
        return [_total(each) for each in consumed]
    return {name: units for name, units in consumed.items() if name not in ("Table", *_INDEXES)}
