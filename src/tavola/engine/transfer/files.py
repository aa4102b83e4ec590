"""Files: written so that whoever finds one finds it whole.

A file grows under a name of its own, `….part`, and takes its final name when it is complete and on the disk.
A growing file is written from the place that the job last kept: what a slice wrote that was then undone, or
cut short by a crash, is written over.
"""

from __future__ import annotations

import os
from base64 import b64encode
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from zlib import crc32

from tavola.folders import sync_folder, write_whole

PART = ".part"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Sums:
    """A finished file's checksums, as S3 tells them."""

    md5: str  # base64
    etag: str
    crc: int


def part_of(path: Path) -> Path:
    """Return the name under which a file grows."""
    return path.with_name(path.name + PART)


def append_at(path: Path, at: int, data: bytes) -> bool:
    """Write data into a growing file from a place on, and end it there; tell whether that could be done.

    It cannot where the file is shorter than it was: a crash has lost what the system had not yet written. One
    that has its final name already grows again: the slice that gave it the name was undone.
    """
    part = part_of(path)
    if at == 0:
        part.parent.mkdir(parents=True, exist_ok=True)
    elif not part.exists() and path.exists():
        os.replace(path, part)
    mode = "r+b" if part.exists() else "w+b"
    with part.open(mode) as file:
        if file.seek(0, os.SEEK_END) < at:
            return False
        file.seek(at)
        file.truncate()
        file.write(data)
    return True


def publish(path: Path, size: int, crc: int) -> Sums | None:
    """Give a growing file its final name, once it is on the disk; None where it is not what was written.

    A second time finds the file under its final name and says the same.
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
    """Write a small file at once, in place of one that may be there, in a folder that need not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def checksum_of(data: bytes) -> str:
    """Return the MD5 of data in base64, which is how S3 tells it; it guards against accidents alone."""
    return b64encode(md5(data, usedforsecurity=False).digest()).decode()


def _sums_of(descriptor: int, size: int) -> Sums | None:
    digest = md5(usedforsecurity=False)
    crc = at = 0
    while at < size:
        data = os.pread(descriptor, min(_CHUNK_BYTES, size - at), at)
        if not data:
            return None
        digest.update(data)
        crc = crc32(data, crc)
        at += len(data)
    return Sums(b64encode(digest.digest()).decode(), f"{digest.hexdigest()}-1", crc)
