"""Durable and atomic writes of files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE

PRIVATE_MODE = 0o600  # of files with data or secrets: for their owner only


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk, so that a new file in it survives a power cut."""
    with suppress(PermissionError):  # Windows cannot open folders, and does not need to
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Replace a file's content atomically: a crash leaves the old or the new content. Raises OSError.

    An existing file keeps its mode. A new one that is `private` can be read and written by its owner only.
    """
    new = path.with_name(f".{path.name}.new")
    data = content.encode() if isinstance(content, str) else content
    try:
        new.unlink(missing_ok=True)  # of a run that was killed; its mode is not ours
        with open(new, "wb", opener=_open_private if private else None) as file:
            with suppress(FileNotFoundError):
                new.chmod(S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, PRIVATE_MODE)
