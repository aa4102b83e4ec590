"""AccessPattern: what is asked, how often, of how much.

Said once, where the key or query is declared; the client takes its default consistency from it, and the
linter, the cost planner and the simulator take the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WriteKind = Literal["put", "update", "delete"]


@dataclass(frozen=True, slots=True)
class AccessPattern:
    """A named way in which the application reads."""

    title: str
    per_second: float | None = None  # on average
    peak_per_second: float | None = None
    items: int | None = None  # that one request returns
    item_bytes: int | None = None
    consistent: bool = False  # whether a read must see every write before it


@dataclass(frozen=True, slots=True)
class WritePattern:
    """A named way in which the application writes an entity."""

    title: str
    kind: WriteKind
    changes: tuple[str, ...] = ()  # the fields that an update sets
    per_second: float | None = None
    peak_per_second: float | None = None
    item_bytes: int | None = None
    transactional: bool = False
