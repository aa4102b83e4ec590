"""Pages: the support desk for people: lists, a ticket with its timeline, the queue, escalations, numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from tavola.apps.shell import Link, Pages, ProblemError, Settings, charts, cursor_of, not_found
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import FORM_CHARACTERS_MAX, Day, EventKind, Priority, Status, Stretch
from tavola.apps.support_desk.errors import SimilarUnavailable
from tavola.apps.support_desk.model import IDENTIFIER_CHARACTERS_MAX, Event, Feedback, Ticket, TicketFile
from tavola.apps.support_desk.resources import next_statuses
from tavola.apps.support_desk.rest import DAYS, FILE_BYTES_MAX, Shown, desk_of, moment_of
from tavola.apps.support_desk.service import Similar

router = APIRouter(include_in_schema=False)

ROWS = 25
SIMILAR = 5
DISTANCE_MAX = 0.7  # of what is called similar; 1 is nothing in common
SPANS = (7, 30, 90, 365)  # days that the dashboard offers
NAVIGATION = (
    Link("Tickets", "/ui/"),
    Link("Queue", "/ui/queue"),
    Link("Escalations", "/ui/escalations"),
    Link("Dashboard", "/ui/dashboard"),
)

_TONES = {
    Status.NEW: "info",
    Status.PROCESSING: "accent",
    Status.READY: "good",
    Status.FAILED: "bad",
    Status.ESCALATED: "warn",
}
_WEIGHTS = {
    Priority.LOW: "neutral",
    Priority.MEDIUM: "neutral",
    Priority.HIGH: "warn",
    Priority.CRITICAL: "bad",
}
_WORDS = {
    Status.NEW: "New",
    Status.PROCESSING: "Processing",
    Status.READY: "Ready",
    Status.FAILED: "Failed",
    Status.ESCALATED: "Escalated",
}
_STEPS = {Status.PROCESSING: "Start work", Status.READY: "Mark as ready", Status.FAILED: "Mark as failed"}
_QUEUE = (Status.NEW, Status.PROCESSING, Status.FAILED)


def new_pages(settings: Settings) -> Pages:
    """Return the pages of the desk, with what its templates need."""
    pages = Pages(
        "Support desk",
        NAVIGATION,
        templates=Path(__file__).parent / "templates",
        tagline="tickets, timelines and numbers in one table",
        clock=settings.clock,
    )
    pages.environment.globals.update(
        status_tones=_TONES,
        priority_tones=_WEIGHTS,
        status_words=_WORDS,
        statuses=[(status.value, _WORDS[status]) for status in Status],
        priorities=[(priority.value, priority.value.capitalize()) for priority in Priority],
        file_bytes_max=FILE_BYTES_MAX,
        form_characters_max=FORM_CHARACTERS_MAX,
    )
    return pages


def pages_of(request: Request) -> Pages:
    """Return the pages of the application that a request is for."""
    found: Pages = request.scope["app"].state.pages
    return found


# Lists


@router.get("/ui/")
async def tickets_page(request: Request) -> Response:
    """Show tickets by customer, status and date."""
    pages, store, asked = pages_of(request), desk_of(request).store, request.query_params
    wanted = {name: asked.get(name, "").strip() for name in ("customer", "status", "from", "to")}
    problem: str | None = None
    cursor = cursor_of(request)
    found: Any = None
    try:
        status = Status(wanted["status"]) if wanted["status"] else None
        during = Stretch(moment_of("from", wanted["from"]), moment_of("to", wanted["to"], end=True))
        if wanted["customer"] and (during.start or during.end):
            problem = "A customer's tickets are not asked by date: leave out the dates, or the customer."
        elif wanted["customer"]:
            found = await service.customer_tickets(
                store, wanted["customer"], status=status, limit=ROWS, cursor=cursor
            )
        elif status is not None:
            found = await service.tickets_by_status(store, status, during, limit=ROWS, cursor=cursor)
        else:
            found = await service.recent_tickets(store, during, limit=ROWS, cursor=cursor)
    except ValueError:
        problem = "There is no such status."
    except ProblemError as refused:
        problem = refused.detail
    context = {
        "found": found,
        "wanted": wanted,
        "problem": problem,
        "cursor": cursor,
        "filtered": any(wanted.values()),
    }
    return pages.render(request, "tickets.html", context, status=200 if problem is None else 422)


@router.get("/ui/customers/{customer_id}")
async def customer_page(request: Request, customer_id: str) -> Response:
    """Show what one customer asked for."""
    status = _chosen(request, Status, None)
    cursor = cursor_of(request)
    found = await service.customer_tickets(
        desk_of(request).store, customer_id, status=status, limit=ROWS, cursor=cursor
    )
    pages, path = pages_of(request), f"/ui/customers/{customer_id}"
    tabs = [(_WORDS[each], pages.url(request, path, status=each.value), each is status) for each in Status]
    context = {"customer_id": customer_id, "status": status, "found": found, "cursor": cursor, "tabs": tabs}
    return pages.render(request, "customer.html", context)


@router.get("/ui/operators/{operator_id}")
async def operator_page(request: Request, operator_id: str) -> Response:
    """Show what one operator said."""
    cursor = cursor_of(request)
    found = await service.feedback_by_operator(desk_of(request).store, operator_id, limit=ROWS, cursor=cursor)
    context = {"operator_id": operator_id, "found": found, "cursor": cursor}
    return pages_of(request).render(request, "operator.html", context)


@router.get("/ui/queue")
async def queue_page(request: Request) -> Response:
    """Show who waits, longest first unless told."""
    status = _chosen(request, Status, Status.NEW)
    assert status is not None
    newest = request.query_params.get("order") == "newest"
    cursor = cursor_of(request)
    desk = desk_of(request)
    found = await service.tickets_by_status(
        desk.store, status, limit=ROWS, cursor=cursor, newest_first=newest
    )
    shown = await desk.board.show()
    pages, order = pages_of(request), "newest" if newest else None
    tabs = [
        (
            f"{_WORDS[each]} · {shown.numbers.by_status[each]:,}",
            pages.url(request, "/ui/queue", status=each.value, order=order),
            each is status,
        )
        for each in _QUEUE
    ]
    escalated = shown.numbers.by_status[Status.ESCALATED]
    tabs.append((f"Escalated · {escalated:,}", pages.url(request, "/ui/escalations"), False))
    context = {
        "status": status,
        "newest": newest,
        "found": found,
        "cursor": cursor,
        "tabs": tabs,
        "now_s": desk.store.now().timestamp(),
    }
    return pages.render(request, "queue.html", context)


@router.get("/ui/escalations")
async def escalations_page(request: Request) -> Response:
    """Show what engineers have in hand: all of it, or one's."""
    engineer = request.query_params.get("engineer", "").strip()
    cursor = cursor_of(request)
    found = await service.escalations(
        desk_of(request).store, engineer=engineer or None, limit=ROWS, cursor=cursor
    )
    context = {"engineer": engineer, "found": found, "cursor": cursor}
    return pages_of(request).render(request, "escalations.html", context)


def _chosen(request: Request, kind: type[Status], default: Status | None) -> Status | None:
    told = request.query_params.get("status", "")
    return kind(told) if told in kind.__members__ else default


# A ticket


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a timeline, as the template shows it."""

    at: Any
    title: str
    actor: str | None
    detail: str | None
    tone: str


@router.get("/ui/tickets/{ticket_id}")
async def ticket_page(request: Request, ticket_id: str) -> Response:
    """Show a ticket and all that hangs on it."""
    return await shown_ticket(request, ticket_id)


async def shown_ticket(
    request: Request,
    ticket_id: str,
    *,
    status: int = 200,
    form: str = "",
    typed: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    conflict: str | None = None,
) -> Response:
    """Return the page of a ticket as it is now; after a form that was refused, with what was typed and why."""
    store, pages = desk_of(request).store, pages_of(request)
    if len(ticket_id) > IDENTIFIER_CHARACTERS_MAX:
        raise not_found("ticket")
    file = await service.ticket_file(store, ticket_id)
    ticket = file.ticket
    assert ticket is not None
    similar: list[Similar] = []
    if store.similar.available:
        try:
            similar = await service.tickets_like(store, ticket_id, count=SIMILAR)
        except SimilarUnavailable:
            similar = []
    context = {
        "ticket": ticket,
        "entries": entries_of(file, lambda name: pages.url(request, f"/ui/operators/{name}")),
        "attachments": file.attachments,
        "feedback": file.feedback,
        "older": store.retention.audit is None and ticket.version > len(file.events),
        "similar": [each for each in similar if each.distance <= DISTANCE_MAX],
        "similar_available": store.similar.available,
        "steps": steps_of(ticket),
        "escalable": ticket.status is Status.ESCALATED or Status.ESCALATED in next_statuses(ticket.status),
        "form": form,
        "errors": errors or {},
        "kept": lambda name, field, present="": (typed or {}).get(field, "") if form == name else present,
        "wrong": lambda name, field: (errors or {}).get(field) if form == name else None,
        "conflict": conflict,
        "request_key": store.db.context.entropy.uuid(),
        "done": _DONE.get(request.query_params.get("done", "")),
    }
    return pages.render(request, "ticket.html", context, status=status)


_DONE = {
    "opened": "The ticket is open.",
    "status": "The status is changed.",
    "escalated": "The ticket is in the engineer's hands.",
    "note": "The note is in the timeline.",
    "feedback": "Thank you: the feedback is kept.",
    "attached": "The file is attached.",
    "detached": "The file is gone.",
    "amended": "The ticket is changed.",
    "same": "Nothing was to change.",
}


def steps_of(ticket: Ticket) -> list[tuple[str, str]]:
    """Return the buttons that change a ticket's status: where to, and what the button says."""
    said = dict(_STEPS)
    if ticket.status is Status.ESCALATED:
        said[Status.PROCESSING] = "Take back"
    elif ticket.status in (Status.READY, Status.FAILED):
        said[Status.PROCESSING] = "Reopen"
    return [(status.value, said[status]) for status in next_statuses(ticket.status) if status in said]


def entries_of(file: TicketFile, operator: Callable[[str], str]) -> list[Entry]:
    """Return events and feedback in the order in which they happened; `operator` is where one's feedback is shown."""
    assert file.ticket is not None
    opened_at = file.ticket.created_at  # a clock that is behind lets nobody speak before there is a ticket
    entries = [*map(_event, file.events), *(_feedback(each, operator) for each in file.feedback)]
    return sorted(entries, key=lambda entry: max(entry.at, opened_at))


def _event(event: Event) -> Entry:
    title, tone, detail = "Note", "neutral", event.note
    new = event.new_status
    if event.kind is EventKind.CREATED:
        title, tone = "Opened", "info"
    elif event.kind is EventKind.ESCALATED:
        title, tone = f"Escalated to {event.details.get('assigned_to', 'an engineer')}", "warn"
    elif event.kind is EventKind.STATUS_CHANGED and new is not None:
        before = "" if event.old_status is None else f"{_WORDS[event.old_status]} → "
        title, tone = f"{before}{_WORDS[new]}", _TONES[new]
        if event.details:
            title += f"; {_changes(event)}"
    elif event.kind is EventKind.AMENDED:
        title = f"Changed: {_changes(event)}"
    elif event.kind is EventKind.FILE_ATTACHED:
        verb = "Replaced" if "replaced" in event.details else "Attached"
        title = f"{verb}: {event.details.get('name', 'a file')}"
    elif event.kind is EventKind.FILE_REMOVED:
        title = f"Removed: {event.details.get('name', 'a file')}"
    return Entry(event.at, title, event.actor, detail, tone)


def _changes(event: Event) -> str:
    return ", ".join(
        f"{name} is now {value}" if value else f"{name} is taken away"
        for name, value in sorted(event.details.items())
    )


def _feedback(feedback: Feedback, operator: Callable[[str], str]) -> Entry:
    helped = {True: ", it helped", False: ", it did not help", None: ""}[feedback.was_helpful]
    tone = "good" if feedback.rating >= 4 else "warn" if feedback.rating == 3 else "bad"
    title = f"Feedback: {feedback.rating} of 5{helped}"
    name = feedback.operator_id
    actor = Markup('<a href="{}">{}</a>').format(operator(name), name)
    return Entry(feedback.submitted_at, title, actor, feedback.comment, tone)


# Numbers


@router.get("/ui/dashboard")
async def dashboard_page(request: Request) -> Response:
    """Show the numbers, with charts."""
    told = request.query_params.get("days", "")
    days = int(told) if told in {str(span) for span in SPANS} else DAYS
    desk, pages = desk_of(request), pages_of(request)
    shown = await desk.board.show(days)
    tabs = [(f"{span} days", pages.url(request, "/ui/dashboard", days=span), span == days) for span in SPANS]
    context = {
        "numbers": shown.numbers,
        "days": days,
        "span_tabs": tabs,
        "follower": desk.follower,
        **charts_of(shown),
    }
    return pages.render(request, "dashboard.html", context)


def charts_of(shown: Shown) -> dict[str, Any]:
    """Return the dashboard's charts."""
    numbers = shown.numbers
    labels = [_label(day, len(numbers.days)) for day in numbers.days]
    hours = [None if (mean := day.resolution_s.mean) is None else float(mean) / 3_600 for day in numbers.days]
    content = [None if (mean := day.satisfaction.mean) is None else float(mean) for day in numbers.days]
    opened: list[float | None] = [day.opened for day in numbers.days]
    resolved: list[float | None] = [day.resolved for day in numbers.days]
    return {
        "status_chart": charts.bars(
            "Tickets by status",
            [(_WORDS[status], count) for status, count in numbers.by_status.items()],
            tones={_WORDS[status]: tone for status, tone in _TONES.items()},
        ),
        "priority_chart": charts.bars(
            "Tickets by priority",
            [(priority.value.capitalize(), count) for priority, count in numbers.by_priority.items()],
            tones={priority.value.capitalize(): tone for priority, tone in _WEIGHTS.items()},
        ),
        "flow_chart": charts.lines(
            "Opened and resolved by day",
            labels,
            [("Opened", opened), ("Resolved", resolved)],
            tones={"Opened": "info", "Resolved": "good"},
        ),
        "resolution_chart": charts.lines(
            "Time to resolution by day, average",
            labels,
            [("Hours", hours)],
            unit="h",
            tones={"Hours": "accent"},
        ),
        "satisfaction_chart": charts.lines(
            "Satisfaction by day, average of 1 to 5", labels, [("Rating", content)], tones={"Rating": "good"}
        ),
        "ratings_chart": charts.bars(
            "Ratings",
            [(f"{rating} of 5", count) for rating, count in sorted(numbers.ratings.items())],
            tones={"1 of 5": "bad", "2 of 5": "bad", "3 of 5": "warn", "4 of 5": "good", "5 of 5": "good"},
        ),
    }


def _label(day: Day, days: int) -> str:
    return f"{day.day.day} {day.day:%b}" if days <= 90 else f"{day.day.day} {day.day:%b %y}"
