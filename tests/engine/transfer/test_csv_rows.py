"""CSV: columns to attributes."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.engine.transfer.csv_rows import Columns, read_csv, read_header
from tavola.engine.transfer.errors import RowRefused, TextMalformed
from tavola.engine.transfer.lines import TransferRow


def rows(text: str, columns: Columns) -> list[dict[str, Any] | str]:
    """Return the items of a text, or the sentence where there is none."""
    data = text.encode()
    found: list[dict[str, Any] | str] = []
    at = 0
    while (span := read_csv(data, at, columns, last=True)) is not None:
        found.append(span.row.item if isinstance(span.row, TransferRow) else str(span.row))
        at = span.end
    return found


def test_keys_have_their_types_and_the_rest_are_strings() -> None:
    """An empty field is no attribute."""
    columns = Columns(("pk", "sk", "b", "x"), types={"pk": "S", "sk": "N", "b": "B"})

    assert rows("a,5,aGk=,7\nb,6,,\n", columns) == [
        {"pk": {"S": "a"}, "sk": {"N": "5"}, "b": {"B": "aGk="}, "x": {"S": "7"}},
        {"pk": {"S": "b"}, "sk": {"N": "6"}},
    ]


@pytest.mark.parametrize("delimiter", list(",;:|\t "))
def test_each_delimiter_parts_columns(delimiter: str) -> None:
    """Quoted, it is a letter like any other."""
    text = f'a{delimiter}"b{delimiter}c"\n'

    assert rows(text, Columns(("x", "y"), delimiter)) == [{"x": {"S": "a"}, "y": {"S": f"b{delimiter}c"}}]


def test_quotes_are_doubled_and_lines_may_end_inside_them() -> None:
    """As RFC 4180 has it, and as AWS asks for it."""
    text = '"""123""","Women\'s Full ""Length"" Dress"\r\n"two\nlines",x\r\n'

    assert rows(text, Columns(("id", "value"))) == [
        {"id": {"S": '"123"'}, "value": {"S": 'Women\'s Full "Length" Dress'}},
        {"id": {"S": "two\nlines"}, "value": {"S": "x"}},
    ]


@pytest.mark.parametrize("line", ['"123",Women\'s Full "Length" Dress', '"a"b,c', 'a,"b"c'])
def test_a_quote_that_is_not_doubled_is_refused(line: str) -> None:
    """The row is reported, the next is read."""
    found = rows(f"{line}\nc,d\n", Columns(("a", "b")))

    assert "quote doubled" in str(found[0])
    assert found[1] == {"a": {"S": "c"}, "b": {"S": "d"}}


def test_a_row_has_as_many_columns_as_the_header() -> None:
    """More or fewer are refused: no one could say which are missing."""
    assert rows("1\n1,2,3\n1,2\n", Columns(("a", "b"))) == [
        "The line has 1 columns, the header 2",
        "The line has 3 columns, the header 2",
        {"a": {"S": "1"}, "b": {"S": "2"}},
    ]


def test_the_header_is_the_first_line() -> None:
    """A byte order mark is not part of it, and it may be cut off."""
    assert read_header(b"\xef\xbb\xbfpk,name\r\n1,x\n", ",", last=False) == (("pk", "name"), 12)
    assert read_header(b"pk,na", ",", last=False) is None
    assert read_header(b"pk;na", ";", last=True) == (("pk", "na"), 5)


@pytest.mark.parametrize(
    ("header", "why"), [(b"a,a\n", "twice"), (b"a,,b\n", "no name"), (b'a,b"c\n"', "not valid CSV")]
)
def test_a_header_that_names_no_columns_ends_the_object(header: bytes, why: str) -> None:
    """Without names nothing in the file means anything."""
    with pytest.raises(TextMalformed, match=why):
        read_header(header, ",", last=True)


def test_a_formula_stays_text() -> None:
    """What a spreadsheet would run is data here."""
    assert rows("=1+1,@x\n", Columns(("a", "b"))) == [{"a": {"S": "=1+1"}, "b": {"S": "@x"}}]


def test_bytes_that_are_no_text_end_the_object() -> None:
    """CSV is UTF-8."""
    with pytest.raises(TextMalformed, match="UTF-8"):
        read_csv(b"\xff,1\n", 0, Columns(("a", "b")), last=True)
    assert issubclass(RowRefused, Exception)
