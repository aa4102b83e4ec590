"""Compact encoding of the parsed keys of a page of rows.

A thousand keys have only a few shapes, and each item already holds its key's text. So a page sends each shape once and, for
each key, only the number of its shape and the length of every value in it except the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tavola.errors import TavolaError
from tavola.studio.key_text import KeyReader, guess_parts
from tavola.studio.recognition import RecognisedItem, Recogniser
from tavola.studio.types import Item

KeyLengths = tuple[int, ...]
"""The number of a key's shape, then the lengths of all values but the last, as JavaScript counts characters."""


@dataclass(frozen=True, slots=True)
class KeyTextField:
    """A value between two literals: the field that it is of, if known, and what that has where it is written otherwise."""

    name: str | None
    values: Mapping[str, str]  # by what is written; a moment says it plainly, and is left out


@dataclass(frozen=True, slots=True)
class KeyTextShape:
    """How texts of a key attribute are made: literals, with a field between each two of them."""

    attribute: str
    literals: tuple[str, ...]
    fields: tuple[KeyTextField, ...]


_Memo = dict[str, KeyLengths]


class KeyEncoder:
    """Cuts the keys of one page, and gathers their shapes."""

    def __init__(self, recogniser: Recogniser, index: str | None) -> None:
        self._recogniser = recogniser
        self._index = index
        self._ways: dict[str | None, tuple[tuple[str, KeyReader | None, _Memo], ...]] = {}
        self._numbers: dict[tuple[str, tuple[str, ...], tuple[str | None, ...]], int] = {}
        self._shapes: list[KeyTextShape] = []

    @property
    def shapes(self) -> tuple[KeyTextShape, ...]:
        """The shapes of all keys that were cut, in the order of their numbers."""
        return tuple(self._shapes)

    def encode(self, item: Item, told: RecognisedItem) -> tuple[KeyLengths, ...]:
        """Return the keys of an item that are texts: the index's first, then the table's."""
        ways = self._ways.get(told.entity)
        if ways is None:
            readers = self._recogniser.key_readers(told.entity, self._index)
            ways = self._ways[told.entity] = tuple((name, reader, {}) for name, reader in readers)
        cuts: list[KeyLengths] = []
        for name, reader, memo in ways:
            value = item.get(name)
            text = None if value is None else value.get("S")
            if text is None:
                continue
            found = memo.get(text)
            if found is None:
                found = memo[text] = self._cut(name, reader, text)
            cuts.append(found)
        return tuple(cuts)

    def _cut(self, name: str, reader: KeyReader | None, text: str) -> KeyLengths:
        written = None if reader is None else reader.split(text)
        if reader is None or written is None or not self._tell(name, reader, written):
            literals, written = guess_parts(text)
            number = self._number(name, literals, (None,) * len(written))
        else:
            number = self._number(name, reader.literals, reader.fields)
        return (number, *map(_units, written[:-1]))

    def _tell(self, name: str, reader: KeyReader, written: tuple[str, ...]) -> bool:
        """Tell what the fields have that are written otherwise; False: what is written is no value of its field."""
        for at in reader.converted:
            text = written[at]
            try:
                value = reader.value(at, text)
            except (ValueError, KeyError, TavolaError):
                return False
            if value != text:
                shape = self._shapes[self._number(name, reader.literals, reader.fields)]
                shape.fields[at].values[text] = value  # type: ignore[index]  # its own dict, while the page is made
        return True

    def _number(self, name: str, literals: tuple[str, ...], fields: tuple[str | None, ...]) -> int:
        key = (name, literals, fields)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._shapes)
            self._shapes.append(
                KeyTextShape(name, literals, tuple(KeyTextField(field, {}) for field in fields))
            )
        return number


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
