"""Finders: how each capability is found out, by calls on a probe's own tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tavola.design.targets.capabilities import Answer
from tavola.design.targets.probing import Probing, hash_key, range_key, text_attribute, unprotected
from tavola.protocol.faults import Fault

_CONDITIONS = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
_DIGITS = "12345678901234567890123456789012345678"

Finder = Callable[[Probing, str], Answer]


def _yes(held: bool, otherwise: str, remark: str = "") -> Answer:
    """Return what was seen in one word; `remark` says what was not tried."""
    return Answer("yes", remark) if held else Answer("partial", otherwise)


def _refused(ask: Callable[[], object], code: str) -> bool:
    """Return whether the server refuses something with a fault of this code; one that hinders is not its answer."""
    try:
        ask()
    except Fault as fault:
        if fault.code != code and fault.code not in _CONDITIONS:
            raise
        return fault.code == code
    return False


def _conditional_writes(run: Probing, table: str) -> Answer:
    run.put(table, "condition")
    again = _refused(
        lambda: run.call(
            "PutItem",
            TableName=table,
            Item={"pk": {"S": "condition"}, "sk": {"S": "a"}},
            ConditionExpression="attribute_not_exists(pk)",
        ),
        "ConditionalCheckFailedException",
    )
    return _yes(again, "a condition that fails does not stop the write")


def _transact_write(run: Probing, table: str) -> Answer:
    def puts(*names: str, **more: Any) -> list[dict[str, Any]]:
        return [
            {"Put": {"TableName": table, "Item": {"pk": {"S": name}, "sk": {"S": "a"}}, **more}}
            for name in names
        ]

    run.call("TransactWriteItems", TransactItems=puts("both-1", "both-2"))
    both = bool(run.get(table, "both-1")) and bool(run.get(table, "both-2"))
    guarded = puts("none-1") + puts("both-1", ConditionExpression="attribute_not_exists(pk)")
    stopped = _refused(
        lambda: run.call("TransactWriteItems", TransactItems=guarded), "TransactionCanceledException"
    )
    return _yes(both and stopped and not run.get(table, "none-1"), "it is not all or nothing")


def _transact_read(run: Probing, table: str) -> Answer:
    run.put(table, "read", note={"S": "here"})
    key = {"pk": {"S": "read"}, "sk": {"S": "a"}}
    found = run.call("TransactGetItems", TransactItems=[{"Get": {"TableName": table, "Key": key}}])
    return _yes(found["Responses"][0]["Item"]["note"] == {"S": "here"}, "it gives another item")


def _indexed(run: Probing) -> str:
    """Return a table with an index of each kind, made once."""
    name = run.name("indexed")
    if name not in run.tables:
        run.make(
            "indexed",
            AttributeDefinitions=[text_attribute(each) for each in ("pk", "sk", "gpk", "gsk")],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "some",
                    "KeySchema": [hash_key("gpk"), range_key("gsk")],
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kept"]},
                }
            ],
        )
        values: dict[str, Any] = {each: {"S": each} for each in ("gpk", "gsk", "kept", "left")}
        run.put(name, "indexed", **values)
    return name


def _indexed_items(run: Probing) -> list[dict[str, Any]]:
    name = _indexed(run)
    seen: list[dict[str, Any]] = []

    def there() -> bool:
        seen[:] = run.asked(name, "some", "gpk = :g", g="gpk")
        return bool(seen)

    run.until(there)
    return seen


def _index_global(run: Probing, table: str) -> Answer:
    return _yes(len(_indexed_items(run)) == 1, "a put item did not come into the index in time")


def _index_projection(run: Probing, table: str) -> Answer:
    found = _indexed_items(run)
    if not found:
        return Answer("unknown", "the item never came into the index")
    return _yes("kept" in found[0] and "left" not in found[0], "it holds attributes that were not asked for")


def _index_later(run: Probing, table: str) -> Answer:
    run.put(table, "later", lpk={"S": "l"})
    run.patiently(
        "UpdateTable",
        TableName=table,
        AttributeDefinitions=[text_attribute("pk"), text_attribute("sk"), text_attribute("lpk")],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "later",
                    "KeySchema": [hash_key("lpk")],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )

    def active() -> bool:
        found = run.described(table).get("GlobalSecondaryIndexes", [])
        return any(each["IndexName"] == "later" and each.get("IndexStatus") == "ACTIVE" for each in found)

    if not run.until(active):
        return Answer("unknown", "the index did not become active in time")
    return _yes(len(run.asked(table, "later", "lpk = :l", l="l")) == 1, "items from before are not in it")


def _index_multi(run: Probing, table: str) -> Answer:
    name = run.make(
        "multi",
        AttributeDefinitions=[text_attribute(each) for each in ("pk", "sk", "one", "two", "three")],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "multi",
                "KeySchema": [hash_key("one"), hash_key("two"), range_key("three")],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    values: dict[str, Any] = {each: {"S": each} for each in ("one", "two", "three")}
    run.put(name, "multi", **values)
    come = run.until(lambda: len(run.asked(name, "multi", "one = :a AND two = :b", a="one", b="two")) == 1)
    return _yes(come, "it takes such a key and does not find by it")


def _index_local(run: Probing, table: str) -> Answer:
    name = run.make(
        "local",
        AttributeDefinitions=[text_attribute(each) for each in ("pk", "sk", "lsk")],
        LocalSecondaryIndexes=[
            {
                "IndexName": "local",
                "KeySchema": [hash_key("pk"), range_key("lsk")],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    run.put(name, "local", lsk={"S": "x"})
    found = run.asked(name, "local", "pk = :p AND lsk = :l", p="local", l="x")
    return _yes(len(found) == 1, "a put item is not in it")


def _stream_records(run: Probing) -> list[dict[str, Any]]:
    """Return the records of a table that an item was put to, changed and deleted from."""
    name = run.name("stream")
    if name in run.tables:
        return _read_stream(run, name)
    run.make("stream", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    run.put(name, "streamed")
    run.put(name, "streamed", note={"S": "changed"})
    run.call("DeleteItem", TableName=name, Key={"pk": {"S": "streamed"}, "sk": {"S": "a"}})
    seen: list[dict[str, Any]] = []

    def whole() -> bool:
        seen[:] = _read_stream(run, name)
        return len(seen) >= 3

    run.until(whole)
    return seen


def _read_stream(run: Probing, name: str) -> list[dict[str, Any]]:
    arn = run.described(name)["LatestStreamArn"]
    records: list[dict[str, Any]] = []
    for shard in run.call("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = run.call(
            "GetShardIterator", StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        records += run.call("GetRecords", ShardIterator=iterator)["Records"]
    return records


def _streams(run: Probing, table: str) -> Answer:
    found = _stream_records(run)
    return _yes(len(found) >= 3, f"{len(found)} of 3 changes came in time")


def _stream_events(run: Probing, table: str) -> Answer:
    names = [record["eventName"] for record in _stream_records(run)]
    if len(names) < 3:
        return Answer("unknown", "the changes did not come in time")
    return _yes(names == ["INSERT", "MODIFY", "REMOVE"], f"they are told as {', '.join(names)}")


def _ttl(run: Probing, table: str) -> Answer:
    run.call(
        "UpdateTimeToLive", TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    told = run.call("DescribeTimeToLive", TableName=table)["TimeToLiveDescription"]
    return _yes(
        told.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"),
        "it takes the setting and does not keep it",
        "the setting is kept; that an item expires was not waited for",
    )


def _batch_write(run: Probing, table: str) -> Answer:
    puts = [{"PutRequest": {"Item": {"pk": {"S": "batch"}, "sk": {"S": f"{n:02}"}}}} for n in range(25)]
    run.call("BatchWriteItem", RequestItems={table: puts})
    return _yes(len(run.asked(table, None, "pk = :p", p="batch")) == 25, "not all 25 were written")


def _numbers(run: Probing, table: str) -> Answer:
    run.patiently(
        "PutItem", TableName=table, Item={"pk": {"S": "number"}, "sk": {"S": "a"}, "n": {"N": _DIGITS}}
    )
    kept = run.get(table, "number")["n"]["N"]
    return _yes(kept == _DIGITS, f"38 digits come back as {kept}")


def _capacity(run: Probing, table: str) -> Answer:
    run.put(table, "capacity")
    answer = run.call(
        "GetItem",
        TableName=table,
        Key={"pk": {"S": "capacity"}, "sk": {"S": "a"}},
        ReturnConsumedCapacity="TOTAL",
    )
    return _yes(
        answer.get("ConsumedCapacity", {}).get("CapacityUnits") == 0.5, "it tells other units, or none"
    )


def _capacity_indexes(run: Probing, table: str) -> Answer:
    name = _indexed(run)
    answer = run.call(
        "PutItem",
        TableName=name,
        Item={each: {"S": f"{each}-2"} for each in ("pk", "sk", "gpk", "gsk")},
        ReturnConsumedCapacity="INDEXES",
    )
    told = answer.get("ConsumedCapacity", {}).get("GlobalSecondaryIndexes", {})
    return _yes("some" in told, "it does not tell the index's units")


def _partiql(run: Probing, table: str) -> Answer:
    run.put(table, "partiql")
    found = run.call(
        "ExecuteStatement",
        Statement=f'SELECT * FROM "{table}" WHERE pk = ?',
        Parameters=[{"S": "partiql"}],
    )["Items"]
    return _yes(len(found) == 1, "a statement does not find the item")


def _backups(run: Probing, table: str) -> Answer:
    made = run.patiently("CreateBackup", TableName=table, BackupName="tavola-probe")
    arn = made["BackupDetails"]["BackupArn"]
    run.backups.append(arn)
    try:
        run.patiently("DeleteBackup", BackupArn=arn)
    except Fault as fault:
        return Answer("yes", f"a backup was made; deleting it answers {fault.code}")
    run.backups.remove(arn)
    return Answer("yes", "a backup was made; a restore from it was not tried")


def _recovery(run: Probing, table: str) -> Answer:
    run.patiently(
        "UpdateContinuousBackups",
        TableName=table,
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    told = run.call("DescribeContinuousBackups", TableName=table)["ContinuousBackupsDescription"]
    state = told["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
    return _yes(
        state == "ENABLED",
        "it takes the setting and does not keep it",
        "the setting is kept; a restore was not tried",
    )


def _table_class(run: Probing, table: str) -> Answer:
    run.patiently("UpdateTable", TableName=table, TableClass="STANDARD_INFREQUENT_ACCESS")

    def kept() -> bool:
        told = run.described(table).get("TableClassSummary", {}).get("TableClass")
        return bool(told == "STANDARD_INFREQUENT_ACCESS")

    return _yes(
        run.until(kept),
        "it takes the class and does not keep it",
        "the class is kept; that it costs otherwise cannot be seen",
    )


def _deletion(run: Probing, table: str) -> Answer:
    name = run.make("kept", DeletionProtectionEnabled=True)
    try:
        held = _refused(lambda: run.call("DeleteTable", TableName=name), "ValidationException")
    finally:
        run.until(lambda: unprotected(run, name))
    return _yes(held, "such a table can be deleted")


def _tags(run: Probing, table: str) -> Answer:
    arn = run.described(table)["TableArn"]
    run.call("TagResource", ResourceArn=arn, Tags=[{"Key": "probe", "Value": "1"}])
    kept = run.call("ListTagsOfResource", ResourceArn=arn).get("Tags", [])
    return _yes({"Key": "probe", "Value": "1"} in kept, "a tag that was given is not there")


def _encryption(run: Probing, table: str) -> Answer:
    run.make("sealed", SSESpecification={"Enabled": True, "SSEType": "KMS"})
    told = run.described(run.name("sealed")).get("SSEDescription", {})
    return _yes(
        told.get("SSEType") == "KMS",
        "it takes the setting and does not tell it",
        "the setting is kept; that the items are encrypted cannot be seen",
    )


def _vectors(run: Probing, table: str) -> Answer:
    name = run.make(
        "vectors",
        VectorIndexes=[
            {
                "IndexName": "near",
                "VectorAttribute": {"AttributeName": "v"},
                "Dimensions": 2,
                "DistanceFunction": "COSINE",
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    run.put(name, "vector", v={"L": [{"N": "1"}, {"N": "0"}]})

    def near() -> bool:
        asked = {"SearchVector": [{"N": "1"}, {"N": "0"}], "TopK": 1}
        return len(run.call("SearchVectors", TableName=name, IndexName="near", **asked)["SearchResults"]) == 1

    return _yes(run.until(near), "a vector that was put is not found in time")


def _names_long(run: Probing, table: str) -> Answer:
    name = run.make("long", TableName=f"{run.prefix}-{'n' * (255 - len(run.prefix) - 1)}")
    return _yes(run.described(name)["TableName"] == name, "it keeps another name")


def _names_dots(run: Probing, table: str) -> Answer:
    name = run.make("dots", TableName=f"{run.prefix}.dots")
    return _yes(run.described(name)["TableName"] == name, "it keeps another name")


FINDERS: Mapping[str, Finder] = {
    "conditional-writes": _conditional_writes,
    "transactions.write": _transact_write,
    "transactions.read": _transact_read,
    "index.global": _index_global,
    "index.add-later": _index_later,
    "index.projection": _index_projection,
    "index.multi-attribute": _index_multi,
    "index.local": _index_local,
    "streams": _streams,
    "streams.events": _stream_events,
    "ttl": _ttl,
    "batch-write": _batch_write,
    "numbers": _numbers,
    "consumed-capacity": _capacity,
    "consumed-capacity.indexes": _capacity_indexes,
    "partiql": _partiql,
    "backups": _backups,
    "recovery": _recovery,
    "table-class": _table_class,
    "deletion-protection": _deletion,
    "tags": _tags,
    "encryption": _encryption,
    "vectors": _vectors,
    "names.long": _names_long,
    "names.dots": _names_dots,
}
