"""Questions: the REST of what reviews come to: runs, stacks, risk over days, repeated issues."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import Cursor, Limit, Paged, etag_of, not_found, not_modified, parameters, problems
from tavola.apps.terraform_review import resources, service
from tavola.apps.terraform_review.answers import (
    FromDay,
    IssueHash,
    RunId,
    Since,
    StackId,
    ToDay,
    Until,
    answer,
    days_of,
    page,
    store_of,
)
from tavola.apps.terraform_review.domain import HIGH_FROM, Category
from tavola.apps.terraform_review.resources import (
    Day,
    DayTold,
    FindingTold,
    FrequencyTold,
    IssueTold,
    ReviewTold,
    StackIssueTold,
    StackTold,
    SummaryTold,
    TrendTold,
)

HIGH_MAX: Final = 500
SCORE_PLACES: Final = Decimal("0.0001")

router = APIRouter()


# Runs and stacks.


@router.get(
    "/runs/{run_id}/review",
    tags=["reviews"],
    summary="The latest review of a run",
    response_model=ReviewTold,
    responses=problems(404) | {304: {"description": "It is still the version that If-None-Match names"}},
    openapi_extra=parameters("if-none-match"),
)
async def run_review(request: Request, run_id: RunId) -> Response:
    """Give the review that a run made a version of last, as it is now."""
    found = await service.latest_of_run(store_of(request), run_id)
    if found is None:
        raise not_found("run")
    etag = etag_of(found.version)
    return not_modified(request, etag) or answer(resources.review_told(found), etag=etag)


@router.get("/stacks", tags=["stacks"], summary="All stacks", response_model=Paged[StackTold])
async def stacks(request: Request, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """Give all stacks by name, with their numbers."""
    found = await service.stacks(store_of(request), limit=limit, cursor=cursor)
    return page(request, found, resources.stack_told, Paged[StackTold])


@router.get(
    "/stacks/{stack_id}",
    tags=["stacks"],
    summary="A stack's numbers",
    response_model=StackTold,
    responses=problems(404),
)
async def stack(request: Request, stack_id: StackId) -> Response:
    """Give the numbers of a stack, of its reviews as they are now."""
    found = await service.stack_stats(store_of(request), stack_id)
    if found is None:
        raise not_found("stack")
    return answer(resources.stack_told(found))


@router.get(
    "/stacks/{stack_id}/reviews",
    tags=["stacks"],
    summary="A stack's reviews",
    response_model=Paged[SummaryTold],
)
async def stack_reviews(
    request: Request,
    stack_id: StackId,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Give the reviews of a stack by when they were made, newest first."""
    found = await service.stack_history(
        store_of(request),
        stack_id,
        since=resources.moment_of(since),
        until=resources.moment_of(until, ends=True),
        limit=limit,
        cursor=cursor,
    )
    return page(request, found, resources.summary_told, Paged[SummaryTold])


@router.get(
    "/stacks/{stack_id}/latest",
    tags=["stacks"],
    summary="A stack's latest review",
    response_model=SummaryTold,
    responses=problems(404),
)
async def stack_latest(request: Request, stack_id: StackId) -> Response:
    """Give the review of a stack that was made last."""
    found = await service.latest_of_stack(store_of(request), stack_id)
    if found is None:
        raise not_found("stack")
    return answer(resources.summary_told(found))


@router.get(
    "/stacks/{stack_id}/issues",
    tags=["stacks", "issues"],
    summary="A stack's repeated issues",
    response_model=Paged[StackIssueTold],
)
async def stack_issues(
    request: Request,
    stack_id: StackId,
    least: Annotated[
        int, Query(alias="min", ge=1, le=999_999_999, description="Found so often at least.")
    ] = 3,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Give the issues of a stack that were found at least so often, the most frequent first."""
    found = await service.stack_issues(
        store_of(request), stack_id, min_occurrences=least, limit=limit, cursor=cursor
    )
    return page(request, found, resources.stack_issue_told, Paged[StackIssueTold])


# Risk.


@router.get("/risk/days", tags=["risk"], summary="The risk trend", response_model=TrendTold)
async def risk_days(request: Request, start: FromDay = None, end: ToDay = None) -> Response:
    """Give the risk of each day of a range that has reviews: one query of numbers that are kept, whatever the range."""
    store = store_of(request)
    first, last = days_of(store, start, end)
    found = await service.risk_trend(store, first, last)
    return answer(TrendTold(from_day=first, to_day=last, days=[resources.day_told(each) for each in found]))


@router.get("/risk/days/{day}", tags=["risk"], summary="The risk of a day", response_model=DayTold)
async def risk_day(request: Request, day: Day) -> Response:
    """Give how risky the reviews of a day are; a day without reviews is one of zeros."""
    return answer(resources.day_told(await service.risk_distribution(store_of(request), day)))


@router.get("/risk/high", tags=["risk"], summary="High-risk reviews", response_model=Paged[SummaryTold])
async def risk_high(
    request: Request,
    start: FromDay = None,
    end: ToDay = None,
    least: Annotated[
        Decimal, Query(alias="min", ge=0, le=1, max_digits=30, description="So risky at least.")
    ] = HIGH_FROM,
    limit: Annotated[int, Query(ge=1, le=HIGH_MAX)] = 100,
    cursor: Cursor = None,
) -> Response:
    """Give the reviews of a range of days from some risk on, the latest day first: a query a day, up to a year."""
    store = store_of(request)
    first, last = days_of(store, start, end)
    lowest = least.quantize(SCORE_PLACES, ROUND_CEILING)  # no score is between
    found = await service.high_risk(store, first, last, min_risk=lowest, limit=limit, cursor=cursor)
    return page(request, found, resources.summary_told, Paged[SummaryTold])


# Issues.


@router.get(
    "/issues", tags=["issues"], summary="The most frequent issues", response_model=Paged[FrequencyTold]
)
async def issues(request: Request, category: Category, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """Give the issues of a category that were found most often, over all stacks."""
    found = await service.most_frequent(store_of(request), category, limit=limit, cursor=cursor)
    return page(request, found, resources.frequency_told, Paged[FrequencyTold])


@router.get(
    "/issues/{issue_hash}",
    tags=["issues"],
    summary="An issue",
    response_model=IssueTold,
    responses=problems(404),
)
async def issue(request: Request, issue_hash: IssueHash) -> Response:
    """Give how often an issue was found, over all stacks and stack by stack."""
    found = await service.issue(store_of(request), issue_hash)
    if found is None:
        raise not_found("issue")
    return answer(resources.issue_told(found))


@router.get(
    "/issues/{issue_hash}/occurrences",
    tags=["issues"],
    summary="Where an issue was found",
    response_model=Paged[FindingTold],
)
async def occurrences(
    request: Request, issue_hash: IssueHash, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """Give where an issue was found, in all stacks, newest first."""
    found = await service.occurrences(store_of(request), issue_hash, limit=limit, cursor=cursor)
    return page(request, found, resources.finding_told, Paged[FindingTold])
