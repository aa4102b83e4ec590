"""Exports: a table as of a time, or its changes over a period, written to a bucket slice by slice.

A data file grows by one gzip member per slice and is finished when it is large enough:

    slice 1          slice 2          slice 3
    [gzip member]    [gzip member]    [gzip member] ──► checksum, rename, line in the manifest

The state saved with each slice is the position in the table, and the length and checksum of the growing file. A slice
that was rolled back is therefore written again over its own output. Data lost in a crash is noticed by the checksum when
the file is finished; the file is then written again from its first item.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import msgspec

from tavola.engine.catalog import StoredTable
from tavola.engine.jobs import next_rows
from tavola.engine.storage import ChangeLog, ChangeLogRow
from tavola.engine.transfer.buckets import Buckets
from tavola.engine.transfer.compression import compress
from tavola.engine.transfer.files import append_at, checksum_of, publish, write_small
from tavola.engine.transfer.layout import (
    data_key,
    file_entry,
    files_key,
    md5_key,
    started_key,
    summary,
    summary_key,
)
from tavola.engine.transfer.lines import LineFormat, changed_line, full_line
from tavola.engine.transfer.records import Transfer
from tavola.keys import Bounds
from tavola.limits import INCREMENTAL_BILLED_BYTES_MIN
from tavola.values import Item, decode_item, encode_item

_FILE_BYTES = 4 * 1024 * 1024  # compressed size of a data file, which one slice reads again for its checksum
_SLICE_ROWS_MAX = 256
_SLICE_ROWS_MIN = 4
_SLICE_BYTES = 256 * 1024
_CHANGES_READ = 64
EVERYTHING = Bounds(b"", None)


class GrowingFile(msgspec.Struct, frozen=True):
    """The data file being written: where in the table it began, and its size and checksum so far."""

    number: int = 1
    after: str = ""  # the last key of the previous file, in hex
    bytes: int = 0
    crc: int = 0
    items: int = 0
    billed: int = 0  # size of the items in it


class ExportProgress(msgspec.Struct, frozen=True):
    """The progress of an export."""

    after: str = ""  # the last key read, in hex
    rows: int = 64  # for the next slice
    file: GrowingFile = GrowingFile()
    manifest_bytes: int = 0
    manifest_crc: int = 0
    items: int = 0  # in finished files
    billed: int = 0
    started: bool = False
    read: bool = False  # the whole table has been read


class Period(msgspec.Struct, frozen=True):
    """The part of a log that an incremental export covers: after one position, up to another."""

    log: ChangeLog
    after: int
    upto: int
    old_images: bool


class ExportFilter(msgspec.Struct, frozen=True):
    """Which items are exported, and which of their attributes."""

    bounds: Bounds = EVERYTHING
    keep: Callable[[Item], bool] | None = None
    shape: Callable[[Item], Item] | None = None

    def image(self, data: bytes) -> bytes | None:
        """Return the exported form of an item; None if it is filtered out."""
        if self.keep is None and self.shape is None:
            return data
        item = decode_item(data)
        if self.keep is not None and not self.keep(item):
            return None
        return data if self.shape is None else encode_item(self.shape(item))


class ExportLines(msgspec.Struct, frozen=True):
    """The lines of one slice, and the last key read."""

    text: bytes
    items: int
    billed: int
    last: bytes | None  # None if nothing was read
    rows: int


class Export(msgspec.Struct, frozen=True):
    """A running export: its record, the table at its end time, and its destination."""

    transfer: Transfer
    past: StoredTable
    filter: ExportFilter
    period: Period | None
    buckets: Buckets

    def step(self, progress: ExportProgress, now_s: float) -> tuple[ExportProgress, Transfer, bool]:
        """Process a slice; return the progress, the updated record, and whether it is complete."""
        if not progress.started:
            write_small(self._place(started_key(self._prefix, self.transfer.id)), b"")
            return msgspec.structs.replace(progress, started=True), self.transfer, False
        if progress.read:
            return self._finish(progress, now_s)
        progress = self._write(progress)
        shown = self.transfer.with_description(
            ItemCount=progress.items + progress.file.items,
            BilledSizeBytes=self._billed_bytes(progress.billed + progress.file.billed),
        )
        return progress, shown, False

    @property
    def _prefix(self) -> str | None:
        return self.transfer.description.get("S3Prefix")

    @property
    def _format(self) -> LineFormat:
        format_: LineFormat = self.transfer.description["ExportFormat"]
        return format_

    def _place(self, key: str) -> Path:
        return self.buckets.place(self.transfer.description["S3Bucket"], key)

    def _write(self, progress: ExportProgress) -> ExportProgress:
        file = progress.file
        path = self._place(self._key(file.number))
        lines = self._lines(bytes.fromhex(progress.after), progress.rows)
        packed = compress(lines.text) if lines.text or not file.bytes else b""
        if not append_at(path, file.bytes, packed):
            return _restart_file(progress)
        ended = lines.rows < progress.rows
        after = progress.after if lines.last is None else lines.last.hex()
        file = msgspec.structs.replace(
            file,
            bytes=file.bytes + len(packed),
            crc=crc32(packed, file.crc),
            items=file.items + lines.items,
            billed=file.billed + lines.billed,
        )
        rows_next = next_rows(
            progress.rows,
            lines.billed,
            slice_bytes=_SLICE_BYTES,
            rows_min=_SLICE_ROWS_MIN,
            rows_max=_SLICE_ROWS_MAX,
        )
        progress = msgspec.structs.replace(progress, after=after, file=file, rows=rows_next)
        return self._close(progress, ended) if ended or file.bytes >= _FILE_BYTES else progress

    def _close(self, progress: ExportProgress, ended: bool) -> ExportProgress:
        """Finish a data file and add it to the manifest; a file damaged by a crash is written again."""
        file = progress.file
        key = self._key(file.number)
        sums = publish(self._place(key), file.bytes, file.crc)
        if sums is None:
            return _restart_file(progress)
        entry = file_entry(key, file.items, sums)
        manifest = self._place(files_key(self._prefix, self.transfer.id))
        if not append_at(manifest, progress.manifest_bytes, entry):
            return ExportProgress(started=True)  # a crash lost the list of files: write all files again
        return msgspec.structs.replace(
            progress,
            file=GrowingFile(number=file.number + 1, after=progress.after),
            manifest_bytes=progress.manifest_bytes + len(entry),
            manifest_crc=crc32(entry, progress.manifest_crc),
            items=progress.items + file.items,
            billed=progress.billed + file.billed,
            read=ended,
        )

    def _finish(self, progress: ExportProgress, now_s: float) -> tuple[ExportProgress, Transfer, bool]:
        """Write the manifests, the summary last: it marks the export as complete."""
        files = files_key(self._prefix, self.transfer.id)
        sums = publish(self._place(files), progress.manifest_bytes, progress.manifest_crc)
        if sums is None:
            return ExportProgress(started=True), self.transfer, False
        write_small(self._place(md5_key(files)), sums.md5.encode())
        key = summary_key(self._prefix, self.transfer.id)
        done = self.transfer.with_description(
            ExportStatus="COMPLETED",
            EndTime=now_s,
            ExportManifest=key,
            ItemCount=progress.items,
            BilledSizeBytes=self._billed_bytes(progress.billed),
        )
        text = summary(done.description, files)
        write_small(self._place(md5_key(key)), checksum_of(text).encode())
        write_small(self._place(key), text)
        return progress, done, True

    def _key(self, number: int) -> str:
        return data_key(
            self._prefix, self.transfer.id, number, self._format, incremental=self.period is not None
        )

    def _billed_bytes(self, bytes_: int) -> int:
        return bytes_ if self.period is None else max(bytes_, INCREMENTAL_BILLED_BYTES_MIN)

    def _lines(self, after: bytes, rows: int) -> ExportLines:
        lower = max(self.filter.bounds.lower, after + b"\x00") if after else self.filter.bounds.lower
        bounds = Bounds(lower, self.filter.bounds.upper)
        return (
            self._full_lines(bounds, rows)
            if self.period is None
            else self._changed_lines(self.period, bounds, rows)
        )

    def _full_lines(self, bounds: Bounds, limit: int) -> ExportLines:
        rows = self.past.rows.rows(bounds, limit)
        lines = [
            full_line(self._format, image) for row in rows if (image := self.filter.image(row[2])) is not None
        ]
        billed = sum(row[1] for row in rows)
        return ExportLines(b"".join(lines), len(lines), billed, rows[-1][0] if rows else None, len(rows))

    def _changed_lines(self, period: Period, bounds: Bounds, limit: int) -> ExportLines:
        """Return a line for each key that changed in a period, with its first and last image."""
        changes = period.log.first_changes(bounds, period.after, limit, reverse=False)
        lines: list[bytes] = []
        billed = 0
        for change in changes:
            if change.id > period.upto:
                continue
            row = self.past.rows.get(change.key)
            new = None if row is None else self.filter.image(row[0])
            old = None if change.old is None else self.filter.image(change.old)
            if new is None and old is None:
                continue  # created and deleted within the period, or filtered out
            image = decode_item(new or old or b"{}")
            keys = {name: image[name] for name in self.past.schema.names if name in image}
            at_us = _last_us(period, change)
            lines.append(changed_line(self._format, at_us, keys, new, old if period.old_images else None))
            billed += len(lines[-1])
        last = changes[-1].key if changes else None
        return ExportLines(b"".join(lines), len(lines), billed, last, len(changes))


def _last_us(period: Period, first: ChangeLogRow) -> int:
    """Return when a key was last written in a period."""
    last = first
    while True:
        later = period.log.changes_of(first.key, last.id, _CHANGES_READ)
        inside = [change for change in later if change.id <= period.upto]
        if inside:
            last = inside[-1]
        if len(inside) < _CHANGES_READ:
            return last.at_us


def _restart_file(progress: ExportProgress) -> ExportProgress:
    """Restart the current file from its beginning."""
    file = progress.file
    return msgspec.structs.replace(
        progress, after=file.after, file=GrowingFile(number=file.number, after=file.after)
    )
