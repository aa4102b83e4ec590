"""The result of an import: a design, notes on what was left out, guessed or unknown, and sample items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.errors import ErrorKind, TavolaError
from tavola.model.document import Design
from tavola.values import Item

_LINE = re.compile(r"line (\d+)(?:, column (\d+))?(?:, )?")


def _locate(file: str, place: str) -> str:
    """Return a place in a file in the form that editors and terminals open: "main.tf:12: aws_dynamodb_table.orders"."""
    line = _LINE.match(place)
    if line is None or not file:
        return ", ".join(each for each in (file, place) if each)
    position = ":".join(each for each in (file, *line.groups()) if each)
    return ": ".join(each for each in (position, place[line.end() :]) if each)


class FormatError(TavolaError):
    """A file without a readable design: names the file, the place in it, the problem and the fix."""

    code = "format-refused"

    def __init__(self, reason: str, place: str = "", file: str = "") -> None:
        self.reason = reason
        self.place = place  # a line and column, or the path of a member
        self.file = file
        super().__init__(": ".join(part for part in (_locate(file, place), reason) if part))

    def within(self, file: str) -> FormatError:
        """Return the same error with its file."""
        located = type(self)(self.reason, self.place, self.file or file)
        for note in getattr(self, "__notes__", ()):
            located.add_note(note)
        return located


class UnknownFormat(FormatError):
    """A file of an unknown format, or one that does not parse."""

    code = "format-unknown"


class DesignFileNotFound(FormatError):
    """A file that does not exist."""

    code = "file-missing"
    kind = ErrorKind.NOT_FOUND
    remedy = "Check the path."


_ATTACHED_NOTES_MAX = 4


@dataclass(frozen=True, slots=True)
class FormatNote:
    """Something that the user who imports or exports a design should know."""

    place: str  # in the foreign file's own names
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class ImportReport:
    """Collects notes, each once; `object_noun` is what the file's format calls an object."""

    def __init__(self, object_noun: str = "an object") -> None:
        self.object_noun = object_noun
        self._notes: dict[FormatNote, None] = {}

    def add(self, place: str, message: str) -> None:
        """Add a note."""
        self._notes[FormatNote(place, message)] = None

    def note_unwritten(self, design: Design, target: str) -> None:
        """Note the parts of a design that a format, such as `a Workbench model`, cannot hold."""
        for what, several in (
            ("needs", design.needs),
            ("policies", design.policies),
            ("ignored findings", design.ignores),
            ("views", design.views),
        ):
            if several:
                self.add("", f"{target} cannot hold {what}; {len(several)} not written")

    def attach_notes(self, refused: FormatError) -> FormatError:
        """Return an error with the first notes attached, which say what was left out."""
        for note in tuple(self._notes)[:_ATTACHED_NOTES_MAX]:
            refused.add_note(str(note))
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
