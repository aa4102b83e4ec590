"""The routes of a ticket's events and feedback."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    Cursor,
    IdempotencyKey,
    Limit,
    Paged,
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
    event_response,
    feedback_response,
    note_response,
)
from tavola.patterns import Slice

router = APIRouter()

LATEST_MAX = 100

_LOCATION = {"Location": {"description": "The list it is in.", "schema": {"type": "string"}}}


@router.get(
    "/tickets/{ticket_id}/events",
    operation_id="list_events",
    summary="What happened to a ticket, in order",
    description="All of it, a stretch of time (`from`, `to`), one `day` in UTC, or the `latest` few, newest first.",
    response_model=Paged[EventResponse],
    responses=problems(404),
    openapi_extra=parameters("limit", "cursor"),
    tags=["timeline"],
)
async def list_events(
    request: Request,
    ticket_id: TicketId,
    start: Annotated[
        str | None, Query(alias="from", max_length=40, description="A moment, or a day in UTC.")
    ] = None,
    end: Annotated[
        str | None, Query(alias="to", max_length=40, description="A moment, or a day in UTC.")
    ] = None,
    day: Annotated[date | None, Query(description="One day, in UTC.")] = None,
    latest: Annotated[
        int | None, Query(ge=1, le=LATEST_MAX, description="The last few, newest first.")
    ] = None,
) -> Response:
    """Return a ticket's events."""
    store = desk_of(request).store
    limit, cursor = limit_of(request), cursor_of(request)
    has_range = start is not None or end is not None
    if sum((has_range, day is not None, latest is not None)) > 1:
        raise contradictory_parameters(
            "Ask by from and to, by day, or for the latest; not for two of these at once."
        )
    if latest is not None:
        if "limit" in request.query_params or cursor is not None:
            raise contradictory_parameters(
                "`latest` says how many itself, and leads no further. Leave out limit and cursor."
            )
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
    return Paged[EventResponse](
        items=[event_response(event) for event in page.items], next=page.cursor
    ).response(request)


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
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return json_response(note_response(answer.value), 201, headers=headers)


@router.get(
    "/tickets/{ticket_id}/feedback",
    operation_id="list_feedback",
    summary="What was said of a ticket, newest first",
    response_model=Paged[FeedbackResponse],
    responses=problems(404),
    tags=["feedback"],
)
async def list_feedback(
    request: Request, ticket_id: TicketId, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """Return a ticket's feedback."""
    store = desk_of(request).store
    feedback = await service.list_ticket_feedback(store, ticket_id, limit=limit, cursor=cursor or None)
    if not feedback.items:
        await service.get_ticket(store, ticket_id)
    page = Paged[FeedbackResponse](
        items=[feedback_response(each) for each in feedback.items], next=feedback.cursor
    )
    return page.response(request)


@router.post(
    "/tickets/{ticket_id}/feedback",
    operation_id="give_feedback",
    status_code=201,
    summary="Say what a ticket's answer was worth",
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
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    resource = feedback_response(answer.value).model_copy(
        update={"was_helpful": body.was_helpful, "comment": body.comment}
    )
    return json_response(resource, 201, headers=headers)


@router.get(
    "/operators/{operator_id}/feedback",
    operation_id="list_feedback_of_operator",
    summary="What an operator said, newest first",
    response_model=Paged[FeedbackResponse],
    tags=["feedback"],
)
async def list_feedback_of_operator(
    request: Request,
    operator_id: Annotated[str, Path(pattern=IDENTIFIER, max_length=128, description="The operator's id.")],
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the feedback of an operator."""
    feedback = await service.list_operator_feedback(
        desk_of(request).store, operator_id, limit=limit, cursor=cursor or None
    )
    page = Paged[FeedbackResponse](
        items=[feedback_response(each) for each in feedback.items], next=feedback.cursor
    )
    return page.response(request)
