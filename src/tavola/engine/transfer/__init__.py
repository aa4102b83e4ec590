"""Transfer: tables to files and back, in the formats and layouts of AWS.

Holds the formats (DynamoDB JSON, Ion, CSV), the folder that stands for S3, the layout of an export in it,
and what one slice of an export, an import and a bulk load does. Knows tables and how a row is written; knows no
request, no job and no snapshot: it is given the table to read, and says how far it has come.
"""

from tavola.engine.transfer.buckets import Buckets, checked_key
from tavola.engine.transfer.bulk import Bulk, Loaded
from tavola.engine.transfer.compression import load_zstd
from tavola.engine.transfer.errors import (
    BucketMissing,
    CodecMissing,
    PlaceRefused,
    RowRefused,
    TextMalformed,
    TransferError,
)
from tavola.engine.transfer.exports import Export, Period, Progress, Wanted
from tavola.engine.transfer.imports import SOME_FAILED, Import, Imported
from tavola.engine.transfer.layout import transfer_id
from tavola.engine.transfer.loads import Format, Load, Reached, forget
from tavola.engine.transfer.records import Kind, Records, Transfer

__all__ = [
    "SOME_FAILED",
    "BucketMissing",
    "Buckets",
    "Bulk",
    "CodecMissing",
    "Export",
    "Format",
    "Import",
    "Imported",
    "Kind",
    "Load",
    "Loaded",
    "Period",
    "PlaceRefused",
    "Progress",
    "Reached",
    "Records",
    "RowRefused",
    "TextMalformed",
    "Transfer",
    "TransferError",
    "Wanted",
    "checked_key",
    "forget",
    "load_zstd",
    "transfer_id",
]
