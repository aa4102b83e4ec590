"""A table's stream as messages for one reader, who may disconnect at any time.

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
from tavola.client.stream_changes import AnyChange, RawChange
from tavola.client.subscriptions import AsyncSubscription, ChangeBatch, RecordsLost
from tavola.clock import monotonic
from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.model.document import TableDesign
from tavola.protocol.instants import parse_instant
from tavola.studio.differences import ItemDifference, compare_items
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.recognition import KeyReading, Recogniser, value_text
from tavola.studio.types import Item

EXPIRY = "time to live"

_CHANGED = ("changedby", "updatedby", "modifiedby", "lastmodifiedby", "lastupdatedby", "editedby", "actor")
_CREATED = ("createdby", "author", "openedby", "reportedby")
_REGION = "aws:rep:updateregion"


class Actors:
    """Tells who changed an item of one table."""

    def __init__(self, design: TableDesign | None, region: str = "") -> None:
        self._region = region
        self._designed = {
            entity.name: {_normalise(field.name): field.attribute for field in entity.fields}
            for entity in (() if design is None else design.entities)
        }

    def actor(
        self, entity: str | None, old: Item | None, new: Item | None, *, expired: bool = False
    ) -> str | None:
        """Return who made a change, None if nothing says so; of a deletion nothing but the record could."""
        if expired:
            return EXPIRY
        if new is None:
            return None
        region = new.get(_REGION, {}).get("S")
        if region and region != self._region:
            return f"replication from {region}"
        # What the design does not know may be in the item all the same.
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


_BYTES_MAX = 1 << 20  # unpacked: a stream keeps some thousand shards at the very most
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
    """Return a checkpoint as a text of letters, digits, - and _."""
    return urlsafe_b64encode(zlib.compress(msgspec.json.encode(document), 6)).decode().rstrip("=")


def decode_position(text: str) -> Mapping[str, Any]:
    """Return the checkpoint that a text holds; refuse one that holds none."""
    try:
        if len(text) > _TEXT_MAX:
            raise ValueError("it is too long")
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(packed, _BYTES_MAX)
        if not unpacking.eof:
            raise ValueError("it ends too early, or never")
        decoded = msgspec.json.decode(plain, type=_StreamPosition)
    except (NotBase64, ValueError, zlib.error, msgspec.DecodeError) as error:
        raise RequestRefused(
            "position-malformed",
            "That is no place in the stream",
            f"The position cannot be read: {error}.",
            'Begin with "latest" or "start", or give a position as it came with a change.',
        ) from error
    document: dict[str, Any] = msgspec.to_builtins(decoded)
    return document


Event = Literal["INSERT", "MODIFY", "REMOVE"]

_EVENTS: dict[str, Event] = {"inserted": "INSERT", "modified": "MODIFY", "removed": "REMOVE"}


@dataclass(frozen=True, slots=True)
class StreamChange:
    """One change of an item, with what it was and what it is as far as the stream has it."""

    event: Event
    entity: str | None
    keys: Item
    parts: tuple[KeyReading, ...]
    old: Item | None
    new: Item | None
    differences: tuple[ItemDifference, ...]
    total: int  # of the differences; not all may be told
    sequence: str
    shard: str
    at: float  # epoch seconds
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes a reader wants; what is empty asks for nothing."""

    events: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()
    prefix: str = ""  # that a key attribute begins with
    after: int = -1  # the sequence number past which
    since_s: float = 0.0


def parse_filter(events: str, entities: str, prefix: str, after: str, since: str) -> ChangeFilter:
    """Return what is wanted by the parameters of a question; lists are separated by commas."""
    named = frozenset(filter(None, (each.strip().upper() for each in events.split(","))))
    strangers = named - set(_EVENTS.values())
    if strangers:
        raise RequestRefused(
            "event-unknown",
            "There is no such event",
            f"{', '.join(sorted(strangers))} is none of INSERT, MODIFY and REMOVE.",
            "Name some of these three, or none for all.",
        )
    if after and not after.isdecimal():
        raise RequestRefused(
            "sequence-malformed",
            "That is no sequence number",
            f"{after!r} is not a number of a change in the stream.",
            "Copy one from a change that was shown.",
        )
    return ChangeFilter(
        named,
        frozenset(filter(None, (each.strip() for each in entities.split(",")))),
        prefix,
        int(after) if after else -1,
        parse_instant(since) / 1_000_000 if since else 0.0,
    )


class ChangeRenderer:
    """Makes changes of one table's records, of those that are wanted."""

    def __init__(self, recogniser: Recogniser, actors: Actors, change_filter: ChangeFilter) -> None:
        self._recogniser = recogniser
        self._actors = actors
        self._wanted = change_filter

    def render(self, change: AnyChange) -> StreamChange | None:
        """Return a change as it is shown; None: it is not wanted."""
        assert isinstance(change, RawChange), (
            "a table that is followed by its name has changes of items alone"
        )
        change_filter, event = self._wanted, _EVENTS[change.kind]
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
        renderer: ChangeRenderer,
        options: FollowOptions,
    ) -> None:
        self._subscription = subscription
        self._checkpoint = checkpoint
        self._losses = losses
        self._teller = renderer
        self._manners = options
        self._told = ""  # the position that the reader was given last
        self._marked_s = monotonic()

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
        """Return a follower from now, from the start of what is kept, or from a checkpoint."""
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
            rendered = self._teller.render(change)
            if rendered is None:
                continue
            pending.add(_encode(rendered), monotonic() + self._manners.gather_s)
            if pending.full:
                place = {"after": change.sequence}
                document = {**before, "shards": {**shards, batch.shard: place}}
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
