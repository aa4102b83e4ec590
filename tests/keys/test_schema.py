"""Key schemas: what makes a key, what is refused, and how keys lie beside each other."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.keys import KeyAttribute, KeyRefused, KeySchema, SortCondition, partition_bounds
from tavola.values import canonical_number

SORTED = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "N"),))
MULTI = KeySchema(
    (KeyAttribute("a", "S"), KeyAttribute("b", "S")), (KeyAttribute("c", "S"), KeyAttribute("d", "S"))
)


def _texts(**values: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in values.items()}


@pytest.mark.parametrize(
    ("key", "reason", "name"),
    [
        ({"pk": {"S": "a"}}, "missing", "sk"),
        ({"sk": {"N": "1"}}, "missing", "pk"),
        ({"pk": {"N": "1"}, "sk": {"N": "1"}}, "type", "pk"),
        ({"pk": {"S": "a"}, "sk": {"S": "1"}}, "type", "sk"),
        ({"pk": {"S": ""}, "sk": {"N": "1"}}, "empty", "pk"),
        ({"pk": {"S": "é" * 1025}, "sk": {"N": "1"}}, "hash-size", "pk"),
    ],
)
def test_attributes_that_make_no_key_are_refused(key: dict[str, Any], reason: str, name: str) -> None:
    """A key has each attribute, of its type, not empty and not too large in bytes."""
    with pytest.raises(KeyRefused) as caught:
        SORTED.key_of(key)

    assert (caught.value.reason, caught.value.name) == (reason, name)


def test_the_largest_keys_are_taken() -> None:
    """2,048 bytes of hash and 1,024 of range fit; of several attributes, together."""
    assert MULTI.key_of(_texts(a="x" * 1024, b="y" * 1024, c="z" * 512, d="w" * 512))
    with pytest.raises(KeyRefused) as caught:
        MULTI.key_of(_texts(a="x" * 1024, b="y" * 1025, c="z", d="w"))
    assert caught.value.reason == "hash-size"
    with pytest.raises(KeyRefused) as caught:
        MULTI.key_of(_texts(a="x", b="y", c="z" * 512, d="w" * 513))
    assert caught.value.reason == "range-size"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_texts(a="a#b", b="c", c="x", d="y"), _texts(a="a", b="b#c", c="x", d="y")),
        (_texts(a="ab", b="c", c="x", d="y"), _texts(a="a", b="bc", c="x", d="y")),
        (_texts(a="a", b="b", c="x\x00", d="y"), _texts(a="a", b="b", c="x", d="\x00y")),
        (_texts(a="a", b="b", c="x\x00\x00", d="y"), _texts(a="a", b="b", c="x", d="\x00\x00y")),
        (_texts(a="a", b="b", c="x\x00\xff", d="y"), _texts(a="a", b="b", c="x\x00", d="\xffy")),
    ],
)
def test_values_do_not_run_into_each_other(one: dict[str, Any], other: dict[str, Any]) -> None:
    """No delimiter of any kind makes two keys one."""
    assert MULTI.key_of(one) != MULTI.key_of(other)


def test_a_prefix_sorts_before_what_it_begins() -> None:
    """The text "a" with the last of sort keys comes before "a" and NUL with the first."""
    texts = ["a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x01", "ab", "b"]
    keys = [MULTI.key_of(_texts(a="p", b="q", c=c, d=d)) for c in texts for d in ("\x00", "\U0010ffff")]

    assert keys == sorted(keys)


def test_numbers_sort_as_numbers_over_the_whole_range() -> None:
    """From the largest negative to the largest positive, through every exponent."""
    digits = ("1", "15", "9" * 38)
    magnitudes = [f"{d[0]}.{d[1:] or '0'}E{exponent}" for exponent in range(-130, 126) for d in digits]
    positive = [canonical_number(each) for each in magnitudes]
    numbers = [f"-{each}" for each in reversed(positive)] + ["0", *positive]
    keys = [SORTED.key_of({"pk": {"S": "p"}, "sk": {"N": each}}) for each in numbers]

    assert keys == sorted(set(keys))


def test_begins_with_ends_where_the_prefix_ends() -> None:
    """A prefix that ends in the last byte there is has no neighbour inside its bounds."""
    schema = KeySchema((KeyAttribute("h", "S"),), (KeyAttribute("r", "B"),))
    bounds = partition_bounds(schema, [{"S": "p"}], (), SortCondition("begins_with", ({"B": "//8="},)))

    assert bounds.holds(schema.key_of({"h": {"S": "p"}, "r": {"B": "//8="}}))
    assert bounds.holds(schema.key_of({"h": {"S": "p"}, "r": {"B": "////"}}))
    assert not bounds.holds(schema.key_of({"h": {"S": "p"}, "r": {"B": "/w=="}}))
    assert not bounds.holds(schema.key_of({"h": {"S": "p"}, "r": {"B": "//7/"}}))
