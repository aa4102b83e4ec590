"""An unchanged boto3 against a served engine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tavola.engine import Engine
from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import running
from tests.server.raw import Raw, request, send_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

HASH: dict[str, Any] = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def endpoint() -> Iterator[ServerEndpoint]:
    with Engine.open() as engine, running(engine) as endpoint:
        yield endpoint


@pytest.fixture
def dynamodb(endpoint: ServerEndpoint) -> Iterator[DynamoDBClient]:
    client = _client(endpoint)
    client.create_table(TableName="Orders", **HASH)
    yield client
    client.close()


def _client(endpoint: ServerEndpoint, key: str = "tavola", region: str = "us-east-1") -> DynamoDBClient:
    client: DynamoDBClient = boto3.client(
        "dynamodb",
        endpoint_url=endpoint.url,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )
    return client


def test_items_go_there_and_back(dynamodb: DynamoDBClient) -> None:
    """A get returns the item that was put, and botocore accepts the checksum."""
    item: dict[str, Any] = {
        "pk": {"S": "o#1"},
        "total": {"N": "12345678901234567890123456789012345678"},
        "lines": {"L": [{"M": {"sku": {"S": "ä€😀"}, "raw": {"B": b"\x00\xff"}}}]},
    }
    dynamodb.put_item(TableName="Orders", Item=item)
    answer = dynamodb.get_item(TableName="Orders", Key={"pk": {"S": "o#1"}})

    assert answer["Item"] == item
    headers = answer["ResponseMetadata"]["HTTPHeaders"]
    assert len(answer["ResponseMetadata"]["RequestId"]) == 52
    assert headers["content-type"] == "application/x-amz-json-1.0"


def test_a_large_page_passes_the_checksum(dynamodb: DynamoDBClient) -> None:
    """A page of a megabyte arrives whole."""
    for number in range(4):
        dynamodb.put_item(TableName="Orders", Item={"pk": {"S": str(number)}, "x": {"S": "y" * 300_000}})
    answer = dynamodb.scan(TableName="Orders")

    assert len(answer["Items"]) == 4
    assert sum(len(item["x"]["S"]) for item in answer["Items"]) == 1_200_000


def test_errors_are_what_the_sdk_expects(dynamodb: DynamoDBClient) -> None:
    """An SDK finds the code and the message of a fault."""
    dynamodb.put_item(TableName="Orders", Item={"pk": {"S": "o#1"}})
    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException) as failed:
        dynamodb.put_item(
            TableName="Orders", Item={"pk": {"S": "o#1"}}, ConditionExpression="attribute_not_exists(pk)"
        )
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException) as missing:
        dynamodb.describe_table(TableName="Missing")
    with pytest.raises(ClientError) as invalid:
        dynamodb.get_item(TableName="Orders", Key={"sk": {"S": "o#1"}})

    assert failed.value.response["Error"]["Message"] == "The conditional request failed"
    assert missing.value.response["Error"]["Message"].startswith("Requested resource not found")
    assert invalid.value.response["Error"]["Code"] == "ValidationException"


def test_tables_belong_to_an_account_and_a_region(endpoint: ServerEndpoint, dynamodb: DynamoDBClient) -> None:
    """The credential's account and region separate tables, and are in their ARNs."""
    other = _client(endpoint, key="123456789012", region="eu-west-1")
    try:
        assert other.list_tables()["TableNames"] == []
        described = other.create_table(TableName="Orders", **HASH)["TableDescription"]
        assert described["TableArn"] == "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"
        other.delete_table(TableName="Orders")
    finally:
        other.close()

    described = dynamodb.describe_table(TableName="Orders")["Table"]
    assert described["TableArn"] == "arn:aws:dynamodb:us-east-1:000000000000:table/Orders"


def test_many_clients_write_at_once(endpoint: ServerEndpoint, dynamodb: DynamoDBClient) -> None:
    """Each of many concurrent increments counts once."""
    body = json.dumps(
        {
            "TableName": "Orders",
            "Key": {"pk": {"S": "counter"}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    ).encode()

    def work(_: int) -> None:
        with Raw(endpoint) as client:
            client.send(request("UpdateItem", body) * 50)
            assert [client.answer().status for _ in range(50)] == [200] * 50

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert dynamodb.get_item(TableName="Orders", Key={"pk": {"S": "counter"}})["Item"]["n"] == {"N": "400"}


DEEP = 100_000
BAD_BODIES = {
    "empty": b"",
    "no json": b"{",
    "not utf-8": b'{"TableName":"\xff\xfe"}',
    "lone surrogate": b'{"TableName":"\\ud800"}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": '{"TableName":"Orders"}'.encode("utf-16"),
    "NaN": b'{"TableName":NaN}',
    "infinite": b'{"Limit":1e999}',
    "long integer": b'{"Limit":' + b"9" * 5000 + b"}",
    "an array": b"[]",
    "a number": b"1",
    "null": b"null",
    "deep arrays": b"[" * DEEP,
    "deep lists": b'{"TableName":"Orders","Item":{"pk":' + b'{"L":[' * DEEP,
    "deep and whole": b'{"TableName":"Orders","Item":{"pk":{"S":"a"},"d":'
    + b'{"L":[' * 900
    + b'{"S":"x"}'
    + b"]}" * 900
    + b"}}",
    "deep unknown member": b'{"Zork":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "nul": b'{"TableName":"\\u0000"}',
    "compressed": gzip.compress(b'{"TableName":"Orders"}'),
    "trailing": b'{"TableName":"Orders"} {}',
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_a_bad_body_is_the_clients_mistake(endpoint: ServerEndpoint, body: bytes) -> None:
    """No body, however broken, causes a 5xx or closes the connection."""
    with Raw(endpoint) as client:
        for operation in ("PutItem", "GetItem", "Query", "BatchWriteItem", "CreateTable", "ListTables"):
            client.send(request(operation, body))
            answer = client.answer()
            assert answer.status in {200, 400}, answer
            assert answer.status == 400 or operation == "ListTables"


def test_an_unknown_operation_is_reported(endpoint: ServerEndpoint) -> None:
    """An operation outside DynamoDB's is refused as unknown, not as a failure."""
    answer = send_request(endpoint, request("InventTable", b"{}"))

    assert answer.status == 400
    assert json.loads(answer.body)["__type"] == "com.amazon.coral.service#UnknownOperationException"


def test_a_file_is_served(tmp_path: Any) -> None:
    """A second server serves the file that the first wrote."""
    path = tmp_path / "shop.db"
    for attempt in range(2):
        with Engine.open(path) as engine, running(engine) as endpoint:
            client = _client(endpoint)
            if attempt == 0:
                client.create_table(TableName="Orders", **HASH)
                client.put_item(TableName="Orders", Item={"pk": {"S": "kept"}})
            else:
                assert client.get_item(TableName="Orders", Key={"pk": {"S": "kept"}})["Item"]
            client.close()
