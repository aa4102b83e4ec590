"""Streams: every change once, in the order of its item, with the images of the stream's view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.conformance.backends import Backend, new_client
from tests.conformance.requests import item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
VIEWS = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")


@pytest.fixture
def streams(backend: Backend, client: DynamoDBClient) -> Any:
    """A boto3 client of the stream service, beside the one of tables."""
    if backend.name == "aws":
        return boto3.client("dynamodbstreams")
    return new_client(
        region="us-east-1",
        account="000000000000",
        endpoint_url=client.meta.endpoint_url,
        service="dynamodbstreams",
    )


def on(view: str) -> dict[str, Any]:
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": view}}


def arn_of(client: DynamoDBClient, table: str) -> str:
    return client.describe_table(TableName=table)["Table"]["LatestStreamArn"]


def shards_of(streams: Any, arn: str) -> list[dict[str, Any]]:
    return list(streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"])


def read(streams: Any, arn: str, shard: str, kind: str = "TRIM_HORIZON", **where: Any) -> list[Any]:
    """Return the records of a shard from a place to its present end."""
    iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType=kind, **where)
    token = iterator["ShardIterator"]
    found: list[Any] = []
    while token is not None:
        page = streams.get_records(ShardIterator=token)
        found += page["Records"]
        token = page.get("NextShardIterator") if page["Records"] else None
    return found


def all_records(streams: Any, arn: str) -> list[Any]:
    """Return the records of every shard, by their sequence numbers."""
    found = [record for shard in shards_of(streams, arn) for record in read(streams, arn, shard["ShardId"])]
    return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


def test_a_change_is_reported_once_and_a_no_op_write_never(
    client: DynamoDBClient, streams: Any, tables: Tables
) -> None:
    """I5 over HTTP: insert, change and removal make a record each; a write that leaves the item unchanged makes none."""
    table = tables("pk", **on("NEW_AND_OLD_IMAGES"))
    put(client, table, item(pk="a", v=1, m={"M": {"x": s("1"), "y": s("2")}}))
    put(client, table, item(pk="a", v=1, m={"M": {"y": s("2"), "x": s("1")}}))
    client.update_item(
        TableName=table,
        Key=item(pk="a"),
        UpdateExpression="SET v = :one",
        ExpressionAttributeValues={":one": n(1)},
    )
    client.update_item(
        TableName=table,
        Key=item(pk="a"),
        UpdateExpression="SET w = :w",
        ExpressionAttributeValues={":w": n(2)},
    )
    client.delete_item(TableName=table, Key=item(pk="nobody"))
    client.delete_item(TableName=table, Key=item(pk="a"))
    client.delete_item(TableName=table, Key=item(pk="a"))

    records = all_records(streams, arn_of(client, table))

    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]
    assert "OldImage" not in records[0]["dynamodb"]
    assert records[1]["dynamodb"]["OldImage"] == records[0]["dynamodb"]["NewImage"]
    assert records[1]["dynamodb"]["NewImage"]["w"] == n(2)
    assert "NewImage" not in records[2]["dynamodb"]
    assert len({record["eventID"] for record in records}) == 3
    assert all("userIdentity" not in record for record in records)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_its_images_and_no_others(
    client: DynamoDBClient, streams: Any, tables: Tables, view: str
) -> None:
    """Keys always; the new and the old image as the view declares, if they exist."""
    table = tables("pk sk", **on(view))
    big = "x" * 500  # long enough that the two images are stored as a difference
    put(client, table, item(pk="a", sk="1", big=big, v=1))
    put(client, table, item(pk="a", sk="1", big=big, v=22))
    client.delete_item(TableName=table, Key=item(pk="a", sk="1"))

    records = [record["dynamodb"] for record in all_records(streams, arn_of(client, table))]

    new, old = "NEW" in view, "OLD" in view
    first, second = (item(pk="a", sk="1", big=big, v=v) for v in (1, 22))
    expected = [(first if new else None, None), (second if new else None, first if old else None)]
    expected.append((None, second if old else None))
    assert [(record.get("NewImage"), record.get("OldImage")) for record in records] == expected
    assert all(record["Keys"] == item(pk="a", sk="1") for record in records)
    assert {record["StreamViewType"] for record in records} == {view}
    assert all(record["SizeBytes"] >= len("pk") + len("a") + len("sk") + len("1") for record in records)


def test_a_transaction_records_each_change_with_both_images(
    client: DynamoDBClient, streams: Any, tables: Tables
) -> None:
    """Transactional writes have old images too; a condition check has no record."""
    table = tables("pk", **on("NEW_AND_OLD_IMAGES"))
    put(client, table, item(pk="a", v=1))
    put(client, table, item(pk="b", v=1))
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": table, "Item": item(pk="a", v=2)}},
            {"Delete": {"TableName": table, "Key": item(pk="b")}},
            {"Put": {"TableName": table, "Item": item(pk="c", v=1)}},
            {
                "ConditionCheck": {
                    "TableName": table,
                    "Key": item(pk="d"),
                    "ConditionExpression": "attribute_not_exists(pk)",
                }
            },
        ]
    )
    refused(
        client.transact_write_items,
        TransactItems=[
            {"Put": {"TableName": table, "Item": item(pk="e")}},
            {
                "ConditionCheck": {
                    "TableName": table,
                    "Key": item(pk="d"),
                    "ConditionExpression": "attribute_exists(pk)",
                }
            },
        ],
    )

    result = {
        (record["eventName"], record["dynamodb"]["Keys"]["pk"]["S"]): record["dynamodb"].get("OldImage")
        for record in all_records(streams, arn_of(client, table))[2:]
    }

    assert result == {
        ("MODIFY", "a"): item(pk="a", v=1),
        ("REMOVE", "b"): item(pk="b", v=1),
        ("INSERT", "c"): None,
    }


def test_a_batch_records_every_item(client: DynamoDBClient, streams: Any, tables: Tables) -> None:
    """All members of a batch are in the stream, spread over the shards, each shard in order."""
    table = tables("pk", **on("KEYS_ONLY"))
    put(client, table, *(item(pk=f"k{i}") for i in range(50)))
    arn = arn_of(client, table)

    by_shard = [read(streams, arn, shard["ShardId"]) for shard in shards_of(streams, arn)]

    assert sum(map(len, by_shard)) == 50
    assert len([records for records in by_shard if records]) > 1
    for records in by_shard:
        numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in records]
        assert numbers == sorted(numbers)


def test_iterators_start_where_they_say(client: DynamoDBClient, streams: Any, tables: Tables) -> None:
    """At and after a number, at a time, at the end: each its own place in the shard."""
    table = tables("pk sk:N", **on("KEYS_ONLY"))
    for place in range(5):
        put(client, table, item(pk="one", sk=place))
    arn = arn_of(client, table)
    (shard,) = (s["ShardId"] for s in shards_of(streams, arn) if read(streams, arn, s["ShardId"]))
    numbers = [record["dynamodb"]["SequenceNumber"] for record in read(streams, arn, shard)]
    first_second = read(streams, arn, shard)[0]["dynamodb"]["ApproximateCreationDateTime"]

    at = read(streams, arn, shard, "AT_SEQUENCE_NUMBER", SequenceNumber=numbers[2])
    after = read(streams, arn, shard, "AFTER_SEQUENCE_NUMBER", SequenceNumber=numbers[2])
    at_time = read(streams, arn, shard, "AT_TIMESTAMP", Timestamp=first_second)
    far = read(streams, arn, shard, "AT_TIMESTAMP", Timestamp=4_000_000_000)
    token = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")
    put(client, table, item(pk="one", sk=9))
    latest = streams.get_records(ShardIterator=token["ShardIterator"])["Records"]

    assert [r["dynamodb"]["SequenceNumber"] for r in at] == numbers[2:]
    assert [r["dynamodb"]["SequenceNumber"] for r in after] == numbers[3:]
    assert [r["dynamodb"]["SequenceNumber"] for r in at_time] == numbers
    assert far == []
    assert [r["dynamodb"]["Keys"]["sk"] for r in latest] == [n(9)]


def test_a_page_ends_at_its_limit_and_goes_on(client: DynamoDBClient, streams: Any, tables: Tables) -> None:
    """Limit bounds a response; the next iterator skips and repeats nothing."""
    table = tables("pk sk:N", **on("KEYS_ONLY"))
    put(client, table, *(item(pk="one", sk=place) for place in range(10)))
    arn = arn_of(client, table)
    (shard,) = (s["ShardId"] for s in shards_of(streams, arn) if read(streams, arn, s["ShardId"]))
    token = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")[
        "ShardIterator"
    ]
    sizes, seen = [], []
    for _ in range(5):
        page = streams.get_records(ShardIterator=token, Limit=3)
        sizes.append(len(page["Records"]))
        seen += [record["dynamodb"]["Keys"]["sk"]["N"] for record in page["Records"]]
        token = page["NextShardIterator"]

    assert sizes == [3, 3, 3, 1, 0]
    assert sorted(map(int, seen)) == list(range(10))


def test_a_large_answer_ends_at_a_megabyte(client: DynamoDBClient, streams: Any, tables: Tables) -> None:
    """A response holds about 1 MB of records; the next one continues with the record that did not fit."""
    table = tables("pk sk:N", **on("NEW_IMAGE"))
    for place in range(8):
        put(client, table, item(pk="one", sk=place, big="x" * 300_000))
    arn = arn_of(client, table)
    (shard,) = (s["ShardId"] for s in shards_of(streams, arn) if read(streams, arn, s["ShardId"]))
    token = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")

    first = streams.get_records(ShardIterator=token["ShardIterator"])
    everything = read(streams, arn, shard)

    assert 1 <= len(first["Records"]) <= 4
    assert [int(r["dynamodb"]["Keys"]["sk"]["N"]) for r in everything] == list(range(8))


def test_a_disabled_stream_can_still_be_read_and_a_new_one_starts_empty(
    client: DynamoDBClient, streams: Any, tables: Tables
) -> None:
    """Off, its shards are closed and end; on again, it is another stream, whose view may differ."""
    table = tables("pk", **on("KEYS_ONLY"))
    put(client, table, item(pk="a"))
    old = arn_of(client, table)
    client.update_table(TableName=table, StreamSpecification={"StreamEnabled": False})
    put(client, table, item(pk="b"))
    client.update_table(TableName=table, **on("NEW_IMAGE"))
    put(client, table, item(pk="c"))
    new = arn_of(client, table)

    described = streams.describe_stream(StreamArn=old)["StreamDescription"]
    ended = [
        streams.get_records(
            ShardIterator=streams.get_shard_iterator(
                StreamArn=old, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
            )["ShardIterator"]
        )
        for shard in described["Shards"]
    ]

    assert old != new
    assert described["StreamStatus"] == "DISABLED"
    assert all("EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in described["Shards"])
    assert [record["dynamodb"]["Keys"] for record in all_records(streams, old)] == [item(pk="a")]
    assert [record["dynamodb"]["NewImage"] for record in all_records(streams, new)] == [item(pk="c")]
    assert all("NextShardIterator" not in answer for answer in ended)
    listed = streams.list_streams(TableName=table)["Streams"]
    assert {each["StreamArn"] for each in listed} == {old, new}


def test_a_stream_outlives_its_table_and_a_namesake_inherits_nothing(
    client: DynamoDBClient, streams: Any, tables: Tables
) -> None:
    """I6 over HTTP: the stream of a deleted table can be read; a table made again under the name has its own."""
    table = tables("pk", **on("KEYS_ONLY"))
    put(client, table, item(pk="a"))
    old = arn_of(client, table)
    client.delete_table(TableName=table)
    client.get_waiter("table_not_exists").wait(TableName=table, WaiterConfig={"Delay": 1})

    assert [record["eventName"] for record in all_records(streams, old)] == ["INSERT"]
    assert streams.describe_stream(StreamArn=old)["StreamDescription"]["StreamStatus"] == "DISABLED"


def test_invalid_iterators_and_streams_are_refused(
    client: DynamoDBClient, streams: Any, tables: Tables
) -> None:
    """Forged tokens, unknown shards and streams and incomplete positions are each reported."""
    table = tables("pk", **on("KEYS_ONLY"))
    arn = arn_of(client, table)
    shard = shards_of(streams, arn)[0]["ShardId"]
    token = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")[
        "ShardIterator"
    ]
    other = arn[:-1] + ("8" if arn[-1] == "9" else "9")
    middle = len(token) // 2
    forged = token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]

    def iterate(**changes: Any) -> str:
        request = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"} | changes
        return refused(streams.get_shard_iterator, **request).code

    assert refused(streams.get_records, ShardIterator=forged).code == "ValidationException"
    assert refused(streams.get_records, ShardIterator="nonsense").code == "ValidationException"
    assert iterate(ShardId="shardId-" + "0" * 29) == "ResourceNotFoundException"
    assert iterate(StreamArn=other) == "ResourceNotFoundException"
    assert iterate(ShardIteratorType="AT_SEQUENCE_NUMBER") == "ValidationException"
    assert iterate(SequenceNumber="1" * 21) == "ValidationException"
    assert iterate(ShardIteratorType="AT_TIMESTAMP") == "ValidationException"
    assert refused(streams.describe_stream, StreamArn=other).code == "ResourceNotFoundException"


def test_another_account_gets_nothing(
    backend: Backend, client: DynamoDBClient, streams: Any, tables: Tables
) -> None:
    """I6 over HTTP: neither the stream nor an iterator of it is any use to someone else."""
    if backend.name == "aws":
        pytest.skip("needs the credentials of a second account")
    table = tables("pk", **on("NEW_IMAGE"))
    put(client, table, item(pk="secret"))
    arn = arn_of(client, table)
    shard = shards_of(streams, arn)[0]["ShardId"]
    token = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    other: Any = new_client(
        region="us-east-1",
        account="111111111111",
        endpoint_url=client.meta.endpoint_url,
        service="dynamodbstreams",
    )

    assert refused(other.get_records, ShardIterator=token["ShardIterator"]).code == "ValidationException"
    assert refused(other.describe_stream, StreamArn=arn).code == "AccessDeniedException"
    assert other.list_streams()["Streams"] == []


def test_shards_are_described_in_pages(client: DynamoDBClient, streams: Any, tables: Tables) -> None:
    """An on-demand table starts with several shards; a description can be read one at a time."""
    table = tables("pk", **on("KEYS_ONLY"))
    arn = arn_of(client, table)
    everything = [shard["ShardId"] for shard in shards_of(streams, arn)]
    paged: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = streams.describe_stream(StreamArn=arn, Limit=1, **more)["StreamDescription"]
        paged += [shard["ShardId"] for shard in page["Shards"]]
        if "LastEvaluatedShardId" not in page:
            break
        more = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}

    assert len(everything) > 1
    assert paged == everything


def test_a_start_shard_that_does_not_exist_is_a_bound(
    client: DynamoDBClient, streams: Any, tables: Tables
) -> None:
    """Shards are listed in the order of their ids; an ExclusiveStartShardId is compared and need not exist."""
    arn = arn_of(client, tables(**on("KEYS_ONLY")))

    def shards_after(start: str) -> list[str]:
        described = streams.describe_stream(StreamArn=arn, ExclusiveStartShardId=start)
        return [shard["ShardId"] for shard in described["StreamDescription"]["Shards"]]

    every = [shard["ShardId"] for shard in shards_of(streams, arn)]
    assert every == sorted(every)
    assert shards_after("shardId-00000000000000000000-00000000") == every
    assert shards_after("shardId-99999999999999999999-ffffffff") == []


@pytest.mark.parametrize(
    ("operation", "members", "limit"),
    [("list_streams", {}, 100), ("get_records", {"ShardIterator": "x"}, 1000)],
)
def test_a_limit_above_the_maximum_is_refused(
    streams: Any, operation: str, members: dict[str, Any], limit: int
) -> None:
    """ListStreams returns at most 100 streams and GetRecords 1,000 records: more is refused, not reduced."""
    error = refused(getattr(streams, operation), Limit=limit + 1, **members)

    assert error.code == "ValidationException"
    assert error.message == (
        f"1 validation error detected: Value '{limit + 1}' at 'limit' failed to satisfy constraint: "
        f"Member must have value less than or equal to {limit}"
    )
