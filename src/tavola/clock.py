"""Clock: the only reader of the time.

Everything that needs the time takes a `Clock`, so that a test sets it and a failing run repeats. A clock has two readings:
`now` is the date and time of day, to be shown and compared with dates in data. Someone may set it back or far ahead.
`elapsed` only measures: it never goes back, and its zero means nothing. What must last so many seconds rests on it.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

_BOOT_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)  # Linux; counts time in suspend too


class Clock(Protocol):
    """Tells the time as seconds since the epoch, and measures how much time has passed."""

    def now(self) -> float:
        """Return the present moment in epoch seconds."""
        ...

    def elapsed(self) -> float:
        """Return seconds since some fixed moment; they never decrease, also if the time is set back."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return the machine's time in epoch seconds."""
        return time.time()

    def elapsed(self) -> float:
        """Return seconds since the machine started; where the system counts them, also those it was suspended."""
        return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


class ManualClock:
    """A clock that changes only when a test moves it."""

    def __init__(self, start_s: float = 1_700_000_000.0) -> None:
        self._now_s = start_s
        self._elapsed_s = 0.0

    def now(self) -> float:
        """Return the time it was last set to."""
        return self._now_s

    def elapsed(self) -> float:
        """Return the seconds that have passed since the start."""
        return self._elapsed_s

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass; a negative number sets the time back instead."""
        self._now_s += seconds
        self._elapsed_s += max(0.0, seconds)

    def set(self, epoch_s: float) -> None:
        """Let time pass until a moment in epoch seconds, or set it back to an earlier one."""
        self._elapsed_s += max(0.0, epoch_s - self._now_s)
        self._now_s = epoch_s

    def jump(self, seconds: float) -> None:
        """Set the time ahead or back, as an administrator or a time service does: no time passes."""
        self._now_s += seconds


def monotonic() -> float:
    """Return seconds of a clock that never goes back, for budgets and deadlines, not for dates."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Wait for some seconds; passed as an argument to code that waits, so that tests can replace it."""
    time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
