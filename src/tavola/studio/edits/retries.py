"""Calls that retry throttling, for the many writes of a bulk edit or import to one table."""

from __future__ import annotations

from typing import Any

from tavola.client.effects import AsyncDriver, Call, Program
from tavola.client.retries import RetryPolicy
from tavola.handles import AsyncConnection

_RETRY_POLICY = RetryPolicy(attempts_max=12)  # some ten seconds in all


async def call_with_retries(db: AsyncConnection, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to an operation; raise the fault that stays when waiting is of no use."""
    return await AsyncDriver(db, _RETRY_POLICY).run(_single_call(operation, request))


def _single_call(operation: str, request: dict[str, Any]) -> Program[dict[str, Any]]:
    answer: dict[str, Any] = yield Call(operation, request)
    return answer
