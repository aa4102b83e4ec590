"""Read and write item files in pieces: CSV, TSV, plain JSON, and DynamoDB JSON lines (bare or as AWS exports them).

A reader takes any piece of a file and reports how far it got, so no file is held in memory. Every record knows the line it
starts on.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tavola.studio.edits.delimited import (
    RECORD_CHARACTERS_MAX,
    DelimitedRecord,
    ExportColumns,
    ImportColumn,
    choose_columns,
    guess_types,
    header_columns,
    read_records,
    record_item,
)
from tavola.studio.edits.plain_json import (
    DYNAMODB_JSON,
    EXACT_JSON,
    ImportRecordMalformed,
    parse_plain_item,
    render_plain_item,
)
from tavola.values import TAGS, Item

FileForm = Literal["csv", "tsv", "json", "dynamodb-json", "dynamodb-export"]
DELIMITERS = {"csv": ",", "tsv": "\t"}
MEDIA_TYPES: dict[FileForm, str] = {
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "json": "application/json",
    "dynamodb-json": "application/x-ndjson",
    "dynamodb-export": "application/x-ndjson",
}
EXTENSIONS: dict[FileForm, str] = {
    "csv": "csv",
    "tsv": "tsv",
    "json": "json",
    "dynamodb-json": "ndjson",
    "dynamodb-export": "json",
}

_BETWEEN = re.compile(r"[\s,]*")
_BOM = "\ufeff"
_TRUNCATION_WINDOW = 12  # an error this close to the end may be caused by the truncated piece
_TYPED = re.compile(  # the start of an item in DynamoDB JSON, bare or under `Item`
    r'[\[\s]*\{\s*("Item"\s*:\s*\{\s*)?"(?:[^"\\]|\\.)*"\s*:\s*\{\s*"(?:' + "|".join(TAGS) + r')"\s*:'
)
_NEXT_OBJECT = re.compile(r"\n(?=[ \t]*\{)")
_WINDOW = 4 * 1024  # characters kept before the current record: json counts their lines for each error


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    """A record of a file as an item, or its error."""

    line: int
    item: Item | None
    source: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class FilePiece:
    """The complete records of a piece, how much text they consumed, and the state for the next piece."""

    form: FileForm
    columns: tuple[ImportColumn, ...]
    records: tuple[ParsedRecord, ...]
    consumed: int  # characters
    line: int  # where the next piece starts
    state: str
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class FileWriter:
    """Writes items in one format."""

    form: FileForm
    keys: Sequence[str]
    _columns: ExportColumns | None = field(default=None)
    _begun: bool = False

    def begin(self, items: Sequence[Item], *, complete: bool) -> str:
        """Return the text before the first item; a CSV header is made from `items`, which are all if `complete`."""
        if self.form in DELIMITERS:
            self._columns = choose_columns(items, self.keys, DELIMITERS[self.form], complete=complete)
            return self._columns.header()
        return "[\n" if self.form == "json" else ""

    def write(self, item: Item) -> str:
        """Return an item as text."""
        if self._columns is not None:
            return self._columns.row(item)
        if self.form == "json":
            comma, self._begun = ",\n" if self._begun else "", True
            return comma + render_plain_item(item)
        record = {"Item": item} if self.form == "dynamodb-export" else item
        return msgspec.json.encode(record).decode() + "\n"

    def end(self) -> str:
        """Return the text after the last item."""
        if self.form != "json":
            return ""
        return "\n]\n" if self._begun else "]\n"


def guess_form(text: str) -> FileForm:
    """Guess the format of a file from its beginning."""
    start = text.lstrip(_BOM).lstrip()
    if not start.startswith(("{", "[")):
        return max(("csv", "tsv"), key=lambda form: _header_fits(start, form))
    at = start.find("{")
    try:
        parsed, _ = EXACT_JSON.raw_decode(start, max(at, 0))
    except (ValueError, RecursionError):
        return "dynamodb-json" if _TYPED.match(start) else "json"
    item = _unwrap_item(parsed)
    return "dynamodb-json" if item and all(map(_is_value, item.values())) else "json"


def _header_fits(text: str, form: FileForm) -> tuple[bool, int, int]:
    """Return a score of how well the first record fits as a header in this format."""
    header, _ = next(read_records(text, DELIMITERS[form], 1, last=True), (None, 0))
    if header is None:
        return False, 0, 0
    typed = sum(column.typed for column in header_columns(header.cells))
    return not header.error, typed, len(header.cells)


def read_piece(
    text: str,
    form: FileForm,
    *,
    columns: Sequence[ImportColumn] = (),
    key_types: Mapping[str, str] | None = None,
    line: int = 1,
    state: str = "",
    last: bool = True,
) -> FilePiece:
    """Return the complete records of a piece of a file; the first piece has no state."""
    skipped = 1 if not state and text.startswith(_BOM) else 0
    if form in DELIMITERS:
        piece = _read_delimited(text[skipped:], form, tuple(columns), key_types or {}, line, state, last=last)
    else:
        piece = _read_objects(text[skipped:], form, line, state, last=last)
    consumed = piece.consumed + skipped if piece.consumed or not skipped else 0
    return FilePiece(form, piece.columns, piece.records, consumed, piece.line, piece.state, piece.notes)


def _read_delimited(
    text: str,
    form: FileForm,
    columns: tuple[ImportColumn, ...],
    key_types: Mapping[str, str],
    line: int,
    state: str,
    *,
    last: bool,
) -> FilePiece:
    delimited = list(read_records(text, DELIMITERS[form], line, last=last))
    consumed = delimited[-1][1] if delimited else len(text) if last else 0
    after = line + text.count("\n", 0, consumed)
    records = [record for record, _ in delimited]
    if not state:  # the first record is the header
        header = records.pop(0) if records else None
        if header is not None:
            header_cells = header_columns(header.cells)
            columns = (
                columns
                if len(columns) == len(header_cells)
                else guess_types(header_cells, records, key_types)
            )
            state = "rows"
    parsed = tuple(_row(record, columns) for record in records)
    return FilePiece(form, columns, parsed, consumed, after, state, _column_notes(columns))


def _column_notes(columns: Sequence[ImportColumn]) -> tuple[str, ...]:
    names = Counter(column.attribute for column in columns if column.type not in ("rest", "skip"))
    twice = sorted(name for name, times in names.items() if times > 1)
    return tuple(f"Two columns are named {name!r}; the second one is used." for name in twice)


def _row(record: DelimitedRecord, columns: Sequence[ImportColumn]) -> ParsedRecord:
    try:
        return ParsedRecord(record.line, record_item(record, columns), record.source)
    except ImportRecordMalformed as error:
        return ParsedRecord(record.line, None, record.source, str(error))


def _read_objects(text: str, form: FileForm, line: int, state: str, *, last: bool) -> FilePiece:
    """Return the JSON objects of a text: concatenated, one per line, or in a list."""
    records: list[ParsedRecord] = []
    at = counted = 0
    done = passed = 0  # `passed` counts characters already removed from the start
    window = max(_WINDOW, len(text) >> 8)
    while True:
        if counted > window:
            passed, text, at, counted = passed + counted, text[counted:], at - counted, 0
        between = _BETWEEN.match(text, at)
        assert between is not None, "the pattern matches the empty string"
        at = between.end()
        if at < len(text) and text[at] == "[" and not state:
            state, at = "list", at + 1
            continue
        if at < len(text) and text[at] == "]" and state == "list":
            state, at = "closed", at + 1
            continue
        done = at
        if at >= len(text):
            break
        line += text.count("\n", counted, at)
        counted = at
        parsed, end = _read_object(text, at, form, line, last=last)
        if parsed is None:
            break
        state = state or "lines"
        records.append(parsed)
        at = end
    line += text.count("\n", counted, done)
    if last and state == "list":
        error = "the list is not closed; the end of the file may be missing"
        records.append(ParsedRecord(line, None, "", error))
    return FilePiece(form, (), tuple(records), passed + done, line, state)


def _read_object(
    text: str, at: int, form: FileForm, line: int, *, last: bool
) -> tuple[ParsedRecord | None, int]:
    try:
        parsed, end = (EXACT_JSON if form == "json" else DYNAMODB_JSON).raw_decode(text, at)
        item = parse_plain_item(parsed) if form == "json" else _dynamodb_item(parsed)
        return ParsedRecord(line, item, text[at:end]), end
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text) - _TRUNCATION_WINDOW or error.msg.startswith("Unterminated")
        if cut and not last and len(text) - at < RECORD_CHARACTERS_MAX:
            return None, at
        message = f"{error.msg} in line {line + error.lineno - 1 - text.count(chr(10), 0, at)}, column {error.colno}"
    except ImportRecordMalformed as error:
        message = str(error)
    except RecursionError:
        message = "nested too deeply"
    try:
        _, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        # Invalid JSON has no end: the next record is the next object at the start of a line.
        following = _NEXT_OBJECT.search(text, at)
        end = len(text) if following is None else following.start()
    return ParsedRecord(line, None, text[at:end], message), end


def _dynamodb_item(parsed: Any) -> Item:
    item = _unwrap_item(parsed)
    if item is None:
        raise ImportRecordMalformed("an item must be a JSON object of attributes")
    for name, value in item.items():
        if not _is_value(value):
            raise ImportRecordMalformed(f'{name}: not a DynamoDB JSON value such as {{"S": "text"}}')
    return item


def _unwrap_item(parsed: Any) -> dict[str, Any] | None:
    """Return the attributes of an item, which AWS exports wrap in `Item`.

    An attribute may be named Item too; its value then has a single type, such as `{"S": …}`, not attribute values.
    """
    if type(parsed) is not dict:
        return None
    inner = parsed.get("Item") if len(parsed) == 1 else None
    if type(inner) is dict and inner and all(type(value) is dict for value in inner.values()):
        return inner
    return parsed


def _is_value(value: Any) -> bool:
    return type(value) is dict and len(value) == 1 and next(iter(value)) in TAGS
