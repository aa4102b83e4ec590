"""What a review is and may become: states, categories, risk bands, the identity of an issue, what a fix comes to.

Knows nothing of tables. Scores are decimals from 0 to 1 with four places; None is a risk that nobody knows, which
is neither high nor low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from hashlib import sha256
from uuid import UUID, uuid5

RETENTION = timedelta(
    days=2555
)  # seven years, in which nothing of a review is lost, also of its last version
OPEN = timedelta(days=365)  # how long a review can be changed, from when it was made
FINDINGS_MAX = 1000  # of one review
HIGH_FROM = Decimal("0.7")
MEDIUM_FROM = Decimal("0.4")

_PLACES = Decimal("0.0001")
_RUNS = UUID("6c6b1a5e-9f0e-5a43-8a59-1f1de2a0b7c4")  # the namespace in which a run's review has its id


class Status(StrEnum):
    """How far a review is."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"


class Category(StrEnum):
    """What a finding is about."""

    SECURITY = "security"
    COST = "cost"
    RELIABILITY = "reliability"


class Severity(StrEnum):
    """How much a finding matters."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Band(StrEnum):
    """How risky a review is, in a word."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


NEXT: Mapping[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.PENDING, Status.COMPLETED, Status.FAILED}),
    Status.FAILED: frozenset({Status.FAILED, Status.PENDING, Status.COMPLETED}),  # it may be tried again
    Status.COMPLETED: frozenset({Status.COMPLETED, Status.PENDING}),  # it may be asked for again
}


@dataclass(frozen=True, slots=True)
class FixResult:
    """What applying a fix came to."""

    findings_resolved: int
    findings_remaining: int
    risk_reduction: Decimal | None  # None: one of the two scores is unknown


def band_of(score: Decimal | None) -> Band | None:
    """Return the band of a score; an unknown risk is in none."""
    if score is None:
        return None
    if score >= HIGH_FROM:
        return Band.HIGH
    return Band.MEDIUM if score >= MEDIUM_FROM else Band.LOW


def score_of(value: Decimal | None) -> Decimal | None:
    """Return a score from 0 to 1 as it is kept, with four places at most."""
    if value is None:
        return None
    assert 0 <= value <= 1, "scores are checked where they enter"
    return value.quantize(_PLACES, ROUND_HALF_EVEN).normalize() + Decimal(0)


def issue_hash(title: str, category: Category, file_path: str) -> str:
    """Return what tells one issue from another: the same in every stack and run, whatever line it is on."""
    told = "".join(f"{len(part)}:{part}" for part in (title, category.value, file_path))
    return sha256(told.encode()).hexdigest()[:24]


def review_id_of(run_id: str) -> str:
    """Return the id of the review of a run: always the same, so a run is recorded once."""
    return str(uuid5(_RUNS, run_id))


def expiry_of(created_at: datetime) -> datetime:
    """Return when everything of a review expires, all at once: so long after it could be changed last."""
    return created_at + OPEN + RETENTION


def day_of(at: datetime) -> date:
    """Return the day of a moment, in UTC."""
    return at.astimezone(UTC).date()


def fixed(
    before: Decimal | None, after: Decimal | None, standing: Iterable[str], resolved: Iterable[str]
) -> FixResult:
    """Return what a fix comes to that resolves some of the findings that stand."""
    stood = set(standing)
    gone = stood & set(resolved)
    reduction = None if before is None or after is None else before - after
    return FixResult(len(gone), len(stood) - len(gone), reduction)
