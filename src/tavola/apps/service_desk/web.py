"""The four operations as JSON over HTTP, and the application that serves them with its pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from tavola.apps.service_desk import service
from tavola.apps.service_desk.domain import CALLER_CHARACTERS_MAX, RECENT_MAX, TICKET_KB_MAX
from tavola.apps.service_desk.errors import CallerRefused
from tavola.apps.service_desk.model import ServiceTicket, ServiceTickets
from tavola.apps.service_desk.pages import add_pages, desk_of, new_pages
from tavola.apps.service_desk.store import ServiceDeskStore
from tavola.apps.shell import (
    AppSettings,
    OpenedStore,
    Paged,
    ProblemError,
    cursor_of,
    etag_of,
    idempotency_key,
    new_application,
    not_modified,
    opened_store,
    parameters,
    problems,
    require_match,
    shell_of,
)

BODY_BYTES_MAX = TICKET_KB_MAX * 1024 * 6 + 4_096  # a ticket with every character escaped
JSON = "application/json"

DESCRIPTION = (
    "Tickets and comments of a voice service desk. A caller is a session ID, or a phone number with its country code, which is "
    "stored as a keyed hash and never in clear."
)

_MOMENT = {"format": "date-time", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}
Moment = Annotated[str, Field(json_schema_extra=_MOMENT, examples=["2026-02-09T12:20:25.343883Z"])]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class ReportIssueRequest(BaseModel):
    """An issue to report."""

    model_config = ConfigDict(extra="forbid", strict=True)

    caller_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=CALLER_CHARACTERS_MAX,
            description="A session ID, or a phone number with country code, such as +1 202 555 0100.",
            examples=["poc-user-001"],
        ),
    ]
    issue_description: Annotated[Text, Field(examples=["My laptop won't turn on"])]


class AddCommentRequest(BaseModel):
    """A comment to add."""

    model_config = ConfigDict(extra="forbid", strict=True)

    comment_text: Annotated[Text, Field(examples=["Tried restarting but still not working"])]


class CommentResponse(BaseModel):
    """A comment on a ticket."""

    comment_text: str
    added_at: Moment


class ServiceTicketResponse(BaseModel):
    """A ticket, with the attributes that its item has."""

    ticket_id: Annotated[str, Field(examples=["33567ee8-f182-4f8a-b03e-2f1515915471"])]
    caller_id: Annotated[str, Field(description="As stored: a phone number is `tel:` and its hash.")]
    issue_description: str
    status: Annotated[str, Field(examples=["open"])]
    created_at: Moment
    updated_at: Moment
    comments: list[CommentResponse]


def desk_store(opened: OpenedStore) -> ServiceDeskStore:
    """Return the desk on an opened store; programs with the same secret compute the same caller IDs."""
    return ServiceDeskStore(opened.db, opened.secrets.derive("service-desk"))


def create(settings: AppSettings) -> FastAPI:
    """Return the application: JSON at the root, pages under /ui."""
    pages = new_pages(settings)

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        async with opened_store(settings, ServiceTickets) as opened:
            store = desk_store(opened)
            shell_of(application).watch(opened)
            application.state.desk = store
            yield

    application = new_application(
        settings,
        title="Service desk",
        description=DESCRIPTION,
        pages=pages,
        lifespan=lifespan,
        tags=[("tickets", "Report, read, comment on and list tickets")],
        body_bytes_max=BODY_BYTES_MAX,
    )

    _add_routes(application)
    add_pages(application, pages)
    return application


def _add_routes(application: FastAPI) -> None:
    @application.post(
        "/tickets",
        tags=["tickets"],
        summary="Report an issue",
        status_code=201,
        response_model=ServiceTicketResponse,
        responses=problems(413, 422),
        openapi_extra=parameters("idempotency-key"),
    )
    async def report(request: Request, body: ReportIssueRequest) -> Response:
        key = idempotency_key(request)
        reported = await service.report_issue(desk_of(request), body.caller_id, body.issue_description, key)
        return _created_response(request, reported.ticket, replayed=reported.replayed)

    @application.get(
        "/tickets/{ticket_id}",
        tags=["tickets"],
        summary="Get a ticket",
        response_model=ServiceTicketResponse,
        responses={304: {"description": "Your copy is current"}, **problems(404)},
        openapi_extra=parameters("if-none-match"),
    )
    async def ticket(request: Request, ticket_id: str) -> Response:
        content = to_json(ticket_json(await service.ticket_status(desk_of(request), ticket_id)))
        etag = content_etag(content)
        return not_modified(request, etag) or Response(content, 200, {"ETag": etag}, JSON)

    @application.post(
        "/tickets/{ticket_id}/comments",
        tags=["tickets"],
        summary="Add a comment to a ticket",
        description=(
            "Returns the ticket. If-Match is optional: without it, concurrent comments are all kept. With it, a comment whose response was "
            "lost can be sent again without being added twice."
        ),
        status_code=201,
        response_model=ServiceTicketResponse,
        responses=problems(404, 412, 413),
        openapi_extra=parameters("if-match"),
    )
    async def comment(request: Request, ticket_id: str, body: AddCommentRequest) -> Response:
        if "idempotency-key" in request.headers:
            raise _idempotency_unsupported()
        store = desk_of(request)
        seen: ServiceTicket | None = None
        if "if-match" in request.headers:
            seen = await service.ticket_status(store, ticket_id)
            require_match(request, content_etag(to_json(ticket_json(seen))))
        return _created_response(
            request, await service.add_comment(store, ticket_id, body.comment_text, seen)
        )

    @application.get(
        "/tickets",
        tags=["tickets"],
        summary="List a caller's tickets",
        description=f"Newest first, {RECENT_MAX} per page; `next` is the cursor of the next page.",
        response_model=Paged[ServiceTicketResponse],
        responses=problems(422),
        openapi_extra=parameters("cursor", more=(_CALLER,)),
    )
    async def recent(request: Request) -> Response:
        page = await service.recent_tickets(desk_of(request), caller_of(request), cursor_of(request))
        content = to_json({"items": [ticket_json(ticket) for ticket in page.tickets], "next": page.cursor})
        response = Response(content, 200, media_type=JSON)
        if page.cursor is not None:  # with the stored caller ID, because links end up in logs
            query = urlencode({"caller": page.caller_id, "cursor": page.cursor})
            response.headers["Link"] = f'<?{query}>; rel="next"'
        return response


_CALLER = {
    "name": "caller",
    "in": "query",
    "required": True,
    "description": "A session ID, a phone number with its country code, or the `caller_id` of a ticket.",
    "schema": {"type": "string", "minLength": 1, "maxLength": CALLER_CHARACTERS_MAX},
    "example": "poc-user-001",
}


def caller_of(request: Request) -> str:
    """Return the caller of a list request. An unescaped plus arrives as a space and is restored."""
    callers = request.query_params.getlist("caller")
    if len(callers) != 1:
        raise CallerRefused("The parameter caller is required once, with a session ID or a phone number.")
    (caller,) = callers
    if len(caller) > CALLER_CHARACTERS_MAX:
        raise CallerRefused(
            f"The caller has more than {CALLER_CHARACTERS_MAX} characters. Use a session ID or a phone number."
        )
    return "+" + caller.lstrip() if caller[:1] == " " and caller.strip()[:1].isdigit() else caller


def ticket_json(ticket: ServiceTicket) -> dict[str, Any]:
    """Return the JSON of a ticket: the attributes of its item in order, with times in microseconds."""
    return {
        "ticket_id": ticket.ticket_id,
        "caller_id": ticket.caller_id,
        "issue_description": ticket.issue_description,
        "status": ticket.status,
        "created_at": time_text(ticket.created_at),
        "updated_at": time_text(ticket.updated_at),
        "comments": [
            {"comment_text": comment.comment_text, "added_at": time_text(comment.added_at)}
            for comment in ticket.comments
        ],
    }


def time_text(at: datetime) -> str:
    """Return a time as the table stores it: 2026-02-09T12:20:25.343883Z."""
    text = at.isoformat(timespec="microseconds")
    if not text.endswith("+00:00"):
        text = at.astimezone(UTC).isoformat(timespec="microseconds")
    return text.removesuffix("+00:00") + "Z"


def content_etag(content: bytes) -> str:
    """Return the ETag of a ticket: a digest of its JSON, because a ticket has no version number."""
    return etag_of(blake2b(content, digest_size=12).hexdigest())


def _idempotency_unsupported() -> ProblemError:
    return ProblemError(
        400,
        "idempotency-not-kept",
        "Idempotency-Key not supported",
        "Comments have no ID, so an Idempotency-Key cannot be stored for them. To repeat a comment safely, send the ticket's ETag as "
        "If-Match.",
    )


def _created_response(request: Request, ticket: ServiceTicket, *, replayed: bool = False) -> Response:
    content = to_json(ticket_json(ticket))
    base = str(request.scope.get("root_path", "")).rstrip("/")
    headers = {"Location": f"{base}/tickets/{quote(ticket.ticket_id, safe='')}"}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    else:
        headers["ETag"] = content_etag(content)
    return Response(content, 201, headers, JSON)
