"""HistoryCache: how indexes looked at earlier positions of the change log, kept between the pages of a read.

The store has no index over the past, so a read of an index as of a time has to go through every change since then. The
first page does that; the following pages, and later reads as of the same time, reuse the result and add only the changes
made meanwhile. Both the number of changes that are cached and the number that one read may go through are limited.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tavola.engine.storage import ChangeLog
from tavola.keys import Bounds
from tavola.limits import PAST_CHANGES_MAX
from tavola.protocol.faults import ValidationFault

_CHUNK_ROWS = 32  # a change may have two images of 400 KB


class PastEntry(NamedTuple):
    """An index entry of an old image; the image itself stays in the log."""

    entry: bytes
    key: bytes
    size: int  # in the index
    change: int


EntryOf = Callable[[bytes], tuple[bytes, int] | None]
"""Returns the index entry of an image and its size there; None if the image is not in the index."""


class IndexHistory:
    """One index at one position of the log, as its difference to the current index."""

    __slots__ = ("changed", "entries", "reached")

    def __init__(self, position: int) -> None:
        self.reached = position  # the last change that has been undone
        self.changed: set[bytes] = set()  # keys whose current rows did not exist then, or were different
        self.entries: list[PastEntry] = []  # the entries of these keys then, ordered by entry and key

    def extend(self, log: ChangeLog, last: int, entry_of: EntryOf) -> None:
        """Undo further changes, up to `last`; only the first change of each key counts."""
        if last <= self.reached:
            return
        entries: list[PastEntry] = []
        while self.reached < last:
            changes = log.read(self.reached, last, _CHUNK_ROWS)
            for change in changes:
                if change.key in self.changed:
                    continue
                self.changed.add(change.key)
                entry = None if change.old is None else entry_of(change.old)
                if entry is not None:
                    entries.append(PastEntry(entry[0], change.key, entry[1], change.id))
            self.reached = changes[-1].id if changes else last
        self.entries = sorted(self.entries + entries) if entries else self.entries

    def between(
        self, bounds: Bounds, after: tuple[bytes, bytes] | None, *, reverse: bool
    ) -> Iterator[PastEntry]:
        """Yield the entries within bounds, after a pair of entry and key."""
        entries = self.entries
        low = bisect_left(entries, (bounds.lower,))
        high = len(entries) if bounds.upper is None else bisect_left(entries, (bounds.upper,))
        if after is not None and reverse:
            high = min(high, bisect_left(entries, after))
        elif after is not None:
            low = max(low, bisect_left(entries, (after[0], after[1] + b"\x00")))
        positions = range(high - 1, low - 1, -1) if reverse else range(low, high)
        return (entries[position] for position in positions)


class HistoryCache:
    """The index histories that were read most recently."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str, int], IndexHistory] = OrderedDict()

    def index_history(
        self, number: int, column: str, log: ChangeLog, position: int, entry_of: EntryOf
    ) -> IndexHistory:
        """Return an index as of a position; raise ValidationFault if too many changes would have to be undone."""
        last = log.span()[1]
        if last - position > PAST_CHANGES_MAX:
            raise ValidationFault(
                f"The table was changed {last - position:,} times since then; a read of an index as of a time can "
                f"undo {PAST_CHANGES_MAX:,} changes at most. Read the table itself as of that time, or restore it "
                "with RestoreTableToPointInTime and read the index of the restored table"
            )
        cache_key = number, column, position
        past = self._kept.get(cache_key)
        if past is None:
            past = self._kept[cache_key] = IndexHistory(position)
        self._kept.move_to_end(cache_key)
        try:
            past.extend(log, last, entry_of)
        except BaseException:
            del self._kept[cache_key]  # incomplete
            raise
        cached = sum(len(state.changed) for state in self._kept.values())
        while cached > PAST_CHANGES_MAX and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            cached -= len(dropped.changed)
        return past

    def forget(self, number: int | None = None) -> None:
        """Drop the histories of one table, or of all, because the rows they were made from may be gone."""
        for cache_key in [cache_id for cache_id in self._kept if number in (None, cache_id[0])]:
            del self._kept[cache_key]
