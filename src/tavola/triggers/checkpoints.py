"""Checkpoints: how far each shard is dealt with, kept so that a restart goes on from there.

`Checkpoints` is the port. The file is a log of JSON lines, each with its checksum, synced before `save`
returns: a process killed at any moment leaves at most one torn line. A line that is damaged only means that
some records are handed over a second time: where no other is left of a stream, `damaged` says that it may have
been begun, and it is not begun at LATEST again. When the log has grown it is written anew and put in the place of
the old one in one step.
"""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol

import msgspec

from tavola.folders import sync_folder
from tavola.triggers.errors import FileInUse, FileRefused

_HEADER = b'{"tavola":"checkpoints","version":1}'
REWRITE_BYTES = (
    4 * 1024 * 1024
)  # a log that has grown past this, and past twice what is in it, is written anew

_log = logging.getLogger("tavola.triggers")


class WindowPosition(msgspec.Struct, frozen=True):
    """An open tumbling window: its bounds in epoch seconds, and its state as JSON text."""

    start_s: int
    end_s: int
    state: str


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far one shard is dealt with."""

    after: str | None = None  # everything up to this sequence number
    finished: bool = False  # the shard is closed, and everything in it is dealt with
    since_s: float | None = None  # begun at LATEST then, and nothing is dealt with yet
    factor: int = 1  # how many lanes the next two are of
    lanes: dict[int, str] = {}
    windows: dict[int, WindowPosition] = {}


class Checkpoints(Protocol):
    """Keeps positions, by stream and shard."""

    @property
    def damaged(self) -> bool:
        """Tell whether positions may be lost, so that a stream without any may nevertheless have been begun."""
        ...

    def streams(self) -> tuple[str, ...]:
        """Return the streams that were begun, by their ARNs."""
        ...

    def load(self, stream_arn: str) -> dict[str, Position]:
        """Return the positions of a stream's shards; empty: this stream was never begun, unless `damaged`."""
        ...

    def save(self, stream_arn: str, positions: Mapping[str, Position | None]) -> None:
        """Keep positions, all or none of them, for good when this returns; None forgets a shard."""
        ...

    def close(self) -> None:
        """Let go; a second time does nothing."""
        ...


class MemoryCheckpoints:
    """Positions for as long as the process lives, for tests and for handlers that may begin anew."""

    damaged = False

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Position] = {}

    def streams(self) -> tuple[str, ...]:
        """Return the streams that were begun."""
        return _streams(self._kept)

    def load(self, stream_arn: str) -> dict[str, Position]:
        """Return the positions of a stream's shards."""
        return {shard: position for (arn, shard), position in self._kept.items() if arn == stream_arn}

    def save(self, stream_arn: str, positions: Mapping[str, Position | None]) -> None:
        """Keep positions."""
        _apply(self._kept, stream_arn, positions)

    def close(self) -> None:
        """Keep them nevertheless: a second trigger in the same process may go on."""


class _Line(msgspec.Struct, frozen=True):
    stream: str
    shards: dict[str, Position | None]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


class FileCheckpoints:
    """Positions in a file; one trigger at a time owns it."""

    def __init__(self, path: str | os.PathLike[str], *, rewrite_bytes: int = REWRITE_BYTES) -> None:
        self.path = Path(path)
        self._rewrite_bytes = rewrite_bytes
        self._kept: dict[tuple[str, str], Position] = {}
        self._damaged = False
        self._closed = False
        try:
            self._file = _open_locked(self.path)
        except OSError as error:
            raise FileRefused(
                self.path, f"cannot be opened as a checkpoint file: {error.strerror}"
            ) from error
        try:
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    @property
    def damaged(self) -> bool:
        """Tell whether a line of the file could not be read."""
        return self._damaged

    def streams(self) -> tuple[str, ...]:
        """Return the streams that were begun."""
        return _streams(self._kept)

    def load(self, stream_arn: str) -> dict[str, Position]:
        """Return the positions of a stream's shards; refuse a file that is of other tables' streams."""
        table = table_of(stream_arn)
        if self._kept and all(table_of(arn) != table for arn, _ in self._kept):
            raise FileRefused(
                self.path,
                f"holds the checkpoints of another stream, {self.streams()[0]}, and none of {stream_arn}; give "
                "each trigger a file of its own",
            )
        return {shard: position for (arn, shard), position in self._kept.items() if arn == stream_arn}

    def save(self, stream_arn: str, positions: Mapping[str, Position | None]) -> None:
        """Keep positions; they are on the disk when this returns."""
        line = _line(stream_arn, positions)
        try:
            if self._bytes + len(line) > self._rewrite_bytes:
                self._rewrite()
            _write_all(self._file, line)
            os.fdatasync(self._file)
        except OSError as error:
            self._undo()
            raise FileRefused(self.path, f"cannot be written: {error.strerror}") from error
        self._bytes += len(line)
        _apply(self._kept, stream_arn, positions)

    def close(self) -> None:
        """Close the file, and let another trigger have it."""
        if not self._closed:
            self._closed = True
            os.close(self._file)

    def __enter__(self) -> FileCheckpoints:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        """Take in what the file holds; a damaged line is passed over, and a torn end is cut off."""
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.split(b"\n")[:-1]
        torn = content[len(whole) :]
        if not lines:
            if content and not _HEADER.startswith(content):
                raise FileRefused(self.path, "is no checkpoint file of Tavola's; name another one")
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            _write_all(self._file, _HEADER + b"\n")
            os.fsync(self._file)
            sync_folder(self.path.parent)
            self._bytes = len(_HEADER) + 1
            return
        if lines[0] != _HEADER:
            raise FileRefused(self.path, "is no checkpoint file of Tavola's; name another one")
        for number, line in enumerate(lines[1:], start=2):
            found = _parse(line)
            if found is None:
                self._damaged = True
                _log.warning(
                    "%s is damaged in line %d; the records it stood for may be handled a second time",
                    self.path,
                    number,
                )
            else:
                _apply(self._kept, found.stream, found.shards)
        # A torn line was not saved. One that is whole but for its end was, and is damaged.
        self._damaged = self._damaged or any(_parse(torn[:end]) for end in (len(torn), len(torn) - 1))
        os.ftruncate(self._file, len(whole))
        os.lseek(self._file, 0, os.SEEK_END)
        self._bytes = len(whole)

    def _undo(self) -> None:
        """Take back a part of a line, so that the next one does not stand on it."""
        with suppress(OSError):
            os.ftruncate(self._file, self._bytes)
            os.lseek(self._file, self._bytes, os.SEEK_SET)

    def _rewrite(self) -> None:
        """Write what is in the log anew, if that makes it half as long or less."""
        lines = b"".join(self._lines())
        if 2 * len(lines) > self._bytes:
            return
        path = self.path.with_name(self.path.name + ".new")
        path.unlink(missing_ok=True)
        fresh = _open_locked(path)
        try:
            _write_all(fresh, lines)
            os.fsync(fresh)
            os.replace(path, self.path)
        except BaseException:
            os.close(fresh)
            raise
        sync_folder(self.path.parent)
        os.close(self._file)
        self._file, self._bytes = fresh, len(lines)

    def _lines(self) -> Iterator[bytes]:
        yield _HEADER + b"\n"
        for stream in self.streams():
            yield _line(stream, self.load(stream))


def table_of(stream_arn: str) -> str:
    """Return the ARN of a stream's table."""
    return stream_arn.partition("/stream/")[0]


def _streams(kept: Mapping[tuple[str, str], Position]) -> tuple[str, ...]:
    return tuple(sorted({stream for stream, _ in kept}))


def _apply(
    kept: dict[tuple[str, str], Position], stream_arn: str, positions: Mapping[str, Position | None]
) -> None:
    for shard, position in positions.items():
        if position is None:
            kept.pop((stream_arn, shard), None)
        else:
            kept[stream_arn, shard] = position


def _line(stream_arn: str, positions: Mapping[str, Position | None]) -> bytes:
    body = _encode(_Line(stream_arn, dict(positions)))
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _parse(line: bytes) -> _Line | None:
    """Return a line of the log; None: it is damaged."""
    checksum, _, body = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None


def _open_locked(path: Path) -> int:
    """Open a file for this process alone; a file that was put in its place meanwhile is opened instead."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except BlockingIOError as error:
            os.close(file)
            raise FileInUse(path) from error
        except FileNotFoundError:
            pass
        os.close(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
