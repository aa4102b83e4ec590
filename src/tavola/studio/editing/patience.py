"""Patience: a call that is made again after a throttle, as the client makes it.

A slice of a bulk edit or an import is many writes to one table, which may have little capacity. A throttle is waited out;
what may have been done is not done twice.
"""

from __future__ import annotations

from typing import Any

from tavola.client import AsyncDriver, Call, Program, RetryPolicy
from tavola.connections import AsyncConnection

_PATIENCE = RetryPolicy(attempts_max=12)  # some ten seconds in all


async def patiently(db: AsyncConnection, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to an operation; raise the fault that stays when waiting is of no use."""
    return await AsyncDriver(db, _PATIENCE).run(_once(operation, request))


def _once(operation: str, request: dict[str, Any]) -> Program[dict[str, Any]]:
    answer: dict[str, Any] = yield Call(operation, request)
    return answer
