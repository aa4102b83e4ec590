"""Failing: a backend that does what it is asked and then says that it has failed, as a service does now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tavola import Connection
from tavola.protocol.faults import InternalServerFault


class Failing:
    """A backend in front of another; the answers to some calls are an internal error, though they were done."""

    def __init__(self, inner: Any, fails: Callable[[str], bool]) -> None:
        self._inner = inner
        self._fails = fails
        self.calls: list[str] = []  # also those that were refused

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do a call, and fail after it where that is wanted."""
        self.calls.append(operation)
        answer: dict[str, Any] = self._inner.call(operation, request)
        if self._fails(operation):
            raise InternalServerFault("Internal server error")
        return answer

    def close(self) -> None:
        """Leave the other to who made it."""


def failing(db: Connection, *numbers: int, of: frozenset[str]) -> Connection:
    """Return a connection to the same tables whose answers to so many-th calls of some operations are lost to a failure."""
    seen = 0

    def fails(operation: str) -> bool:
        nonlocal seen
        seen += operation in of
        return operation in of and seen in numbers

    return Connection(Failing(db.backend, fails), context=db.context)


SINGLE = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
TOGETHER = frozenset({"TransactWriteItems"})
