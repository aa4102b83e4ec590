"""The pages: report an issue, find one's tickets, read one and comment on it.

A telephone number is sent in a form's body and never in an address: what stands in an address ends in histories and logs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response

from tavola.apps.service_desk import service
from tavola.apps.service_desk.callers import HASHED
from tavola.apps.service_desk.errors import CallerRefused, DeskError, KeyReused, TicketMissing
from tavola.apps.service_desk.store import ServiceDeskStore
from tavola.apps.shell import Link, Pages, Settings, cursor_of, not_found

TONES = {"open": "warn", "in_progress": "info", "resolved": "good", "closed": "neutral"}


def new_pages(settings: Settings) -> Pages:
    """Return what renders the pages of the desk."""
    pages = Pages(
        "Service desk",
        [Link("Report an issue", "/ui/"), Link("Find tickets", "/ui/tickets"), Link("API", "/ui/api")],
        templates=Path(__file__).parent / "templates",
        tagline="Tickets by caller",
        clock=settings.clock,
    )
    pages.environment.filters["caller"] = shown
    pages.environment.globals["tones"] = TONES
    return pages


def shown(caller_id: str) -> str:
    """Return a caller as people read it: the hash of a number says only that it is one, and enough to tell two apart."""
    if caller_id.startswith(HASHED):
        return f"telephone {caller_id[len(HASHED) :][:8]}…"
    return caller_id


def add_pages(application: FastAPI, pages: Pages) -> None:
    """Add the pages to the application."""

    def report_page(
        request: Request, typed: dict[str, str], errors: dict[str, str], status: int = 200
    ) -> Response:
        key = typed.get("key") or desk_of(request).new_id()
        return pages.render(
            request, "report.html", {"typed": {**typed, "key": key}, "errors": errors}, status=status
        )

    @application.get("/ui/", include_in_schema=False)
    async def front(request: Request) -> Response:
        return report_page(request, {"caller": "", "issue": ""}, {})

    @application.post("/ui/", include_in_schema=False)
    async def report(request: Request) -> Response:
        typed = await _typed(request, "caller", "issue", "key")
        try:
            reported = await service.report_issue(
                desk_of(request), typed["caller"].strip(), typed["issue"], typed["key"] or None
            )
        except KeyReused:  # the form was sent, changed and sent again: another issue
            return report_page(
                request, {**typed, "key": ""}, {"issue": "Sent before with another text. Send it again."}, 422
            )
        except DeskError as error:
            field = "caller" if isinstance(error, CallerRefused) else "issue"
            return report_page(request, typed, {field: str(error)}, 422)
        return pages.redirect(request, f"/ui/tickets/{reported.ticket.ticket_id}", made="1")

    @application.post("/ui/callers", include_in_schema=False)
    async def find(request: Request) -> Response:
        typed = await _typed(request, "whose")
        try:
            caller_id = desk_of(request).callers.caller_id(typed["whose"].strip())
        except CallerRefused as error:
            return _found_page(request, typed["whose"], None, {"whose": str(error)}, 422)
        return pages.redirect(request, "/ui/tickets", caller=caller_id)

    def _found_page(
        request: Request, typed: str, recent: service.Recent | None, errors: dict[str, str], status: int = 200
    ) -> Response:
        paged = "cursor" in request.query_params
        told: dict[str, Any] = {"typed": typed, "recent": recent, "errors": errors, "paged": paged}
        return pages.render(request, "tickets.html", told, status=status)

    @application.get("/ui/tickets", include_in_schema=False)
    async def recent(request: Request) -> Response:
        caller = request.query_params.get("caller", "")
        if not caller:
            return _found_page(request, "", None, {})
        try:
            found = await service.recent_tickets(desk_of(request), caller, cursor_of(request))
        except CallerRefused as error:
            return _found_page(request, "", None, {"whose": str(error)}, 422)
        if found.caller_id != caller:  # a number in the address: away with it
            return pages.redirect(request, "/ui/tickets", caller=found.caller_id)
        return _found_page(request, shown(caller), found, {})

    async def ticket_page(
        request: Request, ticket_id: str, typed: str, error: str | None, status: int = 200
    ) -> Response:
        try:
            ticket = await service.ticket_status(desk_of(request), ticket_id)
        except TicketMissing:
            raise not_found("ticket") from None
        told: dict[str, Any] = {
            "ticket": ticket,
            "typed": typed,
            "errors": {} if error is None else {"comment": error},
            "made": request.query_params.get("made") == "1",
        }
        return pages.render(request, "ticket.html", told, status=status)

    @application.get("/ui/tickets/{ticket_id}", include_in_schema=False)
    async def ticket(request: Request, ticket_id: str) -> Response:
        return await ticket_page(request, ticket_id, "", None)

    @application.post("/ui/tickets/{ticket_id}/comments", include_in_schema=False)
    async def comment(request: Request, ticket_id: str) -> Response:
        typed = await _typed(request, "comment", "known")
        known = int(typed["known"]) if typed["known"].isdecimal() and len(typed["known"]) < 9 else 0
        try:
            await service.add_comment_once(desk_of(request), ticket_id, typed["comment"], known)
        except TicketMissing:
            raise not_found("ticket") from None
        except DeskError as error:
            return await ticket_page(request, ticket_id, typed["comment"], str(error), 422)
        return pages.redirect(request, f"/ui/tickets/{quote(ticket_id, safe='')}")


async def _typed(request: Request, *names: str) -> dict[str, str]:
    form = await request.form()
    typed = {}
    for name in names:
        value = form.get(name, "")
        typed[name] = value.replace("\r\n", "\n") if isinstance(value, str) else ""
    return typed


def desk_of(request: Request) -> ServiceDeskStore:
    """Return the desk that a request is for."""
    desk: ServiceDeskStore = request.app.state.desk
    return desk
