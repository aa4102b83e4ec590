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
_TEXTS = 4_096  # keys that are remembered as read: those of one partition come again in every row

_PLAIN = frozenset({"datetime", "date", "uuid"})  # read as they are written, unless they descend

Decode = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class KeyPiece:
    """A piece of a key's text: a literal, or a value with the field it is of, where that is known."""

    text: str  # as it stands in the key
    field: str | None = None
    value: str | None = None  # as the field has it; None: a literal


@dataclass(frozen=True, slots=True, eq=False)
class KeyReader:
    """Reads the texts that one template makes: literals, of which there is one more than fields, and these between them."""

    literals: tuple[str, ...]
    fields: tuple[str | None, ...]
    decoders: tuple[Decode | None, ...]  # None: the field has its value as it is written
    patterns: Sequence[str]
    converted: tuple[int, ...] = ()  # the places of fields whose value cannot be seen in what is written
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
        """Return what is written for each field; None: the template does not make this text."""
        parts = self._split(text)
        return None if parts is None else parts.groups()

    def value(self, at: int, written: str) -> str:
        """Return what a field has where this is written of it; raise ValueError, or an error of ours, where that is nothing."""
        decode = self.decoders[at]
        return written if decode is None else format_value(decode(written))

    def pieces(self, text: str) -> tuple[KeyPiece, ...] | None:
        """Return a text taken apart; None: the template does not make it."""
        return self._pieces(text)

    def _read(self, text: str) -> tuple[KeyPiece, ...] | None:
        written = self.split(text)
        if written is None:
            return None
        try:
            values = [self.value(at, each) for at, each in enumerate(written)]
        except (ValueError, KeyError, TavolaError):
            return None
        return _pieces(self.literals, self.fields, written, values)


def strict_reader(bound: BoundTemplate) -> KeyReader:
    """Return what reads keys that Tavola wrote."""
    steps = bound.steps
    return KeyReader(
        (*(step.literal for step in steps), bound.tail),
        tuple("shard" if step.field == SHARD else step.field for step in steps),
        tuple(step.part.decode for step in steps),
        tuple(step.part.pattern for step in steps),
        tuple(at for at, step in enumerate(steps) if step.part.kind not in _PLAIN or step.part.descending),
    )


def loose_reader(template: Template) -> KeyReader:
    """Return what reads keys by their literals alone: between them stands whatever other code wrote."""
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
    """Return what reads a key attribute that is a field itself."""
    return KeyReader(("", ""), (name,), (None,), (".*",))


def guess_parts(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the literals of a text of which no template is known, and what stands between them."""
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
    """Return a text of which no template is known, taken apart."""
    literals, written = guess_parts(text)
    return _pieces(literals, (None,) * len(written), written, written)


def leading_word(text: str) -> str | None:
    """Return the word that a key begins with, if a delimiter follows it."""
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
    """Return a field's value as a person reads it."""
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
