"""The result of an import: a design, notes on what was left out, guessed or unknown, and sample items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.errors import ErrorKind, TavolaError
from tavola.model.document import Design
from tavola.values import Item


class FormatRefused(TavolaError):
    """A file that contains no readable design: the file, the place, the problem and the remedy."""

    def __init__(self, reason: str, place: str = "", file: str = "") -> None:
        self.reason = reason
        self.place = place  # a line and column, or the path of a member
        self.file = file
        where = ", ".join(each for each in (file, place) if each)
        super().__init__(f"{where}: {reason}" if where else reason)

    def within(self, file: str) -> FormatRefused:
        """Return the same error with its file."""
        again = type(self)(self.reason, self.place, self.file or file)
        for note in getattr(self, "__notes__", ()):
            again.add_note(note)
        return again


class FormatUnknown(FormatRefused):
    """A file of an unknown format, or one that does not parse."""


class FileMissing(FormatRefused):
    """A file that does not exist."""

    kind = ErrorKind.NOT_FOUND


_EXPLAINED_MAX = 4


@dataclass(frozen=True, slots=True)
class FormatNote:
    """Something that the user who imports or exports a design should know."""

    place: str  # in the foreign file's own names
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class ImportReport:
    """Collects notes, each once."""

    def __init__(self) -> None:
        self._notes: dict[FormatNote, None] = {}

    def add(self, place: str, message: str) -> None:
        """Add a note."""
        self._notes[FormatNote(place, message)] = None

    def attach_notes(self, refused: FormatRefused) -> FormatRefused:
        """Return an error with the first notes attached, which say what was left out."""
        for each in tuple(self._notes)[:_EXPLAINED_MAX]:
            refused.add_note(str(each))
        return refused

    @property
    def notes(self) -> tuple[FormatNote, ...]:
        """All notes, in their order."""
        return tuple(self._notes)


@dataclass(frozen=True, slots=True)
class SampleItem:
    """An item in a file, with its table and, if the file says so, its entity."""

    table: str
    item: Item
    entity: str = ""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """An imported design with a report and, if the file has any, sample items."""

    design: Design
    report: tuple[FormatNote, ...]
    format: str  # workbench, cloudformation, terraform, terraform-json, describe-table, mcp-schema, …
    samples: tuple[SampleItem, ...] = ()
    source: Mapping[str, Any] | None = None  # a Workbench model as it was, to write back onto
