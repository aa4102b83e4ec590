"""Findings: what is wrong with a design, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "advice"]
SEVERITIES: tuple[Severity, ...] = (
    "error",  # it will fail, lose data or give wrong answers
    "warning",  # it will throttle, cost or break in time
    "advice",  # another way is cheaper or clearer
)

DesignPathKind = Literal[
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
class DesignPath:
    """A part of a design, by the name that its declaration has: `Ticket.ByStatus`, `Tickets.status_index`."""

    kind: DesignPathKind
    table: str  # the table it belongs to, by its name in DynamoDB; empty: the whole design
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect: the rule that found it, and in sentences what is wrong there and what would mend it."""

    rule: str
    severity: Severity
    place: DesignPath
    message: str
    remedy: str
