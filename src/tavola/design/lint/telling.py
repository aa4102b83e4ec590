"""Telling: numbers and names as findings say them."""

from __future__ import annotations

from collections.abc import Iterable

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.model.document import Given, Need


def joined(names: Iterable[str], last: str = "and") -> str:
    """Return names as a sentence lists them."""
    told = list(dict.fromkeys(names))
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} {last} {told[-1]}" if told else ""


def quoted(titles: Iterable[str]) -> str:
    """Return the titles of access patterns as a sentence lists them."""
    return joined(f"“{title}”" for title in titles)


def rate(per_second: float) -> str:
    """Return a rate with no more digits than it needs."""
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.3g}"


def units(amount: float) -> str:
    """Return a number of units; those of reads come in halves."""
    return f"{amount:,.1f}".removesuffix(".0")


def counted(count: int, one: str, more: str = "") -> str:
    """Return a number with what is counted: one item, two items."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def size(amount: float) -> str:
    """Return bytes as people say them."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if amount >= factor:
            return f"{amount / factor:,.1f} {unit}".replace(".0 ", " ")
    return f"{amount:,.0f} B"


def wanted_key(need: Need) -> str:
    """Return in words the key of an index that would serve a need; one key decides one stretch and has one order."""
    equal = [given.field for given in need.where if given.operator in ("=", "in")]
    stretches = [given.field for given in need.where if given.operator in RANGE_OPERATORS]
    parts = [given.field for given in need.where if given.operator == "contains"]
    if parts and not equal and not stretches and not need.order:
        return f"an item for each value in {joined(parts)}, keyed by it"
    ordered = bool(need.order) and (not stretches or need.order[0] in stretches)
    sorts = list(need.order) if ordered else stretches[:1]
    equal += [f"a band of {name}" for name in stretches if name not in sorts]
    partition = f"partition key {joined(equal)}" if equal else "one constant partition key in shards"
    key = f"an index with {partition}" + (f" and sort key {joined(sorts)}" if sorts else "")
    return (
        key if ordered or not need.order else f"{key}, and sort the answer by {joined(need.order)} yourself"
    )


def conditions(given: Iterable[Given]) -> str:
    """Return conditions in words: `status`, `created_at >=`."""
    return joined(each.field if each.operator == "=" else f"{each.field} {each.operator}" for each in given)
