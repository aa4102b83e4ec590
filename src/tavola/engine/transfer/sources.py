"""One object of a bucket, read row by row from a position."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tavola.engine.transfer.compression import CompressedFile
from tavola.engine.transfer.errors import RowRefused, TextMalformed
from tavola.engine.transfer.lines import RowSpan, TransferRow

_CHUNK_BYTES = 128 * 1024
_ROW_BYTES_MAX = 4 * 1024 * 1024  # more than the text of any item that fits into a table
_SKIPPED_BYTES_MAX = 8 * 1024 * 1024  # bytes of a compressed file skipped in one slice


class ReadRow(Protocol):
    """A row parser: returns the row at a position, None if more input is needed."""

    def __call__(self, data: bytes, start: int, *, last: bool) -> RowSpan | None:
        """Return the row and where it ends."""
        ...


class ObjectReader:
    """The buffered part of an object's text, and the position of the next row."""

    __slots__ = ("_at", "_data", "_ended", "_file", "_from")

    def __init__(self, path: Path, compression: str) -> None:
        self._file = CompressedFile(path, compression)
        self._data = b""
        self._from = 0  # position of the buffer in the text
        self._at = 0  # bytes of the buffer already read
        self._ended = False

    @property
    def position(self) -> int:
        """Return how many bytes of the text were read."""
        return self._from + self._at

    @property
    def file_bytes(self) -> int:
        """The number of bytes of the file that were read."""
        return self._file.file_bytes

    def skip_to(self, position: int) -> bool:
        """Skip to a position, as far as one slice allows; return whether it is reached."""
        budget = _SKIPPED_BYTES_MAX
        while self.position < position and budget > 0:
            step = min(position - self.position, len(self._data) - self._at)
            self._at += step
            budget -= step
            if self.position < position and not self._fill():
                raise TextMalformed("The object became shorter while it was being read")
        return self.position == position

    def row(self, read: ReadRow) -> TransferRow | RowRefused | None:
        """Return the next row; None after the last."""
        while True:
            span = read(self._data, self._at, last=self._ended)
            if span is not None:
                self._at = span.end
                return span.row
            if self._ended:
                self._at = len(self._data)
                return None
            # A row is parsed again from its start: with twice the text each time, that costs twice the row at most.
            left = len(self._data) - self._at
            while self._fill() and len(self._data) < 2 * left:
                pass

    def head(self, parse: Callable[..., tuple[tuple[str, ...], int] | None]) -> tuple[str, ...] | None:
        """Return the beginning of the text as `parse` reads it; None if it is empty."""
        assert self.position == 0, "the head comes first"
        while True:
            parsed = parse(self._data, last=self._ended)
            if parsed is not None:
                self._at = parsed[1]
                return parsed[0]
            if self._ended:
                return None
            self._fill()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fill(self) -> bool:
        """Read more of the text; return whether there was any."""
        if len(self._data) - self._at > _ROW_BYTES_MAX:
            raise TextMalformed(f"A row has more than {_ROW_BYTES_MAX} bytes")
        chunk = self._file.read(_CHUNK_BYTES)
        if not chunk:
            self._ended = True
            return False
        self._data = self._data[self._at :] + chunk
        self._from += self._at
        self._at = 0
        return True
