"""Errors of reading foreign files, with the file, the place and the next step."""

from __future__ import annotations

from tavola.errors import ErrorKind, TavolaError


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
