"""JSON of another type than the member has: refused before anything else is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.backends import Answer
from tests.conformance.sentences import HASH, MISSING, Row, check, rows

pytestmark = pytest.mark.usefixtures("sentences")

_MODEL = "com.amazonaws.dynamodb.v20120810"
_PARAMETERIZED = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base "
    "of loader 'bootstrap')"
)


def _wrong(id: str, operation: str, request: dict[str, Any] | bytes, text: str | None) -> Row:
    return Row(id, operation, request, text, code="SerializationException")


def _attribute(value: object) -> dict[str, Any]:
    return {"TableName": HASH, "Item": {"pk": {"S": "a"}, "x": value}}


ROWS = [
    _wrong("half a body", "GetItem", b'{"TableName":', None),
    _wrong("no body", "GetItem", b"", None),
    _wrong("text after the body", "GetItem", b"{} {}", None),
    _wrong("NaN", "GetItem", b'{"TableName": NaN}', None),
    _wrong("bad UTF-8", "GetItem", b'{"TableName": "\xff\xfe"}', None),
    _wrong("string from true", "GetItem", {"TableName": True}, "TRUE_VALUE cannot be converted to String"),
    _wrong("string from false", "GetItem", {"TableName": False}, "FALSE_VALUE cannot be converted to String"),
    _wrong("string from integer", "GetItem", {"TableName": 23}, "NUMBER_VALUE cannot be converted to String"),
    _wrong(
        "string from decimal", "GetItem", {"TableName": 2.5}, "DECIMAL_VALUE cannot be converted to String"
    ),
    _wrong(
        "string from list",
        "GetItem",
        {"TableName": []},
        "Unrecognized collection type class java.lang.String",
    ),
    _wrong(
        "string from map", "GetItem", {"TableName": {}}, "Start of structure or map found where not expected"
    ),
    _wrong("integer from string", "Query", {"Limit": "x"}, "STRING_VALUE cannot be converted to Integer"),
    _wrong("integer from true", "Query", {"Limit": True}, "TRUE_VALUE cannot be converted to Integer"),
    _wrong(
        "integer from list", "Query", {"Limit": []}, "Unrecognized collection type class java.lang.Integer"
    ),
    _wrong("integer from map", "Query", {"Limit": {}}, "Start of structure or map found where not expected"),
    _wrong(
        "long from true",
        "CreateTable",
        {"ProvisionedThroughput": {"ReadCapacityUnits": True}},
        "TRUE_VALUE cannot be converted to Long",
    ),
    _wrong(
        "long from string",
        "CreateTable",
        {"ProvisionedThroughput": {"WriteCapacityUnits": "x"}},
        "STRING_VALUE cannot be converted to Long",
    ),
    _wrong(
        "boolean from number", "GetItem", {"ConsistentRead": 1}, "NUMBER_VALUE cannot be converted to Boolean"
    ),
    _wrong(
        "boolean from decimal",
        "GetItem",
        {"ConsistentRead": 1.5},
        "DECIMAL_VALUE cannot be converted to Boolean",
    ),
    _wrong(
        "boolean from word", "GetItem", {"ConsistentRead": "maybe"}, "Unexpected token received from parser"
    ),
    _wrong(
        "boolean from list",
        "GetItem",
        {"ConsistentRead": []},
        "Unrecognized collection type class java.lang.Boolean",
    ),
    _wrong(
        "boolean from map",
        "GetItem",
        {"ConsistentRead": {}},
        "Start of structure or map found where not expected",
    ),
    _wrong(
        "blob from true",
        "PutItem",
        _attribute({"B": True}),
        "only base-64-encoded strings are convertible to bytes",
    ),
    _wrong(
        "blob from number",
        "PutItem",
        _attribute({"B": 1}),
        "only base-64-encoded strings are convertible to bytes",
    ),
    _wrong(
        "blob from list",
        "PutItem",
        _attribute({"B": []}),
        "Unrecognized collection type class java.nio.ByteBuffer",
    ),
    _wrong(
        "base64 length",
        "PutItem",
        _attribute({"B": "abc"}),
        "Base64 encoded length is expected a multiple of 4 bytes but found: 3",
    ),
    _wrong(
        "base64 bits", "PutItem", _attribute({"B": "ab=="}), "Invalid last non-pad Base64 character dectected"
    ),
    _wrong(
        "value string from number",
        "PutItem",
        _attribute({"S": 1}),
        "NUMBER_VALUE cannot be converted to String",
    ),
    _wrong(
        "value number from number",
        "PutItem",
        _attribute({"N": 1}),
        "NUMBER_VALUE cannot be converted to String",
    ),
    _wrong("value from scalar", "PutItem", _attribute("x"), "Unexpected value type in payload"),
    _wrong(
        "value from list",
        "PutItem",
        _attribute([]),
        f"Unrecognized collection type class {_MODEL}.AttributeValue",
    ),
    _wrong(
        "list element from scalar", "PutItem", _attribute({"L": ["x"]}), "Unexpected value type in payload"
    ),
    _wrong("set from scalar", "PutItem", _attribute({"SS": "x"}), "Unexpected field type"),
    _wrong("map from scalar", "GetItem", {"Key": "x"}, "Unexpected field type"),
    _wrong(
        "map from list",
        "GetItem",
        {"Key": []},
        f"Unrecognized collection type java.util.Map<java.lang.String, {_MODEL}.AttributeValue>",
    ),
    _wrong("list from scalar", "GetItem", {"AttributesToGet": "x"}, "Unexpected field type"),
    _wrong("structure from scalar", "CreateTable", {"ProvisionedThroughput": "x"}, "Unexpected field type"),
    _wrong("element from scalar", "CreateTable", {"KeySchema": ["x"]}, "Unexpected value type in payload"),
    _wrong(
        "element from list",
        "CreateTable",
        {"KeySchema": [[]]},
        f"Unrecognized collection type class {_MODEL}.KeySchemaElement",
    ),
    _wrong(
        "write request from list",
        "BatchWriteItem",
        {"RequestItems": {"abc": [[]]}},
        f"Unrecognized collection type class {_MODEL}.WriteRequest",
    ),
    _wrong("batch list from scalar", "BatchWriteItem", {"RequestItems": {"abc": "x"}}, _PARAMETERIZED),
    _wrong("serialization before constraints", "PutItem", {"Item": "x"}, "Unexpected field type"),
]


@rows(ROWS)
def test_json_of_the_wrong_type_is_refused(send_raw: Callable[..., Answer], row: Row) -> None:
    """A member of the wrong JSON type is a SerializationException in Java's words."""
    check(send_raw, row)


@pytest.mark.parametrize("word", ["true", "false", "1", "0", "yes", "no"])
def test_a_boolean_is_read_from_a_word(send_raw: Callable[..., Answer], word: str) -> None:
    """A boolean may be sent as one of six words."""
    answer = send_raw("GetItem", {"TableName": HASH, "Key": {"pk": {"S": "a"}}, "ConsistentRead": word})

    assert answer.status == 200


def test_unknown_members_and_nulls_are_ignored(send_raw: Callable[..., Answer]) -> None:
    """An unknown member, and one that is null, count as absent."""
    answer = send_raw(
        "GetItem",
        {"TableName": HASH, "Key": {"pk": {"S": "nobody"}}, "Colour": {"x": [1]}, "ConsistentRead": None},
    )

    assert (answer.status, answer.body) == (200, {})


def test_types_come_before_the_table(send_raw: Callable[..., Answer]) -> None:
    """A wrong type is reported even if the table is missing."""
    answer = send_raw("PutItem", {"TableName": MISSING, "Item": {"pk": {"S": 1}}})

    assert answer.code == "SerializationException"
