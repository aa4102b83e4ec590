"""Text to tokens, each with its line and column.

A statement is lexed completely before it is parsed, so an unreadable character or number is refused first, and
without an explanation, as DynamoDB does.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tavola.expressions.partiql.errors import StatementPosition, syntax_error
from tavola.expressions.partiql.keywords import KEYWORDS

NAME = "name"
QUOTED = "quoted"
KEYWORD = "keyword"
STRING = "string"
NUMBER = "number"
END = "end"

_TOKENS = re.compile(
    r"(?P<space>(?:[ \t\r\n\f\v]+|--[^\r\n]*|/\*.*?\*/)+)"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|'(?P<string>(?:[^']|'')*)'"
    r'|"(?P<quoted>(?:[^"]|"")*)"'
    r"|(?P<sign><<|>>|<=|>=|<>|!=|\|\||(?!/\*)[=<>()\[\]{},.:;+*/%?@-])",
    re.DOTALL,
)
_AFTER_NUMBER = re.compile(r"[A-Za-z0-9_$.]")
# Two words that form one token; anything that is no token may separate them.
_PAIRS = {
    ("is", "not"): "is not",
    ("not", "in"): "not in",
    ("not", "between"): "not between",
    ("not", "like"): "not like",
    ("insert", "into"): "insert into",
    ("order", "by"): "order by",
    ("group", "by"): "group by",
    ("double", "precision"): "double precision",
    ("character", "varying"): "character varying",
}
# The point is not optional by itself: `[0-9]*\.?[0-9]*` would try every way to divide the digits, in quadratic time.
_EXPONENT = re.compile(r"[+-]?[0-9]*(?:\.([0-9]*))?[eE]([+-]?[0-9]+)", re.ASCII)
_SCALE_DIGITS = 10
_SCALE_MAX = 2**31 - 1  # exponent and scale of a number fit 32 bits


class StatementToken(NamedTuple):
    """A token; the kind of a punctuation token is the character itself."""

    kind: str
    text: str  # a keyword in lower case, a string or quoted name without its quotes
    place: StatementPosition


def lex(text: str) -> list[StatementToken]:
    """Return the tokens of a statement, ending with an end token."""
    tokens: list[StatementToken] = []
    at = 0
    line, line_start = 1, 0
    broken = "\n" in text
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise syntax_error(place=StatementPosition(line, at - line_start + 1, 1))
        group = match.lastgroup
        assert group is not None
        end = match.end()
        if group != "space":
            place = StatementPosition(line, at - line_start + 1, end - at)
            token = _token(group, match[group], place)
            if group == "number" and _AFTER_NUMBER.match(text, end):
                raise syntax_error(place=place)
            pair = _pair(tokens, token)
            tokens.append(token if pair is None else StatementToken(KEYWORD, pair, tokens.pop().place))
        if broken:
            breaks = text.count("\n", at, end)
            if breaks:
                line += breaks
                line_start = text.rindex("\n", at, end) + 1
        at = end
    tokens.append(StatementToken(END, "", StatementPosition(line, at - line_start + 1, 0)))
    return tokens


def fits_scale(number: str) -> bool:
    """Return whether a number's exponent and scale fit 32 bits, as DynamoDB's number type requires."""
    match = _EXPONENT.fullmatch(number)
    if match is None:
        return True
    fraction, exponent = match[1] or "", match[2]
    if len(exponent.lstrip("+-0")) > _SCALE_DIGITS:
        return False
    power = int(exponent)
    scale = len(fraction) - power
    return -_SCALE_MAX - 1 <= power <= _SCALE_MAX and -_SCALE_MAX - 1 <= scale <= _SCALE_MAX


def _pair(tokens: list[StatementToken], token: StatementToken) -> str | None:
    if not tokens or tokens[-1].kind != KEYWORD or token.kind != KEYWORD:
        return None
    return _PAIRS.get((tokens[-1].text, token.text))


def _token(group: str, text: str, place: StatementPosition) -> StatementToken:
    match group:
        case "name":
            word = text.lower()
            return (
                StatementToken(KEYWORD, word, place)
                if word in KEYWORDS
                else StatementToken(NAME, text, place)
            )
        case "string":
            return StatementToken(STRING, text.replace("''", "'"), place)
        case "quoted":
            return StatementToken(QUOTED, text.replace('""', '"'), place)
        case "number":
            if not fits_scale(text):
                raise syntax_error(place=place)
            return StatementToken(NUMBER, text, place)
        case _:
            return StatementToken(text, text, place)
