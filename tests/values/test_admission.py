"""Admission: what DynamoDB takes for a value and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.values import ValueMalformed, ValueRefused, admit_item, admit_value


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"M": {"m": value}}
    return value


def test_thirty_one_levels_are_admitted_and_one_more_is_not() -> None:
    """A scalar may lie in 31 containers."""
    assert admit_value(_nested(31))
    with pytest.raises(ValueRefused, match="Nesting Levels have exceeded"):
        admit_value(_nested(32))


def test_a_number_is_rewritten_in_place_also_in_sets_and_deep_down() -> None:
    """What is admitted is what is stored: every number in its one text."""
    item = {"a": {"N": "1.50"}, "b": {"NS": ["01", "2e1"]}, "c": {"L": [{"M": {"d": {"N": "-0"}}}]}}

    admit_item(item)

    assert item == {"a": {"N": "1.5"}, "b": {"NS": ["1", "20"]}, "c": {"L": [{"M": {"d": {"N": "0"}}}]}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "Supplied AttributeValue is empty"),
        ({"S": None}, "Supplied AttributeValue is empty"),
        ({"S": "a", "N": "1"}, "more than one datatypes set"),
        ({"NULL": False}, "Null attribute value types must have the value of true"),
        ({"SS": []}, "An string set  may not be empty"),
        ({"NS": []}, "An number set  may not be empty"),
        ({"BS": []}, "Binary sets should not be empty"),
        ({"SS": ["a", "a"]}, "contains duplicates"),
        ({"NS": ["1", "1.0"]}, "contains duplicates"),
        ({"BS": ["AA==", "AA=="]}, "contains duplicates"),
        ({"M": {"": {"S": "x"}}}, "Empty attribute name"),
    ],
)
def test_a_value_of_the_wrong_content_is_refused(value: dict[str, Any], message: str) -> None:
    """Each refusal has DynamoDB's words."""
    with pytest.raises(ValueRefused, match=message):
        admit_value(value)


@pytest.mark.parametrize(
    "value",
    [
        {"S": 1},
        {"N": 1},
        {"BOOL": "true"},
        {"B": "A"},
        {"B": "A==="},
        {"B": "AB=="},
        {"B": "A*=="},
        {"SS": "a"},
        {"L": {}},
        {"M": []},
    ],
)
def test_a_value_of_the_wrong_shape_is_malformed(value: dict[str, Any]) -> None:
    """What JSON cannot be read as the type it claims is a serialization error."""
    with pytest.raises(ValueMalformed):
        admit_value(value)


def test_an_item_of_exactly_the_largest_name_is_admitted() -> None:
    """An attribute name has at most 65,535 bytes, counted in UTF-8."""
    assert admit_item({"n" * 65_535: {"S": ""}}) == 65_535
    with pytest.raises(ValueRefused, match="Attribute name is too large"):
        admit_item({"é" * 32_768: {"S": ""}})
