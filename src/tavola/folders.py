"""Folders: making a new name in one last, and a file appear whole."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Have a folder's entries on the disk, so that a file that is new in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: str | bytes) -> None:
    """Have a file hold this, or what it held before: never a part. Errors are the system's own."""
    fresh = path.with_name(f".{path.name}.new")
    data = content.encode() if isinstance(content, str) else content
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
