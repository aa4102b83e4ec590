"""Ion text: what DynamoDB writes, and what others write of the same values."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.engine.transfer.errors import TextMalformed
from tavola.engine.transfer.ion import TextCut, decode_ion, encode_ion
from tavola.values import admit_item

# A line as AWS documents it; the numbers are the point: 103 has no exponent, 600 and 2000 do.
DOCUMENTED = (
    '$ion_1_0 {Item:{Authors:$dynamodb_SS::["Author1","Author2"],Dimensions:"8.5 x 11.0 x 1.5",'
    'ISBN:"333-3333333333",Id:103.,InPublication:false,PageCount:6d2,Price:2d3,ProductCategory:"Book",'
    'Title:"Book 103 Title"}}'
)
BOOK: dict[str, dict[str, Any]] = {
    "Authors": {"SS": ["Author1", "Author2"]},
    "Dimensions": {"S": "8.5 x 11.0 x 1.5"},
    "ISBN": {"S": "333-3333333333"},
    "Id": {"N": "103"},
    "InPublication": {"BOOL": False},
    "PageCount": {"N": "600"},
    "Price": {"N": "2000"},
    "ProductCategory": {"S": "Book"},
    "Title": {"S": "Book 103 Title"},
}


def read(text: str) -> Any:
    """Return the first struct of a text with its numbers made canonical."""
    members, _ = decode_ion(text + "\n")
    assert members is not None
    admit_item(members)
    return members


def test_a_line_is_written_as_aws_writes_it() -> None:
    """The documented example comes out letter by letter, and goes in again."""
    assert encode_ion({"Item": BOOK}) == DOCUMENTED
    assert read(DOCUMENTED) == {"Item": {"M": BOOK}}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("0", "0."),
        ("7", "7."),
        ("-20", "-2d1"),
        ("8.5", "8.5"),
        ("-0.5", "-0.5"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1d-7"),
        ("-0.00000015", "-1.5d-7"),
        ("1" + "0" * 125, "1d125"),
        ("0." + "0" * 129 + "1", "1d-130"),
    ],
)
def test_a_number_is_a_decimal(number: str, text: str) -> None:
    """A decimal has a point or an exponent, so that no reader takes it for an integer or a float."""
    assert encode_ion({"Item": {"n": {"N": number}}}) == f"$ion_1_0 {{Item:{{n:{text}}}}}"
    assert read(f"{{n:{text}}}") == {"n": {"N": number}}


@pytest.mark.parametrize(
    "name", ["plain", "_x", "$x", "null", "true", "$10", "a b", "it's", "ключ", "1st", "-"]
)
def test_a_name_that_is_no_identifier_is_quoted(name: str) -> None:
    """Names come back as they were, whatever they are."""
    written = encode_ion({"Item": {name: {"S": "v"}}})

    assert read(written) == {"Item": {"M": {name: {"S": "v"}}}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", {"N": "12"}),
        ("1_000", {"N": "1000"}),
        ("-1.50", {"N": "-1.5"}),
        ("1D2", {"N": "100"}),
        ("null.string", {"NULL": True}),
        ('"a\\u00e9\\U0001F600\\x41\\/\\0"', {"S": "aé😀A/\0"}),
        ('"\\ud83d\\ude00"', {"S": "😀"}),
        ("'''one '''  '''two'''", {"S": "one two"}),
        ("{{ aGVs bG8= }}", {"B": "aGVsbG8="}),
        ("{{}}", {"B": ""}),
        ("[1., /* two */ 2. // end\n]", {"L": [{"N": "1"}, {"N": "2"}]}),
        ("{'x y':{\"z\":true}}", {"M": {"x y": {"M": {"z": {"BOOL": True}}}}}),
        ("$dynamodb_NS :: [1., 2.5]", {"NS": ["1", "2.5"]}),
        ("$dynamodb_BS::[{{aGk=}}]", {"BS": ["aGk="]}),
    ],
)
def test_what_other_writers_make_of_a_value_is_read(text: str, value: Any) -> None:
    """Integers, long strings, comments, escapes and blanks are Ion too."""
    assert read(f"{{v:{text}}}") == {"v": value}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{v:1e3}", "float"),
        ("{v:sym}", "symbol"),
        ("{v:'sym'}", "symbol"),
        ("{v:(a b)}", "s-expression"),
        ("{v:2007-02-23}", "not a decimal"),
        ('{v:{{"clob"}}}', "not a blob"),
        ("{v:{{aGk}}}", "not base64"),
        ("{v:007}", "not a decimal"),
        ('{v:"\\q"}', "not an escape"),
        ('{v:"\\ud83d"}', "without the other half"),
        ("{v:1. w:2.}", "comma"),
        ("{v 1.}", "colon"),
        ("{v:1.,v:2.}", "occurs twice"),
        ("{v:$dynamodb_SS::{}}", "expected a list"),
        ("{v:$dynamodb_SS::[1.]}", "only contain values of S"),
        ("hello {}", "expected a struct"),
        ("{v:" + "[" * 200 + "]" * 200 + "}", "nested"),
    ],
)
def test_what_no_attribute_holds_is_refused_with_its_place(text: str, why: str) -> None:
    """The sentence says where and why."""
    with pytest.raises(TextMalformed, match=rf"at \d+: .*{why}"):
        decode_ion(text + "\n")


def test_structs_stand_one_after_another_or_in_a_list() -> None:
    """Each is given with where it ends, and after the last there is none."""
    text = "$ion_1_0 [{a:1.},\n{b:2.}] {c:3.}\n"

    found: list[str] = []
    at = 0
    while True:
        members, at = decode_ion(text, at)
        if members is None:
            break
        found += members

    assert found == ["a", "b", "c"]


def test_a_text_that_ends_inside_a_struct_may_go_on() -> None:
    """Every cut of a line is reported as a cut and never as a mistake, so a reader may fetch more."""
    line = encode_ion(
        {"Item": {**BOOK, "it's": {"B": "aGk="}, "n": {"NULL": True}, "l": {"L": [{"N": "1"}]}}}
    )

    line = line[:-2] + ",long:'''a''' '''b''',i:-12,x:null.int}}"

    for end in range(line.index("{") + 1, len(line)):
        with pytest.raises(TextCut):
            decode_ion(line[:end])
