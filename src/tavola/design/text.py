"""Names and numbers as sentences write them: lists of names, rates, sizes, and keys described in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.model.document import Given, Need


def join_names(names: Iterable[str], last: str = "and") -> str:
    """Return names as a list in a sentence, each once: `a, b and c`."""
    unique = list(dict.fromkeys(names))
    return f"{', '.join(unique[:-1])} {last} {unique[-1]}" if len(unique) > 1 else "".join(unique)


def join_titles(titles: Iterable[str]) -> str:
    """Return titles of access patterns as a list in a sentence, in quotation marks."""
    return join_names(f"“{title}”" for title in titles)


def list_first(names: Sequence[str], most: int = 3) -> str:
    """Return the first names of a long list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def truncate(text: str, most: int) -> str:
    """Return a text with at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def format_rate(per_second: float) -> str:
    """Return a rate with no more digits than it needs."""
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.3g}"


def format_units(amount: float) -> str:
    """Return a number of capacity units, with a decimal only for the halves of eventually consistent reads."""
    return f"{amount:,.1f}".removesuffix(".0")


def format_count(count: int, one: str, more: str = "") -> str:
    """Return a number with its noun: `1 item`, `2 items`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def format_size(amount: float) -> str:
    """Return bytes in the largest unit that fits."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if amount >= factor:
            return f"{amount / factor:,.1f} {unit}".replace(".0 ", " ")
    return f"{amount:,.0f} B"


def describe_key_for(need: Need) -> str:
    """Return a description of an index key that would serve a need. One key has one range and one order."""
    equal = [given.field for given in need.where if given.operator in ("=", "in")]
    ranges = [given.field for given in need.where if given.operator in RANGE_OPERATORS]
    elements = [given.field for given in need.where if given.operator == "contains"]
    if elements and not equal and not ranges and not need.order:
        return f"an item for each value in {join_names(elements)}, keyed by it"
    ordered = bool(need.order) and (not ranges or need.order[0] in ranges)
    sorts = list(need.order) if ordered else ranges[:1]
    equal += [f"a band of {name}" for name in ranges if name not in sorts]
    partition = f"partition key {join_names(equal)}" if equal else "one constant partition key in shards"
    key = f"an index with {partition}" + (f" and sort key {join_names(sorts)}" if sorts else "")
    if ordered or not need.order:
        return key
    return f"{key}, and sort the answer by {join_names(need.order)} yourself"


def describe_conditions(conditions: Iterable[Given]) -> str:
    """Return conditions as a list in a sentence: `status`, `created_at >=`."""
    return join_names(
        each.field if each.operator == "=" else f"{each.field} {each.operator}" for each in conditions
    )
