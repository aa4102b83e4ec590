"""Hot keys: what is counted in little room is never too little, and the heaviest are found."""

from __future__ import annotations

import random
from collections import Counter

from tavola.engine.emulation.hot_keys import KeyCounters


def test_few_keys_are_counted_exactly() -> None:
    """Up to the capacity every count is exact and the order is by weight, then by key."""
    counters = KeyCounters(10)
    for key, weight in ((b"b", 2.0), (b"a", 2.0), (b"c", 5.0), (b"b", 0.5)):
        counters.add(key, weight)

    assert [(hot.key, hot.count, hot.error) for hot in counters.top(3)] == [
        (b"c", 5.0, 0.0),
        (b"b", 2.5, 0.0),
        (b"a", 2.0, 0.0),
    ]
    assert counters.total == 9.5


def test_the_heaviest_of_many_keys_are_found_with_their_error() -> None:
    """Of 20,000 keys in room for 100, the ten that matter come first; counts are over by `error` at most."""
    chance = random.Random(11)
    true: Counter[bytes] = Counter()
    counters = KeyCounters(100)
    for _ in range(60_000):
        often = chance.random() < 0.4
        key = f"hot{chance.randrange(10)}" if often else f"cold{chance.randrange(20_000)}"
        true[key.encode()] += 1
        counters.add(key.encode(), 1.0)
    top = counters.top(10)

    assert {hot.key for hot in top} == {key for key, _ in true.most_common(10)}
    for hot in top:
        assert true[hot.key] <= hot.count <= true[hot.key] + hot.error
    assert len(list(counters)) <= 200
