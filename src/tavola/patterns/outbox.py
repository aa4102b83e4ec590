"""Outbox: events written in the same transaction as a change, and published afterwards in order.

    outbox = Outbox(db, Outgoing, Relaying, Outgoing.Waiting)

    with db.transaction() as writes:
        writes.update(Ticket.Key(ticket_id="t1"), Ticket.status.set("closed"))
        outbox.add(writes, "ticket/t1", Message("closed", {"by": "ada"}))

    outbox.relay(publish)          # in another process, again and again

Publishing directly would lose an event if the process died after the change, or announce a change that failed. Here the
change and its event are one transaction. The unpublished events of an aggregate are a list in one item, so they are in commit
order and numbered without gaps:

    transaction ──► OUTBOX#ticket/t1  [7: opened, 8: closed]  ──relay──► publish 7, 8 ──► remove 7, 8

A relay publishes from the front of the list, then removes what it published. If it dies in between, an event is published
again with the same number, which lets a consumer recognize the repetition. Aggregates are spread over shards; a lease gives each
shard to one relay at a time, and its fence keeps a relay that was presumed dead from removing anything.

Cost: one extra write per change, one write per published batch, one index query per shard and round. What it gives up: delivery
is at least once, and one item limits an aggregate's backlog to 400 KB.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from zlib import crc32

from pydantic import BaseModel, JsonValue

from tavola.client.connection import AsyncConnection, Transaction
from tavola.client.errors import ConditionFailed
from tavola.client.transactions import Intents, TransactionCancelled
from tavola.client.writes import Intent
from tavola.model import Attr, Change, Condition, Entity, Query, attr
from tavola.patterns.recipe import (
    D_co,
    PatternError,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    check_expires_with,
    key_class,
    query_class,
    recipe_method,
    run_blocking,
    sleep,
    write_together,
)


@dataclass(frozen=True, slots=True)
class Message:
    """An event to publish: its kind and a JSON payload."""

    kind: str
    payload: JsonValue = None


class StoredMessage(BaseModel):
    """A message that waits to be published."""

    message_id: str
    kind: str
    payload: JsonValue = None
    at: datetime


class OutgoingEvents(Entity):
    """The unpublished events of one aggregate; give it a table, a key of aggregate, and a query by shard."""

    aggregate: Attr[str]
    shard: Attr[int | None] = attr(default=None)  # None: no event waits
    published: Attr[int] = attr(default=0)  # in total
    fence: Attr[int] = attr(default=0)  # of the last relay that removed events
    messages: Attr[list[StoredMessage]] = attr(default_factory=list)


class RelayLease(Entity):
    """The right to publish the events of one shard; give it a table and a key of shard."""

    shard: Attr[int]
    holder: Attr[str]
    fence: Attr[int]  # grows with every holder, across all shards
    until: Attr[datetime]


class PublishedEvent(Entity):
    """A published event, stored for a while; give it a table and a key of aggregate and number."""

    aggregate: Attr[str]
    number: Attr[int]
    message_id: Attr[str]
    kind: Attr[str]
    payload: Attr[JsonValue] = attr(default=None)
    at: Attr[datetime]
    expires: Attr[datetime | None] = attr(default=None)


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """An event as a publisher receives it."""

    aggregate: str
    number: int  # 1, 2, 3 … within its aggregate, without gaps, in commit order
    message_id: str
    kind: str
    payload: Any
    at: datetime  # when it was written
    fence: int  # grows with every relay: a receiver may refuse a lower one than it has seen

    @property
    def dedup_id(self) -> str:
        """An identifier that is unique to this event and the same in every repetition."""
        return f"{self.aggregate}/{self.number}"


@dataclass(frozen=True, slots=True)
class Unpublished:
    """An event that the publisher refused; the next round retries it before those after it."""

    event: OutboxEvent
    error: Exception


@dataclass(frozen=True, slots=True)
class Relayed:
    """The result of one relay round."""

    published: int = 0
    failed: tuple[Unpublished, ...] = ()
    shards: tuple[int, ...] = ()  # that this relay held


def events_in(row: OutgoingEvents, fence: int) -> list[OutboxEvent]:
    """Return the events of a row with their numbers."""
    return [
        OutboxEvent(
            row.aggregate,
            row.published + position,
            message.message_id,
            message.kind,
            message.payload,
            message.at,
            fence,
        )
        for position, message in enumerate(row.messages, start=1)
    ]


O = TypeVar("O", bound=OutgoingEvents)  # noqa: E741 - one letter, as its kin have
L = TypeVar("L", bound=RelayLease)

SHARDS_MAX = 100
# Events published before they are removed from the list: a crash may repeat this many of one aggregate.
CUT_MAX = 20
ROUND_MAX = 500  # events of one aggregate per round, so that the others get their turn

Removal: TypeAlias = Literal["cleared", "removed", "lost"]

_log = logging.getLogger("tavola.patterns")


class RelaySuperseded(PatternError):
    """A relay whose shard another relay has taken over; no event is lost."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        super().__init__(f"Another relay has taken over shard {shard}; this one stops there")


@dataclass(slots=True)
class _HeldLease:
    """A lease that this relay holds."""

    shard: int
    fence: int
    until: datetime
    published: int = 0
    failed: list[Unpublished] = field(default_factory=list)


class Outbox(Recipe[D_co], Generic[D_co, O, L]):
    """Events by aggregate, and the relay that publishes them.

    `waiting` is a sparse query class with the argument shard and the sort part aggregate. Each aggregate belongs
    to one of `shards` shards, and each shard to one relay at a time, until `lease_for` after its last sign of life.
    After lowering `shards`, set `reading` to the former number, so that relays still read all of them. At most
    `backlog` events of an aggregate wait; beyond that its changes are refused until a relay has caught up. With
    `archive`, published events are stored for `keep`.
    """

    def __init__(
        self,
        db: D_co,
        outgoing: type[O],
        lease: type[L],
        waiting: type[Query[O]],
        *,
        shards: int = 1,
        reading: int | None = None,
        lease_for: timedelta = timedelta(seconds=30),
        backlog: int = 200,
        archive: type[PublishedEvent] | None = None,
        keep: timedelta = timedelta(days=7),
    ) -> None:
        super().__init__(db)
        self.outgoing = outgoing
        self.lease = lease
        self.waiting = query_class(outgoing, waiting, "shard", sorts=("aggregate",))
        self.key = key_class(outgoing, "aggregate")
        self.lease_key = key_class(lease, "shard")
        if not 1 <= shards <= SHARDS_MAX or (reading or shards) < shards:
            raise RecipeRefused(
                outgoing.__name__, f"{shards} shards are outside 1 to {SHARDS_MAX}, or more than are read"
            )
        if lease_for < timedelta(seconds=1):
            raise RecipeRefused(
                lease.__name__, f"a lease of {lease_for} is too short; use at least one second"
            )
        if archive is not None:
            key_class(archive, "aggregate", "number")
            check_expires_with(archive, "expires")
        self.shards = shards
        self.reading = reading or shards
        self.lease_for = lease_for
        self.backlog = backlog
        self.archive = archive
        self.keep = keep
        self.holder = self.entropy.uuid()

    def add(self, writes: Intents, aggregate: str, *messages: Message) -> Intent[O]:
        """Add messages about an aggregate to a transaction, in order; call it once per aggregate and transaction.

        It reads nothing. If too many events wait already, the transaction is cancelled and the returned intent is among
        the failed ones.
        """
        if not messages:
            raise RecipeRefused(f"{self.outgoing.__name__}.add", "no message is given; give Message(…)")
        at = self._now()
        stored = [
            StoredMessage(message_id=self.entropy.uuid(), kind=message.kind, payload=message.payload, at=at)
            for message in messages
        ]
        outgoing = self.outgoing
        has_capacity = outgoing.messages.not_exists() | (
            outgoing.messages.size() <= self.backlog - len(stored)
        )
        return writes.update(
            self.key(aggregate=aggregate),
            outgoing.messages.append(*stored),
            outgoing.shard.set(crc32(aggregate.encode()) % self.shards),
            create=True,
            when=has_capacity,
        )

    @recipe_method
    def relay(
        self, publish: Callable[[OutboxEvent], Any], *, shards: Iterable[int] | None = None
    ) -> PatternProgram[Relayed]:
        """Publish the waiting events, in order within each aggregate, and return the result of this round.

        An event is published when `publish` returns. If it raises, its aggregate waits for the next round
        and the others go on. Shards that another relay holds are skipped.
        """
        return (yield from self._round(publish, range(self.reading) if shards is None else shards))

    @recipe_method
    def run(
        self,
        publish: Callable[[OutboxEvent], Any],
        *,
        shards: Iterable[int] | None = None,
        every_s: float = 1.0,
        until: Callable[[], bool] = lambda: False,
    ) -> PatternProgram[int]:
        """Relay repeatedly, pausing after a round without events, until `until` is true; return how many were published."""
        read_shards = tuple(range(self.reading) if shards is None else shards)
        published = 0
        while not until():
            done = yield from self._round(publish, read_shards)
            published += done.published
            if not done.published:
                yield from sleep(every_s)
        return published

    @recipe_method
    def waiting_in(self, aggregate: str) -> PatternProgram[list[OutboxEvent]]:
        """Return the waiting events of an aggregate, in order."""
        row = yield from self._row(aggregate)
        return [] if row is None else events_in(row, row.fence)

    @recipe_method
    def discard(self, aggregate: str, number: int) -> PatternProgram[OutboxEvent]:
        """Drop the next event of an aggregate, because it cannot be published, and return it.

        Only the next event can be dropped: refuse any other number.
        """
        row = yield from self._row(aggregate)
        events = [] if row is None else events_in(row, row.fence)
        if row is None or not events or events[0].number != number:
            next_ = events[0].number if events else "none"
            raise RecipeRefused(
                f"{aggregate} number {number}", f"it is not the next to be published, which is {next_}"
            )
        if (yield from self._remove_published(row, events[:1], row.fence)) == "lost":
            raise RecipeRefused(f"{aggregate} number {number}", "a relay has published it in this moment")
        return events[0]

    # A round.

    def _round(self, publish: Callable[[OutboxEvent], Any], shards: Iterable[int]) -> PatternProgram[Relayed]:
        turns: list[_HeldLease] = []
        for shard in shards:
            turn = yield from self._take_shard(shard)
            if turn is None:
                continue
            turns.append(turn)
            try:
                yield from self._relay_shard(turn, publish)
            except RelaySuperseded as error:
                _log.warning("%s", error)
            else:
                yield from self._release_shard(turn)
        failed = tuple(failure for turn in turns for failure in turn.failed)
        for failure in failed:
            _log.warning(
                "%s cannot be published: %r; it is tried again", failure.event.dedup_id, failure.error
            )
        return Relayed(sum(turn.published for turn in turns), failed, tuple(turn.shard for turn in turns))

    def _relay_shard(self, turn: _HeldLease, publish: Callable[[OutboxEvent], Any]) -> PatternProgram[None]:
        cursor: str | None = None
        while True:
            query, start = self.waiting(shard=turn.shard), cursor
            page = yield from call_client(lambda db: db.query(query, cursor=start, limit=100))  # noqa: B023 - called at once
            for row in page.items:
                yield from self._relay_aggregate(turn, row.aggregate, publish)
            cursor = page.cursor
            if cursor is None:
                return

    def _relay_aggregate(
        self, turn: _HeldLease, aggregate: str, publish: Callable[[OutboxEvent], Any]
    ) -> PatternProgram[None]:
        """Publish the waiting events of one aggregate until one fails."""
        done = 0
        while done < ROUND_MAX:
            row = yield from self._row(aggregate)
            if row is None or row.shard is None:
                return  # the index was behind
            if row.fence > turn.fence:
                raise RelaySuperseded(turn.shard)
            events = events_in(row, turn.fence)[:CUT_MAX]
            published: list[OutboxEvent] = []
            for event in events:
                yield from self._check_lease(turn)
                try:
                    yield from self._publish(publish, event)
                except Exception as error:  # noqa: BLE001 - a publisher may raise anything
                    turn.failed.append(Unpublished(event, error))
                    break
                published.append(event)
            turn.published += len(published)
            done += len(published)
            removal: Removal = "removed"
            if published or not events:
                removal = yield from self._remove_published(row, published, turn.fence)
            if removal == "cleared" or len(published) < len(events):
                return

    def _publish(self, publish: Callable[[OutboxEvent], Any], event: OutboxEvent) -> PatternProgram[None]:
        """Publish one event; with an event loop, a plain function runs in a thread."""
        if isinstance(self.db, AsyncConnection):
            if inspect.iscoroutinefunction(publish):
                yield from call_client(lambda db: publish(event))
                return
            answer = yield from run_blocking(lambda: publish(event))
            if inspect.isawaitable(answer):
                yield from call_client(lambda db: answer)
            return
        answer = yield from call_client(lambda db: publish(event))
        if inspect.iscoroutine(answer):
            answer.close()
            raise RecipeRefused(
                "publish", "it is a coroutine function; pass a plain function, or use connect_async"
            )

    def _remove_published(self, row: O, published: list[OutboxEvent], fence: int) -> PatternProgram[Removal]:
        """Remove published events from the front of the list, and the aggregate from its shard if none is left.

        Events added meanwhile stay, and so does the aggregate. "lost": another relay has removed the events.
        """
        outgoing = self.outgoing
        changes: list[Change[O]] = [outgoing.fence.set(fence)]
        changes += [outgoing.published.add(len(published))] if published else []
        for position in range(len(published)):
            changes.append(outgoing.messages[position].remove())  # type: ignore[misc, arg-type]  # a list element
        mine = outgoing.fence.not_exists() | (outgoing.fence <= fence)
        same = outgoing.published == row.published
        if row.published == 0:
            same = same | outgoing.published.not_exists()
        if len(published) == len(row.messages):
            is_complete = outgoing.messages.size() == len(row.messages)
            if not row.messages:
                is_complete = is_complete | outgoing.messages.not_exists()
            when = mine & same & is_complete
            if (yield from self._write(row, [*changes, outgoing.shard.remove()], when, published)):
                return "cleared"
        if published and (yield from self._write(row, changes, mine & same, published)):
            return "removed"
        return "lost"

    def _write(
        self, row: O, changes: list[Change[O]], when: Condition[O], published: list[OutboxEvent]
    ) -> PatternProgram[bool]:
        """Change a row and archive the published events; return whether the condition held."""
        key = self.key(aggregate=row.aggregate)
        archive = self.archive
        expires = self._now().replace(microsecond=0) + self.keep

        def fill(writes: Transaction) -> None:
            writes.update(key, *changes, when=when)
            for event in published if archive is not None else ():
                assert archive is not None
                writes.put(
                    archive(
                        aggregate=event.aggregate,
                        number=event.number,
                        message_id=event.message_id,
                        kind=event.kind,
                        payload=event.payload,
                        at=event.at,
                        expires=expires,
                    )
                )

        try:
            if archive is None:
                yield from call_client(lambda db: db.update(key, *changes, when=when))
            else:
                yield from write_together(fill)
        except ConditionFailed:
            return False
        except TransactionCancelled as error:
            if not any(
                reason.kind in ("condition", "missing") for reason in error.reasons if reason is not None
            ):
                raise
            return False
        return True

    def _row(self, aggregate: str) -> PatternProgram[O | None]:
        key = self.key(aggregate=aggregate)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    # Leases.

    def _take_shard(self, shard: int) -> PatternProgram[_HeldLease | None]:
        """Take over a free shard; return None if another relay holds it."""
        key = self.lease_key(shard=shard)
        current = yield from call_client(lambda db: db.get(key, consistent=True))
        now = self._now()
        if current is not None and current.until > now and current.holder != self.holder:
            return None
        fence = max(int(now.timestamp() * 1000), 0 if current is None else current.fence + 1)
        lease = self.lease(shard=shard, holder=self.holder, fence=fence, until=now + self.lease_for)
        free = self.lease.fence.not_exists() if current is None else self.lease.fence == current.fence
        try:
            yield from call_client(lambda db: db.put(lease, when=free))
        except ConditionFailed:
            return None
        return _HeldLease(shard, fence, lease.until)

    def _check_lease(self, turn: _HeldLease) -> PatternProgram[None]:
        """Renew the lease of a shard in its second half; raise `RelaySuperseded` if another relay holds it."""
        now = self._now()
        if now < turn.until - self.lease_for / 2:
            return
        until = now + self.lease_for
        key = self.lease_key(shard=turn.shard)
        try:
            yield from call_client(
                lambda db: db.update(key, self.lease.until.set(until), when=self.lease.fence == turn.fence)
            )
        except ConditionFailed:
            raise RelaySuperseded(turn.shard) from None
        turn.until = until

    def _release_shard(self, turn: _HeldLease) -> PatternProgram[None]:
        """Give up a shard; if another relay holds it by now, do nothing."""
        key = self.lease_key(shard=turn.shard)
        expired = self.lease.until.set(self._now())
        try:
            yield from call_client(lambda db: db.update(key, expired, when=self.lease.fence == turn.fence))
        except ConditionFailed:
            pass

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)
