"""FailureLog: one line when the store begins to refuse requests, one a minute while it does, one when it stops.

A full disk refuses every write, and clients retry each of them. A line for each refusal would bury the cause, and fill the disk
that the log may share. A refusal is part of an episode, which begins with the first refusal or when the store becomes
unready, and ends when the store is ready and has refused nothing for `QUIET_S`: on an almost full disk, small writes
succeed between large ones that do not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tavola.clock import monotonic

_log = logging.getLogger("tavola.server")

QUIET_S = 5.0
SUMMARY_S = 60.0


class FailureLog:
    """Counts the requests that the store refuses, and logs what an operator needs to know."""

    __slots__ = ("_now", "_reason", "_refused_at_s", "_refused_count", "_summary_at_s")

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._reason: str | None = None  # of the current episode
        self._refused_count = 0  # since the last line
        self._refused_at_s = 0.0
        self._summary_at_s = 0.0

    def count_refusals(self, reason: str, count: int = 1) -> None:
        """Count requests that were refused for one reason."""
        self._begin(reason)
        self._refused_count += count
        self._refused_at_s = self._now()

    def update(self, reason: str | None) -> None:
        """Begin or end an episode, or sum it up; called regularly with the reason why the store is unready, if it is."""
        if reason is not None:
            self._begin(reason)
        if self._reason is None:
            return
        now_s = self._now()
        if reason is None and now_s - self._refused_at_s >= QUIET_S:
            _log.warning("The store accepts writes again. %s refused since the last line.", self._requests())
            self._reason = None
        elif now_s >= self._summary_at_s:
            self._summary_at_s = now_s + SUMMARY_S
            if self._refused_count:
                _log.error("%s refused in the last minute: %s.", self._requests(), self._reason)
                self._refused_count = 0

    def _begin(self, reason: str) -> None:
        if reason != self._reason:
            self._reason = reason
            self._refused_count = 0
            self._refused_at_s = self._now()
            self._summary_at_s = self._refused_at_s + SUMMARY_S
            _log.error("The store is not ready: %s.", reason)

    def _requests(self) -> str:
        return f"{self._refused_count:,} request{' was' if self._refused_count == 1 else 's were'}"
