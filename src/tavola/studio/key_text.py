"""Split a key's text into the literals of its template and the values between them.

A key written by Tavola is parsed strictly, and its values come back in the fields' types. Other code neither pads nor escapes,
so its templates are matched loosely. Without a template, words followed by a delimiter are taken as literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from tavola.errors import TavolaError
from tavola.keys import BoundTemplate, Placeholder, Template
from tavola.model import SHARD

_WORD = re.compile(r"([A-Za-z_][\w.-]*?)(?:#|\||~|:(?!/))")
_WORDS = {sign: re.compile(r"[A-Za-z_][\w.-]*?" + re.escape(sign)) for sign in "#|~:"}
_TEXTS = 4_096  # cached parsed keys: a partition key repeats in every row

_PLAIN = frozenset({"datetime", "date", "uuid"})  # shown as written, unless in descending encoding

Decode = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class KeyPiece:
    """A piece of a key's text: a literal, or a value with its field if known."""

    text: str  # as written in the key
    field: str | None = None
    value: str | None = None  # the field's value; None: a literal


@dataclass(frozen=True, slots=True, eq=False)
class KeyReader:
    """Parses the texts of one template: n + 1 literals with n fields between them."""

    literals: tuple[str, ...]
    fields: tuple[str | None, ...]
    decoders: tuple[Decode | None, ...]  # None: the text is the value
    patterns: Sequence[str]
    converted: tuple[int, ...] = ()  # positions of fields whose value may differ from the text
    _split: Callable[[str], re.Match[str] | None] = field(init=False, repr=False)
    _pieces: Callable[[str], tuple[KeyPiece, ...] | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = "".join(
            f"{re.escape(literal)}({pattern})"
            for literal, pattern in zip(self.literals, self.patterns, strict=False)
        )
        object.__setattr__(
            self, "_split", re.compile(parts + re.escape(self.literals[-1]), re.DOTALL).fullmatch
        )
        object.__setattr__(self, "_pieces", lru_cache(maxsize=_TEXTS)(self._read))

    def split(self, text: str) -> tuple[str, ...] | None:
        """Return the text of each field; None if the text does not match the template."""
        parts = self._split(text)
        return None if parts is None else parts.groups()

    def value(self, position: int, text: str) -> str:
        """Return a field's value for its text; raise ValueError, KeyError or TavolaError if it has none."""
        decode = self.decoders[position]
        return text if decode is None else format_value(decode(text))

    def pieces(self, text: str) -> tuple[KeyPiece, ...] | None:
        """Return a text split into pieces; None if it does not match the template."""
        return self._pieces(text)

    def _read(self, text: str) -> tuple[KeyPiece, ...] | None:
        written = self.split(text)
        if written is None:
            return None
        try:
            values = [self.value(position, text) for position, text in enumerate(written)]
        except (ValueError, KeyError, TavolaError):
            return None
        return _pieces(self.literals, self.fields, written, values)


def strict_reader(bound: BoundTemplate) -> KeyReader:
    """Return a reader for keys that Tavola wrote."""
    steps = bound.steps
    return KeyReader(
        (*(step.literal for step in steps), bound.tail),
        tuple("shard" if step.field == SHARD else step.field for step in steps),
        tuple(step.part.decode for step in steps),
        tuple(step.part.pattern for step in steps),
        tuple(
            position
            for position, step in enumerate(steps)
            if step.part.kind not in _PLAIN or step.part.descending
        ),
    )


def loose_reader(template: Template) -> KeyReader:
    """Return a reader that matches only the literals of a template, for keys written by other code."""
    literals = [""]
    fields: list[str] = []
    for segment in template.segments:
        if isinstance(segment, Placeholder):
            fields.append(segment.field)
            literals.append("")
        else:
            literals[-1] += segment
    last = literals[-1] == ""
    patterns = [".+?"] * len(fields)
    if fields and last:
        patterns[-1] = ".+"
    return KeyReader(tuple(literals), tuple(fields), (None,) * len(fields), patterns)


def field_reader(name: str | None) -> KeyReader:
    """Return a reader for a key attribute that is a field itself."""
    return KeyReader(("", ""), (name,), (None,), (".*",))


def guess_parts(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Guess the literals of a key without a template; return them and the texts between them."""
    literals = [""]
    written: list[str] = []
    at = 0
    match = _WORD.match(text)
    delimiter = text[match.end() - 1] if match is not None else ""
    while match is not None and match.end() < len(text):
        literals[-1] += text[at : match.end()]
        at = match.end()
        end = text.find(delimiter, at)
        if end < 0:
            break
        written.append(text[at:end])
        literals.append(delimiter)
        at = end + 1
        match = _WORDS[delimiter].match(text, at)
    if at < len(text) or literals == [""]:
        written.append(text[at:])
        literals.append("")
    return tuple(literals), tuple(written)


@lru_cache(maxsize=_TEXTS)
def guessed_pieces(text: str) -> tuple[KeyPiece, ...]:
    """Return a key without a template, split into guessed pieces."""
    literals, written = guess_parts(text)
    return _pieces(literals, (None,) * len(written), written, written)


def leading_word(text: str) -> str | None:
    """Return the first word of a key if a delimiter follows it."""
    match = _WORD.match(text)
    return None if match is None else match[1]


def _pieces(
    literals: Sequence[str], fields: Sequence[str | None], written: Sequence[str], values: Sequence[str]
) -> tuple[KeyPiece, ...]:
    pieces: list[KeyPiece] = []
    for literal, name, text, value in zip(literals, fields, written, values, strict=False):
        if literal:
            pieces.append(KeyPiece(literal))
        pieces.append(KeyPiece(text, name, value))
    if literals[-1]:
        pieces.append(KeyPiece(literals[-1]))
    return tuple(pieces)


def format_value(value: Any) -> str:
    """Return a field's value as text."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return str(value)
