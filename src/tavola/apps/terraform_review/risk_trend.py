"""The data of the risk charts: risk by day, or grouped by week or month for long ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from tavola.apps.terraform_review.model import DayRisk

DAILY_DAYS_MAX: Final = 92  # longer ranges are grouped by week
WEEKLY_DAYS_MAX: Final = 550  # longer ranges are grouped by month


@dataclass(slots=True)
class TrendBucket:
    """The sums of one day, week or month of a chart."""

    label: str
    reviews: int = 0
    assessed: int = 0
    risk_sum: Decimal = field(default_factory=Decimal)
    found_sum: Decimal = field(default_factory=Decimal)
    high: int = 0
    medium: int = 0
    low: int = 0
    pending: int = 0
    failed: int = 0
    fixed: int = 0
    findings: int = 0

    def add(self, day: DayRisk) -> None:
        """Add the numbers of a day."""
        for name in (
            "reviews",
            "assessed",
            "high",
            "medium",
            "low",
            "pending",
            "failed",
            "fixed",
            "findings",
        ):
            setattr(self, name, getattr(self, name) + getattr(day, name))
        self.risk_sum += day.risk_sum
        self.found_sum += day.found_sum

    @property
    def average(self) -> float | None:
        """The mean risk after fixes; None if no risk is known."""
        return round(float(self.risk_sum / self.assessed), 4) if self.assessed else None

    @property
    def average_found(self) -> float | None:
        """The mean risk as first found; None if no risk is known."""
        return round(float(self.found_sum / self.assessed), 4) if self.assessed else None


@dataclass(frozen=True, slots=True)
class RiskTrend:
    """The risk of a range of days: in total, and by bucket."""

    unit: str  # "day", "week", "month"
    total: TrendBucket
    buckets: tuple[TrendBucket, ...]

    @property
    def labels(self) -> list[str]:
        """The labels of the buckets."""
        return [bucket.label for bucket in self.buckets]

    @property
    def averages(self) -> list[tuple[str, Sequence[float | None]]]:
        """The series of mean risks: as found, and after fixes."""
        return [
            ("Before fixes", [bucket.average_found for bucket in self.buckets]),
            ("After fixes", [bucket.average for bucket in self.buckets]),
        ]

    @property
    def bands(self) -> list[tuple[str, Sequence[float | None]]]:
        """The series of review counts by risk band."""
        return [
            ("High", [bucket.high for bucket in self.buckets]),
            ("Medium", [bucket.medium for bucket in self.buckets]),
            ("Low", [bucket.low for bucket in self.buckets]),
            ("Unknown", [bucket.reviews - bucket.assessed for bucket in self.buckets]),
        ]


def build_trend(days: Iterable[DayRisk], start: date, end: date) -> RiskTrend:
    """Return the trend of a range: by day up to three months, by week up to a year and a half, by month beyond that."""
    count = (end - start).days + 1
    unit = "day" if count <= DAILY_DAYS_MAX else "week" if count <= WEEKLY_DAYS_MAX else "month"
    buckets: dict[str, TrendBucket] = {}
    current = start
    while True:
        label = _label(current, unit)
        buckets.setdefault(label, TrendBucket(label))
        if current >= end:
            break
        current += timedelta(days=1)
    total = TrendBucket("all")
    for day in days:
        total.add(day)
        buckets[_label(day.day, unit)].add(day)
    return RiskTrend(unit, total, tuple(buckets.values()))


def band_counts(day: DayRisk) -> list[tuple[str, float | None]]:
    """Return how many reviews of a day are in each risk band."""
    unknown = day.reviews - day.assessed
    return [("High", day.high), ("Medium", day.medium), ("Low", day.low), ("Unknown", unknown)]


def format_score(value: Decimal | float | None) -> str:
    """Return a score as text with two places."""
    return "—" if value is None else f"{value:.2f}"


def _label(day: date, unit: str) -> str:
    if unit == "day":
        return f"{day.day} {day:%b}"
    if unit == "week":
        monday = (
            day - timedelta(days=day.weekday()) if day - date.min >= timedelta(days=day.weekday()) else day
        )
        return f"{monday.day} {monday:%b %y}"
    return f"{day:%b %Y}"
