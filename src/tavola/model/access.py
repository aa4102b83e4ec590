"""AccessPattern and WritePattern: what an application reads and writes, how often, and how much.

Declared once, beside the key or query. The client uses the default consistency; the linter, the cost planner and the
simulator use the rates and sizes.
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
        """Raise ModelError for impossible rates or amounts."""
        place = f"{place} {self.title!r}"
        _check_rates(place, self)
        if self.items is not None and self.items < 0:
            raise ModelError(
                place, f"items={self.items} is the number of items a request returns; use 0 or more"
            )
        if self.returned is not None and not 0 <= self.returned <= (self.items or self.returned):
            raise ModelError(
                place,
                f"returned={self.returned} must be between 0 and items={self.items}: it is how many items pass the filter",
            )


@dataclass(frozen=True, slots=True)
class WritePattern:
    """A named way in which the application writes an entity."""

    title: str
    kind: WriteKind
    changes: tuple[str, ...] = ()  # the fields that an update sets, or a put that replaces an item
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
        """Raise ModelError for impossible rates or amounts, or an unknown kind."""
        place = f"{place} {self.title!r}"
        _check_rates(place, self)
        if self.items < 1:
            raise ModelError(
                place, f"items={self.items} is the number of items a request writes; use 1 or more"
            )
        if self.kind not in get_args(WriteKind):
            raise ModelError(
                place, f"kind={self.kind!r} is not a kind of write; use {', '.join(get_args(WriteKind))}"
            )


def _check_rates(place: str, pattern: AccessPattern | WritePattern) -> None:
    mean, peak = pattern.per_second, pattern.peak_per_second
    for word, rate in (("per_second", mean), ("peak_per_second", peak)):
        if rate is not None and not 0 <= rate < float("inf"):
            raise ModelError(place, f"{word}={rate} is not a rate; use 0 or more")
    if mean is not None and peak is not None and peak < mean:
        raise ModelError(place, f"peak_per_second ({peak}) is lower than per_second ({mean}); swap them")
    if pattern.item_bytes is not None and not 1 <= pattern.item_bytes <= ITEM_BYTES_MAX:
        raise ModelError(place, f"item_bytes={pattern.item_bytes} is out of range; use 1 to {ITEM_BYTES_MAX}")
    if pattern.skew is not None and not 0 <= pattern.skew < float("inf"):
        raise ModelError(
            place,
            f"skew={pattern.skew} is not a valid exponent; use 0 for even traffic or about 1 for a Zipf "
            "distribution",
        )
