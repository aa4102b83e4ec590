"""Timelines: what happened to a ticket, and what was said of it."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from tavola.apps.shell import Cursor, IdempotencyKey, Limit, Paged, cursor_of, limit_of, parameters, problems
from tavola.apps.support_desk import service
from tavola.apps.support_desk.resources import (
    IDENTIFIER,
    EventTold,
    FeedbackAsked,
    FeedbackTold,
    NoteAsked,
    event_of,
    feedback_of,
    note_of,
)
from tavola.apps.support_desk.rest.desk import REPLAYED, contradicted, desk_of, place, told
from tavola.apps.support_desk.rest.tickets import TicketId, stretch_of
from tavola.patterns import Slice

router = APIRouter()

LATEST_MAX = 100

_LOCATION = {"Location": {"description": "The list it is in.", "schema": {"type": "string"}}}


@router.get(
    "/tickets/{ticket_id}/events",
    operation_id="list_events",
    summary="What happened to a ticket, in order",
    description="All of it, a stretch of time (`from`, `to`), one `day` in UTC, or the `latest` few, newest first.",
    response_model=Paged[EventTold],
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
    dated = start is not None or end is not None
    if sum((dated, day is not None, latest is not None)) > 1:
        raise contradicted("Ask by from and to, by day, or for the latest; not for two of these at once.")
    if latest is not None:
        if "limit" in request.query_params or cursor is not None:
            raise contradicted(
                "`latest` says how many itself, and leads no further. Leave out limit and cursor."
            )
        found = Slice(tuple(await service.latest_events(store, ticket_id, latest)), None)
    elif day is not None:
        found = await service.events_of_day(store, ticket_id, day, limit=limit, cursor=cursor)
    else:
        during = stretch_of(start, end)
        if during is None:
            found = Slice((), None)
        else:
            found = await service.timeline(store, ticket_id, during, limit=limit, cursor=cursor)
    if not found.items:
        await service.ticket(store, ticket_id)  # a ticket without events of that time, or none at all
    return Paged[EventTold](items=[event_of(event) for event in found.items], next=found.cursor).response(
        request
    )


@router.post(
    "/tickets/{ticket_id}/events",
    operation_id="add_note",
    status_code=201,
    summary="Add a note to a ticket's timeline",
    response_model=EventTold,
    responses={201: {"headers": {**_LOCATION, **REPLAYED}}, **problems(404, 409)},
    tags=["timeline"],
)
async def add_note(
    request: Request, ticket_id: TicketId, asked: NoteAsked, key: IdempotencyKey = None
) -> Response:
    """Add a note; idempotent under a key."""
    store = desk_of(request).store
    answer = await service.add_note(store, ticket_id, asked.note, actor=asked.actor, request=key)
    headers = {"Location": place(request, "tickets", ticket_id, "events")}
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return told(note_of(answer.value), 201, headers=headers)


@router.get(
    "/tickets/{ticket_id}/feedback",
    operation_id="list_feedback",
    summary="What was said of a ticket, newest first",
    response_model=Paged[FeedbackTold],
    responses=problems(404),
    tags=["feedback"],
)
async def list_feedback(
    request: Request, ticket_id: TicketId, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """Return a ticket's feedback."""
    store = desk_of(request).store
    found = await service.feedback_of_ticket(store, ticket_id, limit=limit, cursor=cursor or None)
    if not found.items:
        await service.ticket(store, ticket_id)
    page = Paged[FeedbackTold](items=[feedback_of(each) for each in found.items], next=found.cursor)
    return page.response(request)


@router.post(
    "/tickets/{ticket_id}/feedback",
    operation_id="give_feedback",
    status_code=201,
    summary="Say what a ticket's answer was worth",
    response_model=FeedbackTold,
    responses={201: {"headers": {**_LOCATION, **REPLAYED}}, **problems(404, 409)},
    tags=["feedback"],
)
async def give_feedback(
    request: Request, ticket_id: TicketId, asked: FeedbackAsked, key: IdempotencyKey = None
) -> Response:
    """Give feedback; idempotent under a key."""
    answer = await service.give_feedback(desk_of(request).store, ticket_id, asked.new(), request=key)
    headers = {"Location": place(request, "tickets", ticket_id, "feedback")}
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    resource = feedback_of(answer.value).model_copy(
        update={"was_helpful": asked.was_helpful, "comment": asked.comment}
    )
    return told(resource, 201, headers=headers)


@router.get(
    "/operators/{operator_id}/feedback",
    operation_id="list_feedback_of_operator",
    summary="What an operator said, newest first",
    response_model=Paged[FeedbackTold],
    tags=["feedback"],
)
async def list_feedback_of_operator(
    request: Request,
    operator_id: Annotated[str, Path(pattern=IDENTIFIER, max_length=128, description="The operator's id.")],
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """Return the feedback of an operator; of one who gave none, none."""
    found = await service.feedback_by_operator(
        desk_of(request).store, operator_id, limit=limit, cursor=cursor or None
    )
    page = Paged[FeedbackTold](items=[feedback_of(each) for each in found.items], next=found.cursor)
    return page.response(request)
