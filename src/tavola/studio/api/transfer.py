"""Export items to a file and import them from one, a piece at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
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
from tavola.studio.types import Item as GivenItem

_PAGE = 1_000  # items read at once for an export
_ROWS = 20  # shown of a file
_BODY_BYTES_MAX = 16 * 1024 * 1024  # the keys of some ten thousand items
_PIECE_BYTES_MAX = 64 * 1024 * 1024  # the longest record, every character of it escaped once more


@dataclass(frozen=True, slots=True)
class ExportTableRequest:
    """A table, or what answers a question (as JSON), written to a file."""

    table: str
    form: FileForm
    question: str = ""
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class ExportItemsRequest:
    """A selection of items written to a file."""

    selection: ItemSelection
    form: FileForm


@dataclass(frozen=True, slots=True)
class ImportPieceRequest:
    """A piece of a file: as much text as the page sends at once, and what the piece before left to be known."""

    table: str
    text: str
    form: FileForm | Literal["auto"] = "auto"
    columns: tuple[ImportColumn, ...] = ()  # of a CSV or TSV, as they were chosen; none: as its header says
    mode: ImportMode = "refuse"
    line: int = 1
    state: str = ""
    last: bool = True


@dataclass(frozen=True, slots=True)
class ImportRow:
    """A record as it would be written."""

    line: int
    item: GivenItem
    exists: bool  # its key is taken


@dataclass(frozen=True, slots=True)
class ImportCheck:
    """What a piece of a file holds; nothing was written."""

    form: FileForm
    columns: tuple[ImportColumn, ...]
    rows: tuple[ImportRow, ...]  # the first
    records: int
    ready: int
    existing: int
    failures: tuple[ImportFailure, ...]
    notes: tuple[str, ...]
    consumed: int  # UTF-16 units of the text, as a page counts; 0: a record is longer than this piece
    line: int
    state: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of a piece of a file."""

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
    """Return a table, or what answers a question, as a file that is written as it is read."""
    question = None
    if params.question:
        try:
            question = msgspec.json.decode(params.question, type=ItemQuery)
        except msgspec.DecodeError as error:
            raise RequestRefused(
                "request-malformed",
                "The question is not one that can be read",
                f"question: {error}",
                "Give it as the JSON that POST /browse/page takes.",
            ) from error
    selection = ItemSelection(params.table, None, question, params.as_of)
    return await export_items(studio, ExportItemsRequest(selection, params.form))


async def export_items(studio: Studio, params: ExportItemsRequest) -> Response:
    """Return a selection of items as a file that is written as it is read."""
    context = await load_edit_context(studio, params.selection.table)
    first = await read_slice(studio, context.layout, params.selection, None, _PAGE)
    name = f"{context.layout.table}.{EXTENSIONS[params.form]}"  # the name even if the request used the ARN
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
    """Return what a piece of a file holds and what is wrong with it, and how many of its keys are taken."""
    context = await load_edit_context(studio, params.table)
    piece, ready, failures = await studio.run_in_thread(_validate_piece, context, params)
    taken = await existing_keys(studio, context.layout, ready)
    places = [context.layout.identity_of(each.item) in taken for each in ready]
    rows = [ImportRow(r.line, r.item, there) for r, there in zip(ready[:_ROWS], places, strict=False)]
    return ImportCheck(
        form=piece.form,
        columns=piece.columns,
        rows=tuple(rows),
        records=len(piece.records),
        ready=len(ready),
        existing=sum(places),
        failures=tuple(failures),
        notes=piece.notes,
        consumed=_utf16(params.text[: piece.consumed]),
        line=piece.line,
        state=piece.state,
    )


async def run_import(studio: Studio, params: ImportPieceRequest) -> ImportResult:
    """Write the records of a piece of a file; each that cannot be is told with its line and its source."""
    context = await load_edit_context(studio, params.table)
    piece, ready, failures = await studio.run_in_thread(_validate_piece, context, params)
    tally = await write_records(studio, context.layout, ready, params.mode)
    failures = sorted([*failures, *tally.failures], key=lambda failure: failure.line)
    return ImportResult(
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
    """Return what a piece holds, and which of it can be written; some seconds of work if it is large."""
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
    """Return how long a text is as JavaScript counts: characters beyond 65,535 are two."""
    return len(text) if text.isascii() else len(text) + sum(1 for sign in text if ord(sign) > 0xFFFF)


ENDPOINTS = (
    Endpoint("GET", "/export", export_table, raw=True),
    Endpoint("POST", "/export", export_items, raw=True, body_bytes_max=_BODY_BYTES_MAX),
    Endpoint("POST", "/import/check", check_import, body_bytes_max=_PIECE_BYTES_MAX),
    Endpoint("POST", "/import/run", run_import, is_write=True, body_bytes_max=_PIECE_BYTES_MAX),
)
