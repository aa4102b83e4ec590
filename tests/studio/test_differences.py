"""Differences of two items: by type and place, numbers by what they are worth, sets without order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.studio.differences import VALUE_BYTES_MAX, compare_items, same_item

VALUES = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, st.text(max_size=3)),
        st.builds(lambda number: {"N": str(number)}, st.integers(-5, 5)),
        st.builds(lambda texts: {"SS": sorted(texts)}, st.sets(st.sampled_from("abc"), min_size=1)),
        st.just({"NULL": True}),
    ),
    lambda inner: st.one_of(
        st.builds(lambda held: {"L": held}, st.lists(inner, max_size=3)),
        st.builds(lambda held: {"M": held}, st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    ),
    max_leaves=6,
)
ITEMS = st.dictionaries(st.sampled_from(["pk", "a", "b c"]), VALUES, max_size=3)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"N": "1.50"}, {"N": "1.5"}, []),
        (
            {"N": "12345678901234567890123456789012345678"},
            {"N": "12345678901234567890123456789012345679"},
            ["v changed"],
        ),
        ({"NS": ["1", "2.0"]}, {"NS": ["2", "1"]}, []),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, []),
        ({"S": "1"}, {"N": "1"}, ["v changed"]),
        (
            {"M": {"a": {"S": "x"}}},
            {"M": {"a": {"S": "y"}, "b-c": {"S": "z"}}},
            ["v.a changed", "v.b-c added"],
        ),
        ({"M": {"a b": {"S": "x"}}}, {"M": {}}, ['v["a b"] removed']),
        ({"L": [{"S": "a"}, {"S": "b"}]}, {"L": [{"S": "z"}, {"S": "a"}, {"S": "b"}]}, ["v[0] added"]),
        ({"L": [{"S": "a"}, {"S": "b"}, {"S": "c"}]}, {"L": [{"S": "a"}, {"S": "c"}]}, ["v[1] removed"]),
        ({"L": [{"S": "a"}, {"S": "b"}]}, {"L": [{"S": "a"}, {"S": "c"}]}, ["v[1] changed"]),
        ({"B": "AA=="}, {"B": "AQ=="}, ["v changed"]),
    ],
)
def test_places_and_kinds(before: dict[str, Any], after: dict[str, Any], told: list[str]) -> None:
    """A difference is reported at the innermost path that differs."""
    result = compare_items({"v": before}, {"v": after}).differences

    assert [f"{each.path} {each.kind}" for each in result] == told


@pytest.mark.slow
@settings(max_examples=150)
@given(ITEMS, ITEMS)
def test_no_difference_means_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Items differ exactly where differences are reported, in both directions."""
    there, back = compare_items(one, other), compare_items(other, one)

    assert (there.total == 0) == same_item(one, other)
    assert there.total == back.total
    assert compare_items(one, one).total == 0


def test_many_are_counted_and_long_values_left_out() -> None:
    """For an item of ten thousand attributes all differences are counted and some listed; long values are omitted."""
    many = compare_items({}, {f"a{number}": {"S": "x"} for number in range(10_000)})
    long = compare_items({"t": {"S": "x"}}, {"t": {"S": "y" * (VALUE_BYTES_MAX + 1)}}).differences[0]

    assert (len(many.differences), many.total) == (200, 10_000)
    assert long.omitted
    assert long.after is None
