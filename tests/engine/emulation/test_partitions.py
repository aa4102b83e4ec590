"""Partitions: how many there are, what each holds, and when and where one is split for heat."""

from __future__ import annotations

import random
from collections.abc import Callable

from tavola.engine.emulation.partitions import ThroughputPartitions, divide
from tavola.keys import KeyAttribute, KeySchema, bounds_around

SCHEMA = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))


def _key(pk: str, sk: str = "0") -> bytes:
    return SCHEMA.key_of({"pk": {"S": pk}, "sk": {"S": sk}})


def _collection(key: bytes) -> bytes:
    return bounds_around(SCHEMA, key).lower


def _partitions(count: int = 1, *, whole: bool = False) -> ThroughputPartitions:
    return ThroughputPartitions(count, 0.0, _collection, whole_collections=whole)


def _heat(
    partitions: ThroughputPartitions, seconds: int, key_of: Callable[[int], bytes], *, after_s: float = 60.0
) -> None:
    """Ask 1,500 units of writing a second for so long, in 150 requests."""
    number = 0
    for second in range(seconds):
        for part in range(150):
            key, now_s = key_of(number), second + part / 150
            number += 1
            partitions.split_if_hot(partitions.find(key), after_s, now_s)
            partition = partitions.find(key)
            fits = partition.writes.has_tokens(now_s)
            if fits:
                partition.writes.take(10.0)
            partition.note(key, 0.0, 10.0, now_s, throttled=not fits)


def test_partitions_cover_all_keys_without_overlap() -> None:
    """Every key lies in exactly one partition, and even cuts are evenly wide."""
    partitions = _partitions(4)
    parts = list(partitions)

    assert [part.lower for part in parts] == [b"", b"\x40\0\0\0", b"\x80\0\0\0", b"\xc0\0\0\0"]
    assert [part.upper for part in parts] == [part.lower for part in parts[1:]] + [None]
    for number in range(500):
        key = _key(f"k{number}")
        holding = [p for p in parts if p.lower <= key and (p.upper is None or key < p.upper)]
        assert holding == [partitions.find(key)]


def test_partitions_are_never_fewer_again() -> None:
    """Growing to fewer than there are changes nothing."""
    partitions = _partitions(5)
    partitions.grow(2, 1.0)

    assert len(partitions) == 5


def test_a_partition_that_stays_hot_is_split_and_the_halves_carry_it() -> None:
    """Heat over many keys for the stated time splits the partition once; each half gets part of it."""
    partitions = _partitions()
    _heat(partitions, 59, lambda number: _key(f"k{number % 97}"))
    assert len(partitions) == 1

    _heat(partitions, 80, lambda number: _key(f"k{number % 97}"))
    assert (len(partitions), partitions.splits) == (2, 1)


def test_heat_with_a_break_begins_again() -> None:
    """A partition that cools down in between has not been hot for long."""
    partitions = _partitions()
    key_of: Callable[[int], bytes] = lambda number: _key(f"k{number % 97}")  # noqa: E731 - one line, used twice
    _heat(partitions, 40, key_of)
    partitions.find(key_of(0)).note(key_of(0), 0.0, 1.0, 100.0, throttled=False)

    assert partitions.find(key_of(0)).hot_for_s(100.0) == 0.0


def test_one_hot_key_is_never_split() -> None:
    """No split helps a single item, however long it is hot."""
    partitions = _partitions()
    _heat(partitions, 200, lambda number: _key("only"))

    assert len(partitions) == 1


def test_a_hot_key_among_others_is_isolated() -> None:
    """Splits go around a hot key until it has a partition nearly to itself, and then stop."""
    partitions = _partitions()
    chance = random.Random(3)
    keys = [_key(f"cold{number}") for number in range(50)]
    hot = min((_key(f"hot{number}") for number in range(50)), key=lambda key: abs(key[0] - 128))
    _heat(
        partitions,
        600,
        lambda number: hot if chance.random() < 0.85 else chance.choice(keys),
        after_s=60.0,
    )
    alone = partitions.find(hot)
    beside = [key for key in keys if alone.lower <= key and (alone.upper is None or key < alone.upper)]

    assert 2 <= partitions.splits <= 6
    assert len(beside) <= len(keys) // 5


def test_a_collection_is_cut_by_its_sort_key() -> None:
    """A hot partition key whose items are asked for here and there is spread over partitions."""
    chance = random.Random(1)
    samples = [(_key("one", f"{chance.randrange(1000):04}"), 1.0) for _ in range(400)]
    place = divide(samples, _collection, whole_collections=False)

    assert place is not None
    assert _collection(place) == _collection(_key("one"))
    left = sum(key < place for key, _ in samples)
    assert 150 < left < 250


def test_a_local_index_keeps_a_collection_together() -> None:
    """With a local index no split goes through a collection, and one collection alone is not split."""
    chance = random.Random(1)
    one = [(_key("one", f"{chance.randrange(1000):04}"), 1.0) for _ in range(200)]
    two = [(_key("two", f"{chance.randrange(1000):04}"), 1.0) for _ in range(200)]

    assert divide(one, _collection, whole_collections=True) is None
    place = divide(one + two, _collection, whole_collections=True)
    assert place in {_collection(_key("one")), _collection(_key("two"))}


def test_a_collection_that_grows_in_order_is_not_cut() -> None:
    """Keys that come one after the other would only carry the heat to the end of the new half."""
    rising = [(_key("log", f"{number:06}"), 1.0) for number in range(400)]

    assert divide(rising, _collection, whole_collections=False) is None
    assert divide(rising[::-1], _collection, whole_collections=False) is None
    # The same keys in no order are cut: it is the order that forbids it.
    random.Random(2).shuffle(rising)
    assert divide(rising, _collection, whole_collections=False) is not None


def test_a_split_that_moves_next_to_nothing_is_not_made() -> None:
    """Where one key has nearly all of the heat, a split would change nothing."""
    samples = [(_key("hot"), 1.0)] * 99 + [(_key("cold"), 1.0)]

    assert divide(samples, _collection, whole_collections=False) is None
