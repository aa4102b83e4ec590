"""A page with every macro of the shell, for tests that inspect and measure it; it is not part of the product."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from pydantic import BaseModel

from tavola import ManualClock, TavolaError
from tavola.apps.shell import (
    AppSettings,
    Link,
    Pages,
    etag_of,
    new_application,
    not_found,
    not_modified,
    opened_store,
    parameters,
    problems,
    require_match,
    shell_of,
)

NOW = datetime(2026, 11, 3, 14, 5, tzinfo=UTC)


class Note(BaseModel):
    """The body of the sample routes."""

    text: str


def sample(settings: AppSettings | None = None) -> FastAPI:
    """Return an application with the page of parts and a few routes."""
    clock = ManualClock(NOW.timestamp())
    settings = settings or AppSettings(clock=clock)
    links = [Link("Parts", "/ui/"), Link("Tickets", "/ui/tickets"), Link("Dashboard", "/ui/dashboard")]
    pages = Pages(
        "Sample desk",
        links,
        templates=Path(__file__).parent / "templates",
        tagline="every part on one page",
        clock=clock,
    )

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        async with opened_store(settings) as store:
            shell_of(application).watch(store)
            yield

    application = new_application(
        settings,
        title="Sample desk",
        description="Every part of the shell.",
        pages=pages,
        lifespan=lifespan,
        tags=[("notes", "Notes that are kept nowhere.")],
        body_bytes_max=10_000,
    )

    @application.get("/ui/", include_in_schema=False)
    async def parts(request: Request) -> Response:
        days = [f"{day} Oct" for day in range(1, 32)]
        opened = [40 + (day * 37) % 23 + day for day in range(31)]
        closed: list[float | None] = [30 + (day * 29) % 31 + day for day in range(31)]
        closed[11:15] = [None] * 4
        return pages.render(
            request,
            "parts.html",
            {
                "days": days,
                "opened": opened,
                "closed": closed,
                "now": NOW,
                "earlier": [NOW - timedelta(hours=hours) for hours in (1, 5, 26, 200)],
            },
        )

    @application.get("/ui/missing", include_in_schema=False)
    async def missing() -> Response:
        raise not_found("ticket")

    @application.get("/ui/broken", include_in_schema=False)
    async def broken() -> Response:
        raise TavolaError("a value that was sent")

    @application.get(
        "/notes/{note_id}",
        tags=["notes"],
        summary="One note",
        response_model=Note,
        responses=problems(404),
        openapi_extra=parameters("if-none-match"),
    )
    async def note(request: Request, note_id: str) -> Response:
        if note_id == "broken":
            raise ZeroDivisionError("a value that was sent")
        if not note_id.isdigit():
            raise not_found("note")
        etag = etag_of(int(note_id))
        fresh = not_modified(request, etag)
        return fresh or Response(b'{"text":"x"}', media_type="application/json", headers={"ETag": etag})

    @application.post("/notes", tags=["notes"], summary="Keep a note", status_code=201, response_model=Note)
    async def keep(note: Note) -> Note:
        return note

    @application.patch(
        "/notes/{note_id}",
        tags=["notes"],
        summary="Change a note",
        response_model=Note,
        responses=problems(404, 412, 428),
        openapi_extra=parameters("if-match"),
    )
    async def change(request: Request, note_id: int, note: Note) -> Note:
        require_match(request, etag_of(note_id))
        return note

    return application
