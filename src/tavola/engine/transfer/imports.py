"""Imports: files of a bucket into a new table, and failed rows into a log.

Rows are written in order; a later row replaces an earlier one with the same key. An invalid row is logged and skipped, and
the import then ends as FAILED with all other rows in the table, as on AWS.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tavola.engine.catalog import Catalog, StoredTable
from tavola.engine.transfer.buckets import Buckets
from tavola.engine.transfer.errors import RowRefused
from tavola.engine.transfer.lines import TransferRow
from tavola.engine.transfer.loads import FailedRow, Load, LoadProgress
from tavola.engine.transfer.records import Transfer
from tavola.engine.writes import apply_write, find_current, key_of_item, prepare_put
from tavola.protocol.faults import Fault
from tavola.values import ValueMalformed, ValueRefused, admit_item

LOG_GROUP = "aws-dynamodb/imports"
SOME_FAILED = (
    "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs "
    "for more details."
)


class ImportProgress(msgspec.Struct, frozen=True):
    """The progress of an import, and the length of its log."""

    reached: LoadProgress
    log_bytes: int = 0


class Import(msgspec.Struct, frozen=True):
    """A running import: its record, its table and its input."""

    transfer: Transfer
    table: StoredTable
    catalog: Catalog
    load: Load
    buckets: Buckets

    def step(self, state: ImportProgress) -> tuple[ImportProgress, Transfer, bool]:
        """Process a slice; return the progress, the updated record, and whether it is complete."""
        step_result = self.load.step(state.reached, self._put)
        log_bytes = self._log_failures(step_result.failed, state.log_bytes)
        reached = step_result.reached
        shown = self.transfer.with_description(
            ProcessedSizeBytes=step_result.bytes,
            ProcessedItemCount=reached.processed,
            ImportedItemCount=reached.written,
            ErrorCount=reached.failed,
        )
        return ImportProgress(reached, log_bytes), shown, step_result.done

    def _put(self, row: TransferRow) -> bool:
        put_row(self.catalog, self.table, row)
        return True

    def _log_failures(self, failed: list[FailedRow], offset: int) -> int:
        """Append failures to the log as CloudWatch would, one per line; return its length."""
        if not failed:
            return offset
        arn = self.transfer.description["ImportArn"]
        bucket = self.transfer.description["S3BucketSource"]["S3Bucket"]
        text = b"".join(
            msgspec.json.encode(
                {
                    "itemS3Pointer": {"bucket": bucket, "key": failure.key, "itemIndex": failure.index},
                    "importArn": arn,
                    "errorMessages": [failure.message],
                }
            )
            + b"\n"
            for failure in failed
        )
        path = log_path(self.buckets, self.transfer.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as log:
            offset = min(offset, log.tell())  # if a crash lost lines, continue without them
            log.truncate(offset)
            log.write(text)
        return offset + len(text)


def log_path(buckets: Buckets, id_: str) -> Path:
    """Return the path of an import's error log: stream `<id>/error` of the imports' group."""
    return buckets.log(*LOG_GROUP.split("/"), id_, "error")


def put_row(catalog: Catalog, table: StoredTable, row: TransferRow) -> int:
    """Write the item of a row and return its size; an invalid item is refused with PutItem's messages."""
    try:
        size = admit_item(row.item)
        current = find_current(table, key_of_item(table, row.item))
        write = prepare_put(current, row.item, size)
    except ValueRefused as refused:
        raise RowRefused(refused.classic) from refused
    except (ValueMalformed, Fault) as refused:
        raise RowRefused(str(refused)) from refused
    apply_write(catalog, write)
    return size
