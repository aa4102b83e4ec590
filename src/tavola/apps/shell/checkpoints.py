"""The checkpoint of a follower: in memory for its subscription, stored from time to time.

    subscription ──save──► FollowerCheckpoint ──flush──► MarkCheckpoint   beside the projector's marks
                           (memory)                 └──► CheckpointFile   if the item is denied, or without marks

A subscription saves after each batch and without waiting; storing each of these would cost one write per batch. So they stay in
memory until `flush` stores the last one, and only once the numbers are complete: a checkpoint of half-built numbers would leave a
gap. What it gives up: after a crash, up to a second of changes is read again, and the marks know that they were counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from tavola import AccessDeniedFault, AnyChange, AsyncConnection, CheckpointFile
from tavola.client.checkpoints import MemoryCheckpoint
from tavola.clock import monotonic
from tavola.patterns import MarkCheckpoint, ProjectionMark

FLUSH_S = 1.0  # between two writes
FLUSH_IDLE_S = 3_600.0  # the same while only marks changed: each write is a change of their table again


class FollowerCheckpoint(MemoryCheckpoint):
    """How far a follower has read, and whether the numbers include everything before.

    `complete` is set by the follower once the numbers agree with the table. `stream_replaced` is set when a subscription saves a
    checkpoint of another stream: changes written between the two streams are in neither, and the numbers must be rebuilt.
    """

    def __init__(
        self,
        db: AsyncConnection,
        mark: type[ProjectionMark] | None,
        projector: str,
        path: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__()
        self.complete = False
        self.stream_replaced = False
        self._mark = mark
        self._item = None if mark is None else MarkCheckpoint(db, mark, projector)
        self._file = None if path is None else CheckpointFile(path)
        self._unstored: Mapping[str, Any] | None = None
        self._due_soon = True  # false while only marks have changed
        self._stored_s = 0.0

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Replace the checkpoint in memory; `flush` stores it."""
        if self.checkpoint is not None and self.checkpoint.get("stream") != checkpoint.get("stream"):
            self.stream_replaced, self.complete, self._due_soon = True, False, True
        self.checkpoint = self._unstored = checkpoint

    def clear(self) -> None:
        """Remove the checkpoint from memory."""
        self.checkpoint = self._unstored = None

    def note_changes(self, changes: Iterable[AnyChange]) -> None:
        """Note what moved the checkpoint: for marks alone it is not stored soon, because that changes their table again."""
        if self._mark is None or any(change.entity is not self._mark for change in changes):
            self._due_soon = True

    async def open(self) -> bool:
        """Read the stored checkpoint into memory and return whether there is one."""
        self.checkpoint = await self._load_stored()
        self._unstored = None
        self.complete = self.checkpoint is not None
        self._due_soon = not self.complete
        self.stream_replaced = False
        return self.complete

    async def flush(self, *, now: bool = False) -> None:
        """Store the checkpoint if it is due and the numbers are complete; with `now`, unless only marks changed."""
        if self._unstored is None or not self.complete:
            return
        elapsed_s = monotonic() - self._stored_s
        if not (now and self._due_soon) and elapsed_s < (FLUSH_S if self._due_soon else FLUSH_IDLE_S):
            return
        checkpoint = self._unstored
        await self._store(checkpoint)
        if self._unstored is checkpoint:
            self._unstored = None
        self._due_soon = False
        self._stored_s = monotonic()

    async def discard(self) -> None:
        """Remove the checkpoint from memory and from where it is stored; the numbers count as incomplete."""
        self.complete = self.stream_replaced = False
        self.clear()
        self._due_soon = True
        await self._store(None)

    async def _load_stored(self) -> Mapping[str, Any] | None:
        if self._item is not None:
            try:
                return await self._item.load()
            except AccessDeniedFault:
                self._item = None  # this caller may not use the item: the file from now on
        return None if self._file is None else self._file.load()

    async def _store(self, checkpoint: Mapping[str, Any] | None) -> None:
        if self._item is not None:
            try:
                await (self._item.clear() if checkpoint is None else self._item.save(checkpoint))
            except AccessDeniedFault:
                self._item = None
            else:
                return
        if self._file is None:
            return
        if checkpoint is None:
            self._file.clear()
        else:
            self._file.path.parent.mkdir(exist_ok=True)
            self._file.save(checkpoint)
