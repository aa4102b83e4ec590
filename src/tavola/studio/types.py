"""Types: what the API's own types are made of, beside dataclasses, texts and numbers.

Attribute values travel as DynamoDB JSON, in which a number is text: nothing between the table and the page may take
it for a float.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

AttributeValue: TypeAlias = Mapping[str, Any]
"""One value as DynamoDB JSON, such as `{"N": "42"}`."""

Item: TypeAlias = Mapping[str, AttributeValue]
"""Attributes by their names."""

Document: TypeAlias = Mapping[str, Any]
"""What a command prints with `--json`, as it prints it."""
