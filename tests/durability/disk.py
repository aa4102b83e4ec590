"""Disk: a VFS under SQLite's checksum VFS that writes down what is done to files, and fails on demand.

The checksum VFS stands on whatever VFS is the default when it is first loaded, and keeps it for the life of
the process. So `install` comes before the first store is opened, in a process of its own.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any, Literal

import apsw

Kind = Literal["write", "sync", "truncate", "read"]
KINDS: tuple[Kind, ...] = ("write", "sync", "truncate", "read")

_CODES = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "read": apsw.SQLITE_IOERR_READ,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing done to a file; `kind` is also create, delete and failed-sync."""

    kind: str
    file: str
    offset: int = 0  # of a write; the new size of a truncation; 1 for a deletion that was synced
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which call fails: the n-th of a kind, that one alone or it and all after it."""

    kind: Kind
    nth: int
    sticky: bool = False
    full: bool = False  # as a full disk does, and not as a broken one
    short: bool = False  # half of the bytes are written before a write fails
    number: int = errno.EIO  # what the system gives as the reason


class Disk(apsw.VFS):
    """The files of SQLite, with a log of what was done to them and a plan of what fails."""

    def __init__(self) -> None:
        super().__init__("tavola-test-disk", "unix", makedefault=True)
        self.events: list[Event] | None = None
        self.calls: dict[str, int] = {}
        self.plan: Plan | None = None
        self.failed = 0

    def record(self) -> list[Event]:
        """Start a new log and return it."""
        self.events = []
        return self.events

    def arm(self, plan: Plan | None) -> None:
        """Count calls from now on and fail as planned; None fails nothing."""
        self.plan, self.calls, self.failed = plan, {}, 0

    def note(self, kind: str, file: str, offset: int = 0, data: bytes = b"") -> None:
        """Add to the log, if one is kept."""
        if self.events is not None:
            self.events.append(Event(kind, file, offset, data))

    def fails(self, kind: Kind) -> bool:
        """Count a call and tell whether it is one that fails."""
        if self.plan is None or self.plan.kind != kind:
            return False
        self.calls[kind] = nth = self.calls.get(kind, 0) + 1
        hit = nth == self.plan.nth or (self.plan.sticky and nth > self.plan.nth)
        self.failed += hit
        return hit

    def failure(self, kind: Kind) -> apsw.Error:
        """Return the error of a planned failure."""
        assert self.plan is not None
        if self.plan.full:
            return apsw.FullError("planted: no space")
        error = apsw.IOError(f"planted: {kind} failed")
        error.extendedresult = _CODES[kind]  # type: ignore[attr-defined]  # apsw looks for it
        return error

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802
        """Return what the system says of a planted failure: the disk is broken."""
        return errno.EIO if self.plan is None else self.plan.number, "planted"

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: Any
    ) -> bool:
        """Say nothing: a planted failure that SQLite passes over is no defect of the test."""
        return True

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        """Open a file that reports to this disk."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path and not os.path.exists(path):
            self.note("create", os.path.basename(path))
        return _File(self, name, flags, os.path.basename(path or ""))

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        """Delete a file."""
        super().xDelete(name, syncdir)
        self.note("delete", os.path.basename(name), int(syncdir))


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int], file: str) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._file = file

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: Any
    ) -> bool:
        return True

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if self._disk.fails("read"):
            raise self._disk.failure("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._disk.fails("write"):
            assert self._disk.plan is not None
            if self._disk.plan.short:
                super().xWrite(data[: len(data) // 2], offset)
                self._disk.note("write", self._file, offset, bytes(data[: len(data) // 2]))
            raise self._disk.failure("write")
        super().xWrite(data, offset)
        self._disk.note("write", self._file, offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        if self._disk.fails("truncate"):
            raise self._disk.failure("truncate")
        super().xTruncate(size)
        self._disk.note("truncate", self._file, size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._disk.fails("sync"):
            self._disk.note("failed-sync", self._file)
            raise self._disk.failure("sync")
        # The log says what was synced; syncing for real would only make the trials slow.
        self._disk.note("sync", self._file)


def install() -> Disk:
    """Put the disk under every store that this process will open; only before the first one."""
    assert "cksmvfs" not in apsw.vfs_names(), "the checksum VFS stands on another VFS already"
    return Disk()
