"""Directory files: reloaded when they change, replaced atomically.

They hold secrets, so they are readable only by their owner.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.folders import sync_folder
from tavola.iam.directory import Directory, parse_directory, render_directory
from tavola.iam.errors import DirectoryFileError, IamError, InvalidDirectory

_LOOKED_S = 1.0  # how often a served file is checked for changes


def load_directory(path: Path) -> Directory:
    """Return the directory in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DirectoryFileError(f"cannot read {path}: {error}") from error
    try:
        return parse_directory(text)
    except InvalidDirectory as refused:
        raise InvalidDirectory(f"{path}: {refused.reason}", refused.place) from refused


def save_directory(path: Path, directory: Directory) -> None:
    """Replace the directory in a file; after a crash the file holds the old or the new one."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            beside.unlink()
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(render_directory(directory))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise DirectoryFileError(f"cannot write {path}: {error}") from error


class DirectoryFile:
    """A directory file that may change while it is in use.

    If a new version is invalid, the last valid one stays in effect and `trouble` says why.
    """

    def __init__(self, path: Path | str, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = Path(path)
        self.trouble: str | None = None
        self._clock = clock
        self._mark = _mark_of(self.path)
        self._directory = load_directory(self.path)
        self._looked_at_s = clock.now()

    def current(self) -> Directory:
        """Return the directory in the file; the same object while the file is unchanged."""
        now_s = self._clock.now()
        if not 0 <= now_s - self._looked_at_s < _LOOKED_S:
            self._looked_at_s = now_s
            mark = _mark_of(self.path)
            if mark != self._mark:
                self._mark = mark
                self._read()
        return self._directory

    def _read(self) -> None:
        try:
            self._directory = load_directory(self.path)
            self.trouble = None
        except IamError as error:
            self.trouble = str(error)


def _mark_of(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
