"""Turn a table's stream into messages for one reader, each with the position to resume from.

Changes that arrive together are sent together, up to a bound on number and bytes, which keeps up with thousands per second.
The next message is built only after the reader took the last one, so a slow reader slows the follower and nothing
accumulates. Records the stream has lost are reported as a message too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import msgspec

from tavola.client.checkpoints import MemoryCheckpoint
from tavola.client.subscriptions import AsyncSubscription, ChangeBatch, RecordsLost
from tavola.clock import monotonic
from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.studio.changes.positions import encode_position
from tavola.studio.changes.records import ChangeRenderer
from tavola.studio.problems import problem_of

CHANGES_MAX = 500
BYTES_MAX = 512 * 1024

MessageEvent = Literal["hello", "changes", "position", "gap", "over", "problem", "beat"]
StartPosition: TypeAlias = Literal["latest", "start"] | Mapping[str, Any]  # or a checkpoint

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """How a follower goes about it, in seconds."""

    poll_s: float = 0.5
    gather_s: float = 0.05  # how long changes wait for others to be told with
    beat_s: float = 10.0  # how long a silence lasts before a sign of life
    changes_max: int = CHANGES_MAX  # of one message
    mark_s: float = 1.0  # how often at most a position is told that no wanted change goes with


@dataclass(frozen=True, slots=True)
class StreamGap:
    """Changes that the stream no longer has: some may be missing here."""

    loss: Literal["trimmed", "gone", "ahead"]
    shard: str
    after: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """Something for the reader, and the position to go on from once it has it."""

    event: MessageEvent
    data: bytes = b"{}"
    position: str | None = None
    full: bool = False  # it holds as many changes as it may, and the next one goes on


class StreamFollower:
    """A table's stream for one reader; `open` makes it, `messages` ends it when its reader goes."""

    def __init__(
        self,
        subscription: AsyncSubscription,
        checkpoint: MemoryCheckpoint,
        losses: list[RecordsLost],
        teller: ChangeRenderer,
        manners: FollowOptions,
    ) -> None:
        self._subscription = subscription
        self._checkpoint = checkpoint
        self._losses = losses
        self._teller = teller
        self._manners = manners
        self._told = ""  # the position that the reader was given last
        self._marked_s = monotonic()

    @classmethod
    async def open(
        cls,
        db: AsyncConnection,
        table: str,
        teller: ChangeRenderer,
        *,
        start: StartPosition,
        manners: FollowOptions,
        follow: bool = True,
    ) -> StreamFollower:
        """Return a follower from now, from the start of what is kept, or from a checkpoint."""
        checkpoint = MemoryCheckpoint(None if isinstance(start, str) else start)
        losses: list[RecordsLost] = []
        subscription = await db.subscribe(
            table,
            from_="start" if start == "start" else "now",
            checkpoint=checkpoint,
            follow=follow,
            on_loss=losses.append,
            poll_s=manners.poll_s,
        )
        return cls(subscription, checkpoint, losses, teller, manners)

    @property
    def position(self) -> str:
        """The place after everything that was taken from the stream."""
        assert self._checkpoint.checkpoint is not None, "a subscription that has begun has a place"
        return encode_position(self._checkpoint.checkpoint)

    async def messages(self) -> AsyncGenerator[StreamMessage, None]:
        """Yield messages until the stream is over or the reader goes; no task outlives it."""
        taking: asyncio.Task[ChangeBatch | None] | None = None
        pending = _Pending(self._manners.changes_max)
        try:
            yield self._marked(StreamMessage("hello"))
            while True:
                if taking is None:
                    taking = asyncio.create_task(self._subscription.take())
                await asyncio.wait({taking}, timeout=self._patience(pending))
                for gap in self._gaps():
                    yield gap
                silent = not taking.done()
                if not silent:
                    batch, taking = taking.result(), None
                    if batch is None:
                        break
                    for message in self._split(pending, batch):
                        yield message
                if pending.changes:
                    if monotonic() >= pending.due_s:
                        yield self._marked(pending.flush(self.position))
                elif (mark := self._mark()) is not None:
                    yield mark
                elif silent:
                    yield StreamMessage("beat")
            if pending.changes:
                yield self._marked(pending.flush(self.position))
            yield StreamMessage("over", position=self.position)
        except TavolaError as error:
            yield StreamMessage("problem", _encode(problem_of(error)))
        finally:
            self._subscription.close()
            if taking is not None:
                taking.cancel()
                with suppress(asyncio.CancelledError, TavolaError):
                    await taking

    def _patience(self, pending: _Pending) -> float:
        """Return how long to wait for more before something is said."""
        if pending.changes:
            return max(0.0, pending.due_s - monotonic())
        return self._manners.beat_s

    def _split(self, pending: _Pending, batch: ChangeBatch) -> list[StreamMessage]:
        """Put a batch to what is pending; return the messages that are full, each with its own position."""
        before = self._checkpoint.checkpoint or {}
        shards = before.get("shards", {})
        full: list[StreamMessage] = []
        for change in batch:
            told = self._teller.render(change)
            if told is None:
                continue
            pending.add(_encode(told), monotonic() + self._manners.gather_s)
            if pending.full:
                place = {"after": change.sequence}
                document = {**before, "shards": {**shards, batch.shard: place}}
                full.append(replace(pending.flush(encode_position(document)), full=True))
        self._subscription.acknowledge()
        return full

    def _gaps(self) -> list[StreamMessage]:
        told = [
            StreamMessage("gap", _encode(StreamGap(lost.loss, lost.shard, lost.after, str(lost))))
            for lost in self._losses
        ]
        self._losses.clear()
        return told

    def _mark(self) -> StreamMessage | None:
        """Return the position alone where it has moved without a change that is wanted, now and then."""
        if monotonic() - self._marked_s < self._manners.mark_s or self.position == self._told:
            return None
        return self._marked(StreamMessage("position"))

    def _marked(self, message: StreamMessage) -> StreamMessage:
        self._told = message.position or self.position
        self._marked_s = monotonic()
        return replace(message, position=self._told)


class _Pending:
    """Changes that wait for others, encoded."""

    def __init__(self, changes_max: int) -> None:
        self.changes: list[bytes] = []
        self._changes_max = changes_max
        self.due_s = 0.0
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether a message should hold no more."""
        return len(self.changes) >= self._changes_max or self._bytes >= BYTES_MAX

    def add(self, change: bytes, due_s: float) -> None:
        """Add a change; the first says when they are told at the latest."""
        if not self.changes:
            self.due_s = due_s
        self.changes.append(change)
        self._bytes += len(change)

    def flush(self, position: str) -> StreamMessage:
        """Return a message of what is there, and begin anew."""
        data = b'{"changes":[' + b",".join(self.changes) + b"]}"
        self.changes, self._bytes, self.due_s = [], 0, 0.0
        return StreamMessage("changes", data, position)
