"""Forms: what people send from the pages. What is accepted leads back to a page (303); what is refused is shown with what was typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile

from tavola.apps.shell import ProblemError, field_errors, member_of, problem_of
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import FORM_CHARACTERS_MAX, Status
from tavola.apps.support_desk.errors import (
    AttachmentExists,
    DeskError,
    TextTooLong,
    TicketChanged,
    TransitionRefused,
)
from tavola.apps.support_desk.model import Attachment
from tavola.apps.support_desk.pages import pages_of, shown_ticket
from tavola.apps.support_desk.resources import (
    EscalationAsked,
    FeedbackAsked,
    FileNamed,
    NoteAsked,
    TicketAsked,
    TicketPatch,
)
from tavola.apps.support_desk.rest import FILE_BYTES_MAX, desk_of, kind_of, problem_of_desk
from tavola.patterns import IdempotencyMismatch

router = APIRouter(include_in_schema=False)

A = TypeVar("A", bound=BaseModel)

FORM_BYTES_MAX = 8 * 1024 * 1024  # of one field; the guard takes no body that is larger

_ID = "has letters, digits and . _ : @ + -, and no blank."
_PATTERNS = {
    "customer_id": f"A customer's id {_ID}",
    "operator_id": f"An operator's id {_ID}",
    "engineer": f"An engineer's id {_ID}",
    "actor": f"An id {_ID}",
    "name": "A file's name has no slash, no quote and no character that cannot be seen, and is not made of dots alone.",
}
_NEEDED = {
    "customer_id": "Say which customer it is.",
    "symptom_text": "Say what is wrong.",
    "note": "Write the note first.",
    "engineer": "Name the engineer.",
    "reason": "Give a reason.",
    "operator_id": "Name the operator.",
    "rating": "Choose a rating.",
}


@router.get("/ui/tickets/new")
async def new_ticket_page(request: Request) -> Response:
    """Show an empty form, for a customer if one is named."""
    typed = {
        "customer_id": request.query_params.get("customer", ""),
        "priority": "MEDIUM",
        "request": _request(request),
    }
    return pages_of(request).render(request, "new_ticket.html", {"typed": typed, "errors": {}})


@router.post("/ui/tickets")
async def open_ticket(request: Request) -> Response:
    """Open a ticket; the form's own key makes a second click the same ticket."""
    typed = _typed(await request.form(max_part_size=FORM_BYTES_MAX))
    pages = pages_of(request)
    errors: Mapping[str, str]
    status = 422
    key = typed.pop("request", "")
    try:
        _fits(typed)
        asked = _read(TicketAsked, typed)
        answer = await service.open_ticket(desk_of(request).store, asked.new(), request=key or None)
    except ValidationError as error:
        errors = complaints(error)
    except TextTooLong:
        typed["symptom_text"] = typed["symptom_text"][:FORM_CHARACTERS_MAX]
        told = f"It is too long: {FORM_CHARACTERS_MAX:,} characters are the most, and what is more is cut off below."
        errors = {"symptom_text": f"{told} Send what is left, and attach the rest as a file."}
    except IdempotencyMismatch:
        errors, status = (
            {
                "": "This form was sent before with other words. Look whether the ticket is there; then send it again."
            },
            409,
        )
        key = _request(request)
    except DeskError as error:
        problem = problem_of_desk(error)
        errors, status = {"": problem.detail}, problem.status
    else:
        return pages.redirect(request, f"/ui/tickets/{answer.value.ticket_id}", done="opened")
    return pages.render(
        request, "new_ticket.html", {"typed": {**typed, "request": key}, "errors": errors}, status=status
    )


@router.post("/ui/tickets/{ticket_id}/status")
async def change_status(request: Request, ticket_id: str) -> Response:
    """Change the status of a ticket as it was when the page was shown."""
    typed = _typed(await request.form())
    renamed = {**typed, "note": typed.get("status_note", ""), "actor": typed.get("status_actor", "")}
    try:
        asked = _read(TicketPatch, renamed, only=("status", "note", "actor"))
        assert asked.status is not None
        await service.change_status(
            desk_of(request).store,
            ticket_id,
            Status(asked.status),
            expected=_version(typed),
            note=asked.note,
            actor=asked.actor,
        )
    except (ValidationError, DeskError, ProblemError) as error:
        return await _refused(
            request,
            ticket_id,
            "status",
            typed,
            error,
            {"note": "status_note", "actor": "status_actor", "": ""},
        )
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="status")


@router.post("/ui/tickets/{ticket_id}/amendment")
async def amend(request: Request, ticket_id: str) -> Response:
    """Change priority, subject or product."""
    typed = _typed(await request.form())
    try:
        seen = _version(typed)
        asked = _read(TicketPatch, typed, only=("priority", "subject", "product"), emptied=("product",))
        ticket = await service.change_ticket(
            desk_of(request).store, ticket_id, changes=asked.amendment(), expected=seen
        )
    except (ValidationError, DeskError, ProblemError) as error:
        return await _refused(request, ticket_id, "amendment", typed, error)
    done = "same" if ticket.version == seen else "amended"
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done=done)


@router.post("/ui/tickets/{ticket_id}/escalation")
async def escalate(request: Request, ticket_id: str) -> Response:
    """Hand a ticket to an engineer."""
    typed = _typed(await request.form())
    try:
        asked = _read(EscalationAsked, typed, only=("engineer", "reason"))
        await service.escalate(
            desk_of(request).store,
            ticket_id,
            engineer=asked.engineer,
            reason=asked.reason,
            expected=_version(typed),
        )
    except (ValidationError, DeskError, ProblemError) as error:
        return await _refused(request, ticket_id, "escalation", typed, error)
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="escalated")


@router.post("/ui/tickets/{ticket_id}/notes")
async def add_note(request: Request, ticket_id: str) -> Response:
    """Add a note to the timeline."""
    typed = _typed(await request.form())
    try:
        asked = _read(NoteAsked, typed, only=("note", "actor"))
        await service.add_note(
            desk_of(request).store, ticket_id, asked.note, actor=asked.actor, request=_key(typed)
        )
    except (ValidationError, DeskError, ProblemError, IdempotencyMismatch) as error:
        return await _refused(request, ticket_id, "note", typed, error)
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="note")


@router.post("/ui/tickets/{ticket_id}/feedback")
async def give_feedback(request: Request, ticket_id: str) -> Response:
    """Say what the answer was worth."""
    typed: dict[str, Any] = _typed(await request.form())
    told = {"yes": True, "no": False}.get(typed.get("was_helpful", ""))
    digit = typed.get("rating", "")
    rating = int(digit) if len(digit) == 1 and digit.isascii() and digit.isdigit() else None
    try:
        asked = _read(
            FeedbackAsked,
            {**typed, "was_helpful": told, "rating": rating},
            only=("operator_id", "rating", "was_helpful", "comment"),
        )
        await service.give_feedback(desk_of(request).store, ticket_id, asked.new(), request=_key(typed))
    except (ValidationError, DeskError, ProblemError, IdempotencyMismatch) as error:
        return await _refused(request, ticket_id, "feedback", typed, error)
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="feedback")


@router.post("/ui/tickets/{ticket_id}/attachments")
async def attach(request: Request, ticket_id: str) -> Response:
    """Attach the file that was chosen."""
    try:
        async with request.form() as form:  # which lets its files go
            file = form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise ProblemError(422, "invalid", "No file", "Choose a file first.")
            name = FileNamed(name=file.filename.replace("\\", "/").rpartition("/")[2]).name
            kind, data = kind_of(file.content_type), await file.read()
        if len(data) > FILE_BYTES_MAX:
            raise ProblemError(413, "too-large", "Too large", f"A file may have {FILE_BYTES_MAX:,} bytes.")

        def judge(standing: Attachment | None) -> None:
            if standing is not None and not service.same_file(standing, kind, data):
                raise AttachmentExists(ticket_id, name)

        await service.attach(
            desk_of(request).store, ticket_id, name=name, content_type=kind, data=data, judge=judge
        )
    except (ValidationError, DeskError, ProblemError) as error:
        return await _refused(request, ticket_id, "attachment", {}, error, {"name": "file", "": "file"})
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="attached")


@router.post("/ui/tickets/{ticket_id}/attachments/delete")
async def detach(request: Request, ticket_id: str) -> Response:
    """Take a file off a ticket."""
    typed = _typed(await request.form())
    await service.detach(desk_of(request).store, ticket_id, typed.get("name", ""))
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="detached")


async def _refused(
    request: Request,
    ticket_id: str,
    form: str,
    typed: Mapping[str, str],
    error: ValidationError | DeskError | ProblemError | IdempotencyMismatch,
    names: Mapping[str, str] | None = None,
) -> Response:
    """Return the ticket as it is now, with the form that was refused and why."""
    if isinstance(error, TicketChanged | TransitionRefused):
        told = (
            "Somebody changed this ticket while you looked at it, and nothing of yours was saved. "
            "This is how it is now; look, and send it again if it still holds."
            if isinstance(error, TicketChanged)
            else problem_of_desk(error).detail
        )
        return await shown_ticket(request, ticket_id, status=409, form=form, typed=typed, conflict=told)
    if isinstance(error, ValidationError):
        errors, status = complaints(error), 422
    elif isinstance(error, IdempotencyMismatch):
        errors, status = (
            {"": "This form was sent before with other words. Look above; then send it again."},
            409,
        )
    else:
        problem = problem_of_desk(error) if isinstance(error, DeskError) else problem_of(error)
        assert problem is not None
        if problem.status == 404:
            raise error
        errors, status = {"": problem.detail}, problem.status
    named = {(names or {}).get(name, name): message for name, message in errors.items()}
    return await shown_ticket(request, ticket_id, status=status, form=form, typed=typed, errors=named)


def _fits(typed: Mapping[str, str]) -> None:
    """Refuse a text that nobody typed, before it is shown in a page again."""
    length = len(typed.get("symptom_text", ""))
    if length > FORM_CHARACTERS_MAX:
        raise TextTooLong("symptom text", length, FORM_CHARACTERS_MAX)


def complaints(error: ValidationError) -> dict[str, str]:
    """Return what is wrong with each field, in words for who filled it in."""
    said = field_errors(error)
    for each in error.errors(include_url=False, include_input=False):
        name = ".".join(member_of(each["loc"]))
        context = each.get("ctx", {})
        match each["type"]:
            case "missing" | "string_too_short":
                said[name] = _NEEDED.get(name, "This is needed.")
            case "string_pattern_mismatch":
                said[name] = _PATTERNS.get(name) or _NEEDED.get(name, "This is needed.")
            case "string_too_long":
                said[name] = f"It is too long: {context.get('max_length', 0):,} characters are the most."
            case "enum" | "literal_error" | "int_type":
                said[name] = "Choose one."
            case _:
                pass
    return said


def _typed(form: FormData) -> dict[str, str]:
    """Return the fields of a form as text, with the line ends that texts have."""
    return {
        name: value.strip().replace("\r\n", "\n")
        for name, value in form.multi_items()
        if isinstance(value, str)
    }


def _read(
    kind: type[A],
    typed: Mapping[str, Any],
    *,
    only: tuple[str, ...] | None = None,
    emptied: tuple[str, ...] = (),
) -> A:
    """Return what a form says; a field that is empty was left out, or is to be emptied."""
    given = {name: value for name, value in typed.items() if value not in ("", None)}
    given |= {name: None for name in emptied if typed.get(name) == ""}
    return kind.model_validate({name: value for name, value in given.items() if only is None or name in only})


def _version(typed: Mapping[str, str]) -> int:
    """Return the version of the ticket that the form was made for."""
    told = typed.get("version", "")
    if not (told.isascii() and told.isdigit() and len(told) < 10):
        raise ProblemError(
            422,
            "invalid",
            "Invalid form",
            "The form does not say which version of the ticket it is for; reload the page.",
        )
    return int(told)


def _key(typed: Mapping[str, str]) -> str | None:
    """Return the form's own key, by which a second click is the same request."""
    return typed.get("request") or None


def _request(request: Request) -> str:
    return desk_of(request).store.db.context.entropy.uuid()
