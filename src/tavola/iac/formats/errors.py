"""FormatRefused: a foreign file that no design can be read from, with the place and the next step."""

from __future__ import annotations

from tavola.errors import ErrorKind, TavolaError


class FormatRefused(TavolaError):
    """Why a file gives no design: the file, the place in it, what is wrong, what to do."""

    def __init__(self, reason: str, place: str = "", file: str = "") -> None:
        self.reason = reason
        self.place = place  # a line and column, or the path of a member
        self.file = file
        where = ", ".join(each for each in (file, place) if each)
        super().__init__(f"{where}: {reason}" if where else reason)

    def within(self, file: str) -> FormatRefused:
        """Return the same refusal with the file that it is about."""
        again = type(self)(self.reason, self.place, self.file or file)
        for note in getattr(self, "__notes__", ()):
            again.add_note(note)
        return again


class FormatUnknown(FormatRefused):
    """A file that is of no format that is known, or does not parse as one."""


class FileMissing(FormatRefused):
    """A file that is not there."""

    kind = ErrorKind.NOT_FOUND
