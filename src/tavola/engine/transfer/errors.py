"""The errors of transfers: malformed files, invalid rows, invalid locations."""

from __future__ import annotations

from tavola.errors import TavolaError


class TransferError(TavolaError):
    """Data cannot be moved in or out; the message says why."""


class TextMalformed(TransferError):
    """A file is not in its format; the rest of it cannot be read either."""


class RowRefused(TransferError):
    """A row is readable but not a valid item; the rows after it are still read."""


class PlaceRefused(TransferError):
    """A bucket or key points outside the folder of buckets."""


class CodecMissing(TransferError):
    """A compression needs a package that is not installed."""


class BucketMissing(TransferError):
    """The folder of a bucket does not exist."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        super().__init__(
            f"The specified bucket does not exist: create the folder {bucket} in the buckets folder"
        )
