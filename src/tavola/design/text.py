"""Names and numbers as sentences write them: lists of names, rates, sizes, and keys described in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.model.document import Given, Need

CENT = Decimal("0.01")
HALF_CENT = Decimal("0.005")  # the smallest amount that rounds to a cent


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
    """Return a text cut to at most `most` characters."""
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


def format_money(amount: Decimal, currency: str = "USD") -> str:
    """Return an amount to the cent: `$1,234.50`, `12.00 EUR`; a smaller amount than a cent is `< $0.01`.

    A price below a cent is for a unit that is too small: multiply it first, as in `$0.34 per 1,000 requests`.
    """
    sign = "-" if amount <= -HALF_CENT else "< " if 0 < amount < HALF_CENT else ""
    digits = "0.01" if sign == "< " else f"{abs(amount):,.2f}"
    return f"{sign}${digits}" if currency == "USD" else f"{sign}{digits} {currency}"


def format_price(amount: Decimal) -> str:
    """Return a unit price to the cent; below a dollar to a tenth of a cent, as AWS publishes it: `$0.125`, `$6.13`."""
    if not CENT <= amount < 1:
        return format_money(amount)
    digits = f"{amount:.3f}"
    return f"${digits.removesuffix('0')}"


def format_size(amount: float) -> str:
    """Return bytes in the largest unit that fits."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if amount >= factor:
            return f"{amount / factor:,.1f} {unit}".replace(".0 ", " ")
    return f"{amount:,.0f} B"


def describe_key_for(need: Need) -> str:
    """Return a description of an index key that would serve a need. One key has one range and one order."""
    equal = [condition.field for condition in need.where if condition.operator in ("=", "in")]
    ranges = [condition.field for condition in need.where if condition.operator in RANGE_OPERATORS]
    elements = [condition.field for condition in need.where if condition.operator == "contains"]
    if elements and not equal and not ranges and not need.order:
        return f"one item per value of {join_names(elements)}, with that value as partition key"
    ordered = bool(need.order) and (not ranges or need.order[0] in ranges)
    sorts = list(need.order) if ordered else ranges[:1]
    equal += [f"a bucket of {name}" for name in ranges if name not in sorts]
    partition = f"partition key {join_names(equal)}" if equal else "a constant, sharded partition key"
    key = f"an index with {partition}" + (f" and sort key {join_names(sorts)}" if sorts else "")
    if ordered or not need.order:
        return key
    return f"{key}, and sort the result by {join_names(need.order)} in the application"


def describe_conditions(conditions: Iterable[Given]) -> str:
    """Return conditions as a list in a sentence: `status`, `created_at >=`."""
    return join_names(
        condition.field if condition.operator == "=" else f"{condition.field} {condition.operator}"
        for condition in conditions
    )
