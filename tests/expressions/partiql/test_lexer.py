"""Tokens of statements: places, words that belong together, and numbers that fit."""

from __future__ import annotations

from time import process_time

import pytest

from tavola.expressions.partiql import StatementError, fits_scale
from tavola.expressions.partiql.lexer import lex


def test_tokens_know_their_place() -> None:
    """A place is the line and column where a token starts, from 1, and how long it is as written."""
    tokens = lex("SELECT *\n  FROM \"a\"\"b\" -- x\n WHERE c = 'it''s'")

    assert [(token.text, str(token.place)) for token in tokens] == [
        ("select", "1:1:6"),
        ("*", "1:8:1"),
        ("from", "2:3:4"),
        ('a"b', "2:8:6"),
        ("where", "3:2:5"),
        ("c", "3:8:1"),
        ("=", "3:10:1"),
        ("it's", "3:12:7"),
        ("", "3:19:0"),
    ]


def test_words_that_belong_together_are_one() -> None:
    """`IS NOT` and its like are one keyword, whatever space or comment separates them."""
    texts = [token.text for token in lex("a is /* not */ NOT null Insert\nInto t ORDER  BY x not in")]

    assert texts == ["a", "is not", "null", "insert into", "t", "order by", "x", "not in", ""]


@pytest.mark.parametrize(
    "text", ["'open", '"open', "/* open", "a # b", "1e99999999999", "1.2.3", "1x", "`x`", "1e"]
)
def test_what_is_no_token(text: str) -> None:
    """What cannot be read is refused with nothing after the colon, but knows its place."""
    with pytest.raises(StatementError) as refused:
        lex(f"SELECT {text}")

    assert str(refused.value) == "Statement wasn't well formed, can't be processed: "
    assert refused.value.place is not None


@pytest.mark.parametrize(
    ("number", "fits"),
    [
        ("1", True),
        ("1e2147483647", True),
        ("1e2147483648", False),
        ("1e-2147483647", True),
        ("1.5e-2147483647", False),
        ("-1E+0000000000000000000007", True),
        ("1e99999999999", False),
        ("abc", True),
    ],
)
def test_scales_that_fit(number: str, fits: bool) -> None:
    """An exponent, and the digits after the point less it, fit 32 bits; what is no number is not judged."""
    assert fits_scale(number) is fits


@pytest.mark.parametrize("text", ["1" * 8_000, "1." + "1" * 8_000, "1e" + "1" * 8_000, "." * 8_000])
def test_a_long_number_is_read_in_linear_time(text: str) -> None:
    """Ten times the digits take about ten times as long, not a hundred times."""

    def seconds(number: str) -> float:
        took_s = []
        for _ in range(5):
            began_s = process_time()
            for _ in range(20):
                fits_scale(number)
            took_s.append(process_time() - began_s)
        return min(took_s)

    assert seconds(text) < 40 * seconds(text[:800]) + 0.001
