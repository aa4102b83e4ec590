"""Blob stores: bytes under names, in a folder or in S3."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from tavola.folders import sync_folder
from tavola.patterns.recipe import RecipeRefused

NAME_CHARACTERS = 80  # the SHA-256 of the value and 8 random bytes, in hexadecimal digits
_NAME = re.compile(f"[0-9a-f]{{{NAME_CHARACTERS}}}")
_UNFINISHED = ".new-"  # prefix of a file that is being written


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A blob as its store lists it."""

    name: str
    size: int
    written: datetime  # when it was written last


class BlobStore(Protocol):
    """A store of bytes by name. A blob is never overwritten; the notes of sweeps are."""

    def put(self, name: str, data: bytes) -> None:
        """Store bytes durably, replacing what is there."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return the bytes under a name, None if there are none."""
        ...

    def delete(self, name: str) -> None:
        """Delete a blob; a missing one is not an error."""
        ...

    def list(self) -> Iterator[StoredBlob]:
        """Yield every blob, and nothing else that the store contains: see `is_blob`."""
        ...

    def tidy(self, before: datetime) -> None:
        """Remove unfinished files of writers that died before a moment."""
        ...


def is_blob(name: str) -> bool:
    """Return whether a name has the form of a blob's name."""
    return _NAME.fullmatch(name) is not None


class FolderBlobs:
    """Blobs as files of a folder, two levels deep; a file appears whole or not at all."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._durable: set[Path] = set()  # folders whose entries are known to be on disk

    def put(self, name: str, data: bytes) -> None:
        """Write a temporary file, sync it, and move it to its name."""
        path = self._path(name)
        self._make(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)

    def get(self, name: str) -> bytes | None:
        """Return a file's bytes."""
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._path(name).unlink(missing_ok=True)

    def list(self) -> Iterator[StoredBlob]:
        """Yield every file that is a blob."""
        for path in sorted(self.folder.glob("*/*")):
            if not is_blob(path.name):
                continue
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # another sweep has just deleted it
            yield StoredBlob(path.name, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def tidy(self, before: datetime) -> None:
        """Remove temporary files that were begun before a moment and never moved."""
        for path in self.folder.glob(f"*/{_UNFINISHED}*"):
            try:
                if path.stat().st_mtime < before.timestamp():
                    path.unlink()
            except FileNotFoundError:
                continue

    def _make(self, folder: Path) -> None:
        """Create a folder durably: a file survives a power cut only if the entries of its folders are synced as well."""
        if folder in self._durable:
            return
        above = folder.parent
        if not above.exists() and above != folder:
            self._make(above)
        folder.mkdir(exist_ok=True)
        sync_folder(above)
        self._durable.add(folder)

    def _path(self, name: str) -> Path:
        if not name.isalnum():
            raise RecipeRefused("FolderBlobs", f"{name!r} is not a valid blob name")
        return self.folder / name[:2] / name


class S3Blobs:
    """Blobs as objects of a bucket, through your own client: `S3Blobs(boto3.client("s3"), "my-bucket")`."""

    def __init__(self, client: Any, bucket: str, prefix: str = "blobs/") -> None:
        self.client = client
        self.bucket = bucket
        self.prefix = prefix

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        self.client.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=data)

    def get(self, name: str) -> bytes | None:
        """Return an object's bytes."""
        try:
            response = self.client.get_object(Bucket=self.bucket, Key=self.prefix + name)
        except Exception as error:
            if _is_missing_object(error):
                return None
            raise
        return bytes(response["Body"].read())

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.client.delete_object(Bucket=self.bucket, Key=self.prefix + name)

    def list(self) -> Iterator[StoredBlob]:
        """Yield every object under the prefix that is a blob."""
        next_page: dict[str, str] = {}
        while True:
            page = self.client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix, **next_page)
            for entry in page.get("Contents", ()):
                name = entry["Key"][len(self.prefix) :]
                if is_blob(name):
                    yield StoredBlob(name, entry["Size"], entry["LastModified"])
            if not page.get("IsTruncated"):
                return
            next_page = {"ContinuationToken": page["NextContinuationToken"]}

    def tidy(self, before: datetime) -> None:
        """Do nothing: an object appears whole or not at all."""


def _is_missing_object(error: Exception) -> bool:
    """Return whether an error of botocore (not imported here) says that the object does not exist."""
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return response.get("Error", {}).get("Code") in ("NoSuchKey", "404", "NotFound")
