"""The rules of reviews: statuses, categories, risk bands, issue identity and the effect of a fix. Independent of tables.

Scores are decimals from 0 to 1 with four places. None is an unknown risk, which is in no band.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from hashlib import sha256
from uuid import UUID, uuid5

RETENTION = timedelta(days=2555)  # seven years, for the last version too
EDITABLE_FOR = timedelta(days=365)  # after a review is created, it can be changed for this long
FINDINGS_MAX = 1000  # of one review
HIGH_FROM = Decimal("0.7")
MEDIUM_FROM = Decimal("0.4")

_PLACES = Decimal("0.0001")
_RUN_NAMESPACE = UUID("6c6b1a5e-9f0e-5a43-8a59-1f1de2a0b7c4")  # namespace of the ids derived from run ids


class ReviewStatus(StrEnum):
    """The status of a review."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"


class Category(StrEnum):
    """The subject of a finding."""

    SECURITY = "security"
    COST = "cost"
    RELIABILITY = "reliability"


class FindingSeverity(StrEnum):
    """The severity of a finding."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class RiskBand(StrEnum):
    """The risk of a review in one word."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


TRANSITIONS: Mapping[ReviewStatus, frozenset[ReviewStatus]] = {
    ReviewStatus.PENDING: frozenset({ReviewStatus.PENDING, ReviewStatus.COMPLETED, ReviewStatus.FAILED}),
    ReviewStatus.FAILED: frozenset(
        {ReviewStatus.FAILED, ReviewStatus.PENDING, ReviewStatus.COMPLETED}
    ),  # retried
    ReviewStatus.COMPLETED: frozenset({ReviewStatus.COMPLETED, ReviewStatus.PENDING}),  # requested again
}


@dataclass(frozen=True, slots=True)
class FixResult:
    """The effect of applying a fix."""

    findings_resolved: int
    findings_remaining: int
    risk_reduction: Decimal | None  # None if either score is unknown


def risk_band(score: Decimal | None) -> RiskBand | None:
    """Return the band of a score; None for an unknown risk."""
    if score is None:
        return None
    if score >= HIGH_FROM:
        return RiskBand.HIGH
    return RiskBand.MEDIUM if score >= MEDIUM_FROM else RiskBand.LOW


def round_score(value: Decimal | None) -> Decimal | None:
    """Return a score from 0 to 1 rounded to the four places that are stored."""
    if value is None:
        return None
    assert 0 <= value <= 1, "scores are validated at the boundary"
    return value.quantize(_PLACES, ROUND_HALF_EVEN).normalize() + Decimal(0)


def issue_hash(title: str, category: Category, file_path: str) -> str:
    """Return the identity of an issue: the same in every stack and run, whatever the line number."""
    identity = "".join(f"{len(part)}:{part}" for part in (title, category.value, file_path))
    return sha256(identity.encode()).hexdigest()[:24]


def review_id_for_run(run_id: str) -> str:
    """Return the id of a run's review; it is derived from the run's id, so that a run is recorded once."""
    return str(uuid5(_RUN_NAMESPACE, run_id))


def expiry_time(created_at: datetime) -> datetime:
    """Return when all items of a review expire: the retention period after its last possible change."""
    return created_at + EDITABLE_FOR + RETENTION


def utc_day(at: datetime) -> date:
    """Return the UTC date of a time."""
    return at.astimezone(UTC).date()


def compute_fix_result(
    before: Decimal | None, after: Decimal | None, findings: Iterable[str], resolved: Iterable[str]
) -> FixResult:
    """Return the effect of a fix that resolves some of the current findings."""
    current = set(findings)
    fixed = current & set(resolved)
    reduction = None if before is None or after is None else before - after
    return FixResult(len(fixed), len(current) - len(fixed), reduction)
