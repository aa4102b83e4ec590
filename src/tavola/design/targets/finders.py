"""The test of each capability, with calls on the probe's own tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tavola.design.targets.capabilities import CapabilityAnswer
from tavola.design.targets.probing import (
    ProbeRun,
    hash_key,
    index_definition,
    range_key,
    text_attribute,
    unprotect_table,
)
from tavola.protocol.faults import Fault

_CONDITIONS = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
_DIGITS = "12345678901234567890123456789012345678"

Finder = Callable[[ProbeRun, str], CapabilityAnswer]


def _answer_if(supported: bool, difference: str, remark: str = "") -> CapabilityAnswer:
    """Return yes or no, with an explanation; `remark` says what was not tested."""
    return CapabilityAnswer("yes", remark) if supported else CapabilityAnswer("partial", difference)


def _is_refused(ask: Callable[[], object], code: str) -> bool:
    """Return whether the server rejects a call with this code; a fault with an unrelated code is raised."""
    try:
        ask()
    except Fault as fault:
        if fault.code != code and fault.code not in _CONDITIONS:
            raise
        return fault.code == code
    return False


def _conditional_writes(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.put(table, "condition")
    again = _is_refused(
        lambda: run.call(
            "PutItem",
            TableName=table,
            Item={"pk": {"S": "condition"}, "sk": {"S": "a"}},
            ConditionExpression="attribute_not_exists(pk)",
        ),
        "ConditionalCheckFailedException",
    )
    return _answer_if(again, "writes even if the condition fails")


def _transact_write(run: ProbeRun, table: str) -> CapabilityAnswer:
    def puts(*names: str, **more: Any) -> list[dict[str, Any]]:
        return [
            {"Put": {"TableName": table, "Item": {"pk": {"S": name}, "sk": {"S": "a"}}, **more}}
            for name in names
        ]

    run.call("TransactWriteItems", TransactItems=puts("both-1", "both-2"))
    both = bool(run.get(table, "both-1")) and bool(run.get(table, "both-2"))
    guarded = puts("none-1") + puts("both-1", ConditionExpression="attribute_not_exists(pk)")
    stopped = _is_refused(
        lambda: run.call("TransactWriteItems", TransactItems=guarded), "TransactionCanceledException"
    )
    return _answer_if(both and stopped and not run.get(table, "none-1"), "not atomic")


def _transact_read(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.put(table, "read", note={"S": "here"})
    key = {"pk": {"S": "read"}, "sk": {"S": "a"}}
    found = run.call("TransactGetItems", TransactItems=[{"Get": {"TableName": table, "Key": key}}])
    return _answer_if(found["Responses"][0]["Item"]["note"] == {"S": "here"}, "returns another item")


def _make_indexed_table(run: ProbeRun) -> str:
    """Return a table with an index of each kind, created once."""
    name = run.name("indexed")
    if name not in run.tables:
        run.create_table(
            "indexed",
            AttributeDefinitions=[text_attribute(each) for each in ("pk", "sk", "gpk", "gsk")],
            GlobalSecondaryIndexes=[
                index_definition("some", hash_key("gpk"), range_key("gsk"), included=["kept"])
            ],
        )
        values: dict[str, Any] = {each: {"S": each} for each in ("gpk", "gsk", "kept", "left")}
        run.put(name, "indexed", **values)
    return name


def _indexed_items(run: ProbeRun) -> list[dict[str, Any]]:
    name = _make_indexed_table(run)
    seen: list[dict[str, Any]] = []

    def there() -> bool:
        seen[:] = run.query(name, "some", "gpk = :g", g="gpk")
        return bool(seen)

    run.wait_until(there)
    return seen


def _index_global(run: ProbeRun, table: str) -> CapabilityAnswer:
    return _answer_if(len(_indexed_items(run)) == 1, "a new item did not appear in the index in time")


def _index_projection(run: ProbeRun, table: str) -> CapabilityAnswer:
    found = _indexed_items(run)
    if not found:
        return CapabilityAnswer("unknown", "the item did not appear in the index")
    return _answer_if(
        "kept" in found[0] and "left" not in found[0], "projects attributes that were not requested"
    )


def _index_later(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.put(table, "later", lpk={"S": "l"})
    run.call_until_ready(
        "UpdateTable",
        TableName=table,
        AttributeDefinitions=[text_attribute("pk"), text_attribute("sk"), text_attribute("lpk")],
        GlobalSecondaryIndexUpdates=[{"Create": index_definition("later", hash_key("lpk"))}],
    )

    def active() -> bool:
        found = run.describe_table(table).get("GlobalSecondaryIndexes", [])
        return any(each["IndexName"] == "later" and each.get("IndexStatus") == "ACTIVE" for each in found)

    if not run.wait_until(active):
        return CapabilityAnswer("unknown", "the index did not become active in time")
    return _answer_if(
        len(run.query(table, "later", "lpk = :l", l="l")) == 1, "existing items are not in the index"
    )


def _index_multi(run: ProbeRun, table: str) -> CapabilityAnswer:
    name = run.create_table(
        "multi",
        AttributeDefinitions=[text_attribute(each) for each in ("pk", "sk", "one", "two", "three")],
        GlobalSecondaryIndexes=[
            index_definition("multi", hash_key("one"), hash_key("two"), range_key("three"))
        ],
    )
    values: dict[str, Any] = {each: {"S": each} for each in ("one", "two", "three")}
    run.put(name, "multi", **values)
    come = run.wait_until(
        lambda: len(run.query(name, "multi", "one = :a AND two = :b", a="one", b="two")) == 1
    )
    return _answer_if(come, "accepts such a key but does not find items by it")


def _index_local(run: ProbeRun, table: str) -> CapabilityAnswer:
    name = run.create_table(
        "local",
        AttributeDefinitions=[text_attribute(each) for each in ("pk", "sk", "lsk")],
        LocalSecondaryIndexes=[index_definition("local", hash_key("pk"), range_key("lsk"))],
    )
    run.put(name, "local", lsk={"S": "x"})
    found = run.query(name, "local", "pk = :p AND lsk = :l", p="local", l="x")
    return _answer_if(len(found) == 1, "a new item is not in the index")


def _stream_records(run: ProbeRun) -> list[dict[str, Any]]:
    """Return the stream records of putting, updating and deleting an item."""
    name = run.name("stream")
    if name in run.tables:
        return _read_stream(run, name)
    run.create_table(
        "stream", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    )
    run.put(name, "streamed")
    run.put(name, "streamed", note={"S": "changed"})
    run.call("DeleteItem", TableName=name, Key={"pk": {"S": "streamed"}, "sk": {"S": "a"}})
    seen: list[dict[str, Any]] = []

    def whole() -> bool:
        seen[:] = _read_stream(run, name)
        return len(seen) >= 3

    run.wait_until(whole)
    return seen


def _read_stream(run: ProbeRun, name: str) -> list[dict[str, Any]]:
    arn = run.describe_table(name)["LatestStreamArn"]
    records: list[dict[str, Any]] = []
    for shard in run.call("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = run.call(
            "GetShardIterator", StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        records += run.call("GetRecords", ShardIterator=iterator)["Records"]
    return records


def _streams(run: ProbeRun, table: str) -> CapabilityAnswer:
    found = _stream_records(run)
    return _answer_if(len(found) >= 3, f"{len(found)} of 3 records arrived in time")


def _stream_events(run: ProbeRun, table: str) -> CapabilityAnswer:
    names = [record["eventName"] for record in _stream_records(run)]
    if len(names) < 3:
        return CapabilityAnswer("unknown", "the records did not arrive in time")
    return _answer_if(names == ["INSERT", "MODIFY", "REMOVE"], f"events are {', '.join(names)}")


def _ttl(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.call(
        "UpdateTimeToLive", TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    description = run.call("DescribeTimeToLive", TableName=table)["TimeToLiveDescription"]
    return _answer_if(
        description.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"),
        "accepts the setting but does not keep it",
        "the setting is kept; expiry was not tested",
    )


def _batch_write(run: ProbeRun, table: str) -> CapabilityAnswer:
    puts = [{"PutRequest": {"Item": {"pk": {"S": "batch"}, "sk": {"S": f"{n:02}"}}}} for n in range(25)]
    run.call("BatchWriteItem", RequestItems={table: puts})
    return _answer_if(
        len(run.query(table, None, "pk = :p", p="batch")) == 25, "not all 25 items were written"
    )


def _numbers(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.call_until_ready(
        "PutItem", TableName=table, Item={"pk": {"S": "number"}, "sk": {"S": "a"}, "n": {"N": _DIGITS}}
    )
    kept = run.get(table, "number")["n"]["N"]
    return _answer_if(kept == _DIGITS, f"38 digits are returned as {kept}")


def _capacity(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.put(table, "capacity")
    answer = run.call(
        "GetItem",
        TableName=table,
        Key={"pk": {"S": "capacity"}, "sk": {"S": "a"}},
        ReturnConsumedCapacity="TOTAL",
    )
    return _answer_if(
        answer.get("ConsumedCapacity", {}).get("CapacityUnits") == 0.5, "returns other units, or none"
    )


def _capacity_indexes(run: ProbeRun, table: str) -> CapabilityAnswer:
    name = _make_indexed_table(run)
    answer = run.call(
        "PutItem",
        TableName=name,
        Item={each: {"S": f"{each}-2"} for each in ("pk", "sk", "gpk", "gsk")},
        ReturnConsumedCapacity="INDEXES",
    )
    by_index = answer.get("ConsumedCapacity", {}).get("GlobalSecondaryIndexes", {})
    return _answer_if("some" in by_index, "does not return the units of indexes")


def _partiql(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.put(table, "partiql")
    found = run.call(
        "ExecuteStatement", Statement=f'SELECT * FROM "{table}" WHERE pk = ?', Parameters=[{"S": "partiql"}]
    )["Items"]
    return _answer_if(len(found) == 1, "a SELECT does not return the item")


def _backups(run: ProbeRun, table: str) -> CapabilityAnswer:
    made = run.call_until_ready("CreateBackup", TableName=table, BackupName="tavola-probe")
    arn = made["BackupDetails"]["BackupArn"]
    run.backups.append(arn)
    try:
        run.call_until_ready("DeleteBackup", BackupArn=arn)
    except Fault as fault:
        return CapabilityAnswer("yes", f"a backup was created; deleting it fails with {fault.code}")
    run.backups.remove(arn)
    return CapabilityAnswer("yes", "a backup was created; restore was not tested")


def _recovery(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.call_until_ready(
        "UpdateContinuousBackups",
        TableName=table,
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    description = run.call("DescribeContinuousBackups", TableName=table)["ContinuousBackupsDescription"]
    state = description["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
    return _answer_if(
        state == "ENABLED",
        "accepts the setting but does not keep it",
        "the setting is kept; restore was not tested",
    )


def _table_class(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.call_until_ready("UpdateTable", TableName=table, TableClass="STANDARD_INFREQUENT_ACCESS")

    def has_class() -> bool:
        table_class = run.describe_table(table).get("TableClassSummary", {}).get("TableClass")
        return bool(table_class == "STANDARD_INFREQUENT_ACCESS")

    return _answer_if(
        run.wait_until(has_class),
        "accepts the class but does not keep it",
        "the class is kept; its price cannot be tested",
    )


def _deletion(run: ProbeRun, table: str) -> CapabilityAnswer:
    name = run.create_table("kept", DeletionProtectionEnabled=True)
    try:
        is_protected = _is_refused(lambda: run.call("DeleteTable", TableName=name), "ValidationException")
    finally:
        run.wait_until(lambda: unprotect_table(run, name))
    return _answer_if(is_protected, "protected tables can be deleted")


def _tags(run: ProbeRun, table: str) -> CapabilityAnswer:
    arn = run.describe_table(table)["TableArn"]
    run.call("TagResource", ResourceArn=arn, Tags=[{"Key": "probe", "Value": "1"}])
    kept = run.call("ListTagsOfResource", ResourceArn=arn).get("Tags", [])
    return _answer_if({"Key": "probe", "Value": "1"} in kept, "a tag is not kept")


def _encryption(run: ProbeRun, table: str) -> CapabilityAnswer:
    run.create_table("sealed", SSESpecification={"Enabled": True, "SSEType": "KMS"})
    description = run.describe_table(run.name("sealed")).get("SSEDescription", {})
    return _answer_if(
        description.get("SSEType") == "KMS",
        "accepts the setting but does not return it",
        "the setting is kept; encryption cannot be tested",
    )


def _vectors(run: ProbeRun, table: str) -> CapabilityAnswer:
    name = run.create_table(
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
        search = {"SearchVector": [{"N": "1"}, {"N": "0"}], "TopK": 1}
        return (
            len(run.call("SearchVectors", TableName=name, IndexName="near", **search)["SearchResults"]) == 1
        )

    return _answer_if(run.wait_until(near), "a new vector is not found in time")


def _names_long(run: ProbeRun, table: str) -> CapabilityAnswer:
    name = run.create_table("long", TableName=f"{run.prefix}-{'n' * (255 - len(run.prefix) - 1)}")
    return _answer_if(run.describe_table(name)["TableName"] == name, "changes the name")


def _names_dots(run: ProbeRun, table: str) -> CapabilityAnswer:
    name = run.create_table("dots", TableName=f"{run.prefix}.dots")
    return _answer_if(run.describe_table(name)["TableName"] == name, "changes the name")


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
