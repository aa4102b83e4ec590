"""Bulk loads: files of a bucket into an existing table, with a report of failed rows.

Each row is written as PutItem would, under its own condition if it has one, so streams, indexes and history treat it like
any other write. The report goes to the requested bucket: one file for invalid rows, one for those whose condition was
false, and a manifest at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec

from tavola.engine.catalog import Catalog, StoredTable
from tavola.engine.transfer.buckets import Buckets
from tavola.engine.transfer.compression import compress
from tavola.engine.transfer.errors import RowRefused
from tavola.engine.transfer.files import append_at, publish, write_small
from tavola.engine.transfer.layout import folder_key, instant
from tavola.engine.transfer.lines import TransferRow
from tavola.engine.transfer.loads import FailedRow, Load, LoadProgress
from tavola.engine.transfer.records import Transfer
from tavola.engine.writes import CurrentItem, apply_write, find_current, key_of_item, prepare_put, sizes_of
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import evaluate
from tavola.expressions.errors import ExpressionError
from tavola.expressions.plans import check_placeholder_keys, check_placeholders, compile_condition
from tavola.limits import EXPRESSION_SUBSTITUTION_BYTES_MAX
from tavola.protocol.faults import Fault
from tavola.values import ValueMalformed, ValueRefused, admit_item

ERROR = "ERROR"
CONDITION = "CONDITION_CHECK_FAILURE"


class BulkReport(msgspec.Struct, frozen=True):
    """One growing file of the report."""

    bytes: int = 0
    crc: int = 0
    items: int = 0


class BulkProgress(msgspec.Struct, frozen=True):
    """The progress of a bulk load: objects, reports, and bytes written per index."""

    reached: LoadProgress
    errors: BulkReport = BulkReport()
    conditions: BulkReport = BulkReport()
    table_bytes: int = 0
    index_bytes: dict[str, int] = {}


@dataclass(slots=True)
class Bulk:
    """A running bulk load: its record, its table and its input."""

    transfer: Transfer
    table: StoredTable
    catalog: Catalog
    load: Load
    buckets: Buckets

    def step(self, state: BulkProgress) -> tuple[BulkProgress, Transfer, bool]:
        """Process a slice; return the progress, the updated record, and whether it is complete."""
        put = _Put(self.catalog, self.table, state)
        step_result = self.load.step(state.reached, put)
        reached = step_result.reached
        errors = self._report(
            ERROR, state.errors, [_describe_failure(failure) for failure in step_result.failed]
        )
        conditions = self._report(CONDITION, state.conditions, put.refused)
        state = BulkProgress(reached, errors, conditions, put.table_bytes, put.index_bytes)
        shown = self.transfer.with_description(
            ProcessedItemCount=reached.processed,
            FailedItemCount=reached.failed,
            ProcessedInputBytes=step_result.file_bytes,
            BulkOperationUsage=[self._usage(state)],
        )
        return state, shown, step_result.done

    def finish(self, state: BulkProgress, transfer: Transfer, now_s: float) -> bool:
        """Complete the report; return whether it is complete. After a crash, parts of it may be missing."""
        is_complete = True
        manifest: dict[str, Any] = {
            "bulkOperationArn": transfer.description["BulkOperationArn"],
            "startTime": instant(transfer.description["StartTime"]),
            "endTime": instant(now_s),
            "processedItemCount": state.reached.processed,
            "failedItemCount": state.reached.failed,
            "files": [],
        }
        for kind, report in ((ERROR, state.errors), (CONDITION, state.conditions)):
            if report.bytes:
                key = self._report_key(kind)
                sums = publish(self.buckets.place(self._bucket, key), report.bytes, report.crc)
                is_complete = is_complete and sums is not None
                manifest["files"].append(
                    {"outputType": kind, "itemCount": report.items, "dataFileS3Key": key}
                    | ({} if sums is None else {"md5Checksum": sums.md5, "etag": sums.etag})
                )
        folder = folder_key(self._prefix, transfer.id)
        write_small(
            self.buckets.place(self._bucket, f"{folder}/manifest.json"), msgspec.json.encode(manifest)
        )
        return is_complete

    @property
    def _output(self) -> dict[str, Any]:
        output: dict[str, Any] = self.transfer.description["OutputS3Configuration"]
        return output

    @property
    def _bucket(self) -> str:
        """Return the bucket of the report, by default that of the input."""
        named: str | None = self._output.get("S3Bucket")
        return named or self.load.bucket

    @property
    def _prefix(self) -> str | None:
        return self._output.get("S3KeyPrefix")

    def _report_key(self, kind: str) -> str:
        return f"{folder_key(self._prefix, self.transfer.id)}/{kind}/report.json.gz"

    def _report(self, kind: str, report: BulkReport, lines: list[dict[str, Any]]) -> BulkReport:
        if not lines or kind not in self._output["OutputType"]:
            return report
        packed = compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        path = self.buckets.place(self._bucket, self._report_key(kind))
        if not append_at(path, report.bytes, packed):
            report = BulkReport()  # a crash lost the earlier part of the report; continue with a new one
            append_at(path, 0, packed)
        return BulkReport(report.bytes + len(packed), crc32(packed, report.crc), report.items + len(lines))

    def _usage(self, state: BulkProgress) -> dict[str, Any]:
        usage: dict[str, Any] = {
            "TableName": self.table.arn,
            "BulkPutBytes": state.table_bytes + sum(state.index_bytes.values()),
            "Table": {"BulkPutBytes": state.table_bytes},
        }
        for index in self.table.indexes:
            if index.name in state.index_bytes:
                kind = "GlobalSecondaryIndexes" if index.is_global else "LocalSecondaryIndexes"
                usage.setdefault(kind, {})[index.name] = {"BulkPutBytes": state.index_bytes[index.name]}
        return usage


class _Put:
    """Writes the rows of one slice and counts them."""

    __slots__ = ("_catalog", "_table", "index_bytes", "refused", "table_bytes")

    def __init__(self, catalog: Catalog, table: StoredTable, state: BulkProgress) -> None:
        self._catalog = catalog
        self._table = table
        self.table_bytes = state.table_bytes
        self.index_bytes = dict(state.index_bytes)
        self.refused: list[dict[str, Any]] = []  # rows whose own condition was false

    def __call__(self, row: TransferRow) -> bool:
        """Write a row; return False if its condition does not hold."""
        table = self._table
        try:
            size = admit_item(row.item)
            current = find_current(table, key_of_item(table, row.item))
            if row.condition is not None and not _check_row_condition(row, row.condition, current):
                self.refused.append(_describe_condition_failure(row, current))
                return False
            write = prepare_put(current, row.item, size)
        except ValueRefused as refused:
            raise RowRefused(refused.classic) from refused
        except (ValueMalformed, ExpressionError, Fault) as refused:
            raise RowRefused(str(refused)) from refused
        apply_write(self._catalog, write)
        self.table_bytes += size
        for index, index_sizes in zip(table.indexes, sizes_of(table, size, write.entries), strict=True):
            if index_sizes is not None:
                self.index_bytes[index.name] = self.index_bytes.get(index.name, 0) + index_sizes
        return True


def _check_row_condition(row: TransferRow, condition: str, current: CurrentItem) -> bool:
    """Return whether a row's condition holds for the current item."""
    check_placeholder_keys(row.names, row.values)
    if row.values and admit_item(row.values) > EXPRESSION_SUBSTITUTION_BYTES_MAX:
        raise RowRefused("ExpressionAttributeValues have exceeded the maximum allowed size")
    bindings = Bindings(row.names or {}, row.values or {})
    plan = compile_condition(condition, bindings)
    check_placeholders(bindings, [plan])
    return evaluate(plan, current.item or {}, bindings.values)


def _describe_condition_failure(row: TransferRow, current: CurrentItem) -> dict[str, Any]:
    members: dict[str, Any] = {"Item": row.item, "ErrorMessage": "The conditional request failed"}
    if current.data is not None:
        members["ExistingItem"] = msgspec.Raw(current.data)
    return members


def _describe_failure(failed: FailedRow) -> dict[str, Any]:
    members: dict[str, Any] = {
        "S3Key": failed.key,
        "ItemIndex": failed.index,
        "ErrorCode": "ValidationException",
        "ErrorMessage": failed.message,
    }
    if failed.row is not None:
        members["Item"] = failed.row.item
    return members
