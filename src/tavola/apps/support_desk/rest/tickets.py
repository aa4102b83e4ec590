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
    IdempotencyKey,
    IfMatch,
    Paged,
    PageQuery,
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
from tavola.apps.support_desk.domain import TicketStatus, TimeRange
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
)
from tavola.apps.support_desk.store import TicketOpened
from tavola.patterns import Slice

router = APIRouter(tags=["tickets"])
escalations = APIRouter(tags=["escalations"])
customers = APIRouter(tags=["customers"])
direct = APIRouter(tags=["tickets"], route_class=DirectRoute)

TicketId = Annotated[str, Path(pattern=IDENTIFIER, max_length=128, description="The ticket ID.")]

_TICKET_ID = path_parameter("ticket_id", "The ticket ID.")
ETAG = {
    "ETag": {
        "description": "The version of the ticket, for If-Match and If-None-Match.",
        "schema": {"type": "string"},
    }
}
_LOCATION = {"Location": {"description": "The URL of the ticket.", "schema": {"type": "string"}}}
_NOT_MODIFIED = {"description": "Your copy is current", "headers": ETAG}
_VERSION = re.compile(r'"([0-9]{1,9})"')
_STATUSES = {status.value: status for status in TicketStatus}
_LIST_PARAMETERS: tuple[dict[str, Any], ...] = (
    {
        "name": "customer",
        "in": "query",
        "description": "Only tickets of this customer. Cannot be combined with from and to.",
        "schema": {"type": "string", "pattern": IDENTIFIER, "maxLength": 128},
    },
    {
        "name": "status",
        "in": "query",
        "description": "Only tickets with this status.",
        "schema": {"type": "string", "enum": list(_STATUSES)},
    },
    *(
        {
            "name": name,
            "in": "query",
            "description": f"Only tickets opened {what}; a time, or a date in UTC.",
            "schema": {
                "type": "string",
                "anyOf": [{"format": "date-time"}, {"format": "date"}],
                "maxLength": 40,
            },
        }
        for name, what in (("from", "at this time or later"), ("to", "at this time or earlier"))
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
    summary="Get a ticket",
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
    resource = TicketResponse.model_validate(ticket)
    return Response(resource.__pydantic_serializer__.to_json(resource), 200, {"ETag": etag}, JSON)


@direct.get(
    "/tickets",
    operation_id="list_tickets",
    summary="List tickets, newest first",
    description="All tickets, or those of a customer or with a status. from and to are supported without customer. Each list is one query.",
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
                "customer cannot be combined with from and to. Leave out one or the other."
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


def _parse_status(text: str | None) -> TicketStatus | None:
    if text is None:
        return None
    status = _STATUSES.get(text)
    if status is None:
        raise invalid_parameter("status", f"Use one of {', '.join(_STATUSES)}.")
    return status


def _parse_customer(text: str) -> str:
    try:
        return _IDENTIFIER.validate_python(text)
    except ValidationError:
        raise invalid_parameter("customer", "Use up to 128 letters, digits and . _ : @ + -.") from None


@router.post(
    "/tickets",
    operation_id="open_ticket",
    status_code=201,
    summary="Open a ticket",
    description="The ticket and its first event are written in one transaction. With an Idempotency-Key, repeated requests open it once.",
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
    headers = {"Location": resource_path(request, "tickets", opened.ticket_id)}
    return json_response(opened, 201, etag=etag_of(opened.version), headers=headers, replayed=answer.replayed)


@router.post(
    "/tickets/batch-get",
    operation_id="get_tickets",
    summary="Get up to 100 tickets by ID",
    response_model=TicketsResponse,
)
async def get_tickets(request: Request, body: GetTicketsRequest) -> Response:
    """Return tickets in the order of their ids."""
    tickets = await service.get_tickets(desk_of(request).store, body.ticket_ids)
    return json_response(TicketsResponse.model_validate({"items": tickets}))


@router.post(
    "/tickets/similar",
    operation_id="find_similar_tickets",
    summary="Find tickets similar to a text or an embedding",
    response_model=SimilarTicketsResponse,
    responses=problems(501),
)
async def find_similar_tickets(request: Request, body: SimilarTicketsRequest) -> Response:
    """Return the tickets nearest to a text or embedding."""
    embedding = None if body.embedding is None else tuple(body.embedding)
    store = desk_of(request).store
    similar = await service.find_similar_tickets(store, text=body.text, embedding=embedding, count=body.limit)
    return json_response(SimilarTicketsResponse.model_validate({"items": similar}))


@router.get(
    "/tickets/{ticket_id}/similar",
    operation_id="list_similar_tickets",
    summary="Find tickets similar to a ticket",
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
    return json_response(SimilarTicketsResponse.model_validate({"items": similar}))


@router.get(
    "/tickets/{ticket_id}/whole",
    operation_id="get_whole_ticket",
    summary="Get a ticket with its feedback, attachments and latest events",
    response_model=FullTicketResponse,
    responses=problems(404),
)
async def get_whole_ticket(request: Request, ticket_id: TicketId) -> Response:
    """Return a ticket with everything that belongs to it."""
    full = await service.get_full_ticket(desk_of(request).store, ticket_id)
    if full.ticket is None:
        raise not_found("ticket")
    return json_response(FullTicketResponse.model_validate(full))


@router.get(
    "/tickets/{ticket_id}/text",
    operation_id="get_ticket_text",
    summary="Get the full text of a ticket",
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
    description="Changes status, priority, subject or product. The change and its event are written in one transaction.",
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
    return json_response(TicketResponse.model_validate(ticket), etag=etag_of(ticket.version))


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
    summary="Escalate a ticket to an engineer",
    description="An escalated ticket is reassigned. If-Match is optional.",
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
    return json_response(TicketResponse.model_validate(ticket), etag=etag_of(ticket.version))


@escalations.delete(
    "/tickets/{ticket_id}/escalation",
    operation_id="end_escalation",
    summary="End the escalation of a ticket",
    description="The status becomes PROCESSING. A ticket that is not escalated is a 409. If-Match is optional.",
    response_model=TicketResponse,
    responses={200: {"headers": ETAG}, **problems(404, 409, 412)},
)
async def end_escalation(request: Request, ticket_id: TicketId, match: IfMatch = None) -> Response:
    """End the escalation of a ticket."""
    expected = None if match is None else await expected_version(request, ticket_id)
    ticket = await service.end_escalation(desk_of(request).store, ticket_id, expected=expected)
    return json_response(TicketResponse.model_validate(ticket), etag=etag_of(ticket.version))


@escalations.get(
    "/escalations",
    operation_id="list_escalations",
    summary="List escalated tickets, latest escalation first",
    response_model=Paged[EscalationResponse],
    openapi_extra=parameters("limit", "cursor"),
)
async def list_escalations(
    request: Request,
    engineer: Annotated[
        str | None,
        Query(pattern=IDENTIFIER, max_length=128, description="Only tickets assigned to this engineer."),
    ] = None,
) -> Response:
    """Return all escalations, or one engineer's."""
    store = desk_of(request).store
    limit, cursor = limit_of(request), cursor_of(request)
    escalated = await service.list_escalations(store, engineer=engineer, limit=limit, cursor=cursor)
    return Paged[EscalationResponse].render(request, escalated)


# A customer's own tickets


class AccessKeyScheme(SecurityBase):
    """A Basic access key in the OpenAPI document; the store verifies it."""

    def __init__(self) -> None:
        self.model = HTTPBase(scheme="basic", description="A customer's access key and its secret.")
        self.scheme_name = "AccessKey"

    async def __call__(self, request: Request) -> str | None:
        """Return the header unchanged."""
        return request.headers.get("authorization")


_ACCESS_KEY = AccessKeyScheme()


@customers.get(
    "/my/tickets",
    operation_id="list_my_tickets",
    summary="List a customer's own tickets, newest first",
    description="The store is queried with the caller's access key, so IAM policies decide. Stores that do not verify access keys are refused.",
    response_model=Paged[TicketSummaryResponse],
    responses=problems(401),
)
async def list_my_tickets(
    request: Request,
    authorization: Annotated[str | None, Security(_ACCESS_KEY)],
    customer: Annotated[str, Query(pattern=IDENTIFIER, max_length=128, description="The customer ID.")],
    paging: PageQuery,
    status: Annotated[TicketStatus | None, Query(description="Only tickets with this status.")] = None,
) -> Response:
    """Return the tickets of a customer, as far as the caller may read them."""
    async with desk_of(request).callers.store(authorization) as store:
        page = await service.list_customer_tickets(store, customer, status=status, **paging)
    return summaries_response(request, page)
