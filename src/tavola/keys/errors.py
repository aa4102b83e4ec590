"""KeyRefused: an item or key that does not fit a key schema."""

from __future__ import annotations

from typing import Literal

from tavola.errors import TavolaError
from tavola.limits import HASH_KEY_BYTES_MAX, RANGE_KEY_BYTES_MAX

Reason = Literal["missing", "type", "empty", "hash-size", "range-size"]

_INVALID = "One or more parameter values were invalid: "


class KeyRefused(TavolaError):
    """Why attributes make no key: the sentence is DynamoDB's for a key that a request names.

    Where an operation has words of its own, for a put or for an index, it makes them from the data.
    """

    def __init__(self, reason: Reason, name: str, expected: str, actual: str = "") -> None:
        self.reason = reason
        self.name = name
        self.expected = expected  # the type that the schema gives the attribute
        self.actual = actual
        super().__init__(self._sentence())

    @property
    def kind(self) -> str:
        """Return what DynamoDB calls a value of the expected type."""
        return "binary" if self.expected == "B" else "string"

    def _sentence(self) -> str:
        match self.reason:
            case "empty":
                return (
                    "One or more parameter values are not valid. The AttributeValue for a key attribute "
                    f"cannot contain an empty {self.kind} value. Key: {self.name}"
                )
            case "hash-size":
                # The missing space is DynamoDB's.
                return f"{_INVALID}Size of hashkey has exceeded the maximum size limit of{HASH_KEY_BYTES_MAX} bytes"
            case "range-size":
                return (
                    f"{_INVALID}Aggregated size of all range keys has exceeded the size limit of "
                    f"{RANGE_KEY_BYTES_MAX} bytes"
                )
            case "missing" | "type":
                return "The provided key element does not match the schema"
