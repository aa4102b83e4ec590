"""Journal: what is kept of a table's changes, written with each change in the same transaction.

One log serves everybody who looks back: a stream reads it forward, a read as of a time undoes it. Who is
there decides which images are kept: a stream what its view shows, history the image before each change.
A change whose record is missing, or a record without its change, cannot be: they are committed together.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from tavola.clock import Clock
from tavola.engine.storage import ChangeLog, LogRow
from tavola.values import Item

INSERT: Final = 0
MODIFY: Final = 1
REMOVE: Final = 2
KIND_BITS: Final = 3
BY_SERVICE: Final = 4  # an expiry, not a caller's delete
KEYS_ALONE: Final = 8  # `new` holds the key attributes and nothing else
DIFFERS: Final = 16  # `new` holds only where it differs from `old`

_encode = msgspec.json.Encoder().encode
_LENGTHS = Struct("<II")
_DIFFERENCE_BYTES_MIN = 128  # shorter images are kept whole

# For an insert, a modification and a removal: is the old image kept, and the new one? Where a view needs
# neither, one is kept all the same, since the keys of the record are read from it.
_KEPT: dict[str | None, tuple[tuple[bool, bool], ...]] = {
    "NEW_AND_OLD_IMAGES": ((False, True), (True, True), (True, False)),
    "NEW_IMAGE": ((False, True), (False, True), (True, False)),
    "OLD_IMAGE": ((False, True), (True, False), (True, False)),
    "KEYS_ONLY": ((False, False), (False, False), (False, False)),
    None: ((False, False), (False, False), (False, False)),
}


def new_image(row: LogRow) -> bytes | None:
    """Return the image after a change, as far as it was kept; with KEYS_ALONE it is the keys'."""
    new = row.new
    if new is None or not row.mark & DIFFERS:
        return new
    old = row.old
    assert old is not None, "what differs has something to differ from"
    head, tail = _LENGTHS.unpack_from(new)
    return b"".join((old[:head], new[_LENGTHS.size :], old[len(old) - tail :]))


def _difference(old: bytes, new: bytes) -> bytes:
    """Return what is new between the bytes that both images begin with and those that both end with.

    Most writes change little of an item, and what a log costs is its bytes. Images of one length are compared as
    numbers, in whose difference the first and the last bit that is set are found at once.
    """
    if len(old) == len(new):
        differing = int.from_bytes(old, "big") ^ int.from_bytes(new, "big")
        head = len(new) - (differing.bit_length() + 7) // 8
        tail = max(0, ((differing & -differing).bit_length() - 1) // 8)
    else:
        shorter = min(len(old), len(new))
        head = _common(old, new, shorter)
        tail = _common(
            old[: head - 1 : -1] if head else old[::-1],
            new[: head - 1 : -1] if head else new[::-1],
            shorter - head,
        )
    return _LENGTHS.pack(head, tail) + new[head : len(new) - tail]


def _common(one: bytes, other: bytes, most: int) -> int:
    """Return how many bytes two texts begin with alike, found by halving."""
    alike, beyond = 0, most + 1
    while beyond - alike > 1:
        middle = (alike + beyond) // 2
        if one[alike:middle] == other[alike:middle]:
            alike = middle
        else:
            beyond = middle
    return alike


class Timeline:
    """The time of changes: one for a whole call, one for all tables, and never an earlier one than before.

    A transaction is seen whole or not at all as of any time, whatever the clock does.
    """

    __slots__ = ("_clock", "now_us")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now_us = 0

    def tick(self) -> None:
        """Take the clock's time for what is done from now on, unless the clock went back."""
        self.now_us = max(self.now_us, int(self._clock.now() * 1_000_000))

    def reach(self, at_us: int) -> None:
        """Be no earlier than a time that was given out before."""
        self.now_us = max(self.now_us, at_us)


class Journal:
    """The log of one table, and what of a change is worth keeping in it."""

    __slots__ = ("_brief", "_history", "_keep", "_key_names", "_next", "_timeline", "keys_alone", "log")

    def __init__(
        self,
        log: ChangeLog,
        timeline: Timeline,
        view: str | None,
        *,
        history: bool,
        key_names: tuple[str, ...],
        brief: bool = True,
    ) -> None:
        """Go on with a log; one that is `brief` keeps of a new image only where it differs from the old.

        That saves bytes on a disk and costs time, so in memory it does not pay.
        """
        self.log = log
        self._brief = brief
        self._timeline = timeline
        self._keep = tuple((history or old, new) for old, new in _KEPT[view])
        self.keys_alone = view == "KEYS_ONLY"
        self._key_names = key_names
        self._history = history
        _, last, last_us = log.span()
        timeline.reach(last_us)
        self._next = last + 1

    @property
    def history(self) -> bool:
        """Tell whether the image before each change is kept, so that the past can be read."""
        return self._history

    @property
    def position(self) -> int:
        """Return the id of the last change."""
        return self._next - 1

    def note(
        self, key: bytes, kind: int, old: bytes | None, new: bytes | None, item: Item | None, mark: int = 0
    ) -> None:
        """Append a change: the stored images before and after it, and, for `keys_alone`, an item with its keys."""
        keep_old, keep_new = self._keep[kind]
        mark |= kind
        if self.keys_alone:
            assert item is not None, "the keys are read from an item"
            new = _encode({name: item[name] for name in self._key_names})
            keep_new = True
            mark |= KEYS_ALONE
        elif self._brief and keep_old and keep_new and old and new and len(new) >= _DIFFERENCE_BYTES_MIN:
            new = _difference(old, new)
            mark |= DIFFERS
        kept_old, kept_new = old if keep_old else None, new if keep_new else None
        self.log.append(LogRow(self._next, self._timeline.now_us, key, mark, kept_old, kept_new))
        self._next += 1
