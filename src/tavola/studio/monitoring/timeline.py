"""Slices of one second for ten minutes, ten seconds for an hour, one minute for six hours.

A finished slice is added to the longer slice around it, so each call is counted once. Readers get immutable slices; only the
open one of each length is copied. When all slices together exceed a byte limit, the oldest of the shortest lose their names and
keep their sums.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from tavola.studio.monitoring.counters import OTHER_KINDS, ClosedSlice, CounterSlice


class SliceLength(NamedTuple):
    """A length of slices, and for how long they are kept."""

    length_s: int
    kept_s: int


SLICE_LENGTHS = (SliceLength(1, 600), SliceLength(10, 3600), SliceLength(60, 21_600))
WINDOW_S_MAX = SLICE_LENGTHS[-1].kept_s
SET_BACK_S = 60
"""A call that came so long before the last one: the clock was set back, and what was counted is of another time."""
BYTES_MAX = 16 * 1024 * 1024


class Timeline:
    """What was counted, by when; `slice_at` gives where to count."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._open: list[CounterSlice | None]
        self._closed: list[deque[ClosedSlice]]
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._open = [None for _ in SLICE_LENGTHS]
        self._closed = [deque() for _ in SLICE_LENGTHS]
        self.bytes = 0  # about, of what is closed

    def slice_at(self, second: int) -> CounterSlice:
        """Return the slice of a second; a call that came a little earlier is counted with those that come now."""
        current = self._open[0]
        if current is not None and second <= current.start_s:
            if current.start_s - second <= SET_BACK_S:
                return current
            self.clear()
        elif current is not None:
            self._close(0, second)
            self._thin()
        self._open[0] = current = CounterSlice(second)
        return current

    def _close(self, level: int, second: int) -> None:
        """End the open slice of a level, add it to the longer one, and drop what is too old by now."""
        current = self._open[level]
        assert current is not None
        closed = current.closed()
        self._open[level] = None
        kept = self._closed[level]
        kept.append(closed)
        self.bytes += closed.bytes
        while kept and kept[0].start_s < second - SLICE_LENGTHS[level].kept_s - SLICE_LENGTHS[level].length_s:
            self.bytes -= kept.popleft().bytes
        if level + 1 == len(SLICE_LENGTHS):
            return
        length_s = SLICE_LENGTHS[level + 1].length_s
        start_s = closed.start_s - closed.start_s % length_s
        longer = self._open[level + 1]
        if longer is not None and longer.start_s != start_s:
            self._close(level + 1, second)
            longer = None
        if longer is None:
            longer = self._open[level + 1] = CounterSlice(start_s, length_s)
        longer.take(current)

    def _thin(self) -> None:
        """Sum up the oldest seconds, then tens of seconds, then minutes, until all of it has room."""
        for slices in self._closed:
            for at, each in enumerate(slices):
                if self.bytes <= self._bytes_max:
                    return
                if each.kinds != (OTHER_KINDS,):
                    slices[at] = unnamed = each.unnamed()
                    self.bytes += unnamed.bytes - each.bytes

    def since(self, start_s: int, level: int, end_s: float = inf) -> list[ClosedSlice]:
        """Return what was counted since then in slices of a level, the last ones shorter, in order of time."""
        found = [each for each in self._closed[level] if start_s <= each.start_s < end_s]
        for lower in range(level, -1, -1):
            current = self._open[lower]
            if current is not None and start_s <= current.start_s < end_s:
                found.append(current.closed())
        return found

    def summed(self, start_s: int, level: int) -> list[ClosedSlice]:
        """Return what was counted since then in few slices, for sums: longer ones where they lie wholly inside."""
        found: list[ClosedSlice] = []
        for longer in range(level + 1, len(SLICE_LENGTHS)):
            length_s = SLICE_LENGTHS[longer].length_s
            aligned_s = -(-start_s // length_s) * length_s
            found += self.since(start_s, longer - 1, aligned_s)
            start_s = aligned_s
        return found + self.since(start_s, len(SLICE_LENGTHS) - 1)

    @property
    def kept(self) -> int:
        """How many slices are kept."""
        return sum(len(kept) for kept in self._closed) + sum(each is not None for each in self._open)


def level_of(window_s: int) -> int:
    """Return the level whose slices reach back so far."""
    for level, step in enumerate(SLICE_LENGTHS):
        if window_s <= step.kept_s:
            return level
    return len(SLICE_LENGTHS) - 1


def group_by_step(slices: Iterable[ClosedSlice], step_s: int) -> dict[int, list[ClosedSlice]]:
    """Return slices by the start of the step that they lie in."""
    found: dict[int, list[ClosedSlice]] = {}
    for each in slices:
        found.setdefault(each.start_s - each.start_s % step_s, []).append(each)
    return found
