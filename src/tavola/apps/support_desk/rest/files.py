"""Files: what hangs on a ticket. A file is given back as it came, to be saved and never to be shown by the browser."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from tavola.apps.shell import ProblemError, etag_of, not_modified, parameters, problems, require_match
from tavola.apps.support_desk import service
from tavola.apps.support_desk.model import Attachment
from tavola.apps.support_desk.resources import FILE_NAME, AttachmentTold, attachment_of
from tavola.apps.support_desk.rest.desk import desk_of, place, told
from tavola.apps.support_desk.rest.tickets import TicketId

router = APIRouter(tags=["attachments"])

FILE_BYTES_MAX = 16 * 1024 * 1024
ANY = "application/octet-stream"

FileName = Annotated[str, Path(pattern=FILE_NAME, max_length=200, description="The file's name.")]

_KIND = re.compile(
    r"[\w!#$&^.+-]{1,60}/[\w!#$&^.+-]{1,60}(?:\s*;\s*[\w-]{1,40}=[\w!#$&^.+-]{1,80}){0,4}", re.ASCII
)
_ETAG = {"ETag": {"description": "Of the file's content and type.", "schema": {"type": "string"}}}
_KEPT = {**_ETAG, "Location": {"description": "Where it is.", "schema": {"type": "string"}}}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "`*`: only where there is no file of this name.",
    "schema": {"type": "string"},
}
_BINARY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


@router.put(
    "/tickets/{ticket_id}/attachments/{name}",
    operation_id="put_attachment",
    status_code=201,
    summary="Attach a file to a ticket",
    description=f"The body is the file, up to {FILE_BYTES_MAX // 1024 // 1024} MB, of whatever type. One of the same name is replaced by who "
    "names it with If-Match; `If-None-Match: *` replaces none.",
    response_model=AttachmentTold,
    responses={
        200: {"headers": _KEPT, "model": AttachmentTold, "description": "One of the same name is replaced"},
        201: {"headers": _KEPT},
        **problems(404, 409, 412, 428),
    },
    openapi_extra={
        "requestBody": {"required": True, "content": _BINARY},
        **parameters("if-match", more=(_IF_NONE_MATCH,)),
    },
)
async def put_attachment(request: Request, ticket_id: TicketId, name: FileName) -> Response:
    """Attach a file."""
    headers = request.headers

    def judge(standing: Attachment | None) -> None:
        if standing is None:
            if "if-match" in headers:
                raise _otherwise("There is no file of this name, and If-Match says that there is one.")
        elif "if-none-match" in headers and not_modified(request, etag_of_file(standing)) is not None:
            raise _otherwise(
                "There is a file of this name, and If-None-Match says that there is none.", standing
            )
        elif "if-match" in headers or "if-none-match" not in headers:
            require_match(request, etag_of_file(standing))

    done = await service.attach(
        desk_of(request).store,
        ticket_id,
        name=name,
        content_type=kind_of(headers.get("content-type")),
        data=await request.body(),
        judge=judge,
    )
    kept = {
        "Location": place(request, "tickets", ticket_id, "attachments", quote(name, safe="")),
        "ETag": etag_of_file(done.file),
    }
    return told(attachment_of(done.file), 200 if done.replaced else 201, headers=kept)


@router.get(
    "/tickets/{ticket_id}/attachments/{name}",
    operation_id="get_attachment",
    summary="A file of a ticket",
    response_class=Response,
    responses={
        200: {"content": _BINARY, "headers": _ETAG, "description": "The file"},
        304: {"description": "It is still what you have", "headers": _ETAG},
        **problems(404),
    },
)
async def get_attachment(request: Request, ticket_id: TicketId, name: FileName) -> Response:
    """Return a file."""
    store = desk_of(request).store
    found = await service.attachment(store, ticket_id, name)
    same = not_modified(request, etag_of_file(found))
    return same or attachment_answer(found, await service.attachment_data(store, found))


@router.delete(
    "/tickets/{ticket_id}/attachments/{name}",
    operation_id="delete_attachment",
    status_code=204,
    summary="Take a file off a ticket",
    description="If-Match is optional here.",
    response_class=Response,
    responses=problems(404, 409, 412),
    openapi_extra=parameters("if-match"),
)
async def delete_attachment(request: Request, ticket_id: TicketId, name: FileName) -> Response:
    """Take a file off a ticket."""

    def judge(standing: Attachment | None) -> None:
        assert standing is not None, "one that is not there is no question"
        if "if-match" in request.headers:
            require_match(request, etag_of_file(standing))

    await service.detach(desk_of(request).store, ticket_id, name, judge=judge)
    return Response(status_code=204)


def etag_of_file(file: Attachment) -> str:
    """Return the ETag of a file: of its content, and of what it is said to be."""
    return etag_of(file.body.sha256[:32], sha256(file.content_type.encode()).hexdigest()[:8])


def _otherwise(detail: str, standing: Attachment | None = None) -> ProblemError:
    headers = None if standing is None else {"ETag": etag_of_file(standing)}
    return ProblemError(412, "precondition-failed", "Not as it was said", detail, headers=headers)


def attachment_answer(found: Attachment, data: bytes) -> Response:
    """Return a file as an answer that a browser saves: it is never rendered, whatever it says it is."""
    plain = re.sub(r"[^\w. -]", "_", found.name, flags=re.ASCII)
    headers = {
        "Content-Type": found.content_type,  # as it came: given as a media type, texts would be said to be UTF-8
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(found.name, safe='')}",
        "Content-Security-Policy": "sandbox",
        "ETag": etag_of_file(found),
    }
    return Response(data, 200, headers)


def kind_of(told: str | None) -> str:
    """Return the type that a file is said to be of; what is none is refused."""
    kind = (told or "").strip()
    if not kind:
        return ANY
    if len(kind) > 255 or _KIND.fullmatch(kind) is None:
        raise ProblemError(
            415,
            "media-type",
            "Unsupported Media Type",
            "The Content-Type is none. Send one such as image/png, or none at all.",
        )
    return kind
