"""Items as CSV or TSV rows that read back equal, with a type beside each column name.

A column header is `name:TYPE` with one of DynamoDB's ten types. A cell holds a string or number as is, binary as base64,
`true`, `false` or `null`, a set as a JSON list, and a list or map as DynamoDB JSON. An empty cell means the attribute is
absent; an empty string is a pair of quotes. Attributes without a column of their own go to the last column, headed `:M`, as
DynamoDB JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

from tavola.studio.edits.plain_json import DYNAMODB_JSON, EXACT_JSON, ImportRecordMalformed, NumberText
from tavola.values import TAGS, Item, Value

ColumnType = Literal["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M", "rest", "skip"]
REST = ":M"  # no attribute has an empty name
COLUMNS_MAX = 1_000
RECORD_CHARACTERS_MAX = 8 * 1024 * 1024  # more than an item of 400 KB with every byte escaped

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TRUTHS = {"true": True, "false": False}
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_BARE = {d: re.compile(f"[^{d}\\r\\n]*") for d in (",", "\t")}
_END = re.compile(r"\r\n|\n|\r")
_AMBIGUOUS_STARTS = "\ufeff{["  # a file that starts so is taken for JSON, or loses its byte order mark


@dataclass(frozen=True, slots=True)
class ImportColumn:
    """A column of a file: its header, and the attribute and type it is imported as."""

    header: str
    attribute: str
    type: ColumnType
    typed: bool = False  # the type is from the header, not guessed


@dataclass(frozen=True, slots=True)
class DelimitedRecord:
    """One record of a file: its cells (None if empty), its first line, and its source text."""

    cells: tuple[str | None, ...]
    line: int
    source: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class ExportColumns:
    """The columns of an export."""

    columns: tuple[tuple[str, str], ...]
    rest: bool
    delimiter: str

    def header(self) -> str:
        """Return the header line."""
        names = [f"{name}:{tag}" for name, tag in self.columns]
        return self._line([*names, *([REST] if self.rest else [])])

    def row(self, item: Item) -> str:
        """Return an item as a line; attributes without a column go into the last one."""
        remaining = dict(item)
        cells: list[str | None] = []
        for name, tag in self.columns:
            value = item.get(name)
            if value is None or tag not in value:
                cells.append(None)
                continue
            cells.append(_cell(tag, value[tag]))
            del remaining[name]
        if self.rest:
            cells.append(_json(remaining) if remaining else None)
        assert self.rest or not remaining, "without the `:M` column every attribute has its own"
        return self._line(cells)

    def _line(self, cells: Sequence[str | None]) -> str:
        return self.delimiter.join("" if cell is None else self._quote(cell) for cell in cells) + "\r\n"

    def _quote(self, cell: str) -> str:
        if (
            cell
            and not any(character in cell for character in (self.delimiter, '"', "\r", "\n"))
            and cell == cell.strip()
            and cell[0] not in _AMBIGUOUS_STARTS
        ):
            return cell
        return '"' + cell.replace('"', '""') + '"'


def choose_columns(
    items: Sequence[Item], keys: Sequence[str], delimiter: str, *, complete: bool
) -> ExportColumns:
    """Return the columns for some items, keys first; `complete` means that these are all items."""
    type_counts: dict[str, Counter[str]] = {}
    for item in items:
        for name, value in item.items():
            type_counts.setdefault(name, Counter())[next(iter(value))] += 1
    names = [
        *(key for key in keys if key in type_counts),
        *(name for name in type_counts if name not in keys),
    ][:COLUMNS_MAX]
    columns = tuple((name, type_counts[name].most_common(1)[0][0]) for name in names)
    uniform = len(names) == len(type_counts) and all(len(tags) == 1 for tags in type_counts.values())
    return ExportColumns(columns, not (complete and uniform), delimiter)


def _cell(tag: str, content: Any) -> str:
    match tag:
        case "S" | "N" | "B":
            return str(content)
        case "BOOL":
            return "true" if content else "false"
        case "NULL":
            return "null"
        case _:
            return _json(content)


def _json(content: Any) -> str:
    return msgspec.json.encode(content).decode()


def read_records(
    text: str, delimiter: str, line: int, *, last: bool
) -> Iterator[tuple[DelimitedRecord, int]]:
    """Yield the complete records of a text, each with its end position; an unfinished record at the end is left out.

    Blank lines are skipped. An unfinished record is yielded if this is the last text or it exceeds the maximum length.
    """
    at = 0
    while at < len(text):
        record, end = _record(text, at, delimiter, line, last=last)
        if record is None:
            return
        line += text.count("\n", at, end)
        at = end
        if record.error or record.cells != (None,):
            yield record, end


def _record(
    text: str, start: int, delimiter: str, line: int, *, last: bool
) -> tuple[DelimitedRecord | None, int]:
    cells: list[str | None] = []
    at = start
    while True:
        if text.startswith('"', at):
            match = _QUOTED.match(text, at)
            if match is None:
                if not last and len(text) - start < RECORD_CHARACTERS_MAX:
                    return None, start
                # If more text follows, only this line is lost: the next one may be valid.
                ended = None if last else _END.search(text, at)
                end = len(text) if ended is None else ended.end()
                return DelimitedRecord((), line, text[start:end], "unclosed quote"), end
            if match.end() == len(text) and not last:
                return None, start  # the next text may start with a quote that continues this cell
            cells.append(match[1].replace('""', '"'))
            at = match.end()
        else:
            bare = _BARE[delimiter].match(text, at)
            assert bare is not None, "the pattern matches the empty string"
            cells.append(bare[0] or None)
            at = bare.end()
        if at >= len(text):
            if not last and len(text) - start >= RECORD_CHARACTERS_MAX:
                return DelimitedRecord((), line, text[start:], "the record is longer than any item"), at
            return (DelimitedRecord(tuple(cells), line, text[start:]), at) if last else (None, start)
        if text[at] == delimiter:
            at += 1
            continue
        ended = _END.match(text, at)
        if ended is None:
            following = re.compile(r"\r\n|\n|\r|$").search(text, at)
            assert following is not None, "the pattern matches the end"
            if following.end() == len(text) and not last:
                return None, start
            problem = "unexpected text after a closing quote"
            return DelimitedRecord((), line, text[start : following.end()], problem), following.end()
        if ended[0] == "\r" and ended.end() == len(text) and not last:
            return None, start  # a line feed may follow
        return DelimitedRecord(tuple(cells), line, text[start : ended.end()]), ended.end()


def header_columns(header: Sequence[str | None]) -> tuple[ImportColumn, ...]:
    """Return the columns of a header; those without a type are strings until guessed."""
    columns = []
    for cell in header:
        cell_text = cell or ""
        name, colon, tag = cell_text.rpartition(":")
        if cell_text == REST:
            columns.append(ImportColumn(cell_text, "", "rest", True))
        elif colon and tag in TAGS:
            columns.append(ImportColumn(cell_text, name, _column_type(tag), True))
        else:
            columns.append(ImportColumn(cell_text, cell_text, "S" if cell_text else "skip"))
    return tuple(columns)


def _column_type(tag: str) -> ColumnType:
    return cast(ColumnType, tag)


def guess_types(
    columns: Sequence[ImportColumn], records: Sequence[DelimitedRecord], key_types: Mapping[str, str]
) -> tuple[ImportColumn, ...]:
    """Return the columns with types guessed from their cells; key attributes have the table's types."""
    result = []
    for position, column in enumerate(columns):
        key_type = key_types.get(column.attribute)
        if column.typed or column.type == "skip":
            result.append(column)
            continue
        cells = [
            r.cells[position] for r in records if position < len(r.cells) and r.cells[position] is not None
        ]
        kind = _column_type(key_type) if key_type is not None else _guess([cell or "" for cell in cells])
        result.append(ImportColumn(column.header, column.attribute, kind))
    return tuple(result)


def _guess(cells: list[str]) -> ColumnType:
    if not cells:
        return "S"
    if all(_NUMBER.fullmatch(cell) and len(cell) < 40 for cell in cells):
        return "N"
    if all(cell.lower() in _TRUTHS for cell in cells):
        return "BOOL"
    return "S"


def record_item(record: DelimitedRecord, columns: Sequence[ImportColumn]) -> Item:
    """Return a record as an item; raise `ImportRecordMalformed` if it is not one."""
    if record.error:
        raise ImportRecordMalformed(record.error)
    if len(record.cells) != len(columns):
        raise ImportRecordMalformed(
            f"the record has {len(record.cells)} cells, but the header has {len(columns)}"
        )
    item: Item = {}
    for column, cell in zip(columns, record.cells, strict=True):
        if cell is None or column.type == "skip":
            continue
        if column.type == "rest":
            item |= _content(column, "M", cell)
        else:
            item[column.attribute] = _parse_cell(column, column.type, cell)
    return item


def _parse_cell(column: ImportColumn, tag: str, cell: str) -> Value:
    match tag:
        case "S":
            return {"S": cell}
        case "N" | "B":
            return {tag: cell.strip()}
        case "BOOL":
            if cell.strip().lower() not in _TRUTHS:
                raise ImportRecordMalformed(f"{column.attribute}: {cell[:40]!r} is not true or false")
            return {"BOOL": _TRUTHS[cell.strip().lower()]}
        case "NULL":
            return {"NULL": True}
        case "SS" | "NS" | "BS":
            members = _content(column, tag, cell)
            return {tag: [str(member) for member in members]}
        case _:
            return {tag: _content(column, tag, cell)}


def _content(column: ImportColumn, tag: str, cell: str) -> Any:
    """Return the parsed JSON of a cell that holds a set, list or map."""
    place = column.attribute or "the last column"
    try:
        parsed = (DYNAMODB_JSON if tag in ("L", "M") else EXACT_JSON).decode(cell)
    except (json.JSONDecodeError, ImportRecordMalformed, RecursionError) as error:
        raise ImportRecordMalformed(f"{place}: a value of type {tag} must be JSON ({error})") from error
    container = dict if tag == "M" else list
    scalars = (str,) if tag in ("SS", "BS") else (str, NumberText)
    if type(parsed) is not container or (
        tag in ("SS", "NS", "BS") and any(type(member) not in scalars for member in parsed)
    ):
        raise ImportRecordMalformed(f"{place}: not a value of type {tag}")
    return parsed
