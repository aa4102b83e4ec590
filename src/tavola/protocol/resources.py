"""Resources: what is known of a table by whoever decides about it from outside the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table's names and settings, as far as a decision about access can depend on them."""

    arn: str
    hash: str
    range: str | None
    types: Mapping[str, str]
    indexes: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]  # hash and range attributes by index
    tags: Mapping[str, str] = field(default_factory=dict)
    policy: str | None = None  # the resource policy on the table, as it was put
    stream_policies: Mapping[str, str] = field(default_factory=dict)  # by the stream's ARN
