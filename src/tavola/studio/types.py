"""Types shared by the API beside dataclasses, strings and numbers.

Attribute values travel as DynamoDB JSON, in which numbers are strings, so nothing between table and page can turn one into a
float.
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
