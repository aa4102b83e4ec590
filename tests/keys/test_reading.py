"""Reading: a key's bytes decode to the values they were made of."""

from __future__ import annotations

from hypothesis import given

from tavola.keys import KeySchema, bounds_around, values_of
from tavola.values import Item
from tests.properties.strategies import key_sets


@given(key_sets())
def test_a_key_decodes_to_its_values(keyed: tuple[KeySchema, list[Item]]) -> None:
    """For any schema and values, a key without its tie decodes to its values, and a partition key to its part."""
    schema, items = keyed
    for item in items:
        key = schema.key_of(item)

        assert values_of(schema, schema.without_tie(key)) == {name: item[name] for name in schema.names}
        partition = bounds_around(schema, key).lower
        assert values_of(schema, partition) == {each.name: item[each.name] for each in schema.hash}
