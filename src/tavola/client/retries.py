"""Retries: which failed calls are repeated, and after how long.

Throttled calls are repeated after growing pauses with full jitter, so that clients that were throttled together do not return
together. A failure of the service does not say whether a write was made, so only calls with the same effect twice as once are
repeated: reads, transactions with a token, batches, puts and deletes without a condition, and unconditional updates that only
set and remove values. Any other write might count twice, or fail because of its own first attempt, so its failure is raised.
If no response came at all, only reads, transactions with a token, and requests that cannot have arrived are repeated. The
engine never retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.client.backend import ResponseMissing
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
)  # fmt: skip  # of items; BatchWriteItem has no conditions, and may be repeated
_CONDITIONS = frozenset({"ConditionExpression", "Expected"})
_TRANSIENT = frozenset({"TransactionInProgressException", "LimitExceededException"})
_RANDOM_MAX = float(1 << 53)

CONTENTION_MAX = 20  # how often a write is prepared again because other writers were faster


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often failed calls are repeated, and after which pauses."""

    attempts_max: int = 8
    base_s: float = 0.025
    cap_s: float = 5.0
    entropy: Entropy = SYSTEM_ENTROPY

    def pause_s(self, attempt: int) -> float:
        """Return the pause after an attempt: random, up to a bound that doubles with each attempt."""
        bound = min(self.cap_s, self.base_s * (1 << min(attempt, 20)))
        return bound * (int.from_bytes(self.entropy.bytes(7), "big") >> 3) / _RANDOM_MAX

    def wait_s(
        self, operation: str, request: Mapping[str, Any], error: TavolaError, attempt: int
    ) -> float | None:
        """Return the pause before the next attempt, None if the call must not be repeated."""
        if attempt >= self.attempts_max or not _is_retryable(operation, request, error):
            return None
        return self.pause_s(attempt)


def _is_retryable(operation: str, request: Mapping[str, Any], error: TavolaError) -> bool:
    if isinstance(error, Fault):
        if error.status >= 500:
            return _is_idempotent(operation, request)
        return error.retryable or error.code in _TRANSIENT
    if isinstance(error, ResponseMissing):
        return not error.sent or operation in _READS or "ClientRequestToken" in request
    return False


def _is_idempotent(operation: str, request: Mapping[str, Any]) -> bool:
    """Return whether a call has the same effect twice as once."""
    if operation not in _WRITES:
        return True
    if "ClientRequestToken" in request:
        return True
    if operation in ("PutItem", "DeleteItem"):
        return _CONDITIONS.isdisjoint(request)
    return operation == "UpdateItem" and _CONDITIONS.isdisjoint(request) and _only_sets(request)


def _only_sets(request: Mapping[str, Any]) -> bool:
    """Return whether an update only sets given values and removes attributes."""
    try:
        actions = parse_update(request.get("UpdateExpression", "")).tree.actions
    except ExpressionError:
        return False
    return all(
        isinstance(action, Remove) or (isinstance(action, Set) and isinstance(action.value, ValueRef))
        for action in actions
    )


NO_RETRIES = RetryPolicy(attempts_max=1)
