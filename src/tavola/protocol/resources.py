"""Properties of a table that the engine exposes to access decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The properties of a table that an access decision may depend on."""

    arn: str
    hash: str
    range: str | None
    types: Mapping[str, str]
    indexes: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]  # hash and range attributes by index
    tags: Mapping[str, str] = field(default_factory=dict)
    policy: str | None = None  # the table's resource policy, as stored
    stream_policies: Mapping[str, str] = field(default_factory=dict)  # by the stream's ARN
