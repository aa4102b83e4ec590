"""What the transfer room refuses: a text that is not its format, a row that is no item, a place that is none."""

from __future__ import annotations

from tavola.errors import TavolaError


class TransferError(TavolaError):
    """Data that cannot be moved in or out; the sentence says what stands in the way."""


class TextMalformed(TransferError):
    """A file that is not in the format it should be in: what follows in it cannot be read either."""


class RowRefused(TransferError):
    """A row that can be read and is no item; the rows after it are read all the same."""


class PlaceRefused(TransferError):
    """A bucket or key that leaves the folder in which the buckets are."""


class CodecMissing(TransferError):
    """A compression that this Python cannot read without another package."""


class BucketMissing(TransferError):
    """A bucket whose folder is not there."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        super().__init__(
            f"The specified bucket does not exist: make the folder {bucket} in the folder of the buckets"
        )
