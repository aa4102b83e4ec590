"""Conditions: each operator, with one value, with several and with none."""

from __future__ import annotations

import pytest

from tavola.iam.conditions import compile_test
from tavola.protocol.policy_documents import ConditionTest, Quantifier

KEY = "aws:x"


class Values:
    """A request with these values of one key."""

    def __init__(self, *values: str) -> None:
        self._values = values

    def values(self, key: str) -> tuple[str, ...]:
        return self._values if key == KEY else ("from the request",)


def _holds(
    operator: str, wanted: tuple[str, ...], *given: str, denies: bool = False, if_exists: bool = False
) -> bool:
    quantifier: Quantifier = ""
    if operator.startswith("ForAllValues:"):
        quantifier = "ForAllValues"
    elif operator.startswith("ForAnyValue:"):
        quantifier = "ForAnyValue"
    test = ConditionTest("", operator.partition(":")[2] or operator, quantifier, if_exists, KEY, wanted)
    compiled = compile_test(test, {}, variables=True, denies=denies)
    assert not isinstance(compiled, bool)
    return compiled(Values(*given))


@pytest.mark.parametrize(
    ("operator", "wanted", "met", "missed"),
    [
        ("StringEquals", "red", "red", "Red"),
        ("StringNotEquals", "red", "Red", "red"),
        ("StringEqualsIgnoreCase", "Red", "rED", "blue"),
        ("StringNotEqualsIgnoreCase", "Red", "blue", "RED"),
        ("StringLike", "r?d*", "redder", "Red"),
        ("StringNotLike", "r?d*", "blue", "red"),
        ("StringEquals", "r*", "r*", "red"),
        ("NumericEquals", "7", "7.00", "8"),
        ("NumericNotEquals", "7", "8", "7.0"),
        ("NumericNotEquals", "7", "seven", "7"),
        ("NumericLessThan", "7", "6.9", "7"),
        ("NumericLessThanEquals", "7", "7", "7.1"),
        ("NumericGreaterThan", "7", "10", "7"),
        ("NumericGreaterThanEquals", "7", "7", "seven"),
        ("DateEquals", "2024-01-01", "2024-01-01T00:00:00Z", "2024-01-02"),
        ("DateEquals", "2024-01-01T01:00:00+01:00", "1704067200", "1704067201"),
        ("DateNotEquals", "2024", "2025", "2024-01-01"),
        ("DateLessThan", "2024-01-01T00:00:00Z", "2023-12-31T23:59:59.999Z", "2024-01"),
        ("DateLessThanEquals", "2024-01-01", "1704067200", "1704067200.5"),
        ("DateGreaterThan", "2024-01-01", "2024-01-01T00:00:01", "2023"),
        ("DateGreaterThanEquals", "2024-01-01", "2024-01-01", "yesterday"),
        ("Bool", "true", "TRUE", "false"),
        ("Bool", "false", "false", "no"),
        ("BinaryEquals", "cmVk", "cmVk", "Ymx1ZQ=="),
        ("IpAddress", "10.0.0.0/8", "10.200.3.4", "11.0.0.1"),
        ("IpAddress", "10.0.0.0/8", "::ffff:10.0.0.1", "2001:db8::1"),
        ("IpAddress", "2001:db8::/32", "2001:db8:1::1", "10.0.0.1"),
        ("IpAddress", "10.0.0.1", "10.0.0.1", "nowhere"),
        ("NotIpAddress", "10.0.0.0/8", "11.0.0.1", "10.0.0.1"),
        ("ArnEquals", "arn:aws:iam::*:role/*", "arn:aws:iam::1:role/a", "arn:aws:iam::1:user/a"),
        ("ArnLike", "arn:aws:iam::1:role/?", "arn:aws:iam::1:role/a", "arn:aws:iam::1:role/ab"),
        ("ArnNotEquals", "arn:aws:iam::1:role/a", "arn:aws:iam::1:role/b", "arn:aws:iam::1:role/a"),
        ("ArnNotLike", "arn:aws:iam::1:*", "arn:aws:iam::2:role/a", "arn:aws:iam::1:role/a"),
    ],
)
def test_one_value(operator: str, wanted: str, met: str, missed: str) -> None:
    """Each operator compares as its name says, in the types that its name says."""
    assert _holds(operator, (wanted,), met)
    assert not _holds(operator, (wanted,), missed)


@pytest.mark.parametrize(
    ("operator", "absent", "absent_if_exists"),
    [
        ("StringEquals", False, True),
        ("StringNotEquals", True, True),
        ("NumericNotEquals", True, True),
        ("NotIpAddress", True, True),
        ("Bool", False, True),
        ("ForAllValues:StringEquals", True, True),
        ("ForAllValues:StringNotEquals", True, True),
        ("ForAnyValue:StringEquals", False, True),
        ("ForAnyValue:StringNotEquals", False, True),
    ],
)
def test_an_absent_key(operator: str, absent: bool, absent_if_exists: bool) -> None:
    """What is absent equals nothing, so a negation holds; all of no values hold, and none of them does."""
    wanted = ("10.0.0.0/8",) if "Ip" in operator else ("true",) if operator == "Bool" else ("1",)

    assert _holds(operator, wanted) is absent
    assert _holds(operator, wanted, if_exists=True) is absent_if_exists


@pytest.mark.parametrize(
    ("operator", "given", "holds"),
    [
        ("ForAllValues:StringEquals", ("a", "b"), True),
        ("ForAllValues:StringEquals", ("a", "z"), False),
        ("ForAnyValue:StringEquals", ("a", "z"), True),
        ("ForAnyValue:StringEquals", ("y", "z"), False),
        ("ForAllValues:StringNotEquals", ("y", "z"), True),
        ("ForAllValues:StringNotEquals", ("a", "z"), False),
        ("ForAnyValue:StringNotEquals", ("a", "z"), True),
        ("ForAnyValue:StringNotEquals", ("a", "b"), False),
    ],
)
def test_several_values(operator: str, given: tuple[str, ...], holds: bool) -> None:
    """A quantifier says of how many of the request's values a test must hold."""
    assert _holds(operator, ("a", "b"), *given) is holds


def test_several_values_without_a_quantifier_never_open_a_door() -> None:
    """An Allow wants each value to pass; a Deny needs one that is meant."""
    assert not _holds("StringEquals", ("a",), "a", "z")
    assert _holds("StringEquals", ("a",), "a", "z", denies=True)
    assert not _holds("StringNotEquals", ("a",), "a", "z")
    assert _holds("StringNotEquals", ("a",), "a", "z", denies=True)


def test_null_asks_whether_a_key_is_there() -> None:
    """True holds for what is absent, false for what is not."""
    assert _holds("Null", ("true",))
    assert not _holds("Null", ("true",), "a")
    assert _holds("Null", ("false",), "a")
    assert not _holds("Null", ("false",))
    assert _holds("Null", ("true", "false"), "a")


def test_a_variable_is_filled_by_the_request() -> None:
    """A value may name another key; one without a value equals nothing, so a negation holds."""
    assert _holds("StringEquals", ("${aws:y}",), "from the request")
    assert not _holds("StringEquals", ("${aws:y}",), "else")
    assert _holds("StringEquals", ("z", "${aws:y}"), "z")


def test_what_the_principal_decides_is_decided_at_once() -> None:
    """A condition on the principal alone costs a request nothing."""
    test = ConditionTest("", "StringEquals", "", False, "aws:UserName", ("${aws:username}",))

    assert compile_test(test, {"aws:username": ("alice",)}, variables=True, denies=False) is True
    assert compile_test(test, {"aws:username": ("alice",)}, variables=False, denies=False) is False
