"""Rates: how often the busiest item or partition is written, as far as the design declares it.

Nothing is guessed: without a rate or a number of items the answer is None.
"""

from __future__ import annotations

from math import log, prod

from tavola.model.document import AccessPattern, EntityDesign, KeyDesign, WritePattern

PLANNED_SHARE = 0.7  # of a partition's limit; the rest is for peaks and uneven keys
_COUNT_MAX = 10**15  # larger counts are treated as this one
_EXACT_TERMS = 1_000  # terms of the harmonic sum that are added exactly; the rest is an integral


def peak_rate(pattern: AccessPattern | WritePattern | None) -> float | None:
    """Return the declared peak rate of a pattern, else its average; None if neither is declared."""
    if pattern is None:
        return None
    return pattern.per_second if pattern.peak_per_second is None else pattern.peak_per_second


def busiest_share(count: int, skew: float | None) -> float:
    """Return the busiest one's share of the traffic among `count`: equal shares, or Zipf's law with `skew`."""
    count = min(count, _COUNT_MAX)
    if count <= 1:
        return 1.0
    if not skew:
        return 1 / count
    head = min(count, _EXACT_TERMS)
    total: float = sum(float(rank) ** -skew for rank in range(1, head + 1))
    if count > head:  # the rest as an integral
        low, high = head + 0.5, count + 0.5
        if abs(skew - 1) < 1e-9:
            total += log(high / low)
        else:
            total += (high ** (1 - skew) - low ** (1 - skew)) / (1 - skew)
    return 1 / total


def count_key_values(entity: EntityDesign, key: KeyDesign, *, partition: bool = False) -> int | None:
    """Return the number of values of a key, or of its partition key; None if a field does not declare its number.

    A key without fields has one value.
    """
    names = {name for source in (key.hash if partition else key.sources) for name in source.fields}
    counts = [entity.field(name).values for name in sorted(names)]
    known = [count for count in counts if count is not None]
    return prod(known) if len(known) == len(counts) else None


def count_items(entity: EntityDesign) -> int | None:
    """Return the number of items of an entity, as declared or as its key allows; None if unknown."""
    if entity.items is not None:
        return entity.items
    return None if entity.key is None else count_key_values(entity, entity.key)


def busiest_item_rate(entity: EntityDesign, write: WritePattern) -> float | None:
    """Return writes per second to the busiest item; None if the rate or the number of items is unknown."""
    rate, count = peak_rate(write), count_items(entity)
    if rate is None or count is None:
        return None
    return rate * min(1.0, min(write.items, _COUNT_MAX) * busiest_share(count, write.skew))
