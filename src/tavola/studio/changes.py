"""A table's stream as messages for one client, which may disconnect at any time.

Holds stream positions, changes as the page shows them, and the follower that turns a subscription into messages. Knows no
HTTP: a message has an event, a position and data.
"""

from __future__ import annotations

import asyncio
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import msgspec

from tavola.client.checkpoints import MemoryCheckpoint
from tavola.client.connection import AsyncConnection
from tavola.client.stream_changes import AnyChange, RawChange
from tavola.client.subscriptions import AsyncSubscription, ChangeBatch, RecordsLost
from tavola.clock import monotonic
from tavola.errors import TavolaError
from tavola.model.document import TableDesign
from tavola.protocol.instants import parse_instant
from tavola.studio.differences import ItemDifference, compare_items
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.recognition import KeyReading, Recogniser, value_text
from tavola.studio.types import Item

EXPIRY = "TTL"

_CHANGED = ("changedby", "updatedby", "modifiedby", "lastmodifiedby", "lastupdatedby", "editedby", "actor")
_CREATED = ("createdby", "author", "openedby", "reportedby")
_REGION = "aws:rep:updateregion"


class Actors:
    """Finds out who changed an item of one table."""

    def __init__(self, design: TableDesign | None, region: str = "") -> None:
        self._region = region
        self._designed = {
            entity.name: {_normalise(field.name): field.attribute for field in entity.fields}
            for entity in (() if design is None else design.entities)
        }

    def actor(
        self, entity: str | None, old: Item | None, new: Item | None, *, expired: bool = False
    ) -> str | None:
        """Return who made a change; None if neither the item nor the stream record says so."""
        if expired:
            return EXPIRY
        if new is None:
            return None
        region = new.get(_REGION, {}).get("S")
        if region and region != self._region:
            return f"replication from {region}"
        # The item may have such an attribute even if the design does not declare it.
        names = {_normalise(name): name for name in new} | self._designed.get(entity or "", {})
        return _first_value(new, names, _CHANGED if old is not None else (*_CHANGED, *_CREATED))


def _first_value(item: Item, names: dict[str, str], field_names: Iterable[str]) -> str | None:
    for name in field_names:
        value = item.get(names.get(name, ""), {}).get("S")
        if value:
            return str(value)
    return None


def _normalise(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


_BYTES_MAX = 1 << 20  # decompressed: a stream has a few thousand shards at most
_TEXT_MAX = 256 * 1024


class _ShardPosition(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    after: str | None = None
    since: float | None = None
    finished: bool = False


class _StreamPosition(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    table: str
    stream: str
    shards: dict[str, _ShardPosition]


def encode_position(document: Mapping[str, Any]) -> str:
    """Return a checkpoint as URL-safe text."""
    return urlsafe_b64encode(zlib.compress(msgspec.json.encode(document), 6)).decode().rstrip("=")


def decode_position(text: str) -> Mapping[str, Any]:
    """Return the checkpoint encoded in a text; refuse an invalid one."""
    try:
        if len(text) > _TEXT_MAX:
            raise ValueError("it is too long")
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(packed, _BYTES_MAX)
        if not unpacking.eof:
            raise ValueError("it is truncated or too long")
        decoded = msgspec.json.decode(plain, type=_StreamPosition)
    except (NotBase64, ValueError, zlib.error, msgspec.DecodeError) as error:
        raise RequestRefused(
            "position-malformed",
            "Invalid stream position",
            f"The position cannot be decoded: {error}.",
            'Use "latest", "start", or a position from an earlier response.',
        ) from error
    document: dict[str, Any] = msgspec.to_builtins(decoded)
    return document


Event = Literal["INSERT", "MODIFY", "REMOVE"]

_EVENTS: dict[str, Event] = {"inserted": "INSERT", "modified": "MODIFY", "removed": "REMOVE"}


@dataclass(frozen=True, slots=True)
class StreamChange:
    """One change of an item, with its old and new images if the stream has them."""

    event: Event
    entity: str | None
    keys: Item
    parts: tuple[KeyReading, ...]
    old: Item | None
    new: Item | None
    differences: tuple[ItemDifference, ...]
    total: int  # number of differences, including those left out
    sequence: str
    shard: str
    at: float  # epoch seconds
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Filters of changes; empty ones match everything."""

    events: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()
    prefix: str = ""  # of a key attribute
    after: int = -1  # a sequence number
    since_s: float = 0.0


def parse_filter(events: str, entities: str, prefix: str, after: str, since: str) -> ChangeFilter:
    """Return the filter in a request's parameters; lists are comma-separated."""
    named = frozenset(filter(None, (name.strip().upper() for name in events.split(","))))
    unknown = named - set(_EVENTS.values())
    if unknown:
        raise RequestRefused(
            "event-unknown",
            "Unknown event",
            f"{', '.join(sorted(unknown))} is not one of INSERT, MODIFY and REMOVE.",
            "Choose among these three, or leave the filter empty.",
        )
    if after and not after.isdecimal():
        raise RequestRefused(
            "sequence-malformed",
            "Invalid sequence number",
            f"{after!r} is not a number.",
            "Copy a sequence number from a change.",
        )
    return ChangeFilter(
        named,
        frozenset(filter(None, (name.strip() for name in entities.split(",")))),
        prefix,
        int(after) if after else -1,
        parse_instant(since) / 1_000_000 if since else 0.0,
    )


class ChangeRenderer:
    """Renders the changes of one table that match a filter."""

    def __init__(self, recogniser: Recogniser, actors: Actors, change_filter: ChangeFilter) -> None:
        self._recogniser = recogniser
        self._actors = actors
        self._filter = change_filter

    def render(self, change: AnyChange) -> StreamChange | None:
        """Return a change for display; None if the filter excludes it."""
        assert isinstance(change, RawChange), "subscribing by table name yields raw changes"
        change_filter, event = self._filter, _EVENTS[change.kind]
        if change_filter.events and event not in change_filter.events:
            return None
        if int(change.sequence) <= change_filter.after or change.at.timestamp() < change_filter.since_s:
            return None
        if change_filter.prefix and not any(
            value_text(value).startswith(change_filter.prefix) for value in change.keys.values()
        ):
            return None
        image = {**change.keys, **(change.new or change.old or {})}
        entity = self._recogniser.recognise(image).entity
        if change_filter.entities and (entity or "") not in change_filter.entities:
            return None
        complete = event != "MODIFY" or (change.old is not None and change.new is not None)
        compared = compare_items(change.old, change.new) if complete else compare_items(None, None)
        return StreamChange(
            event=event,
            entity=entity,
            keys=change.keys,
            parts=self._recogniser.parse_keys(image),
            old=change.old,
            new=change.new,
            differences=compared.differences if event == "MODIFY" else (),
            total=compared.total,
            sequence=change.sequence,
            shard=change.origin.shard or "",
            at=change.at.timestamp(),
            actor=self._actors.actor(entity, change.old, change.new, expired=change.expired),
        )


CHANGES_MAX = 500
BYTES_MAX = 512 * 1024

MessageEvent = Literal["hello", "changes", "position", "gap", "over", "problem", "beat"]
StartPosition: TypeAlias = Literal["latest", "start"] | Mapping[str, Any]  # or a checkpoint

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """The timing and batching of a follower."""

    poll_s: float = 0.5
    gather_s: float = 0.05  # how long a change waits for others to share its message
    beat_s: float = 10.0  # silence before a heartbeat
    changes_max: int = CHANGES_MAX  # per message
    mark_s: float = 1.0  # shortest time between messages that only report a position


@dataclass(frozen=True, slots=True)
class StreamGap:
    """A position from which the stream has lost records; changes may be missing."""

    loss: Literal["trimmed", "gone", "ahead"]
    shard: str
    after: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message for the client, and the position to resume from after it."""

    event: MessageEvent
    data: bytes = b"{}"
    position: str | None = None
    full: bool = False  # it has the maximum number of changes, and more follow


class StreamFollower:
    """A table's stream for one client; closed when the generator `messages` is closed."""

    def __init__(
        self,
        subscription: AsyncSubscription,
        checkpoint: MemoryCheckpoint,
        losses: list[RecordsLost],
        renderer: ChangeRenderer,
        options: FollowOptions,
    ) -> None:
        self._subscription = subscription
        self._checkpoint = checkpoint
        self._losses = losses
        self._renderer = renderer
        self._options = options
        self._sent_position = ""
        self._sent_s = monotonic()

    @classmethod
    async def open(
        cls,
        db: AsyncConnection,
        table: str,
        renderer: ChangeRenderer,
        *,
        start: StartPosition,
        options: FollowOptions,
        follow: bool = True,
    ) -> StreamFollower:
        """Return a follower that starts now, at the oldest record, or at a checkpoint."""
        checkpoint = MemoryCheckpoint(None if isinstance(start, str) else start)
        losses: list[RecordsLost] = []
        subscription = await db.subscribe(
            table,
            from_="start" if start == "start" else "now",
            checkpoint=checkpoint,
            follow=follow,
            on_loss=losses.append,
            poll_s=options.poll_s,
        )
        return cls(subscription, checkpoint, losses, renderer, options)

    @property
    def position(self) -> str:
        """The position after all changes read so far."""
        assert self._checkpoint.checkpoint is not None, "a started subscription has a checkpoint"
        return encode_position(self._checkpoint.checkpoint)

    async def messages(self) -> AsyncGenerator[StreamMessage, None]:
        """Yield messages until the stream ends or the generator is closed; leaves no task behind."""
        reading: asyncio.Task[ChangeBatch | None] | None = None
        pending = _Pending(self._options.changes_max)
        try:
            yield self._with_position(StreamMessage("hello"))
            while True:
                if reading is None:
                    reading = asyncio.create_task(self._subscription.take())
                await asyncio.wait({reading}, timeout=self._wait_s(pending))
                for gap in self._gaps():
                    yield gap
                silent = not reading.done()
                if not silent:
                    batch, reading = reading.result(), None
                    if batch is None:
                        break
                    for message in self._split(pending, batch):
                        yield message
                if pending.changes:
                    if monotonic() >= pending.due_s:
                        yield self._with_position(pending.flush(self.position))
                elif self._position_is_due():
                    yield self._with_position(StreamMessage("position"))
                elif silent:
                    yield StreamMessage("beat")
            if pending.changes:
                yield self._with_position(pending.flush(self.position))
            yield StreamMessage("over", position=self.position)
        except TavolaError as error:
            yield StreamMessage("problem", _encode(problem_of(error)))
        finally:
            self._subscription.close()
            if reading is not None:
                reading.cancel()
                with suppress(asyncio.CancelledError, TavolaError):
                    await reading

    def _wait_s(self, pending: _Pending) -> float:
        """Return how long to wait for more changes before sending a message."""
        if pending.changes:
            return max(0.0, pending.due_s - monotonic())
        return self._options.beat_s

    def _split(self, pending: _Pending, batch: ChangeBatch) -> list[StreamMessage]:
        """Add a batch to the pending changes; return the full messages, each with its own position."""
        before = self._checkpoint.checkpoint or {}
        shards = before.get("shards", {})
        full: list[StreamMessage] = []
        for change in batch:
            rendered = self._renderer.render(change)
            if rendered is None:
                continue
            pending.add(_encode(rendered), monotonic() + self._options.gather_s)
            if pending.full:
                document = {**before, "shards": {**shards, batch.shard: {"after": change.sequence}}}
                full.append(replace(pending.flush(encode_position(document)), full=True))
        self._subscription.acknowledge()
        return full

    def _gaps(self) -> list[StreamMessage]:
        messages = [
            StreamMessage("gap", _encode(StreamGap(lost.loss, lost.shard, lost.after, str(lost))))
            for lost in self._losses
        ]
        self._losses.clear()
        return messages

    def _position_is_due(self) -> bool:
        """Return whether to send the position alone: it moved past changes that the filter excludes."""
        return monotonic() - self._sent_s >= self._options.mark_s and self.position != self._sent_position

    def _with_position(self, message: StreamMessage) -> StreamMessage:
        self._sent_position = message.position or self.position
        self._sent_s = monotonic()
        return replace(message, position=self._sent_position)


class _Pending:
    """Encoded changes of the next message."""

    def __init__(self, changes_max: int) -> None:
        self.changes: list[bytes] = []
        self._changes_max = changes_max
        self.due_s = 0.0
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether the message has reached its maximum size."""
        return len(self.changes) >= self._changes_max or self._bytes >= BYTES_MAX

    def add(self, change: bytes, due_s: float) -> None:
        """Add a change; the first one sets the time by which the message is sent."""
        if not self.changes:
            self.due_s = due_s
        self.changes.append(change)
        self._bytes += len(change)

    def flush(self, position: str) -> StreamMessage:
        """Return a message with the changes, and remove them."""
        data = b'{"changes":[' + b",".join(self.changes) + b"]}"
        self.changes, self._bytes, self.due_s = [], 0, 0.0
        return StreamMessage("changes", data, position)
