"""Findings: a defect in a design, its place, and what to do about it.

The linter, the solver, the simulator and target checks report findings in this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "advice"]
SEVERITIES: tuple[Severity, ...] = (
    "error",  # fails, loses data or returns wrong results
    "warning",  # throttles, costs or breaks in time
    "advice",  # there is a cheaper or clearer way
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
    """The path of a part of a design, as it is declared: `Ticket.ByStatus`, `Tickets.status_index`."""

    kind: DesignPathKind
    table: str  # name in DynamoDB of the table that it belongs to; empty: the whole design
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect: the rule that found it, the place, what is wrong and what to do."""

    rule: str
    severity: Severity
    place: DesignPath
    message: str
    remedy: str
