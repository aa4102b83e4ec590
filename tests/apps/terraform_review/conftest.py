"""A review history on each target, and results to record in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tavola import AsyncConnection, ManualClock
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import Category, FindingSeverity, ReviewStatus
from tavola.apps.terraform_review.model import Review, Reviews
from tavola.apps.terraform_review.results import AppliedFix, FindingResult, FixRequest, ReviewResult
from tavola.apps.terraform_review.statistics import Statistic
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import FolderBlobs
from tests.apps.conftest import Run, Target

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def finding(title: str = "Bucket is public", **more: Any) -> FindingResult:
    """Return one thing that was found."""
    values = {
        "category": Category.SECURITY,
        "severity": FindingSeverity.HIGH,
        "file_path": "main.tf",
        "description": "As the rule says",
        "recommendation": "Mend it",
        **more,
    }
    return FindingResult(title=title, **values)


def result(run: str = "run-1", *titles: str, **more: Any) -> ReviewResult:
    """Return the result of a run: with these findings, and whatever else is said."""
    values: dict[str, Any] = {
        "stack_id": "prod-net",
        "created_by": "eng-01",
        "terraform_code": 'resource "aws_s3_bucket" "x" {}',
        "overall_risk_score": Decimal("0.72"),
        "findings": tuple(finding(title) for title in titles),
    }
    return ReviewResult(spacelift_run_id=run, **{**values, **more})


def failed_result(run: str, **more: Any) -> ReviewResult:
    """Return the result of a run that failed: its risk is unknown."""
    return result(run, status=ReviewStatus.FAILED, overall_risk_score=None, **more)


def fix_of(review: Review, *titles: str, risk: str | None = "0.35") -> FixRequest:
    """Return a fix of a review's findings with these titles."""
    fixes = [
        AppliedFix(finding_id=ident, effectiveness_score=Decimal("0.95"))
        for ident, ref in review.findings.items()
        if ref.title in titles
    ]
    return FixRequest(fixes_applied=tuple(fixes), overall_risk_score=None if risk is None else Decimal(risk))


@dataclass(slots=True)
class ReviewHistory:
    """A review history under test: its store, its clock, and what the tests ask of both."""

    store: ReviewStore
    clock: ManualClock
    db: AsyncConnection

    async def record(self, run: str = "run-1", *titles: str, **more: Any) -> Review:
        """Record a result."""
        return (await service.record_review(self.store, result(run, *titles, **more))).review

    async def count(self) -> int:
        """Have the projector read the stream from its start to its end."""
        subscription = await self.db.subscribe(Reviews, from_="start", follow=False)
        return await self.store.projector.follow(subscription)

    async def exact(self) -> dict[str, Statistic]:
        """Return the statistics; they must be what the items themselves come to."""
        stored, recounted = await self.store.projector.read_statistics(), await self.store.projector.recount()
        assert compared_fields(stored) == compared_fields(recounted)
        return stored


def compared_fields(statistics: dict[str, Statistic]) -> dict[str, dict[str, Any]]:
    """Return what statistics say, whatever it took to get there; those in which nothing is counted are left out."""
    fields_by_name = {name: entity.model_dump(exclude={"revision"}) for name, entity in statistics.items()}
    return {name: fields for name, fields in fields_by_name.items() if fields.get("occurrence_count") != 0}


@pytest.fixture
def clock() -> ManualClock:
    """Noon of a Monday in March."""
    return ManualClock(NOON.timestamp())


@pytest.fixture
def wide(target: Target) -> None:
    """A target whose transactions hold a hundred items, as AWS's do; old releases of DynamoDB Local take ten."""
    if target.kind == "local":
        pytest.skip("this DynamoDB Local takes ten items to a transaction")


@pytest.fixture
def history(target: Target, run: Run[Any], clock: ManualClock, tmp_path: Path) -> Iterator[ReviewHistory]:
    """A review history on each target."""
    with open_history(target, run, clock, tmp_path) as found:
        yield found


@contextmanager
def open_history(
    target: Target, run: Run[Any], clock: ManualClock, folder: Path, **more: Any
) -> Iterator[ReviewHistory]:
    """A review history on a target while a block runs."""

    async def enter() -> ReviewHistory:
        db = target.connect(clock=clock)
        return ReviewHistory(ReviewStore(db, FolderBlobs(folder / "blobs"), **more), clock, db)

    history: ReviewHistory = run(enter())
    try:
        run(history.store.create_tables())
        yield history
    finally:
        run(history.db.close())
