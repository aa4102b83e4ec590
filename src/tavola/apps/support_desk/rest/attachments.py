"""The routes of attachments. A file is returned as it was sent, for saving: browsers never render it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from tavola.apps.shell import (
    ProblemError,
    etag_of,
    json_response,
    not_modified,
    parameters,
    problems,
    require_match,
    resource_path,
)
from tavola.apps.support_desk import service
from tavola.apps.support_desk.model import Attachment
from tavola.apps.support_desk.rest.desk import desk_of
from tavola.apps.support_desk.rest.tickets import TicketId
from tavola.apps.support_desk.schemas import FILE_NAME, AttachmentResponse

router = APIRouter(tags=["attachments"])

FILE_BYTES_MAX = 16 * 1024 * 1024
DEFAULT_CONTENT_TYPE = "application/octet-stream"

FileName = Annotated[str, Path(pattern=FILE_NAME, max_length=200, description="The file's name.")]

_CONTENT_TYPE = re.compile(
    r"[\w!#$&^.+-]{1,60}/[\w!#$&^.+-]{1,60}(?:\s*;\s*[\w-]{1,40}=[\w!#$&^.+-]{1,80}){0,4}", re.ASCII
)
_ETAG = {"ETag": {"description": "ETag of the file's content and type.", "schema": {"type": "string"}}}
_ETAG_AND_LOCATION = {
    **_ETAG,
    "Location": {"description": "The URL of the file.", "schema": {"type": "string"}},
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "`*`: only if no file has this name.",
    "schema": {"type": "string"},
}
_BINARY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


@router.put(
    "/tickets/{ticket_id}/attachments/{name}",
    operation_id="put_attachment",
    status_code=201,
    summary="Attach a file to a ticket",
    description=f"The body is the file, up to {FILE_BYTES_MAX // 1024 // 1024} MB, of any type. To replace a file of the same name, send its ETag as "
    "If-Match; with `If-None-Match: *` no file is replaced.",
    response_model=AttachmentResponse,
    responses={
        200: {
            "headers": _ETAG_AND_LOCATION,
            "model": AttachmentResponse,
            "description": "A file of the same name was replaced",
        },
        201: {"headers": _ETAG_AND_LOCATION},
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

    def check_preconditions(existing: Attachment | None) -> None:
        if existing is None:
            if "if-match" in headers:
                raise _precondition_failed("No file has this name, but If-Match requires one.")
        elif "if-none-match" in headers and not_modified(request, file_etag(existing)) is not None:
            raise _precondition_failed(
                "A file with this name exists, but If-None-Match requires none.", existing
            )
        elif "if-match" in headers or "if-none-match" not in headers:
            require_match(request, file_etag(existing))

    result = await service.attach(
        desk_of(request).store,
        ticket_id,
        name=name,
        content_type=parse_content_type(headers.get("content-type")),
        data=await request.body(),
        check_existing=check_preconditions,
    )
    response_headers = {
        "Location": resource_path(request, "tickets", ticket_id, "attachments", quote(name, safe="")),
        "ETag": file_etag(result.file),
    }
    return json_response(
        AttachmentResponse.model_validate(result.file),
        200 if result.replaced else 201,
        headers=response_headers,
    )


@router.get(
    "/tickets/{ticket_id}/attachments/{name}",
    operation_id="get_attachment",
    summary="Get a file of a ticket",
    response_class=Response,
    responses={
        200: {"content": _BINARY, "headers": _ETAG, "description": "The file"},
        304: {"description": "Your copy is current", "headers": _ETAG},
        **problems(404),
    },
)
async def get_attachment(request: Request, ticket_id: TicketId, name: FileName) -> Response:
    """Return a file."""
    store = desk_of(request).store
    attachment = await service.get_attachment(store, ticket_id, name)
    unchanged = not_modified(request, file_etag(attachment))
    return unchanged or file_response(attachment, await service.read_attachment(store, attachment))


@router.delete(
    "/tickets/{ticket_id}/attachments/{name}",
    operation_id="delete_attachment",
    status_code=204,
    summary="Remove a file from a ticket",
    description="If-Match is optional here.",
    response_class=Response,
    responses=problems(404, 409, 412),
    openapi_extra=parameters("if-match"),
)
async def delete_attachment(request: Request, ticket_id: TicketId, name: FileName) -> Response:
    """Remove a file from a ticket."""

    def check_preconditions(existing: Attachment | None) -> None:
        assert existing is not None, "a missing file is refused before"
        if "if-match" in request.headers:
            require_match(request, file_etag(existing))

    await service.detach(desk_of(request).store, ticket_id, name, check_existing=check_preconditions)
    return Response(status_code=204)


def file_etag(file: Attachment) -> str:
    """Return the ETag of a file: of its content and its type."""
    return etag_of(file.body.sha256[:32], sha256(file.content_type.encode()).hexdigest()[:8])


def _precondition_failed(detail: str, existing: Attachment | None = None) -> ProblemError:
    headers = None if existing is None else {"ETag": file_etag(existing)}
    return ProblemError(412, "precondition-failed", "Precondition failed", detail, headers=headers)


def file_response(file: Attachment, data: bytes) -> Response:
    """Return a file as a download that browsers never render, whatever its type."""
    plain = re.sub(r"[^\w. -]", "_", file.name, flags=re.ASCII)
    headers = {
        "Content-Type": file.content_type,  # as sent: Starlette's media_type would add a charset to texts
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name, safe='')}",
        "Content-Security-Policy": "sandbox",
        "ETag": file_etag(file),
    }
    return Response(data, 200, headers)


def parse_content_type(header: str | None) -> str:
    """Return the content type of a file; refuse an invalid one."""
    content_type = (header or "").strip()
    if not content_type:
        return DEFAULT_CONTENT_TYPE
    if len(content_type) > 255 or _CONTENT_TYPE.fullmatch(content_type) is None:
        raise ProblemError(
            415,
            "media-type",
            "Unsupported Media Type",
            "The Content-Type is not valid. Send one such as image/png, or leave it out.",
        )
    return content_type
