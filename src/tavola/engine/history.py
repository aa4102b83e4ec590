"""Pasts: what indexes held at places in their tables' logs, undone once and kept between pages.

No index over the past is kept in the store, so a read of one as of a time goes through every change since then.
That is done for the first page; the next ones, and later reads as of the same time, take it from here and add
what was changed in between. How many changes are held at once is bound, and so is how many a read goes through.
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
_EVERYTHING = Bounds(b"", None)


class PastEntry(NamedTuple):
    """The entry that an old image makes in an index; the image itself stays in the log."""

    entry: bytes
    key: bytes
    size: int  # in the index
    change: int


EntryOf = Callable[[bytes], tuple[bytes, int] | None]
"""What gives the entry of an image in an index and its size; None: the image is not in it."""


class IndexHistory:
    """One index at one place in its table's log, as far as it is another than the index of now."""

    __slots__ = ("changed", "entries", "reached")

    def __init__(self, position: int) -> None:
        self.reached = position  # the last change that is undone here
        self.changed: set[bytes] = set()  # keys: what stands under them now was not there, or not so
        self.entries: list[PastEntry] = []  # what was there instead, by entry and then by key

    def extend(self, log: ChangeLog, last: int, entry_of: EntryOf) -> None:
        """Undo the changes up to the last; of a key the first one counts."""
        if last <= self.reached:
            return
        found: list[PastEntry] = []
        while self.reached < last:
            changes = log.read(self.reached, last, _EVERYTHING, _CHUNK_ROWS)
            for change in changes:
                if change.key in self.changed:
                    continue
                self.changed.add(change.key)
                made = None if change.old is None else entry_of(change.old)
                if made is not None:
                    found.append(PastEntry(made[0], change.key, made[1], change.id))
            self.reached = changes[-1].id if changes else last
        self.entries = sorted(self.entries + found) if found else self.entries

    def between(
        self, bounds: Bounds, after: tuple[bytes, bytes] | None, *, reverse: bool
    ) -> Iterator[PastEntry]:
        """Yield the entries between bounds past a pair of entry and key."""
        entries = self.entries
        low = _place(entries, (bounds.lower,))
        high = len(entries) if bounds.upper is None else _place(entries, (bounds.upper,))
        if after is not None and reverse:
            high = min(high, _place(entries, after))
        elif after is not None:
            low = max(low, _place(entries, (after[0], after[1] + b"\x00")))
        places = range(high - 1, low - 1, -1) if reverse else range(low, high)
        return (entries[place] for place in places)


class HistoryCache:
    """The pasts of a store's indexes that were read lately."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str, int], IndexHistory] = OrderedDict()

    def index_history(
        self, number: int, column: str, log: ChangeLog, position: int, entry_of: EntryOf
    ) -> IndexHistory:
        """Return the past of an index of a table; refuse one that too many changes have to be undone for."""
        last = log.span()[1]
        if last - position > PAST_CHANGES_MAX:
            raise ValidationFault(
                f"The table was changed {last - position:,} times since then, and a read of an index as of a time "
                f"undoes {PAST_CHANGES_MAX:,} changes at most; read the table itself as of then, or restore it to "
                "that time with RestoreTableToPointInTime and read the index there"
            )
        place = number, column, position
        past = self._kept.get(place)
        if past is None:
            past = self._kept[place] = IndexHistory(position)
        self._kept.move_to_end(place)
        try:
            past.extend(log, last, entry_of)
        except BaseException:
            del self._kept[place]  # it is half extended
            raise
        held = sum(len(each.changed) for each in self._kept.values())
        while held > PAST_CHANGES_MAX and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            held -= len(dropped.changed)
        return past

    def forget(self, number: int | None = None) -> None:
        """Let go of the pasts of a table, or of all: what they were made from may not stand."""
        for place in [place for place in self._kept if number in (None, place[0])]:
            del self._kept[place]


def _place(entries: list[PastEntry], pair: tuple[bytes] | tuple[bytes, bytes]) -> int:
    """Return where the first entry stands that is not before a pair; the pair comes before all that begin so."""
    return bisect_left(entries, pair)
