"""Key conditions against key schemas."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.expressions.bindings import Bindings
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import KeyRange, key_bounds
from tavola.expressions.legacy import legacy_key_conditions
from tavola.expressions.plans import compile_key_condition
from tavola.keys import KeyAttribute, KeySchema, SortCondition, partition_bounds

VALUES: dict[str, Any] = {
    ":a": {"S": "a"},
    ":b": {"S": "b"},
    ":c": {"S": "c"},
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":empty": {"S": ""},
    ":nil": {"B": ""},
    ":long": {"S": "x" * 2049},
    ":bin": {"B": "AAE="},
}


def schema(hash_: str, range_: str = "") -> KeySchema:
    """Return a schema from texts such as `h:S` and `a:S b:N`."""

    def parts(text: str) -> tuple[KeyAttribute, ...]:
        return tuple(KeyAttribute(*part.split(":")) for part in text.split())

    return KeySchema(parts(hash_), parts(range_))


HASH = schema("pk:S")
PAIR = schema("pk:S", "sk:S")
NUMBERED = schema("pk:S", "n:N")
MANY = schema("h:S i:S", "a:S b:N c:S")
LONG = schema("h:S", "a:S b:S c:S")


def bounds(text: str, under: KeySchema) -> KeyRange:
    """Return what a key condition reads under a schema."""
    return key_bounds(compile_key_condition(text, Bindings({}, VALUES)), under, VALUES)


@pytest.mark.parametrize(
    ("text", "under", "hashes", "ranges", "last", "one"),
    [
        ("pk = :a", HASH, [":a"], [], None, True),
        (":a = pk", HASH, [":a"], [], None, True),
        ("pk = :a", PAIR, [":a"], [], None, False),
        ("pk = :a AND sk = :b", PAIR, [":a"], [":b"], None, True),
        ("sk = :b AND pk = :a", PAIR, [":a"], [":b"], None, True),
        ("(pk = :a) AND (sk < :b)", PAIR, [":a"], [], ("<", ":b"), False),
        ("pk = :a AND :b < sk", PAIR, [":a"], [], (">", ":b"), False),
        ("pk = :a AND :b <= sk", PAIR, [":a"], [], (">=", ":b"), False),
        ("pk = :a AND :b > sk", PAIR, [":a"], [], ("<", ":b"), False),
        ("pk = :a AND :b >= sk", PAIR, [":a"], [], ("<=", ":b"), False),
        ("pk = :a AND sk BETWEEN :a AND :b", PAIR, [":a"], [], ("BETWEEN", ":a", ":b"), False),
        ("pk = :a AND begins_with(sk, :b)", PAIR, [":a"], [], ("begins_with", ":b"), False),
        ("pk = :a AND n >= :one", NUMBERED, [":a"], [], (">=", ":one"), False),
        ("i = :b AND h = :a", MANY, [":a", ":b"], [], None, False),
        ("b = :one AND h = :a AND a = :c AND i = :b", MANY, [":a", ":b"], [":c", ":one"], None, False),
        ("h = :a AND i = :b AND a = :c AND b > :one", MANY, [":a", ":b"], [":c"], (">", ":one"), False),
        (
            "h = :a AND i = :b AND a = :c AND b = :one AND c = :b",
            MANY,
            [":a", ":b"],
            [":c", ":one", ":b"],
            None,
            True,
        ),
        ("h = :a AND begins_with(a, :b)", LONG, [":a"], [], ("begins_with", ":b"), False),
    ],
)
def test_a_key_condition_becomes_bounds(
    text: str, under: KeySchema, hashes: list[str], ranges: list[str], last: tuple[str, ...] | None, one: bool
) -> None:
    """Equalities on the hash and on a prefix of the range, then at most one condition; order is free."""
    sort = last and SortCondition(last[0], tuple(VALUES[ref] for ref in last[1:]))
    hash_values = tuple(VALUES[ref] for ref in hashes)

    found = bounds(text, under)

    assert found.bounds == partition_bounds(under, hash_values, [VALUES[ref] for ref in ranges], sort or None)
    assert found.hash_values == hash_values
    assert found.at_most_one is one


_EMPTY = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
_MISSED = "Query condition missed key schema element: "
_UNSUPPORTED = "Query key condition not supported"
_TYPE = "One or more parameter values were invalid: Condition parameter type does not match schema type"


@pytest.mark.parametrize(
    ("text", "under", "sentence"),
    [
        ("sk = :a", PAIR, f"{_MISSED}pk"),
        ("stray = :a", HASH, f"{_MISSED}pk"),
        ("pk = :a AND stray = :b", PAIR, f"{_MISSED}sk"),
        ("pk > :a", PAIR, _UNSUPPORTED),
        ("pk BETWEEN :a AND :b", HASH, _UNSUPPORTED),
        ("begins_with(pk, :a) AND sk = :a", PAIR, _UNSUPPORTED),
        ("pk = :one", HASH, _TYPE),
        ("pk = :a AND sk > :one", PAIR, _TYPE),
        ("pk = :a AND begins_with(n, :a)", NUMBERED, _TYPE),
        (
            "pk = :a AND sk = :b AND stray = :c",
            PAIR,
            "The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)",
        ),
        (
            "pk = :a AND sk = :b",
            HASH,
            "The number of query conditions (2) exceeds the number of key attributes defined in the schema (1)",
        ),
        ("pk = :empty", HASH, f"{_EMPTY}string value. Key: pk"),
        ("pk = :a AND sk = :empty", PAIR, f"{_EMPTY}string value. Key: sk"),
        ("pk = :nil", schema("pk:B"), f"{_EMPTY}binary value. Key: pk"),
        (
            "pk = :long",
            HASH,
            (
                "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit "
                "of2048 bytes"
            ),
        ),
        ("h = :a", MANY, "HASH key attributes i must have equality conditions specified in the query"),
        ("a = :a", MANY, "HASH key attributes h, i must have equality conditions specified in the query"),
        (
            "h = :a AND i > :b",
            MANY,
            "HASH key attributes i must have equality conditions specified in the query",
        ),
        ("a = :a", LONG, f"{_MISSED}h"),
        ("h > :a AND a = :a", LONG, _UNSUPPORTED),
        ("h = :a AND stray = :b", LONG, _UNSUPPORTED),
        (
            "h = :a AND b = :b",
            LONG,
            (
                "RANGE key attributes a must have equality conditions specified in the query because a condition is "
                "present on key attribute b"
            ),
        ),
        (
            "h = :a AND a = :a AND c = :c",
            LONG,
            (
                "RANGE key attributes b must have equality conditions specified in the query because a condition is "
                "present on key attribute c"
            ),
        ),
        (
            "h = :a AND a > :a AND b = :b",
            LONG,
            (
                "RANGE key attributes a must have equality conditions specified in the query because a condition is "
                "present on key attribute b"
            ),
        ),
    ],
)
def test_a_key_condition_that_does_not_fit_is_refused(text: str, under: KeySchema, sentence: str) -> None:
    """The rules of the schema, in DynamoDB's words; begins_with on a number finds none of its type."""
    with pytest.raises(ExpressionError) as caught:
        bounds(text, under)

    assert str(caught.value) == sentence


def test_legacy_key_conditions_meet_the_same_schema() -> None:
    """KeyConditions carry their values in themselves."""
    condition = legacy_key_conditions(
        {
            "sk": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [VALUES[":b"]]},
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [VALUES[":a"]]},
        }
    )

    found = key_bounds(condition, PAIR, {})

    assert found == bounds("pk = :a AND begins_with(sk, :b)", PAIR)
