"""A backend that reports the studio's own calls to a remote endpoint to a monitor.

No observer can be set on a remote endpoint, so the studio's own calls are all there is to see. Each request is made to
return its consumed capacity; the response hides it from callers that did not ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncBackend, AsyncRemembering, encode_request
from tavola.clock import monotonic
from tavola.engine import ItemAccess, ObserverNotifier
from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope, table_arn
from tavola.protocol.faults import Fault, InternalServerFault
from tavola.studio.monitoring.monitor import Monitor
from tavola.studio.monitoring.request_shapes import is_read

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
    connection: AsyncConnection, watch: Monitor, scope: Scope = DEFAULT_SCOPE
) -> AsyncConnection:
    """Return the same connection, of whose calls a watch is told."""
    return AsyncConnection(ObservedBackend(connection.backend, watch, scope), connection.target)


class ObservedBackend:
    """Passes calls on, and tells a watch of each as an engine would; keys are not told."""

    def __init__(self, backend: AsyncBackend, watch: Monitor, scope: Scope = DEFAULT_SCOPE) -> None:
        self.backend = backend
        self._clock = watch.clock
        self._telling = ObserverNotifier(watch)
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
        touches = consumed_accesses(response, self._scope, writes=not is_read(operation, request))
        self._telling.report((operation, self._scope, began_s, began, touches, None, body))
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
    told = response.get("ConsumedCapacity") or ()
    found: list[ItemAccess] = []
    for each in (told,) if isinstance(told, Mapping) else told:
        arn = _arn(each.get("TableName", ""), scope)
        places: list[tuple[str | None, Mapping[str, Any]]] = [(None, each.get("Table") or {})]
        for member in _INDEXES:
            places += (each.get(member) or {}).items()
        for index, units in places:
            read, written = _units(units, writes=writes)
            if read or written:
                found.append(ItemAccess(arn, index, None, read, written))
    return tuple(found)


def _arn(name: str, scope: Scope) -> str:
    return name if name.startswith("arn:") else table_arn(scope, name)


def _units(told: Mapping[str, Any], *, writes: bool) -> tuple[float, float]:
    if "ReadCapacityUnits" in told or "WriteCapacityUnits" in told:
        return float(told.get("ReadCapacityUnits", 0.0)), float(told.get("WriteCapacityUnits", 0.0))
    units = float(told.get("CapacityUnits", 0.0))
    return (0.0, units) if writes else (units, 0.0)


def _total(told: Any) -> Any:
    """Return what was consumed as who asked for the total is told it: without the places."""
    if not isinstance(told, Mapping):
        return [_total(each) for each in told]
    return {name: units for name, units in told.items() if name not in ("Table", *_INDEXES)}
