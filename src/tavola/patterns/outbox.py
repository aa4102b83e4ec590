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
again with the same number, which lets a consumer recognize the repetition. Aggregates are spread over lanes; a lease gives each
lane to one relay at a time, and its fence keeps a relay that was presumed dead from removing anything.

Cost: one extra write per change, one write per published batch, one index query per lane and round. What it gives up: delivery
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

from tavola.client.cancellations import TransactionCancelled
from tavola.client.db import AsyncDb, Transaction
from tavola.client.errors import ConditionFailed
from tavola.client.intents import Intent, Intents
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
    """The unpublished events of one aggregate; give it a table, a key of aggregate, and a query by lane."""

    aggregate: Attr[str]
    lane: Attr[int | None] = attr(default=None)  # None: no event waits
    published: Attr[int] = attr(default=0)  # in total
    fence: Attr[int] = attr(default=0)  # of the last relay that removed events
    messages: Attr[list[StoredMessage]] = attr(default_factory=list)


class RelayLease(Entity):
    """The right to publish the events of one lane; give it a table and a key of lane."""

    lane: Attr[int]
    holder: Attr[str]
    fence: Attr[int]  # grows with every holder, across all lanes
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
    lanes: tuple[int, ...] = ()  # that this relay held


def events_in(row: OutgoingEvents, fence: int) -> list[OutboxEvent]:
    """Return the events of a row with their numbers."""
    return [
        OutboxEvent(
            row.aggregate,
            row.published + place,
            each.message_id,
            each.kind,
            each.payload,
            each.at,
            fence,
        )
        for place, each in enumerate(row.messages, start=1)
    ]


O = TypeVar("O", bound=OutgoingEvents)  # noqa: E741 - one letter, as its kin have
L = TypeVar("L", bound=RelayLease)

LANES_MAX = 100
# Events that are published before the list is cut: what a crash may publish again of one aggregate.
CUT_MAX = 20
ROUND_MAX = 500  # of one aggregate in one round, so that the others have their turn

Cutting: TypeAlias = Literal["cleared", "cut", "lost"]

_log = logging.getLogger("tavola.patterns")


class RelaySuperseded(PatternError):
    """A relay whose lane another relay has taken over; no event is lost."""

    def __init__(self, lane: int) -> None:
        self.lane = lane
        super().__init__(f"Another relay has taken over lane {lane}; this one stops there")


@dataclass(slots=True)
class _HeldLease:
    """A lease that this relay holds."""

    lane: int
    fence: int
    until: datetime
    published: int = 0
    failed: list[Unpublished] = field(default_factory=list)


class Outbox(Recipe[D_co], Generic[D_co, O, L]):
    """Events by aggregate, and the relay that publishes them.

    `waiting` is a sparse query class: its argument is lane, its sort part aggregate. An aggregate is always
    in one of `lanes`, and a lane has one relay at a time, for `lease_for` beyond its last sign of life;
    `reading` is how many lanes there were where they have become fewer. At most `backlog` events of an
    aggregate wait: then changes of it are refused until a relay has caught up. With `archive` and `keep`,
    what was published is kept so long.
    """

    def __init__(
        self,
        db: D_co,
        outgoing: type[O],
        lease: type[L],
        waiting: type[Query[O]],
        *,
        lanes: int = 1,
        reading: int | None = None,
        lease_for: timedelta = timedelta(seconds=30),
        backlog: int = 200,
        archive: type[PublishedEvent] | None = None,
        keep: timedelta = timedelta(days=7),
    ) -> None:
        super().__init__(db)
        self.outgoing = outgoing
        self.lease = lease
        self.waiting = query_class(outgoing, waiting, "lane", sorts=("aggregate",))
        self.key = key_class(outgoing, "aggregate")
        self.lease_key = key_class(lease, "lane")
        if not 1 <= lanes <= LANES_MAX or (reading or lanes) < lanes:
            raise RecipeRefused(
                outgoing.__name__, f"{lanes} lanes are outside 1 to {LANES_MAX}, or more than are read"
            )
        if lease_for < timedelta(seconds=1):
            raise RecipeRefused(lease.__name__, f"a lease of {lease_for} is too short; give a second or more")
        if archive is not None:
            key_class(archive, "aggregate", "number")
            check_expires_with(archive, "expires")
        self.lanes = lanes
        self.reading = reading or lanes
        self.lease_for = lease_for
        self.backlog = backlog
        self.archive = archive
        self.keep = keep
        self.holder = self.entropy.uuid()

    def add(self, writes: Intents, aggregate: str, *messages: Message) -> Intent[O]:
        """Have messages told of what a transaction does, in their order; once for each aggregate of it.

        Nothing is read for it. Where too many wait already, the transaction is cancelled, and the intent that this
        returns is among those that failed.
        """
        if not messages:
            raise RecipeRefused(f"{self.outgoing.__name__}.add", "no message is given; give Message(…)")
        at = self._now()
        stored = [
            StoredMessage(message_id=self.entropy.uuid(), kind=each.kind, payload=each.payload, at=at)
            for each in messages
        ]
        outgoing = self.outgoing
        room = outgoing.messages.not_exists() | (outgoing.messages.size() <= self.backlog - len(stored))
        return writes.update(
            self.key(aggregate=aggregate),
            outgoing.messages.append(*stored),
            outgoing.lane.set(self.lane_of(aggregate)),
            create=True,
            when=room,
        )

    def lane_of(self, aggregate: str) -> int:
        """Return the lane of an aggregate."""
        return crc32(aggregate.encode()) % self.lanes

    @recipe_method
    def relay(
        self, publish: Callable[[OutboxEvent], Any], *, lanes: Iterable[int] | None = None
    ) -> PatternProgram[Relayed]:
        """Publish what waits, in each aggregate's order, and return what was done.

        An event is published when `publish` returns. If it raises, its aggregate waits for the next round,
        the others go on. Lanes that another relay holds are left to it.
        """
        return (yield from self._round(publish, range(self.reading) if lanes is None else lanes))

    @recipe_method
    def run(
        self,
        publish: Callable[[OutboxEvent], Any],
        *,
        lanes: Iterable[int] | None = None,
        every_s: float = 1.0,
        until: Callable[[], bool] = lambda: False,
    ) -> PatternProgram[int]:
        """Relay again and again, waiting where nothing was to be done, until told to stop; return how many."""
        wanted = tuple(range(self.reading) if lanes is None else lanes)
        published = 0
        while not until():
            done = yield from self._round(publish, wanted)
            published += done.published
            if not done.published:
                yield from sleep(every_s)
        return published

    @recipe_method
    def waiting_in(self, aggregate: str) -> PatternProgram[list[OutboxEvent]]:
        """Return what waits of an aggregate, the next first."""
        found = yield from self._row(aggregate)
        return [] if found is None else events_in(found, found.fence)

    @recipe_method
    def discard(self, aggregate: str, number: int) -> PatternProgram[OutboxEvent]:
        """Give up the event that is next of its aggregate, because nobody can publish it, and return it.

        Of any other number it is an error: what comes before it must be published first.
        """
        found = yield from self._row(aggregate)
        events = [] if found is None else events_in(found, found.fence)
        if found is None or not events or events[0].number != number:
            next_ = events[0].number if events else "none"
            raise RecipeRefused(
                f"{aggregate} number {number}", f"it is not the next to be published, which is {next_}"
            )
        if (yield from self._cut(found, events[:1], found.fence)) == "lost":
            raise RecipeRefused(f"{aggregate} number {number}", "a relay has published it in this moment")
        return events[0]

    # A round.

    def _round(self, publish: Callable[[OutboxEvent], Any], lanes: Iterable[int]) -> PatternProgram[Relayed]:
        turns: list[_HeldLease] = []
        for lane in lanes:
            turn = yield from self._take_lane(lane)
            if turn is None:
                continue
            turns.append(turn)
            try:
                yield from self._lane(turn, publish)
            except RelaySuperseded as error:
                _log.warning("%s", error)
            else:
                yield from self._release_lane(turn)
        failed = tuple(each for turn in turns for each in turn.failed)
        for each in failed:
            _log.warning("%s cannot be published: %r; it is tried again", each.event.dedup_id, each.error)
        return Relayed(sum(turn.published for turn in turns), failed, tuple(turn.lane for turn in turns))

    def _lane(self, turn: _HeldLease, publish: Callable[[OutboxEvent], Any]) -> PatternProgram[None]:
        cursor: str | None = None
        while True:
            asked, here = self.waiting(lane=turn.lane), cursor
            page = yield from call_client(lambda db: db.query(asked, cursor=here, limit=100))  # noqa: B023 - called at once
            for found in page.items:
                yield from self._aggregate(turn, found.aggregate, publish)
            cursor = page.cursor
            if cursor is None:
                return

    def _aggregate(
        self, turn: _HeldLease, aggregate: str, publish: Callable[[OutboxEvent], Any]
    ) -> PatternProgram[None]:
        """Publish what waits of one aggregate, as long as nothing goes wrong."""
        done = 0
        while done < ROUND_MAX:
            row = yield from self._row(aggregate)
            if row is None or row.lane is None:
                return  # the index was behind
            if row.fence > turn.fence:
                raise RelaySuperseded(turn.lane)
            events = events_in(row, turn.fence)[:CUT_MAX]
            out: list[OutboxEvent] = []
            for event in events:
                yield from self._check_lease(turn)
                try:
                    yield from self._publish(publish, event)
                except Exception as error:  # noqa: BLE001 - whatever a publisher raises
                    turn.failed.append(Unpublished(event, error))
                    break
                out.append(event)
            turn.published += len(out)
            done += len(out)
            cutting: Cutting = "cut"
            if out or not events:
                cutting = yield from self._cut(row, out, turn.fence)
            if cutting == "cleared" or len(out) < len(events):
                return

    def _publish(self, publish: Callable[[OutboxEvent], Any], event: OutboxEvent) -> PatternProgram[None]:
        """Have an event published; on a loop, what is no coroutine function is done in a thread."""
        if isinstance(self.db, AsyncDb):
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
                "publish", "it is a coroutine function; give a plain one, or use connect_async"
            )

    def _cut(self, row: O, out: list[OutboxEvent], fence: int) -> PatternProgram[Cutting]:
        """Take published events off the front, and the aggregate out of its lane if nothing is left of it.

        What was added meanwhile stays, and keeps it in. What another relay has cut already needs no cutting.
        """
        outgoing = self.outgoing
        changes: list[Change[O]] = [outgoing.fence.set(fence)]
        changes += [outgoing.published.add(len(out))] if out else []
        for place in range(len(out)):
            changes.append(outgoing.messages[place].remove())  # type: ignore[misc, arg-type]  # a member may go
        mine = outgoing.fence.not_exists() | (outgoing.fence <= fence)
        same = outgoing.published == row.published
        if row.published == 0:
            same = same | outgoing.published.not_exists()
        if len(out) == len(row.messages):
            alone = outgoing.messages.size() == len(row.messages)
            if not row.messages:
                alone = alone | outgoing.messages.not_exists()
            if (yield from self._write(row, [*changes, outgoing.lane.remove()], mine & same & alone, out)):
                return "cleared"
        if out and (yield from self._write(row, changes, mine & same, out)):
            return "cut"
        return "lost"

    def _write(
        self, row: O, changes: list[Change[O]], when: Condition[O], out: list[OutboxEvent]
    ) -> PatternProgram[bool]:
        """Change a row, and archive what was published; return whether the row was as it had to be."""
        key = self.key(aggregate=row.aggregate)
        archive = self.archive
        expires = self._now().replace(microsecond=0) + self.keep

        def fill(writes: Transaction) -> None:
            writes.update(key, *changes, when=when)
            for event in out if archive is not None else ():
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

    def _take_lane(self, lane: int) -> PatternProgram[_HeldLease | None]:
        """Take a lane that is free, and return the turn; None: another relay holds it."""
        key = self.lease_key(lane=lane)
        found = yield from call_client(lambda db: db.get(key, consistent=True))
        now = self._now()
        if found is not None and found.until > now and found.holder != self.holder:
            return None
        fence = max(int(now.timestamp() * 1000), 0 if found is None else found.fence + 1)
        made = self.lease(lane=lane, holder=self.holder, fence=fence, until=now + self.lease_for)
        free = self.lease.fence.not_exists() if found is None else self.lease.fence == found.fence
        try:
            yield from call_client(lambda db: db.put(made, when=free))
        except ConditionFailed:
            return None
        return _HeldLease(lane, fence, made.until)

    def _check_lease(self, turn: _HeldLease) -> PatternProgram[None]:
        """Make sure that a lane is still this relay's; nothing is published otherwise."""
        now = self._now()
        if now < turn.until - self.lease_for / 2:
            return
        until = now + self.lease_for
        key = self.lease_key(lane=turn.lane)
        try:
            yield from call_client(
                lambda db: db.update(key, self.lease.until.set(until), when=self.lease.fence == turn.fence)
            )
        except ConditionFailed:
            raise RelaySuperseded(turn.lane) from None
        turn.until = until

    def _release_lane(self, turn: _HeldLease) -> PatternProgram[None]:
        """Let others have a lane; who has taken it meanwhile keeps it."""
        key = self.lease_key(lane=turn.lane)
        over = self.lease.until.set(self._now())
        try:
            yield from call_client(lambda db: db.update(key, over, when=self.lease.fence == turn.fence))
        except ConditionFailed:
            pass

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)
