"""KeyRefused: an item or key that does not fit a key schema."""

from __future__ import annotations

from typing import Literal

from tavola.errors import TavolaError

Reason = Literal["missing", "type", "empty", "hash-size", "range-size"]


class KeyRefused(TavolaError):
    """Why attributes make no key; the operation that asked words it as DynamoDB would."""

    def __init__(self, reason: Reason, name: str, expected: str, actual: str = "") -> None:
        self.reason = reason
        self.name = name
        self.expected = expected
        self.actual = actual
        super().__init__(f"key attribute {name} ({expected}): {reason} {actual}".rstrip())
