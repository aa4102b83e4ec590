"""Retries: what is asked again, and when.

A throttle is waited out, with growing pauses and full jitter, so that clients who were refused together do not
come back together. A failure of the service says nothing of whether a write was done. So it is waited out for
what is the same done twice as once: reads, transactions with a token, batches, puts and deletes without a condition,
and updates without one that only set values and remove. Anything else might count twice, or be refused because of itself:
its failure is told. Where no answer came at all, no single write is asked again, only reads, transactions with a
token, and what cannot have arrived. The engine never retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.client.backend import Unanswered
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.errors import TavolaError
from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import Remove, Set, ValueRef
from tavola.expressions.parser import parse_update
from tavola.protocol.faults import Fault

_READS = frozenset(
    {
        "GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems",
        "DescribeTable", "DescribeStream", "GetShardIterator", "GetRecords",
    }
)  # fmt: skip
_WRITES = frozenset(
    {
        "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems",
        "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction",
    }
)  # fmt: skip  # of items; BatchWriteItem has no conditions, and may be done twice
_CONDITIONS = frozenset({"ConditionExpression", "Expected"})
_PASSING = frozenset({"TransactionInProgressException", "LimitExceededException"})
_WHOLE = float(1 << 53)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a client tries."""

    attempts_max: int = 8
    base_s: float = 0.025
    cap_s: float = 5.0
    entropy: Entropy = SYSTEM_ENTROPY

    def pause_s(self, attempt: int) -> float:
        """Return how long to wait before trying again the attempt-th time: anything up to a growing bound."""
        bound = min(self.cap_s, self.base_s * (1 << min(attempt, 20)))
        return bound * (int.from_bytes(self.entropy.bytes(7), "big") >> 3) / _WHOLE

    def wait_s(
        self, operation: str, request: Mapping[str, Any], error: TavolaError, attempt: int
    ) -> float | None:
        """Return how long to wait before asking again, None if it is of no use."""
        if attempt >= self.attempts_max or not _passes(operation, request, error):
            return None
        return self.pause_s(attempt)


def _passes(operation: str, request: Mapping[str, Any], error: TavolaError) -> bool:
    if isinstance(error, Fault):
        if error.status >= 500:
            return _repeatable(operation, request)
        return error.retryable or error.code in _PASSING
    if isinstance(error, Unanswered):
        return not error.sent or operation in _READS or "ClientRequestToken" in request
    return False


def _repeatable(operation: str, request: Mapping[str, Any]) -> bool:
    """Return whether an operation leaves the same done twice as done once."""
    if operation not in _WRITES:
        return True
    if "ClientRequestToken" in request:
        return True
    if operation in ("PutItem", "DeleteItem"):
        return _CONDITIONS.isdisjoint(request)
    return operation == "UpdateItem" and _CONDITIONS.isdisjoint(request) and _sets(request)


def _sets(request: Mapping[str, Any]) -> bool:
    """Return whether an update only sets values that it brings, and removes."""
    try:
        actions = parse_update(request.get("UpdateExpression", "")).tree.actions
    except ExpressionError:
        return False
    return all(
        isinstance(action, Remove) or (isinstance(action, Set) and isinstance(action.value, ValueRef))
        for action in actions
    )


NO_RETRIES = RetryPolicy(attempts_max=1)
