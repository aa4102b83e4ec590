"""Files that appear only when they are complete.

A file grows as `….part` and is renamed once it is complete and on disk. Writing continues at the position that the job
saved last, so output of a slice that was rolled back, or cut short by a crash, is overwritten.
"""

from __future__ import annotations

import os
from base64 import b64encode
from hashlib import md5
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from tavola.folders import sync_folder, write_whole

PART = ".part"
_CHUNK_BYTES = 1 << 20


class FileChecksums(Struct, frozen=True):
    """A finished file's checksums, in S3's format."""

    md5: str  # base64
    etag: str
    crc: int


def part_of(path: Path) -> Path:
    """Return the name of a file while it grows."""
    return path.with_name(path.name + PART)


def append_at(path: Path, offset: int, data: bytes) -> bool:
    """Write data at a position of a growing file and truncate it there; return whether that was possible.

    It is not if the file is shorter than `offset`: a crash lost data that was not yet on disk. A file with its final
    name grows again: the slice that renamed it was rolled back.
    """
    part = part_of(path)
    if offset == 0:
        part.parent.mkdir(parents=True, exist_ok=True)
    elif not part.exists() and path.exists():
        os.replace(path, part)
    mode = "r+b" if part.exists() else "w+b"
    with part.open(mode) as file:
        if file.seek(0, os.SEEK_END) < offset:
            return False
        file.seek(offset)
        file.truncate()
        file.write(data)
    return True


def publish(path: Path, size: int, crc: int) -> FileChecksums | None:
    """Rename a growing file to its final name once it is on disk; None if its content is not as written.

    Calling it again finds the file under its final name and returns the same.
    """
    part = part_of(path)
    grown = part if part.exists() else path
    try:
        with grown.open("r+b") as file:
            file.truncate(size)
            sums = _sums_of(file.fileno(), size)
            if sums is None or sums.crc != crc:
                return None
            os.fsync(file.fileno())
    except FileNotFoundError:
        return None
    if grown is part:
        os.replace(part, path)
        sync_folder(path.parent)
    return sums


def write_small(path: Path, data: bytes) -> None:
    """Write a small file atomically, creating its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def checksum_of(data: bytes) -> str:
    """Return the MD5 of data in base64, as S3 does; it protects against accidents only."""
    return b64encode(md5(data, usedforsecurity=False).digest()).decode()


def _sums_of(descriptor: int, size: int) -> FileChecksums | None:
    digest = md5(usedforsecurity=False)
    crc = at = 0
    while at < size:
        data = os.pread(descriptor, min(_CHUNK_BYTES, size - at), at)
        if not data:
            return None
        digest.update(data)
        crc = crc32(data, crc)
        at += len(data)
    return FileChecksums(b64encode(digest.digest()).decode(), f"{digest.hexdigest()}-1", crc)
