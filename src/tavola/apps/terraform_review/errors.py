"""Errors: what the review history cannot do, in sentences for the person who asked."""

from __future__ import annotations

from datetime import date, datetime

from tavola import TavolaError
from tavola.apps.terraform_review.domain import NEXT, OPEN, Status


class ReviewError(TavolaError):
    """What goes wrong in the review history and nowhere else."""


class ReviewMissing(ReviewError):
    """A review that is not there."""

    def __init__(self, review_id: str) -> None:
        self.review_id = review_id
        super().__init__(f"There is no review {review_id!r}; look at its id, or ask by its run")


class VersionMissing(ReviewError):
    """A version that its review does not have."""

    def __init__(self, review_id: str, version: int) -> None:
        self.review_id = review_id
        self.version = version
        super().__init__(f"The review {review_id!r} has no version {version}; its versions begin with 1")


class TransitionRefused(ReviewError):
    """A status that may not follow the one that a review has."""

    def __init__(self, review_id: str, before: Status, after: Status) -> None:
        self.review_id = review_id
        self.before = before
        self.after = after
        self.allowed = tuple(status for status in Status if status in NEXT[before])
        super().__init__(
            f"The review {review_id!r} is {before} and cannot become {after}; it can become {', '.join(self.allowed)}"
        )


class ReviewClosed(ReviewError):
    """A change of a review that is too old to be changed."""

    def __init__(self, review_id: str, since: datetime) -> None:
        self.review_id = review_id
        self.since = since
        super().__init__(
            f"The review {review_id!r} was made more than {OPEN.days} days ago and is closed since {since:%Y-%m-%d}; record a new run"
        )


class FindingUnknown(ReviewError):
    """A fix of a finding that the review's current version does not have."""

    def __init__(self, review_id: str, finding_id: str) -> None:
        self.review_id = review_id
        self.finding_id = finding_id
        super().__init__(
            f"The review {review_id!r} has no finding {finding_id!r} now; fix what its current version names"
        )


class RunRecorded(ReviewError):
    """A run that was recorded before, with another result."""

    def __init__(self, run_id: str, review_id: str) -> None:
        self.run_id = run_id
        self.review_id = review_id
        super().__init__(
            f"The run {run_id!r} has a review with another result, {review_id!r}; add a version to that one"
        )


class RangeRefused(ReviewError):
    """A range of days that ends before it begins, or that is longer than is asked at once."""

    def __init__(self, start: date, end: date, days_max: int) -> None:
        self.start = start
        self.end = end
        self.days_max = days_max
        super().__init__(
            f"The days from {start} to {end} are not a range of 1 to {days_max:,} days; ask for less at once"
        )
