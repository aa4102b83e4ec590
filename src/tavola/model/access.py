"""AccessPattern: what is asked, how often, of how much.

Said once, where the key or query is declared; the client takes its default consistency from it, and the
linter, the cost planner and the simulator take the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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
    reads: tuple[str, ...] = ()  # the fields that the application uses of the answer; none: all of them
    filters: tuple[str, ...] = ()  # fields that the answer is filtered by after it was read
    returned: int | None = None  # items that the filters leave
    descending: bool = False  # whether the last come first
    transactional: bool = False
    skew: float | None = None  # Zipf's exponent over the partitions that are read; None: unknown

    def check(self, place: str) -> None:
        """Raise ModelError for rates or amounts that cannot be."""
        place = f"{place} {self.title!r}"
        _check_rates(place, self)
        if self.items is not None and self.items < 0:
            raise ModelError(place, f"items={self.items} is how many a request returns; give 0 or more")
        if self.returned is not None and not 0 <= self.returned <= (self.items or self.returned):
            raise ModelError(
                place, f"returned={self.returned} is how many of its {self.items} items the filters leave"
            )


@dataclass(frozen=True, slots=True)
class WritePattern:
    """A named way in which the application writes an entity."""

    title: str
    kind: WriteKind
    changes: tuple[str, ...] = ()  # the fields that an update sets, or a put of an item that stands there
    per_second: float | None = None
    peak_per_second: float | None = None
    item_bytes: int | None = None
    transactional: bool = False
    items: int = 1  # that one request writes
    together: str = ""  # the transaction that it is a part of, by its name
    adds: tuple[str, ...] = ()  # fields that an update counts up
    rewrites: tuple[str, ...] = ()  # index key attributes that other code than Tavola's sets itself
    creates: bool = False  # an update that makes the item where there is none
    skew: float | None = None  # Zipf's exponent over the items that are written
    conditional: bool = False  # guarded by a condition on a new key, or on what was read before

    def check(self, place: str) -> None:
        """Raise ModelError for rates, amounts or a kind that cannot be."""
        place = f"{place} {self.title!r}"
        _check_rates(place, self)
        if self.items < 1:
            raise ModelError(place, f"items={self.items} is how many a request writes; give 1 or more")
        if self.kind not in get_args(WriteKind):
            raise ModelError(
                place, f"kind={self.kind!r} is no way to write; give {', '.join(get_args(WriteKind))}"
            )


def _check_rates(place: str, pattern: AccessPattern | WritePattern) -> None:
    often, peak = pattern.per_second, pattern.peak_per_second
    for word, rate in (("per_second", often), ("peak_per_second", peak)):
        if rate is not None and not 0 <= rate < float("inf"):
            raise ModelError(place, f"{word}={rate} is no rate; give 0 or more")
    if often is not None and peak is not None and peak < often:
        raise ModelError(place, f"its peak, {peak}, is below its average, {often}; exchange them")
    if pattern.item_bytes is not None and not 1 <= pattern.item_bytes <= ITEM_BYTES_MAX:
        raise ModelError(
            place, f"item_bytes={pattern.item_bytes} is no item's size; give 1 to {ITEM_BYTES_MAX}"
        )
    if pattern.skew is not None and not 0 <= pattern.skew < float("inf"):
        raise ModelError(
            place, f"skew={pattern.skew} is no exponent; give 0 for even traffic, about 1 for Zipf's"
        )
