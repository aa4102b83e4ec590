"""Desk: what the routes have in common: the store at work, the problems of the desk, the shortest way to an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from tavola.apps.shell import Follower, ProblemError, not_found
from tavola.apps.support_desk.errors import (
    AttachmentMissing,
    DeskError,
    EmbeddingRefused,
    NotEscalated,
    SimilarUnavailable,
    TextTooLong,
    TicketBusy,
    TicketChanged,
    TicketMissing,
    TransitionRefused,
)
from tavola.apps.support_desk.resources import IDENTIFIER
from tavola.apps.support_desk.rest.boards import Board
from tavola.apps.support_desk.rest.callers import Callers
from tavola.apps.support_desk.store import SupportDeskStore

JSON = "application/json"
REPLAYED = {
    "Idempotency-Replayed": {
        "description": "`true`: the request was done before, and this is the answer that was given then.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}


@dataclass(frozen=True, slots=True)
class Desk:
    """The desk while it is open."""

    store: SupportDeskStore
    follower: Follower
    board: Board
    callers: Callers


def desk_of(request: Request) -> Desk:
    """Return the desk that a request is for."""
    application: FastAPI = request.scope["app"]
    found: Desk = application.state.desk
    return found


class Direct(APIRoute):
    """A route whose function takes the request itself: FastAPI declares it, and reads nothing of it.

    That is a third of what a request costs that asks for one item. What it reads, it declares with `openapi_extra`.
    """

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]  # FastAPI says Coroutine
        """Return the function as it is."""
        function: Callable[[Request], Awaitable[Response]] = self.endpoint
        return function


def told(
    resource: BaseModel,
    status: int = 200,
    *,
    etag: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a resource as an answer."""
    answer = Response(resource.__pydantic_serializer__.to_json(resource), status, headers, JSON)
    if etag is not None:
        answer.headers["ETag"] = etag
    return answer


def place(request: Request, *parts: str) -> str:
    """Return the address of a resource, for Location."""
    return "/".join([str(request.scope.get("root_path", "")).rstrip("/"), *parts])


def in_path(name: str, told_as: str, pattern: str = IDENTIFIER) -> dict[str, Any]:
    """Return what a `Direct` route declares of a part of its path."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": told_as,
        "schema": {"type": "string", "pattern": pattern, "maxLength": 128},
    }


def invalid(name: str, detail: str, where: str = "query") -> ProblemError:
    """Return the problem of a parameter that cannot be taken."""
    return ProblemError(
        422,
        "invalid",
        "Invalid request",
        f"{name} is not valid. {detail}",
        errors=[{"in": where, "pointer": f"#/{name}", "detail": detail}],
    )


def contradicted(detail: str) -> ProblemError:
    """Return the problem of parameters that are each right and do not go together."""
    return ProblemError(400, "contradiction", "Contradictory question", detail)


def moment_of(name: str, text: str | None, *, end: bool = False) -> datetime | None:
    """Return the moment that a parameter names; of a day its beginning, or its end."""
    if not text:
        return None
    try:
        if len(text) == len("2026-11-18"):
            day = datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day has no zone
            return datetime.combine(day, time.max if end else time.min, UTC)
        moment = datetime.fromisoformat(text.upper())
        if moment.tzinfo is None:
            raise invalid(name, "It has no zone: end it with Z, or give a day such as 2026-11-18.")
        return moment.astimezone(UTC)
    except OverflowError:  # the zone leads out of the calendar
        return datetime.max.replace(tzinfo=UTC) if text[:4] == "9999" else datetime.min.replace(tzinfo=UTC)
    except ValueError:
        raise invalid(
            name, "Give a moment such as 2026-11-18T10:00:00Z, or a day such as 2026-11-18."
        ) from None


def problem_of_desk(error: DeskError) -> ProblemError:
    """Return what an error of the desk is to whoever sent the request."""
    match error:
        case TicketMissing():
            return not_found("ticket")
        case AttachmentMissing():
            return not_found("attachment")
        case NotEscalated():
            return ProblemError(
                409,
                "not-escalated",
                "Not escalated",
                f"The ticket is {error.status}; there is no escalation to end.",
            )
        case TicketBusy():
            return ProblemError(
                409,
                "contended",
                "Changed by others all the time",
                "Others changed the ticket each time that this change was tried, and nothing of it was saved. Send it again.",
                headers={"Retry-After": "1"},
            )
        case TransitionRefused():
            return ProblemError(
                409,
                "transition-refused",
                "Status cannot follow",
                f"The ticket is {error.before} and cannot become {error.after}; it can become {', '.join(error.allowed)}."
                + (" ESCALATED is reached by an escalation alone." if "ESCALATED" in error.allowed else ""),
                present=error.before,
                allowed=list(error.allowed),
            )
        case TicketChanged():
            return ProblemError(
                412,
                "precondition-failed",
                "Changed meanwhile",
                f"The ticket is at version {error.found}, and the change was meant for {error.expected}. Read it again and "
                "repeat the change on what it is now.",
                headers={"ETag": f'"{error.found}"'},
            )
        case TextTooLong():
            return ProblemError(413, "too-large", "Too large", str(error))
        case EmbeddingRefused():
            return ProblemError(
                422,
                "invalid",
                "Invalid request",
                str(error),
                errors=[{"in": "body", "pointer": "#/embedding", "detail": error.problem}],
            )
        case SimilarUnavailable():
            return ProblemError(501, "no-vectors", "No vector search", str(error))
        case _:
            return ProblemError(409, "refused", "Refused", str(error))
