"""Refusals of Query and Scan, each with AWS's whole sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.backends import Answer
from tests.conformance.requests import ENVELOPE, OOM, item, n, s
from tests.conformance.sentences import HASH, MISSING, MULTI, TABLE, Row, check, member, modern_member, rows

pytestmark = pytest.mark.usefixtures("sentences")

_INVALID = "Invalid KeyConditionExpression: "


def _values(text: str) -> dict[str, Any]:
    """Return values for the placeholders in a string: `:n…` numbers, `:t…` booleans, the rest strings."""
    words = text.replace("(", " ").replace(")", " ").replace(",", " ").split()
    found = sorted({word for word in words if word.startswith(":")})
    kinds: dict[str, dict[str, Any]] = {"n": n(1), "t": {"BOOL": True}}
    return {word: kinds.get(word[1], s(word[1:])) for word in found}


def _query(id: str, text: str, result: str, **rest: Any) -> Row:
    values = {"ExpressionAttributeValues": _values(text)} if ":" in text else {}
    request = {"TableName": TABLE, "KeyConditionExpression": text, **values, **rest}
    return Row(id, "Query", request, result)


def _key_conditions() -> Iterator[Row]:
    yield Row(
        "no condition",
        "Query",
        {"TableName": TABLE},
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
    )
    yield _query("empty", "", f"{_INVALID}The expression can not be empty;")
    yield _query("no hash", "sk = :a", "Query condition missed key schema element: pk")
    yield _query(
        "second not the range", "pk = :a AND x = :b", "Query condition missed key schema element: sk"
    )
    yield _query("hash not equal", "pk > :a", "Query key condition not supported")
    yield _query("hash type", "pk = :n", f"{OOM}Condition parameter type does not match schema type")
    yield _query(
        "range type", "pk = :a AND sk > :n", f"{OOM}Condition parameter type does not match schema type"
    )
    yield _query(
        "begins_with a number",
        "pk = :a AND begins_with(sk, :n)",
        f"{_INVALID}Incorrect operand type for operator or function; "
        "operator or function: begins_with, operand type: N",
    )
    yield _query(
        "less than a boolean",
        "pk = :a AND sk < :t",
        f"{_INVALID}Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
    )
    yield _query(
        "between booleans",
        "pk = :a AND sk BETWEEN :t AND :t",
        f"{_INVALID}Incorrect operand type for operator or function; "
        "operator or function: BETWEEN, operand type: BOOL",
    )
    yield _query(
        "two on one key",
        "pk = :a AND sk > :b AND sk < :c",
        f"{_INVALID}KeyConditionExpressions must only contain one condition per key",
    )
    yield _query(
        "three conditions",
        "pk = :a AND sk = :b AND x = :c",
        "The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)",
    )
    yield _query(
        "reversed bounds",
        "pk = :a AND sk BETWEEN :b AND :a",
        (
            f"{_INVALID}The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}"
        ),
    )
    operators = {
        "OR": "pk = :a OR sk = :b",
        "NOT": "NOT pk = :a",
        "IN": "pk IN (:a)",
        "<>": "pk = :a AND sk <> :b",
        "contains": "pk = :a AND contains(sk, :b)",
        "attribute_exists": "pk = :a AND attribute_exists(sk)",
    }
    for operator, text in operators.items():
        result = f"{_INVALID}Invalid operator used in KeyConditionExpression: {operator}"
        yield _query(f"operator {operator}", text, result)
    yield _query(
        "nested size",
        "pk = :a AND size(sk) = :n",
        f"{_INVALID}KeyConditionExpressions cannot contain nested operations",
    )
    for operator, text in (
        ("begins_with", "pk = :a AND begins_with(:b, sk)"),
        ("BETWEEN", "pk = :a AND :b BETWEEN sk AND :c"),
    ):
        yield _query(
            f"path on the right of {operator}",
            text,
            f"{_INVALID}Invalid condition in KeyConditionExpression: "
            f"{operator} operator must have the key attribute as its first operand",
        )
    yield _query(
        "two paths",
        "pk = sk",
        f"{_INVALID}Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition",
    )
    yield _query(
        "no path",
        ":a = :b",
        f"{_INVALID}Invalid condition in KeyConditionExpression: No key attribute specified",
    )
    yield _query(
        "nested path",
        "pk = :a AND sk.x = :b",
        f"{_INVALID}KeyConditionExpressions cannot have conditions on nested attributes",
    )
    yield _query(
        "unused value",
        "pk = :a",
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:z}",
        ExpressionAttributeValues={":a": s("a"), ":z": s("z")},
    )


def _choices() -> Iterator[Row]:
    both = (
        (
            "Query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "a = :a",
                "ExpressionAttributeValues": {":a": s("a")},
            },
        ),
        ("Scan", {"TableName": TABLE}),
    )
    for operation, request in both:
        index = {**request, "IndexName": "by-a"}
        yield Row(
            "unknown index",
            operation,
            {**request, "IndexName": "nobody"},
            "The table does not have the specified index: nobody",
        )
        yield Row(
            "consistent on a global index",
            operation,
            {**index, "ConsistentRead": True},
            "Consistent reads are not supported on global secondary indexes",
        )
        yield Row(
            "all attributes of a small index",
            operation,
            {**index, "Select": "ALL_ATTRIBUTES"},
            f"{OOM}Select type ALL_ATTRIBUTES is not supported for global secondary index by-a "
            "because its projection type is not ALL",
        )
        yield Row(
            "attribute that is not projected",
            operation,
            {**index, "ProjectionExpression": "x, y"},
            f"{OOM}Global secondary index by-a does not project [x, y]",
        )
        plain = {**request, "KeyConditionExpression": "pk = :a"} if operation == "Query" else request
        counted = ENVELOPE if operation == "Query" else ""
        specific = "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
        yield Row(
            "specific without projection",
            operation,
            {**plain, "Select": "SPECIFIC_ATTRIBUTES"},
            counted + specific,
        )
        for select, result in (
            ("ALL_ATTRIBUTES", "ALL_ATTRIBUTES"),
            ("ALL_PROJECTED_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"),
            ("COUNT", "only the Count"),
        ):
            yield Row(
                f"projection with {select}",
                operation,
                {
                    **(index if "PROJECTED" in select else plain),
                    "Select": select,
                    "ProjectionExpression": "pk",
                },
                f"{counted}Cannot specify the ProjectionExpression when choosing to get {result}",
            )
        yield Row(
            "projected without an index",
            operation,
            {**plain, "Select": "ALL_PROJECTED_ATTRIBUTES"},
            f"{counted}ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        )
    yield _query(
        "limit 0",
        "pk = :a",
        modern_member("Limit", "Member must have value greater than or equal to 1"),
        Limit=0,
    )
    yield Row(
        "limit 0",
        "Scan",
        {"TableName": TABLE, "Limit": 0},
        member("limit", "Member must have value greater than or equal to 1", value="'0'"),
    )
    yield _query(
        "filter on its key",
        "pk = :a",
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk",
        FilterExpression="attribute_exists(sk)",
    )
    yield _query(
        "filter on an index key",
        "a = :a",
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: b",
        IndexName="by-a",
        FilterExpression="attribute_exists(b)",
    )
    segments = {
        "segment alone": (
            {"Segment": 0},
            (
                "The TotalSegments parameter is required but was not present in the request when Segment parameter is "
                "present"
            ),
        ),
        "total alone": (
            {"TotalSegments": 2},
            (
                "The Segment parameter is required but was not present in the request when parameter TotalSegments is "
                "present"
            ),
        ),
        "segment beyond": (
            {"Segment": 5, "TotalSegments": 5},
            (
                "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
                "Segment: 5 is not less than TotalSegments: 5"
            ),
        ),
    }
    for id, (segment, result) in segments.items():
        yield Row(id, "Scan", {"TableName": TABLE, **segment}, result)
    yield Row(
        "too many segments",
        "Scan",
        {"TableName": TABLE, "Segment": 0, "TotalSegments": 1_000_001},
        member("totalSegments", "Member must have value less than or equal to 1000000", value="'1000001'"),
    )


_START = "The provided starting key is invalid"
_SCHEMA = "The provided key element does not match the schema"


def _starts() -> Iterator[Row]:
    def query(id: str, start: dict[str, Any], result: str, text: str = "pk = :p", **rest: Any) -> Row:
        return _query(id, text, result, ExclusiveStartKey=start, **rest)

    yield query("lacks the range", item(pk="p"), _START)
    yield query("extra attribute", item(pk="p", sk="s", x="x"), _START)
    yield query("wrong type", item(pk="p", sk=1), _SCHEMA)
    yield query(
        "other partition",
        item(pk="q", sk="s"),
        "The provided starting key is outside query boundaries based on provided conditions",
    )
    yield query(
        "outside the range",
        item(pk="p", sk="a"),
        "The provided starting key does not match the range key predicate",
        text="pk = :p AND sk > :s",
    )
    yield query(
        "full key",
        item(pk="p", sk="s"),
        "The query can return at most one row and cannot be restarted",
        text="pk = :p AND sk = :s",
    )
    yield query(
        "hash-only table",
        item(pk="p"),
        "The provided exclusive start key is invalid: ExclusiveStartKey: {pk=AttributeValue: {S:p}}",
        TableName=HASH,
    )
    yield query("index key missing", item(pk="p", sk="s"), _START, text="a = :a", IndexName="by-a")
    yield query(
        "table part of the wrong type",
        item(pk=1, sk="s", a="a", b=1),
        f"{_START}: {_SCHEMA}",
        text="a = :a",
        IndexName="by-a",
    )
    yield query("value that is none", item(pk="p", sk={"SS": []}), f"{OOM}An string set  may not be empty")

    def scan(id: str, start: dict[str, Any], result: str, **rest: Any) -> Row:
        return Row(id, "Scan", {"TableName": TABLE, "ExclusiveStartKey": start, **rest}, result)

    yield scan("lacks the range", item(pk="p"), f"{_START}: {_SCHEMA}")
    yield scan("wrong type", item(pk="p", sk=1), f"{_START}: {_SCHEMA}")
    yield scan("index key missing", item(pk="p", sk="s"), _START, IndexName="by-a")
    yield scan(
        "value that is none",
        item(pk="p", sk={"SS": []}),
        f"{_START}: {OOM}An string set  may not be empty",
    )
    yield scan(
        "number that is none",
        item(pk="p", sk={"N": "x"}),
        "The parameter cannot be converted to a numeric value: x",
    )


def _multi() -> Iterator[Row]:
    def query(id: str, text: str, result: str) -> Row:
        return _query(id, text, result, TableName=MULTI, IndexName="multi")

    def gap(earlier: str, later: str) -> str:
        return (
            f"RANGE key attributes {earlier} must have equality conditions specified in the query because a "
            f"condition is present on key attribute {later}"
        )

    both = "h1 = :a AND h2 = :b AND "
    yield query("first range skipped", both + "r2 = :n", gap("r1", "r2"))
    yield query("range after an inequality", both + "r1 > :a AND r2 = :n", gap("r1", "r2"))
    yield query("middle range skipped", both + "r1 = :a AND r3 = :c", gap("r2", "r3"))
    yield query(
        "filter on a key",
        both + "r1 = :a",
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: r3",
    )


@rows(_key_conditions())
def test_key_conditions(send_raw: Callable[..., Answer], row: Row) -> None:
    """A key condition names one partition and at most one range of it."""
    check(send_raw, row)


@rows(_choices())
def test_members_of_a_read_must_fit_each_other(send_raw: Callable[..., Answer], row: Row) -> None:
    """Index, selection, projection, limit and segments must fit each other."""
    check(send_raw, row)


@rows(_starts())
def test_starting_keys(send_raw: Callable[..., Answer], row: Row) -> None:
    """A starting key has the attributes and types of the keys read, and lies in the range read."""
    check(send_raw, row)


@rows([row for row in _multi() if row.id != "filter on a key"])
def test_keys_of_several_attributes(send_raw: Callable[..., Answer], row: Row) -> None:
    """Range attributes are named without a gap, and all but the last with equality."""
    check(send_raw, row)


def test_a_filter_may_not_name_any_part_of_the_key(send_raw: Callable[..., Answer]) -> None:
    """Each attribute of an index's key is a key attribute."""
    answer = send_raw(
        "Query",
        {
            "TableName": MULTI,
            "IndexName": "multi",
            "KeyConditionExpression": "h1 = :a AND h2 = :b",
            "FilterExpression": "attribute_exists(r3)",
            "ExpressionAttributeValues": {":a": s("a"), ":b": s("b")},
        },
    )

    assert answer.text == (
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: r3"
    )


def test_a_missing_hash_condition_of_several(send_raw: Callable[..., Answer]) -> None:
    """Every hash attribute needs an equality; AWS's message is known only as a pattern."""
    answer = send_raw(
        "Query",
        {
            "TableName": MULTI,
            "IndexName": "multi",
            "KeyConditionExpression": "h1 = :a",
            "ExpressionAttributeValues": {":a": s("a")},
        },
    )

    assert answer.code == "ValidationException"
    assert "HASH" in (answer.text or "")
    assert "equality" in (answer.text or "")


def test_an_expression_is_refused_before_the_table_is_looked_up(send_raw: Callable[..., Answer]) -> None:
    """A key condition that no table could satisfy is reported first."""
    answer = send_raw("Query", {"TableName": MISSING, "KeyConditionExpression": "pk ="})

    assert answer.code == "ValidationException"
