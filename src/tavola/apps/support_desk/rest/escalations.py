"""Escalations: tickets in the hands of engineers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    IfMatch,
    Paged,
    cursor_of,
    etag_of,
    limit_of,
    parameters,
    problems,
)
from tavola.apps.support_desk import service
from tavola.apps.support_desk.resources import (
    IDENTIFIER,
    EscalationAsked,
    EscalationTold,
    TicketTold,
    escalation_of,
    ticket_of,
)
from tavola.apps.support_desk.rest.desk import desk_of, told
from tavola.apps.support_desk.rest.tickets import ETAG, TicketId, expected_version

router = APIRouter(tags=["escalations"])


@router.post(
    "/tickets/{ticket_id}/escalation",
    operation_id="escalate_ticket",
    summary="Hand a ticket to an engineer",
    description="One that is escalated already is handed on. If-Match is optional here.",
    response_model=TicketTold,
    responses={200: {"headers": ETAG}, **problems(404, 409, 412)},
)
async def escalate_ticket(
    request: Request, ticket_id: TicketId, asked: EscalationAsked, match: IfMatch = None
) -> Response:
    """Escalate a ticket."""
    expected = None if match is None else await expected_version(request, ticket_id)
    ticket = await service.escalate(
        desk_of(request).store,
        ticket_id,
        engineer=asked.engineer,
        reason=asked.reason,
        expected=expected,
        actor=asked.actor,
    )
    return told(ticket_of(ticket), etag=etag_of(ticket.version))


@router.delete(
    "/tickets/{ticket_id}/escalation",
    operation_id="end_escalation",
    summary="Take a ticket back from its engineer",
    description="It is PROCESSING again. A ticket that is not escalated is a 409. If-Match is optional here.",
    response_model=TicketTold,
    responses={200: {"headers": ETAG}, **problems(404, 409, 412)},
)
async def end_escalation(request: Request, ticket_id: TicketId, match: IfMatch = None) -> Response:
    """End the escalation of a ticket."""
    expected = None if match is None else await expected_version(request, ticket_id)
    ticket = await service.end_escalation(desk_of(request).store, ticket_id, expected=expected)
    return told(ticket_of(ticket), etag=etag_of(ticket.version))


@router.get(
    "/escalations",
    operation_id="list_escalations",
    summary="Escalated tickets, last escalated first",
    response_model=Paged[EscalationTold],
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
    found = await service.escalations(store, engineer=engineer, limit=limit, cursor=cursor)
    page = Paged[EscalationTold](items=[escalation_of(each) for each in found.items], next=found.cursor)
    return page.response(request)
