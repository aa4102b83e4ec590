"""Rates: how often the busiest item or partition of a write is written, as far as a design says it.

What is not said is not guessed here: without a rate, or without the number of items, there is no answer.
"""

from __future__ import annotations

from math import log, prod

from tavola.model.document import AccessPattern, EntityDesign, KeyDesign, WritePattern

PLANNED_SHARE = 0.7  # of what a partition takes; beyond it, peaks and uneven keys come to its bound
_COUNT_MAX = 10**15  # more of anything are as good as infinitely many
_EXACT_TERMS = 1_000  # terms of a harmonic sum that are added one by one


def peak_rate(pattern: AccessPattern | WritePattern | None) -> float | None:
    """Return how often something is asked at its busiest, else on average; None: nobody said it."""
    if pattern is None:
        return None
    return pattern.per_second if pattern.peak_per_second is None else pattern.peak_per_second


def busiest_share(count: int, skew: float | None) -> float:
    """Return the share of the busiest of so many: as large as all others, or by Zipf's law."""
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
    """Return how many values a key has, its partition's alone or all of it; None where a field says no number.

    A key without a field has one, and so one item that everything goes to.
    """
    names = {name for source in (key.hash if partition else key.sources) for name in source.fields}
    counts = [entity.field(name).values for name in sorted(names)]
    told = [count for count in counts if count is not None]
    return prod(told) if len(told) == len(counts) else None


def count_items(entity: EntityDesign) -> int | None:
    """Return how many items of an entity there are, as it says or as its key allows; None: nobody knows."""
    if entity.items is not None:
        return entity.items
    return None if entity.key is None else count_key_values(entity, entity.key)


def busiest_item_rate(entity: EntityDesign, write: WritePattern) -> float | None:
    """Return how often a second the busiest item of a write is written; None where rate or number are unknown."""
    rate, count = peak_rate(write), count_items(entity)
    if rate is None or count is None:
        return None
    return rate * min(1.0, min(write.items, _COUNT_MAX) * busiest_share(count, write.skew))
