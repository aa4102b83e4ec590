"""Export items to a file, and import them from one piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal
from urllib.parse import quote

import msgspec
from starlette.responses import Response, StreamingResponse

from tavola.studio.edits.delimited import ImportColumn
from tavola.studio.edits.drafts import EditContext, load_edit_context
from tavola.studio.edits.files import (
    EXTENSIONS,
    MEDIA_TYPES,
    FileForm,
    FilePiece,
    FileWriter,
    guess_form,
    read_piece,
)
from tavola.studio.edits.imports import (
    ImportFailure,
    ImportMode,
    ReadyRecord,
    existing_keys,
    validate_records,
    write_records,
)
from tavola.studio.edits.selections import ItemSelection, ItemSlice, SliceCursor, read_slice
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.planner import ItemQuery
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage
from tavola.studio.types import Item as RequestItem

_PAGE = 1_000  # items per read of an export
_ROWS = 20  # in a preview
_BODY_BYTES_MAX = 16 * 1024 * 1024  # the keys of about ten thousand items
_PIECE_BYTES_MAX = 64 * 1024 * 1024  # the longest record, with every character escaped


class ExportTableRequest(ApiMessage):
    """A table, or the results of a query (as JSON), to export to a file."""

    table: str
    form: FileForm
    question: str = ""
    as_of: str | None = None


class ExportItemsRequest(ApiMessage):
    """A selection of items to export to a file."""

    selection: ItemSelection
    form: FileForm


class ImportPieceRequest(ApiMessage):
    """A piece of a file, with the line and parser state at which the previous piece ended."""

    table: str
    text: str
    form: FileForm | Literal["auto"] = "auto"
    columns: tuple[ImportColumn, ...] = ()  # chosen for CSV or TSV; empty: taken from the header
    mode: ImportMode = "refuse"
    line: int = 1
    state: str = ""
    last: bool = True


class ImportRow(ApiMessage):
    """A record as it will be written."""

    line: int
    item: RequestItem
    exists: bool  # an item with its key exists


class ImportCheck(ApiMessage):
    """The records of a piece and their failures; nothing was written."""

    form: FileForm
    columns: tuple[ImportColumn, ...]
    rows: tuple[ImportRow, ...]  # the first few, as a preview
    records: int
    ready: int
    existing: int
    failures: tuple[ImportFailure, ...]
    notes: tuple[str, ...]
    consumed: int  # UTF-16 code units, as JavaScript counts; 0: a record is longer than this piece
    line: int
    state: str


class ImportedPiece(ApiMessage):
    """The result of importing a piece."""

    form: FileForm
    columns: tuple[ImportColumn, ...]
    written: int
    skipped: int
    failures: tuple[ImportFailure, ...]
    units: float
    consumed: int
    line: int
    state: str


async def export_table(studio: Studio, params: ExportTableRequest) -> Response:
    """Stream a table, or the results of a query, as a file."""
    question = None
    if params.question:
        try:
            question = msgspec.json.decode(params.question, type=ItemQuery)
        except msgspec.DecodeError as error:
            raise RequestRefused(
                "request-malformed",
                "Invalid query",
                f"question: {error}",
                "Send it as the JSON that POST /browse/page accepts.",
            ) from error
    selection = ItemSelection(params.table, None, question, params.as_of)
    return await export_items(studio, ExportItemsRequest(selection, params.form))


async def export_items(studio: Studio, params: ExportItemsRequest) -> Response:
    """Stream a selection of items as a file."""
    context = await load_edit_context(studio, params.selection.table)
    first = await read_slice(studio, context.layout, params.selection, None, _PAGE)
    name = f"{context.layout.table}.{EXTENSIONS[params.form]}"  # the table's name, even if the request has its ARN
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    body = _export_body(studio, context, params, first)
    return StreamingResponse(body, media_type=MEDIA_TYPES[params.form], headers=headers)


async def _export_body(
    studio: Studio, context: EditContext, params: ExportItemsRequest, first: ItemSlice
) -> AsyncIterator[bytes]:
    writer = FileWriter(params.form, context.layout.schema.names)
    chunk = first
    text = writer.begin(chunk.items, complete=chunk.next is None)
    while True:
        text += "".join(map(writer.write, chunk.items))
        yield text.encode()
        if chunk.next is None:
            break
        text = ""
        cursor: SliceCursor = chunk.next
        chunk = await read_slice(studio, context.layout, params.selection, cursor, _PAGE)
    yield writer.end().encode()


async def check_import(studio: Studio, params: ImportPieceRequest) -> ImportCheck:
    """Validate a piece of a file, and count the records whose key exists."""
    context = await load_edit_context(studio, params.table)
    piece, ready, failures = await studio.run_in_thread(_validate_piece, context, params)
    existing = await existing_keys(studio, context.layout, ready)
    exists = [context.layout.identity_of(record.item) in existing for record in ready]
    rows = [
        ImportRow(record.line, record.item, is_there)
        for record, is_there in zip(ready[:_ROWS], exists, strict=False)
    ]
    return ImportCheck(
        form=piece.form,
        columns=piece.columns,
        rows=tuple(rows),
        records=len(piece.records),
        ready=len(ready),
        existing=sum(exists),
        failures=tuple(failures),
        notes=piece.notes,
        consumed=_utf16(params.text[: piece.consumed]),
        line=piece.line,
        state=piece.state,
    )


async def run_import(studio: Studio, params: ImportPieceRequest) -> ImportedPiece:
    """Write the records of a piece; each failure is reported with its line and source text."""
    context = await load_edit_context(studio, params.table)
    piece, ready, failures = await studio.run_in_thread(_validate_piece, context, params)
    tally = await write_records(studio, context.layout, ready, params.mode)
    failures = sorted([*failures, *tally.failures], key=lambda failure: failure.line)
    return ImportedPiece(
        form=piece.form,
        columns=piece.columns,
        written=tally.written,
        skipped=tally.skipped,
        failures=tuple(failures),
        units=tally.units,
        consumed=_utf16(params.text[: piece.consumed]),
        line=piece.line,
        state=piece.state,
    )


def _validate_piece(
    context: EditContext, params: ImportPieceRequest
) -> tuple[FilePiece, list[ReadyRecord], list[ImportFailure]]:
    """Parse and validate a piece; takes seconds if it is large."""
    form = guess_form(params.text) if params.form == "auto" else params.form
    piece = read_piece(
        params.text,
        form,
        columns=params.columns,
        key_types=context.layout.types,
        line=params.line,
        state=params.state,
        last=params.last,
    )
    return piece, *validate_records(context.layout, piece.records)


def _utf16(text: str) -> int:
    """Return the length of text in UTF-16 code units, as JavaScript counts."""
    return (
        len(text) if text.isascii() else len(text) + sum(1 for character in text if ord(character) > 0xFFFF)
    )


ENDPOINTS = (
    Endpoint("GET", "/export", export_table, raw=True),
    Endpoint("POST", "/export", export_items, raw=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/import/check", check_import, body_bytes_max=_PIECE_BYTES_MAX),
    Endpoint("POST", "/import/run", run_import, is_write=True, body_bytes_max=_PIECE_BYTES_MAX),
)
