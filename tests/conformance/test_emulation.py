"""Hardships on purpose, as boto3 meets them: over memory, file and HTTP, each engine with its own switches."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tavola.clock import ManualClock
from tavola.connections import connect
from tavola.engine import Engine
from tavola.server.listener import running
from tests.conformance.backends import LOCAL, Embedded, Http
from tests.conformance.requests import table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Opened = Callable[[str], "tuple[DynamoDBClient, ManualClock]"]


@pytest.fixture(params=LOCAL)
def emulating(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Return a function that opens an engine with switches and yields its client and clock."""
    with ExitStack() as stack:

        def open_client(switches: str) -> tuple[DynamoDBClient, ManualClock]:
            clock = ManualClock()
            path = tmp_path / "store.db" if request.param == "file" else None
            engine = stack.enter_context(closing(Engine.open(path, clock=clock, emulate=switches)))
            if request.param == "http":
                client = Http(stack.enter_context(running(engine)).url).client()
            else:
                backend = Embedded(request.param, engine)
                stack.enter_context(backend.on())
                client = backend.client()
            stack.callback(client.close)
            return client, clock

        yield open_client


def _made(client: DynamoDBClient, keys: str = "pk", **more: Any) -> str:
    name = f"t-{uuid.uuid4().hex}"
    client.create_table(**table_request(name, keys, **more))
    return name


def _provisioned(reads: int, writes: int) -> dict[str, Any]:
    return {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes},
    }


def test_boto3_sees_why_it_was_throttled(emulating: Opened) -> None:
    """Both exceptions have the reason and the ARN, each under AWS's member name."""
    client, clock = emulating("throughput")
    provisioned = _made(client, **_provisioned(5, 2))
    on_demand = _made(client, OnDemandThroughput={"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": 1})
    refusals: list[dict[str, Any]] = []
    for table in (provisioned, on_demand):
        for number in range(4):
            try:
                client.put_item(TableName=table, Item={"pk": {"S": f"{number}"}})
            except client.exceptions.ClientError as refused:
                refusals.append({**refused.response})
    clock.advance(2.0)
    client.put_item(TableName=provisioned, Item={"pk": {"S": "later"}})

    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/"
    assert len(refusals) == 2 + 3  # two units of four writes, one of four
    assert refusals[0]["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert refusals[0]["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": arn + provisioned}
    ]
    assert refusals[-1]["Error"]["Code"] == "ThrottlingException"
    assert refusals[-1]["throttlingReasons"] == [
        {"reason": "TableWriteMaxOnDemandThroughputExceeded", "resource": arn + on_demand}
    ]


def test_batch_writer_gets_unprocessed_items_done(emulating: Opened) -> None:
    """boto3's batch_writer repeats until all is written, although a third is returned each time."""
    client, _ = emulating("unprocessed=0.3,seed=2")
    name = _made(client)
    once = client.batch_write_item(
        RequestItems={name: [{"PutRequest": {"Item": {"pk": {"S": f"k{number}"}}}} for number in range(25)]}
    )
    resource: Any = boto3.resource(
        "dynamodb",
        region_name="us-east-1",
        aws_access_key_id="000000000000",
        aws_secret_access_key="secret",
        endpoint_url=client.meta.endpoint_url,
    )
    with resource.Table(name).batch_writer() as batch:
        for number in range(300):
            batch.put_item(Item={"pk": f"k{number}"})
    resource.meta.client.close()

    assert len(once["UnprocessedItems"][name]) > 1
    assert client.scan(TableName=name)["Count"] == 300


def test_transactions_and_single_writes_conflict(emulating: Opened) -> None:
    """A write beside a transaction is a TransactionConflict, another transaction is cancelled for it."""
    client, clock = emulating("conflicts=10s,seed=1")
    name = _made(client)
    put: Any = {"Put": {"TableName": name, "Item": {"pk": {"S": "a"}}}}
    client.transact_write_items(TransactItems=[put], ClientRequestToken="one")
    with pytest.raises(client.exceptions.TransactionConflictException):
        client.put_item(TableName=name, Item={"pk": {"S": "a"}})
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_write_items(TransactItems=[put], ClientRequestToken="two")
    with pytest.raises(client.exceptions.TransactionInProgressException):
        client.transact_write_items(TransactItems=[put], ClientRequestToken="one")
    clock.advance(10.0)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}})

    assert cancelled.value.response["CancellationReasons"] == [
        {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
    ]


def test_a_stale_read_is_seen_and_then_gone(emulating: Opened) -> None:
    """Own writes may be missed for a moment, in the table and in its index, and never by a consistent read."""
    client, clock = emulating("stale-reads=100ms,gsi-lag=200ms,seed=1")
    name = _made(client, gsi={"by_owner": "owner"})
    clock.advance(1.0)
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "owner": {"S": "me"}})
    clock.advance(0.06)

    def seen() -> tuple[set[bool], set[int], bool]:
        key: Any = {"pk": {"S": "a"}}
        got = {"Item" in client.get_item(TableName=name, Key=key) for _ in range(60)}
        indexed = {
            client.query(
                TableName=name,
                IndexName="by_owner",
                KeyConditionExpression="#o = :o",
                ExpressionAttributeNames={"#o": "owner"},
                ExpressionAttributeValues={":o": {"S": "me"}},
            )["Count"]
            for _ in range(60)
        }
        return got, indexed, "Item" in client.get_item(TableName=name, Key=key, ConsistentRead=True)

    soon = seen()
    clock.advance(0.4)

    assert soon == ({True, False}, {0, 1}, True)
    assert seen() == ({True}, {1}, True)


def test_a_connection_takes_the_switches() -> None:
    """`connect(…, emulate=…)` opens an engine that emulates accordingly."""
    with connect("memory:", emulate="throughput", clock=ManualClock()) as connection:
        connection.call("CreateTable", table_request("notes", "pk", **_provisioned(1, 1)))
        connection.call("PutItem", {"TableName": "notes", "Item": {"pk": {"S": "a"}}})
        with pytest.raises(Exception, match="level of configured provisioned throughput"):
            connection.call("PutItem", {"TableName": "notes", "Item": {"pk": {"S": "b"}}})
