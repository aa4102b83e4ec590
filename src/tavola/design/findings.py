"""Findings: what is wrong with a design, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "advice"]
SEVERITIES: tuple[Severity, ...] = (
    "error",  # it will fail, lose data or give wrong answers
    "warning",  # it will throttle, cost or break in time
    "advice",  # another way is cheaper or clearer
)

PlaceKind = Literal[
    "design",
    "table",
    "index",
    "entity",
    "field",
    "pattern",
    "write",
    "collection",
    "consumer",
    "policy",
    "need",
]


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a design, by the name that its declaration has: `Ticket.ByStatus`, `Tickets.status_index`."""

    kind: PlaceKind
    table: str  # the table it belongs to, by its name in DynamoDB; empty: the whole design
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect: the rule that found it, and in sentences what is wrong there and what would mend it."""

    rule: str
    severity: Severity
    place: Place
    message: str
    remedy: str


def first_few(names: Sequence[str], most: int = 3) -> str:
    """Return names as a sentence lists them where there may be many: the first ones, and how many more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
