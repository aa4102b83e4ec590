"""Narrowing: bytes in, bytes out, and nothing but what is wanted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from tavola.values import AttributeFilter, attribute_filter, decode_item, encode_item
from tests.properties.strategies import ITEMS, NAMES, Item

WANTED = st.frozensets(NAMES, max_size=6)


@given(st.lists(ITEMS, max_size=4), WANTED, st.data())
def test_what_is_wanted_is_kept_as_it_is(
    given_items: list[Item], wanted: frozenset[str], data: st.DataObject
) -> None:
    """An item is narrowed to the attributes of some names, whatever those are called and hold."""
    there = sorted({name for item in given_items for name in item})
    names = wanted | (frozenset(data.draw(st.lists(st.sampled_from(there)))) if there else frozenset())

    found = attribute_filter(names)([encode_item(item) for item in given_items])

    assert [decode_item(each) for each in found] == [
        {name: value for name, value in item.items() if name in names} for item in given_items
    ]


def test_names_that_no_struct_can_have_are_narrowed_to_as_well() -> None:
    """Quotes, backslashes and control signs are names like any other."""
    item = {'a"b': {"S": "1"}, "c\\d": {"N": "2"}, "e\nf": {"S": "3"}, "g": {"S": "4"}}

    assert [decode_item(each) for each in AttributeFilter(['a"b', "c\\d", "e\nf"])([encode_item(item)])] == [
        {'a"b': {"S": "1"}, "c\\d": {"N": "2"}, "e\nf": {"S": "3"}}
    ]


def test_many_threads_may_make_and_use_them_at_once() -> None:
    """Narrowings are made by one thread at a time and used by any number."""
    item = encode_item({f"n{number}": {"S": "x" * 50} for number in range(20)})

    def narrow(number: int) -> int:
        names = frozenset({f"n{number % 20}", f"n{(number * 7) % 20}", f"m{number % 300}"})
        return len(decode_item(attribute_filter(names)([item] * 5)[0]))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(narrow, range(3000))) <= {1, 2}
