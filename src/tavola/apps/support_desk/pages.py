"""The pages of the support desk: lists, a ticket with its timeline, the queue, escalations, the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from tavola.apps.shell import AppSettings, Link, Pages, ProblemError, charts, cursor_of, not_found
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import (
    FORM_CHARACTERS_MAX,
    STATUS_LABELS,
    Dashboard,
    DayNumbers,
    EventKind,
    Priority,
    TicketStatus,
    TimeRange,
    next_statuses,
)
from tavola.apps.support_desk.errors import SimilarUnavailable
from tavola.apps.support_desk.model import IDENTIFIER_CHARACTERS_MAX, Event, Feedback, FullTicket, Ticket
from tavola.apps.support_desk.rest import DAYS, FILE_BYTES_MAX, desk_of, parse_time
from tavola.apps.support_desk.service import SimilarTicket

router = APIRouter(include_in_schema=False)

ROWS = 25
SIMILAR = 5
DISTANCE_MAX = 0.7  # of tickets shown as similar; 1 has nothing in common
DASHBOARD_DAYS = (7, 30, 90, 365)  # choices on the dashboard
NAVIGATION = (
    Link("Tickets", "/ui/"),
    Link("Queue", "/ui/queue"),
    Link("Escalations", "/ui/escalations"),
    Link("Dashboard", "/ui/dashboard"),
)

_STATUS_TONES = {
    TicketStatus.NEW: "info",
    TicketStatus.PROCESSING: "accent",
    TicketStatus.READY: "good",
    TicketStatus.FAILED: "bad",
    TicketStatus.ESCALATED: "warn",
}
_PRIORITY_TONES = {
    Priority.LOW: "neutral",
    Priority.MEDIUM: "neutral",
    Priority.HIGH: "warn",
    Priority.CRITICAL: "bad",
}
_BUTTON_LABELS = {
    TicketStatus.PROCESSING: "Start work",
    TicketStatus.READY: "Mark as resolved",
    TicketStatus.FAILED: "Mark as unresolved",
}
_QUEUE = (TicketStatus.NEW, TicketStatus.PROCESSING, TicketStatus.FAILED)


def new_pages(settings: AppSettings) -> Pages:
    """Return the pages of the desk, with the values that its templates need."""
    pages = Pages(
        "Support desk",
        NAVIGATION,
        templates=Path(__file__).parent / "templates",
        tagline="tickets, timelines and statistics in one DynamoDB table",
        clock=settings.clock,
    )
    pages.environment.globals.update(
        status_tones=_STATUS_TONES,
        priority_tones=_PRIORITY_TONES,
        status_labels=STATUS_LABELS,
        statuses=[(status.value, STATUS_LABELS[status]) for status in TicketStatus],
        priorities=[(priority.value, priority.value.capitalize()) for priority in Priority],
        file_bytes_max=FILE_BYTES_MAX,
        form_characters_max=FORM_CHARACTERS_MAX,
    )
    return pages


def pages_of(request: Request) -> Pages:
    """Return the pages of the application that a request is for."""
    pages: Pages = request.scope["app"].state.pages
    return pages


# Lists


@router.get("/ui/")
async def tickets_page(request: Request) -> Response:
    """Show tickets by customer, status and date."""
    pages, store, query = pages_of(request), desk_of(request).store, request.query_params
    filters = {name: query.get(name, "").strip() for name in ("customer", "status", "from", "to")}
    problem: str | None = None
    cursor = cursor_of(request)
    page: Any = None
    try:
        status = TicketStatus(filters["status"]) if filters["status"] else None
        during = _opened_during(filters)
        if filters["customer"] and (during.start or during.end):
            problem = "Filter by customer or by date, not both."
        elif during.empty:
            problem = "The end date is before the start date."
        elif filters["customer"]:
            page = await service.list_customer_tickets(
                store, filters["customer"], status=status, limit=ROWS, cursor=cursor
            )
        elif status is not None:
            page = await service.list_tickets_by_status(store, status, during, limit=ROWS, cursor=cursor)
        else:
            page = await service.list_recent_tickets(store, during, limit=ROWS, cursor=cursor)
    except ValueError:
        problem = "Unknown status. Select one of the list."
    except ProblemError as refused:
        problem = refused.detail
    context = {
        "found": page,
        "filters": filters,
        "problem": problem,
        "cursor": cursor,
        "filtered": any(filters.values()),
    }
    return pages.render(request, "tickets.html", context, status=200 if problem is None else 422)


def _opened_during(filters: Mapping[str, str]) -> TimeRange:
    try:
        return TimeRange(parse_time("from", filters["from"]), parse_time("to", filters["to"], end=True))
    except ProblemError:
        detail = "Invalid date. Enter a date such as 2026-11-18."
        raise ProblemError(422, "invalid", "Invalid date", detail) from None


@router.get("/ui/customers/{customer_id}")
async def customer_page(request: Request, customer_id: str) -> Response:
    """Show the tickets of a customer."""
    status = _status_filter(request, TicketStatus, None)
    cursor = cursor_of(request)
    page = await service.list_customer_tickets(
        desk_of(request).store, customer_id, status=status, limit=ROWS, cursor=cursor
    )
    pages, path = pages_of(request), f"/ui/customers/{customer_id}"
    tabs = [
        (STATUS_LABELS[tab_status], pages.url(request, path, status=tab_status.value), tab_status is status)
        for tab_status in TicketStatus
    ]
    context = {"customer_id": customer_id, "status": status, "found": page, "cursor": cursor, "tabs": tabs}
    return pages.render(request, "customer.html", context)


@router.get("/ui/operators/{operator_id}")
async def operator_page(request: Request, operator_id: str) -> Response:
    """Show the feedback of an operator."""
    cursor = cursor_of(request)
    feedback = await service.list_operator_feedback(
        desk_of(request).store, operator_id, limit=ROWS, cursor=cursor
    )
    context = {"operator_id": operator_id, "found": feedback, "cursor": cursor}
    return pages_of(request).render(request, "operator.html", context)


@router.get("/ui/queue")
async def queue_page(request: Request) -> Response:
    """Show the tickets of a status, oldest first by default."""
    status = _status_filter(request, TicketStatus, TicketStatus.NEW)
    assert status is not None
    newest = request.query_params.get("order") == "newest"
    cursor = cursor_of(request)
    desk = desk_of(request)
    page = await service.list_tickets_by_status(
        desk.store, status, limit=ROWS, cursor=cursor, newest_first=newest
    )
    cached = await desk.dashboard.get()
    pages, order = pages_of(request), "newest" if newest else None
    tabs = [
        (
            f"{STATUS_LABELS[tab_status]} · {cached.dashboard.by_status[tab_status]:,}",
            pages.url(request, "/ui/queue", status=tab_status.value, order=order),
            tab_status is status,
        )
        for tab_status in _QUEUE
    ]
    escalated = cached.dashboard.by_status[TicketStatus.ESCALATED]
    tabs.append((f"Escalated · {escalated:,}", pages.url(request, "/ui/escalations"), False))
    context = {
        "status": status,
        "newest": newest,
        "found": page,
        "cursor": cursor,
        "tabs": tabs,
    }
    return pages.render(request, "queue.html", context)


@router.get("/ui/escalations")
async def escalations_page(request: Request) -> Response:
    """Show the escalated tickets: all, or one engineer's."""
    engineer = request.query_params.get("engineer", "").strip()
    cursor = cursor_of(request)
    page = await service.list_escalations(
        desk_of(request).store, engineer=engineer or None, limit=ROWS, cursor=cursor
    )
    context = {"engineer": engineer, "found": page, "cursor": cursor}
    return pages_of(request).render(request, "escalations.html", context)


def _status_filter(
    request: Request, kind: type[TicketStatus], default: TicketStatus | None
) -> TicketStatus | None:
    text = request.query_params.get("status", "")
    return kind(text) if text in kind.__members__ else default


# A ticket


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of a timeline, as the template shows it."""

    at: Any
    title: str
    actor: str | None
    detail: str | None
    tone: str


@router.get("/ui/tickets/{ticket_id}")
async def ticket_page(request: Request, ticket_id: str) -> Response:
    """Show a ticket and everything that belongs to it."""
    return await render_ticket(request, ticket_id)


async def render_ticket(
    request: Request,
    ticket_id: str,
    *,
    status: int = 200,
    form: str = "",
    form_input: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    conflict: str | None = None,
) -> Response:
    """Return the page of a ticket; after a refused form, with its input and the errors."""
    store, pages = desk_of(request).store, pages_of(request)
    if len(ticket_id) > IDENTIFIER_CHARACTERS_MAX:
        raise not_found("ticket")
    full = await service.get_full_ticket(store, ticket_id)
    ticket = full.ticket
    assert ticket is not None
    similar: list[SimilarTicket] = []
    if store.similar.available:
        try:
            similar = await service.find_tickets_like(store, ticket_id, count=SIMILAR)
        except SimilarUnavailable:
            similar = []
    context = {
        "ticket": ticket,
        "entries": timeline_entries(full, lambda name: pages.url(request, f"/ui/operators/{name}")),
        "attachments": full.attachments,
        "feedback": full.feedback,
        "older": store.retention.audit is None and ticket.version > len(full.events),
        "similar": [neighbour for neighbour in similar if neighbour.distance <= DISTANCE_MAX],
        "similar_available": store.similar.available,
        "steps": status_buttons(ticket),
        "escalable": ticket.status is TicketStatus.ESCALATED
        or TicketStatus.ESCALATED in next_statuses(ticket.status),
        "form": form,
        "errors": errors or {},
        "kept": lambda name, field, present="": (
            (form_input or {}).get(field, "") if form == name else present
        ),
        "wrong": lambda name, field: (errors or {}).get(field) if form == name else None,
        "conflict": conflict,
        "request_key": store.db.context.entropy.uuid(),
        "done": _DONE.get(request.query_params.get("done", "")),
    }
    return pages.render(request, "ticket.html", context, status=status)


_DONE = {
    "opened": "Ticket opened.",
    "status": "Status changed.",
    "escalated": "Ticket assigned to the engineer.",
    "note": "Note added.",
    "feedback": "Thank you for your feedback.",
    "attached": "File attached.",
    "detached": "File removed.",
    "amended": "Changes saved.",
    "same": "No changes to save.",
}


def status_buttons(ticket: Ticket) -> list[tuple[str, str]]:
    """Return the buttons that change a ticket's status: the new status and the label."""
    labels = dict(_BUTTON_LABELS)
    if ticket.status is TicketStatus.ESCALATED:
        labels[TicketStatus.PROCESSING] = "Return to support"
    elif ticket.status in (TicketStatus.READY, TicketStatus.FAILED):
        labels[TicketStatus.PROCESSING] = "Reopen"
    return [(status.value, labels[status]) for status in next_statuses(ticket.status) if status in labels]


def timeline_entries(full: FullTicket, operator_url: Callable[[str], str]) -> list[TimelineEntry]:
    """Return events and feedback in the order of their times; `operator_url` returns the page of an operator."""
    assert full.ticket is not None
    # Entries written with a slow clock are not sorted before the ticket was opened
    opened_at = full.ticket.created_at
    entries = [
        *map(_event_entry, full.events),
        *(_feedback_entry(feedback, operator_url) for feedback in full.feedback),
    ]
    return sorted(entries, key=lambda entry: max(entry.at, opened_at))


def _event_entry(event: Event) -> TimelineEntry:
    title, tone, detail = "Note", "neutral", event.note
    new = event.new_status
    if event.kind is EventKind.CREATED:
        title, tone = "Opened", "info"
    elif event.kind is EventKind.ESCALATED:
        title, tone = f"Escalated to {event.details.get('assigned_to', 'an engineer')}", "warn"
    elif event.kind is EventKind.STATUS_CHANGED and new is not None:
        before = "" if event.old_status is None else f"{STATUS_LABELS[event.old_status]} → "
        title, tone = f"{before}{STATUS_LABELS[new]}", _STATUS_TONES[new]
        if event.details:
            title += f"; {_describe_changes(event)}"
    elif event.kind is EventKind.AMENDED:
        changes = _describe_changes(event)
        title = changes[:1].upper() + changes[1:]
    elif event.kind is EventKind.FILE_ATTACHED:
        verb = "replaced" if "replaced" in event.details else "attached"
        title = f"File {verb}: {event.details.get('name', 'unknown name')}"
    elif event.kind is EventKind.FILE_REMOVED:
        title = f"File removed: {event.details.get('name', 'unknown name')}"
    return TimelineEntry(event.at, title, event.actor, detail, tone)


def _describe_changes(event: Event) -> str:
    """Return the changed fields of an event: priority changed to High, product removed."""
    return ", ".join(
        f"{name} changed to {value.capitalize() if name == 'priority' else value}"
        if value
        else f"{name} removed"
        for name, value in sorted(event.details.items())
    )


def _feedback_entry(feedback: Feedback, operator_url: Callable[[str], str]) -> TimelineEntry:
    helped = {True: ", helpful", False: ", not helpful", None: ""}[feedback.was_helpful]
    tone = "good" if feedback.rating >= 4 else "warn" if feedback.rating == 3 else "bad"
    title = f"Feedback: {feedback.rating} of 5{helped}"
    name = feedback.operator_id
    actor = Markup('<a href="{}">{}</a>').format(operator_url(name), name)
    return TimelineEntry(feedback.submitted_at, title, actor, feedback.comment, tone)


# Numbers


@router.get("/ui/dashboard")
async def dashboard_page(request: Request) -> Response:
    """Show the numbers, with charts."""
    text = request.query_params.get("days", "")
    days = int(text) if text in {str(span) for span in DASHBOARD_DAYS} else DAYS
    desk, pages = desk_of(request), pages_of(request)
    cached = await desk.dashboard.get(days)
    tabs = [
        (f"{span} days", pages.url(request, "/ui/dashboard", days=span), span == days)
        for span in DASHBOARD_DAYS
    ]
    context = {
        "numbers": cached.dashboard,
        "days": days,
        "span_tabs": tabs,
        "follower": desk.follower,
        **dashboard_charts(cached.dashboard),
    }
    return pages.render(request, "dashboard.html", context)


def dashboard_charts(dashboard: Dashboard) -> dict[str, Any]:
    """Return the dashboard's charts."""

    labels = [_label(day, len(dashboard.days)) for day in dashboard.days]
    hours = [
        None if (mean := day.resolution_s.mean) is None else float(mean) / 3_600 for day in dashboard.days
    ]
    ratings = [None if (mean := day.satisfaction.mean) is None else float(mean) for day in dashboard.days]
    opened: list[float | None] = [day.opened for day in dashboard.days]
    resolved: list[float | None] = [day.resolved for day in dashboard.days]
    return {
        "status_chart": charts.bars(
            "Tickets by status",
            [(STATUS_LABELS[status], count) for status, count in dashboard.by_status.items()],
            tones={STATUS_LABELS[status]: tone for status, tone in _STATUS_TONES.items()},
        ),
        "priority_chart": charts.bars(
            "Tickets by priority",
            [(priority.value.capitalize(), count) for priority, count in dashboard.by_priority.items()],
            tones={priority.value.capitalize(): tone for priority, tone in _PRIORITY_TONES.items()},
        ),
        "flow_chart": charts.lines(
            "Opened and resolved by day",
            labels,
            [("Opened", opened), ("Resolved", resolved)],
            tones={"Opened": "info", "Resolved": "good"},
        ),
        "resolution_chart": charts.lines(
            "Average resolution time by day",
            labels,
            [("Hours", hours)],
            unit="h",
            tones={"Hours": "accent"},
        ),
        "satisfaction_chart": charts.lines(
            "Average rating by day",
            labels,
            [("Rating", ratings)],
            tones={"Rating": "good"},
            minimum=1,
            maximum=5,
        ),
        "ratings_chart": charts.bars(
            "Feedback by rating",
            [(f"{rating} of 5", count) for rating, count in sorted(dashboard.ratings.items())],
            tones={"1 of 5": "bad", "2 of 5": "bad", "3 of 5": "warn", "4 of 5": "good", "5 of 5": "good"},
        ),
    }


def _label(day: DayNumbers, days: int) -> str:
    return f"{day.day.day} {day.day:%b}" if days <= 90 else f"{day.day.day} {day.day:%b %y}"
