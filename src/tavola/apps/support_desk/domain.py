"""Domain: what a support desk deals with, and its rules; nothing of tables.

A ticket begins NEW, is worked on, and ends READY or FAILED; on the way it may be escalated to an engineer. Which status
may follow which is said once, here, and asked by whoever changes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

SUBJECT_CHARACTERS_MAX = 120
SYMPTOM_CHARACTERS_INLINE = (
    4_000  # what of a text stays in the ticket itself; the whole of a longer one is a blob
)
SYMPTOM_CHARACTERS_MAX = 4_000_000
FORM_CHARACTERS_MAX = 200_000  # of a text that is typed; what is longer is a file, or comes from a program
NOTE_CHARACTERS_MAX = 4_000
RATING_MIN, RATING_MAX = 1, 5
EVENTS_MAX = 999_999  # of one ticket: its sequence has six digits
FILES_MAX = 50  # of one ticket: what ends with it goes into one transaction


class Status(StrEnum):
    """Where a ticket stands."""

    NEW = "NEW"
    PROCESSING = "PROCESSING"
    READY = "READY"  # resolved
    FAILED = "FAILED"
    ESCALATED = "ESCALATED"


class Priority(StrEnum):
    """How much it hurts."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


class EventKind(StrEnum):
    """What can happen to a ticket."""

    CREATED = "ticket_created"
    STATUS_CHANGED = "status_changed"
    ESCALATED = "ticket_escalated"
    AMENDED = "ticket_amended"
    NOTE_ADDED = "note_added"
    FILE_ATTACHED = "file_attached"
    FILE_REMOVED = "file_removed"


class Role(StrEnum):
    """Who is logged in."""

    CUSTOMER = "customer"
    AGENT = "agent"
    ENGINEER = "engineer"


TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.NEW: frozenset({Status.PROCESSING, Status.FAILED, Status.ESCALATED}),
    Status.PROCESSING: frozenset({Status.READY, Status.FAILED, Status.ESCALATED}),
    Status.READY: frozenset({Status.PROCESSING}),  # reopened
    Status.FAILED: frozenset({Status.PROCESSING, Status.ESCALATED}),
    Status.ESCALATED: frozenset({Status.PROCESSING, Status.READY, Status.FAILED}),
}
CLOSED = frozenset({Status.READY, Status.FAILED})


def allowed(before: Status, after: Status) -> bool:
    """Return whether a ticket may go from one status to another."""
    return after in TRANSITIONS[before]


def subject_of(text: str) -> str:
    """Return a line that stands for a text in a list: its first one, cut where it is too long."""
    head = text.lstrip()[: 10 * SUBJECT_CHARACTERS_MAX]  # of a text of megabytes, no more is looked at
    line = next((line.strip() for line in head.splitlines() if line.strip()), "")
    return line if len(line) <= SUBJECT_CHARACTERS_MAX else line[: SUBJECT_CHARACTERS_MAX - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class NewTicket:
    """What a customer asks for help with."""

    customer_id: str
    symptom_text: str
    priority: Priority = Priority.MEDIUM
    subject: str | None = None  # None: the first line of the text
    product: str | None = None
    embedding: tuple[float, ...] | None = (
        None  # of the text, where the caller has one; then similar ones can be found
    )


@dataclass(frozen=True, slots=True)
class Amendment:
    """What may be changed of a ticket besides its status; None leaves a thing as it is."""

    subject: str | None = None
    priority: Priority | None = None
    product: str | None = None  # "" takes it away


@dataclass(frozen=True, slots=True)
class NewFeedback:
    """What an operator says of a ticket's answer."""

    operator_id: str
    rating: int  # 1 to 5
    was_helpful: bool | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many, how much in all, and so how much on average."""

    count: int = 0
    total: Decimal = Decimal(0)

    @property
    def mean(self) -> Decimal | None:
        """The average, None of nothing."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class Day:
    """The numbers of one day, in UTC."""

    day: date
    opened: int = 0
    resolved: int = 0
    resolution_s: Tally = Tally()  # of the tickets that were resolved on this day
    satisfaction: Tally = Tally()  # of the feedback that was given on this day


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The numbers of the desk as they are now; every status, priority, rating and day is there, also with 0."""

    by_status: Mapping[Status, int]
    by_priority: Mapping[Priority, int]
    resolution_s: Tally
    satisfaction: Tally
    ratings: Mapping[int, int]
    days: tuple[Day, ...]  # oldest first

    @property
    def tickets(self) -> int:
        """How many tickets there are."""
        return sum(self.by_status.values())


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time, both ends in it; None is open."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def empty(self) -> bool:
        """Whether no moment is in it, because it ends before it starts."""
        return self.start is not None and self.end is not None and self.end < self.start
