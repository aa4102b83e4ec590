"""Journal: writes a table's change log, in the same transaction as each change.

A write is an `ItemWrite` until it is applied; here it becomes a stored change, a `ChangeLogRow`. One log serves every
reader of past changes: streams read it forward, and reads as of a time undo it backward.

    log id        1         2         3         4
    change     INSERT a  MODIFY a  INSERT b  REMOVE a
    old image     -        a=1        -        a=2
    new image    a=1       a=2       b=7        -
               ├── a stream reads forward: 1, 2, 3, 4 ──►
               ◄── the table as of id 2 undoes 4 and 3: a=2, no b ──┤

Since the changed row and its log row are committed together, neither can exist without the other. Ids have no gaps, and
times never decrease from one id to the next (`store_time`), even if the clock is set back. So a time maps to one position in
the log, and a transaction, whose changes all have the same time, is visible either completely or not at all.

The cost is one more row for each write, of tables that have a stream or point-in-time recovery. Only the images that a
reader can ask for are kept: a stream needs those of its view, recovery the old image of each change. In a file, a new
image is stored as its difference to the old one. Old changes are removed by `background`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from tavola.engine.storage import ChangeLog, ChangeLogRow
from tavola.engine.store_time import StoreTime
from tavola.values import Item

INSERT: Final = 0
MODIFY: Final = 1
REMOVE: Final = 2
KIND_BITS: Final = 3
BY_SERVICE: Final = 4  # deleted by expiry, not by a caller
KEYS_ALONE: Final = 8  # `new` holds the key attributes only
DIFFERS: Final = 16  # `new` holds only the difference to `old`

_encode = msgspec.json.Encoder().encode
_LENGTHS = Struct("<II")
_DIFFERENCE_BYTES_MIN = 128  # shorter images are stored whole

# For an insert, a modification and a removal: is the old image kept, and the new one? Even if a view needs neither, one
# is kept, because the keys of the stream record are read from it.
_KEPT: dict[str | None, tuple[tuple[bool, bool], ...]] = {
    "NEW_AND_OLD_IMAGES": ((False, True), (True, True), (True, False)),
    "NEW_IMAGE": ((False, True), (False, True), (True, False)),
    "OLD_IMAGE": ((False, True), (True, False), (True, False)),
    "KEYS_ONLY": ((False, False), (False, False), (False, False)),
    None: ((False, False), (False, False), (False, False)),
}


def new_image(row: ChangeLogRow) -> bytes | None:
    """Return the image after a change, if it was kept; with KEYS_ALONE, the key attributes only."""
    new = row.new
    if new is None or not row.mark & DIFFERS:
        return new
    old = row.old
    assert old is not None, "a difference is stored together with the old image"
    head, tail = _LENGTHS.unpack_from(new)
    return b"".join((old[:head], new[_LENGTHS.size :], old[len(old) - tail :]))


def _difference(old: bytes, new: bytes) -> bytes:
    """Return the bytes of `new` between its common prefix and its common suffix with `old`, and their lengths.

    Most writes change little of an item, and the log's cost is its bytes. Images of equal length are compared as
    integers: the first and the last set bit of their XOR give prefix and suffix without a loop.
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


def _common(one: bytes, other: bytes, length_max: int) -> int:
    """Return the length of the common prefix, at most `length_max`, by binary search."""
    equal, different = 0, length_max + 1
    while different - equal > 1:
        middle = (equal + different) // 2
        if one[equal:middle] == other[equal:middle]:
            equal = middle
        else:
            different = middle
    return equal


class Journal:
    """The change log of one table, and the choice of images that are kept in it."""

    __slots__ = ("_brief", "_history", "_keep", "_key_names", "_next", "_time", "keys_alone", "log")

    def __init__(
        self,
        log: ChangeLog,
        time: StoreTime,
        view: str | None,
        *,
        history: bool,
        key_names: tuple[str, ...],
        brief: bool = True,
    ) -> None:
        """Append to a log; with `brief`, new images are stored as their difference to the old ones.

        That saves bytes on disk and costs time, so it is turned off in memory.
        """
        self.log = log
        self._brief = brief
        self._time = time
        self._keep = tuple((history or old, new) for old, new in _KEPT[view])
        self.keys_alone = view == "KEYS_ONLY"
        self._key_names = key_names
        self._history = history
        _, last, last_us = log.span()
        time.reach(last_us)
        self._next = last + 1

    @property
    def history(self) -> bool:
        """Whether the old image of each change is kept, so that the past can be read."""
        return self._history

    @property
    def position(self) -> int:
        """Return the id of the last change."""
        return self._next - 1

    def note(
        self, key: bytes, kind: int, old: bytes | None, new: bytes | None, item: Item | None, mark: int = 0
    ) -> None:
        """Append a change with the stored images before and after it; `keys_alone` needs an item with the key attributes."""
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
        self.log.append(ChangeLogRow(self._next, self._time.now_us, key, mark, kept_old, kept_new))
        self._next += 1
