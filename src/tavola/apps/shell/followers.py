"""Followers: background tasks that apply a table's stream to a projector while an application runs.

A follower continues at its stored checkpoint. Without one, or when the stream lost records, it subscribes first and then
rebuilds the numbers from the table, so that no change falls between the two:

    checkpoint ──► subscribe ────────────► apply batch ──► acknowledge ──► store checkpoint ─┐
    none, gap  ──► subscribe ──► rebuild ──►    ▲ retried until it succeeds                  │
                                                └────────────────────────────────────────────┘

Every failure is logged and retried, with growing pauses; no change is skipped. Cost: one read of the stream per `poll_s`. What it
gives up: numbers lag behind the table (see `lag_s`), and a batch that can never be applied stops the follower's progress.

Checkpoints stay in memory and are stored from time to time: beside the projector's marks, or in a file if the item is denied or
there are no marks. A subscription saves after each batch; storing each of these would cost one write per batch. A checkpoint is
stored only once the numbers are complete, because one of half-built numbers would leave a gap. After a crash, up to a second of
changes is read again, and the marks show that they were counted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Protocol

from tavola import (
    AccessDeniedFault,
    AnyChange,
    AsyncConnection,
    AsyncSubscription,
    ChangeBatch,
    CheckpointFile,
    CheckpointRefused,
    Clock,
    Fault,
    RecordsLost,
    StreamError,
    Table,
)
from tavola.client.checkpoints import MemoryCheckpoint
from tavola.clock import SYSTEM_CLOCK, monotonic
from tavola.patterns import MarkCheckpoint, Projected, ProjectionFailed, ProjectionMark, Rebuilt
from tavola.web import describe_frames

State = Literal["stopped", "starting", "rebuilding", "following", "failing"]

BACKOFF_S = 0.2
BACKOFF_MAX_S = 30.0
BATCH_PAUSE_S = 0.05  # between two batches: larger batches cost less per change
LOG_INTERVAL_S = 300.0  # between two log lines about one continuing failure
FLUSH_S = 1.0  # between two writes
FLUSH_IDLE_S = 3_600.0  # the same while only marks changed: each write is a change of their table again

_log = logging.getLogger("tavola.apps")


class StreamProjector(Protocol):
    """What a follower runs: a `Projector` on an `AsyncConnection`, or an object with the same methods."""

    name: str

    def apply(self, records: Iterable[Any], /) -> Coroutine[Any, Any, Projected]:
        """Apply changes to the numbers."""
        ...

    def rebuild(self) -> Coroutine[Any, Any, Rebuilt]:
        """Correct the numbers to agree with the table."""
        ...


class StreamSwitchedOff(StreamError):
    """The table's stream was switched off, so later writes cannot be followed."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"The stream of {table} is disabled, so new changes are not counted; enable it again, and the numbers are rebuilt"
        )


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


class Follower:
    """Applies a table's stream to a projector: `async with Follower(numbers, Desk, db): …`.

    `generation` grows whenever the numbers change, so that values computed from them can be cached until then. The checkpoint is
    stored beside the projector's marks; `checkpoint` is a file to use where the projector has none or the item may not be written.
    """

    def __init__(
        self,
        projector: StreamProjector,
        table: type[Table],
        db: AsyncConnection,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        poll_s: float = 0.5,
        clock: Clock = SYSTEM_CLOCK,
        name: str | None = None,
    ) -> None:
        self.projector = projector
        self.table = table
        self.db = db
        self.poll_s = poll_s
        self.clock = clock
        self.name = name or projector.name
        self.state: State = "stopped"
        self.error: Exception | None = None  # the current failure, until the next success
        self.generation = 0
        self.changes_counted = 0
        self.failures = 0
        self._checkpoint = FollowerCheckpoint(db, _mark_class(projector), projector.name, checkpoint)
        self._task: asyncio.Task[None] | None = None
        self._subscription: AsyncSubscription | None = None
        self._stopping = False
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()  # set after a poll, a failure and the end, then replaced
        self._polls = 0  # how often the end of the stream was reached
        self._behind_since_s: float | None = None  # time of the oldest change that is not applied yet
        self._up_to_date_s: float | None = None  # when the end of the stream was last reached, or the start
        self._checkpoint_error: Exception | None = None  # why the checkpoint was not stored last time
        self._logged_s: float | None = None  # when the current failure was last logged

    @property
    def lag_s(self) -> float:
        """Age of the oldest change that is not applied yet; 0 if none is waiting.

        While it is not following, that age is unknown, and this is the time since the end of the stream was last reached, or since
        the start.
        """
        since_s = self._behind_since_s
        if since_s is None and self.state not in ("following", "stopped"):
            since_s = self._up_to_date_s
        return 0.0 if since_s is None else max(0.0, self.clock.now() - since_s)

    @property
    def running(self) -> bool:
        """Whether the task runs, be it applying changes or waiting to retry."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start the task on the running loop."""
        assert self._task is None, "a follower is started once"
        self._stopping = False
        self.state = "starting"
        self._up_to_date_s = self.clock.now()
        self._task = asyncio.create_task(self._run(), name=f"follower {self.name}")

    async def stop(self) -> None:
        """Stop the task after the batch that is being applied; its failures are not raised again."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        self._wake.set()
        try:
            await task
            await self._store_checkpoint(now=True)
        finally:
            self.state = "stopped"
            self._announce_progress()

    async def catch_up(self, *, fail_fast: bool = False) -> None:
        """Wait until every change written before this call is applied, or the task has ended.

        With `fail_fast`, a failure is raised here instead of waiting until a retry succeeds.
        """
        target = self._polls + 2  # the poll under way may have begun before this call
        while self.running and self._polls < target:
            if fail_fast and self.error is not None:
                raise self.error
            self._wake.set()
            await self._progress.wait()

    async def skip_to_end(self) -> None:
        """Store a checkpoint at the end of the stream: the numbers already include everything; only before `start`."""
        assert self._task is None, "a running follower has its own checkpoint"
        await self._checkpoint.discard()
        subscription = await self.db.subscribe(self.table, checkpoint=self._checkpoint, follow=False)
        subscription.close()
        self._checkpoint.complete = True
        await self._checkpoint.flush(now=True)

    def wake(self) -> None:
        """Poll now instead of at the next interval."""
        self._wake.set()

    async def __aenter__(self) -> Follower:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # The task.

    async def _run(self) -> None:
        attempt = 0
        try:
            while not self._stopping:
                polls = self._polls
                try:
                    await self._follow()
                except (RecordsLost, CheckpointRefused) as error:
                    _log.warning(
                        "%s: %s; rebuilding its numbers from the table", self.name, describe_cause(error)
                    )
                    attempt = attempt + 1 if self._polls == polls else 0
                    await self._discard_checkpoint(attempt)
                except Exception as error:  # noqa: BLE001 - any error: a task that ended would never count again
                    self._record_failure(error)
                    attempt = attempt + 1 if self._polls == polls else 1
                    await self._back_off(attempt)
        finally:
            self.state = "stopped"
            self._announce_progress()

    async def _follow(self) -> None:
        subscription = self._subscription or await self._subscribe()
        self._subscription = subscription
        while not self._stopping:
            batch = await subscription.take()
            if self._checkpoint.stream_replaced:
                _log.warning(
                    "%s: the table has a new stream; rebuilding its numbers from the table",
                    self.name,
                )
                await self._rebuild()
            if batch is None:
                await self._wait_at_end(subscription)
            elif await self._apply(batch):
                subscription.acknowledge()
                self._checkpoint.note_changes(batch.changes)
                await self._store_checkpoint()
                await self._pause(BATCH_PAUSE_S)

    async def _subscribe(self) -> AsyncSubscription:
        """Subscribe at the checkpoint; without one, subscribe at the end of the stream and rebuild the numbers."""
        resumed = await self._checkpoint.open()
        subscription = await self.db.subscribe(self.table, checkpoint=self._checkpoint, follow=False)
        if not resumed:
            await self._rebuild()
        await self._store_checkpoint(now=True)
        return subscription

    async def _discard_checkpoint(self, attempt: int) -> None:
        self._subscription = None
        try:
            await self._checkpoint.discard()
        except Exception as error:  # noqa: BLE001 - the next attempt meets the same checkpoint and discards it
            self._record_failure(error)
        if attempt > 1:
            await self._back_off(attempt)

    async def _rebuild(self) -> None:
        self.state = "rebuilding"
        await self.projector.rebuild()
        self._checkpoint.complete, self._checkpoint.stream_replaced = True, False
        self.generation += 1
        self._record_success()

    async def _apply(self, batch: ChangeBatch) -> bool:
        """Apply a batch, retrying until it succeeds; return false if the follower was stopped before."""
        self._behind_since_s = batch.changes[0].at.timestamp()
        attempt = 0
        while not self._stopping:
            try:
                result = await self.projector.apply(batch.changes)
                if result.failed:
                    raise ProjectionFailed(result.failed)
            except Exception as error:  # noqa: BLE001 - of any kind: the batch is tried again
                self._record_failure(error)
                attempt += 1
                await self._back_off(attempt)
            else:
                self._record_success()
                self.changes_counted += len(batch)
                self.generation += 1
                return True
        return False

    async def _wait_at_end(self, subscription: AsyncSubscription) -> None:
        if subscription.ended:
            raise StreamSwitchedOff(self.db.context.name_of(self.table))
        self._behind_since_s = None
        self._up_to_date_s = self.clock.now()
        self._polls += 1
        await self._store_checkpoint()
        self._record_success()
        self._announce_progress()
        await self._pause(self.poll_s)

    async def _store_checkpoint(self, *, now: bool = False) -> None:
        try:
            await self._checkpoint.flush(now=now)
        except Exception as error:  # noqa: BLE001 - a full disk or a denied write does not make the numbers wrong
            self._checkpoint_error = error
            self._record_failure(error)
        else:
            self._checkpoint_error = None

    async def _back_off(self, attempt: int) -> None:
        await self._pause(min(BACKOFF_S * 2 ** min(attempt, 16), BACKOFF_MAX_S))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _announce_progress(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()

    def _record_success(self) -> None:
        if self._checkpoint_error is None:
            self.state, self.error, self._logged_s = "following", None, None

    def _record_failure(self, error: Exception) -> None:
        self.failures += 1
        self.state, self.error = "failing", error
        if self._logged_s is None or monotonic() - self._logged_s >= LOG_INTERVAL_S:
            self._logged_s = monotonic()
            _log.error("%s cannot read its stream: %s; retrying", self.name, describe_cause(error))
        self._announce_progress()


def _mark_class(projector: object) -> type[ProjectionMark] | None:
    mark = getattr(projector, "mark", None)
    return mark if isinstance(mark, type) and issubclass(mark, ProjectionMark) else None


def describe_cause(error: BaseException) -> str:
    """Return what the log says of an error: its message if that quotes no user data, else its type and location."""
    if isinstance(error, ProjectionFailed) and error.failed:
        return f"{len(error.failed)} stream records failed, first: {describe_cause(error.failed[0].error)}"
    if isinstance(error, Fault | StreamError | CheckpointRefused | OSError):
        return f"{type(error).__name__}: {error}"
    return describe_frames(error)
