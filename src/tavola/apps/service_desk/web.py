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
from tavola.apps.service_desk.model import Ticket, Tickets
from tavola.apps.service_desk.pages import add_pages, desk_of, new_pages
from tavola.apps.service_desk.store import ServiceDeskStore
from tavola.apps.shell import (
    OpenedStore,
    Paged,
    ProblemError,
    Settings,
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

BODY_BYTES_MAX = (
    TICKET_KB_MAX * 1024 * 6 + 4_096
)  # a ticket in the longest way to write it: every sign escaped
JSON = "application/json"

DESCRIPTION = (
    "Tickets of a voice service desk, and their comments. A caller is a session's id, or a telephone number with its "
    "country, which is stored as a keyed hash and never in clear."
)

_MOMENT = {"format": "date-time", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}
Moment = Annotated[str, Field(json_schema_extra=_MOMENT, examples=["2026-02-09T12:20:25.343883Z"])]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class NewTicket(BaseModel):
    """What a caller reports."""

    model_config = ConfigDict(extra="forbid", strict=True)

    caller_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=CALLER_CHARACTERS_MAX,
            description="A session's id, or a telephone number with + or 00 and its country.",
            examples=["poc-user-001"],
        ),
    ]
    issue_description: Annotated[Text, Field(examples=["My laptop won't turn on"])]


class NewComment(BaseModel):
    """What is said about a ticket."""

    model_config = ConfigDict(extra="forbid", strict=True)

    comment_text: Annotated[Text, Field(examples=["Tried restarting but still not working"])]


class CommentOut(BaseModel):
    """A comment of a ticket."""

    comment_text: str
    added_at: Moment


class TicketOut(BaseModel):
    """A ticket, with the attributes that its item has."""

    ticket_id: Annotated[str, Field(examples=["33567ee8-f182-4f8a-b03e-2f1515915471"])]
    caller_id: Annotated[
        str, Field(description="As it is stored: a telephone number as `tel:` and its hash.")
    ]
    issue_description: str
    status: Annotated[str, Field(examples=["open"])]
    created_at: Moment
    updated_at: Moment
    comments: list[CommentOut]


def desk_store(opened: OpenedStore) -> ServiceDeskStore:
    """Return the desk on a store; whoever else writes there knows callers by the same hashes."""
    return ServiceDeskStore(opened.db, opened.secrets.derive("service-desk"))


def create(settings: Settings) -> FastAPI:
    """Return the application: JSON at the root, pages under /ui."""
    pages = new_pages(settings)

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        async with opened_store(settings, Tickets) as opened:
            store = desk_store(opened)
            shell_of(application).watch(opened)
            application.state.desk = store
            yield

    application = new_application(
        settings,
        title="Service desk",
        description=DESCRIPTION,
        pages=pages,
        life=life,
        tags=[("tickets", "Report, read, comment, list")],
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
        response_model=TicketOut,
        responses=problems(413, 422),
        openapi_extra=parameters("idempotency-key"),
    )
    async def report(request: Request, body: NewTicket) -> Response:
        key = idempotency_key(request)
        reported = await service.report_issue(desk_of(request), body.caller_id, body.issue_description, key)
        return _ticket_made(request, reported.ticket, replayed=reported.replayed)

    @application.get(
        "/tickets/{ticket_id}",
        tags=["tickets"],
        summary="A ticket and its state",
        response_model=TicketOut,
        responses={304: {"description": "It is still what If-None-Match says"}, **problems(404)},
        openapi_extra=parameters("if-none-match"),
    )
    async def ticket(request: Request, ticket_id: str) -> Response:
        content = to_json(told(await service.ticket_status(desk_of(request), ticket_id)))
        etag = digest_of(content)
        return not_modified(request, etag) or Response(content, 200, {"ETag": etag}, JSON)

    @application.post(
        "/tickets/{ticket_id}/comments",
        tags=["tickets"],
        summary="Add a comment to a ticket",
        description=(
            "Answers with the ticket. If-Match is not required: without it, comments that come together are all "
            "kept. With it, a comment whose answer was lost can be sent again and is not kept twice."
        ),
        status_code=201,
        response_model=TicketOut,
        responses=problems(404, 412, 413),
        openapi_extra=parameters("if-match"),
    )
    async def comment(request: Request, ticket_id: str, body: NewComment) -> Response:
        if "idempotency-key" in request.headers:
            raise _no_key()
        store = desk_of(request)
        seen: Ticket | None = None
        if "if-match" in request.headers:
            seen = await service.ticket_status(store, ticket_id)
            require_match(request, digest_of(to_json(told(seen))))
        return _ticket_made(request, await service.add_comment(store, ticket_id, body.comment_text, seen))

    @application.get(
        "/tickets",
        tags=["tickets"],
        summary="A caller's recent tickets",
        description=f"Newest first, {RECENT_MAX} to a page; `next` is the cursor of the page after it.",
        response_model=Paged[TicketOut],
        responses=problems(422),
        openapi_extra=parameters("cursor", more=(_CALLER,)),
    )
    async def recent(request: Request) -> Response:
        found = await service.recent_tickets(desk_of(request), caller_of(request), cursor_of(request))
        content = to_json({"items": [told(each) for each in found.tickets], "next": found.cursor})
        answer = Response(content, 200, media_type=JSON)
        if found.cursor is not None:  # with the caller as it is stored: the link may end in a log
            query = urlencode({"caller": found.caller_id, "cursor": found.cursor})
            answer.headers["Link"] = f'<?{query}>; rel="next"'
        return answer


_CALLER = {
    "name": "caller",
    "in": "query",
    "required": True,
    "description": "A session's id, a telephone number with its country, or a `caller_id` as a ticket has it.",
    "schema": {"type": "string", "minLength": 1, "maxLength": CALLER_CHARACTERS_MAX},
    "example": "poc-user-001",
}


def caller_of(request: Request) -> str:
    """Return whose tickets are asked for. A plus that was not escaped arrives as a space, and is meant as a plus."""
    given = request.query_params.getlist("caller")
    if len(given) != 1:
        raise CallerRefused("Say whose tickets: caller=… once, with a session's id or a telephone number.")
    (caller,) = given
    if len(caller) > CALLER_CHARACTERS_MAX:
        raise CallerRefused(
            f"The caller has more than {CALLER_CHARACTERS_MAX} characters. Give a session's id."
        )
    return "+" + caller.lstrip() if caller[:1] == " " and caller.strip()[:1].isdigit() else caller


def told(ticket: Ticket) -> dict[str, Any]:
    """Return a ticket as JSON has it: the attributes of the item in their order, moments to the microsecond."""
    return {
        "ticket_id": ticket.ticket_id,
        "caller_id": ticket.caller_id,
        "issue_description": ticket.issue_description,
        "status": ticket.status,
        "created_at": moment(ticket.created_at),
        "updated_at": moment(ticket.updated_at),
        "comments": [
            {"comment_text": comment.comment_text, "added_at": moment(comment.added_at)}
            for comment in ticket.comments
        ],
    }


def moment(at: datetime) -> str:
    """Return a moment as the table has it: 2026-02-09T12:20:25.343883Z."""
    text = at.isoformat(timespec="microseconds")
    if not text.endswith("+00:00"):
        text = at.astimezone(UTC).isoformat(timespec="microseconds")
    return text.removesuffix("+00:00") + "Z"


def digest_of(content: bytes) -> str:
    """Return the ETag of a ticket, which has no number of its version: that of the whole representation."""
    return etag_of(blake2b(content, digest_size=12).hexdigest())


def _no_key() -> ProblemError:
    return ProblemError(
        400,
        "idempotency-not-kept",
        "No Idempotency-Key here",
        "A comment has no id that could be made of a key, and a ticket keeps nothing but its comments. To send a comment "
        "again safely, send the ticket's ETag as If-Match.",
    )


def _ticket_made(request: Request, ticket: Ticket, *, replayed: bool = False) -> Response:
    content = to_json(told(ticket))
    base = str(request.scope.get("root_path", "")).rstrip("/")
    headers = {"Location": f"{base}/tickets/{quote(ticket.ticket_id, safe='')}"}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    else:
        headers["ETag"] = digest_of(content)
    return Response(content, 201, headers, JSON)
