"""Calls written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tavola.backends.recording import RecordingBackend
from tavola.clock import ManualClock
from tavola.errors import TavolaError
from tavola.protocol.faults import ResourceNotFoundFault


class Slow:
    """A backend that takes a quarter of a second of its clock and returns a fixed response."""

    def __init__(self, clock: ManualClock, answer: dict[str, Any] | TavolaError) -> None:
        self._clock = clock
        self._answer = answer
        self.closed = False

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer late."""
        self._clock.advance(0.25)
        if isinstance(self._answer, TavolaError):
            raise self._answer
        return self._answer

    def close(self) -> None:
        """Note it."""
        self.closed = True


def recording(answer: dict[str, Any] | TavolaError) -> RecordingBackend:
    """Return a recorder over a slow backend."""
    clock = ManualClock()
    return RecordingBackend(Slow(clock, answer), timer=clock.now)


def test_a_call_is_recorded_with_its_time_and_capacity() -> None:
    """Operation, request, response, capacity and latency are recorded; bytes as base64."""
    backend = recording({"Count": 0, "ConsumedCapacity": {"TableName": "T", "CapacityUnits": 0.5}})

    response = backend.call("Query", {"TableName": "T", "Limit": 1, "Blob": b"\x00"})

    (call,) = backend.calls
    assert response["Count"] == 0
    assert (call.operation, call.request) == ("Query", {"TableName": "T", "Limit": 1, "Blob": "AA=="})
    assert (call.response, call.error) == (response, None)
    assert call.consumed == ({"TableName": "T", "CapacityUnits": 0.5},)
    assert call.latency_s == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("response", "tables"),
    [({}, []), ({"ConsumedCapacity": [{"TableName": "A"}, {"TableName": "B"}]}, ["A", "B"])],
)
def test_capacity_is_a_tuple_whatever_the_operation(response: dict[str, Any], tables: list[str]) -> None:
    """Nothing, one or many: each table's capacity is one member."""
    backend = recording(response)
    backend.call("BatchGetItem", {})

    assert [consumed["TableName"] for consumed in backend.calls[0].consumed] == tables


def test_a_fault_is_recorded_and_raised() -> None:
    """A refusal is recorded too, and reaches the caller unchanged."""
    fault = ResourceNotFoundFault()
    backend = recording(fault)

    with pytest.raises(ResourceNotFoundFault) as caught:
        backend.call("GetItem", {})

    assert caught.value is fault
    assert (backend.calls[0].response, backend.calls[0].error) == (None, fault)
    assert backend.calls[0].latency_s == pytest.approx(0.25)


def test_a_recorded_call_is_a_copy() -> None:
    """A caller that changes its request or the response does not change the record."""
    backend = recording({"Items": [{"pk": {"S": "a"}}]})
    request = {"TableName": "T"}

    response = backend.call("Scan", request)
    request["TableName"] = "U"
    response["Items"].clear()

    assert backend.calls[0].request == {"TableName": "T"}
    assert backend.calls[0].response == {"Items": [{"pk": {"S": "a"}}]}


def test_clearing_and_closing() -> None:
    """Cleared calls are gone; closing closes the wrapped backend."""
    backend = recording({})
    backend.call("ListTables", {})
    backend.clear()
    backend.close()

    assert backend.calls == ()
    assert isinstance(backend.backend, Slow)
    assert backend.backend.closed
