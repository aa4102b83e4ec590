"""The parameters before expressions: what they mean and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tavola.expressions.conditions import evaluate
from tavola.expressions.errors import ExpressionError, UpdateRefused
from tavola.expressions.legacy import (
    legacy_attributes,
    legacy_expected,
    legacy_filter,
    legacy_key_conditions,
    legacy_updates,
)
from tavola.expressions.projections import project
from tavola.expressions.updates import apply

ITEM: dict[str, Any] = {
    "s": {"S": "hello"},
    "n": {"N": "5"},
    "ss": {"SS": ["a", "b"]},
    "l": {"L": [{"S": "x"}]},
    "a.b": {"S": "dotted"},
}
ONE, FIVE, NINE = {"N": "1"}, {"N": "5"}, {"N": "9"}
HELLO, HELL, DOG = {"S": "hello"}, {"S": "hell"}, {"S": "dog"}
INVALID = "One or more parameter values were invalid: "


def entry(operator: str, *values: dict[str, Any]) -> dict[str, Any]:
    """Return a legacy condition."""
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


@pytest.mark.parametrize(
    ("name", "condition", "truth"),
    [
        ("n", entry("EQ", FIVE), True),
        ("n", entry("EQ", {"S": "5"}), False),
        ("nope", entry("EQ", FIVE), False),
        ("ss", entry("EQ", {"SS": ["b", "a"]}), True),
        ("n", entry("NE", ONE), True),
        ("nope", entry("NE", ONE), True),
        ("n", entry("LT", NINE), True),
        ("n", entry("LE", FIVE), True),
        ("n", entry("GT", FIVE), False),
        ("n", entry("GE", FIVE), True),
        ("nope", entry("LT", NINE), False),
        ("n", entry("BETWEEN", ONE, NINE), True),
        ("n", entry("IN", ONE, FIVE), True),
        ("nope", entry("IN", ONE), False),
        ("s", entry("BEGINS_WITH", HELL), True),
        ("n", entry("BEGINS_WITH", HELL), False),
        ("s", entry("CONTAINS", HELL), True),
        ("ss", entry("CONTAINS", {"S": "a"}), True),
        ("l", entry("CONTAINS", {"S": "x"}), True),
        ("s", entry("NOT_CONTAINS", DOG), True),
        ("s", entry("NOT_CONTAINS", HELL), False),
        ("nope", entry("NOT_CONTAINS", DOG), False),
        ("s", {"ComparisonOperator": "NOT_NULL"}, True),
        ("s", {"ComparisonOperator": "NULL"}, False),
        ("nope", entry("NULL"), True),
        ("a.b", entry("EQ", {"S": "dotted"}), True),
    ],
)
def test_a_legacy_condition_decides(name: str, condition: dict[str, Any], truth: bool) -> None:
    """The same in Expected and in a filter; a name is a top-level attribute whatever is in it."""
    expected = legacy_expected({name: condition}, None)
    filtered = legacy_filter(
        {
            name: SimpleNamespace(
                comparison_operator=condition["ComparisonOperator"],
                attribute_value_list=condition.get("AttributeValueList"),
            )
        },
        None,
    )

    assert evaluate(expected, ITEM, {}) is truth
    assert evaluate(filtered, ITEM, {}) is truth
    assert expected.attributes == filtered.attributes == {name}


@pytest.mark.parametrize(
    ("expected", "operator", "truth"),
    [
        ({"s": {"Value": HELLO}}, None, True),
        ({"s": {"Value": HELLO, "Exists": True}}, None, True),
        ({"s": {"Exists": False}}, None, False),
        ({"nope": {"Exists": False}}, None, True),
        ({"n": {"Value": ONE, "ComparisonOperator": "GT"}}, None, True),
        ({"s": {"Value": DOG}, "n": {"Value": FIVE}}, None, False),
        ({"s": {"Value": DOG}, "n": {"Value": FIVE}}, "AND", False),
        ({"s": {"Value": DOG}, "n": {"Value": FIVE}}, "OR", True),
        ({}, None, True),
        ({}, "OR", True),
    ],
)
def test_expected_combines(expected: dict[str, Any], operator: str | None, truth: bool) -> None:
    """All must hold, or any with OR; an empty list is no condition."""
    assert evaluate(legacy_expected(expected, operator), ITEM, {}) is truth


def refusal(call: Callable[[], object]) -> str:
    """Return the sentence of a refusal."""
    with pytest.raises(ExpressionError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (
            {"ComparisonOperator": "LT"},
            "Value or AttributeValueList must be used with ComparisonOperator: LT for Attribute: a",
        ),
        (
            {"ComparisonOperator": "EQ", "Exists": True, "Value": ONE},
            "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            {"AttributeValueList": [ONE]},
            "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
        ),
        (
            {"AttributeValueList": [ONE], "Value": ONE},
            "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        ({}, "Value must be provided when Exists is null for Attribute: a"),
        ({"Exists": True}, "Value must be provided when Exists is true for Attribute: a"),
        ({"Exists": False, "Value": ONE}, "Value cannot be used when Exists is false for Attribute: a"),
    ],
)
def test_expected_is_refused_in_dynamodbs_words(condition: dict[str, Any], sentence: str) -> None:
    """Value, Exists, ComparisonOperator and AttributeValueList go together in three ways only."""
    assert refusal(lambda: legacy_expected({"a": condition}, None)) == INVALID + sentence


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (entry("BETWEEN", ONE), INVALID + "Invalid number of argument(s) for the BETWEEN ComparisonOperator"),
        (entry("EQ", ONE, ONE), INVALID + "Invalid number of argument(s) for the EQ ComparisonOperator"),
        (entry("NULL", ONE), INVALID + "Invalid number of argument(s) for the NULL ComparisonOperator"),
        (entry("IN"), INVALID + "Invalid number of argument(s) for the IN ComparisonOperator"),
        (entry("IN", ONE, DOG), INVALID + "AttributeValues inside AttributeValueList must be of same type"),
        (
            entry("BETWEEN", ONE, DOG),
            INVALID + "AttributeValues inside AttributeValueList must be of same type",
        ),
        (
            entry("BEGINS_WITH", ONE),
            INVALID + "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
        ),
        (
            entry("LT", {"SS": ["a"]}),
            INVALID + "ComparisonOperator LT is not valid for SS AttributeValue type",
        ),
        (entry("IN", {"L": []}), INVALID + "ComparisonOperator IN is not valid for L AttributeValue type"),
        (
            entry("CONTAINS", {"M": {}}),
            INVALID + "ComparisonOperator CONTAINS is not valid for M AttributeValue type",
        ),
        (
            entry("BETWEEN", NINE, ONE),
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
        ),
    ],
)
def test_legacy_values_are_refused_in_dynamodbs_words(condition: dict[str, Any], sentence: str) -> None:
    """Count, then one type, then a type that the operator takes, then the bounds."""
    for read in (
        lambda: legacy_expected({"a": condition}, None),
        lambda: legacy_filter({"a": condition}, None),
        lambda: legacy_key_conditions({"a": condition}),
    ):
        assert refusal(read) == sentence


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        ({}, "Conditions can be of length 1 or 2 only"),
        ({"a": entry("NE", ONE)}, "Attempted conditional constraint is not an indexable operation"),
        ({"a": entry("CONTAINS", ONE)}, "Attempted conditional constraint is not an indexable operation"),
        ({"a": entry("NULL")}, "Attempted conditional constraint is not an indexable operation"),
        ({"a": entry("IN", ONE)}, "Attempted conditional constraint is not an indexable operation"),
    ],
)
def test_key_conditions_are_refused_in_dynamodbs_words(conditions: dict[str, Any], sentence: str) -> None:
    """One or two, and only what an index can answer."""
    assert refusal(lambda: legacy_key_conditions(conditions)) == sentence


@pytest.mark.parametrize(
    ("updates", "changes"),
    [
        ({"s": {"Value": DOG}}, {"s": DOG}),
        ({"s": {"Value": DOG, "Action": "PUT"}, "k": {"Value": ONE, "Action": "ADD"}}, {"s": DOG, "k": ONE}),
        ({"s": {"Action": "DELETE"}, "nope": {"Action": "DELETE"}}, {"s": None}),
        ({"n": {"Value": ONE, "Action": "ADD"}}, {"n": {"N": "6"}}),
        ({"ss": {"Value": {"SS": ["b", "c"]}, "Action": "ADD"}}, {"ss": {"SS": ["a", "b", "c"]}}),
        ({"l": {"Value": {"L": [ONE]}, "Action": "ADD"}}, {"l": {"L": [{"S": "x"}, ONE]}}),
        ({"ss": {"Value": {"SS": ["b"]}, "Action": "DELETE"}}, {"ss": {"SS": ["a"]}}),
        ({"ss": {"Value": {"SS": ["b", "a"]}, "Action": "DELETE"}}, {"ss": None}),
        ({"x.y": {"Value": ONE}}, {"x.y": ONE}),
        ({}, {}),
    ],
)
def test_attribute_updates_apply(updates: dict[str, Any], changes: dict[str, Any]) -> None:
    """PUT is the default; ADD takes lists too, which ADD of an expression does not."""
    expected = {name: value for name, value in {**ITEM, **changes}.items() if value is not None}

    update = legacy_updates(updates)

    assert apply(update, ITEM, {}).item == expected
    assert update.written == set(updates)


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        ({}, INVALID + "Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "ADD"}, INVALID + "Only DELETE action is allowed when no attribute value is specified"),
        (
            {"Action": "DELETE", "Value": DOG},
            INVALID + "DELETE action with value is not supported for the type S",
        ),
        ({"Action": "ADD", "Value": {"B": ""}}, INVALID + "ADD action is not supported for the type B"),
        (
            {"Action": "XOR", "Value": DOG},
            (
                "1 validation error detected: Value 'XOR' at 'attributeUpdates.a.member.action' failed to satisfy "
                "constraint: Member must satisfy enum value set: [ADD, PUT, DELETE]"
            ),
        ),
    ],
)
def test_attribute_updates_are_refused_in_dynamodbs_words(update: dict[str, Any], sentence: str) -> None:
    """An action and the type of its value."""
    assert refusal(lambda: legacy_updates({"a": update})) == sentence


@pytest.mark.parametrize(
    "updates",
    [
        {"s": {"Action": "ADD", "Value": ONE}},
        {"l": {"Action": "ADD", "Value": {"SS": ["a"]}}},
        {"ss": {"Action": "DELETE", "Value": {"NS": ["1"]}}},
    ],
)
def test_a_stored_value_of_another_type_is_a_mismatch(updates: dict[str, Any]) -> None:
    """AttributeUpdates word it in their own way."""
    with pytest.raises(UpdateRefused) as caught:
        apply(legacy_updates(updates), ITEM, {})

    assert str(caught.value) == "Type mismatch for attribute to update"


def test_attributes_to_get_are_a_projection() -> None:
    """Each name once."""
    assert project(legacy_attributes(["a.b", "n", "nope"]), ITEM) == {"a.b": ITEM["a.b"], "n": FIVE}
    assert (
        refusal(lambda: legacy_attributes(["a", "b", "a"]))
        == INVALID + "Duplicate value in attribute name: a"
    )
