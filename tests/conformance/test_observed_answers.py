"""Answers that were observed on AWS and that local engines often give differently, one test each."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.conformance.backends import Http
from tests.conformance.requests import column, get, item, items_of, n, put, refused, s, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

LONG_NAME = "x" * 65_536


def test_string_and_binary_sets_are_returned_in_the_order_of_their_bytes(
    client: DynamoDBClient, tables: Tables
) -> None:
    """SS and BS are sorted, as written and after ADD; NS keeps the order of insertion."""
    table = tables()
    put(
        client,
        table,
        item(pk="a", ss={"SS": ["b", "é", "a"]}, bs={"BS": [b"\xff", b"\x00"]}, ns={"NS": ["2", "1"]}),
    )

    client.update_item(
        TableName=table,
        Key=item(pk="a"),
        UpdateExpression="ADD ss :ss, bs :bs, ns :ns",
        ExpressionAttributeValues={":ss": {"SS": ["aa"]}, ":bs": {"BS": [b"\x7f"]}, ":ns": {"NS": ["0"]}},
    )

    stored = get(client, table, pk="a")
    assert stored is not None
    assert stored["ss"]["SS"] == ["a", "aa", "b", "é"]
    assert stored["bs"]["BS"] == [b"\x00", b"\x7f", b"\xff"]
    assert stored["ns"]["NS"] == ["2", "1", "0"]


def test_tagging_answers_without_a_body(server: Http) -> None:
    """TagResource and UntagResource respond with an empty body, not with an empty object."""
    target = "DynamoDB_20120810."
    table = table_request("Tagged", "pk")
    _, _, created = server.post(json.dumps(table).encode(), {"X-Amz-Target": f"{target}CreateTable"})
    arn = json.loads(created)["TableDescription"]["TableArn"]

    for operation, members in (
        ("TagResource", {"Tags": [{"Key": "a", "Value": "b"}]}),
        ("UntagResource", {"TagKeys": ["a"]}),
    ):
        body = json.dumps({"ResourceArn": arn, **members}).encode()
        status, headers, answer = server.post(body, {"X-Amz-Target": f"{target}{operation}"})

        assert (status, headers["content-length"], answer) == (200, "0", b"")


def test_the_health_page_and_the_discovered_endpoint_name_the_host(server: Http) -> None:
    """GET / and DescribeEndpoints answer with the host that was asked for, so that discovery stays here."""
    status, _, body = server.post(b"", method="GET")
    client = boto3.client(
        "dynamodb",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )

    host = server.url.removeprefix("http://")
    assert (status, body) == (200, f"healthy: {host} ".encode())
    assert client.describe_endpoints()["Endpoints"][0]["Address"] == server.url


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b'{"Limit"') + gzip.compress(b": 1}") + b"junk"),
        ("Deflate", zlib.compress(b'{"Limit": 1}')),
    ],
    ids=["gzip", "deflate"],
)
def test_a_compressed_request_is_decoded(server: Http, coding: str, body: bytes) -> None:
    """Several gzip members, whatever follows the last, and one zlib stream are a body like any other."""
    headers = {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Encoding": coding}
    status, _, answer = server.post(body, headers)

    assert status == 200
    assert "TableNames" in json.loads(answer)


@pytest.mark.parametrize(
    ("coding", "body"),
    [("br", b"{}"), ("gzip", b"{}"), ("gzip", gzip.compress(b"{}")[:-1]), ("gzip", b""), ("deflate", b"x")],
    ids=["unknown", "broken", "truncated", "empty", "no stream"],
)
def test_a_request_that_cannot_be_decoded_is_not_executed(server: Http, coding: str, body: bytes) -> None:
    """It is refused with a reason (a 5xx on AWS)."""
    headers = {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Encoding": coding}
    status, _, answer = server.post(body, headers)

    assert status == 400
    assert json.loads(answer)["Message"]


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("deflate, gzip", "deflate"),
        ("*", "gzip"),
        ("*, gzip;q=0.5", "deflate"),
        ("x-gzip", None),
    ],
)
def test_an_answer_over_4_kb_is_compressed(server: Http, accepted: str, coding: str | None) -> None:
    """The preferred coding is used above 4 KB and not below; x-amz-crc32 is over the bytes sent."""
    target = "DynamoDB_20120810."
    server.post(json.dumps(table_request("Packed", "pk")).encode(), {"X-Amz-Target": f"{target}CreateTable"})
    for size in (4000, 4096):
        item = {"pk": {"S": "a"}, "x": {"S": "x" * size}}
        put = json.dumps({"TableName": "Packed", "Item": item}).encode()
        server.post(put, {"X-Amz-Target": f"{target}PutItem"})
        get_item = json.dumps({"TableName": "Packed", "Key": {"pk": {"S": "a"}}}).encode()
        _, fields, answer = server.post(
            get_item, {"X-Amz-Target": f"{target}GetItem", "Accept-Encoding": accepted}
        )

        assert fields.get("content-encoding") == (coding if size == 4096 else None)
        assert int(fields["x-amz-crc32"]) == zlib.crc32(answer)
        if size == 4096 and coding is not None:
            answer = gzip.decompress(answer) if coding == "gzip" else zlib.decompress(answer)
        assert json.loads(answer)["Item"] == item


def test_empty_attribute_updates_create_the_item(client: DynamoDBClient, tables: Tables) -> None:
    """UpdateItem with AttributeUpdates: {} on a missing item creates it, and ALL_NEW returns the key."""
    table = tables()

    answer = client.update_item(
        TableName=table, Key=item(pk="a"), AttributeUpdates={}, ReturnValues="ALL_NEW"
    )

    assert answer["Attributes"] == item(pk="a")
    assert get(client, table, pk="a") == item(pk="a")


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("GetItem", {"AttributesToGet": [LONG_NAME]}),
        ("GetItem", {"ProjectionExpression": "#x", "ExpressionAttributeNames": {"#x": LONG_NAME}}),
        ("UpdateItem", {"AttributeUpdates": {LONG_NAME: {"Value": s("v")}}}),
        (
            "UpdateItem",
            {
                "UpdateExpression": "SET #x = :x",
                "ExpressionAttributeNames": {"#x": LONG_NAME},
                "ExpressionAttributeValues": {":x": s("v")},
            },
        ),
    ],
)
def test_a_long_attribute_name_is_refused_everywhere(
    client: DynamoDBClient, tables: Tables, operation: str, members: dict[str, Any]
) -> None:
    """A name of 65,536 bytes is refused in every parameter that takes one."""
    call = client.get_item if operation == "GetItem" else client.update_item
    error = refused(call, TableName=tables(), Key=item(pk="a"), **members)

    assert error.code == "ValidationException"
    assert "65535" in error.message


@pytest.mark.parametrize(
    ("operation", "members"),
    [("GetItem", {"AttributesToGet": [""]}), ("UpdateItem", {"AttributeUpdates": {"": {"Value": s("v")}}})],
)
def test_an_empty_attribute_name_is_refused_in_legacy_parameters(
    client: DynamoDBClient, tables: Tables, operation: str, members: dict[str, Any]
) -> None:
    """The legacy parameters refuse an empty name as items do."""
    call = client.get_item if operation == "GetItem" else client.update_item
    error = refused(call, TableName=tables(), Key=item(pk="a"), **members)

    assert error.code == "ValidationException"
    assert "Empty attribute name" in error.message


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("ProjectionExpression", "{}"),
        ("FilterExpression", "attribute_exists({})"),
        ("UpdateExpression", "REMOVE {}"),
        ("ConditionExpression", "attribute_exists({})"),
    ],
)
def test_a_path_has_at_most_32_levels(client: DynamoDBClient, tables: Tables, field: str, text: str) -> None:
    """A path of 32 names is accepted, one of 33 refused with its number of levels."""
    table = tables()
    put(client, table, item(pk="a"))

    def send(levels: int) -> Any:
        expression: dict[str, Any] = {field: text.format(".".join(["a"] * levels))}
        if field in ("ProjectionExpression", "FilterExpression"):
            return client.scan(TableName=table, **expression)
        return client.update_item(
            TableName=table,
            Key=item(pk="a"),
            **{"UpdateExpression": "REMOVE b", **expression},
        )

    error = refused(lambda **_: send(33))

    assert error.message.endswith(
        f"Invalid {field}: The document path has too many nesting levels; nesting levels: 33"
    )
    if field != "UpdateExpression":  # there, a path into nothing is refused for another reason
        accepted = refused(lambda **_: send(32)) if field == "ConditionExpression" else None
        assert accepted is None or accepted.code == "ConditionalCheckFailedException"
        if accepted is None:
            send(32)


def test_a_conditional_operator_needs_a_condition(client: DynamoDBClient, tables: Tables) -> None:
    """An empty Expected, QueryFilter or ScanFilter is as good as none."""
    table = tables()
    key = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]}}
    calls: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (client.put_item, {"Item": item(pk="a"), "Expected": {}}),
        (client.delete_item, {"Key": item(pk="a"), "Expected": {}}),
        (client.update_item, {"Key": item(pk="a"), "Expected": {}}),
        (client.scan, {"ScanFilter": {}}),
        (client.query, {"KeyConditions": key, "QueryFilter": {}}),
    ]
    for call, members in calls:
        error = refused(call, TableName=table, ConditionalOperator="AND", **members)

        assert error.code == "ValidationException"
        assert "ConditionalOperator cannot be used without Filter or Expected" in error.message


def test_the_source_of_a_bad_index_key_decides_the_refusal(client: DynamoDBClient, tables: Tables) -> None:
    """A literal of the wrong type is a type mismatch; a copied value is an unsupported type."""
    table = tables(gsi={"byC": "c"})
    put(client, table, item(pk="a", e={"M": {}}, num=n(1)))

    def update(expression: str, **values: Any) -> str:
        more = {"ExpressionAttributeValues": values} if values else {}
        return refused(
            client.update_item, TableName=table, Key=item(pk="a"), UpdateExpression=expression, **more
        ).message

    copied = "The update expression attempted to update the secondary index key to unsupported type"
    mismatch = (
        "One or more parameter values were invalid: Type mismatch for Index Key c Expected: S Actual: {} "
        "IndexName: byC"
    )
    assert update("SET c = e") == copied
    assert update("SET c = num") == copied
    assert update("SET c = :v", **{":v": {"M": {}}}) == mismatch.format("M")
    assert update("SET c = :v", **{":v": n(1)}) == mismatch.format("N")


def test_a_validation_error_hides_the_other_reasons_of_a_transaction(
    client: DynamoDBClient, tables: Tables
) -> None:
    """If one action is invalid, the reasons of all others are None, also of a condition that would fail."""
    table = tables()
    failing: Any = {"TableName": table, "Key": item(pk="a"), "ConditionExpression": "attribute_exists(pk)"}
    invalid: Any = {
        "TableName": table,
        "Key": item(pk="b"),
        "UpdateExpression": "SET x = y",
    }

    with pytest.raises(client.exceptions.TransactionCanceledException) as raised:
        client.transact_write_items(TransactItems=[{"ConditionCheck": failing}, {"Update": invalid}])

    reasons = raised.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ValidationError"]


def test_a_deleted_table_is_described_in_short(client: DynamoDBClient, tables: Tables) -> None:
    """The response to DeleteTable has neither keys nor indexes nor the time of creation."""
    table = tables(gsi={"byC": "c"})

    described = client.delete_table(TableName=table)["TableDescription"]

    assert described.keys().isdisjoint(
        {"CreationDateTime", "KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes"}
    )
    assert described.keys() >= {
        "TableId",
        "TableArn",
        "BillingModeSummary",
        "ProvisionedThroughput",
        "ItemCount",
        "TableSizeBytes",
    }


def test_legacy_key_conditions_on_a_multi_attribute_index(client: DynamoDBClient, tables: Tables) -> None:
    """KeyConditions may name three attributes of an index; one that is left out before the last is refused."""
    table = tables(gsi={"by3": "h / r1 r2"})
    put(client, table, *[item(pk=f"{a}{b}", h="x", r1=f"{a}", r2=f"{b}") for a in range(2) for b in range(3)])

    def equal(value: str) -> dict[str, Any]:
        return {"ComparisonOperator": "EQ", "AttributeValueList": [s(value)]}

    conditions = {
        "h": equal("x"),
        "r1": equal("1"),
        "r2": {"ComparisonOperator": "GE", "AttributeValueList": [s("1")]},
    }
    found = items_of(client.query, TableName=table, IndexName="by3", KeyConditions=conditions)
    error = refused(
        client.query,
        TableName=table,
        IndexName="by3",
        KeyConditions={name: conditions[name] for name in ("h", "r2")},
    )
    too_many = refused(client.query, TableName=table, KeyConditions=conditions)

    assert column(found, "pk") == ["11", "12"]
    assert "r1" in error.message
    assert too_many.message == "Conditions can be of length 1 or 2 only"


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (
            {"Select": "ALL_PROJECTED_ATTRIBUTES"},
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        ),
        (
            {"Select": "COUNT", "ProjectionExpression": "a"},
            "Cannot specify the ProjectionExpression when choosing to get only the Count",
        ),
        (
            {"Select": "ALL_ATTRIBUTES", "AttributesToGet": ["a"]},
            "Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES",
        ),
    ],
)
def test_query_counts_a_wrong_select_and_scan_does_not(
    client: DynamoDBClient, tables: Tables, members: dict[str, Any], text: str
) -> None:
    """Query prefixes the number of errors; Scan does not."""
    table = tables()
    key = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [s("a")]}}

    queried = refused(client.query, TableName=table, KeyConditions=key, **members)
    scanned = refused(client.scan, TableName=table, **members)

    assert queried.message == f"1 validation error detected: {text}"
    assert scanned.message == text
