"""Sessions: who is at the desk, for how long."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from tavola.apps.shell import ProblemError, not_found, problems
from tavola.apps.support_desk import service
from tavola.apps.support_desk.resources import SessionAsked, SessionTold, session_of
from tavola.apps.support_desk.rest.desk import desk_of, place, told

router = APIRouter(tags=["sessions"])

SessionId = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9_\-]{1,128}$", max_length=128, description="The session's id: keep it secret."),
]

_NOT_KEPT = {"Cache-Control": "no-store"}


@router.post(
    "/sessions",
    operation_id="start_session",
    status_code=201,
    summary="Begin a session",
    description="Whoever has its id has the session. It ends a day after it was used last.",
    response_model=SessionTold,
    responses={
        201: {
            "headers": {"Location": {"description": "Where it is.", "schema": {"type": "string"}}},
            "links": {
                name: {"operationId": operation, "parameters": {"session_id": "$response.body#/session_id"}}
                for name, operation in (("session", "get_session"), ("end", "end_session"))
            },
        },
        **problems(400),
    },
)
async def start_session(request: Request, asked: SessionAsked) -> Response:
    """Begin a session."""
    if "idempotency-key" in request.headers:
        raise ProblemError(
            400,
            "idempotency-unsupported",
            "Idempotency-Key not taken",
            "The answer to a key is kept, and the id of a session is kept nowhere but in the session. Send it without; what is "
            "begun twice ends by itself.",
        )
    login = await service.start_session(desk_of(request).store, asked.user_id, asked.role)
    headers = {"Location": place(request, "sessions", login.session_id), **_NOT_KEPT}
    return told(session_of(login), 201, headers=headers)


@router.get(
    "/sessions/{session_id}",
    operation_id="get_session",
    summary="A session that is valid",
    description="It is used by this, and so lasts. One that is over is a 404, whether it was deleted yet or not.",
    response_model=SessionTold,
    responses=problems(404),
)
async def get_session(request: Request, session_id: SessionId) -> Response:
    """Return a session that is valid."""
    login = await service.session(desk_of(request).store, session_id)
    if login is None:
        raise not_found("session")
    return told(session_of(login), headers=_NOT_KEPT)


@router.delete(
    "/sessions/{session_id}",
    operation_id="end_session",
    status_code=204,
    summary="End a session",
    response_class=Response,
    responses=problems(404),
)
async def end_session(request: Request, session_id: SessionId) -> Response:
    """End a session now."""
    if not await service.end_session(desk_of(request).store, session_id):
        raise not_found("session")
    return Response(status_code=204)
