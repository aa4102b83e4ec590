"""Answers: what the routes share: parameters, bodies read exactly, JSON and pages of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import date, timedelta
from typing import Annotated, Any, Final, TypeVar

from fastapi import Path as InPath
from fastapi import Query, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from tavola.apps.shell import Paged, ProblemError, etag_of, require_match
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.intake import exact_json
from tavola.apps.terraform_review.model import Review, ReviewVersion
from tavola.apps.terraform_review.resources import Day, Moment, review_told
from tavola.apps.terraform_review.store import ReviewStore
from tavola.patterns import BlobDamaged, BlobMissing, Slice

TREND_DAYS: Final = 30
VERSION_MAX: Final = 10**9

F = TypeVar("F")
T = TypeVar("T", bound=BaseModel)

ReviewId = Annotated[str, InPath(max_length=200, examples=["6f3f5f64-6d0f-5f0e-9c5a-0a6f6f0c7d11"])]
StackId = Annotated[str, InPath(max_length=200, examples=["prod-stack-001"])]
RunId = Annotated[str, InPath(max_length=200, examples=["run-abc123"])]
ActorId = Annotated[str, InPath(max_length=200, examples=["eng-03"])]
IssueHash = Annotated[str, InPath(max_length=64, examples=["1f0c9f6be42d5b6a9c3e7d10"])]
Number = Annotated[int, InPath(ge=1, le=VERSION_MAX)]
OfVersion = Annotated[
    int | None, Query(ge=1, le=VERSION_MAX, description="Of which version; the latest unless said.")
]
Since = Annotated[Moment | None, Query(alias="from", description="From a moment, or from a day on.")]
Until = Annotated[Moment | None, Query(alias="to", description="Up to a moment, or with a day.")]
FromDay = Annotated[
    Day | None, Query(alias="from", description=f"The first day; {TREND_DAYS} days back unless said.")
]
ToDay = Annotated[Day | None, Query(alias="to", description="The last day; today unless said.")]


class ExactRequest(Request):
    """A request whose JSON loses no digit."""

    async def json(self) -> Any:
        """Return the body, read exactly."""
        if not hasattr(self, "_exact"):
            self._exact = exact_json(await self.body())
        return self._exact


class ExactRoute(APIRoute):
    """A route that reads its body exactly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def exact(request: Request) -> Response:
            return await answer(ExactRequest(request.scope, request.receive))

        return exact


def store_of(request: Request) -> ReviewStore:
    """Return the reviews of a running application."""
    store: ReviewStore = request.app.state.reviews
    return store


def caller_of(request: Request) -> str | None:
    """Return who calls, where a proxy that knows says so in a header; None where nobody is asked."""
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
    """Return whom a proxy names, for a page that only shows it."""
    header: str | None = request.app.state.caller_header
    return None if header is None else request.headers.get(header, "").strip() or None


def check_caller(request: Request, told: str) -> str:
    """Return who does it, as told; somebody else than who calls is refused, where that is known."""
    caller = caller_of(request)
    if caller is not None and caller != told:
        raise ProblemError(
            403,
            "not-the-caller",
            "Not the caller",
            "The request says that somebody else does it than who sends it. Give your own name.",
        )
    return told


def blob_lost(error: BlobMissing | BlobDamaged) -> ProblemError:
    """Return the problem of code that is no longer where it was kept, or no longer what it was."""
    what = "is missing" if isinstance(error, BlobMissing) else "is not as it was written"
    return ProblemError(
        503,
        "blob-lost",
        "Not available",
        f"The large part of this version, {error.blob.size:,} bytes beside the table, {what} in the blob store. Whoever runs this "
        "brings it back from a backup, or starts with the blob store that the version was written with.",
    )


def days_of(store: ReviewStore, start: date | None, end: date | None) -> tuple[date, date]:
    """Return the days of a range: up to today, and thirty of them, unless said."""
    last = end or store.now().date()
    if start is not None:
        return start, last
    back = timedelta(days=TREND_DAYS - 1)
    return (last - back if last - date.min > back else date.min), last


async def matched(request: Request, store: ReviewStore, review_id: str) -> Review:
    """Return the review that a change is meant for, if it is still the version that If-Match names."""
    found = await service.latest(store, review_id)
    require_match(request, etag_of(found.version))
    return found


async def version_of(store: ReviewStore, review_id: str, number: int | None) -> Review | ReviewVersion:
    """Return a version of a review, the latest where none is named."""
    if number is None:
        return await service.latest(store, review_id)
    return await service.version(store, review_id, number)


def changed(request: Request, found: Review | ReviewVersion, status: int) -> Response:
    """Return a version that was just made; the numbers are counted soon."""
    request.app.state.follower.wake()
    told = answer(review_told(found), status, etag=etag_of(found.version))
    if status == 201:
        base = str(request.scope.get("root_path", "")).rstrip("/")
        told.headers["Location"] = f"{base}/reviews/{found.review_id}"
    return told


def answer(told: BaseModel, status: int = 200, *, etag: str | None = None) -> Response:
    """Return what is told as JSON."""
    headers = None if etag is None else {"ETag": etag}
    return Response(told.__pydantic_serializer__.to_json(told), status, headers, "application/json")


def page(request: Request, found: Slice[F], told: Callable[[F], T], shape: type[Paged[T]]) -> Response:
    """Return some of a list as a page, with a cursor for more."""
    made = shape.model_construct(items=[told(each) for each in found.items], next=found.cursor)
    return made.response(request)
