"""Laws of values: admission, the codec, sizes, numbers, equality and order."""

from __future__ import annotations

from base64 import b64decode
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.values import (
    NumberRefused,
    ValueRefused,
    add_numbers,
    admit_item,
    admit_value,
    canonical_number,
    compare,
    decode_item,
    encode_item,
    equal,
    item_size,
    number_size,
    subtract_numbers,
    value_size,
)
from tests.properties.naive import item_bytes, number_bytes_counted, plain, sort_key, value_bytes
from tests.properties.strategies import ITEMS, NUMBERS, Item, Value, key_values, numbers, spellings, values


def _copy(value: Item) -> Item:
    return msgspec.json.decode(msgspec.json.encode(value), type=Item)


def _sort_sets(value: Any) -> Any:
    """Return a value with its string and binary sets in the order of their bytes."""
    if isinstance(value, list):
        return [_sort_sets(element) for element in value]
    if not isinstance(value, dict):
        return value
    orders: dict[str, Any] = {"SS": str.encode, "BS": b64decode}
    return {
        name: sorted(content, key=orders[name])
        if name in orders and isinstance(content, list)
        else _sort_sets(content)
        for name, content in value.items()
    }


@given(ITEMS)
def test_an_admitted_item_comes_back_from_its_bytes(item: Item) -> None:
    """decode(encode(admit(x))) is x with its sets sorted: admission changes no other value, the codec none at all."""
    admitted = _copy(item)
    admit_item(admitted)

    assert admitted == _sort_sets(item)
    assert decode_item(encode_item(admitted)) == admitted
    assert encode_item(decode_item(encode_item(admitted))) == encode_item(admitted)


@given(ITEMS)
def test_the_size_of_admission_is_the_size_of_the_item(item: Item) -> None:
    """Admission, `item_size` and the rule written a second time count the same bytes."""
    admitted = _copy(item)

    assert admit_item(admitted) == item_size(admitted) == item_bytes(item)


@given(values())
def test_the_size_of_a_value_is_the_captured_rule(value: Value) -> None:
    """A value counts as DynamoDB's captured rule says, however it is nested."""
    assert admit_value(_copy({"v": value})["v"]) == value_size(value) == value_bytes(value)


@given(spellings())
def test_every_spelling_of_a_number_has_one_text(spelling: tuple[str, str]) -> None:
    """A number is stored in one text, equal to what was sent, whichever way it was sent."""
    sent, canonical = spelling

    assert canonical_number(sent) == canonical
    assert canonical_number(canonical) == canonical
    assert Decimal(canonical) == Decimal(sent)


@given(NUMBERS)
def test_a_number_counts_its_digits_by_two(number: str) -> None:
    """The size of a number is the captured rule."""
    assert number_size(number) == number_bytes_counted(number)


@given(NUMBERS, NUMBERS)
def test_sums_are_exact_or_refused(left: str, right: str) -> None:
    """A sum or difference is the exact one, and is refused where no number can hold it."""
    for arithmetic, sign in ((add_numbers, 1), (subtract_numbers, -1)):
        with_room = _exact(left, right, sign)
        if _fits(with_room):
            assert Decimal(arithmetic(left, right)) == with_room
        else:
            with pytest.raises(NumberRefused):
                arithmetic(left, right)


def _exact(left: str, right: str, sign: int) -> Decimal:
    from decimal import Context

    return Context(prec=400).add(Decimal(left), Decimal(right).copy_negate() if sign < 0 else Decimal(right))


def _fits(number: Decimal) -> bool:
    if not number:
        return True
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    return len(digits) <= 38 and -130 <= number.adjusted() <= 125


@given(st.sampled_from(["S", "N", "B"]).flatmap(lambda t: st.tuples(key_values(t), key_values(t))))
def test_order_is_that_of_bytes_and_of_numbers(pair: tuple[Value, Value]) -> None:
    """Strings order by UTF-8 bytes, binaries by unsigned bytes, numbers as numbers."""
    left, right = pair
    mine, theirs = sort_key(left), sort_key(right)

    assert compare(left, right) == (mine > theirs) - (mine < theirs)


@given(values(), values())
def test_equality_is_deep_and_sets_have_no_order(left: Value, right: Value) -> None:
    """Two values are equal when they are the same but for the order in their sets."""
    assert equal(left, right) == (plain(left) == plain(right))
    assert equal(left, _shuffled(left))


def _shuffled(value: Value) -> Value:
    ((tag, content),) = value.items()
    if tag in ("SS", "NS", "BS"):
        return {tag: content[::-1]}
    if tag == "L":
        return {tag: [_shuffled(member) for member in content]}
    if tag == "M":
        return {tag: {name: _shuffled(member) for name, member in reversed(content.items())}}
    return value


@given(numbers(), st.integers(1, 60))
def test_a_number_out_of_range_is_refused(number: str, times: int) -> None:
    """A magnitude beyond 9.99E+125 or below 1E-130 is refused, and never rounded."""
    for power in (times + 125 + 130, -times - 125 - 130):
        if number != "0":
            with pytest.raises(ValueRefused):
                canonical_number(f"{number}e{power}")
