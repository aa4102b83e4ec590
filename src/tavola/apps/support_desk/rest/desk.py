"""The open desk that all routes use, its cached dashboard, and helpers for parameters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time
from hashlib import blake2b
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from tavola.apps.shell import Follower, ProblemError, invalid_parameter
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import Dashboard
from tavola.apps.support_desk.rest.callers import CallerConnections
from tavola.apps.support_desk.schemas import IDENTIFIER, DashboardResponse
from tavola.apps.support_desk.store import SupportDeskStore

DAYS = 30
DAYS_MAX = 366
CACHE_S = 1.0
CACHE_ENTRIES_MAX = 8  # dashboards for different numbers of days
REPLAYED = {
    "Idempotency-Replayed": {
        "description": "`true` for a repeated request; the response is that of the first one.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}


@dataclass(frozen=True, slots=True)
class CachedDashboard:
    """A dashboard with its JSON."""

    dashboard: Dashboard
    content: bytes
    etag: str
    generation: int
    computed_at_s: float


class DashboardCache:
    """The desk's dashboard, computed once for all requests until it changes.

    It changes when the follower has counted something. Another process may count too, so nothing is cached longer than a second.
    """

    def __init__(self, store: SupportDeskStore, follower: Follower) -> None:
        self._store = store
        self._follower = follower
        self._clock = store.db.context.clock
        self._entries: dict[int, CachedDashboard] = {}
        self._lock = asyncio.Lock()

    async def get(self, days: int = DAYS) -> CachedDashboard:
        """Return the dashboard of the last days; concurrent requests wait for the same computation."""
        cached = self._fresh(days)
        if cached is None:
            async with self._lock:
                cached = self._fresh(days) or await self._compute(days)
        return cached

    def _fresh(self, days: int) -> CachedDashboard | None:
        cached = self._entries.get(days)
        if cached is None or cached.generation != self._follower.generation:
            return None
        return cached if 0 <= self._clock.now() - cached.computed_at_s < CACHE_S else None

    async def _compute(self, days: int) -> CachedDashboard:
        generation, computed_at_s = self._follower.generation, self._clock.now()  # as of before the read
        dashboard = await service.read_dashboard(self._store, days=days)
        content = DashboardResponse.model_validate(dashboard).model_dump_json().encode()
        etag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
        self._entries.pop(days, None)
        while len(self._entries) >= CACHE_ENTRIES_MAX:
            del self._entries[next(iter(self._entries))]
        cached = self._entries[days] = CachedDashboard(dashboard, content, etag, generation, computed_at_s)
        return cached


@dataclass(frozen=True, slots=True)
class Desk:
    """The desk while it is open."""

    store: SupportDeskStore
    follower: Follower
    dashboard: DashboardCache
    callers: CallerConnections


def desk_of(request: Request) -> Desk:
    """Return the desk that a request is for."""
    application: FastAPI = request.scope["app"]
    desk: Desk = application.state.desk
    return desk


class DirectRoute(APIRoute):
    """A route whose function takes the request itself: FastAPI documents it, but parses nothing.

    Parsing is a third of the cost of a request for one item. The route declares the parameters that it reads with `openapi_extra`.
    """

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]  # FastAPI says Coroutine
        """Return the route's function unchanged."""
        function: Callable[[Request], Awaitable[Response]] = self.endpoint
        return function


def path_parameter(name: str, description: str, pattern: str = IDENTIFIER) -> dict[str, Any]:
    """Return the OpenAPI declaration of a path parameter, for a `DirectRoute`."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", "pattern": pattern, "maxLength": 128},
    }


def contradictory_parameters(detail: str) -> ProblemError:
    """Return a 400 for parameters that are valid but exclude each other."""
    return ProblemError(400, "contradiction", "Contradictory parameters", detail)


def parse_time(name: str, text: str | None, *, end: bool = False) -> datetime | None:
    """Return the time that a parameter means; for a day its start, or its end."""
    if not text:
        return None
    try:
        if len(text) == len("2026-11-18"):
            day = datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day has no zone
            return datetime.combine(day, time.max if end else time.min, UTC)
        parsed = datetime.fromisoformat(text.upper())
        if parsed.tzinfo is None:
            raise invalid_parameter(
                name, "The time has no time zone. Append Z, or use a date such as 2026-11-18."
            )
        return parsed.astimezone(UTC)
    except OverflowError:  # its UTC time is out of range
        return datetime.max.replace(tzinfo=UTC) if text[:4] == "9999" else datetime.min.replace(tzinfo=UTC)
    except ValueError:
        raise invalid_parameter(
            name, "Use a time such as 2026-11-18T10:00:00Z, or a date such as 2026-11-18."
        ) from None
