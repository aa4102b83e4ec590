"""DemoMonth: tickets of a plausible month, the same for the same entropy.

Workdays are busier than weekends, mornings busier than nights, and a few customers open most tickets. Each ticket passes through statuses
as the rules allow, with an event for each; a ticket whose next step would be in the future is still open. Apart from unresolvable tickets
none waits longer than a few days, and some days before the month are generated too, so that the desk is not empty at its start.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple, TypeVar

from tavola import Entity, Entropy
from tavola.apps.seeding import RandomChoices
from tavola.apps.support_desk.domain import EventKind, Priority, TicketStatus, make_subject
from tavola.apps.support_desk.model import Event, Feedback, Ticket, TicketVector
from tavola.apps.support_desk.phrases import TOPICS, TicketPhrases, Topic, complaint_text
from tavola.apps.support_desk.similar import embed

_HOURS = (1, 1, 1, 1, 1, 2, 5, 12, 26, 30, 28, 22, 14, 20, 26, 26, 22, 14, 7, 4, 3, 2, 2, 1)
_WEEKDAYS = (10, 11, 10, 10, 9, 3, 2)  # Monday first
_PRIORITIES = {Priority.LOW: 20, Priority.MEDIUM: 50, Priority.HIGH: 24, Priority.CRITICAL: 6}
_RATINGS = {5: 44, 4: 31, 3: 13, 2: 7, 1: 5}
_PACE = {Priority.LOW: 1.8, Priority.MEDIUM: 1.0, Priority.HIGH: 0.5, Priority.CRITICAL: 0.25}
_FIRST_LOOK, _LATE_LOOK, _WORK = timedelta(minutes=25), timedelta(hours=9), timedelta(hours=4)
_ENGINEERING, _REOPENING, _REWORK = timedelta(hours=16), timedelta(hours=14), timedelta(hours=2)
_LATE, _CLASSIFIED, _NOTED = 0.08, 0.04, 0.12  # share of all tickets
_ESCALATED, _UNREPAIRABLE, _FAILED = 0.035, 0.02, 0.03  # share of all tickets
_REASSIGNED, _REOPENED, _RATED = 0.15, 0.02, 0.4  # share of escalated, resolved, resolved tickets
_DAY = timedelta(days=1)
_BEFORE = 4  # days generated before the month, so that the desk is not empty at its start

T = TypeVar("T")


class WeightedChoice:
    """A choice with weights."""

    def __init__(self, weights: Iterable[float]) -> None:
        self._sums = list(accumulate(weights))

    def draw(self, random: RandomChoices) -> int:
        """Return the index of a choice."""
        return bisect(self._sums, random.fraction() * self._sums[-1])


class TicketStep(NamedTuple):
    """A step in a ticket's life, some time after the one before; a status of None leaves it unchanged."""

    after: timedelta
    kind: EventKind
    status: TicketStatus | None = None
    actor: str | None = None
    note: str | None = None
    details: dict[str, str] | None = None


class DemoMonth:
    """Tickets of the days before a time, with their events, feedback and embeddings."""

    def __init__(
        self, entropy: Entropy, now: datetime, *, days: int, customers: int, engineers: int, operators: int
    ) -> None:
        self.random = RandomChoices(entropy)
        self.now = now
        self._customers = [f"cust-{number:03}" for number in range(1, customers + 1)]
        self._customer_weights = WeightedChoice(1 / (rank + 3) for rank in range(customers))
        self._engineers = [f"eng-{number:02}" for number in range(1, engineers + 1)]
        self._operators = [f"op-{number:02}" for number in range(1, operators + 1)]
        self._midnights = [
            (now - timedelta(days=back)).replace(hour=0, minute=0, second=0, microsecond=0)
            for back in range(days + _BEFORE, -1, -1)
        ]
        self._days = WeightedChoice(_WEEKDAYS[day.weekday()] for day in self._midnights)
        self._hours = WeightedChoice(_HOURS)
        self._priorities = WeightedChoice(_PRIORITIES.values())
        self._ratings = WeightedChoice(_RATINGS.values())
        self._texts: dict[str, tuple[float, ...]] = {}

    def ticket(self, file: str | None = None) -> Iterator[Entity]:
        """Generate a ticket and the items that belong to it, as of the end of the month; `file` is the name of an attachment."""
        random = self.random
        ticket_id = f"tkt_{random.bytes(10).hex()}"
        customer = self._customers[self._customer_weights.draw(random)]
        priority = list(_PRIORITIES)[self._priorities.draw(random)]
        topic = random.choose(TOPICS)
        text = complaint_text(topic, random.choose)
        created_at = self._creation_time()
        steps = self._steps(customer, priority, topic, file)
        events = list(self._events(ticket_id, created_at, steps))
        last = events[-1]
        last_change = next(event for event in reversed(events) if event.new_status is not None)
        status = last_change.new_status
        assert status is not None, "events without a new status were skipped"
        escalation = None
        if status is TicketStatus.ESCALATED:
            escalation = next(event for event in reversed(events) if event.kind is EventKind.ESCALATED)
        yield Ticket(
            ticket_id=ticket_id,
            customer_id=customer,
            status=status,
            priority=priority,
            subject=make_subject(text),
            symptom_text=text,
            product=topic.product,
            created_at=created_at,
            updated_at=last.at,
            completed_at=last_change.at if status is TicketStatus.READY else None,
            assigned_to=None if escalation is None else escalation.details["assigned_to"],
            escalated_at=None if escalation is None else escalation.at,
            escalation_reason=None if escalation is None else escalation.note,
            files=0 if file is None else 1,
            version=len(events),
        )
        yield from events
        feedback = self._feedback(ticket_id, last.at, topic.phrases) if status is TicketStatus.READY else None
        if feedback is not None:
            yield feedback
        has_comment = feedback is not None and feedback.comment is not None
        if has_comment or status is not TicketStatus.READY:
            yield TicketVector(ticket_id=ticket_id, customer_id=customer, embedding=list(embed(text)))

    def log_of(self, lines: int) -> bytes:
        """Return the log of a device, for an attachment."""
        stamps = (
            f"{number:05} {self.random.bytes(6).hex()} unit {number % 7} ok\n" for number in range(lines)
        )
        return "".join(stamps).encode()

    def _creation_time(self) -> datetime:
        """Return a time of the month, at a likely hour of a likely day."""
        while True:
            day = self._midnights[self._days.draw(self.random)]
            hour = self._hours.draw(self.random)
            at = day + timedelta(hours=hour, microseconds=int(self.random.fraction() * 3_600_000_000))
            if at < self.now:
                return at

    def _events(self, ticket_id: str, created_at: datetime, steps: Iterator[TicketStep]) -> Iterator[Event]:
        """Generate the events of a ticket up to now."""
        status: TicketStatus | None = None
        at = created_at
        for number, step in enumerate(steps, 1):
            at += step.after
            if at > self.now:
                return
            changes_status = step.status is not None and step.status is not status
            yield Event(
                ticket_id=ticket_id,
                at=at,
                sequence=number,
                kind=step.kind,
                actor=step.actor,
                old_status=status if changes_status else None,
                new_status=step.status if changes_status else None,
                note=step.note,
                details=step.details or {},
            )
            status = step.status or status

    def _steps(
        self, customer: str, priority: Priority, topic: Topic, file: str | None
    ) -> Iterator[TicketStep]:
        """Generate the steps of a ticket: what happens, after how long, and who does it."""
        random, pace, phrases = self.random, _PACE[priority], topic.phrases
        choose, duration, fraction = random.choose, random.duration, random.fraction
        changed, operator = EventKind.STATUS_CHANGED, choose(self._operators)
        yield TicketStep(timedelta(0), EventKind.CREATED, TicketStatus.NEW, customer)
        if file is not None:
            yield TicketStep(timedelta(0), EventKind.FILE_ATTACHED, actor=customer, details={"name": file})
        first_response = duration(_LATE_LOOK if fraction() < _LATE else _FIRST_LOOK * pace)
        yield TicketStep(first_response, changed, TicketStatus.PROCESSING, operator)
        work_time = duration(_WORK * pace)
        outcome, extra = fraction(), fraction()
        if extra < _CLASSIFIED:
            work_time /= 2
            yield TicketStep(work_time, EventKind.AMENDED, actor=operator, details={"product": topic.product})
        elif extra < _CLASSIFIED + _NOTED:
            work_time /= 2
            yield TicketStep(work_time, EventKind.NOTE_ADDED, actor=operator, note=choose(phrases.notes))
        if outcome < _ESCALATED + _UNREPAIRABLE:
            yield self._escalation(work_time, operator, choose(phrases.reasons))
            if fraction() < _REASSIGNED:
                yield self._escalation(duration(_REWORK), choose(self._engineers), choose(phrases.reassigned))
            if outcome < _UNREPAIRABLE:
                yield TicketStep(
                    _DAY * (12 + 28 * fraction()),
                    changed,
                    TicketStatus.FAILED,
                    operator,
                    choose(phrases.unrepairable),
                )
                return
            work_time = duration(_ENGINEERING)
        elif outcome < _ESCALATED + _UNREPAIRABLE + _FAILED:
            yield TicketStep(work_time, changed, TicketStatus.FAILED, operator, choose(phrases.failures))
            return
        yield TicketStep(work_time, changed, TicketStatus.READY, operator, choose(phrases.answers))
        if fraction() < _REOPENED:
            yield TicketStep(
                duration(_REOPENING), changed, TicketStatus.PROCESSING, customer, choose(phrases.reopened)
            )
            yield TicketStep(
                duration(_REWORK), changed, TicketStatus.READY, operator, choose(phrases.answers)
            )

    def _escalation(self, after: timedelta, actor: str, reason: str) -> TicketStep:
        """Return the step that assigns a ticket to an engineer."""
        details = {"assigned_to": self.random.choose(self._engineers)}
        return TicketStep(after, EventKind.ESCALATED, TicketStatus.ESCALATED, actor, reason, details)

    def _feedback(self, ticket_id: str, completed_at: datetime, phrases: TicketPhrases) -> Feedback | None:
        """Return feedback on an answer; None if there is none, or none yet."""
        random = self.random
        submitted_at = completed_at + random.duration(timedelta(hours=8))
        if random.fraction() >= _RATED or submitted_at > self.now:
            return None
        rating = list(_RATINGS)[self._ratings.draw(random)]
        return Feedback(
            ticket_id=ticket_id,
            feedback_id=f"fb_{random.bytes(10).hex()}",
            operator_id=random.choose(self._operators),
            submitted_at=submitted_at,
            rating=rating,
            was_helpful=rating > 3 if rating != 3 else None,
            comment=random.choose(phrases.comments) if random.fraction() < 0.3 else None,
        )
