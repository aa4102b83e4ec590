"""The routes of tickets, escalations, and a customer's own tickets.

A customer's own tickets are read with the customer's credentials: the request to the store is signed with the caller's access key, and the
policies there decide which tickets the key may read. This module compares no names.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Security
from fastapi.openapi.models import HTTPBase
from fastapi.responses import Response
from fastapi.security.base import SecurityBase
from pydantic import TypeAdapter, ValidationError

from tavola.apps.shell import (
    JSON,
    Cursor,
    IdempotencyKey,
    IfMatch,
    Limit,
    Paged,
    cursor_of,
    etag_of,
    invalid_parameter,
    json_response,
    limit_of,
    not_found,
    not_modified,
    page_response,
    parameters,
    problems,
    require_match,
    resource_path,
)
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import Status, TimeRange
from tavola.apps.support_desk.model import IDENTIFIER_CHARACTERS_MAX, TicketSummary
from tavola.apps.support_desk.rest.desk import (
    REPLAYED,
    DirectRoute,
    contradictory_parameters,
    desk_of,
    parse_time,
    path_parameter,
)
from tavola.apps.support_desk.schemas import (
    IDENTIFIER,
    SIMILAR_MAX,
    ChangeTicketRequest,
    EscalationRequest,
    EscalationResponse,
    FullTicketResponse,
    GetTicketsRequest,
    Identifier,
    OpenTicketRequest,
    SimilarTicketsRequest,
    SimilarTicketsResponse,
    TicketResponse,
    TicketsResponse,
    TicketSummaryResponse,
    escalation_response,
    full_ticket_response,
    similar_ticket_response,
    ticket_response,
)
from tavola.apps.support_desk.store import TicketOpened
from tavola.patterns import Slice

router = APIRouter(tags=["tickets"])
escalations = APIRouter(tags=["escalations"])
customers = APIRouter(tags=["customers"])
direct = APIRouter(tags=["tickets"], route_class=DirectRoute)

TicketId = Annotated[str, Path(pattern=IDENTIFIER, max_length=128, description="The ticket's id.")]

_TICKET_ID = path_parameter("ticket_id", "The ticket's id.")
ETAG = {"ETag": {"description": "The version, for If-Match and If-None-Match.", "schema": {"type": "string"}}}
_LOCATION = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
_NOT_MODIFIED = {"description": "It is still what you have", "headers": ETAG}
_VERSION = re.compile(r'"([0-9]{1,9})"')
_STATUSES = {status.value: status for status in Status}
_LIST_PARAMETERS: tuple[dict[str, Any], ...] = (
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
    response_model=TicketResponse,
    responses={200: {"headers": ETAG}, 304: _NOT_MODIFIED, **problems(404)},
    openapi_extra=parameters("if-none-match", more=(_TICKET_ID,)),
)
async def get_ticket(request: Request) -> Response:
    """Return a ticket with one read of one item."""
    ticket_id = request.path_params["ticket_id"]
    if len(ticket_id) > IDENTIFIER_CHARACTERS_MAX:
        raise not_found("ticket")  # no id is that long
    ticket = await service.get_ticket(desk_of(request).store, ticket_id)
    etag = etag_of(ticket.version)
    if "if-none-match" in request.headers and (same := not_modified(request, etag)) is not None:
        return same
    resource = ticket_response(ticket)
    return Response(resource.__pydantic_serializer__.to_json(resource), 200, {"ETag": etag}, JSON)


@direct.get(
    "/tickets",
    operation_id="list_tickets",
    summary="Tickets, newest first",
    description="By customer, with a status or without; by status; or all, newest first. The last two take dates. Each is one query.",
    response_model=Paged[TicketSummaryResponse],
    responses=problems(400),
    openapi_extra=parameters("limit", "cursor", more=_LIST_PARAMETERS),
)
async def list_tickets(request: Request) -> Response:
    """Return tickets by the given parameters."""
    query = request.query_params
    store = desk_of(request).store
    limit, cursor = limit_of(request), cursor_of(request)
    status = _parse_status(query.get("status"))
    customer = query.get("customer")
    if customer is not None:
        if "from" in query or "to" in query:
            raise contradictory_parameters(
                "A customer's tickets are not asked by date. Leave out from and to, or the customer."
            )
        page = await service.list_customer_tickets(
            store, _parse_customer(customer), status=status, limit=limit, cursor=cursor
        )
        return summaries_response(request, page)
    during = parse_time_range(query.get("from"), query.get("to"))
    if during is None:
        page = Slice((), None)
    elif status is None:
        page = await service.list_recent_tickets(store, during, limit=limit, cursor=cursor)
    else:
        page = await service.list_tickets_by_status(store, status, during, limit=limit, cursor=cursor)
    return summaries_response(request, page)


def summaries_response(request: Request, page: Slice[TicketSummary]) -> Response:
    """Return a list as JSON. The fields of a summary are those of `TicketSummaryResponse`, so it is serialised directly."""
    items, next_cursor = _SUMMARIES(page.items), page.cursor
    content = b'{"items":%b,"next":%b}' % (
        items,
        b"null" if next_cursor is None else b'"%b"' % next_cursor.encode(),
    )
    return page_response(request, content, next_cursor)


def parse_time_range(start: str | None, end: str | None) -> TimeRange | None:
    """Return the range between two parameters; None if it ends before it starts."""
    first, last = parse_time("from", start), parse_time("to", end, end=True)
    return None if first is not None and last is not None and first > last else TimeRange(first, last)


def _parse_status(text: str | None) -> Status | None:
    if text is None:
        return None
    status = _STATUSES.get(text)
    if status is None:
        raise invalid_parameter("status", f"Give one of {', '.join(_STATUSES)}.")
    return status


def _parse_customer(text: str) -> str:
    try:
        return _IDENTIFIER.validate_python(text)
    except ValidationError:
        raise invalid_parameter(
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
async def open_ticket(request: Request, body: OpenTicketRequest, key: IdempotencyKey = None) -> Response:
    """Open a ticket."""
    answer = await service.open_ticket(desk_of(request).store, body.new(), idempotency_key=key)
    opened = answer.value
    headers = {
        "Location": resource_path(request, "tickets", opened.ticket_id),
        "ETag": etag_of(opened.version),
    }
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return json_response(opened, 201, headers=headers)


@router.post(
    "/tickets/batch-get",
    operation_id="get_tickets",
    summary="Up to 100 tickets by their ids",
    response_model=TicketsResponse,
)
async def get_tickets(request: Request, body: GetTicketsRequest) -> Response:
    """Return tickets in the order of their ids."""
    tickets = await service.get_tickets(desk_of(request).store, body.ticket_ids)
    return json_response(
        TicketsResponse(items=[None if ticket is None else ticket_response(ticket) for ticket in tickets])
    )


@router.post(
    "/tickets/similar",
    operation_id="find_similar_tickets",
    summary="Tickets that are like a text or an embedding",
    response_model=SimilarTicketsResponse,
    responses=problems(501),
)
async def find_similar_tickets(request: Request, body: SimilarTicketsRequest) -> Response:
    """Return the tickets nearest to a text or embedding."""
    embedding = None if body.embedding is None else tuple(body.embedding)
    store = desk_of(request).store
    similar = await service.find_similar_tickets(store, text=body.text, embedding=embedding, count=body.limit)
    return json_response(SimilarTicketsResponse(items=[similar_ticket_response(each) for each in similar]))


@router.get(
    "/tickets/{ticket_id}/similar",
    operation_id="list_similar_tickets",
    summary="Tickets that are like a ticket",
    response_model=SimilarTicketsResponse,
    responses=problems(404, 501),
)
async def list_similar_tickets(
    request: Request, ticket_id: TicketId, limit: Annotated[int, Query(ge=1, le=SIMILAR_MAX)] = 5
) -> Response:
    """Return the tickets most similar to one, by its embedding or else by its words."""
    store = desk_of(request).store
    similar = await service.find_tickets_like(store, ticket_id, count=limit)
    if not similar:
        await service.get_ticket(store, ticket_id)  # raises if there is no such ticket
    return json_response(SimilarTicketsResponse(items=[similar_ticket_response(each) for each in similar]))


@router.get(
    "/tickets/{ticket_id}/whole",
    operation_id="get_whole_ticket",
    summary="A ticket with its feedback, attachments and last events, in one query",
    response_model=FullTicketResponse,
    responses=problems(404),
)
async def get_whole_ticket(request: Request, ticket_id: TicketId) -> Response:
    """Return a ticket with everything that belongs to it."""
    full = await service.get_full_ticket(desk_of(request).store, ticket_id)
    if full.ticket is None:
        raise not_found("ticket")
    return json_response(full_ticket_response(full, full.ticket))


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
    """Return the whole text, also if it is too long for the ticket's item."""
    store = desk_of(request).store
    text = await service.read_full_text(store, await service.get_ticket(store, ticket_id))
    return Response(text, media_type="text/plain; charset=utf-8")


@router.patch(
    "/tickets/{ticket_id}",
    operation_id="change_ticket",
    summary="Change a ticket",
    description="Its status, priority, subject or product; with the event that tells of it, both or none.",
    response_model=TicketResponse,
    responses={200: {"headers": ETAG}, **problems(404, 409, 412, 428)},
)
async def change_ticket(
    request: Request, ticket_id: TicketId, body: ChangeTicketRequest, match: IfMatch = None
) -> Response:
    """Change a ticket, at the version that If-Match names or at any."""
    store = desk_of(request).store
    expected = await expected_version(request, ticket_id)
    ticket = await service.change_ticket(
        store,
        ticket_id,
        status=body.status,
        changes=body.amendment(),
        note=body.note,
        actor=body.actor,
        expected=expected,
    )
    return json_response(ticket_response(ticket), etag=etag_of(ticket.version))


async def expected_version(request: Request, ticket_id: str) -> int | None:
    """Return the version that If-Match names, None for `*`; refuse a change without If-Match.

    A single version is compared by the change itself. For several, the ticket is read to find out which matches.
    """
    match = request.headers.getlist("if-match")
    if len(match) == 1:
        if match[0].strip() == "*":
            return None
        single = _VERSION.fullmatch(match[0].strip())
        if single is not None:
            return int(single[1])
    elif not match:
        require_match(request, "")
    ticket = await service.get_ticket(desk_of(request).store, ticket_id, consistent=True)
    require_match(request, etag_of(ticket.version))
    return ticket.version


# Escalations


@escalations.post(
    "/tickets/{ticket_id}/escalation",
    operation_id="escalate_ticket",
    summary="Hand a ticket to an engineer",
    description="One that is escalated already is handed on. If-Match is optional here.",
    response_model=TicketResponse,
    responses={200: {"headers": ETAG}, **problems(404, 409, 412)},
)
async def escalate_ticket(
    request: Request, ticket_id: TicketId, body: EscalationRequest, match: IfMatch = None
) -> Response:
    """Escalate a ticket."""
    expected = None if match is None else await expected_version(request, ticket_id)
    ticket = await service.escalate(
        desk_of(request).store,
        ticket_id,
        engineer=body.engineer,
        reason=body.reason,
        expected=expected,
        actor=body.actor,
    )
    return json_response(ticket_response(ticket), etag=etag_of(ticket.version))


@escalations.delete(
    "/tickets/{ticket_id}/escalation",
    operation_id="end_escalation",
    summary="Take a ticket back from its engineer",
    description="It is PROCESSING again. A ticket that is not escalated is a 409. If-Match is optional here.",
    response_model=TicketResponse,
    responses={200: {"headers": ETAG}, **problems(404, 409, 412)},
)
async def end_escalation(request: Request, ticket_id: TicketId, match: IfMatch = None) -> Response:
    """End the escalation of a ticket."""
    expected = None if match is None else await expected_version(request, ticket_id)
    ticket = await service.end_escalation(desk_of(request).store, ticket_id, expected=expected)
    return json_response(ticket_response(ticket), etag=etag_of(ticket.version))


@escalations.get(
    "/escalations",
    operation_id="list_escalations",
    summary="Escalated tickets, last escalated first",
    response_model=Paged[EscalationResponse],
    openapi_extra=parameters("limit", "cursor"),
)
async def list_escalations(
    request: Request,
    engineer: Annotated[
        str | None, Query(pattern=IDENTIFIER, max_length=128, description="Only this engineer's.")
    ] = None,
) -> Response:
    """Return all escalations, or one engineer's."""
    store = desk_of(request).store
    limit, cursor = limit_of(request), cursor_of(request)
    escalated = await service.list_escalations(store, engineer=engineer, limit=limit, cursor=cursor)
    page = Paged[EscalationResponse](
        items=[escalation_response(each) for each in escalated.items], next=escalated.cursor
    )
    return page.response(request)


# A customer's own tickets


class AccessKey(SecurityBase):
    """A Basic access key in the OpenAPI document; the store verifies it."""

    def __init__(self) -> None:
        self.model = HTTPBase(scheme="basic", description="A customer's access key, and its secret.")
        self.scheme_name = "AccessKey"

    async def __call__(self, request: Request) -> str | None:
        """Return the header unchanged."""
        return request.headers.get("authorization")


_ACCESS_KEY = AccessKey()


@customers.get(
    "/my/tickets",
    operation_id="list_my_tickets",
    summary="A customer's own tickets, newest first",
    description="Asked of the store with the caller's access key: its policies decide. Where the store verifies nobody, nobody is let in.",
    response_model=Paged[TicketSummaryResponse],
    responses=problems(401),
)
async def list_my_tickets(
    request: Request,
    authorization: Annotated[str | None, Security(_ACCESS_KEY)],
    customer: Annotated[str, Query(pattern=IDENTIFIER, max_length=128, description="Whose.")],
    status: Annotated[Status | None, Query(description="Only those of this status.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the tickets of a customer, as far as the caller may read them."""
    async with desk_of(request).callers.store(authorization) as store:
        page = await service.list_customer_tickets(
            store, customer, status=status, limit=limit, cursor=cursor or None
        )
    return summaries_response(request, page)
