"""The HTML forms. A valid form redirects to a page (303); an invalid one is shown again with its input and the errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile

from tavola.apps.shell import ProblemError, field_errors, member_of, problem_of
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import FORM_CHARACTERS_MAX, STATUS_LABELS, TicketStatus
from tavola.apps.support_desk.errors import (
    AttachmentExists,
    SupportDeskError,
    TextTooLong,
    TicketChanged,
    TicketTransitionRefused,
)
from tavola.apps.support_desk.model import Attachment
from tavola.apps.support_desk.pages import pages_of, render_ticket
from tavola.apps.support_desk.rest import FILE_BYTES_MAX, desk_of, parse_content_type
from tavola.apps.support_desk.schemas import (
    AttachmentName,
    ChangeTicketRequest,
    EscalationRequest,
    FeedbackRequest,
    NoteRequest,
    OpenTicketRequest,
)
from tavola.patterns import IdempotencyMismatch

router = APIRouter(include_in_schema=False)

A = TypeVar("A", bound=BaseModel)

FORM_BYTES_MAX = 8 * 1024 * 1024  # of one field; the request guard refuses larger bodies

_ID_RULE = "may contain only letters, digits and . _ : @ + -"
_PATTERN_MESSAGES = {
    "customer_id": f"A customer ID {_ID_RULE}",
    "operator_id": f"An operator ID {_ID_RULE}",
    "engineer": f"An engineer ID {_ID_RULE}",
    "actor": f"An ID {_ID_RULE}",
    "name": "A file name must not contain slashes, quotes or invisible characters, and must not be . or .. only.",
}
_REQUIRED_MESSAGES = {
    "customer_id": "Enter the customer ID.",
    "symptom_text": "Enter a description.",
    "note": "Enter a note.",
    "engineer": "Enter the engineer ID.",
    "reason": "Enter a reason.",
    "operator_id": "Enter the operator ID.",
    "rating": "Select a rating.",
}


@router.get("/ui/tickets/new")
async def new_ticket_page(request: Request) -> Response:
    """Show an empty ticket form; `?customer=` fills in the customer ID."""
    fields = {
        "customer_id": request.query_params.get("customer", ""),
        "priority": "MEDIUM",
        "request": _new_form_key(request),
    }
    return pages_of(request).render(request, "new_ticket.html", {"typed": fields, "errors": {}})


@router.post("/ui/tickets")
async def open_ticket(request: Request) -> Response:
    """Open a ticket; the form's idempotency key makes a second click repeat the first request."""
    fields = _form_fields(await request.form(max_part_size=FORM_BYTES_MAX))
    pages = pages_of(request)
    errors: Mapping[str, str]
    status = 422
    key = fields.pop("request", "")
    try:
        _check_length(fields)
        body = _validate(OpenTicketRequest, fields)
        answer = await service.open_ticket(desk_of(request).store, body.new(), idempotency_key=key or None)
    except ValidationError as error:
        errors = form_errors(error)
    except TextTooLong:
        fields["symptom_text"] = fields["symptom_text"][:FORM_CHARACTERS_MAX]
        too_long = f"The text is longer than {FORM_CHARACTERS_MAX:,} characters and was cut off below."
        errors = {"symptom_text": f"{too_long} Submit the shortened text and attach the rest as a file."}
    except IdempotencyMismatch:
        errors, status = (
            {
                "": "This form was already submitted with other values. Check whether the ticket exists, then submit the form again."
            },
            409,
        )
        key = _new_form_key(request)
    except SupportDeskError as error:
        problem = problem_of(error)
        assert problem is not None
        errors, status = {"": problem.detail}, problem.status
    else:
        return pages.redirect(request, f"/ui/tickets/{answer.value.ticket_id}", done="opened")
    return pages.render(
        request, "new_ticket.html", {"typed": {**fields, "request": key}, "errors": errors}, status=status
    )


@router.post("/ui/tickets/{ticket_id}/status")
async def change_status(request: Request, ticket_id: str) -> Response:
    """Change the status of the ticket at the version that the page showed."""
    fields = _form_fields(await request.form())
    renamed = {**fields, "note": fields.get("status_note", ""), "actor": fields.get("status_actor", "")}
    try:
        body = _validate(ChangeTicketRequest, renamed, only=("status", "note", "actor"))
        assert body.status is not None
        await service.change_ticket(
            desk_of(request).store,
            ticket_id,
            TicketStatus(body.status),
            expected=_form_version(fields),
            note=body.note,
            actor=body.actor,
        )
    except (ValidationError, SupportDeskError, ProblemError) as error:
        return await _render_refused(
            request,
            ticket_id,
            "status",
            fields,
            error,
            {"note": "status_note", "actor": "status_actor", "": ""},
        )
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="status")


@router.post("/ui/tickets/{ticket_id}/amendment")
async def amend(request: Request, ticket_id: str) -> Response:
    """Change priority, subject or product."""
    fields = _form_fields(await request.form())
    try:
        version = _form_version(fields)
        body = _validate(
            ChangeTicketRequest, fields, only=("priority", "subject", "product"), clearable=("product",)
        )
        ticket = await service.change_ticket(
            desk_of(request).store, ticket_id, changes=body.amendment(), expected=version
        )
    except (ValidationError, SupportDeskError, ProblemError) as error:
        return await _render_refused(request, ticket_id, "amendment", fields, error)
    done = "same" if ticket.version == version else "amended"
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done=done)


@router.post("/ui/tickets/{ticket_id}/escalation")
async def escalate(request: Request, ticket_id: str) -> Response:
    """Assign a ticket to an engineer."""
    fields = _form_fields(await request.form())
    try:
        body = _validate(EscalationRequest, fields, only=("engineer", "reason"))
        await service.escalate(
            desk_of(request).store,
            ticket_id,
            engineer=body.engineer,
            reason=body.reason,
            expected=_form_version(fields),
        )
    except (ValidationError, SupportDeskError, ProblemError) as error:
        return await _render_refused(request, ticket_id, "escalation", fields, error)
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="escalated")


@router.post("/ui/tickets/{ticket_id}/notes")
async def add_note(request: Request, ticket_id: str) -> Response:
    """Add a note to the timeline."""
    fields = _form_fields(await request.form())
    try:
        body = _validate(NoteRequest, fields, only=("note", "actor"))
        await service.add_note(
            desk_of(request).store, ticket_id, body.note, actor=body.actor, idempotency_key=_form_key(fields)
        )
    except (ValidationError, SupportDeskError, ProblemError, IdempotencyMismatch) as error:
        return await _render_refused(request, ticket_id, "note", fields, error)
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="note")


@router.post("/ui/tickets/{ticket_id}/feedback")
async def give_feedback(request: Request, ticket_id: str) -> Response:
    """Store feedback on the answer."""
    fields: dict[str, Any] = _form_fields(await request.form())
    was_helpful = {"yes": True, "no": False}.get(fields.get("was_helpful", ""))
    digit = fields.get("rating", "")
    rating = int(digit) if len(digit) == 1 and digit.isascii() and digit.isdigit() else None
    try:
        body = _validate(
            FeedbackRequest,
            {**fields, "was_helpful": was_helpful, "rating": rating},
            only=("operator_id", "rating", "was_helpful", "comment"),
        )
        await service.give_feedback(
            desk_of(request).store, ticket_id, body.new(), idempotency_key=_form_key(fields)
        )
    except (ValidationError, SupportDeskError, ProblemError, IdempotencyMismatch) as error:
        return await _render_refused(request, ticket_id, "feedback", fields, error)
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="feedback")


@router.post("/ui/tickets/{ticket_id}/attachments")
async def attach(request: Request, ticket_id: str) -> Response:
    """Attach the chosen file."""
    try:
        async with request.form() as form:  # closes its files
            file = form.get("file")
            if not isinstance(file, UploadFile) or not file.filename:
                raise ProblemError(422, "invalid", "No file", "Choose a file.")
            name = AttachmentName(name=file.filename.replace("\\", "/").rpartition("/")[2]).name
            content_type, data = parse_content_type(file.content_type), await file.read()
        if len(data) > FILE_BYTES_MAX:
            raise ProblemError(
                413, "too-large", "Too large", f"The file is larger than {FILE_BYTES_MAX // 1024 // 1024} MB."
            )

        def check_existing(existing: Attachment | None) -> None:
            if existing is not None and not service.is_same_file(existing, content_type, data):
                raise AttachmentExists(ticket_id, name)

        await service.attach(
            desk_of(request).store,
            ticket_id,
            name=name,
            content_type=content_type,
            data=data,
            check_existing=check_existing,
        )
    except (ValidationError, SupportDeskError, ProblemError) as error:
        return await _render_refused(
            request, ticket_id, "attachment", {}, error, {"name": "file", "": "file"}
        )
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="attached")


@router.post("/ui/tickets/{ticket_id}/attachments/delete")
async def detach(request: Request, ticket_id: str) -> Response:
    """Remove a file from a ticket."""
    fields = _form_fields(await request.form())
    await service.detach(desk_of(request).store, ticket_id, fields.get("name", ""))
    return pages_of(request).redirect(request, f"/ui/tickets/{ticket_id}", done="detached")


async def _render_refused(
    request: Request,
    ticket_id: str,
    form: str,
    fields: Mapping[str, str],
    error: ValidationError | SupportDeskError | ProblemError | IdempotencyMismatch,
    names: Mapping[str, str] | None = None,
) -> Response:
    """Return the page of the ticket as it is now, with the refused form and the reason."""
    if isinstance(error, TicketChanged | TicketTransitionRefused):
        conflict = (
            "This ticket was changed while you were editing it, and your change was not saved. "
            "The page shows the current ticket; submit your change again if it still applies."
            if isinstance(error, TicketChanged)
            else f"The status cannot change from {STATUS_LABELS[error.before]} to {STATUS_LABELS[error.after]}."
        )
        return await render_ticket(
            request, ticket_id, status=409, form=form, form_input=fields, conflict=conflict
        )
    if isinstance(error, ValidationError):
        errors, status = form_errors(error), 422
    elif isinstance(error, IdempotencyMismatch):
        errors, status = (
            {
                "": "This form was already submitted with other values. Check the entries above, then submit the form again."
            },
            409,
        )
    else:
        problem = problem_of(error)
        assert problem is not None
        if problem.status == 404:
            raise error
        errors, status = {"": problem.detail}, problem.status
    field_errors_by_name = {(names or {}).get(name, name): message for name, message in errors.items()}
    return await render_ticket(
        request, ticket_id, status=status, form=form, form_input=fields, errors=field_errors_by_name
    )


def _check_length(fields: Mapping[str, str]) -> None:
    """Refuse a text that is too long to be shown in the form again."""
    length = len(fields.get("symptom_text", ""))
    if length > FORM_CHARACTERS_MAX:
        raise TextTooLong("description", length, FORM_CHARACTERS_MAX)


def form_errors(error: ValidationError) -> dict[str, str]:
    """Return the error of each field, in words for the person who filled it in."""
    messages = field_errors(error)
    for problem in error.errors(include_url=False, include_input=False):
        name = ".".join(member_of(problem["loc"]))
        context = problem.get("ctx", {})
        match problem["type"]:
            case "missing" | "string_too_short":
                messages[name] = _REQUIRED_MESSAGES.get(name, "This field is required.")
            case "string_pattern_mismatch":
                messages[name] = _PATTERN_MESSAGES.get(name) or _REQUIRED_MESSAGES.get(
                    name, "This field is required."
                )
            case "string_too_long":
                messages[name] = f"Use at most {context.get('max_length', 0):,} characters."
            case "enum" | "literal_error" | "int_type":
                messages[name] = "Select one of the options."
            case _:
                pass
    return messages


def _form_fields(form: FormData) -> dict[str, str]:
    """Return the text fields of a form, with normalised line ends."""
    return {
        name: value.strip().replace("\r\n", "\n")
        for name, value in form.multi_items()
        if isinstance(value, str)
    }


def _validate(
    model: type[A],
    fields: Mapping[str, Any],
    *,
    only: tuple[str, ...] | None = None,
    clearable: tuple[str, ...] = (),
) -> A:
    """Return the form's fields as a request model; an empty field is absent, or None if it is in `clearable`."""
    values = {name: value for name, value in fields.items() if value not in ("", None)}
    values |= {name: None for name in clearable if fields.get(name) == ""}
    return model.model_validate(
        {name: value for name, value in values.items() if only is None or name in only}
    )


def _form_version(fields: Mapping[str, str]) -> int:
    """Return the version of the ticket that the form was made for."""
    text = fields.get("version", "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ProblemError(
            422,
            "invalid",
            "Invalid form",
            "The form has no ticket version. Reload the page.",
        )
    return int(text)


def _form_key(fields: Mapping[str, str]) -> str | None:
    """Return the form's idempotency key, which makes a second click repeat the first request."""
    return fields.get("request") or None


def _new_form_key(request: Request) -> str:
    return desk_of(request).store.db.context.entropy.uuid()
