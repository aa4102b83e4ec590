"""Routes: the REST of reviews, one function an operation.

A change says which version it is meant for (If-Match) and who makes it. A number that JSON tells with more digits than a
float holds is read as it is written, or refused; none is rounded on the way in.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    Cursor,
    Limit,
    Paged,
    ProblemError,
    etag_of,
    idempotency_key,
    not_modified,
    parameters,
    problems,
)
from tavola.apps.terraform_review import resources, service
from tavola.apps.terraform_review.answers import (
    VERSION_MAX,
    ActorId,
    ExactRoute,
    Number,
    OfVersion,
    ReviewId,
    Since,
    Until,
    answer,
    changed,
    check_caller,
    matched,
    page,
    store_of,
    version_of,
)
from tavola.apps.terraform_review.comparison import Line, compare_code, unified
from tavola.apps.terraform_review.domain import Status
from tavola.apps.terraform_review.model import Review, ReviewVersion
from tavola.apps.terraform_review.resources import (
    AuditTold,
    ComparisonTold,
    FindingTold,
    NewFix,
    NewVersion,
    ReviewTold,
    StatusPatch,
    SummaryTold,
    VerificationTold,
)
from tavola.apps.terraform_review.results import ReviewResult
from tavola.patterns import Slice

router = APIRouter(route_class=ExactRoute)


# Reviews in versions.


@router.post(
    "/reviews",
    tags=["reviews"],
    summary="Record the review of a run",
    status_code=201,
    response_model=ReviewTold,
    responses={
        200: {
            "model": ReviewTold,
            "description": "The run was recorded before with the same result, by another request",
        },
        **problems(403, 409),
    },
    openapi_extra=parameters("idempotency-key"),
)
async def record(request: Request, result: ReviewResult) -> Response:
    """Store version 1 of a run's review, with its findings. A run has one review: the same result again is what is there."""
    store = store_of(request)
    check_caller(request, result.created_by)
    recorded = await service.record(store, result, request=idempotency_key(request))
    found: Review | ReviewVersion = recorded.review
    if recorded.version != found.version:  # who asks again is answered as before, whatever came since
        found = await service.version(store, found.review_id, recorded.version)
    told = changed(request, found, 201 if recorded.made else 200)
    if recorded.replayed:
        told.headers["Idempotency-Replayed"] = "true"
    return told


@router.get(
    "/reviews",
    tags=["reviews"],
    summary="Reviews of a status",
    response_model=Paged[SummaryTold],
)
async def reviews(
    request: Request,
    status: Annotated[Status, Query(description="That they have now; what they were once does not count.")],
    older_than_minutes: Annotated[
        int | None,
        Query(ge=0, le=5_000_000, description="Of pending ones: for so long already, the longest first."),
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Give the reviews that have a status now, the latest change first."""
    store = store_of(request)
    if older_than_minutes is None:
        found = await service.by_status(store, status, limit=limit, cursor=cursor)
    elif status is Status.PENDING:
        older = timedelta(minutes=older_than_minutes)
        found = await service.pending(store, older_than=older, limit=limit, cursor=cursor)
    else:
        raise ProblemError(
            422, "invalid", "Invalid request", "older_than_minutes goes with status=pending alone."
        )
    return page(request, found, resources.summary_told, Paged[SummaryTold])


@router.get(
    "/reviews/{review_id}",
    tags=["reviews"],
    summary="A review's latest version",
    response_model=ReviewTold,
    responses=problems(404) | {304: {"description": "It is still the version that If-None-Match names"}},
    openapi_extra=parameters("if-none-match"),
)
async def review(request: Request, review_id: ReviewId) -> Response:
    """Give what a review says now. Its ETag is what a change names as If-Match."""
    found = await service.latest(store_of(request), review_id)
    etag = etag_of(found.version)
    return not_modified(request, etag) or answer(resources.review_told(found), etag=etag)


@router.patch(
    "/reviews/{review_id}",
    tags=["reviews"],
    summary="Change a review's status",
    response_model=ReviewTold,
    responses=problems(403, 404, 409, 412, 428),
    openapi_extra=parameters("if-match"),
)
async def change_status(request: Request, review_id: ReviewId, patch: StatusPatch) -> Response:
    """Make it pending again, or failed, as its next version."""
    store = store_of(request)
    before = await matched(request, store, review_id)
    after = await service.change_status(
        store,
        review_id,
        patch.status,
        by=check_caller(request, patch.changed_by),
        why=patch.why,
        error=patch.error_details,
        version=before.version,
    )
    return changed(request, after, 200)


@router.post(
    "/reviews/{review_id}/versions",
    tags=["reviews"],
    summary="Add a version",
    status_code=201,
    response_model=ReviewTold,
    responses=problems(403, 404, 409, 412, 428),
    openapi_extra=parameters("if-match"),
)
async def new_version(request: Request, review_id: ReviewId, said: NewVersion) -> Response:
    """Store what a reviewer says now as the next version. Findings are those that stand now."""
    store = store_of(request)
    before = await matched(request, store, review_id)
    after = await service.new_version(
        store,
        review_id,
        said.assessment(),
        by=check_caller(request, said.changed_by),
        why=said.why,
        version=before.version,
        run_id=said.spacelift_run_id,
    )
    return changed(request, after, 201)


@router.post(
    "/reviews/{review_id}/fixes",
    tags=["reviews"],
    summary="Apply fixes",
    status_code=201,
    response_model=ReviewTold,
    responses=problems(403, 404, 409, 412, 428),
    openapi_extra=parameters("if-match"),
)
async def apply_fix(request: Request, review_id: ReviewId, fix: NewFix) -> Response:
    """Store fixes as the next version: their findings are resolved, and `fix_details` says what that came to."""
    store = store_of(request)
    before = await matched(request, store, review_id)
    after = await service.apply_fix(
        store,
        review_id,
        fix.fix(),
        by=check_caller(request, fix.changed_by),
        why=fix.why,
        version=before.version,
    )
    return changed(request, after, 201)


@router.get(
    "/reviews/{review_id}/versions",
    tags=["reviews"],
    summary="A review's versions",
    response_model=Paged[ReviewTold],
    responses=problems(404),
)
async def versions(
    request: Request, review_id: ReviewId, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """Give the versions of a review, newest first."""
    store = store_of(request)
    found = await service.versions(store, review_id, limit=limit, cursor=cursor)
    if not found.items and cursor is None:
        await service.latest(store, review_id)  # which tells that it is missing
    return page(request, found, resources.review_told, Paged[ReviewTold])


@router.get(
    "/reviews/{review_id}/versions/{number}",
    tags=["reviews"],
    summary="One version",
    response_model=ReviewTold,
    responses=problems(404) | {304: {"description": "A version never changes"}},
    openapi_extra=parameters("if-none-match"),
)
async def version(request: Request, review_id: ReviewId, number: Number) -> Response:
    """Give one version of a review, as it was written."""
    found = await service.version(store_of(request), review_id, number)
    etag = etag_of(found.version)
    return not_modified(request, etag) or answer(resources.review_told(found), etag=etag)


@router.get(
    "/reviews/{review_id}/diff",
    tags=["audit"],
    summary="Two versions compared",
    response_model=ComparisonTold,
    responses=problems(404, 503),
)
async def diff(
    request: Request,
    review_id: ReviewId,
    one: Annotated[int, Query(alias="from", ge=1, le=VERSION_MAX)],
    other: Annotated[int, Query(alias="to", ge=1, le=VERSION_MAX)],
) -> Response:
    """Give what differs between two versions, field by field, and their code line by line."""
    store = store_of(request)
    before = await service.version(store, review_id, one)
    after = await service.version(store, review_id, other)
    differences = await service.compare(store, review_id, one, other)
    lines: list[Line] | None = []
    if before.code.sha256 != after.code.sha256:
        lines = await compare_code(await service.code(store, before), await service.code(store, after))
    return answer(
        ComparisonTold(
            review_id=review_id,
            from_version=one,
            to_version=other,
            differences=[resources.difference_told(each) for each in differences],
            code=None if lines is None else unified(lines),
        )
    )


@router.get(
    "/reviews/{review_id}/code",
    tags=["reviews"],
    summary="The Terraform code",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The code, whole"},
        304: {"description": "It is still the code that If-None-Match names"},
        **problems(404, 503),
    },
    openapi_extra=parameters("if-none-match"),
)
async def code(request: Request, review_id: ReviewId, version: OfVersion = None) -> Response:
    """Give the code that was reviewed, from the item or from the blob store."""
    store = store_of(request)
    found = await version_of(store, review_id, version)
    etag = etag_of(found.code.sha256)
    told = not_modified(request, etag)
    if told is not None:
        return told
    return Response(await service.code(store, found), headers={"ETag": etag}, media_type="text/plain")


@router.get(
    "/reviews/{review_id}/findings",
    tags=["reviews"],
    summary="A review's findings",
    response_model=Paged[FindingTold],
    responses=problems(404),
)
async def findings(request: Request, review_id: ReviewId, version: OfVersion = None) -> Response:
    """Give the findings that stand in a version, the gravest first: all of them, up to a thousand."""
    store = store_of(request)
    found = await service.findings(store, await version_of(store, review_id, version))
    return page(request, Slice(tuple(found), None), resources.finding_told, Paged[FindingTold])


@router.get(
    "/reviews/{review_id}/audit",
    tags=["audit"],
    summary="A review's audit trail",
    response_model=Paged[AuditTold],
    responses=problems(404),
)
async def audit(request: Request, review_id: ReviewId, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """Give who changed a review, when, why and what, newest first."""
    store = store_of(request)
    found = await service.audit_trail(store, review_id, limit=limit, cursor=cursor)
    if not found.items and cursor is None:
        await service.latest(store, review_id)
    return page(request, found, resources.audit_told, Paged[AuditTold])


@router.get(
    "/reviews/{review_id}/verify",
    tags=["audit"],
    summary="Whether a review is as it was written",
    response_model=VerificationTold,
    responses=problems(404),
)
async def verify(request: Request, review_id: ReviewId) -> Response:
    """Read all of a review, and tell what was altered, removed or slipped in."""
    store = store_of(request)
    found = await service.verify(store, review_id)
    if not found.versions:
        await service.latest(store, review_id)
    return answer(resources.verification_told(found))


@router.get(
    "/actors/{actor}/audit",
    tags=["audit"],
    summary="What somebody changed",
    response_model=Paged[AuditTold],
)
async def actor_audit(
    request: Request,
    actor: ActorId,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Give what somebody changed, in whatever reviews, newest first."""
    found = await service.changes_by(
        store_of(request),
        actor,
        since=resources.moment_of(since),
        until=resources.moment_of(until, ends=True),
        limit=limit,
        cursor=cursor,
    )
    return page(request, found, resources.audit_told, Paged[AuditTold])
