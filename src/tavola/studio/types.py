"""Types that several endpoints share.

Attribute values travel as DynamoDB JSON, in which numbers are strings, so nothing between table and page can turn one into a
float.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, dataclass_transform

import msgspec

DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
"""The longest request body that carries a design document."""

AttributeValue: TypeAlias = Mapping[str, Any]
"""One value as DynamoDB JSON, such as `{"N": "42"}`."""

Item: TypeAlias = Mapping[str, AttributeValue]
"""Attributes by their names."""

Document: TypeAlias = Mapping[str, Any]
"""A JSON document, as the command line prints it with `--json`."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class ApiMessage(msgspec.Struct, frozen=True):
    """Base of the API's requests and responses."""


class NoParameters(ApiMessage):
    """The request of an endpoint without parameters."""


class TextFile(ApiMessage):
    """A file to save."""

    name: str
    text: str


class TableRequest(ApiMessage):
    """The table that a request is about."""

    table: str


class DesignRequest(ApiMessage, kw_only=True):
    """A design: one of the studio's by name, a design document, or by default the studio's first."""

    design: str | None = None
    document: str | None = None


class ConsumedUnits(ApiMessage):
    """Capacity units consumed in one table or index."""

    table: str
    index: str | None  # None: the table itself
    reads: float
    writes: float
