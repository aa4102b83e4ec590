"""Retries: what is asked again, and when.

A throttle and a failure of the service are waited out, with growing pauses and full jitter, so that clients
who were refused together do not come back together. Where no answer came at all, only what may be done twice
is asked again: reads, transactions with a token, and what cannot have arrived. The engine never retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.client.backend import Unanswered
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.errors import TavolaError
from tavola.protocol import Fault

_READS = frozenset(
    {
        "GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems",
        "DescribeTable", "DescribeStream", "GetShardIterator", "GetRecords",
    }
)  # fmt: skip
_PASSING = frozenset({"TransactionInProgressException", "LimitExceededException"})
_WHOLE = float(1 << 53)


@dataclass(frozen=True, slots=True)
class Patience:
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
        return error.retryable or error.status >= 500 or error.code in _PASSING
    if isinstance(error, Unanswered):
        return not error.sent or operation in _READS or "ClientRequestToken" in request
    return False


NO_PATIENCE = Patience(attempts_max=1)
