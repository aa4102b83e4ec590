"""Blobs: values too large for an item, stored in a folder or in S3; the item holds a reference.

An item holds at most 400 KB, and every read and write is billed by its size. A `Blob` field stays small: short values are
stored inside it, long ones in a blob store. Both are compressed if that helps, and verified by digest when read.

    class Document(Entity, table=Desk):
        document_id: Attr[str]
        body: Attr[Blob]
        …

    blobs = Blobs(db, FolderBlobs("blobs"))
    db.put(Document(document_id="d1", body=blobs.keep(text.encode())))
    blobs.read(document.body)

The blob is written before the item, so a reference never dangles. Each `keep` writes a new blob and no blob is ever
overwritten, so a blob that no item references is garbage, unless its item is just being written. `sweep` therefore deletes only
blobs that two sweeps, some time apart, both found unreferenced. Nothing else deletes a blob.

What it gives up: no transaction covers item and blob, so a crash between the two leaves garbage until the next sweeps.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, TypeVar, overload

from pydantic import BaseModel, ConfigDict

from tavola.client.connection import AsyncConnection, Connection
from tavola.client.errors import ItemSizeExceeded
from tavola.client.stored import StoredPage, scan_stored
from tavola.errors import ErrorKind
from tavola.limits import ITEM_BYTES_MAX
from tavola.model import Condition, Entity, Table
from tavola.patterns.blob_stores import NAME_CHARACTERS, BlobStore, StoredBlob
from tavola.patterns.recipe import (
    D_co,
    PatternError,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    recipe_method,
    run_blocking,
)

INLINE_BYTES_MAX = 16 * 1024  # larger values go to the store, by default
_HELPS = 0.9  # compressed bytes are used if they are less than this fraction of the plain ones
_NOTES = "sweepnotes"  # name in the store under which a sweep lists what the next one may delete
_NAMES = re.compile(f"(?=([0-9a-f]{{{NAME_CHARACTERS}}}))")

E = TypeVar("E", bound=Entity)


class Blob(BaseModel):
    """The type of a field whose value is inside the item or in a blob store."""

    model_config = ConfigDict(frozen=True)

    sha256: str  # of the value itself
    size: int  # of the value itself, in bytes
    encoding: Literal["plain", "zlib"] = "plain"
    data: bytes | None = None  # encoded; None: it is in the store
    place: str | None = None  # name in the store; None: the value is in `data`


class BlobMissing(PatternError):
    """A blob that an item references and its store does not have."""

    code = "blob-lost"
    kind = ErrorKind.INTERNAL

    def __init__(self, blob: Blob) -> None:
        self.blob = blob
        super().__init__(
            f"The store has no blob {blob.place!r}, of {blob.size:,} bytes; is it the store that wrote the item, and were "
            "all tables given to sweep()?"
        )


class BlobDamaged(PatternError):
    """A blob whose content differs from what was written."""

    code = "blob-lost"
    kind = ErrorKind.INTERNAL

    def __init__(self, blob: Blob, found: str) -> None:
        self.blob = blob
        self.found = found
        super().__init__(
            f"The blob {blob.place or 'in the item'!r} has the checksum {found}, and {blob.sha256} was written; restore it"
        )


class ItemTooLarge(PatternError):
    """An entity larger than an item may be, with its fields by size."""

    kind = ErrorKind.TOO_LARGE

    def __init__(self, entity: Entity) -> None:
        self.entity = entity
        self.fields = large_fields(entity)
        largest = ", ".join(f"{name} {size:,}" for name, size in self.fields[:3])
        super().__init__(
            f"The {type(entity).__name__} is larger than the {ITEM_BYTES_MAX:,} bytes (400 KB) that an item holds. Its largest fields, "
            f"in bytes of JSON: {largest}. Make the first a Blob, and keep() its value"
        )


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a sweep."""

    orphans: tuple[StoredBlob, ...]  # unreferenced in this sweep and in an earlier one
    noted: tuple[StoredBlob, ...]  # unreferenced for the first time: a later sweep deletes them
    kept: int  # blobs that an item references
    young: int  # blobs whose item may yet be written
    deleted: bool

    @property
    def bytes(self) -> int:
        """The size of all orphans."""
        return sum(orphan.size for orphan in self.orphans)


class Blobs(Recipe[D_co]):
    """Large values of a client's entities, in one store.

    Values whose compressed size is at most `inline` bytes stay in the item.
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

    @recipe_method
    def keep(self, data: bytes) -> PatternProgram[Blob]:
        """Return a value as a field of an entity; a large one is in the store when this returns.

        Put the entity afterwards. If that fails, the blob stays until it is swept.
        """
        digest, packed, encoding = yield from run_blocking(lambda: _compress(data))
        if len(packed) <= self.inline:
            return Blob(sha256=digest, size=len(data), encoding=encoding, data=packed)
        # Equal values get separate blobs: a blob that is being deleted is never one that is needed again.
        name = digest + self.entropy.bytes((NAME_CHARACTERS - len(digest)) // 2).hex()
        yield from run_blocking(lambda: self.store.put(name, packed))
        return Blob(sha256=digest, size=len(data), encoding=encoding, place=name)

    @overload
    def put(self: Blobs[Connection], entity: E, *, when: Condition[E] | None = ...) -> E: ...
    @overload
    def put(
        self: Blobs[AsyncConnection], entity: E, *, when: Condition[E] | None = ...
    ) -> Coroutine[Any, Any, E]: ...
    def put(self, entity: Entity, *, when: Condition[Any] | None = None) -> Any:
        """Store an entity as `db.put` does; if it is too large, raise `ItemTooLarge`, which lists its largest fields."""
        return self.run_program(self._put(entity, when))

    def _put(self, entity: E, when: Condition[E] | None) -> PatternProgram[E]:
        try:
            return (yield from call_client(lambda db: db.put(entity, when=when)))
        except ItemSizeExceeded as fault:
            raise ItemTooLarge(entity) from fault

    @recipe_method
    def read(self, blob: Blob) -> PatternProgram[bytes]:
        """Return a value exactly as it was given to `keep`; raise `BlobDamaged` if its digest differs."""
        packed = blob.data
        if blob.place is not None:
            packed = yield from run_blocking(lambda: self.store.get(blob.place or ""))
        if packed is None:
            raise BlobMissing(blob)
        try:
            data = zlib.decompress(packed) if blob.encoding == "zlib" else packed
        except zlib.error as error:
            raise BlobDamaged(blob, sha256(packed).hexdigest()) from error
        digest = sha256(data).hexdigest()
        if digest != blob.sha256:
            raise BlobDamaged(blob, digest)
        return data

    @recipe_method
    def sweep(
        self, *tables: type[Table], older: timedelta = timedelta(days=1), delete: bool = True
    ) -> PatternProgram[Swept]:
        """Delete the blobs that no item of these tables has referenced for some time: give every table whose items have blobs.

        All items of the tables are scanned, including entities that this program does not know. Blobs written less than `older`
        ago are left alone: their item may not be written yet. Unreferenced blobs are noted, and deleted by the first sweep
        `older` later that finds them unreferenced as well. So `older` must exceed the longest time between `keep` and the put.
        """
        if not tables:
            raise RecipeRefused(
                "Blobs.sweep", "pass every table whose items have blobs; all other blobs are deleted"
            )
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        stored = yield from run_blocking(lambda: tuple(self.store.list()))
        referenced: set[str] = set()
        for table in tables:
            yield from self._collect_references(table, referenced)
        before = yield from run_blocking(self._notes)
        in_use = [blob for blob in stored if blob.name in referenced]
        old = [blob for blob in stored if blob.name not in referenced and blob.written <= now - older]
        orphans = [blob for blob in old if blob.name in before and before[blob.name] <= now - older]
        left = [blob for blob in old if blob not in orphans]
        if delete:
            yield from run_blocking(
                lambda: self._delete_and_note(orphans, {b.name: before.get(b.name, now) for b in left})
            )
            yield from run_blocking(lambda: self.store.tidy(now - older))
        noted = tuple(blob for blob in left if blob.name not in before)
        return Swept(tuple(orphans), noted, len(in_use), len(stored) - len(in_use) - len(old), delete)

    def _collect_references(self, table: type[Table], referenced: set[str]) -> PatternProgram[None]:
        after: dict[str, Any] | None = None
        while True:
            page = yield from self._page(table, after)
            for item in page.items:
                referenced.update(blob_names(item))
            after = page.after
            if after is None:
                return

    def _page(self, table: type[Table], after: dict[str, Any] | None) -> PatternProgram[StoredPage]:
        return (yield from call_client(lambda db: db.run(scan_stored(db.context, table, after))))

    def _notes(self) -> dict[str, datetime]:
        """Return the blobs that earlier sweeps found unreferenced, with the time of the first such sweep."""
        notes = self.store.get(_NOTES)
        if notes is None:
            return {}
        return {name: datetime.fromisoformat(since) for name, since in json.loads(notes).items()}

    def _delete_and_note(self, orphans: list[StoredBlob], notes: dict[str, datetime]) -> None:
        for blob in orphans:
            self.store.delete(blob.name)
        self.store.put(
            _NOTES, json.dumps({name: since.isoformat() for name, since in notes.items()}).encode()
        )


def inline_blob(data: bytes) -> Blob:
    """Return a small value as a field of an entity, stored in the item whatever its size."""
    digest, packed, encoding = _compress(data)
    return Blob(sha256=digest, size=len(data), encoding=encoding, data=packed)


def _compress(data: bytes) -> tuple[str, bytes, Literal["plain", "zlib"]]:
    """Return the digest of a value, and its bytes as stored: compressed if that helps."""
    digest, packed = sha256(data).hexdigest(), zlib.compress(data, 6)
    if len(packed) >= len(data) * _HELPS:
        return digest, data, "plain"
    return digest, packed, "zlib"


def blob_names(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all blobs in a stored item, at any depth: in maps and lists, in JSON as text or bytes."""
    for name, value in item.items():
        yield from _NAMES.findall(name)
        yield from _blob_names_in(value)


def _blob_names_in(value: Mapping[str, Any]) -> Iterator[str]:
    for tag, content in value.items():
        if tag == "M":
            yield from blob_names(content)
        elif tag == "L":
            for member in content:
                yield from _blob_names_in(member)
        elif tag in ("S", "SS"):
            for text in (content,) if tag == "S" else content:
                yield from _NAMES.findall(text)
        elif tag in ("B", "BS"):
            for text in (content,) if tag == "B" else content:
                yield from _NAMES.findall(b64decode(text).decode("latin-1"))


def large_fields(entity: Entity) -> list[tuple[str, int]]:
    """Return the fields of an entity by their size as JSON, largest first: candidates for a `Blob`."""
    sizes = {name: len(entity.model_dump_json(include={name})) for name in type(entity).model_fields}
    return sorted(sizes.items(), key=lambda entry: -entry[1])
