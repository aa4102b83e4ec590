"""The layer that speaks for an operation."""

from __future__ import annotations

import pytest

from tavola.protocol.message_style import MessageStyle, ValidationLayer, add_error_count, layer_of


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("PutItem", "modern"),
        ("UpdateItem", "modern"),
        ("DeleteItem", "modern"),
        ("GetItem", "modern"),
        ("BatchGetItem", "modern"),
        ("Query", "modern"),
        ("BatchWriteItem", "classic"),
        ("Scan", "classic"),
        ("TransactWriteItems", "classic"),
        ("TransactGetItems", "classic"),
        ("CreateTable", "classic"),
    ],
)
def test_today_some_operations_are_modern(operation: str, expected: ValidationLayer) -> None:
    """The current wording follows the operations that AWS has moved."""
    assert layer_of(operation) == expected
    assert layer_of(operation, "classic") == "classic"
    assert layer_of(operation, "modern") == "modern"


@pytest.mark.parametrize(
    ("operation", "wording", "expected"),
    [
        ("PutItem", "current", "1 validation error detected: no"),
        ("UpdateItem", "modern", "1 validation error detected: no"),
        ("DeleteItem", "current", "1 validation error detected: no"),
        ("PutItem", "classic", "no"),
        ("GetItem", "modern", "no"),
        ("Query", "current", "no"),
        ("TransactWriteItems", "modern", "no"),
    ],
)
def test_only_modern_writes_count_a_refusal(operation: str, wording: MessageStyle, expected: str) -> None:
    """The envelope belongs to the three single writes."""
    assert add_error_count(operation, wording, "no") == expected
