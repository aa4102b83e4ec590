"""Members that break their constraints, in AWS's order and in both of its wordings."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.protocol.message_style import MessageStyle
from tests.protocol.parsing import parse_request, refusal

_LONG = "a" * 256
_NAME = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
_CAPACITY = "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
_METRICS = "Member must satisfy enum value set: [SIZE, NONE]"
_RETURNS = "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
_MODERN_RETURNS = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
_SELECT = "Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]"
_OPERATOR = (
    "Member must satisfy enum value set: [IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, "
    "BEGINS_WITH, GE, CONTAINS]"
)
_KEYS = (
    "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "
    f"Member must have length greater than or equal to 3, {_NAME}]"
)


def _value(echo: str, path: str, rule: str) -> str:
    return f"Value {echo} at '{path}' failed to satisfy constraint: {rule}"


def _listed(*refusals: str) -> str:
    return (
        f"{len(refusals)} validation error{'s' if len(refusals) > 1 else ''} detected: {'; '.join(refusals)}"
    )


_MISSING = "Member must not be null"
_KEY: dict[str, Any] = {"Key": {"a": {"S": "a"}}}
_TABLE_OPERATIONS = [
    "DeleteTable",
    "DescribeTable",
    "UpdateTable",
    "UpdateTimeToLive",
    "DescribeTimeToLive",
    "DescribeContinuousBackups",
]
_TTL = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "t"}, "BillingMode": "PAY_PER_REQUEST"}


@pytest.mark.parametrize("operation", ["GetItem", "DeleteItem", "UpdateItem"])
@pytest.mark.parametrize("wording", ["current", "classic", "modern"])
def test_the_data_plane_misses_a_table_as_a_member(operation: str, wording: MessageStyle) -> None:
    """An absent member is null in either wording."""
    assert refusal(operation, _KEY, wording) == _listed(_value("null", "tableName", _MISSING))


@pytest.mark.parametrize(
    ("operation", "request_", "wording", "text"),
    [
        (
            "GetItem",
            {"TableName": "", **_KEY},
            "classic",
            _listed(_value("''", "tableName", "Member must have length greater than or equal to 1")),
        ),
        (
            "GetItem",
            {"TableName": "", **_KEY},
            "current",
            _listed(
                "Value at 'TableName' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            ),
        ),
        ("Scan", {"TableName": "abc;"}, "current", _listed(_value("'abc;'", "tableName", _NAME))),
        (
            "GetItem",
            {"TableName": _LONG, **_KEY},
            "current",
            _listed(_value(f"'{_LONG}'", "tableName", "Member must have length less than or equal to 255")),
        ),
        (
            "Query",
            {"TableName": "abc", "IndexName": ""},
            "current",
            _listed(
                _value("''", "indexName", _NAME),
                _value("''", "indexName", "Member must have length greater than or equal to 3"),
            ),
        ),
        ("PutItem", {"TableName": "abc"}, "current", _listed(_value("null", "item", _MISSING))),
        ("GetItem", {"TableName": "abc"}, "classic", _listed(_value("null", "key", _MISSING))),
        (
            "GetItem",
            {"TableName": "abc", **_KEY, "ReturnConsumedCapacity": "hi"},
            "current",
            _listed(_value("'hi'", "returnConsumedCapacity", _CAPACITY)),
        ),
        (
            "PutItem",
            {"TableName": "abc", "Item": {}, "ReturnItemCollectionMetrics": "hi"},
            "classic",
            _listed(_value("'hi'", "returnItemCollectionMetrics", _METRICS)),
        ),
        (
            "PutItem",
            {"TableName": "abc", "Item": {}, "ReturnItemCollectionMetrics": "hi"},
            "current",
            _listed("ReturnItemCollectionMetrics can only be SIZE or NONE"),
        ),
        (
            "UpdateItem",
            {"TableName": "abc", **_KEY, "ReturnValues": "hi"},
            "classic",
            _listed(_value("'hi'", "returnValues", _RETURNS)),
        ),
        (
            "UpdateItem",
            {"TableName": "abc", **_KEY, "ReturnValues": "hi"},
            "current",
            _listed(_MODERN_RETURNS),
        ),
        (
            "DeleteItem",
            {"TableName": "abc", **_KEY, "ReturnValuesOnConditionCheckFailure": "hi"},
            "current",
            _listed(
                _value(
                    "'hi'",
                    "returnValuesOnConditionCheckFailure",
                    "Member must satisfy enum value set: [ALL_OLD, NONE]",
                )
            ),
        ),
        (
            "Query",
            {"TableName": "abc", "Select": "hi"},
            "current",
            _listed(_value("'hi'", "select", _SELECT)),
        ),
        (
            "Scan",
            {"TableName": "abc", "ConditionalOperator": "XOR"},
            "current",
            _listed(_value("'XOR'", "conditionalOperator", "Member must satisfy enum value set: [OR, AND]")),
        ),
        (
            "Query",
            {"TableName": "abc", "ConditionalOperator": "XOR"},
            "current",
            _listed("Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"),
        ),
        (
            "Query",
            {"TableName": "abc", "Limit": 0},
            "current",
            _listed(
                "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1"
            ),
        ),
        (
            "Scan",
            {"TableName": "abc", "Limit": 0},
            "current",
            _listed(_value("'0'", "limit", "Member must have value greater than or equal to 1")),
        ),
        (
            "Scan",
            {"TableName": "abc", "Segment": 0, "TotalSegments": 1_000_001},
            "current",
            _listed(
                _value("'1000001'", "totalSegments", "Member must have value less than or equal to 1000000")
            ),
        ),
        (
            "UpdateItem",
            {"TableName": "abc", **_KEY, "AttributeUpdates": {"a": {"Action": "hi"}}},
            "current",
            _listed(
                _value(
                    "'hi'",
                    "attributeUpdates.a.member.action",
                    "Member must satisfy enum value set: [ADD, PUT, DELETE]",
                )
            ),
        ),
        (
            "ListTables",
            {"Limit": 101},
            "current",
            _listed(_value("'101'", "limit", "Member must have value less than or equal to 100")),
        ),
        (
            "ListTables",
            {"ExclusiveStartTableName": "a;"},
            "current",
            _listed(
                _value("'a;'", "exclusiveStartTableName", _NAME),
                _value(
                    "'a;'", "exclusiveStartTableName", "Member must have length greater than or equal to 3"
                ),
            ),
        ),
        (
            "UpdateTimeToLive",
            {"TableName": "abc", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": ""}},
            "current",
            _listed(
                _value(
                    "''",
                    "timeToLiveSpecification.attributeName",
                    "Member must have length greater than or equal to 1",
                )
            ),
        ),
        (
            "TransactWriteItems",
            {"TransactItems": []},
            "current",
            _listed(_value("'[]'", "transactItems", "Member must have length greater than or equal to 1")),
        ),
        (
            "TransactWriteItems",
            {"TransactItems": []},
            "modern",
            _listed(
                "Value at 'TransactItems' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            ),
        ),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": "abc", "Key": {}}}] * 101},
            "modern",
            _listed(
                "Value at 'TransactItems' failed to satisfy constraint: "
                "Member must have length less than or equal to 100"
            ),
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": {"TableName": "abc", "Item": {}, "ReturnValuesOnConditionCheckFailure": "hi"}}
                ]
            },
            "current",
            _listed(
                _value(
                    "'hi'",
                    "transactItems.1.member.put.returnValuesOnConditionCheckFailure",
                    "Member must satisfy enum value set: [ALL_OLD, NONE]",
                )
            ),
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Delete": {"TableName": "abc", "Key": {}}}], "ClientRequestToken": "t" * 37},
            "current",
            _listed(
                _value(
                    f"'{'t' * 37}'", "clientRequestToken", "Member must have length less than or equal to 36"
                )
            ),
        ),
        (
            "BatchGetItem",
            {},
            "current",
            _listed(_value("null", "requestItems", _MISSING)),
        ),
        (
            "BatchGetItem",
            {"RequestItems": {}},
            "current",
            _listed(
                "Value at 'RequestItems' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            ),
        ),
        (
            "BatchGetItem",
            {"RequestItems": {}},
            "classic",
            "The requestItems parameter is required for BatchGetItem",
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {}},
            "current",
            "The requestItems parameter is required for BatchWriteItem",
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"abc": {"Keys": [{}] * 101}}},
            "current",
            _listed(
                "Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: "
                "Member must have length less than or equal to 100"
            ),
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"abc": {"Keys": []}}},
            "current",
            _listed(
                "Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            ),
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"bad!name": {"Keys": [{"pk": {"S": "a"}}]}}},
            "current",
            _listed(_value("""'{"bad!name":{"Keys":[{"pk":{"S":"a"}}]}}'""", "requestItems", _KEYS)),
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"a": {}}, "ReturnConsumedCapacity": "hi"},
            "classic",
            _listed(
                _value("'hi'", "returnConsumedCapacity", _CAPACITY),
                _value("'{a=KeysAndAttributes()}'", "requestItems", _KEYS),
                _value("null", "requestItems.a.member.keys", _MISSING),
            ),
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": []}},
            "current",
            _listed(
                _value(
                    "'{abc=[]}'",
                    "requestItems",
                    "Map value must satisfy constraint: [Member must have length less than or equal to 25, "
                    "Member must have length greater than or equal to 1]",
                )
            ),
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": [{"DeleteRequest": {"Key": {}}}] * 26}},
            "modern",
            _listed(
                "Value at 'RequestItems.abc.member' failed to satisfy constraint: "
                "Member must have length less than or equal to 25"
            ),
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": [{"PutRequest": {}}]}},
            "current",
            _listed(_value("null", "requestItems.abc.member.1.member.putRequest.item", _MISSING)),
        ),
        (
            "TagResource",
            {"ResourceArn": "a:b:c:d:e:f/g"},
            "current",
            _listed(_value("null", "tags", _MISSING)),
        ),
    ],
)
def test_a_member_that_breaks_its_constraint_is_named(
    operation: str, request_: dict[str, Any], wording: MessageStyle, text: str
) -> None:
    """Each constraint has its sentence, and each wording its way to say it."""
    assert refusal(operation, request_, wording) == text


@pytest.mark.parametrize("operation", [*_TABLE_OPERATIONS, "CreateTable"])
def test_the_control_plane_misses_a_table_first(operation: str) -> None:
    """Without a table's name the control plane looks at nothing else."""
    assert (
        refusal(operation, {"BillingMode": "hi"})
        == "The parameter 'TableName' is required but was not present in the request"
    )


@pytest.mark.parametrize("operation", _TABLE_OPERATIONS)
@pytest.mark.parametrize("name", ["", "ab", "a;", _LONG])
def test_the_control_plane_measures_a_name_alone(operation: str, name: str) -> None:
    """A name of the wrong length had a sentence of its own there, which the classic wording keeps."""
    assert (
        refusal(operation, {"TableName": name, **_TTL}, "classic")
        == "TableName must be at least 3 characters long and at most 255 characters long"
    )


@pytest.mark.parametrize("operation", _TABLE_OPERATIONS)
def test_the_control_plane_lists_a_bad_character(operation: str) -> None:
    """A name of a good length is refused as a member is."""
    assert refusal(operation, {"TableName": "abc;", **_TTL}) == _listed(_value("'abc;'", "tableName", _NAME))


@pytest.mark.parametrize("operation", _TABLE_OPERATIONS)
@pytest.mark.parametrize(
    ("name", "rule"), [("ab", "greater than or equal to 3"), (_LONG, "less than or equal to 255")]
)
def test_the_control_plane_measures_a_name_as_a_member_today(operation: str, name: str, rule: str) -> None:
    """The control plane has moved to the member's sentence."""
    assert refusal(operation, {"TableName": name, **_TTL}) == _listed(
        _value(f"'{name}'", "tableName", f"Member must have length {rule}")
    )


def test_a_new_table_has_its_name_measured_as_a_member_today() -> None:
    """CreateTable has moved to the member's sentence; the classic wording keeps the old one."""
    request = {
        "TableName": "ab",
        "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }

    assert refusal("CreateTable", request) == _listed(
        _value("'ab'", "tableName", "Member must have length greater than or equal to 3")
    )
    assert (
        refusal("CreateTable", request, "classic")
        == "TableName must be at least 3 characters long and at most 255 characters long"
    )


@pytest.mark.parametrize(
    ("operation", "request_", "refusals"),
    [
        (
            "PutItem",
            {
                "ReturnItemCollectionMetrics": "hi",
                "ReturnValues": "hi",
                "TableName": "abc;",
                "ReturnConsumedCapacity": "hi",
            },
            [
                _value("'hi'", "returnConsumedCapacity", _CAPACITY),
                _value("'abc;'", "tableName", _NAME),
                _value("null", "item", _MISSING),
                _value("'hi'", "returnValues", _RETURNS),
                _value("'hi'", "returnItemCollectionMetrics", _METRICS),
            ],
        ),
        (
            "UpdateItem",
            {
                "ReturnValues": "hi",
                "ReturnItemCollectionMetrics": "hi",
                "TableName": "abc;",
                "ReturnConsumedCapacity": "hi",
            },
            [
                _value("'hi'", "returnConsumedCapacity", _CAPACITY),
                _value("'abc;'", "tableName", _NAME),
                _value("'hi'", "returnItemCollectionMetrics", _METRICS),
                _value("'hi'", "returnValues", _RETURNS),
                _value("null", "key", _MISSING),
            ],
        ),
        (
            "DeleteItem",
            {
                "ReturnItemCollectionMetrics": "hi",
                "ReturnValues": "hi",
                "TableName": "abc;",
                "ReturnConsumedCapacity": "hi",
            },
            [
                _value("'hi'", "returnConsumedCapacity", _CAPACITY),
                _value("'abc;'", "tableName", _NAME),
                _value("'hi'", "returnValues", _RETURNS),
                _value("'hi'", "returnItemCollectionMetrics", _METRICS),
                _value("null", "key", _MISSING),
            ],
        ),
        (
            "GetItem",
            {"AttributesToGet": [], "ReturnConsumedCapacity": "hi"},
            [
                _value("'[]'", "attributesToGet", "Member must have length greater than or equal to 1"),
                _value("'hi'", "returnConsumedCapacity", _CAPACITY),
                _value("null", "key", _MISSING),
                _value("null", "tableName", _MISSING),
            ],
        ),
        (
            "Query",
            {
                "TableName": "abc;",
                "ReturnConsumedCapacity": "hi",
                "AttributesToGet": [],
                "IndexName": "abc;",
                "Select": "hi",
                "Limit": -1,
                "KeyConditions": {"a": {}, "b": {"ComparisonOperator": ""}},
                "ConditionalOperator": "AN",
                "QueryFilter": {"a": {}, "b": {"ComparisonOperator": ""}},
            },
            [
                _value("'hi'", "select", _SELECT),
                _value("'abc;'", "indexName", _NAME),
                _value("'hi'", "returnConsumedCapacity", _CAPACITY),
                _value("null", "queryFilter.a.member.comparisonOperator", _MISSING),
                _value("''", "queryFilter.b.member.comparisonOperator", _OPERATOR),
                _value("'abc;'", "tableName", _NAME),
                _value("'AN'", "conditionalOperator", "Member must satisfy enum value set: [OR, AND]"),
                _value("'[]'", "attributesToGet", "Member must have length greater than or equal to 1"),
                _value("'-1'", "limit", "Member must have value greater than or equal to 1"),
                _value("null", "keyConditions.a.member.comparisonOperator", _MISSING),
            ],
        ),
        (
            "CreateTable",
            {
                "TableName": "abc;",
                "ProvisionedThroughput": {"ReadCapacityUnits": -1, "WriteCapacityUnits": -1},
                "KeySchema": [],
            },
            [
                _value("null", "attributeDefinitions", _MISSING),
                _value("'abc;'", "tableName", _NAME),
                _value(
                    "'-1'",
                    "provisionedThroughput.writeCapacityUnits",
                    "Member must have value greater than or equal to 1",
                ),
                _value(
                    "'-1'",
                    "provisionedThroughput.readCapacityUnits",
                    "Member must have value greater than or equal to 1",
                ),
                _value("'[]'", "keySchema", "Member must have length greater than or equal to 1"),
            ],
        ),
    ],
)
def test_several_are_listed_in_the_operations_order(
    operation: str, request_: dict[str, Any], refusals: list[str]
) -> None:
    """All bad members are reported at once, not in the body's order but in the operation's."""
    assert refusal(operation, request_, "classic") == _listed(*refusals)


def test_no_more_than_ten_are_listed() -> None:
    """The eleventh is for the next attempt."""
    request = {
        "TableName": "abc",
        "AttributeDefinitions": [],
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "LocalSecondaryIndexes": [{}] * 9,
    }

    text = refusal("CreateTable", request)

    assert text.startswith("10 validation errors detected: ")
    assert text.count("; ") == 9
    assert text.endswith(_value("null", "localSecondaryIndexes.4.member.indexName", _MISSING))


def test_global_indexes_are_listed_before_local_ones() -> None:
    """Whatever the body's order."""
    index = {"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}], "Projection": {}}
    request = {
        "TableName": "abc",
        "AttributeDefinitions": [],
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "LocalSecondaryIndexes": [{"IndexName": "l1", **index}],
        "GlobalSecondaryIndexes": [{"IndexName": "g1", **index}],
    }
    rule = "Member must have length greater than or equal to 3"

    assert refusal("CreateTable", request) == _listed(
        _value("'g1'", "globalSecondaryIndexes.1.member.indexName", rule),
        _value("'l1'", "localSecondaryIndexes.1.member.indexName", rule),
    )


@pytest.mark.parametrize("name", ["a", "ab", "abc", "A.b-c_9", "a" * 255])
def test_the_data_plane_takes_a_name_of_any_length_up_to_255(name: str) -> None:
    """A name too short for a table is a table that does not exist."""
    assert parse_request("GetItem", {"TableName": name, "Key": {}}).table_name == name


@pytest.mark.parametrize("operation", ["GetItem", "DescribeTable"])
def test_a_table_may_be_named_by_its_arn(operation: str) -> None:
    """The planes take a name or an ARN; a new table has only a name."""
    arn = "arn:aws:dynamodb:eu-west-2:123456789012:table/Orders"

    assert parse_request(operation, {"TableName": arn, "Key": {}}).table_name == arn
    assert _value(f"'{arn}'", "tableName", _NAME) in refusal("CreateTable", {"TableName": arn})
