"""Blobs: values too large for an item, in a folder or in S3, with the item saying where.

An item holds 400 KB, and each of its reads and writes is paid by size. A `Blob` is a field that is small either way: short
values are inside it, long ones in a blob store, under the name of their own SHA-256. Both are compressed where that helps and
checked when they are read.

    class Document(Entity, table=Desk):
        document_id: Attr[str]
        body: Attr[Blob]
        …

    blobs = Blobs(db, FolderBlobs("blobs"))
    db.put(Document(document_id="d1", body=blobs.keep(text.encode())))
    blobs.read(document.body)

The blob is written first and the item after, so no item ever points to nothing. A write that fails in between leaves a
blob that nobody points to: `sweep` deletes those, and nothing else deletes any, because equal values share one.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from tavola import Fault
from tavola.limits import ITEM_BYTES_MAX
from tavola.model import Entity, Table
from tavola.patterns.recipe import D_co, PatternError, Recipe, RecipeRefused, Steps, ask, verb, work

INLINE_BYTES_MAX = 16 * 1024  # what stays inside the item unless told otherwise
_SIZE = "Item size has exceeded"  # how DynamoDB says so
_HELPS = 0.9  # compressed is kept if it is less than this of plain


class Blob(BaseModel):
    """A value that is in the item, or in a blob store: a field's type."""

    model_config = ConfigDict(frozen=True)

    sha256: str  # of the value itself
    size: int  # of the value itself, in bytes
    encoding: Literal["plain", "zlib"] = "plain"
    data: bytes | None = None  # as encoded; None: it is in the store
    place: str | None = None  # where in the store; None: it is here


class BlobMissing(PatternError):
    """A blob that an item points to and that its store does not have."""

    def __init__(self, blob: Blob) -> None:
        self.blob = blob
        super().__init__(
            f"The store has no blob {blob.place!r}, of {blob.size:,} bytes; is it the store that wrote the item, and were "
            "all tables given to sweep()?"
        )


class BlobDamaged(PatternError):
    """A blob that is not what was written."""

    def __init__(self, blob: Blob, found: str) -> None:
        self.blob = blob
        self.found = found
        super().__init__(
            f"The blob {blob.place or 'in the item'!r} has the checksum {found}, and {blob.sha256} was written; restore it"
        )


class ItemTooLarge(PatternError):
    """An entity that no item can hold, with its fields by size."""

    def __init__(self, entity: Entity) -> None:
        self.entity = entity
        self.fields = large_fields(entity)
        told = ", ".join(f"{name} {size:,}" for name, size in self.fields[:3])
        super().__init__(
            f"The {type(entity).__name__} is larger than the {ITEM_BYTES_MAX:,} bytes (400 KB) that an item holds. Its largest fields, "
            f"in bytes of JSON: {told}. Make the first a Blob, and keep() its value"
        )


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A blob as its store lists it."""

    name: str
    size: int
    written: datetime  # when it was written last


class BlobStore(Protocol):
    """Where blobs are: bytes under names, which are never changed."""

    def put(self, name: str, data: bytes) -> None:
        """Store bytes durably; over the same bytes, note that they were written now."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return the bytes under a name, None if there are none."""
        ...

    def delete(self, name: str) -> None:
        """Delete a blob; one that is not there is no error."""
        ...

    def written(self, name: str) -> datetime | None:
        """Return when a blob was written last, None if it is not there."""
        ...

    def list(self) -> Iterator[StoredBlob]:
        """Give every blob."""
        ...


class FolderBlobs:
    """Blobs as files of a folder, two levels deep; a file appears whole or not at all."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def put(self, name: str, data: bytes) -> None:
        """Write a file beside its place and move it there when it is safe on the disk."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(made).replace(path)
        except BaseException:
            Path(made).unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def get(self, name: str) -> bytes | None:
        """Return a file's bytes."""
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._path(name).unlink(missing_ok=True)

    def written(self, name: str) -> datetime | None:
        """Return when a file was written."""
        try:
            return datetime.fromtimestamp(self._path(name).stat().st_mtime, UTC)
        except FileNotFoundError:
            return None

    def list(self) -> Iterator[StoredBlob]:
        """Give every file; what a writer that died left half done is none."""
        for path in sorted(self.folder.glob("*/*")):
            if not path.name.startswith("."):
                told = path.stat()
                yield StoredBlob(path.name, told.st_size, datetime.fromtimestamp(told.st_mtime, UTC))

    def _path(self, name: str) -> Path:
        if not name.isalnum():
            raise RecipeRefused("FolderBlobs", f"{name!r} is no name of a blob")
        return self.folder / name[:2] / name


class S3Blobs:
    """Blobs as objects of a bucket, through a client that you make: `S3Blobs(boto3.client("s3"), "my-bucket")`."""

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
            found = self.client.get_object(Bucket=self.bucket, Key=self.prefix + name)
        except Exception as error:
            if _absent(error):
                return None
            raise
        return bytes(found["Body"].read())

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.client.delete_object(Bucket=self.bucket, Key=self.prefix + name)

    def written(self, name: str) -> datetime | None:
        """Return when an object was written."""
        try:
            found = self.client.head_object(Bucket=self.bucket, Key=self.prefix + name)
        except Exception as error:
            if _absent(error):
                return None
            raise
        written = found["LastModified"]
        assert isinstance(written, datetime)
        return written

    def list(self) -> Iterator[StoredBlob]:
        """Give every object under the prefix."""
        more: dict[str, str] = {}
        while True:
            page = self.client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix, **more)
            for told in page.get("Contents", ()):
                yield StoredBlob(told["Key"][len(self.prefix) :], told["Size"], told["LastModified"])
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}


def _absent(error: Exception) -> bool:
    """Return whether an error of botocore, which is not imported here, says that there is no such object."""
    told: Mapping[str, Any] = getattr(error, "response", None) or {}
    return told.get("Error", {}).get("Code") in ("NoSuchKey", "404", "NotFound")


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found."""

    orphans: tuple[StoredBlob, ...]  # that no item pointed to
    kept: int  # blobs that some item points to
    young: int  # blobs whose item may yet be written
    deleted: bool

    @property
    def bytes(self) -> int:
        """What the orphans take up."""
        return sum(orphan.size for orphan in self.orphans)


class Blobs(Recipe[D_co]):
    """Large values of a client's entities, in one store.

    Values of up to `inline` bytes, as compressed, stay in the item.
    """

    def __init__(self, db: D_co, store: BlobStore, *, inline: int = INLINE_BYTES_MAX) -> None:
        super().__init__(db)
        if not 0 <= inline < ITEM_BYTES_MAX:
            raise RecipeRefused(
                "Blobs",
                f"inline={inline:,} does not fit: an item of DynamoDB holds {ITEM_BYTES_MAX:,} bytes (400 KB), names of attributes "
                f"and all; {INLINE_BYTES_MAX:,} is a good measure",
            )
        self.store = store
        self.inline = inline

    @verb
    def keep(self, data: bytes) -> Steps[Blob]:
        """Return a value as what an entity's field holds; a long one is in the store when this returns.

        Put the entity then. If that fails, the blob stays behind until the next sweep.
        """
        told = sha256(data).hexdigest()
        packed = zlib.compress(data, 6)
        encoding: Literal["plain", "zlib"] = "zlib"
        if len(packed) >= len(data) * _HELPS:
            packed, encoding = data, "plain"
        if len(packed) <= self.inline:
            return Blob(sha256=told, size=len(data), encoding=encoding, data=packed)
        # Written also if it is there: a sweep must see that it is wanted again.
        yield from work(lambda: self.store.put(told, packed))
        return Blob(sha256=told, size=len(data), encoding=encoding, place=told)

    @verb
    def put(self, entity: Entity) -> Steps[None]:
        """Store an entity as `db.put` does; one that is too large is an `ItemTooLarge` that says what is."""
        try:
            yield from ask(lambda db: db.put(entity))
        except Fault as fault:
            if _SIZE in str(fault):
                raise ItemTooLarge(entity) from fault
            raise

    @verb
    def read(self, blob: Blob) -> Steps[bytes]:
        """Return a value whole, as it was given to `keep`; `BlobDamaged` if it is not."""
        packed = blob.data
        if blob.place is not None:
            packed = yield from work(lambda: self.store.get(blob.place or ""))
        if packed is None:
            raise BlobMissing(blob)
        try:
            data = zlib.decompress(packed) if blob.encoding == "zlib" else packed
        except zlib.error as error:
            raise BlobDamaged(blob, sha256(packed).hexdigest()) from error
        found = sha256(data).hexdigest()
        if found != blob.sha256:
            raise BlobDamaged(blob, found)
        return data

    @verb
    def sweep(
        self, *tables: type[Table], older: timedelta = timedelta(days=1), delete: bool = True
    ) -> Steps[Swept]:
        """Delete the blobs that no item of these tables points to: give every table whose items have some.

        The tables are scanned. What was written less than `older` ago is left: its item may be on its way. So `older` must be
        longer than the longest time between `keep` and the put.
        """
        if not tables:
            raise RecipeRefused(
                "Blobs.sweep", "give every table whose items have blobs; all other blobs are deleted"
            )
        limit = datetime.fromtimestamp(self.clock.now(), UTC) - older
        stored = yield from work(lambda: tuple(self.store.list()))
        wanted: set[str] = set()
        for table in tables:
            yield from self._mark(table, wanted)
        kept = [blob for blob in stored if blob.name in wanted]
        old = [blob for blob in stored if blob.name not in wanted and blob.written < limit]
        orphans: list[StoredBlob] = []
        for blob in old:
            orphans += yield from self._drop(blob, limit, delete)
        return Swept(tuple(orphans), len(kept), len(stored) - len(kept) - len(orphans), delete)

    def _mark(self, table: type[Table], wanted: set[str]) -> Steps[None]:
        cursor: str | None = None
        while True:
            page = yield from self._page(table, cursor)
            for entity in page.items:
                wanted.update(places(entity))
            cursor = page.cursor
            if cursor is None:
                return

    def _page(self, table: type[Table], cursor: str | None) -> Steps[Any]:
        return (yield from ask(lambda db: db.scan_table(table, cursor=cursor, consistent=True)))

    def _drop(self, blob: StoredBlob, limit: datetime, delete: bool) -> Steps[tuple[StoredBlob, ...]]:
        """Delete a blob and return it; nothing if it was written again since it was listed."""
        written = yield from work(lambda: self.store.written(blob.name))
        if written is None or written >= limit:
            return ()
        if delete:
            yield from work(lambda: self.store.delete(blob.name))
        return (blob,)


def places(value: Any) -> Iterator[str]:
    """Give the names of all blobs in an entity, however deep in its fields."""
    if isinstance(value, Blob):
        if value.place is not None:
            yield value.place
    elif isinstance(value, BaseModel):
        for member in value.__dict__.values():
            yield from places(member)
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from places(member)
    elif isinstance(value, list | tuple | set | frozenset):
        for member in value:
            yield from places(member)


def large_fields(entity: Entity) -> list[tuple[str, int]]:
    """Return the fields of an entity by their size as JSON, the largest first: what to make a `Blob` of."""
    sizes = {name: len(entity.model_dump_json(include={name})) for name in type(entity).model_fields}
    return sorted(sizes.items(), key=lambda told: -told[1])
