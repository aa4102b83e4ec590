"""Laws of keys: bytes sort as values sort, no two keys are one, and bounds hold what a filter would keep."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tavola.keys import (
    Bounds,
    KeyAttribute,
    KeySchema,
    SortCondition,
    partition_bounds,
    segment_bounds,
    successor,
)
from tests.properties.naive import identity, position, satisfies, sort_key
from tests.properties.strategies import NUMBERS, Item, key_sets, key_values, schemas

OPERATORS = ("<", "<=", ">", ">=", "BETWEEN", "begins_with")


def _range(schema: KeySchema, key: Item) -> tuple[Any, ...]:
    return tuple(sort_key(key[each.name]) for each in schema.range)


@given(key_sets())
def test_two_keys_are_one_only_if_they_are_equal(drawn: tuple[KeySchema, list[Item]]) -> None:
    """Encoded keys collide exactly when all their values are the same."""
    schema, keys = drawn

    names = [*schema.names, *[each.name for each in schema.ties]]
    assert len({schema.key_of(key) for key in keys}) == len({identity(key, names) for key in keys})


@given(key_sets(ranges_min=1))
def test_keys_of_a_partition_sort_as_their_values(drawn: tuple[KeySchema, list[Item]]) -> None:
    """Within a partition, the order of bytes is the order of the range values, one after the other."""
    schema, keys = drawn
    hash_values = {each.name: keys[0][each.name] for each in schema.hash}
    keys = [key | hash_values for key in keys]

    assert [_range(schema, key) for key in sorted(keys, key=schema.key_of)] == sorted(
        _range(schema, key) for key in keys
    )


@given(key_sets())
def test_a_key_without_its_tie_is_that_of_a_schema_without_ties(
    drawn: tuple[KeySchema, list[Item]],
) -> None:
    """What an index adds to a key can be taken away, whatever bytes the key has."""
    schema, keys = drawn
    plain = KeySchema(schema.hash, schema.range)

    assert [schema.without_tie(schema.key_of(key)) for key in keys] == [plain.key_of(key) for key in keys]


@given(key_sets())
def test_partitions_sort_by_their_hash(drawn: tuple[KeySchema, list[Item]]) -> None:
    """A key begins with four bytes of the hash that AWS orders partitions by, as a second account of it has them."""
    schema, keys = drawn

    for key in keys:
        encoded = schema.key_of(key)
        assert encoded[:4] == position([key[each.name] for each in schema.hash])[:4]
        if schema.ties:
            assert encoded[-4:] == position([key[each.name] for each in schema.ties])[:4]


@given(NUMBERS)
def test_a_number_is_hashed_as_the_rule_spells_it(number: str) -> None:
    """For numbers of any sign, exponent and up to 38 digits, zero included."""
    schema = KeySchema((KeyAttribute("n", "N"),))

    assert schema.key_of({"n": {"N": number}})[:4] == position([{"N": number}])[:4]


@given(st.data(), key_sets(ranges_min=1))
def test_bounds_hold_what_a_filter_keeps(data: st.DataObject, drawn: tuple[KeySchema, list[Item]]) -> None:
    """A key lies in the bounds of a condition exactly when its values meet it, for each operator."""
    schema, keys = drawn
    chosen = data.draw(st.sampled_from(keys))
    keys = [
        key | {e.name: chosen[e.name] for e in schema.hash} if place % 2 else key
        for place, key in enumerate(keys)
    ]
    equal_count = data.draw(st.integers(0, len(schema.range)))
    prefix = schema.range[:equal_count]
    condition: SortCondition | None = None
    if equal_count < len(schema.range) and data.draw(st.booleans()):
        attribute = schema.range[equal_count]
        operator = data.draw(st.sampled_from(OPERATORS[:-1] if attribute.type == "N" else OPERATORS))
        given_values = [
            data.draw(
                st.one_of(st.sampled_from([key[attribute.name] for key in keys]), key_values(attribute.type))
            )
            for _ in range(2 if operator == "BETWEEN" else 1)
        ]
        condition = SortCondition(operator, tuple(sorted(given_values, key=sort_key)))

    bounds = partition_bounds(
        schema,
        [chosen[each.name] for each in schema.hash],
        [chosen[each.name] for each in prefix],
        condition,
    )

    fixed = [each.name for each in (*schema.hash, *prefix)]
    for key in keys:
        kept = identity(key, fixed) == identity(chosen, fixed)
        if condition is not None:
            kept = kept and satisfies(
                key[schema.range[equal_count].name], condition.operator, condition.values
            )
        assert bounds.holds(schema.key_of(key)) == kept


@given(st.integers(1, 40), st.lists(st.binary(min_size=4, max_size=8), max_size=20))
def test_segments_hold_every_key_once(total: int, keys: list[bytes]) -> None:
    """The segments of a scan follow on each other: every key lies in exactly one."""
    segments = [segment_bounds(segment, total) for segment in range(total)]

    assert segments[0].lower == b"\x00" * 4
    assert segments[-1].upper is None
    assert [each.upper for each in segments[:-1]] == [each.lower for each in segments[1:]]
    for key in keys:
        assert sum(each.holds(key) for each in segments) == 1


@given(st.integers(900_000, 1_000_000), st.binary(min_size=4, max_size=6))
def test_the_most_segments_still_hold_every_key_once(total: int, key: bytes) -> None:
    """A million segments are cut as cleanly as two."""
    place = int.from_bytes(key[:4], "big") * total >> 32
    near = [segment_bounds(s, total) for s in range(max(0, place - 2), min(total, place + 3))]

    assert sum(each.holds(key) for each in near) == 1


@given(st.binary(max_size=6), st.lists(st.binary(max_size=8), max_size=20))
def test_a_successor_is_past_every_extension_and_nothing_else(prefix: bytes, keys: list[bytes]) -> None:
    """From a prefix to its successor lie the keys that start with the prefix."""
    bounds = Bounds(prefix, successor(prefix))

    for key in [*keys, prefix, prefix + b"\xff\xff"]:
        assert bounds.holds(key) == key.startswith(prefix)


@given(schemas().flatmap(lambda schema: st.tuples(st.just(schema), st.sampled_from(schema.names))), st.data())
def test_an_item_without_a_key_attribute_is_in_no_index(
    drawn: tuple[KeySchema, str], data: st.DataObject
) -> None:
    """An item is in an index only with all of its key attributes."""
    schema, missing = drawn
    key = {each.name: data.draw(key_values(each.type)) for each in schema.attributes if each.name != missing}

    assert schema.entry_of(key) is None
