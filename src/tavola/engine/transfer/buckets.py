"""A folder used as S3: its folders are buckets, their files objects.

The key of an object is its path below the bucket. A bucket exists if its folder does; it is never created implicitly, as on
S3. A request cannot reach outside the folder: keys with `..` are refused, and links that lead out are not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tavola.engine.transfer.errors import BucketMissing, PlaceRefused
from tavola.engine.transfer.files import PART
from tavola.engine.transfer.sources import ObjectReader

LOGS = ".logs"
"""The folder for logs, beside the buckets; not a valid bucket name."""

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,253}[a-zA-Z0-9]")
_PART_BYTES_MAX = 255  # the limit of file systems for one path component


class StoredObject(Struct, frozen=True):
    """An object of a bucket: key and size."""

    key: str
    bytes: int


class Buckets:
    """The folder of buckets, and the objects open for reading."""

    def __init__(self, root: str | os.PathLike[str], logs: str | os.PathLike[str] | None = None) -> None:
        """Use `root` as S3; `logs` is the folder for logs, by default one beside the buckets."""
        self.root = Path(root).expanduser().resolve()
        self.logs = self.root / LOGS if logs is None else Path(logs).expanduser().resolve()
        self._open: dict[str, tuple[str, ObjectReader]] = {}

    def has(self, bucket: str) -> bool:
        """Return whether a bucket exists."""
        return self._folder(bucket).is_dir()

    def place(self, bucket: str, key: str) -> Path:
        """Return the path of an object, whether or not it exists."""
        folder = self._folder(bucket)
        if not folder.is_dir():
            raise BucketMissing(bucket)
        path = folder.joinpath(*check_key(key).split("/")) if key else folder
        if not path.resolve().is_relative_to(folder.resolve()):
            raise PlaceRefused(f"{key!r} leads out of the bucket {bucket}")
        return path

    def log(self, *names: str) -> Path:
        """Return the path of a log, by the names of its group and stream."""
        assert all(name not in ("", ".", "..") and "/" not in name for name in names), "fixed names"
        return self.logs.joinpath(*names)

    def objects(self, bucket: str, prefix: str) -> list[StoredObject]:
        """Return the objects whose keys begin with a prefix, sorted by key; `data` also matches `data2/x`."""
        folder, _, _ = prefix.rpartition("/")
        top = self.place(bucket, folder)
        root = self._folder(bucket)
        stored_objects = [
            StoredObject(key, size)
            for key, size in _files(top, root)
            if key.startswith(prefix) and not key.endswith(PART)
        ]
        return sorted(stored_objects, key=lambda stored: stored.key.encode())

    def source(self, job: str, bucket: str, key: str, compression: str, at: int) -> ObjectReader:
        """Return an object as a job reads it; it stays open between slices.

        An object that was read past `at` is reopened: the slice that read further was rolled back.
        """
        opened = self._open.get(job)
        if opened is not None:
            if opened[0] == key and opened[1].position <= at:
                return opened[1]
            self.release(job)
        source = ObjectReader(self.place(bucket, key), compression)
        self._open[job] = key, source
        return source

    def release(self, job: str) -> None:
        """Close the objects that a job has open."""
        opened = self._open.pop(job, None)
        if opened is not None:
            opened[1].close()

    def close(self) -> None:
        """Close all objects."""
        for job in tuple(self._open):
            self.release(job)

    def _folder(self, bucket: str) -> Path:
        if not _NAME.fullmatch(bucket):
            raise PlaceRefused(f"{bucket!r} is not a valid bucket name")
        folder = self.root / bucket
        if not folder.resolve().is_relative_to(self.root):
            raise PlaceRefused(f"the bucket {bucket} leads out of the buckets folder")
        return folder


def check_key(key: str) -> str:
    """Return a key that is a valid path below its bucket; refuse any other, such as one with `..`."""
    if key.startswith("/"):
        raise PlaceRefused(f"{key!r} starts with a slash; a key is a path below its bucket")
    if "\0" in key or "\\" in key:
        raise PlaceRefused(f"{key!r} contains a NUL or a backslash, which a file path must not")
    for part in key.split("/"):
        if part in (".", ".."):
            raise PlaceRefused(f"{key!r} contains . or ..; a key is a path below its bucket")
        if len(part.encode(errors="replace")) > _PART_BYTES_MAX:
            raise PlaceRefused(f"{key[:40]!r}… has a path component of more than {_PART_BYTES_MAX} bytes")
    return key


def _files(top: Path, root: Path) -> Iterator[tuple[str, int]]:
    """Yield key and size of each file below a folder; links are not objects."""
    for folder, _, names in os.walk(top):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(root).as_posix(), path.stat().st_size
