"""AccessPattern: what is asked, how often, of how much.

Said once, where the key or query is declared; the client takes its default consistency from it, and the
linter, the cost planner and the simulator take the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.limits import ITEM_BYTES_MAX
from tavola.model.errors import ModelError

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


def check_amounts(place: str, told: AccessPattern | WritePattern) -> None:
    """Refuse an access pattern of how often or how much there cannot be."""
    place = f"{place} {told.title!r}"
    often, peak = told.per_second, told.peak_per_second
    for word, rate in (("per_second", often), ("peak_per_second", peak)):
        if rate is not None and not 0 <= rate < float("inf"):
            raise ModelError(place, f"{word}={rate} is no rate; give 0 or more")
    if often is not None and peak is not None and peak < often:
        raise ModelError(place, f"its peak, {peak}, is below its average, {often}; exchange them")
    if told.item_bytes is not None and not 1 <= told.item_bytes <= ITEM_BYTES_MAX:
        raise ModelError(place, f"item_bytes={told.item_bytes} is no item's size; give 1 to {ITEM_BYTES_MAX}")
    if isinstance(told, AccessPattern) and told.items is not None and told.items < 0:
        raise ModelError(place, f"items={told.items} is how many a request returns; give 0 or more")
