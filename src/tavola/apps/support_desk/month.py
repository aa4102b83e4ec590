"""Month: a believable stretch of a support desk's life, made up and the same from the same seed.

Working days are busier than weekends, mornings busier than nights, and a few customers ask for most of the help. Each ticket goes through
the statuses as the rules allow, with an event for each; those whose next step would lie in the future are still open. The desk is as quick at
the end of the month as at its beginning: nothing but what cannot be mended waits for more than a few days, and the first days are before the
month that is looked at.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from math import log
from typing import NamedTuple, TypeVar

from tavola import Entity, Entropy
from tavola.apps.support_desk.domain import EventKind, Priority, Status, subject_of
from tavola.apps.support_desk.embeddings import embed
from tavola.apps.support_desk.model import Event, Feedback, Ticket, TicketVector
from tavola.apps.support_desk.phrases import (
    ANSWERS,
    COMMENTS,
    FAILURES,
    HANDED_ON,
    NOTES,
    REASONS,
    REOPENED,
    TOPICS,
    UNMENDED,
    Topic,
    text_of,
)

_HOURS = (1, 1, 1, 1, 1, 2, 5, 12, 26, 30, 28, 22, 14, 20, 26, 26, 22, 14, 7, 4, 3, 2, 2, 1)
_WEEKDAYS = (10, 11, 10, 10, 9, 3, 2)  # Monday first
_PRIORITIES = {Priority.LOW: 20, Priority.MEDIUM: 50, Priority.HIGH: 24, Priority.CRITICAL: 6}
_RATINGS = {5: 44, 4: 31, 3: 13, 2: 7, 1: 5}
_PACE = {Priority.LOW: 1.8, Priority.MEDIUM: 1.0, Priority.HIGH: 0.5, Priority.CRITICAL: 0.25}
_FIRST_LOOK, _LEFT_LYING, _WORK = timedelta(minutes=25), timedelta(hours=9), timedelta(hours=4)
_ENGINEERING, _REOPENING, _REWORK = timedelta(hours=16), timedelta(hours=14), timedelta(hours=2)
_LYING, _SORTED, _NOTED = 0.08, 0.04, 0.12  # of all: looked at late, given their product later, noted on
_ESCALATED, _UNMENDED, _FAILED = 0.035, 0.02, 0.03  # of all
_HANDED_ON, _REOPENED, _RATED = 0.15, 0.02, 0.4  # of those escalated, resolved, resolved
_DAY = timedelta(days=1)
_BEFORE = 4  # days that are made up before the month, so that it does not begin with an empty desk

T = TypeVar("T")


class Chance:
    """Choices out of an `Entropy`."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._bytes = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return so many bytes."""
        if self._at + count > len(self._bytes):
            self._bytes, self._at = self._entropy.bytes(8_192), 0
        self._at += count
        return self._bytes[self._at - count : self._at]

    def fraction(self) -> float:
        """Return a number from 0 up to 1, which is not reached."""
        return int.from_bytes(self.take(6), "big") / 2**48

    def of(self, choices: Sequence[T]) -> T:
        """Return one of several."""
        return choices[int.from_bytes(self.take(4), "big") % len(choices)]

    def wait(self, mean: timedelta) -> timedelta:
        """Return how long something took that takes so long on average: mostly less, sometimes much more."""
        return mean * -log(1 - self.fraction())


class Weighted:
    """Choices of which some are likelier than others."""

    def __init__(self, weights: Iterable[float]) -> None:
        self._sums = list(accumulate(weights))

    def draw(self, chance: Chance) -> int:
        """Return the place of a choice."""
        return bisect(self._sums, chance.fraction() * self._sums[-1])


class Step(NamedTuple):
    """What happens to a ticket, so long after what happened before; a status of None stays."""

    after: timedelta
    kind: EventKind
    status: Status | None = None
    actor: str | None = None
    note: str | None = None
    details: dict[str, str] | None = None


class Month:
    """Tickets of the days before a moment, with their events, feedback and embeddings."""

    def __init__(
        self, entropy: Entropy, now: datetime, *, days: int, customers: int, engineers: int, operators: int
    ) -> None:
        self.chance = Chance(entropy)
        self.now = now
        self._customers = [f"cust-{number:03}" for number in range(1, customers + 1)]
        self._asking = Weighted(1 / (rank + 3) for rank in range(customers))  # a few ask most
        self._engineers = [f"eng-{number:02}" for number in range(1, engineers + 1)]
        self._operators = [f"op-{number:02}" for number in range(1, operators + 1)]
        self._midnights = [
            (now - timedelta(days=back)).replace(hour=0, minute=0, second=0, microsecond=0)
            for back in range(days + _BEFORE, -1, -1)
        ]
        self._days = Weighted(_WEEKDAYS[day.weekday()] for day in self._midnights)
        self._hours = Weighted(_HOURS)
        self._priorities = Weighted(_PRIORITIES.values())
        self._ratings = Weighted(_RATINGS.values())
        self._texts: dict[str, tuple[float, ...]] = {}

    def ticket(self, file: str | None = None) -> Iterator[Entity]:
        """Give a ticket and what hangs on it, as it stands at the end of the month; told with the name of a file that came with it."""
        chance = self.chance
        ticket_id = f"tkt_{chance.take(10).hex()}"
        customer = self._customers[self._asking.draw(chance)]
        priority = list(_PRIORITIES)[self._priorities.draw(chance)]
        topic = chance.of(TOPICS)
        text = text_of(topic, chance.of)
        created_at = self._moment()
        way = self._way(customer, priority, topic, file)
        events = list(self._life(ticket_id, created_at, way))
        last = events[-1]
        moved = next(event for event in reversed(events) if event.new_status is not None)
        status = moved.new_status
        assert status is not None, "that is what it was looked for by"
        handed = None
        if status is Status.ESCALATED:
            handed = next(event for event in reversed(events) if event.kind is EventKind.ESCALATED)
        yield Ticket(
            ticket_id=ticket_id,
            customer_id=customer,
            status=status,
            priority=priority,
            subject=subject_of(text),
            symptom_text=text,
            product=topic.product,
            created_at=created_at,
            updated_at=last.at,
            completed_at=moved.at if status is Status.READY else None,
            assigned_to=None if handed is None else handed.details["assigned_to"],
            escalated_at=None if handed is None else handed.at,
            escalation_reason=None if handed is None else handed.note,
            files=0 if file is None else 1,
            version=len(events),
        )
        yield from events
        said = self._feedback(ticket_id, last.at) if status is Status.READY else None
        if said is not None:
            yield said
        spoken_of = said is not None and said.comment is not None
        if spoken_of or status is not Status.READY:
            yield TicketVector(ticket_id=ticket_id, customer_id=customer, embedding=list(embed(text)))

    def log_of(self, lines: int) -> bytes:
        """Return the log of a device, for an attachment."""
        stamps = (
            f"{number:05} {self.chance.take(6).hex()} unit {number % 7} ok\n" for number in range(lines)
        )
        return "".join(stamps).encode()

    def _moment(self) -> datetime:
        """Return a moment of the month, at a likely hour of a likely day."""
        while True:
            day = self._midnights[self._days.draw(self.chance)]
            hour = self._hours.draw(self.chance)
            at = day + timedelta(hours=hour, microseconds=int(self.chance.fraction() * 3_600_000_000))
            if at < self.now:
                return at

    def _life(self, ticket_id: str, created_at: datetime, way: Iterator[Step]) -> Iterator[Event]:
        """Give the events of a ticket up to now."""
        status: Status | None = None
        at = created_at
        for number, step in enumerate(way, 1):
            at += step.after
            if at > self.now:
                return
            moves = step.status is not None and step.status is not status
            yield Event(
                ticket_id=ticket_id,
                at=at,
                sequence=number,
                kind=step.kind,
                actor=step.actor,
                old_status=status if moves else None,
                new_status=step.status if moves else None,
                note=step.note,
                details=step.details or {},
            )
            status = step.status or status

    def _way(self, customer: str, priority: Priority, topic: Topic, file: str | None) -> Iterator[Step]:
        """Give the steps of a ticket: what, after how long, by whom."""
        chance, pace = self.chance, _PACE[priority]
        of, wait, fraction = chance.of, chance.wait, chance.fraction
        changed, operator = EventKind.STATUS_CHANGED, of(self._operators)
        yield Step(timedelta(0), EventKind.CREATED, Status.NEW, customer)
        if file is not None:
            yield Step(timedelta(0), EventKind.FILE_ATTACHED, actor=customer, details={"name": file})
        looked = wait(_LEFT_LYING if fraction() < _LYING else _FIRST_LOOK * pace)
        yield Step(looked, changed, Status.PROCESSING, operator)
        taken = wait(_WORK * pace)
        fate, side = fraction(), fraction()
        if side < _SORTED:
            taken /= 2
            yield Step(taken, EventKind.AMENDED, actor=operator, details={"product": topic.product})
        elif side < _SORTED + _NOTED:
            taken /= 2
            yield Step(taken, EventKind.NOTE_ADDED, actor=operator, note=of(NOTES))
        if fate < _ESCALATED + _UNMENDED:
            yield self._handed(taken, operator, of(REASONS))
            if fraction() < _HANDED_ON:
                yield self._handed(wait(_REWORK), of(self._engineers), of(HANDED_ON))
            if fate < _UNMENDED:
                yield Step(_DAY * (12 + 28 * fraction()), changed, Status.FAILED, operator, of(UNMENDED))
                return
            taken = wait(_ENGINEERING)
        elif fate < _ESCALATED + _UNMENDED + _FAILED:
            yield Step(taken, changed, Status.FAILED, operator, of(FAILURES))
            return
        yield Step(taken, changed, Status.READY, operator, of(ANSWERS))
        if fraction() < _REOPENED:
            yield Step(wait(_REOPENING), changed, Status.PROCESSING, customer, of(REOPENED))
            yield Step(wait(_REWORK), changed, Status.READY, operator, of(ANSWERS))

    def _handed(self, after: timedelta, actor: str, reason: str) -> Step:
        """Return the handing of a ticket to an engineer."""
        told = {"assigned_to": self.chance.of(self._engineers)}
        return Step(after, EventKind.ESCALATED, Status.ESCALATED, actor, reason, told)

    def _feedback(self, ticket_id: str, completed_at: datetime) -> Feedback | None:
        """Return what an operator said of an answer, None where nobody did, or not yet."""
        chance = self.chance
        submitted_at = completed_at + chance.wait(timedelta(hours=8))
        if chance.fraction() >= _RATED or submitted_at > self.now:
            return None
        rating = list(_RATINGS)[self._ratings.draw(chance)]
        return Feedback(
            ticket_id=ticket_id,
            feedback_id=f"fb_{chance.take(10).hex()}",
            operator_id=chance.of(self._operators),
            submitted_at=submitted_at,
            rating=rating,
            was_helpful=rating > 3 if rating != 3 else None,
            comment=chance.of(COMMENTS) if chance.fraction() < 0.3 else None,
        )
