"""Tickets: opened, read, listed, changed, escalated."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import TypeAdapter, ValidationError

from tavola.apps.shell import (
    IdempotencyKey,
    IfMatch,
    Paged,
    cursor_of,
    etag_of,
    limit_of,
    not_found,
    not_modified,
    page_response,
    parameters,
    problems,
    require_match,
)
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import Status, Stretch
from tavola.apps.support_desk.model import IDENTIFIER_CHARACTERS_MAX, TicketSummary
from tavola.apps.support_desk.resources import (
    IDENTIFIER,
    SIMILAR_MAX,
    BatchAsked,
    Identifier,
    SimilarAsked,
    SimilarsTold,
    SummaryTold,
    TicketAsked,
    TicketPatch,
    TicketsTold,
    TicketTold,
    TicketWhole,
    similar_of,
    ticket_of,
    whole_of,
)
from tavola.apps.support_desk.rest.desk import (
    JSON,
    REPLAYED,
    Direct,
    contradicted,
    desk_of,
    in_path,
    invalid,
    moment_of,
    place,
    told,
)
from tavola.apps.support_desk.store import TicketOpened
from tavola.patterns import Slice

router = APIRouter(tags=["tickets"])
direct = APIRouter(tags=["tickets"], route_class=Direct)

TicketId = Annotated[str, Path(pattern=IDENTIFIER, max_length=128, description="The ticket's id.")]

_TICKET = in_path("ticket_id", "The ticket's id.")
ETAG = {"ETag": {"description": "The version, for If-Match and If-None-Match.", "schema": {"type": "string"}}}
_LOCATION = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
_SAME = {"description": "It is still what you have", "headers": ETAG}
_VERSION = re.compile(r'"([0-9]{1,9})"')
_STATUSES = {status.value: status for status in Status}
_QUESTIONS: tuple[dict[str, Any], ...] = (
    {
        "name": "customer",
        "in": "query",
        "description": "Only this customer's; with a status or without, and without dates.",
        "schema": {"type": "string", "pattern": IDENTIFIER, "maxLength": 128},
    },
    {
        "name": "status",
        "in": "query",
        "description": "Only those of this status.",
        "schema": {"type": "string", "enum": list(_STATUSES)},
    },
    *(
        {
            "name": name,
            "in": "query",
            "description": f"Only those that were opened {what}; a moment, or a day in UTC.",
            "schema": {
                "type": "string",
                "anyOf": [{"format": "date-time"}, {"format": "date"}],
                "maxLength": 40,
            },
        }
        for name, what in (("from", "then or later"), ("to", "then or before"))
    ),
)
_IDENTIFIER = TypeAdapter(Identifier)
_SUMMARIES = TypeAdapter(tuple[TicketSummary, ...]).dump_json
_LINKS = {
    name: {"operationId": operation, "parameters": {"ticket_id": "$response.body#/ticket_id"}}
    for name, operation in (
        ("ticket", "get_ticket"),
        ("change", "change_ticket"),
        ("escalate", "escalate_ticket"),
        ("note", "add_note"),
        ("feedback", "give_feedback"),
        ("whole", "get_whole_ticket"),
    )
}


@direct.get(
    "/tickets/{ticket_id}",
    operation_id="get_ticket",
    summary="A ticket",
    response_model=TicketTold,
    responses={200: {"headers": ETAG}, 304: _SAME, **problems(404)},
    openapi_extra=parameters("if-none-match", more=(_TICKET,)),
)
async def get_ticket(request: Request) -> Response:
    """Return one ticket: one read of one item."""
    ticket_id = request.path_params["ticket_id"]
    if len(ticket_id) > IDENTIFIER_CHARACTERS_MAX:
        raise not_found("ticket")  # nothing has such an id, and no key has room for any
    ticket = await service.ticket(desk_of(request).store, ticket_id)
    etag = etag_of(ticket.version)
    if "if-none-match" in request.headers and (same := not_modified(request, etag)) is not None:
        return same
    resource = ticket_of(ticket)
    return Response(resource.__pydantic_serializer__.to_json(resource), 200, {"ETag": etag}, JSON)


@direct.get(
    "/tickets",
    operation_id="list_tickets",
    summary="Tickets, newest first",
    description="By customer, with a status or without; by status; or all, newest first. The last two take dates. Each is one query.",
    response_model=Paged[SummaryTold],
    responses=problems(400),
    openapi_extra=parameters("limit", "cursor", more=_QUESTIONS),
)
async def list_tickets(request: Request) -> Response:
    """Return a list of tickets, by whatever it is asked with."""
    asked = request.query_params
    store = desk_of(request).store
    limit, cursor = limit_of(request), cursor_of(request)
    status = _status(asked.get("status"))
    customer = asked.get("customer")
    if customer is not None:
        if "from" in asked or "to" in asked:
            raise contradicted(
                "A customer's tickets are not asked by date. Leave out from and to, or the customer."
            )
        found = await service.customer_tickets(
            store, _customer(customer), status=status, limit=limit, cursor=cursor
        )
        return listed(request, found)
    during = stretch_of(asked.get("from"), asked.get("to"))
    if during is None:
        found = Slice((), None)
    elif status is None:
        found = await service.recent_tickets(store, during, limit=limit, cursor=cursor)
    else:
        found = await service.tickets_by_status(store, status, during, limit=limit, cursor=cursor)
    return listed(request, found)


def listed(request: Request, found: Slice[TicketSummary]) -> Response:
    """Return a list as an answer. A summary's fields are those of `SummaryTold`, so it is written as it is."""
    items, following = _SUMMARIES(found.items), found.cursor
    content = b'{"items":%b,"next":%b}' % (
        items,
        b"null" if following is None else b'"%b"' % following.encode(),
    )
    return page_response(request, content, following)


def stretch_of(start: str | None, end: str | None) -> Stretch | None:
    """Return the stretch of time between two parameters; None where it ends before it begins."""
    first, last = moment_of("from", start), moment_of("to", end, end=True)
    return None if first is not None and last is not None and first > last else Stretch(first, last)


def _status(text: str | None) -> Status | None:
    if text is None:
        return None
    found = _STATUSES.get(text)
    if found is None:
        raise invalid("status", f"Give one of {', '.join(_STATUSES)}.")
    return found


def _customer(text: str) -> str:
    try:
        return _IDENTIFIER.validate_python(text)
    except ValidationError:
        raise invalid(
            "customer", "Give an id of letters, digits and . _ : @ + -, up to 128 of them."
        ) from None


@router.post(
    "/tickets",
    operation_id="open_ticket",
    status_code=201,
    summary="Open a ticket",
    description="With its first event, both or none. Under an Idempotency-Key it is opened once, however often it is sent.",
    response_model=TicketOpened,
    responses={
        201: {"headers": {**ETAG, **REPLAYED, **_LOCATION}, "links": _LINKS},
        **problems(409),
    },
)
async def open_ticket(request: Request, asked: TicketAsked, key: IdempotencyKey = None) -> Response:
    """Open a ticket."""
    answer = await service.open_ticket(desk_of(request).store, asked.new(), request=key)
    opened = answer.value
    headers = {"Location": place(request, "tickets", opened.ticket_id), "ETag": etag_of(opened.version)}
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return told(opened, 201, headers=headers)


@router.post(
    "/tickets/batch-get",
    operation_id="get_tickets",
    summary="Up to 100 tickets by their ids",
    response_model=TicketsTold,
)
async def get_tickets(request: Request, asked: BatchAsked) -> Response:
    """Return tickets in the order of their ids."""
    found = await service.tickets(desk_of(request).store, asked.ticket_ids)
    return told(TicketsTold(items=[None if ticket is None else ticket_of(ticket) for ticket in found]))


@router.post(
    "/tickets/similar",
    operation_id="find_similar_tickets",
    summary="Tickets that are like a text or an embedding",
    response_model=SimilarsTold,
    responses=problems(501),
)
async def find_similar_tickets(request: Request, asked: SimilarAsked) -> Response:
    """Return the tickets nearest to what was sent."""
    embedding = None if asked.embedding is None else tuple(asked.embedding)
    store = desk_of(request).store
    found = await service.similar_tickets(store, text=asked.text, embedding=embedding, count=asked.limit)
    return told(SimilarsTold(items=[similar_of(each) for each in found]))


@router.get(
    "/tickets/{ticket_id}/similar",
    operation_id="list_similar_tickets",
    summary="Tickets that are like a ticket",
    response_model=SimilarsTold,
    responses=problems(404, 501),
)
async def list_similar_tickets(
    request: Request, ticket_id: TicketId, limit: Annotated[int, Query(ge=1, le=SIMILAR_MAX)] = 5
) -> Response:
    """Return the tickets most like one, by its embedding or else by its words."""
    store = desk_of(request).store
    found = await service.tickets_like(store, ticket_id, count=limit)
    if not found:
        await service.ticket(store, ticket_id)  # one that is like no other, or none at all
    return told(SimilarsTold(items=[similar_of(each) for each in found]))


@router.get(
    "/tickets/{ticket_id}/whole",
    operation_id="get_whole_ticket",
    summary="A ticket with its feedback, attachments and last events, in one query",
    response_model=TicketWhole,
    responses=problems(404),
)
async def get_whole_ticket(request: Request, ticket_id: TicketId) -> Response:
    """Return a ticket and all that hangs on it."""
    file = await service.ticket_file(desk_of(request).store, ticket_id)
    if file.ticket is None:
        raise not_found("ticket")
    return told(whole_of(file, file.ticket))


@router.get(
    "/tickets/{ticket_id}/text",
    operation_id="get_ticket_text",
    summary="A ticket's text, whole",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The text"},
        **problems(404),
    },
)
async def get_ticket_text(request: Request, ticket_id: TicketId) -> Response:
    """Return the text, also where it is too long for the ticket itself."""
    store = desk_of(request).store
    text = await service.whole_text(store, await service.ticket(store, ticket_id))
    return Response(text, media_type="text/plain; charset=utf-8")


@router.patch(
    "/tickets/{ticket_id}",
    operation_id="change_ticket",
    summary="Change a ticket",
    description="Its status, priority, subject or product; with the event that tells of it, both or none.",
    response_model=TicketTold,
    responses={200: {"headers": ETAG}, **problems(404, 409, 412, 428)},
)
async def change_ticket(
    request: Request, ticket_id: TicketId, asked: TicketPatch, match: IfMatch = None
) -> Response:
    """Change a ticket as it was when it was read, or whatever it is."""
    store = desk_of(request).store
    expected = await expected_version(request, ticket_id)
    ticket = await service.change_ticket(
        store,
        ticket_id,
        status=asked.status,
        changes=asked.amendment(),
        note=asked.note,
        actor=asked.actor,
        expected=expected,
    )
    return told(ticket_of(ticket), etag=etag_of(ticket.version))


async def expected_version(request: Request, ticket_id: str) -> int | None:
    """Return the version that a change is meant for, None for whatever it is; refuse a change that does not say it.

    One version is left to the change itself to compare. Of several the ticket's own is found out first.
    """
    match = request.headers.getlist("if-match")
    if len(match) == 1:
        if match[0].strip() == "*":
            return None
        one = _VERSION.fullmatch(match[0].strip())
        if one is not None:
            return int(one[1])
    elif not match:
        require_match(request, "")
    ticket = await service.ticket(desk_of(request).store, ticket_id, consistent=True)
    require_match(request, etag_of(ticket.version))
    return ticket.version
