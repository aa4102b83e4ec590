"""What the routes share: path and query parameters, exact JSON bodies, the caller, and responses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Final, TypedDict, TypeVar

from fastapi import Depends, Query, Request
from fastapi import Path as InPath
from fastapi.responses import Response
from fastapi.routing import APIRoute

from tavola.apps.shell import (
    ProblemError,
    etag_of,
    json_response,
    not_found,
    not_modified,
    require_match,
    resource_path,
)
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.intake import parse_exact_json
from tavola.apps.terraform_review.model import Review, ReviewVersion
from tavola.apps.terraform_review.schemas import ChangeRequest, Day, Moment, ReviewResponse, to_datetime
from tavola.apps.terraform_review.store import ReviewStore

TREND_DAYS: Final = 30
VERSION_MAX: Final = 10**9

T = TypeVar("T")

ReviewId = Annotated[str, InPath(max_length=200, examples=["6f3f5f64-6d0f-5f0e-9c5a-0a6f6f0c7d11"])]
StackId = Annotated[str, InPath(max_length=200, examples=["prod-stack-001"])]
RunId = Annotated[str, InPath(max_length=200, examples=["run-abc123"])]
ActorId = Annotated[str, InPath(max_length=200, examples=["eng-03"])]
IssueHash = Annotated[str, InPath(max_length=64, examples=["1f0c9f6be42d5b6a9c3e7d10"])]
VersionNumber = Annotated[int, InPath(ge=1, le=VERSION_MAX)]
VersionQuery = Annotated[
    int | None, Query(ge=1, le=VERSION_MAX, description="The version; the latest by default.")
]
FromDay = Annotated[
    Day | None, Query(alias="from", description=f"The first day; {TREND_DAYS} days back by default.")
]
ToDay = Annotated[Day | None, Query(alias="to", description="The last day; today by default.")]


class TimeArguments(TypedDict):
    """The time range of a list; a service takes it as `**during`."""

    since: datetime | None
    until: datetime | None


async def _time_arguments(
    start: Annotated[Moment | None, Query(alias="from", description="From this time or day on.")] = None,
    end: Annotated[
        Moment | None, Query(alias="to", description="Up to this time, or to the end of this day.")
    ] = None,
) -> TimeArguments:
    return {"since": to_datetime(start), "until": to_datetime(end, ends=True)}


During = Annotated[TimeArguments, Depends(_time_arguments)]


class ExactRequest(Request):
    """A request whose JSON numbers keep all their digits."""

    async def json(self) -> Any:
        """Return the body, parsed without rounding."""
        if not hasattr(self, "_exact"):
            self._exact = parse_exact_json(await self.body())
        return self._exact


class ExactRoute(APIRoute):
    """A route that parses its body without rounding."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that passes an `ExactRequest` on."""
        handle = super().get_route_handler()

        async def handle_exactly(request: Request) -> Response:
            return await handle(ExactRequest(request.scope, request.receive))

        return handle_exactly


def store_of(request: Request) -> ReviewStore:
    """Return the reviews of the application that a request is for."""
    store: ReviewStore = request.app.state.reviews
    return store


def require_caller(request: Request) -> str | None:
    """Return the caller that the proxy's header names; None if the application has no such header.

    Raises a 403 if the header is configured and missing.
    """
    header: str | None = request.app.state.caller_header
    caller = named_caller(request)
    if header is not None and caller is None:
        raise ProblemError(
            403,
            "caller-unknown",
            "Caller unknown",
            f"Changes require the header {header} that the proxy sets, and this request has none. Send it through the proxy.",
        )
    return caller


def named_caller(request: Request) -> str | None:
    """Return the caller that the proxy's header names, or None; for pages that only display it."""
    header: str | None = request.app.state.caller_header
    return None if header is None else request.headers.get(header, "").strip() or None


def check_caller(request: Request, actor: str) -> str:
    """Return the actor that a request states; refuse one that is not the caller, where the caller is known."""
    caller = require_caller(request)
    if caller is not None and caller != actor:
        raise ProblemError(
            403,
            "not-the-caller",
            "Not the caller",
            "The author in the request is not the caller. Use your own name.",
        )
    return actor


def day_range(store: ReviewStore, start: date | None, end: date | None) -> tuple[date, date]:
    """Return a range of days; by default the last thirty days up to today."""
    last = end or store.now().date()
    if start is not None:
        return start, last
    back = timedelta(days=TREND_DAYS - 1)
    return (last - back if last - date.min > back else date.min), last


def require(record: T | None, name: str) -> T:
    """Return a record; raise a 404 that names it if it is None."""
    if record is None:
        raise not_found(name)
    return record


class ChangeArguments(TypedDict):
    """What every change of a review passes to its service."""

    by: str
    why: str
    expected_version: int


async def change_arguments(request: Request, review_id: str, body: ChangeRequest) -> ChangeArguments:
    """Return the author, reason and version of a change; refuse it unless If-Match names the review's current version."""
    review = await service.get_review(store_of(request), review_id)
    require_match(request, etag_of(review.version))
    by = check_caller(request, body.changed_by)
    return {"by": by, "why": body.why, "expected_version": review.version}


async def get_version_or_latest(
    store: ReviewStore, review_id: str, number: int | None
) -> Review | ReviewVersion:
    """Return a version of a review; the latest if no number is given."""
    if number is None:
        return await service.get_review(store, review_id)
    return await service.get_version(store, review_id, number)


def version_response(request: Request, version: Review | ReviewVersion) -> Response:
    """Return a stored version, or a 304 if the caller has it."""
    etag = etag_of(version.version)
    return not_modified(request, etag) or json_response(ReviewResponse.model_validate(version), etag=etag)


def written_response(
    request: Request, version: Review | ReviewVersion, status: int, *, replayed: bool = False
) -> Response:
    """Return a version that was just written, and wake the follower that counts it."""
    request.app.state.follower.wake()
    headers = {"Location": resource_path(request, "reviews", version.review_id)} if status == 201 else None
    body = ReviewResponse.model_validate(version)
    return json_response(body, status, etag=etag_of(version.version), headers=headers, replayed=replayed)
