"""Refusals of the data plane for members, attribute values and keys, each with AWS's whole sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.backends import Answer
from tests.conformance.requests import ENVELOPE, OOM, item, n, s
from tests.conformance.sentences import (
    HASH,
    KEY,
    MISSING,
    TABLE,
    Row,
    check,
    enveloped,
    member,
    modern_member,
    rows,
)

pytestmark = pytest.mark.usefixtures("sentences")

_NULL = "Member must not be null"
_LONG_NAME = "a" * 256
_PATTERN = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
_SINGLE: dict[str, dict[str, Any]] = {
    "GetItem": {"Key": KEY},
    "PutItem": {"Item": KEY},
    "UpdateItem": {"Key": KEY},
    "DeleteItem": {"Key": KEY},
    "Query": {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": s("p")}},
    "Scan": {},
}


def _names() -> Iterator[Row]:
    for operation, rest in _SINGLE.items():
        yield Row("no table", operation, rest, member("tableName", _NULL))
        yield Row(
            "long name",
            operation,
            {"TableName": _LONG_NAME, **rest},
            member("tableName", "Member must have length less than or equal to 255", value=f"'{_LONG_NAME}'"),
        )
        empty = "Member must have length greater than or equal to 1"
        yield Row(
            "empty name",
            operation,
            {"TableName": "", **rest},
            member("tableName", empty, value="''")
            if operation == "Scan"
            else modern_member("TableName", empty),
        )
        yield Row(
            "missing table",
            operation,
            {"TableName": MISSING, **rest},
            "Requested resource not found",
            code="ResourceNotFoundException",
        )
    yield Row("bad name", "Scan", {"TableName": "a;b"}, member("tableName", _PATTERN, value="'a;b'"))
    yield Row("no key", "GetItem", {"TableName": TABLE}, member("key", _NULL))
    yield Row("no key", "DeleteItem", {"TableName": TABLE}, member("key", _NULL))
    yield Row("no key", "UpdateItem", {"TableName": TABLE}, member("key", _NULL))
    yield Row("no item", "PutItem", {"TableName": TABLE}, member("item", _NULL))


def _enums() -> Iterator[Row]:
    for operation, rest in _SINGLE.items():
        yield Row(
            "ReturnConsumedCapacity",
            operation,
            {"TableName": TABLE, **rest, "ReturnConsumedCapacity": "abc"},
            member(
                "returnConsumedCapacity",
                "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
                value="'abc'",
            ),
        )
    for operation in ("PutItem", "UpdateItem", "DeleteItem"):
        rest = {"TableName": TABLE, **_SINGLE[operation]}
        yield Row(
            "ReturnValues",
            operation,
            {**rest, "ReturnValues": "abc"},
            f"{ENVELOPE}Failed to satisfy constraint: Member must satisfy enum value set: "
            "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]",
        )
        yield Row(
            "ReturnValuesOnConditionCheckFailure",
            operation,
            {**rest, "ReturnValuesOnConditionCheckFailure": "abc"},
            member(
                "returnValuesOnConditionCheckFailure",
                "Member must satisfy enum value set: [ALL_OLD, NONE]",
                value="'abc'",
            ),
        )
        if operation != "DeleteItem":
            yield Row(
                "ReturnItemCollectionMetrics",
                operation,
                {**rest, "ReturnItemCollectionMetrics": "abc"},
                f"{ENVELOPE}ReturnItemCollectionMetrics can only be SIZE or NONE",
            )
        if operation != "UpdateItem":
            for word in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"):
                yield Row(
                    f"ReturnValues {word}",
                    operation,
                    {**rest, "ReturnValues": word},
                    f"{ENVELOPE}ReturnValues can only be ALL_OLD or NONE",
                )
    for operation in ("Query", "Scan"):
        yield Row(
            "Select",
            operation,
            {"TableName": TABLE, **_SINGLE[operation], "Select": "abc"},
            member(
                "select",
                "Member must satisfy enum value set: "
                "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]",
                value="'abc'",
            ),
        )
    yield Row(
        "ConditionalOperator",
        "Scan",
        {"TableName": TABLE, "ConditionalOperator": "XOR"},
        member("conditionalOperator", "Member must satisfy enum value set: [OR, AND]", value="'XOR'"),
    )


# An attribute value that is refused: its name, its message in the modern layer, and in the classic one
# (None: the same). Those in `_BARE_VALUES` are never enveloped.
_VALUES: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("NULL false", {"NULL": False}, f"{OOM}Null attribute value types must have the value of true", None),
    ("empty SS", {"SS": []}, f"{OOM}An string set  may not be empty", None),
    ("empty NS", {"NS": []}, f"{OOM}An number set  may not be empty", None),
    ("empty BS", {"BS": []}, f"{OOM}Binary sets should not be empty", None),
    (
        "duplicate SS",
        {"SS": ["b", "a", "b"]},
        f'{OOM}Input collection ["a", "b", "b"] contains duplicates.',
        f"{OOM}Input collection [b, a, b] contains duplicates.",
    ),
    (
        "duplicate BS",
        {"BS": ["/w==", "AA==", "AA=="]},
        f'{OOM}Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.',
        f"{OOM}Input collection [/w==, AA==, AA==]of type BS contains duplicates.",
    ),
    (
        "duplicate NS",
        {"NS": ["1", "1.0"]},
        f"{OOM}Input collection contains duplicates.",
        "Input collection contains duplicates",
    ),
    ("no number", {"N": "12x"}, "The parameter cannot be converted to a numeric value: 12x", None),
    ("number with space", {"N": " 1"}, "The parameter cannot be converted to a numeric value:  1", None),
    ("number NaN", {"N": "NaN"}, "The parameter cannot be converted to a numeric value: NaN", None),
    (
        "number Infinity",
        {"N": "Infinity"},
        "The parameter cannot be converted to a numeric value: Infinity",
        None,
    ),
    ("number hex", {"N": "0x10"}, "The parameter cannot be converted to a numeric value: 0x10", None),
    ("number 1e", {"N": "1e"}, "The parameter cannot be converted to a numeric value: 1e", None),
    (
        "empty number",
        {"N": ""},
        "The parameter cannot be converted to a numeric value: ",
        "The parameter cannot be converted to a numeric value",
    ),
    ("39 digits", {"N": "1" * 39}, "Attempting to store more than 38 significant digits in a Number", None),
    (
        "overflow",
        {"N": "1E126"},
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
        None,
    ),
    (
        "negative overflow",
        {"N": "-1E126"},
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
        None,
    ),
    (
        "underflow",
        {"N": "1E-131"},
        "Number underflow. Attempting to store a number with magnitude smaller than supported range",
        None,
    ),
    (
        "exponent beyond an int",
        {"N": "1e2147483647"},
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
        "Number underflow. Attempting to store a number with magnitude smaller than supported range",
    ),
    ("number in a set", {"NS": ["x"]}, "The parameter cannot be converted to a numeric value: x", None),
    (
        "number in a list",
        {"L": [{"N": "x"}]},
        "The parameter cannot be converted to a numeric value: x",
        None,
    ),
    (
        "number in a map",
        {"M": {"a": {"N": "x"}}},
        "The parameter cannot be converted to a numeric value: x",
        None,
    ),
]
_SHAPELESS: list[tuple[str, dict[str, Any], str]] = [
    (
        "no type",
        {},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    (
        "unknown type",
        {"X": "a"},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
    (
        "two types",
        {"S": "a", "N": "1"},
        (
            "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported "
            "datatypes"
        ),
    ),
]


def _values() -> Iterator[Row]:
    for id, value, modern, classic in _VALUES:
        stored = {**KEY, "x": value}
        old = classic if classic is not None else modern
        yield Row(id, "PutItem", {"TableName": TABLE, "Item": stored}, ENVELOPE + modern)
        yield Row(id, "BatchWriteItem", {"RequestItems": {TABLE: [{"PutRequest": {"Item": stored}}]}}, old)
        yield Row(
            id, "TransactWriteItems", {"TransactItems": [{"Put": {"TableName": TABLE, "Item": stored}}]}, old
        )
        if id in ("no number", "duplicate NS", "NULL false", "empty SS"):
            key = {"pk": value, "sk": s("s")}
            yield Row(id, "GetItem", {"TableName": TABLE, "Key": key}, modern)
            yield Row(id, "DeleteItem", {"TableName": TABLE, "Key": key}, ENVELOPE + modern)
            yield Row(id, "BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key]}}}, modern)
            condition = {"ExpressionAttributeValues": {":v": value}}
            yield Row(
                id, "Query", {"TableName": TABLE, "KeyConditionExpression": "pk = :v", **condition}, modern
            )
            yield Row(
                id,
                "UpdateItem",
                {"TableName": TABLE, "Key": KEY, "UpdateExpression": "SET x = :v", **condition},
                ENVELOPE + modern,
            )
            yield Row(
                id,
                "Scan",
                {"TableName": TABLE, "FilterExpression": "x = :v", **condition},
                f"ExpressionAttributeValues contains invalid value: {old} for key :v",
            )
    for id, value, text in _SHAPELESS:
        yield Row(id, "PutItem", {"TableName": TABLE, "Item": {**KEY, "x": value}}, text)
        yield Row(
            f"{id} in a list", "PutItem", {"TableName": TABLE, "Item": {**KEY, "x": {"L": [value]}}}, text
        )
        yield Row(id, "GetItem", {"TableName": TABLE, "Key": {"pk": value, "sk": s("s")}}, text)


_EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
    "empty string value. Key: pk"
)
_EMPTY_INDEX_KEY = (
    "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
    "The AttributeValue for a key attribute cannot contain an empty string value. IndexName: by-a, IndexKey: a"
)
_SCHEMA = "The provided key element does not match the schema"
_LONG_HASH = f"{OOM}Size of hashkey has exceeded the maximum size limit of2048 bytes"
_LONG_RANGE = f"{OOM}Aggregated size of all range keys has exceeded the size limit of 1024 bytes"


def _keys() -> Iterator[Row]:
    def put(id: str, stored: dict[str, Any], text: str) -> Row:
        return Row(id, "PutItem", {"TableName": TABLE, "Item": stored}, text)

    yield put("no hash", item(sk="s"), f"{OOM}Missing the key pk in the item")
    yield put("no range", item(pk="p"), f"{OOM}Missing the key sk in the item")
    yield put("hash type", item(pk=1, sk="s"), f"{OOM}Type mismatch for key pk expected: S actual: N")
    yield put(
        "range type",
        item(pk="p", sk={"BOOL": True}),
        f"{OOM}Type mismatch for key sk expected: S actual: BOOL",
    )
    yield put("empty hash", item(pk="", sk="s"), _EMPTY_KEY)
    yield put("long hash", item(pk="a" * 2049, sk="s"), _LONG_HASH)
    yield put("long range", item(pk="p", sk="a" * 1025), _LONG_RANGE)
    yield put(
        "index key type",
        item(pk="p", sk="s", a=1),
        f"{OOM}Type mismatch for Index Key a Expected: S Actual: N IndexName: by-a",
    )
    yield put(
        "local index key type",
        item(pk="p", sk="s", l="x"),
        f"{OOM}Type mismatch for Index Key l Expected: N Actual: S IndexName: by-l",
    )
    yield put("empty index key", item(pk="p", sk="s", a=""), _EMPTY_INDEX_KEY)
    yield Row(
        "empty index key",
        "BatchWriteItem",
        {"RequestItems": {TABLE: [{"PutRequest": {"Item": item(pk="p", sk="s", a="")}}]}},
        _EMPTY_INDEX_KEY,
    )
    wrong_keys = {
        "no hash": item(sk="s"),
        "no range": item(pk="p"),
        "extra": item(pk="p", sk="s", x="x"),
        "hash type": item(pk=1, sk="s"),
        "range type": item(pk="p", sk=1),
        "nothing": {},
    }
    for id, key in wrong_keys.items():
        for operation in ("GetItem", "DeleteItem", "UpdateItem"):
            yield Row(id, operation, {"TableName": TABLE, "Key": key}, _SCHEMA)
        yield Row(id, "BatchGetItem", {"RequestItems": {TABLE: {"Keys": [key]}}}, _SCHEMA)
        yield Row(id, "BatchWriteItem", {"RequestItems": {TABLE: [{"DeleteRequest": {"Key": key}}]}}, _SCHEMA)
    for id, stored in (("no key", item(pk="p")), ("key type", item(pk=1, sk="s"))):
        yield Row(
            f"put {id}",
            "BatchWriteItem",
            {"RequestItems": {TABLE: [{"PutRequest": {"Item": stored}}]}},
            _SCHEMA,
        )
    empty = item(pk="", sk="s")
    for operation in ("GetItem", "DeleteItem", "UpdateItem"):
        yield Row("empty hash", operation, {"TableName": TABLE, "Key": empty}, _EMPTY_KEY)
        yield Row(
            "long hash", operation, {"TableName": TABLE, "Key": item(pk="a" * 2049, sk="s")}, _LONG_HASH
        )
        yield Row(
            "long range", operation, {"TableName": TABLE, "Key": item(pk="p", sk="a" * 1025)}, _LONG_RANGE
        )
    yield Row("empty hash", "BatchGetItem", {"RequestItems": {TABLE: {"Keys": [empty]}}}, _EMPTY_KEY)
    yield Row(
        "empty hash",
        "BatchWriteItem",
        {"RequestItems": {TABLE: [{"PutRequest": {"Item": empty}}]}},
        _EMPTY_KEY,
    )

    def update(id: str, expression: str, text: str, **values: Any) -> Row:
        request = {"TableName": TABLE, "Key": KEY, "UpdateExpression": expression}
        if values:
            request["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
        return Row(id, "UpdateItem", request, text)

    part = f"{OOM}Cannot update attribute sk. This attribute is part of the key"
    yield update("set a key", "SET sk = :v", part, v=s("x"))
    yield update("remove a key", "REMOVE sk", part)
    yield update(
        "index key type",
        "SET a = :v",
        f"{OOM}Type mismatch for Index Key a Expected: S Actual: N IndexName: by-a",
        v=n(1),
    )
    yield update(
        "empty index key",
        "SET a = :v",
        "One or more parameter values are not valid. The update expression attempted to update a secondary index "
        "key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty "
        "string value.",
        v=s(""),
    )
    scalars = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
    for text, result in (("pk.x", "Key: pk"), ("sk[0]", "Key: sk"), ("a.x", "IndexKey: a")):
        projection = {"ProjectionExpression": text}
        reads: dict[str, dict[str, Any]] = {
            "GetItem": {"TableName": TABLE, "Key": KEY, **projection},
            "BatchGetItem": {"RequestItems": {TABLE: {"Keys": [KEY], **projection}}},
            "Scan": {"TableName": TABLE, **projection},
        }
        for operation, request in reads.items():
            yield Row(f"projection of {text}", operation, request, scalars + result)
        condition = f"attribute_exists({text})"
        yield Row(
            f"condition on {text}",
            "DeleteItem",
            {"TableName": TABLE, "Key": KEY, "ConditionExpression": condition},
            scalars + result,
        )
        yield Row(
            f"filter on {text}", "Scan", {"TableName": TABLE, "FilterExpression": condition}, scalars + result
        )
    yield update("path into a key", "SET pk.x = :v", f"{scalars}Key: pk", v=s("x"))
    yield update("list place of a key", "SET pk[0] = :v", f"{scalars}Key: pk", v=s("x"))
    yield update("path into an index key", "SET a.x = :v", f"{scalars}IndexKey: a", v=s("x"))


@rows(_names())
def test_names_and_absent_members(send_raw: Callable[..., Answer], row: Row) -> None:
    """A table's name, a key and an item are checked as members, and the table is looked up after them."""
    check(send_raw, row)


@rows(_enums())
def test_words_that_are_not_in_an_enum(send_raw: Callable[..., Answer], row: Row) -> None:
    """A value outside an enum is refused with the list of its values."""
    check(send_raw, row)


@rows(_values())
def test_attribute_values(send_raw: Callable[..., Answer], row: Row) -> None:
    """A bad value is refused before the table is looked at; Put, Update and Delete count it first."""
    check(send_raw, row)


@rows(_keys())
def test_keys(send_raw: Callable[..., Answer], row: Row) -> None:
    """A key that the schema refuses is reported bare, in the words of its operation."""
    check(send_raw, row)


@pytest.mark.parametrize(
    ("operation", "request_", "order"),
    [
        (
            "PutItem",
            {"ReturnConsumedCapacity": "a", "ReturnValuesOnConditionCheckFailure": "b"},
            ["returnConsumedCapacity", "tableName", "item"],
        ),
        ("UpdateItem", {"ReturnConsumedCapacity": "a"}, ["returnConsumedCapacity", "tableName", "key"]),
        ("DeleteItem", {"ReturnConsumedCapacity": "a"}, ["returnConsumedCapacity", "tableName", "key"]),
        ("GetItem", {"ReturnConsumedCapacity": "a"}, ["returnConsumedCapacity", "key", "tableName"]),
        (
            "Query",
            {"Select": "a", "IndexName": "a;", "ReturnConsumedCapacity": "a"},
            ["select", "indexName", "indexName", "returnConsumedCapacity", "tableName"],
        ),
    ],
    ids=["PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query"],
)
def test_all_bad_members_are_listed_in_one_answer(
    send_raw: Callable[..., Answer], operation: str, request_: dict[str, Any], order: list[str]
) -> None:
    """Every bad member is reported at once, in the operation's own order."""
    answer = send_raw(operation, request_)

    text = answer.text or ""
    result = [part.split("'")[-2] for part in text.split(" failed to satisfy")[:-1]]
    assert [name for name in result if name in order] == order
    assert text.startswith(f"{len(result)} validation errors detected: ")


def test_nesting_beyond_32_levels(send_raw: Callable[..., Answer]) -> None:
    """A document of more than 32 levels is refused bare."""
    value: dict[str, Any] = s("deep")
    for _ in range(32):
        value = {"M": {"a": value}}

    answer = send_raw("PutItem", {"TableName": HASH, "Item": {"pk": s("p"), "x": value}})

    assert answer.text == (
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit"
    )


def test_an_empty_attribute_name(send_raw: Callable[..., Answer]) -> None:
    """An attribute has a name."""
    answer = send_raw("PutItem", {"TableName": HASH, "Item": {"pk": s("p"), "": s("x")}})

    assert answer.code == "ValidationException"
    assert "Empty attribute name" in (answer.text or "")


def test_a_value_is_refused_before_the_table_is_looked_up(send_raw: Callable[..., Answer]) -> None:
    """Errors in the request alone come before a missing table."""
    answer = send_raw("PutItem", {"TableName": MISSING, "Item": {"pk": {"SS": []}}})

    assert answer.text == enveloped("PutItem", f"{OOM}An string set  may not be empty")
