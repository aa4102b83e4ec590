"""Which of AWS's two validation layers words the errors of an operation.

AWS has been moving operations from the classic layer to a modern one since June 2026, region by region. The rules are
the same but the messages differ, so the layer is a setting: "current" is what most regions answer today; "classic"
and "modern" use one layer for every operation.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

MessageStyle: TypeAlias = Literal["current", "classic", "modern"]
ValidationLayer: TypeAlias = Literal["classic", "modern"]

_MODERN_TODAY = frozenset(
    {"PutItem", "UpdateItem", "DeleteItem", "GetItem", "BatchGetItem", "Query", "SearchVectors"}
)
_ENVELOPING = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
_ENVELOPE = "1 validation error detected: "


def layer_of(operation: str, wording: MessageStyle = "current") -> ValidationLayer:
    """Return the validation layer that words the errors of an operation."""
    if wording == "current":
        return "modern" if operation in _MODERN_TODAY else "classic"
    return wording


def add_error_count(operation: str, wording: MessageStyle, text: str) -> str:
    """Add `1 validation error detected: ` where the modern layer does, which is for writes.

    Only for errors found before an item is read; errors of execution never have the prefix.
    """
    if operation in _ENVELOPING and layer_of(operation, wording) == "modern":
        return _ENVELOPE + text
    return text
