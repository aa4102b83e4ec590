"""The routes of a ticket's events and feedback."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    IdempotencyKey,
    Paged,
    PageQuery,
    cursor_of,
    json_response,
    limit_of,
    parameters,
    problems,
    resource_path,
)
from tavola.apps.support_desk import service
from tavola.apps.support_desk.rest.desk import REPLAYED, contradictory_parameters, desk_of
from tavola.apps.support_desk.rest.tickets import TicketId, parse_time_range
from tavola.apps.support_desk.schemas import (
    IDENTIFIER,
    EventResponse,
    FeedbackRequest,
    FeedbackResponse,
    NoteRequest,
    note_response,
)
from tavola.patterns import Slice

router = APIRouter()

LATEST_MAX = 100

_LOCATION = {"Location": {"description": "The URL of the list.", "schema": {"type": "string"}}}


@router.get(
    "/tickets/{ticket_id}/events",
    operation_id="list_events",
    summary="List the events of a ticket",
    description="All events in order, those of a time range (`from`, `to`) or one `day` in UTC, or the `latest` ones, newest first.",
    response_model=Paged[EventResponse],
    responses=problems(404),
    openapi_extra=parameters("limit", "cursor"),
    tags=["timeline"],
)
async def list_events(
    request: Request,
    ticket_id: TicketId,
    start: Annotated[
        str | None, Query(alias="from", max_length=40, description="A time, or a date in UTC.")
    ] = None,
    end: Annotated[
        str | None, Query(alias="to", max_length=40, description="A time, or a date in UTC.")
    ] = None,
    day: Annotated[date | None, Query(description="A date in UTC.")] = None,
    latest: Annotated[
        int | None, Query(ge=1, le=LATEST_MAX, description="Only this many latest events, newest first.")
    ] = None,
) -> Response:
    """Return a ticket's events."""
    store = desk_of(request).store
    limit, cursor = limit_of(request), cursor_of(request)
    has_range = start is not None or end is not None
    if sum((has_range, day is not None, latest is not None)) > 1:
        raise contradictory_parameters("Use only one of from/to, day and latest.")
    if latest is not None:
        if "limit" in request.query_params or cursor is not None:
            raise contradictory_parameters("latest cannot be combined with limit and cursor.")
        page = Slice(tuple(await service.list_latest_events(store, ticket_id, latest)), None)
    elif day is not None:
        page = await service.list_day_events(store, ticket_id, day, limit=limit, cursor=cursor)
    else:
        during = parse_time_range(start, end)
        if during is None:
            page = Slice((), None)
        else:
            page = await service.list_events(store, ticket_id, during, limit=limit, cursor=cursor)
    if not page.items:
        await service.get_ticket(store, ticket_id)  # raises if there is no such ticket
    return Paged[EventResponse].render(request, page)


@router.post(
    "/tickets/{ticket_id}/events",
    operation_id="add_note",
    status_code=201,
    summary="Add a note to a ticket's timeline",
    response_model=EventResponse,
    responses={201: {"headers": {**_LOCATION, **REPLAYED}}, **problems(404, 409)},
    tags=["timeline"],
)
async def add_note(
    request: Request, ticket_id: TicketId, body: NoteRequest, key: IdempotencyKey = None
) -> Response:
    """Add a note; once per idempotency key."""
    store = desk_of(request).store
    answer = await service.add_note(store, ticket_id, body.note, actor=body.actor, idempotency_key=key)
    headers = {"Location": resource_path(request, "tickets", ticket_id, "events")}
    return json_response(note_response(answer.value), 201, headers=headers, replayed=answer.replayed)


@router.get(
    "/tickets/{ticket_id}/feedback",
    operation_id="list_feedback",
    summary="List the feedback on a ticket, newest first",
    response_model=Paged[FeedbackResponse],
    responses=problems(404),
    tags=["feedback"],
)
async def list_feedback(request: Request, ticket_id: TicketId, paging: PageQuery) -> Response:
    """Return a ticket's feedback."""
    store = desk_of(request).store
    feedback = await service.list_ticket_feedback(store, ticket_id, **paging)
    if not feedback.items:
        await service.get_ticket(store, ticket_id)
    return Paged[FeedbackResponse].render(request, feedback)


@router.post(
    "/tickets/{ticket_id}/feedback",
    operation_id="give_feedback",
    status_code=201,
    summary="Submit feedback on a ticket",
    response_model=FeedbackResponse,
    responses={201: {"headers": {**_LOCATION, **REPLAYED}}, **problems(404, 409)},
    tags=["feedback"],
)
async def give_feedback(
    request: Request, ticket_id: TicketId, body: FeedbackRequest, key: IdempotencyKey = None
) -> Response:
    """Store feedback; once per idempotency key."""
    answer = await service.give_feedback(desk_of(request).store, ticket_id, body.new(), idempotency_key=key)
    headers = {"Location": resource_path(request, "tickets", ticket_id, "feedback")}
    resource = FeedbackResponse.model_validate(answer.value).model_copy(
        update={"was_helpful": body.was_helpful, "comment": body.comment}
    )
    return json_response(resource, 201, headers=headers, replayed=answer.replayed)


@router.get(
    "/operators/{operator_id}/feedback",
    operation_id="list_feedback_of_operator",
    summary="List the feedback of an operator, newest first",
    response_model=Paged[FeedbackResponse],
    tags=["feedback"],
)
async def list_feedback_of_operator(
    request: Request,
    operator_id: Annotated[str, Path(pattern=IDENTIFIER, max_length=128, description="The operator ID.")],
    paging: PageQuery,
) -> Response:
    """Return the feedback of an operator."""
    feedback = await service.list_operator_feedback(desk_of(request).store, operator_id, **paging)
    return Paged[FeedbackResponse].render(request, feedback)
