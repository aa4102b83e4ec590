"""Loads: the objects under a prefix, read row by row over many slices.

Imports and bulk loads share the reading: objects by key, rows in order; an invalid row is reported and skipped, and an
unreadable object is abandoned at that point. They differ in where the rows go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tavola.clock import monotonic
from tavola.engine.storage import Store
from tavola.engine.transfer.buckets import Buckets, StoredObject
from tavola.engine.transfer.csv_rows import Columns, check_names, read_csv, read_header, skip_mark
from tavola.engine.transfer.errors import RowRefused, TextMalformed
from tavola.engine.transfer.layout import is_beside_data
from tavola.engine.transfer.lines import TransferRow, read_ion, read_json
from tavola.engine.transfer.sources import ObjectReader, ReadRow

_OBJECT = "load-object"
_SLICE_ROWS = 256
_SLICE_BYTES = 256 * 1024
_SLICE_S = 0.001  # a slice may end earlier than that, and one row may take longer


class LoadProgress(msgspec.Struct, frozen=True):
    """The progress of a load: current object, position in its text, and counts."""

    objects: int = 0
    object: int = 0
    at: int = 0  # position in the object's text
    index: int = 0  # of the next row in the object
    names: list[str] | None = None  # column names from the object's header
    bytes: int = 0  # text of all previous objects
    taken: int = 0  # file size of all previous objects; stored under this name
    processed: int = 0
    written: int = 0
    failed: int = 0


class LoadFormat(msgspec.Struct, frozen=True):
    """How objects are parsed."""

    format: str
    compression: str
    delimiter: str = ","
    headers: tuple[str, ...] | None = None
    types: dict[str, str] = msgspec.field(default_factory=dict)


class FailedRow(msgspec.Struct, frozen=True):
    """A row that was not written, and why."""

    key: str
    index: int
    message: str
    row: TransferRow | None = None


class LoadSlice(msgspec.Struct, frozen=True):
    """The result of one slice."""

    reached: LoadProgress
    failed: list[FailedRow]
    bytes: int  # text read so far, in all objects
    file_bytes: int  # read so far
    done: bool


class Load(msgspec.Struct, frozen=True):
    """The objects of one load and their format."""

    id: str
    bucket: str
    format: LoadFormat
    store: Store
    buckets: Buckets

    def objects(self, prefix: str) -> list[StoredObject]:
        """Return the objects to read, without the manifests of an export."""
        return [
            object_
            for object_ in self.buckets.objects(self.bucket, prefix)
            if not is_beside_data(object_.key)
        ]

    def begin(self, objects: list[StoredObject]) -> LoadProgress:
        """Store the list of objects to read; objects that appear later are not part of this load."""
        for position, object_ in enumerate(objects):
            data = msgspec.json.encode((object_.key, object_.bytes))
            self.store.put_record(_OBJECT, f"{self.id}/{position:06d}", data)
        return LoadProgress(objects=len(objects))

    def step(self, reached: LoadProgress, write: Callable[[TransferRow], bool]) -> LoadSlice:
        """Read the next rows and pass them to `write`, which raises `RowRefused` or returns whether it wrote."""
        if reached.object >= reached.objects:
            self.buckets.release(self.id)
            return LoadSlice(reached, [], reached.bytes, reached.taken, done=True)
        key, size = self._object(reached.object)
        failed: list[FailedRow] = []
        processed, written = reached.processed, reached.written
        source: ObjectReader | None = None
        at, index, names, ended = reached.at, reached.index, reached.names, False
        try:
            source = self.buckets.source(self.id, self.bucket, key, self.format.compression, at)
            if not source.skip_to(at):
                return LoadSlice(
                    reached,
                    [],
                    reached.bytes + source.position,
                    reached.taken + source.file_bytes,
                    done=False,
                )
            if self.format.format == "CSV" and at == 0:
                names = self._header(source)
            read = self._read(names)
            upto = at + _SLICE_BYTES
            until_s = monotonic() + _SLICE_S
            for _ in range(_SLICE_ROWS):
                row = source.row(read)
                if row is None:
                    ended = True
                    break
                processed += 1
                try:
                    if isinstance(row, RowRefused):
                        raise row
                    written += write(row)
                except RowRefused as refused:
                    shown = None if isinstance(row, RowRefused) else row
                    failed.append(FailedRow(key, index, str(refused), shown))
                index += 1
                if source.position >= upto or monotonic() >= until_s:
                    break
            at = source.position
        except (TextMalformed, FileNotFoundError) as error:
            processed += 1
            reason = str(error) if isinstance(error, TextMalformed) else "The object no longer exists"
            failed.append(FailedRow(key, index, f"{reason}; the rest of the object was not read"))
            at = at if source is None else source.position
            ended = True
        file_bytes = size if source is None or ended else source.file_bytes
        if ended:
            self.buckets.release(self.id)
            self.store.delete_record(_OBJECT, f"{self.id}/{reached.object:06d}")
            reached = LoadProgress(
                objects=reached.objects,
                object=reached.object + 1,
                bytes=reached.bytes + at,
                taken=reached.taken + size,
                processed=processed,
                written=written,
                failed=reached.failed + len(failed),
            )
            return LoadSlice(reached, failed, reached.bytes, reached.taken, done=False)
        bytes_, before = reached.bytes, reached.taken
        reached = msgspec.structs.replace(
            reached,
            at=at,
            index=index,
            names=names,
            processed=processed,
            written=written,
            failed=reached.failed + len(failed),
        )
        return LoadSlice(reached, failed, bytes_ + at, before + file_bytes, done=False)

    def _object(self, position: int) -> tuple[str, int]:
        data = self.store.get_record(_OBJECT, f"{self.id}/{position:06d}")
        assert data is not None, "every object is listed until it is read"
        key_and_size: tuple[str, int] = msgspec.json.decode(data, type=tuple[str, int])
        return key_and_size

    def _header(self, source: ObjectReader) -> list[str] | None:
        delimiter = self.format.delimiter
        if self.format.headers is not None:
            check_names(self.format.headers)
            source.head(lambda data, *, last: ((), skip_mark(data)) if data or last else None)
            return None
        header = source.head(lambda data, *, last: read_header(data, delimiter, last=last))
        return None if header is None else list(header)

    def _read(self, names: list[str] | None) -> ReadRow:
        if self.format.format == "DYNAMODB_JSON":
            return read_json
        if self.format.format == "ION":
            return read_ion
        columns = Columns(self.format.headers or tuple(names or ()), self.format.delimiter, self.format.types)

        def read(data: bytes, start: int, *, last: bool) -> Any:
            return read_csv(data, start, columns, last=last)

        return read


def release_objects(store: Store, buckets: Buckets | None, id_: str, reached: LoadProgress) -> None:
    """Delete the stored list of objects, and close the open one."""
    if buckets is not None:
        buckets.release(id_)
    for position in range(reached.object, reached.objects):
        store.delete_record(_OBJECT, f"{id_}/{position:06d}")
