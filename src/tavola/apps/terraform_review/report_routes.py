"""The REST routes of reports: runs, stacks, risk by day, and repeated issues."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import Cursor, Paged, PageQuery, json_response, parameters, problems
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import HIGH_FROM, Category
from tavola.apps.terraform_review.requests import (
    During,
    FromDay,
    IssueHash,
    RunId,
    StackId,
    ToDay,
    day_range,
    require,
    store_of,
    version_response,
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

runs_router = APIRouter(prefix="/runs", tags=["reviews"])
stacks_router = APIRouter(prefix="/stacks", tags=["stacks"])
risk_router = APIRouter(prefix="/risk", tags=["risk"])
issues_router = APIRouter(prefix="/issues", tags=["issues"])


# Runs and stacks.


@runs_router.get(
    "/{run_id}/review",
    summary="Get the latest review of a run",
    response_model=ReviewResponse,
    responses=problems(404) | {304: {"description": "Your copy is current"}},
    openapi_extra=parameters("if-none-match"),
)
async def run_review(request: Request, run_id: RunId) -> Response:
    """Return the review that the run created or changed last, in its current version."""
    review = await service.latest_run_review(store_of(request), run_id)
    return version_response(request, require(review, "run"))


@stacks_router.get("", summary="List stacks", response_model=Paged[StackResponse])
async def stacks(request: Request, paging: PageQuery) -> Response:
    """Return all stacks by name, with their statistics."""
    page = await service.list_stacks(store_of(request), **paging)
    return Paged[StackResponse].render(request, page)


@stacks_router.get(
    "/{stack_id}",
    summary="Get the statistics of a stack",
    response_model=StackResponse,
    responses=problems(404),
)
async def stack(request: Request, stack_id: StackId) -> Response:
    """Return the statistics of a stack's current reviews."""
    stats = await service.get_stack_stats(store_of(request), stack_id)
    return json_response(StackResponse.model_validate(require(stats, "stack")))


@stacks_router.get(
    "/{stack_id}/reviews", summary="List the reviews of a stack", response_model=Paged[ReviewSummaryResponse]
)
async def stack_reviews(request: Request, stack_id: StackId, during: During, paging: PageQuery) -> Response:
    """Return the reviews of a stack by creation time, newest first."""
    page = await service.list_stack_reviews(store_of(request), stack_id, **during, **paging)
    return Paged[ReviewSummaryResponse].render(request, page)


@stacks_router.get(
    "/{stack_id}/latest",
    summary="Get the latest review of a stack",
    response_model=ReviewSummaryResponse,
    responses=problems(404),
)
async def stack_latest(request: Request, stack_id: StackId) -> Response:
    """Return the newest review of a stack."""
    review = await service.latest_stack_review(store_of(request), stack_id)
    return json_response(ReviewSummaryResponse.model_validate(require(review, "stack")))


@stacks_router.get(
    "/{stack_id}/issues",
    tags=["issues"],
    summary="List the repeated issues of a stack",
    response_model=Paged[StackIssueResponse],
)
async def stack_issues(
    request: Request,
    stack_id: StackId,
    paging: PageQuery,
    min_occurrences: Annotated[
        int, Query(alias="min", ge=1, le=999_999_999, description="The minimum number of occurrences.")
    ] = 3,
) -> Response:
    """Return the issues of a stack with a minimum number of occurrences, most frequent first."""
    page = await service.list_stack_issues(
        store_of(request), stack_id, min_occurrences=min_occurrences, **paging
    )
    return Paged[StackIssueResponse].render(request, page)


# Risk.


@risk_router.get("/days", summary="Get the risk trend", response_model=RiskTrendResponse)
async def risk_days(request: Request, start: FromDay = None, end: ToDay = None) -> Response:
    """Return the risk of each day of a range that has reviews. It is one query, whatever the range."""
    store = store_of(request)
    first, last = day_range(store, start, end)
    days = await service.list_day_risks(store, first, last)
    return json_response(RiskTrendResponse.model_validate({"from_day": first, "to_day": last, "days": days}))


@risk_router.get("/days/{day}", summary="Get the risk of a day", response_model=DayRiskResponse)
async def risk_day(request: Request, day: Day) -> Response:
    """Return the risk of the reviews created on a day; a day without reviews has zero counts."""
    risk = await service.get_day_risk(store_of(request), day)
    return json_response(DayRiskResponse.model_validate(risk))


@risk_router.get("/high", summary="List high-risk reviews", response_model=Paged[ReviewSummaryResponse])
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
    return Paged[ReviewSummaryResponse].render(request, page)


# Issues.


@issues_router.get("", summary="List the most frequent issues", response_model=Paged[IssueCountsResponse])
async def issues(request: Request, category: Category, paging: PageQuery) -> Response:
    """Return the issues of a category over all stacks, most frequent first."""
    page = await service.list_frequent_issues(store_of(request), category, **paging)
    return Paged[IssueCountsResponse].render(request, page)


@issues_router.get(
    "/{issue_hash}", summary="Get an issue", response_model=IssueResponse, responses=problems(404)
)
async def issue(request: Request, issue_hash: IssueHash) -> Response:
    """Return how often an issue occurred, over all stacks and per stack."""
    counts = require(await service.get_issue(store_of(request), issue_hash), "issue")
    return json_response(IssueResponse.model_validate({**dict(counts.total), "stacks": counts.stacks}))


@issues_router.get(
    "/{issue_hash}/occurrences",
    summary="List the occurrences of an issue",
    response_model=Paged[FindingResponse],
)
async def occurrences(request: Request, issue_hash: IssueHash, paging: PageQuery) -> Response:
    """Return the occurrences of an issue in all stacks, newest first."""
    page = await service.list_occurrences(store_of(request), issue_hash, **paging)
    return Paged[FindingResponse].render(request, page)
