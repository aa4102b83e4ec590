"""The rules of the support desk, independent of tables.

A ticket starts as NEW, is worked on, and ends as READY or FAILED; on the way it may be escalated to an engineer. `TRANSITIONS` defines
the allowed changes of status. The stored names are those of the original design; pages show `STATUS_LABELS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

SUBJECT_CHARACTERS_MAX = 120
SYMPTOM_CHARACTERS_INLINE = (
    4_000  # of a text in the ticket itself; a longer text is also stored whole, as a blob
)
SYMPTOM_CHARACTERS_MAX = 4_000_000
FORM_CHARACTERS_MAX = 200_000  # of a text in a form; longer texts are attached as files
NOTE_CHARACTERS_MAX = 4_000
RATING_MIN, RATING_MAX = 1, 5
EVENTS_MAX = 999_999  # of one ticket: the sort key has six digits
FILES_MAX = 50  # of one ticket: their expiry is set in one transaction


class TicketStatus(StrEnum):
    """The status of a ticket."""

    NEW = "NEW"
    PROCESSING = "PROCESSING"
    READY = "READY"  # resolved: the customer has an answer
    FAILED = "FAILED"  # closed without a solution
    ESCALATED = "ESCALATED"


class Priority(StrEnum):
    """The priority of a ticket."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


class EventKind(StrEnum):
    """The kinds of events of a ticket."""

    CREATED = "ticket_created"
    STATUS_CHANGED = "status_changed"
    ESCALATED = "ticket_escalated"
    AMENDED = "ticket_amended"
    NOTE_ADDED = "note_added"
    FILE_ATTACHED = "file_attached"
    FILE_REMOVED = "file_removed"


class UserRole(StrEnum):
    """The role of a user."""

    CUSTOMER = "customer"
    AGENT = "agent"
    ENGINEER = "engineer"


TRANSITIONS: Mapping[TicketStatus, frozenset[TicketStatus]] = {
    TicketStatus.NEW: frozenset({TicketStatus.PROCESSING, TicketStatus.FAILED, TicketStatus.ESCALATED}),
    TicketStatus.PROCESSING: frozenset({TicketStatus.READY, TicketStatus.FAILED, TicketStatus.ESCALATED}),
    TicketStatus.READY: frozenset({TicketStatus.PROCESSING}),  # reopened
    TicketStatus.FAILED: frozenset({TicketStatus.PROCESSING, TicketStatus.ESCALATED}),
    TicketStatus.ESCALATED: frozenset({TicketStatus.PROCESSING, TicketStatus.READY, TicketStatus.FAILED}),
}
STATUS_LABELS: Mapping[TicketStatus, str] = {  # what pages show
    TicketStatus.NEW: "New",
    TicketStatus.PROCESSING: "In progress",
    TicketStatus.READY: "Resolved",
    TicketStatus.FAILED: "Unresolved",
    TicketStatus.ESCALATED: "Escalated",
}
CLOSED_STATUSES = frozenset({TicketStatus.READY, TicketStatus.FAILED})


def is_allowed(before: TicketStatus, after: TicketStatus) -> bool:
    """Return whether a ticket may change from one status to another."""
    return after in TRANSITIONS[before]


def next_statuses(status: TicketStatus) -> list[TicketStatus]:
    """Return the statuses that may follow, in the order of their declaration."""
    return [candidate for candidate in TicketStatus if candidate in TRANSITIONS[status]]


def make_subject(text: str) -> str:
    """Return a subject for a text: its first line, shortened if necessary."""
    head = text.lstrip()[: 10 * SUBJECT_CHARACTERS_MAX]  # the rest of a long text is not searched
    line = next((line.strip() for line in head.splitlines() if line.strip()), "")
    return line if len(line) <= SUBJECT_CHARACTERS_MAX else line[: SUBJECT_CHARACTERS_MAX - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class NewTicket:
    """A ticket to open."""

    customer_id: str
    symptom_text: str
    priority: Priority = Priority.MEDIUM
    subject: str | None = None  # default: the first line of the text
    product: str | None = None
    embedding: tuple[float, ...] | None = (
        None  # of the text; makes the ticket appear in searches for similar ones
    )


@dataclass(frozen=True, slots=True)
class Amendment:
    """Changes of a ticket other than its status; None leaves a field unchanged."""

    subject: str | None = None
    priority: Priority | None = None
    product: str | None = None  # "" removes it


@dataclass(frozen=True, slots=True)
class NewFeedback:
    """An operator's feedback on the answer to a ticket."""

    operator_id: str
    rating: int  # 1 to 5
    was_helpful: bool | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class RunningAverage:
    """A count and a total, and so an average."""

    count: int = 0
    total: Decimal = Decimal(0)

    @property
    def mean(self) -> Decimal | None:
        """The average; None if the count is 0."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class DayNumbers:
    """The numbers of one UTC day."""

    day: date
    opened: int = 0
    resolved: int = 0
    resolution_s: RunningAverage = RunningAverage()  # of the tickets resolved on this day
    satisfaction: RunningAverage = RunningAverage()  # of the feedback given on this day


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The current numbers of the desk; every status, priority, rating and day is present, even with 0."""

    by_status: Mapping[TicketStatus, int]
    by_priority: Mapping[Priority, int]
    resolution_s: RunningAverage
    satisfaction: RunningAverage
    ratings: Mapping[int, int]
    days: tuple[DayNumbers, ...]  # oldest first

    @property
    def tickets(self) -> int:
        """The number of tickets."""
        return sum(self.by_status.values())


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time range, including both ends; None leaves an end open."""

    start: datetime | None = None
    end: datetime | None = None

    @property
    def empty(self) -> bool:
        """Whether the range ends before it starts."""
        return self.start is not None and self.end is not None and self.end < self.start
