"""What the routes share: path and query parameters, exact JSON bodies, the caller, and responses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import date, timedelta
from typing import Annotated, Any, Final, TypeVar

from fastapi import Path as InPath
from fastapi import Query, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from tavola.apps.shell import Paged, ProblemError, etag_of, json_response, require_match, resource_path
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.intake import parse_exact_json
from tavola.apps.terraform_review.model import Review, ReviewVersion
from tavola.apps.terraform_review.schemas import Day, Moment, review_response
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import Slice

TREND_DAYS: Final = 30
VERSION_MAX: Final = 10**9

F = TypeVar("F")
T = TypeVar("T", bound=BaseModel)

ReviewId = Annotated[str, InPath(max_length=200, examples=["6f3f5f64-6d0f-5f0e-9c5a-0a6f6f0c7d11"])]
StackId = Annotated[str, InPath(max_length=200, examples=["prod-stack-001"])]
RunId = Annotated[str, InPath(max_length=200, examples=["run-abc123"])]
ActorId = Annotated[str, InPath(max_length=200, examples=["eng-03"])]
IssueHash = Annotated[str, InPath(max_length=64, examples=["1f0c9f6be42d5b6a9c3e7d10"])]
VersionNumber = Annotated[int, InPath(ge=1, le=VERSION_MAX)]
VersionQuery = Annotated[
    int | None, Query(ge=1, le=VERSION_MAX, description="The version; the latest by default.")
]
Since = Annotated[Moment | None, Query(alias="from", description="From this time or day on.")]
Until = Annotated[Moment | None, Query(alias="to", description="Up to this time, or to the end of this day.")]
FromDay = Annotated[
    Day | None, Query(alias="from", description=f"The first day; {TREND_DAYS} days back by default.")
]
ToDay = Annotated[Day | None, Query(alias="to", description="The last day; today by default.")]


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
            f"Changes are made by callers whom the proxy names in {header}, and this request has none. Ask through the proxy.",
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
            "The request says that somebody else does it than who sends it. Give your own name.",
        )
    return actor


def day_range(store: ReviewStore, start: date | None, end: date | None) -> tuple[date, date]:
    """Return a range of days; by default the last thirty days up to today."""
    last = end or store.now().date()
    if start is not None:
        return start, last
    back = timedelta(days=TREND_DAYS - 1)
    return (last - back if last - date.min > back else date.min), last


async def require_current_review(request: Request, store: ReviewStore, review_id: str) -> Review:
    """Return a review to change; refuse the request unless If-Match names its current version."""
    review = await service.get_review(store, review_id)
    require_match(request, etag_of(review.version))
    return review


async def get_version_or_latest(
    store: ReviewStore, review_id: str, number: int | None
) -> Review | ReviewVersion:
    """Return a version of a review; the latest if no number is given."""
    if number is None:
        return await service.get_review(store, review_id)
    return await service.get_version(store, review_id, number)


def version_response(request: Request, review: Review | ReviewVersion, status: int) -> Response:
    """Return a version that was just written, and wake the follower that counts it."""
    request.app.state.follower.wake()
    response = json_response(review_response(review), status, etag=etag_of(review.version))
    if status == 201:
        response.headers["Location"] = resource_path(request, "reviews", review.review_id)
    return response


def slice_response(
    request: Request, items: Slice[F], to_response: Callable[[F], T], shape: type[Paged[T]]
) -> Response:
    """Return one page of a list as JSON, with the cursor of the next."""
    page = shape.model_construct(items=[to_response(each) for each in items.items], next=items.cursor)
    return page.response(request)
