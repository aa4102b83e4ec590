"""Clock: the only reader of the time.

Everything that needs the time takes a `Clock`, so that a test sets it and a failing run repeats.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time as seconds since the epoch."""

    def now(self) -> float:
        """Return the present moment in epoch seconds."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return the machine's time in epoch seconds."""
        return time.time()


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start_s: float = 1_700_000_000.0) -> None:
        self._now_s = start_s

    def now(self) -> float:
        """Return the time it was last set to."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Move the time by so many seconds; a negative number moves it back."""
        self._now_s += seconds

    def set(self, epoch_s: float) -> None:
        """Move the time to a moment in epoch seconds."""
        self._now_s = epoch_s


def monotonic() -> float:
    """Return seconds of a clock that never goes back, for budgets and deadlines, not for dates."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Wait for some seconds; passed as an argument to code that waits, so that tests can replace it."""
    time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
