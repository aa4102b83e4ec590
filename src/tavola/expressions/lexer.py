"""Text to tokens, each with its span.

The lexer refuses nothing: a character that starts no token becomes a token itself, and the parser reports it at its
position, as DynamoDB does.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NAME = "name"
NAME_REF = "#"
VALUE_REF = ":"
NUMBER = "number"
END = "end"
UNKNOWN = "unknown"

_TOKENS = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<name_ref>\#[A-Za-z0-9_]+)"
    r"|(?P<value_ref>:[A-Za-z0-9_]+)"
    r"|(?P<number>[0-9]+)"
    r"|(?P<sign><=|>=|<>|[=<>()\[\],.+\-])"
    r"|(?P<space>[ \t\r\n]+)"
    r"|(?P<unknown>.)",
    re.DOTALL,
)
_KINDS = {
    "name": NAME,
    "name_ref": NAME_REF,
    "value_ref": VALUE_REF,
    "number": NUMBER,
    "unknown": UNKNOWN,
}


class Token(NamedTuple):
    """A token; the kind of a punctuation token is the character itself."""

    kind: str
    text: str
    start: int
    end: int


def lex(text: str) -> list[Token]:
    """Return the tokens of a text, ending with an end token."""
    tokens = []
    for match in _TOKENS.finditer(text):
        group = match.lastgroup
        assert group is not None
        if group != "space":
            piece = match.group()
            tokens.append(Token(_KINDS.get(group, piece), piece, match.start(), match.end()))
    tokens.append(Token(END, "<EOF>", len(text), len(text)))
    return tokens
