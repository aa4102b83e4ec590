"""Facts about tables and streams that the engine provides for access decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field


class TableFacts(Struct, frozen=True):
    """The properties of a table that an access decision may depend on."""

    arn: str
    hash: str
    range: str | None
    types: Mapping[str, str]
    indexes: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]  # hash and range attributes by index
    tags: Mapping[str, str] = field(default_factory=dict)
    policy: str | None = None  # the table's resource policy, as stored
    stream_policies: Mapping[str, str] = field(default_factory=dict)  # by the stream's ARN


class GuardResources(Protocol):
    """The facts about tables and streams that a guard can query from the engine."""

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return the facts about the table that a request names, or None if it does not exist."""
        ...

    def iterator_stream(self, iterator: str) -> str | None:
        """Return the ARN of the stream that a shard iterator reads, or None if the iterator is invalid."""
        ...
