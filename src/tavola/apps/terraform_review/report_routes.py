"""The REST routes of reports: runs, stacks, risk by day, and repeated issues."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    Cursor,
    Limit,
    Paged,
    etag_of,
    json_response,
    not_found,
    not_modified,
    parameters,
    problems,
)
from tavola.apps.terraform_review import schemas, service
from tavola.apps.terraform_review.domain import HIGH_FROM, Category
from tavola.apps.terraform_review.requests import (
    FromDay,
    IssueHash,
    RunId,
    Since,
    StackId,
    ToDay,
    Until,
    day_range,
    slice_response,
    store_of,
)
from tavola.apps.terraform_review.schemas import (
    Day,
    DayRiskResponse,
    FindingResponse,
    IssueCountsResponse,
    IssueResponse,
    ReviewResponse,
    ReviewSummaryResponse,
    RiskTrendResponse,
    StackIssueResponse,
    StackResponse,
)

HIGH_MAX: Final = 500
SCORE_PLACES: Final = Decimal("0.0001")

router = APIRouter()


# Runs and stacks.


@router.get(
    "/runs/{run_id}/review",
    tags=["reviews"],
    summary="The latest review of a run",
    response_model=ReviewResponse,
    responses=problems(404) | {304: {"description": "It is still the version that If-None-Match names"}},
    openapi_extra=parameters("if-none-match"),
)
async def run_review(request: Request, run_id: RunId) -> Response:
    """Return the review that the run created or changed last, in its current version."""
    review = await service.latest_run_review(store_of(request), run_id)
    if review is None:
        raise not_found("run")
    etag = etag_of(review.version)
    return not_modified(request, etag) or json_response(schemas.review_response(review), etag=etag)


@router.get("/stacks", tags=["stacks"], summary="All stacks", response_model=Paged[StackResponse])
async def stacks(request: Request, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """Return all stacks by name, with their statistics."""
    page = await service.list_stacks(store_of(request), limit=limit, cursor=cursor)
    return slice_response(request, page, schemas.stack_response, Paged[StackResponse])


@router.get(
    "/stacks/{stack_id}",
    tags=["stacks"],
    summary="A stack's numbers",
    response_model=StackResponse,
    responses=problems(404),
)
async def stack(request: Request, stack_id: StackId) -> Response:
    """Return the statistics of a stack's current reviews."""
    stats = await service.get_stack_stats(store_of(request), stack_id)
    if stats is None:
        raise not_found("stack")
    return json_response(schemas.stack_response(stats))


@router.get(
    "/stacks/{stack_id}/reviews",
    tags=["stacks"],
    summary="A stack's reviews",
    response_model=Paged[ReviewSummaryResponse],
)
async def stack_reviews(
    request: Request,
    stack_id: StackId,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the reviews of a stack by creation time, newest first."""
    page = await service.list_stack_reviews(
        store_of(request),
        stack_id,
        since=schemas.to_datetime(since),
        until=schemas.to_datetime(until, ends=True),
        limit=limit,
        cursor=cursor,
    )
    return slice_response(request, page, schemas.review_summary_response, Paged[ReviewSummaryResponse])


@router.get(
    "/stacks/{stack_id}/latest",
    tags=["stacks"],
    summary="A stack's latest review",
    response_model=ReviewSummaryResponse,
    responses=problems(404),
)
async def stack_latest(request: Request, stack_id: StackId) -> Response:
    """Return the newest review of a stack."""
    review = await service.latest_stack_review(store_of(request), stack_id)
    if review is None:
        raise not_found("stack")
    return json_response(schemas.review_summary_response(review))


@router.get(
    "/stacks/{stack_id}/issues",
    tags=["stacks", "issues"],
    summary="A stack's repeated issues",
    response_model=Paged[StackIssueResponse],
)
async def stack_issues(
    request: Request,
    stack_id: StackId,
    min_occurrences: Annotated[
        int, Query(alias="min", ge=1, le=999_999_999, description="The minimum number of occurrences.")
    ] = 3,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the issues of a stack with a minimum number of occurrences, most frequent first."""
    page = await service.list_stack_issues(
        store_of(request), stack_id, min_occurrences=min_occurrences, limit=limit, cursor=cursor
    )
    return slice_response(request, page, schemas.stack_issue_response, Paged[StackIssueResponse])


# Risk.


@router.get("/risk/days", tags=["risk"], summary="The risk trend", response_model=RiskTrendResponse)
async def risk_days(request: Request, start: FromDay = None, end: ToDay = None) -> Response:
    """Return the risk of each day of a range that has reviews. It is one query, whatever the range."""
    store = store_of(request)
    first, last = day_range(store, start, end)
    days = await service.list_day_risks(store, first, last)
    return json_response(
        RiskTrendResponse(
            from_day=first, to_day=last, days=[schemas.day_risk_response(each) for each in days]
        )
    )


@router.get("/risk/days/{day}", tags=["risk"], summary="The risk of a day", response_model=DayRiskResponse)
async def risk_day(request: Request, day: Day) -> Response:
    """Return the risk of the reviews created on a day; a day without reviews has zero counts."""
    return json_response(schemas.day_risk_response(await service.get_day_risk(store_of(request), day)))


@router.get(
    "/risk/high", tags=["risk"], summary="High-risk reviews", response_model=Paged[ReviewSummaryResponse]
)
async def risk_high(
    request: Request,
    start: FromDay = None,
    end: ToDay = None,
    min_risk: Annotated[
        Decimal, Query(alias="min", ge=0, le=1, max_digits=30, description="The minimum risk.")
    ] = HIGH_FROM,
    limit: Annotated[int, Query(ge=1, le=HIGH_MAX)] = 100,
    cursor: Cursor = None,
) -> Response:
    """Return the reviews of a range of days with a minimum risk, latest day first. It is one query per day, up to a year."""
    store = store_of(request)
    first, last = day_range(store, start, end)
    rounded = min_risk.quantize(SCORE_PLACES, ROUND_CEILING)  # scores have no more places
    page = await service.list_high_risk(store, first, last, min_risk=rounded, limit=limit, cursor=cursor)
    return slice_response(request, page, schemas.review_summary_response, Paged[ReviewSummaryResponse])


# Issues.


@router.get(
    "/issues", tags=["issues"], summary="The most frequent issues", response_model=Paged[IssueCountsResponse]
)
async def issues(request: Request, category: Category, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """Return the issues of a category over all stacks, most frequent first."""
    page = await service.list_frequent_issues(store_of(request), category, limit=limit, cursor=cursor)
    return slice_response(request, page, schemas.issue_counts_response, Paged[IssueCountsResponse])


@router.get(
    "/issues/{issue_hash}",
    tags=["issues"],
    summary="An issue",
    response_model=IssueResponse,
    responses=problems(404),
)
async def issue(request: Request, issue_hash: IssueHash) -> Response:
    """Return how often an issue occurred, over all stacks and per stack."""
    counts = await service.get_issue(store_of(request), issue_hash)
    if counts is None:
        raise not_found("issue")
    return json_response(schemas.issue_response(counts))


@router.get(
    "/issues/{issue_hash}/occurrences",
    tags=["issues"],
    summary="Where an issue was found",
    response_model=Paged[FindingResponse],
)
async def occurrences(
    request: Request, issue_hash: IssueHash, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """Return the occurrences of an issue in all stacks, newest first."""
    page = await service.list_occurrences(store_of(request), issue_hash, limit=limit, cursor=cursor)
    return slice_response(request, page, schemas.finding_response, Paged[FindingResponse])
