"""The errors that the review history raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tavola.apps.errors import ApplicationError, RecordMissing
from tavola.apps.terraform_review.domain import EDITABLE_FOR, TRANSITIONS, ReviewStatus
from tavola.errors import ErrorKind


class ReviewError(ApplicationError):
    """The base of the review history's own errors."""

    code = "invalid"


@dataclass(eq=False)
class ReviewMissing(RecordMissing, ReviewError):
    """No review has this ID."""

    message = "Review {review_id!r} does not exist; check its ID, or search by run"

    review_id: str


@dataclass(eq=False)
class VersionMissing(RecordMissing, ReviewError):
    """The review does not have this version."""

    message = "Review {review_id!r} has no version {version}; versions start at 1"

    review_id: str
    version: int


@dataclass(eq=False)
class ReviewTransitionRefused(ReviewError):
    """The review cannot change from its current status to this one."""

    code = "transition-refused"
    kind = ErrorKind.CONFLICT
    title = "Status change not allowed"
    message = "Review {review_id!r} is {before} and cannot become {after}; allowed: {allowed_text}"

    review_id: str
    before: ReviewStatus
    after: ReviewStatus

    def __post_init__(self) -> None:
        self.allowed = tuple(status for status in ReviewStatus if status in TRANSITIONS[self.before])
        self.allowed_text = ", ".join(self.allowed)
        super().__post_init__()

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The allowed statuses."""
        return {"allowed": [str(status) for status in self.allowed]}


@dataclass(eq=False)
class ReviewClosed(ReviewError):
    """The review is too old to be changed."""

    code = "review-closed"
    kind = ErrorKind.CONFLICT
    title = "Closed"
    message = f"Review {{review_id!r}} is older than {EDITABLE_FOR.days} days and was closed on {{since:%Y-%m-%d}}; record a new run"

    review_id: str
    since: datetime


@dataclass(eq=False)
class FindingUnknown(ReviewError):
    """A fix names a finding that the review's current version does not have."""

    message = "The current version of review {review_id!r} has no finding {finding_id!r}; use the IDs of its current findings"

    review_id: str
    finding_id: str


@dataclass(eq=False)
class RunRecorded(ReviewError):
    """The run already has a review, with another result."""

    code = "run-recorded"
    kind = ErrorKind.CONFLICT
    title = "Already recorded"
    message = "Run {run_id!r} already has review {review_id!r} with a different result; add a version to that review"

    run_id: str
    review_id: str

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The existing review."""
        return {"review_id": self.review_id}


@dataclass(eq=False)
class RangeRefused(ReviewError):
    """A range of days ends before it begins, or is longer than one request may cover."""

    message = "The range from {start} to {end} must have 1 to {days_max:,} days"

    start: date
    end: date
    days_max: int
