"""The routes of sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from tavola.apps.shell import ProblemError, json_response, not_found, problems, resource_path
from tavola.apps.support_desk import service
from tavola.apps.support_desk.rest.desk import desk_of
from tavola.apps.support_desk.schemas import SessionResponse, StartSessionRequest

router = APIRouter(tags=["sessions"])

SessionId = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9_\-]{1,128}$", max_length=128, description="The session ID; keep it secret."),
]

_NO_STORE = {"Cache-Control": "no-store"}


@router.post(
    "/sessions",
    operation_id="start_session",
    status_code=201,
    summary="Start a session",
    description="The session ID is the only credential of the session. A session expires a day after its last use.",
    response_model=SessionResponse,
    responses={
        201: {
            "headers": {"Location": {"description": "The URL of the session.", "schema": {"type": "string"}}},
            "links": {
                name: {"operationId": operation, "parameters": {"session_id": "$response.body#/session_id"}}
                for name, operation in (("session", "get_session"), ("end", "end_session"))
            },
        },
        **problems(400),
    },
)
async def start_session(request: Request, body: StartSessionRequest) -> Response:
    """Start a session."""
    if "idempotency-key" in request.headers:
        raise ProblemError(
            400,
            "idempotency-unsupported",
            "Idempotency-Key not supported",
            "Responses to idempotent requests are stored, and session IDs must not be. Send the request without the key; an unused "
            "session expires by itself.",
        )
    login = await service.start_session(desk_of(request).store, body.user_id, body.role)
    headers = {"Location": resource_path(request, "sessions", login.session_id), **_NO_STORE}
    return json_response(SessionResponse.model_validate(login), 201, headers=headers)


@router.get(
    "/sessions/{session_id}",
    operation_id="get_session",
    summary="Get a valid session",
    description="Reading a session counts as use and extends it. An expired session is a 404.",
    response_model=SessionResponse,
    responses=problems(404),
)
async def get_session(request: Request, session_id: SessionId) -> Response:
    """Return a valid session."""
    login = await service.use_session(desk_of(request).store, session_id)
    if login is None:
        raise not_found("session")
    return json_response(SessionResponse.model_validate(login), headers=_NO_STORE)


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
