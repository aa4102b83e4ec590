"""Wording: which of AWS's two validation layers speaks for an operation.

AWS has been moving operations from the classic layer to a modern one since June 2026, region by region.
The rules are the same and the sentences differ, so the layer is a setting: "current" is what most
regions answer today, "classic" and "modern" hold every operation to one layer.
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
    """Return the layer that words the refusals of an operation."""
    if wording == "current":
        return "modern" if operation in _MODERN_TODAY else "classic"
    return wording


def add_error_count(operation: str, wording: MessageStyle, text: str) -> str:
    """Return a refusal of the request as the operation says it: the modern writes count it first.

    Only for what can be refused before the item is looked at; what execution finds is never counted.
    """
    if operation in _ENVELOPING and layer_of(operation, wording) == "modern":
        return _ENVELOPE + text
    return text
