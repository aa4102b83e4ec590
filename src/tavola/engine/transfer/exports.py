"""Exports: a table as it was, or what changed in it over a period, written to a bucket slice by slice.

A data file grows by one gzip member a slice and is finished when it is large enough. All that a slice has to
know is kept with it: how far the table is read, how long the growing file is and what its bytes sum to. So a
slice that was undone is done again over its own traces, and what a crash took from a file is noticed when
the file is finished, which then is written anew from its first item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import msgspec

from tavola.engine.catalog import Table
from tavola.engine.jobs import next_rows
from tavola.engine.storage import ChangeLog, LogRow
from tavola.engine.transfer.buckets import Buckets
from tavola.engine.transfer.compression import pack
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

_FILE_BYTES = 4 * 1024 * 1024  # of a data file, compressed: what is read again in one slice to sum it up
_SLICE_ROWS_MAX = 256
_SLICE_ROWS_MIN = 4
_SLICE_BYTES = 256 * 1024
_CHANGES_READ = 64
EVERYTHING = Bounds(b"", None)


class Growing(msgspec.Struct, frozen=True):
    """The data file at work: where in the table it began, and what of it is written."""

    number: int = 1
    after: str = ""  # the last key of the file before, in hex
    bytes: int = 0
    crc: int = 0
    items: int = 0
    billed: int = 0  # bytes of the items it was made from


class Progress(msgspec.Struct, frozen=True):
    """How far an export has come."""

    after: str = ""  # the last key that was read, in hex
    rows: int = 64  # that the next slice reads
    file: Growing = Growing()
    manifest_bytes: int = 0
    manifest_crc: int = 0
    items: int = 0  # of finished files
    billed: int = 0
    started: bool = False
    read: bool = False  # the table is read to its end


@dataclass(frozen=True, slots=True)
class Period:
    """What of a log an incremental export tells: the changes past one place and up to another."""

    log: ChangeLog
    after: int
    upto: int
    old_images: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which keys and items are exported, and what of them."""

    bounds: Bounds = EVERYTHING
    keep: Callable[[Item], bool] | None = None
    shape: Callable[[Item], Item] | None = None

    def image(self, data: bytes) -> bytes | None:
        """Return what is exported of an item; None if it is not."""
        if self.keep is None and self.shape is None:
            return data
        item = decode_item(data)
        if self.keep is not None and not self.keep(item):
            return None
        return data if self.shape is None else encode_item(self.shape(item))


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one slice, and how far it read."""

    text: bytes
    items: int
    billed: int
    last: bytes | None  # the last key; None if there was none
    rows: int


@dataclass(frozen=True, slots=True)
class Export:
    """One export at work: its record, the table as it was at the end, and where its files go."""

    transfer: Transfer
    past: Table
    wanted: Wanted
    period: Period | None
    buckets: Buckets

    def step(self, progress: Progress, now_s: float) -> tuple[Progress, Transfer, bool]:
        """Do a slice; return how far it came, the record as it is now, and whether that was all."""
        if not progress.started:
            write_small(self._place(started_key(self._prefix, self.transfer.id)), b"")
            return msgspec.structs.replace(progress, started=True), self.transfer, False
        if progress.read:
            return self._finish(progress, now_s)
        progress = self._write(progress)
        shown = self.transfer.with_description(
            ItemCount=progress.items + progress.file.items,
            BilledSizeBytes=self._billed(progress.billed + progress.file.billed),
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

    def _write(self, progress: Progress) -> Progress:
        file = progress.file
        path = self._place(self._key(file.number))
        lines = self._lines(bytes.fromhex(progress.after), progress.rows)
        packed = pack(lines.text) if lines.text or not file.bytes else b""
        if not append_at(path, file.bytes, packed):
            return _again(progress)
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

    def _close(self, progress: Progress, ended: bool) -> Progress:
        """Finish a data file and enter it in the manifest; a file that a crash has damaged is begun anew."""
        file = progress.file
        key = self._key(file.number)
        sums = publish(self._place(key), file.bytes, file.crc)
        if sums is None:
            return _again(progress)
        entry = file_entry(key, file.items, sums)
        manifest = self._place(files_key(self._prefix, self.transfer.id))
        if not append_at(manifest, progress.manifest_bytes, entry):
            return Progress(started=True)  # the list of files is lost: the files are written anew
        return msgspec.structs.replace(
            progress,
            file=Growing(number=file.number + 1, after=progress.after),
            manifest_bytes=progress.manifest_bytes + len(entry),
            manifest_crc=crc32(entry, progress.manifest_crc),
            items=progress.items + file.items,
            billed=progress.billed + file.billed,
            read=ended,
        )

    def _finish(self, progress: Progress, now_s: float) -> tuple[Progress, Transfer, bool]:
        """Write the manifests, the one that says that all is there at the very end."""
        files = files_key(self._prefix, self.transfer.id)
        sums = publish(self._place(files), progress.manifest_bytes, progress.manifest_crc)
        if sums is None:
            return Progress(started=True), self.transfer, False
        write_small(self._place(md5_key(files)), sums.md5.encode())
        key = summary_key(self._prefix, self.transfer.id)
        done = self.transfer.with_description(
            ExportStatus="COMPLETED",
            EndTime=now_s,
            ExportManifest=key,
            ItemCount=progress.items,
            BilledSizeBytes=self._billed(progress.billed),
        )
        text = summary(done.description, files)
        write_small(self._place(md5_key(key)), checksum_of(text).encode())
        write_small(self._place(key), text)
        return progress, done, True

    def _key(self, number: int) -> str:
        return data_key(
            self._prefix, self.transfer.id, number, self._format, incremental=self.period is not None
        )

    def _billed(self, bytes_: int) -> int:
        return bytes_ if self.period is None else max(bytes_, INCREMENTAL_BILLED_BYTES_MIN)

    def _lines(self, after: bytes, rows: int) -> Lines:
        lower = max(self.wanted.bounds.lower, after + b"\x00") if after else self.wanted.bounds.lower
        bounds = Bounds(lower, self.wanted.bounds.upper)
        return self._full(bounds, rows) if self.period is None else self._changed(self.period, bounds, rows)

    def _full(self, bounds: Bounds, limit: int) -> Lines:
        rows = self.past.rows.rows(bounds, limit)
        lines = [
            full_line(self._format, image) for row in rows if (image := self.wanted.image(row[2])) is not None
        ]
        billed = sum(row[1] for row in rows)
        return Lines(b"".join(lines), len(lines), billed, rows[-1][0] if rows else None, len(rows))

    def _changed(self, period: Period, bounds: Bounds, limit: int) -> Lines:
        """Tell the keys that changed in a period: each once, by what it was before and after all of it."""
        changes = period.log.first_changes(bounds, period.after, limit, reverse=False)
        lines: list[bytes] = []
        billed = 0
        for change in changes:
            if change.id > period.upto:
                continue
            line = self.past.rows.get(change.key)
            new = None if line is None else self.wanted.image(line[0])
            old = None if change.old is None else self.wanted.image(change.old)
            if new is None and old is None:
                continue  # it came and went, or nobody wants it
            image = decode_item(new or old or b"{}")
            keys = {name: image[name] for name in self.past.schema.names if name in image}
            told = old if period.old_images else None
            at_us = _last_us(period, change)
            lines.append(changed_line(self._format, at_us, keys, new, told))
            billed += len(lines[-1])
        last = changes[-1].key if changes else None
        return Lines(b"".join(lines), len(lines), billed, last, len(changes))


def _last_us(period: Period, first: LogRow) -> int:
    """Return when a key was last written in a period."""
    found = first
    while True:
        later = period.log.changes_of(first.key, found.id, _CHANGES_READ)
        inside = [change for change in later if change.id <= period.upto]
        if inside:
            found = inside[-1]
        if len(inside) < _CHANGES_READ:
            return found.at_us


def _again(progress: Progress) -> Progress:
    """Return to where the file at work began."""
    file = progress.file
    return msgspec.structs.replace(
        progress, after=file.after, file=Growing(number=file.number, after=file.after)
    )
