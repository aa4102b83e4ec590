"""The pages: report an issue, find a caller's tickets, read a ticket and add a comment.

A phone number is sent in the body of a form and never in a URL, because URLs end up in browser histories and logs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response

from tavola.apps.service_desk import service
from tavola.apps.service_desk.callers import HASH_PREFIX
from tavola.apps.service_desk.errors import CallerRefused, KeyReused, ServiceDeskError, ServiceTicketMissing
from tavola.apps.service_desk.store import ServiceDeskStore
from tavola.apps.shell import AppSettings, Link, Pages, cursor_of, not_found

TONES = {"open": "warn", "in_progress": "info", "resolved": "good", "closed": "neutral"}  # by stored status


def new_pages(settings: AppSettings) -> Pages:
    """Return the pages of the desk."""
    pages = Pages(
        "Service desk",
        [Link("Report an issue", "/ui/"), Link("Find tickets", "/ui/tickets"), Link("API", "/ui/api")],
        templates=Path(__file__).parent / "templates",
        tagline="tickets by caller",
        clock=settings.clock,
    )
    pages.environment.filters.update(caller=caller_label, status_label=status_label)
    pages.environment.globals["tones"] = TONES
    return pages


def status_label(status: str) -> str:
    """Return a stored status as pages show it: `in_progress` is "In progress"."""
    return status.replace("_", " ").capitalize()


def caller_label(caller_id: str) -> str:
    """Return a caller as pages show it; of a hashed number only the beginning of the hash."""
    if caller_id.startswith(HASH_PREFIX):
        return f"phone {caller_id[len(HASH_PREFIX) :][:8]}…"
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
        typed = await _form_fields(request, "caller", "issue", "key")
        try:
            reported = await service.report_issue(
                desk_of(request), typed["caller"].strip(), typed["issue"], typed["key"] or None
            )
        except KeyReused:  # the form was submitted again with another text
            return report_page(
                request,
                {**typed, "key": ""},
                {"issue": "This form was already submitted with another text. Submit it again."},
                422,
            )
        except ServiceDeskError as error:
            field = "caller" if isinstance(error, CallerRefused) else "issue"
            return report_page(request, typed, {field: str(error)}, 422)
        return pages.redirect(request, f"/ui/tickets/{reported.ticket.ticket_id}", made="1")

    @application.post("/ui/callers", include_in_schema=False)
    async def find(request: Request) -> Response:
        typed = await _form_fields(request, "whose")
        try:
            caller_id = desk_of(request).callers.caller_id(typed["whose"].strip())
        except CallerRefused as error:
            return _tickets_page(request, typed["whose"], None, {"whose": str(error)}, 422)
        return pages.redirect(request, "/ui/tickets", caller=caller_id)

    def _tickets_page(
        request: Request,
        typed: str,
        recent: service.CallerTickets | None,
        errors: dict[str, str],
        status: int = 200,
    ) -> Response:
        paged = "cursor" in request.query_params
        context: dict[str, Any] = {"typed": typed, "recent": recent, "errors": errors, "paged": paged}
        return pages.render(request, "tickets.html", context, status=status)

    @application.get("/ui/tickets", include_in_schema=False)
    async def recent(request: Request) -> Response:
        caller = request.query_params.get("caller", "")
        if not caller:
            return _tickets_page(request, "", None, {})
        try:
            tickets = await service.recent_tickets(desk_of(request), caller, cursor_of(request))
        except CallerRefused as error:
            return _tickets_page(request, "", None, {"whose": str(error)}, 422)
        if tickets.caller_id != caller:  # a phone number in the URL: redirect to its hash
            return pages.redirect(request, "/ui/tickets", caller=tickets.caller_id)
        return _tickets_page(request, caller_label(caller), tickets, {})

    async def ticket_page(
        request: Request, ticket_id: str, typed: str, error: str | None, status: int = 200
    ) -> Response:
        try:
            ticket = await service.ticket_status(desk_of(request), ticket_id)
        except ServiceTicketMissing:
            raise not_found("ticket") from None
        context: dict[str, Any] = {
            "ticket": ticket,
            "typed": typed,
            "errors": {} if error is None else {"comment": error},
            "made": request.query_params.get("made") == "1",
        }
        return pages.render(request, "ticket.html", context, status=status)

    @application.get("/ui/tickets/{ticket_id}", include_in_schema=False)
    async def ticket(request: Request, ticket_id: str) -> Response:
        return await ticket_page(request, ticket_id, "", None)

    @application.post("/ui/tickets/{ticket_id}/comments", include_in_schema=False)
    async def comment(request: Request, ticket_id: str) -> Response:
        typed = await _form_fields(request, "comment", "known")
        known = int(typed["known"]) if typed["known"].isdecimal() and len(typed["known"]) < 9 else 0
        try:
            await service.add_comment_once(desk_of(request), ticket_id, typed["comment"], known)
        except ServiceTicketMissing:
            raise not_found("ticket") from None
        except ServiceDeskError as error:
            return await ticket_page(request, ticket_id, typed["comment"], str(error), 422)
        return pages.redirect(request, f"/ui/tickets/{quote(ticket_id, safe='')}")


async def _form_fields(request: Request, *names: str) -> dict[str, str]:
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
