"""Reading: a key's bytes give back the values they were made of."""

from __future__ import annotations

from hypothesis import given

from tavola.keys import KeySchema, bounds_around, values_of
from tavola.values import Item
from tests.properties.strategies import key_sets


@given(key_sets())
def test_a_key_gives_back_its_values(keyed: tuple[KeySchema, list[Item]]) -> None:
    """Of any schema, with any values, what a key was made of is read from it; of a partition, its part."""
    schema, items = keyed
    for item in items:
        key = schema.key_of(item)

        assert values_of(schema, key) == {name: item[name] for name in schema.names}
        partition = bounds_around(schema, key).lower
        assert values_of(schema, partition) == {each.name: item[each.name] for each in schema.hash}
