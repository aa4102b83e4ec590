"""Followers: a task that counts a table's changes as they come, for as long as an application runs.

It goes on where it stopped. Where there is nothing to go on from, or the stream has a gap, it begins to listen first and then
brings the numbers to what the table says, so that nothing falls between. What fails, whatever it is, is told and tried again, later each
time, and no change is passed over.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import Any, Literal, Protocol

from tavola import (
    AsyncConnection,
    AsyncSubscription,
    ChangeBatch,
    CheckpointRefused,
    Clock,
    Fault,
    RecordsLost,
    StreamError,
    Table,
)
from tavola.apps.shell.places import Place, room_in
from tavola.clock import SYSTEM_CLOCK, monotonic
from tavola.patterns import Projected, ProjectionFailed, Rebuilt
from tavola.web import describe_frames

State = Literal["stopped", "starting", "rebuilding", "following", "failing"]

BACKOFF_S = 0.2
BACKOFF_MAX_S = 30.0
GATHER_S = 0.05  # between two batches: changes that are counted together cost less than one after another
SAY_AGAIN_S = 300.0  # between two lines in the log about what goes on failing

_log = logging.getLogger("tavola.apps")


class Projecting(Protocol):
    """What keeps numbers by a stream: a `Projector` on an `AsyncConnection`, or something of the same face."""

    name: str

    def apply(self, records: Iterable[Any], /) -> Coroutine[Any, Any, Projected]:
        """Count changes."""
        ...

    def rebuild(self) -> Coroutine[Any, Any, Rebuilt]:
        """Bring the numbers to what the table says."""
        ...


class Unfollowed(StreamError):
    """A table whose stream is switched off: nobody tells what is written to it."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"The stream of {table} is switched off, and what is written is not counted; switch it on again, and the numbers "
            "are made anew"
        )


class Follower:
    """A projector that follows a table's stream: `async with Follower(numbers, Desk, db): …`.

    `generation` grows whenever numbers changed, so that what is made of them can be kept until then. How far it has read is
    kept beside the projector's marks; `checkpoint` is a file for it where that cannot be.
    """

    def __init__(
        self,
        projector: Projecting,
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
        self.error: Exception | None = None  # what it failed with, for as long as it does
        self.generation = 0
        self.counted = 0
        self.failures = 0
        self._place = Place(db, room_in(projector), projector.name, checkpoint)
        self._task: asyncio.Task[None] | None = None
        self._subscription: AsyncSubscription | None = None
        self._stopping = False
        self._wake = asyncio.Event()
        self._news = asyncio.Event()  # set when it looked, failed or ended; each is waited for once
        self._looks = 0  # how often the stream was read to its end
        self._behind_since_s: float | None = None
        self._whole_at_s: float | None = None  # when it saw the end of the stream last, or was started
        self._unsaved: Exception | None = None  # why its place could not be kept the last time
        self._said_s: float | None = None  # when the log was told of a failure last

    @property
    def lag_s(self) -> float:
        """How old the oldest change is that is not counted yet; 0: none waits.

        Where it cannot know, because it does not follow, since when that is so: the last time that it saw the stream's end, or its start.
        """
        since_s = self._behind_since_s
        if since_s is None and self.state not in ("following", "stopped"):
            since_s = self._whole_at_s
        return 0.0 if since_s is None else max(0.0, self.clock.now() - since_s)

    @property
    def running(self) -> bool:
        """Whether it counts changes, or is about to again."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin to follow, on the running loop."""
        assert self._task is None, "a follower is started once"
        self._stopping = False
        self.state = "starting"
        self._whole_at_s = self.clock.now()
        self._task = asyncio.create_task(self._live(), name=f"follower {self.name}")

    async def stop(self) -> None:
        """End it; a batch under way is counted first, and what it failed with is not raised again."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        self._wake.set()
        try:
            await task
            await self._keep(now=True)
        finally:
            self.state = "stopped"
            self._tell()

    async def catch_up(self, *, patient: bool = True) -> None:
        """Return once everything is counted that was written before this was called, or it does not run any more.

        Who is not patient is told with an error where it fails, and does not wait until that is over.
        """
        wanted = self._looks + 2  # the look that is under way may have begun before
        while self.running and self._looks < wanted:
            if not patient and self.error is not None:
                raise self.error
            self._wake.set()
            await self._news.wait()

    async def begin_here(self) -> None:
        """Note that everything is counted that was written so far, by whoever counted it; for one that does not run."""
        assert self._task is None, "a follower that runs knows where it is"
        await self._place.forget()
        subscription = await self.db.subscribe(self.table, checkpoint=self._place, follow=False)
        subscription.close()
        self._place.whole = True
        await self._place.flush(now=True)

    def wake(self) -> None:
        """Look for changes now and not at the next turn."""
        self._wake.set()

    async def __aenter__(self) -> Follower:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # The task.

    async def _live(self) -> None:
        attempt = 0
        try:
            while not self._stopping:
                looks = self._looks
                try:
                    await self._follow()
                except (RecordsLost, CheckpointRefused) as error:
                    _log.warning(
                        "%s: %s; its numbers are made anew from the table", self.name, cause_of(error)
                    )
                    attempt = attempt + 1 if self._looks == looks else 0
                    await self._begin_anew(attempt)
                except Exception as error:  # noqa: BLE001 - a bug too: who stands still for good counts nothing
                    self._fail(error)
                    attempt = attempt + 1 if self._looks == looks else 1
                    await self._back_off(attempt)
        finally:
            self.state = "stopped"
            self._tell()

    async def _follow(self) -> None:
        subscription = self._subscription or await self._begin()
        self._subscription = subscription
        while not self._stopping:
            batch = await subscription.take()
            if self._place.jumped:
                _log.warning(
                    "%s: the table has another stream now; its numbers are made anew from the table",
                    self.name,
                )
                await self._rebuild()
            if batch is None:
                await self._at_the_end(subscription)
            elif await self._count(batch):
                subscription.acknowledge()
                self._place.took(batch.changes)
                await self._keep()
                await self._pause(GATHER_S)

    async def _begin(self) -> AsyncSubscription:
        """Return a subscription from where the numbers are whole; they are made so where there is no such place."""
        found = await self._place.find()
        subscription = await self.db.subscribe(self.table, checkpoint=self._place, follow=False)
        if not found:
            await self._rebuild()
        await self._keep(now=True)
        return subscription

    async def _begin_anew(self, attempt: int) -> None:
        self._subscription = None
        try:
            await self._place.forget()
        except Exception as error:  # noqa: BLE001 - the next attempt finds the same, and forgets it then
            self._fail(error)
        if attempt > 1:
            await self._back_off(attempt)

    async def _rebuild(self) -> None:
        self.state = "rebuilding"
        await self.projector.rebuild()
        self._place.whole, self._place.jumped = True, False
        self.generation += 1
        self._fine()

    async def _count(self, batch: ChangeBatch) -> bool:
        """Count a batch, however often that takes; false: it was stopped before."""
        self._behind_since_s = batch.changes[0].at.timestamp()
        attempt = 0
        while not self._stopping:
            try:
                done = await self.projector.apply(batch.changes)
                if done.failed:
                    raise ProjectionFailed(done.failed)
            except Exception as error:  # noqa: BLE001 - whatever it is, the batch comes again
                self._fail(error)
                attempt += 1
                await self._back_off(attempt)
            else:
                self._fine()
                self.counted += len(batch)
                self.generation += 1
                return True
        return False

    async def _at_the_end(self, subscription: AsyncSubscription) -> None:
        if subscription.ended:
            raise Unfollowed(self.db.context.name_of(self.table))
        self._behind_since_s = None
        self._whole_at_s = self.clock.now()
        self._looks += 1
        await self._keep()
        self._fine()
        self._tell()
        await self._pause(self.poll_s)

    async def _keep(self, *, now: bool = False) -> None:
        """Keep how far it is; where that cannot be done, it is told, tried again, and no reason not to count."""
        try:
            await self._place.flush(now=now)
        except Exception as error:  # noqa: BLE001 - a full disk, a denied write: the numbers are right all the same
            self._unsaved = error
            self._fail(error)
        else:
            self._unsaved = None

    async def _back_off(self, attempt: int) -> None:
        await self._pause(min(BACKOFF_S * 2 ** min(attempt, 16), BACKOFF_MAX_S))

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _tell(self) -> None:
        """Let those look who wait for news."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _fine(self) -> None:
        if self._unsaved is None:
            self.state, self.error, self._said_s = "following", None, None

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        self.state, self.error = "failing", error
        if self._said_s is None or monotonic() - self._said_s >= SAY_AGAIN_S:  # not at every attempt
            self._said_s = monotonic()
            _log.error("%s cannot be followed: %s; it is tried again", self.name, cause_of(error))
        self._tell()


def cause_of(error: BaseException) -> str:
    """Return what the log says of an error: the sentence of one that holds nothing that was sent, else its kind and place."""
    if isinstance(error, ProjectionFailed) and error.failed:
        return f"{len(error.failed)} records, {cause_of(error.failed[0].error)}"
    if isinstance(error, Fault | StreamError | CheckpointRefused | OSError):
        return f"{type(error).__name__}: {error}"
    return describe_frames(error)
