"""CSV rows to items: keys get the types of the table's schema, all else is a string.

As in RFC 4180, a field may be quoted, and must be if it contains a quote (doubled), the delimiter or a line end. An
empty field is not an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from tavola.engine.transfer.errors import RowRefused, TextMalformed
from tavola.engine.transfer.lines import RowSpan, TransferRow

DELIMITERS = ",;:|\t "
_BOM = b"\xef\xbb\xbf"


class Columns(Struct, frozen=True):
    """How columns are read: delimiter, names, and the types of keys."""

    names: tuple[str, ...]
    delimiter: str = ","
    types: Mapping[str, str] | None = None


def read_header(data: bytes, delimiter: str, *, last: bool) -> tuple[tuple[str, ...], int] | None:
    """Return the names in the header line and where it ends; None if the line is incomplete."""
    start = skip_mark(data)
    end = _record_end(data, start, last=last)
    if end is None:
        return None
    names = _fields(_text(data[start:end]), delimiter)
    if names is None:
        raise TextMalformed("The header is not valid CSV: a quote inside a field must be doubled")
    check_names(names)
    return tuple(names), end


def check_names(names: Sequence[str]) -> None:
    """Refuse names that are invalid as attributes, or repeated."""
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name:
            raise TextMalformed(f"The header has no name for column {position + 1}")
        if name in seen:
            raise TextMalformed(f"The header has the column {name} twice")
        seen.add(name)


def skip_mark(data: bytes) -> int:
    """Return where the text begins, after a UTF-8 byte order mark."""
    return len(_BOM) if data.startswith(_BOM) else 0


def read_csv(data: bytes, start: int, columns: Columns, *, last: bool) -> RowSpan | None:
    """Return the row at `start`; None if it is incomplete or nothing is left."""
    while True:
        end = _record_end(data, start, last=last)
        if end is None:
            return None
        line = _text(data[start:end])
        if line:
            return RowSpan(_row(line, columns), end)
        start = end


def _row(line: str, columns: Columns) -> TransferRow | RowRefused:
    fields = _fields(line, columns.delimiter)
    if fields is None:
        return RowRefused(
            "The line is not valid CSV: a field with a quote must be quoted and the quote doubled"
        )
    if len(fields) != len(columns.names):
        return RowRefused(f"The line has {len(fields)} columns, the header {len(columns.names)}")
    types = columns.types or {}
    return TransferRow(
        {
            name: {types.get(name, "S"): field}
            for name, field in zip(columns.names, fields, strict=True)
            if field
        }
    )


def _record_end(data: bytes, start: int, *, last: bool) -> int | None:
    """Return the end of a record including its line end: the first one outside quotes."""
    if start >= len(data):
        return None
    at = start
    quotes = 0
    while True:
        end = data.find(b"\n", at)
        if end < 0:
            return len(data) if last else None
        quotes += data.count(b'"', at, end)
        at = end + 1
        if quotes % 2 == 0:
            return at


def _text(line: bytes) -> str:
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise TextMalformed("The file is not UTF-8") from error


def _fields(line: str, delimiter: str) -> list[str] | None:
    """Return the fields of a record; None if a quote is misplaced."""
    if '"' not in line:
        return line.split(delimiter)
    field = _field(delimiter)
    fields: list[str] = []
    at = 0
    while True:
        match = field.match(line, at)
        if match is None:
            return None
        quoted = match[1]
        fields.append(match[2] if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if at == len(line):
            return fields
        at += 1  # the delimiter
        if at == len(line):
            return [*fields, ""]


@lru_cache(maxsize=len(DELIMITERS))
def _field(delimiter: str) -> re.Pattern[str]:
    stop = re.escape(delimiter)
    return re.compile(rf'(?:"((?:[^"]|"")*)"|([^"{stop}]*))(?={stop}|\Z)')
