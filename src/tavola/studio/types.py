"""Types that several endpoints share.

Attribute values travel as DynamoDB JSON, in which numbers are strings, so nothing between table and page can turn one into a
float.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

AttributeValue: TypeAlias = Mapping[str, Any]
"""One value as DynamoDB JSON, such as `{"N": "42"}`."""

Item: TypeAlias = Mapping[str, AttributeValue]
"""Attributes by their names."""

Document: TypeAlias = Mapping[str, Any]
"""What a command prints with `--json`, as it prints it."""


@dataclass(frozen=True, slots=True)
class NoParameters:
    """The request of an endpoint without parameters."""


@dataclass(frozen=True, slots=True)
class TableRequest:
    """The table that an endpoint is about."""

    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignRequest:
    """A design: one of the studio's by name, a design document, or by default the studio's first."""

    design: str | None = None
    document: str | None = None
