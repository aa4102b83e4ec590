"""Attribute filters: stored items reduced to some attributes, without decoding them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from tavola.engine.reads import AttributeFilter, attribute_filter
from tavola.values import decode_item, encode_item
from tests.properties.strategies import ITEMS, NAMES, Item

SOME_NAMES = st.frozensets(NAMES, max_size=6)


@given(st.lists(ITEMS, max_size=4), SOME_NAMES, st.data())
def test_a_filter_keeps_the_named_attributes_unchanged(
    items: list[Item], chosen: frozenset[str], data: st.DataObject
) -> None:
    """An item keeps exactly the named attributes, whatever their names and values."""
    there = sorted({name for item in items for name in item})
    names = chosen | (frozenset(data.draw(st.lists(st.sampled_from(there)))) if there else frozenset())

    filtered = attribute_filter(names)([encode_item(item) for item in items])

    assert [decode_item(each) for each in filtered] == [
        {name: value for name, value in item.items() if name in names} for item in items
    ]


def test_a_filter_accepts_names_that_no_struct_can_have() -> None:
    """Quotes, backslashes and control characters are allowed in names."""
    item = {'a"b': {"S": "1"}, "c\\d": {"N": "2"}, "e\nf": {"S": "3"}, "g": {"S": "4"}}

    assert [decode_item(each) for each in AttributeFilter(['a"b', "c\\d", "e\nf"])([encode_item(item)])] == [
        {'a"b': {"S": "1"}, "c\\d": {"N": "2"}, "e\nf": {"S": "3"}}
    ]


def test_many_threads_may_build_and_use_filters_at_once() -> None:
    """Filters are built by one thread at a time and used by any number."""
    item = encode_item({f"n{number}": {"S": "x" * 50} for number in range(20)})

    def count_kept(number: int) -> int:
        names = frozenset({f"n{number % 20}", f"n{(number * 7) % 20}", f"m{number % 300}"})
        return len(decode_item(attribute_filter(names)([item] * 5)[0]))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(count_kept, range(3000))) <= {1, 2}
