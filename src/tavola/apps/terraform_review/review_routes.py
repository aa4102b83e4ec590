"""The REST routes of reviews, one function per operation.

A change names the version it applies to (If-Match) and its author. JSON numbers with more digits than a float holds are read
exactly, or refused; none is rounded.
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
    json_response,
    not_modified,
    parameters,
    problems,
)
from tavola.apps.terraform_review import schemas, service
from tavola.apps.terraform_review.code_diff import DiffLine, diff_code, render_diff
from tavola.apps.terraform_review.domain import Status
from tavola.apps.terraform_review.model import Review, ReviewVersion
from tavola.apps.terraform_review.requests import (
    VERSION_MAX,
    ActorId,
    ExactRoute,
    ReviewId,
    Since,
    Until,
    VersionNumber,
    VersionQuery,
    check_caller,
    get_version_or_latest,
    require_current_review,
    slice_response,
    store_of,
    version_response,
)
from tavola.apps.terraform_review.results import ReviewResult
from tavola.apps.terraform_review.schemas import (
    AddVersionRequest,
    ApplyFixRequest,
    AuditEntryResponse,
    ChangeStatusRequest,
    ComparisonResponse,
    FindingResponse,
    ReviewResponse,
    ReviewSummaryResponse,
    VerificationResponse,
)
from tavola.patterns import Slice

router = APIRouter(route_class=ExactRoute)


# Reviews in versions.


@router.post(
    "/reviews",
    tags=["reviews"],
    summary="Record the review of a run",
    status_code=201,
    response_model=ReviewResponse,
    responses={
        200: {
            "model": ReviewResponse,
            "description": "The run was recorded before with the same result, by another request",
        },
        **problems(403, 409),
    },
    openapi_extra=parameters("idempotency-key"),
)
async def record(request: Request, result: ReviewResult) -> Response:
    """Store the review of a run as version 1, with its findings. A run has one review; the same result again returns it unchanged."""
    store = store_of(request)
    check_caller(request, result.created_by)
    recorded = await service.record_review(store, result, idempotency_key=idempotency_key(request))
    review: Review | ReviewVersion = recorded.review
    if recorded.version != review.version:  # a repeated request gets the same answer, whatever changed since
        review = await service.get_version(store, review.review_id, recorded.version)
    response = version_response(request, review, 201 if recorded.created else 200)
    if recorded.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@router.get(
    "/reviews",
    tags=["reviews"],
    summary="Reviews of a status",
    response_model=Paged[ReviewSummaryResponse],
)
async def reviews(
    request: Request,
    status: Annotated[Status, Query(description="The current status.")],
    older_than_minutes: Annotated[
        int | None,
        Query(ge=0, le=5_000_000, description="Only those pending for longer than this, longest first."),
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the reviews with a status, the latest change first."""
    store = store_of(request)
    if older_than_minutes is None:
        page = await service.list_by_status(store, status, limit=limit, cursor=cursor)
    elif status is Status.PENDING:
        older = timedelta(minutes=older_than_minutes)
        page = await service.list_pending(store, older_than=older, limit=limit, cursor=cursor)
    else:
        raise ProblemError(
            422, "invalid", "Invalid request", "older_than_minutes goes with status=pending alone."
        )
    return slice_response(request, page, schemas.review_summary_response, Paged[ReviewSummaryResponse])


@router.get(
    "/reviews/{review_id}",
    tags=["reviews"],
    summary="A review's latest version",
    response_model=ReviewResponse,
    responses=problems(404) | {304: {"description": "It is still the version that If-None-Match names"}},
    openapi_extra=parameters("if-none-match"),
)
async def review(request: Request, review_id: ReviewId) -> Response:
    """Return the current version of a review. Its ETag is the If-Match of a change."""
    current = await service.get_review(store_of(request), review_id)
    etag = etag_of(current.version)
    return not_modified(request, etag) or json_response(schemas.review_response(current), etag=etag)


@router.patch(
    "/reviews/{review_id}",
    tags=["reviews"],
    summary="Change a review's status",
    response_model=ReviewResponse,
    responses=problems(403, 404, 409, 412, 428),
    openapi_extra=parameters("if-match"),
)
async def change_status(request: Request, review_id: ReviewId, patch: ChangeStatusRequest) -> Response:
    """Make a review pending again, or failed, as its next version."""
    store = store_of(request)
    before = await require_current_review(request, store, review_id)
    after = await service.change_status(
        store,
        review_id,
        patch.status,
        by=check_caller(request, patch.changed_by),
        why=patch.why,
        error=patch.error_details,
        expected_version=before.version,
    )
    return version_response(request, after, 200)


@router.post(
    "/reviews/{review_id}/versions",
    tags=["reviews"],
    summary="Add a version",
    status_code=201,
    response_model=ReviewResponse,
    responses=problems(403, 404, 409, 412, 428),
    openapi_extra=parameters("if-match"),
)
async def new_version(request: Request, review_id: ReviewId, body: AddVersionRequest) -> Response:
    """Store a new assessment as the next version. It lists all current findings."""
    store = store_of(request)
    before = await require_current_review(request, store, review_id)
    after = await service.add_version(
        store,
        review_id,
        body.assessment(),
        by=check_caller(request, body.changed_by),
        why=body.why,
        expected_version=before.version,
        run_id=body.spacelift_run_id,
    )
    return version_response(request, after, 201)


@router.post(
    "/reviews/{review_id}/fixes",
    tags=["reviews"],
    summary="Apply fixes",
    status_code=201,
    response_model=ReviewResponse,
    responses=problems(403, 404, 409, 412, 428),
    openapi_extra=parameters("if-match"),
)
async def apply_fix(request: Request, review_id: ReviewId, fix: ApplyFixRequest) -> Response:
    """Store fixes as the next version: their findings are resolved, and `fix_details` holds the effect."""
    store = store_of(request)
    before = await require_current_review(request, store, review_id)
    after = await service.apply_fix(
        store,
        review_id,
        fix.fix(),
        by=check_caller(request, fix.changed_by),
        why=fix.why,
        expected_version=before.version,
    )
    return version_response(request, after, 201)


@router.get(
    "/reviews/{review_id}/versions",
    tags=["reviews"],
    summary="A review's versions",
    response_model=Paged[ReviewResponse],
    responses=problems(404),
)
async def versions(
    request: Request, review_id: ReviewId, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """Return the versions of a review, newest first."""
    store = store_of(request)
    page = await service.list_versions(store, review_id, limit=limit, cursor=cursor)
    if not page.items and cursor is None:
        await service.get_review(store, review_id)  # raises if there is no such review
    return slice_response(request, page, schemas.review_response, Paged[ReviewResponse])


@router.get(
    "/reviews/{review_id}/versions/{number}",
    tags=["reviews"],
    summary="One version",
    response_model=ReviewResponse,
    responses=problems(404) | {304: {"description": "A version never changes"}},
    openapi_extra=parameters("if-none-match"),
)
async def version(request: Request, review_id: ReviewId, number: VersionNumber) -> Response:
    """Return one version of a review."""
    stored = await service.get_version(store_of(request), review_id, number)
    etag = etag_of(stored.version)
    return not_modified(request, etag) or json_response(schemas.review_response(stored), etag=etag)


@router.get(
    "/reviews/{review_id}/diff",
    tags=["audit"],
    summary="Two versions compared",
    response_model=ComparisonResponse,
    responses=problems(404, 503),
)
async def diff(
    request: Request,
    review_id: ReviewId,
    one: Annotated[int, Query(alias="from", ge=1, le=VERSION_MAX)],
    other: Annotated[int, Query(alias="to", ge=1, le=VERSION_MAX)],
) -> Response:
    """Return the differences between two versions by field, and of their code by line."""
    store = store_of(request)
    before = await service.get_version(store, review_id, one)
    after = await service.get_version(store, review_id, other)
    differences = await service.compare_versions(store, review_id, one, other)
    lines: list[DiffLine] | None = []
    if before.code.sha256 != after.code.sha256:
        lines = await diff_code(await service.read_code(store, before), await service.read_code(store, after))
    return json_response(
        ComparisonResponse(
            review_id=review_id,
            from_version=one,
            to_version=other,
            differences=[schemas.difference_response(each) for each in differences],
            code=None if lines is None else render_diff(lines),
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
async def code(request: Request, review_id: ReviewId, version: VersionQuery = None) -> Response:
    """Return the reviewed code, from the item or from the blob store."""
    store = store_of(request)
    reviewed = await get_version_or_latest(store, review_id, version)
    etag = etag_of(reviewed.code.sha256)
    unchanged = not_modified(request, etag)
    if unchanged is not None:
        return unchanged
    return Response(await service.read_code(store, reviewed), headers={"ETag": etag}, media_type="text/plain")


@router.get(
    "/reviews/{review_id}/findings",
    tags=["reviews"],
    summary="A review's findings",
    response_model=Paged[FindingResponse],
    responses=problems(404),
)
async def findings(request: Request, review_id: ReviewId, version: VersionQuery = None) -> Response:
    """Return all findings of a version, most severe first; there are at most a thousand."""
    store = store_of(request)
    all_findings = await service.list_findings(store, await get_version_or_latest(store, review_id, version))
    return slice_response(
        request, Slice(tuple(all_findings), None), schemas.finding_response, Paged[FindingResponse]
    )


@router.get(
    "/reviews/{review_id}/audit",
    tags=["audit"],
    summary="A review's audit trail",
    response_model=Paged[AuditEntryResponse],
    responses=problems(404),
)
async def audit(request: Request, review_id: ReviewId, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """Return the audit trail of a review, newest first."""
    store = store_of(request)
    page = await service.list_audit_entries(store, review_id, limit=limit, cursor=cursor)
    if not page.items and cursor is None:
        await service.get_review(store, review_id)
    return slice_response(request, page, schemas.audit_entry_response, Paged[AuditEntryResponse])


@router.get(
    "/reviews/{review_id}/verify",
    tags=["audit"],
    summary="Whether a review is as it was written",
    response_model=VerificationResponse,
    responses=problems(404),
)
async def verify(request: Request, review_id: ReviewId) -> Response:
    """Read all items of a review and report what was altered, removed or added."""
    store = store_of(request)
    verification = await service.verify_review(store, review_id)
    if not verification.versions:
        await service.get_review(store, review_id)
    return json_response(schemas.verification_response(verification))


@router.get(
    "/actors/{actor}/audit",
    tags=["audit"],
    summary="What somebody changed",
    response_model=Paged[AuditEntryResponse],
)
async def actor_audit(
    request: Request,
    actor: ActorId,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the changes that one person made to any review, newest first."""
    page = await service.list_changes_by(
        store_of(request),
        actor,
        since=schemas.to_datetime(since),
        until=schemas.to_datetime(until, ends=True),
        limit=limit,
        cursor=cursor,
    )
    return slice_response(request, page, schemas.audit_entry_response, Paged[AuditEntryResponse])
