"""Places: how far a follower has read a stream, kept with the numbers that were made of it.

The place is an item beside the marks of a projector, so that whoever copies, restores or shares the store has both or neither: a place that is
ahead of its numbers would leave a gap for good. Where the store does not let it be kept, or a projector has no marks, it is in a
file, and without one nowhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tavola import (
    AccessDeniedFault,
    AnyChange,
    AsyncConnection,
    CheckpointFile,
    CheckpointRefused,
)
from tavola.clock import monotonic
from tavola.patterns import ProjectionMark

KEEP_S = 1.0  # between two saves; what is counted twice after a crash changes nothing
KEEP_IDLE_S = 3_600.0  # the same where only our own marks moved it; each save is a change of the table again
SOURCE = "!place"  # what the item has in place of an item's key; no item has it for its source


def room_in(projector: object) -> type[ProjectionMark] | None:
    """Return the marks of a projector, beside which there is room for its place; None: it has none."""
    mark = getattr(projector, "mark", None)
    return (
        mark if isinstance(mark, type) and issubclass(mark, ProjectionMark) and hasattr(mark, "Key") else None
    )


class Shelf(Protocol):
    """Where a place is kept."""

    async def load(self) -> Mapping[str, Any] | None:
        """Return what was kept last."""
        ...

    async def save(self, checkpoint: Mapping[str, Any] | None) -> None:
        """Keep it; None: forget what was kept."""
        ...


class InStore:
    """A place beside the marks; it is read and put, never deleted, as a projector may do with them."""

    def __init__(self, db: AsyncConnection, mark: type[ProjectionMark], projector: str) -> None:
        self._db = db
        self._mark = mark
        self._projector = projector

    async def load(self) -> Mapping[str, Any] | None:
        """Return what the item holds."""
        key = self._mark.Key(source=SOURCE, projector=self._projector)  # type: ignore[attr-defined]  # see room_in
        found = await self._db.get(key, consistent=True)
        if found is None or not found.place:
            return None
        try:
            told = json.loads(found.place)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise CheckpointRefused(f"the item of {SOURCE} holds none")
        return told

    async def save(self, checkpoint: Mapping[str, Any] | None) -> None:
        """Put the item."""
        place = "" if checkpoint is None else json.dumps(checkpoint)
        await self._db.put(self._mark(projector=self._projector, source=SOURCE, kind="", place=place))


class InFile:
    """A place in a file of its own."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = CheckpointFile(path)

    async def load(self) -> Mapping[str, Any] | None:
        """Return what the file holds."""
        return self._file.load()

    async def save(self, checkpoint: Mapping[str, Any] | None) -> None:
        """Write the file."""
        if checkpoint is None:
            self._file.clear()
        else:
            self._file.path.parent.mkdir(exist_ok=True)
            self._file.save(checkpoint)


class Nowhere:
    """No place: each start makes the numbers anew."""

    async def load(self) -> Mapping[str, Any] | None:
        """Return nothing."""
        return None

    async def save(self, checkpoint: Mapping[str, Any] | None) -> None:
        """Keep nothing."""


class Place:
    """A checkpoint that is kept now and then, and only once the numbers are whole.

    A subscription is given it for its checkpoints, and tells it where it is; what keeps it is `flush`, on the loop. One that is a little
    old costs nothing but work: marks know what was counted.
    """

    def __init__(
        self,
        db: AsyncConnection,
        mark: type[ProjectionMark] | None,
        projector: str,
        path: str | os.PathLike[str] | None,
    ) -> None:
        self._mark = mark
        self._file: Shelf = Nowhere() if path is None else InFile(path)
        self._shelf: Shelf = self._file if mark is None else InStore(db, mark, projector)
        self._known: Mapping[str, Any] | None = None
        self._waiting: Mapping[str, Any] | None = None
        self._worth = True
        self._saved_s = 0.0
        self.whole = False
        self.jumped = False  # the table has another stream than the one that was read: what was written between is in neither

    async def find(self) -> bool:
        """Read what was kept; return whether there is something to go on from."""
        try:
            self._known = await self._shelf.load()
        except AccessDeniedFault:
            self._give_way()
            self._known = await self._shelf.load()
        self._waiting = None
        self.whole = self._known is not None
        self._worth = not self.whole
        self.jumped = False
        return self.whole

    def took(self, changes: Iterable[AnyChange]) -> None:
        """Note what moved it: our own marks alone are not worth another write, which would be a change again."""
        self._worth = (
            self._worth or self._mark is None or any(change.entity is not self._mark for change in changes)
        )

    async def flush(self, *, now: bool = False) -> None:
        """Keep what waits, if it is time and the numbers are whole."""
        if self._waiting is None or not self.whole:
            return
        since_s = monotonic() - self._saved_s
        if not (now and self._worth) and since_s < (KEEP_S if self._worth else KEEP_IDLE_S):
            return
        waiting = self._waiting
        try:
            await self._shelf.save(waiting)
        except AccessDeniedFault:
            if self._shelf is self._file:
                raise
            self._give_way()
            await self._shelf.save(waiting)
        if self._waiting is waiting:
            self._waiting = None
        self._worth = False
        self._saved_s = monotonic()

    async def forget(self) -> None:
        """Let the next start find nothing; the numbers are not whole any more."""
        self.whole = self.jumped = False
        self._known = self._waiting = None
        self._worth = True
        try:
            await self._shelf.save(None)
        except AccessDeniedFault:
            if self._shelf is self._file:
                raise
            self._give_way()
            await self._shelf.save(None)

    def _give_way(self) -> None:
        """Use the file from now on: this caller may not read or write the item."""
        self._shelf = self._file

    # What a subscription asks for.

    def load(self) -> Mapping[str, Any] | None:
        """Return what was found."""
        return self._known

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Note where the subscription is."""
        if self._known is not None and self._known.get("stream") != checkpoint.get("stream"):
            self.jumped, self.whole, self._worth = True, False, True
        self._known = self._waiting = checkpoint

    def clear(self) -> None:
        """Note that it is nowhere."""
        self._known = self._waiting = None
