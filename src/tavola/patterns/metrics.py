"""Metrics: the items that a projector maintains (numbers and marks), its results and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from tavola.model import Attr, Entity, attr
from tavola.patterns.recipe import PatternError


class Metric(Entity):
    """A number, by name and by the part it is broken down into; give it a table and a key of name and part."""

    name: Attr[str]
    part: Attr[str] = attr(default="all")
    count: Attr[int] = attr(default=0)
    total: Attr[Decimal] = attr(default=Decimal(0))

    @property
    def mean(self) -> Decimal | None:
        """The average of what was added, None if nothing was."""
        return self.total / self.count if self.count else None


class ProjectionMark(Entity):
    """What an item has contributed to the numbers; give it a table and a key of source and projector."""

    projector: Attr[str]
    source: Attr[str]  # the item's key
    kind: Attr[str]  # its type tag
    place: Attr[str]  # position in the stream of the record counted last
    shares: Attr[dict[str, dict[str, Decimal]]] = attr(default_factory=dict)
    expires: Attr[datetime | None] = attr(default=None)  # set when the item is deleted


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that could not be counted and must be delivered again."""

    sequence: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Projected:
    """How many records of a batch were counted, were repeated, or failed."""

    counted: int = 0  # items whose shares were updated
    known: int = 0  # items whose records had been counted before
    failed: tuple[FailedRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The differences from the table that a rebuild found and corrected."""

    counted: int = 0  # items that were not counted, or with other shares
    removed: int = 0  # items that were counted and no longer exist
    unknown: int = 0  # marks whose item's key cannot be determined, left unchanged


class ProjectionFailed(PatternError):
    """Records that could not be counted; the rest of the batch was."""

    def __init__(self, failed: Sequence[FailedRecord]) -> None:
        self.failed = tuple(failed)
        first = failed[0]
        super().__init__(
            f"{len(failed)} records could not be counted, the first is {first.sequence}: {first.error!r}; mend it, "
            "and they are counted when they come again"
        )


class ProjectionContended(PatternError):
    """Items whose marks other readers updated at every attempt: several consumers read the stream at once."""

    def __init__(self) -> None:
        super().__init__("Other readers of the stream were faster each time; let fewer read it at once")
