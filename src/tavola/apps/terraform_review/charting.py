"""Charting: days of risk as what the charts show; many days are put together to weeks or months."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from tavola.apps.terraform_review.model import DayRisk

DAYS_SHOWN: Final = 92
WEEKS_SHOWN_DAYS: Final = 550


@dataclass(slots=True)
class Step:
    """One place of a chart: a day, a week or a month."""

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
        """Put a day to it."""
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
        """The mean risk after fixes, None where none is known."""
        return round(float(self.risk_sum / self.assessed), 4) if self.assessed else None

    @property
    def average_found(self) -> float | None:
        """The mean risk as it was found, None where none is known."""
        return round(float(self.found_sum / self.assessed), 4) if self.assessed else None


@dataclass(frozen=True, slots=True)
class Trend:
    """Risk over a range: all of it together, and step by step."""

    unit: str  # "day", "week", "month"
    whole: Step
    steps: tuple[Step, ...]

    @property
    def labels(self) -> list[str]:
        """What the steps are called."""
        return [step.label for step in self.steps]

    @property
    def averages(self) -> list[tuple[str, Sequence[float | None]]]:
        """The series of mean risks: as found, and after fixes."""
        return [
            ("As found", [step.average_found for step in self.steps]),
            ("After fixes", [step.average for step in self.steps]),
        ]

    @property
    def bands(self) -> list[tuple[str, Sequence[float | None]]]:
        """The series of counts: high, medium, low, and what nobody knows."""
        return [
            ("High", [step.high for step in self.steps]),
            ("Medium", [step.medium for step in self.steps]),
            ("Low", [step.low for step in self.steps]),
            ("Unknown", [step.reviews - step.assessed for step in self.steps]),
        ]


def trend(days: Iterable[DayRisk], start: date, end: date) -> Trend:
    """Return the days of a range, by day up to three months, by week up to a year and a half, by month past that."""
    count = (end - start).days + 1
    unit = "day" if count <= DAYS_SHOWN else "week" if count <= WEEKS_SHOWN_DAYS else "month"
    steps: dict[str, Step] = {}
    at = start
    while True:
        label = _label(at, unit)
        steps.setdefault(label, Step(label))
        if at >= end:
            break
        at += timedelta(days=1)
    whole = Step("all")
    for day in days:
        whole.add(day)
        steps[_label(day.day, unit)].add(day)
    return Trend(unit, whole, tuple(steps.values()))


def distribution(day: DayRisk) -> list[tuple[str, float | None]]:
    """Return how many reviews of a day are in which band."""
    unknown = day.reviews - day.assessed
    return [("High", day.high), ("Medium", day.medium), ("Low", day.low), ("Unknown", unknown)]


def score(value: Decimal | float | None) -> str:
    """Return a score as people read it."""
    return "unknown" if value is None else f"{value:.2f}"


def _label(day: date, unit: str) -> str:
    if unit == "day":
        return f"{day.day} {day:%b}"
    if unit == "week":
        monday = (
            day - timedelta(days=day.weekday()) if day - date.min >= timedelta(days=day.weekday()) else day
        )
        return f"{monday.day} {monday:%b %y}"
    return f"{day:%b %Y}"
