"""The errors that the review history raises."""

from __future__ import annotations

from datetime import date, datetime

from tavola.apps.errors import ApplicationError
from tavola.apps.terraform_review.domain import EDITABLE_FOR, TRANSITIONS, Status
from tavola.errors import ErrorKind


class ReviewError(ApplicationError):
    """The base of the review history's own errors."""

    code = "invalid"


class ReviewMissing(ReviewError):
    """No review has this id."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND
    title = "Not found"

    def __init__(self, review_id: str) -> None:
        self.review_id = review_id
        super().__init__(f"There is no review {review_id!r}; look at its id, or ask by its run")


class VersionMissing(ReviewError):
    """The review does not have this version."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND
    title = "Not found"

    def __init__(self, review_id: str, version: int) -> None:
        self.review_id = review_id
        self.version = version
        super().__init__(f"The review {review_id!r} has no version {version}; its versions begin with 1")


class TransitionRefused(ReviewError):
    """The review cannot change from its current status to this one."""

    code = "transition-refused"
    kind = ErrorKind.CONFLICT
    title = "Not from there"

    def __init__(self, review_id: str, before: Status, after: Status) -> None:
        self.review_id = review_id
        self.before = before
        self.after = after
        self.allowed = tuple(status for status in Status if status in TRANSITIONS[before])
        super().__init__(
            f"The review {review_id!r} is {before} and cannot become {after}; it can become {', '.join(self.allowed)}",
            allowed=[str(status) for status in self.allowed],
        )


class ReviewClosed(ReviewError):
    """The review is too old to be changed."""

    code = "review-closed"
    kind = ErrorKind.CONFLICT
    title = "Closed"

    def __init__(self, review_id: str, since: datetime) -> None:
        self.review_id = review_id
        self.since = since
        super().__init__(
            f"The review {review_id!r} was made more than {EDITABLE_FOR.days} days ago and is closed since {since:%Y-%m-%d}; record a new run"
        )


class FindingUnknown(ReviewError):
    """A fix names a finding that the review's current version does not have."""

    def __init__(self, review_id: str, finding_id: str) -> None:
        self.review_id = review_id
        self.finding_id = finding_id
        super().__init__(
            f"The review {review_id!r} has no finding {finding_id!r} now; fix what its current version names"
        )


class RunRecorded(ReviewError):
    """The run already has a review, with another result."""

    code = "run-recorded"
    kind = ErrorKind.CONFLICT
    title = "Recorded before"

    def __init__(self, run_id: str, review_id: str) -> None:
        self.run_id = run_id
        self.review_id = review_id
        super().__init__(
            f"The run {run_id!r} has a review with another result, {review_id!r}; add a version to that one",
            review_id=review_id,
        )


class RangeRefused(ReviewError):
    """A range of days ends before it begins, or is longer than one request may cover."""

    def __init__(self, start: date, end: date, days_max: int) -> None:
        self.start = start
        self.end = end
        self.days_max = days_max
        super().__init__(
            f"The days from {start} to {end} are not a range of 1 to {days_max:,} days; ask for less at once"
        )
