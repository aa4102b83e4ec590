"""Checkpoints of triggers: how far each shard of a stream is handled, so that a restart continues there.

`TriggerCheckpoint` reads and writes the positions in any `CheckpointStore`. `CheckpointLog` is the store to use in
production: a trigger saves after every batch, so the file is a log to which each save appends only what changed:

    {"tavola":"checkpoints","version":1}
    9c1f03aa {"stream":"arn:…","shards":{"shardId-1":{"after":"21"}}}
    41b7e2d0 {"stream":"arn:…","shards":{"shardId-1":{"after":"29"},"shardId-0":null}}

Every line has a checksum and is synced before `save` returns, so a process killed at any moment leaves at most one torn
line at the end. A damaged line costs repeated work, never a lost record: `is_damaged` says that positions may be missing,
and the trigger then does not start at LATEST. A log that has grown far past its content is rewritten and renamed
over the old one. One trigger at a time owns the file, by a lock.
"""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import starmap
from pathlib import Path
from stat import S_IMODE
from types import TracebackType
from typing import Any

import msgspec

from tavola.client.checkpoints import CheckpointRefused, CheckpointStore
from tavola.client.streams import ShardPosition
from tavola.folders import sync_folder
from tavola.triggers.errors import FileInUse, TriggerFileRefused

_HEADER = b'{"tavola":"checkpoints","version":1}'
REWRITE_BYTES = 4 * 1024 * 1024  # a log longer than this, and than twice its content, is rewritten

_log = logging.getLogger("tavola.triggers")


class WindowPosition(msgspec.Struct, frozen=True):
    """An open tumbling window: its bounds in epoch seconds, and its state as JSON text."""

    start_s: int
    end_s: int
    state: str


class Position(ShardPosition, frozen=True, omit_defaults=True):
    """How far one shard is handled, with what its partition queues have handled beyond that."""

    factor: int = 1  # how many partition queues the next two belong to
    queues: dict[int, str] = msgspec.field(default_factory=dict)
    windows: dict[int, WindowPosition] = msgspec.field(default_factory=dict)


class TriggerCheckpoint:
    """The positions of every stream that a trigger has started, in a checkpoint store."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._streams: Mapping[str, Mapping[str, Any]] = (store.load() or {}).get("streams", {})

    @property
    def is_damaged(self) -> bool:
        """Whether positions may be missing, so that a stream without any may have been started."""
        return getattr(self._store, "is_damaged", False)

    def streams(self) -> tuple[str, ...]:
        """Return the ARNs of the streams that were started."""
        return tuple(sorted(self._streams))

    def load(self, stream_arn: str) -> dict[str, Position]:
        """Return the positions of a stream's shards, none if it was never started; refuse another table's."""
        table = table_arn(stream_arn)
        if self._streams and all(table_arn(arn) != table for arn in self._streams):
            raise CheckpointRefused(
                f"the checkpoints belong to another stream, {self.streams()[0]}, not {stream_arn}; use "
                "a separate file for each trigger"
            )
        return msgspec.convert(self._streams.get(stream_arn, {}), dict[str, Position], str_keys=True)

    def save(self, stream_arn: str, positions: Mapping[str, Position | None]) -> None:
        """Store positions, all or none of them; None removes a shard's."""
        shards = dict(self._streams.get(stream_arn, {}))
        for shard, position in positions.items():
            if position is None:
                shards.pop(shard, None)
            else:
                shards[shard] = msgspec.to_builtins(position, str_keys=True)
        streams = {**self._streams, stream_arn: shards}
        self._store.save({"streams": streams})
        self._streams = streams


class _LogLine(msgspec.Struct, frozen=True):
    stream: str
    shards: dict[str, dict[str, Any] | None]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_LogLine).decode


class CheckpointLog:
    """A checkpoint store for triggers in a file; one trigger at a time owns it."""

    def __init__(self, path: str | os.PathLike[str], *, rewrite_bytes: int = REWRITE_BYTES) -> None:
        self.path = Path(path)
        self.is_damaged = False  # a line of the file could not be read
        self._rewrite_bytes = rewrite_bytes
        self._streams: dict[str, dict[str, Any]] = {}
        self._closed = False
        try:
            self._file = _open_locked(self.path)
        except OSError as error:
            raise TriggerFileRefused(
                self.path, f"cannot be opened as a checkpoint file: {error.strerror}"
            ) from error
        try:
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    def load(self) -> dict[str, Any] | None:
        """Return the positions of all streams, as `TriggerCheckpoint` saves them."""
        return {"streams": self._streams} if self._streams else None

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Append the positions that changed; they are on the disk when this returns."""
        streams: Mapping[str, Mapping[str, Any]] = checkpoint["streams"]
        changes = b"".join(self._changed_lines(streams))
        try:
            if self._bytes + len(changes) > self._rewrite_bytes:
                self._rewrite()
            _write_all(self._file, changes)
            os.fdatasync(self._file)
        except OSError as error:
            self._truncate()
            raise TriggerFileRefused(self.path, f"cannot be written: {error.strerror}") from error
        self._bytes += len(changes)
        self._streams = {stream: dict(shards) for stream, shards in streams.items()}

    def clear(self) -> None:
        """Remove all positions."""
        self.save({"streams": {}})

    def close(self) -> None:
        """Close the file and release its lock."""
        if not self._closed:
            self._closed = True
            os.close(self._file)

    def __enter__(self) -> CheckpointLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        """Read the log; skip a damaged line, and cut off a torn one at the end."""
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)
        complete_lines = content[: content.rfind(b"\n") + 1]
        lines = complete_lines.split(b"\n")[:-1]
        torn = content[len(complete_lines) :]
        if not lines:
            if content and not _HEADER.startswith(content):
                raise TriggerFileRefused(self.path, "is not a checkpoint file; give another one")
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            _write_all(self._file, _HEADER + b"\n")
            os.fsync(self._file)
            sync_folder(self.path.parent)
            self._bytes = len(_HEADER) + 1
            return
        if lines[0] != _HEADER:
            raise TriggerFileRefused(self.path, "is not a checkpoint file; give another one")
        for number, line in enumerate(lines[1:], start=2):
            parsed = _parse_line(line)
            if parsed is None:
                self.is_damaged = True
                _log.warning(
                    "%s is damaged in line %d; records may be handled a second time",
                    self.path,
                    number,
                )
            else:
                self._apply(parsed)
        # A torn line was never saved. A complete line that lacks only its newline was, so the file is damaged.
        self.is_damaged = self.is_damaged or any(
            _parse_line(torn[:end]) for end in (len(torn), len(torn) - 1)
        )
        os.ftruncate(self._file, len(complete_lines))
        os.lseek(self._file, 0, os.SEEK_END)
        self._bytes = len(complete_lines)

    def _apply(self, line: _LogLine) -> None:
        shards = self._streams.setdefault(line.stream, {})
        for shard, position in line.shards.items():
            if position is None:
                shards.pop(shard, None)
            else:
                shards[shard] = position

    def _changed_lines(self, streams: Mapping[str, Mapping[str, Any]]) -> Iterator[bytes]:
        for stream in {**self._streams, **streams}:
            old, new = self._streams.get(stream, {}), streams.get(stream, {})
            changed = {shard: position for shard, position in new.items() if old.get(shard) != position}
            changed.update((shard, None) for shard in old if shard not in new)
            if changed:
                yield _format_line(stream, changed)

    def _truncate(self) -> None:
        """Remove a partly written line, so that the next one does not continue it."""
        with suppress(OSError):
            os.ftruncate(self._file, self._bytes)
            os.lseek(self._file, self._bytes, os.SEEK_SET)

    def _rewrite(self) -> None:
        """Replace the log by its content, if that is at most half as long."""
        lines = _HEADER + b"\n" + b"".join(starmap(_format_line, sorted(self._streams.items())))
        if 2 * len(lines) > self._bytes:
            return
        path = self.path.with_name(self.path.name + ".new")
        path.unlink(missing_ok=True)
        new_file = _open_locked(path)
        try:
            _write_all(new_file, lines)
            os.fsync(new_file)
            path.chmod(S_IMODE(os.fstat(self._file).st_mode))
            os.replace(path, self.path)
        except BaseException:
            os.close(new_file)
            raise
        sync_folder(self.path.parent)
        os.close(self._file)
        self._file, self._bytes = new_file, len(lines)


def table_arn(stream_arn: str) -> str:
    """Return the ARN of a stream's table."""
    return stream_arn.partition("/stream/")[0]


def _format_line(stream_arn: str, shards: dict[str, Any]) -> bytes:
    body = _encode(_LogLine(stream_arn, shards))
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _parse_line(line: bytes) -> _LogLine | None:
    """Return a line of the log, None if it is damaged."""
    checksum, _, body = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None


def _open_locked(path: Path) -> int:
    """Open and lock a file; if another file was renamed over it meanwhile, open that one."""
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
