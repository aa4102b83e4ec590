"""The REST routes of reviews, one function per operation.

A change names the version it applies to (If-Match) and its author. JSON numbers with more digits than a float holds are read
exactly, or refused; none is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    Paged,
    PageQuery,
    ProblemError,
    etag_of,
    idempotency_key,
    json_response,
    not_modified,
    parameters,
    problems,
)
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.code_diff import DiffLine, diff_code, render_diff
from tavola.apps.terraform_review.domain import ReviewStatus
from tavola.apps.terraform_review.model import Review, ReviewVersion
from tavola.apps.terraform_review.requests import (
    VERSION_MAX,
    ActorId,
    During,
    ExactRoute,
    ReviewId,
    VersionNumber,
    VersionQuery,
    change_arguments,
    check_caller,
    get_version_or_latest,
    store_of,
    version_response,
    written_response,
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
from tavola.apps.terraform_review.verification import verify_review
from tavola.patterns import Slice

router = APIRouter(prefix="/reviews", tags=["reviews"], route_class=ExactRoute)
audit_router = APIRouter(tags=["audit"], route_class=ExactRoute)

_CHANGE: Mapping[str, Any] = {
    "response_model": ReviewResponse,
    "responses": problems(403, 404, 409, 412, 428),
    "openapi_extra": parameters("if-match"),
}


# Reviews in versions.


@router.post(
    "",
    summary="Record the review of a run",
    status_code=201,
    response_model=ReviewResponse,
    responses={
        200: {
            "model": ReviewResponse,
            "description": "The run was already recorded with the same result",
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
    return written_response(request, review, 201 if recorded.created else 200, replayed=recorded.replayed)


@router.get("", summary="List reviews by status", response_model=Paged[ReviewSummaryResponse])
async def reviews(
    request: Request,
    status: Annotated[ReviewStatus, Query(description="The current status.")],
    paging: PageQuery,
    older_than_minutes: Annotated[
        int | None,
        Query(ge=0, le=5_000_000, description="Only those pending for longer than this, longest first."),
    ] = None,
) -> Response:
    """Return the reviews with a status, the latest change first."""
    store = store_of(request)
    if older_than_minutes is None:
        page = await service.list_by_status(store, status, **paging)
    elif status is ReviewStatus.PENDING:
        older = timedelta(minutes=older_than_minutes)
        page = await service.list_pending(store, older_than=older, **paging)
    else:
        raise ProblemError(422, "invalid", "Invalid request", "older_than_minutes requires status=pending.")
    return Paged[ReviewSummaryResponse].render(request, page)


@router.get(
    "/{review_id}",
    summary="Get the latest version of a review",
    response_model=ReviewResponse,
    responses=problems(404) | {304: {"description": "Your copy is current"}},
    openapi_extra=parameters("if-none-match"),
)
async def review(request: Request, review_id: ReviewId) -> Response:
    """Return the current version of a review. Its ETag is the If-Match of a change."""
    return version_response(request, await service.get_review(store_of(request), review_id))


@router.patch("/{review_id}", summary="Change a review's status", **_CHANGE)
async def change_status(request: Request, review_id: ReviewId, body: ChangeStatusRequest) -> Response:
    """Make a review pending again, or failed, as its next version."""
    change = await change_arguments(request, review_id, body)
    after = await service.change_status(
        store_of(request), review_id, body.status, error=body.error_details, **change
    )
    return written_response(request, after, 200)


@router.post("/{review_id}/versions", summary="Add a version", status_code=201, **_CHANGE)
async def new_version(request: Request, review_id: ReviewId, body: AddVersionRequest) -> Response:
    """Store a new assessment as the next version. It lists all current findings."""
    change = await change_arguments(request, review_id, body)
    after = await service.add_version(
        store_of(request), review_id, body.assessment(), run_id=body.spacelift_run_id, **change
    )
    return written_response(request, after, 201)


@router.post("/{review_id}/fixes", summary="Apply fixes", status_code=201, **_CHANGE)
async def apply_fix(request: Request, review_id: ReviewId, body: ApplyFixRequest) -> Response:
    """Store fixes as the next version: their findings are resolved, and `fix_details` holds the effect."""
    change = await change_arguments(request, review_id, body)
    after = await service.apply_fix(store_of(request), review_id, body.fix(), **change)
    return written_response(request, after, 201)


@router.get(
    "/{review_id}/versions",
    summary="List the versions of a review",
    response_model=Paged[ReviewResponse],
    responses=problems(404),
)
async def versions(request: Request, review_id: ReviewId, paging: PageQuery) -> Response:
    """Return the versions of a review, newest first."""
    store = store_of(request)
    page = await service.list_versions(store, review_id, **paging)
    if not page.items and paging["cursor"] is None:
        await service.get_review(store, review_id)  # raises if there is no such review
    return Paged[ReviewResponse].render(request, page)


@router.get(
    "/{review_id}/versions/{number}",
    summary="Get one version",
    response_model=ReviewResponse,
    responses=problems(404) | {304: {"description": "Your copy is current; a version never changes"}},
    openapi_extra=parameters("if-none-match"),
)
async def version(request: Request, review_id: ReviewId, number: VersionNumber) -> Response:
    """Return one version of a review."""
    return version_response(request, await service.get_version(store_of(request), review_id, number))


@audit_router.get(
    "/reviews/{review_id}/diff",
    summary="Compare two versions",
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
    comparison = {
        "review_id": review_id,
        "from_version": one,
        "to_version": other,
        "differences": differences,
        "code": None if lines is None else render_diff(lines),
    }
    return json_response(ComparisonResponse.model_validate(comparison))


@router.get(
    "/{review_id}/code",
    summary="Get the Terraform code",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The code"},
        304: {"description": "Your copy is current"},
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
    "/{review_id}/findings",
    summary="List the findings of a review",
    response_model=Paged[FindingResponse],
    responses=problems(404),
)
async def findings(request: Request, review_id: ReviewId, version: VersionQuery = None) -> Response:
    """Return all findings of a version, most severe first; there are at most a thousand."""
    store = store_of(request)
    all_findings = await service.list_findings(store, await get_version_or_latest(store, review_id, version))
    return Paged[FindingResponse].render(request, Slice(tuple(all_findings), None))


@audit_router.get(
    "/reviews/{review_id}/audit",
    summary="Get the audit trail of a review",
    response_model=Paged[AuditEntryResponse],
    responses=problems(404),
)
async def audit(request: Request, review_id: ReviewId, paging: PageQuery) -> Response:
    """Return the audit trail of a review, newest first."""
    store = store_of(request)
    page = await service.list_audit_entries(store, review_id, **paging)
    if not page.items and paging["cursor"] is None:
        await service.get_review(store, review_id)
    return Paged[AuditEntryResponse].render(request, page)


@audit_router.get(
    "/reviews/{review_id}/verify",
    summary="Verify a review",
    response_model=VerificationResponse,
    responses=problems(404),
)
async def verify(request: Request, review_id: ReviewId) -> Response:
    """Read all items of a review and report what was altered, removed or added."""
    store = store_of(request)
    verification = await verify_review(store, review_id)
    if not verification.versions:
        await service.get_review(store, review_id)
    return json_response(VerificationResponse.model_validate(verification))


@audit_router.get(
    "/actors/{actor}/audit", summary="List the changes of a person", response_model=Paged[AuditEntryResponse]
)
async def actor_audit(request: Request, actor: ActorId, during: During, paging: PageQuery) -> Response:
    """Return the changes that one person made to any review, newest first."""
    page = await service.list_changes_by(store_of(request), actor, **during, **paging)
    return Paged[AuditEntryResponse].render(request, page)
