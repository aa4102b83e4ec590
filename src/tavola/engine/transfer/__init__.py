"""Transfer: exports, imports and bulk loads, in the formats and layouts of AWS.

The formats (DynamoDB JSON, Ion, CSV), the folder used as S3, the layout of an export in it, and what one slice of an
export, import or bulk load does. The package knows tables and how rows are written. It knows no request, job or
snapshot: it is given the table to read, and reports its progress.
"""

from tavola.engine.transfer.buckets import Buckets, check_key
from tavola.engine.transfer.bulk import Bulk, BulkProgress
from tavola.engine.transfer.compression import load_zstd
from tavola.engine.transfer.errors import (
    BucketMissing,
    CodecMissing,
    PlaceRefused,
    RowRefused,
    TextMalformed,
    TransferError,
)
from tavola.engine.transfer.exports import Export, ExportFilter, ExportProgress, Period
from tavola.engine.transfer.imports import SOME_FAILED, Import, ImportProgress
from tavola.engine.transfer.layout import transfer_id
from tavola.engine.transfer.loads import Load, LoadFormat, LoadProgress, release_objects
from tavola.engine.transfer.records import Kind, Transfer, TransferRecords

__all__ = [
    "SOME_FAILED",
    "BucketMissing",
    "Buckets",
    "Bulk",
    "BulkProgress",
    "CodecMissing",
    "Export",
    "ExportFilter",
    "ExportProgress",
    "Import",
    "ImportProgress",
    "Kind",
    "Load",
    "LoadFormat",
    "LoadProgress",
    "Period",
    "PlaceRefused",
    "RowRefused",
    "TextMalformed",
    "Transfer",
    "TransferError",
    "TransferRecords",
    "check_key",
    "load_zstd",
    "release_objects",
    "transfer_id",
]
