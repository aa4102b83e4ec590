"""Progress: which records of a shard are dealt with, and so how far a restart need not go back.

Lanes finish out of order. What may be skipped for good is what lies before the first record that is not
dealt with yet; how far each lane is beyond that is noted too, so that a restart hands it nothing twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tavola.triggers.events import StreamRecord


class Progress:
    """The records of one shard that were read, in order, and those that are dealt with."""

    def __init__(self, after: str | None, lanes: dict[int, str]) -> None:
        self._after = after
        self._lanes = dict(lanes)
        self._open: deque[str] = deque()  # read, in order, from the first that is not dealt with
        self._done: set[str] = set()  # those of them that are

    @property
    def after(self) -> str | None:
        """The last record up to which all are dealt with; None: none is."""
        return self._after

    @property
    def lanes(self) -> dict[int, str]:
        """How far each lane is, where that is beyond `after`."""
        floor = -1 if self._after is None else int(self._after)
        return {lane: sequence for lane, sequence in sorted(self._lanes.items()) if int(sequence) > floor}

    @property
    def open(self) -> int:
        """How many records were read and are not yet behind `after`."""
        return len(self._open)

    def knows(self, lane: int, number: int) -> bool:
        """Tell whether a lane had dealt with a record before this run, or further back in it."""
        reached = self._lanes.get(lane)
        return reached is not None and number <= int(reached)

    def note_read(self, sequence: str) -> None:
        """A record was read."""
        self._open.append(sequence)

    def note_passed_over(self, sequence: str) -> None:
        """A record that was read is no lane's business: filtered, or dealt with before."""
        self._done.add(sequence)
        self._advance()

    def note_done(self, lane: int, records: Iterable[StreamRecord]) -> None:
        """A lane has dealt with records, handled or discarded."""
        for record in records:
            self._done.add(record.sequence)
            self._lanes[lane] = record.sequence
        self._advance()

    def _advance(self) -> None:
        while self._open and self._open[0] in self._done:
            self._after = self._open.popleft()
            self._done.remove(self._after)
