"""Durable and atomic writes of files."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk, so that a new file in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file's content atomically: a crash leaves the old or the new content. Raises OSError."""
    new = path.with_name(f".{path.name}.new")
    data = content.encode() if isinstance(content, str) else content
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
