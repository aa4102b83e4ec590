"""Patience: which errors of a service pass by themselves, so that a trigger waits and asks again."""

from __future__ import annotations

from tavola.backends import AnswerDamaged, AnswerUnreadable, EndpointUnreachable
from tavola.errors import TavolaError
from tavola.protocol.faults import THROTTLING_CODES, Fault

# Faults of throttling that are no mistake of the request; LimitExceeded: too many read one shard.
_THROTTLED = THROTTLING_CODES | {"LimitExceededException"}


def is_passing(error: TavolaError) -> bool:
    """Tell whether the same request may succeed later: a throttle, a fault of the service, no answer at all."""
    if isinstance(error, Fault):
        return error.retryable or error.status >= 500 or error.code in _THROTTLED
    return isinstance(error, EndpointUnreachable | AnswerDamaged | AnswerUnreadable)
