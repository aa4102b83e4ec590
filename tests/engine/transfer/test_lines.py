"""Lines: one item each, in two formats, full and incremental."""

from __future__ import annotations

import json

import pytest

from tavola.engine.transfer.errors import RowRefused, TextMalformed
from tavola.engine.transfer.lines import TransferRow, changed_line, full_line, read_ion, read_json

ITEM = b'{"id":{"S":"a"},"n":{"N":"600"}}'


def test_a_full_line_is_the_item_as_it_is_stored() -> None:
    """In JSON the bytes are copied; in Ion they are reported again."""
    assert full_line("DYNAMODB_JSON", ITEM) == b'{"Item":{"id":{"S":"a"},"n":{"N":"600"}}}\n'
    assert full_line("ION", ITEM) == b'$ion_1_0 {Item:{id:"a",n:6d2}}\n'


def test_a_changed_line_has_when_which_and_what() -> None:
    """The time is a number of microseconds, the images stand beside the keys."""
    line = changed_line("DYNAMODB_JSON", 1680109764000000, {"id": {"S": "a"}}, ITEM, b'{"id":{"S":"a"}}')

    assert json.loads(line) == {
        "Metadata": {"WriteTimestampMicros": {"N": "1680109764000000"}},
        "Keys": {"id": {"S": "a"}},
        "NewImage": {"id": {"S": "a"}, "n": {"N": "600"}},
        "OldImage": {"id": {"S": "a"}},
    }


def test_a_deletion_has_no_new_image() -> None:
    """Without old images it is its keys alone, in either format."""
    keys = {"id": {"S": "a"}}

    assert set(json.loads(changed_line("DYNAMODB_JSON", 1, keys, None, None))) == {"Metadata", "Keys"}
    assert changed_line("ION", 1, keys, None, None) == (
        b'$ion_1_0 {Metadata:{WriteTimestampMicros:1.},Keys:{id:"a"}}\n'
    )


def test_rows_are_read_one_after_another() -> None:
    """Blank lines are passed over, and the last line needs no end."""
    data = b'\n{"Item":{"a":{"S":"1"}}}\r\n\n{"Item":{"a":{"S":"2"}}}'

    first = read_json(data, 0, last=False)
    assert first is not None
    assert first.row == TransferRow({"a": {"S": "1"}})
    assert read_json(data, first.end, last=False) is None  # the rest may be cut off
    second = read_json(data, first.end, last=True)
    assert second is not None
    assert second.row == TransferRow({"a": {"S": "2"}})
    assert read_json(data, second.end, last=True) is None


@pytest.mark.parametrize(
    "line",
    [
        *(b"nonsense\n", b"[1]\n", b'{"Item":{"a":{"S":"\xff"}}}\n', b'{"Item":{}\n', b"[" * 5000 + b"\n"),
        *(b'{"item":{}}\n', b'{"Item":[]}\n', b'{"Item":{},"ConditionExpression":1}\n', b"{}\n"),
    ],
)
def test_what_is_no_row_is_refused_alone(line: bytes) -> None:
    """A row begins at each newline, so the next ones are read, whatever the line is."""
    span = read_json(line + b'{"Item":{"a":{"S":"1"}}}', 0, last=True)

    assert span is not None
    assert isinstance(span.row, RowRefused)
    assert span.end == len(line)
    following = read_json(line + b'{"Item":{"a":{"S":"1"}}}', span.end, last=True)
    assert following is not None
    assert following.row == TransferRow({"a": {"S": "1"}})


def test_a_row_may_carry_a_condition() -> None:
    """In both formats, with its names and values."""
    json_line = (
        b'{"Item":{"a":{"S":"1"}},"ConditionExpression":"#a = :v","ExpressionAttributeNames":{"#a":"a"},'
        b'"ExpressionAttributeValues":{":v":{"S":"1"}}}\n'
    )
    ion_line = (
        b'$ion_1_0 {Item:{a:"1"},ConditionExpression:"#a = :v",ExpressionAttributeNames:{\'#a\':"a"},'
        b"ExpressionAttributeValues:{':v':\"1\"}}\n"
    )

    rows = [read_json(json_line, 0, last=True), read_ion(ion_line, 0, last=True)]

    expected = TransferRow({"a": {"S": "1"}}, "#a = :v", {"#a": "a"}, {":v": {"S": "1"}})
    assert [span and span.row for span in rows] == [expected, expected]


def test_a_struct_over_many_lines_is_one_row() -> None:
    """Whatever is there of it, the row comes when it is whole."""
    text = '$ion_1_0\n{\n  Item: {\n    a: "é"\n  }\n}\n{Item:{a:"2"}}'.encode()

    for end in range(len(text) - 15):
        span = read_ion(text[:end], 0, last=False)
        assert span is None or span.row == TransferRow({"a": {"S": "é"}})
    first = read_ion(text, 0, last=True)
    assert first is not None
    second = read_ion(text, first.end, last=True)
    assert second is not None
    assert second.row == TransferRow({"a": {"S": "2"}})
    assert read_ion(text, second.end, last=True) is None


def test_binary_ion_is_refused_by_name() -> None:
    """It looks like nothing else, so the sentence can say what it is."""
    with pytest.raises(TextMalformed, match="binary Ion"):
        read_ion(b"\xe0\x01\x00\xea\x00", 0, last=True)


def test_a_struct_that_never_ends_is_no_row() -> None:
    """At the end of the file, what is cut is broken."""
    with pytest.raises(TextMalformed, match="ends inside"):
        read_ion(b'{Item:{a:"1"', 0, last=True)
