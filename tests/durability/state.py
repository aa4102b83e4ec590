"""State: everything that an engine holds, read through its operations, and whether its indexes are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tavola.engine import Engine
from tests.properties.naive import Item, identity, item_bytes, plain, sort_key

Rows = frozenset[bytes]


@dataclass(frozen=True, slots=True)
class State:
    """The rows of each table, and the rows of each index that can be read."""

    tables: dict[str, Rows]
    indexes: dict[tuple[str, str], Rows]

    def agrees(self, other: State) -> bool:
        """Return whether two states are the same where both can be read: an index may be still filling."""
        shared = self.indexes.keys() & other.indexes.keys()
        return self.tables == other.tables and all(self.indexes[n] == other.indexes[n] for n in shared)


def settle(engine: Engine) -> None:
    """Let the background work finish."""
    while engine.run_background_work(1000):
        pass


def read_state(engine: Engine) -> State:
    """Return all that an engine holds."""
    tables: dict[str, Rows] = {}
    indexes: dict[tuple[str, str], Rows] = {}
    for name in table_names(engine):
        table = engine.call("DescribeTable", {"TableName": name})["Table"]
        tables[name] = _rows(scan(engine, name))
        for index in _indexes(table):
            if index.get("IndexStatus", "ACTIVE") == "ACTIVE":
                indexes[name, index["IndexName"]] = _rows(scan(engine, name, index["IndexName"]))
    return State(tables, indexes)


def faults_in(engine: Engine) -> list[str]:
    """Return each way in which indexes and counts are not what a rebuild from the tables gives."""
    wrong: list[str] = []
    for name in table_names(engine):
        table = engine.call("DescribeTable", {"TableName": name})["Table"]
        items = scan(engine, name)
        keys = {each["AttributeName"] for each in table["KeySchema"]}
        types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
        _compare_counts(wrong, name, table, items, "TableSizeBytes")
        for index in _indexes(table):
            label = f"{name}/{index['IndexName']}"
            if index.get("IndexStatus", "ACTIVE") != "ACTIVE":
                wrong.append(f"{label} is not active")
                continue
            own = {each["AttributeName"] for each in index["KeySchema"]}
            held = keys | own | set(index["Projection"].get("NonKeyAttributes", ()))
            everything = index["Projection"]["ProjectionType"] == "ALL"
            rebuilt = [
                item if everything else {a: v for a, v in item.items() if a in held}
                for item in items
                if all(types[key] in item.get(key, ()) for key in own)
            ]
            found = scan(engine, name, index["IndexName"])
            if _rows(found) != _rows(rebuilt):
                wrong.append(
                    f"{label} holds {len(found)} entries that differ from the {len(rebuilt)} rebuilt"
                )
            _compare_counts(wrong, label, index, rebuilt, "IndexSizeBytes")
            wrong += _partition_faults(engine, name, index, rebuilt)
    return wrong


def stream_faults(engine: Engine) -> list[str]:
    """Return each way in which a table is not what replaying its stream from the beginning gives."""
    wrong: list[str] = []
    for name in table_names(engine):
        table = engine.call("DescribeTable", {"TableName": name})["Table"]
        if "StreamSpecification" not in table:
            continue
        replayed: dict[tuple[Any, ...], Item] = {}
        keys = [each["AttributeName"] for each in table["KeySchema"]]
        for record in _records(engine, table["LatestStreamArn"]):
            result = record["dynamodb"]
            who = identity(result["Keys"], keys)
            before = replayed.pop(who, None)
            old = result.get("OldImage")
            if (before is None) != (old is None) or (before is not None and plain(before) != plain(old)):
                wrong.append(f"{name}: record {result['SequenceNumber']} has an old image that never stood")
            if record["eventName"] != "REMOVE":
                replayed[who] = result["NewImage"]
        if _rows(list(replayed.values())) != _rows(scan(engine, name)):
            wrong.append(f"{name}: its stream tells of {len(replayed)} items that are not those it holds")
    return wrong


def _records(engine: Engine, arn: str) -> list[dict[str, Any]]:
    """Return every record of a stream, in the order of the changes."""
    records: list[dict[str, Any]] = []
    for shard in engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]:
        start = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        token = engine.call("GetShardIterator", start)["ShardIterator"]
        while True:
            page = engine.call("GetRecords", {"ShardIterator": token})
            records += page["Records"]
            token = page.get("NextShardIterator")
            if token is None or not page["Records"]:
                break
    return sorted(records, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


def _partition_faults(engine: Engine, table: str, index: dict[str, Any], rebuilt: list[Item]) -> list[str]:
    """Return the partitions of an index that a query does not find as a rebuild has them, in their order.

    A scan does not see an entry under an old key: its row is there all the same.
    """
    hashes = [each["AttributeName"] for each in index["KeySchema"] if each["KeyType"] == "HASH"]
    ranges = [each["AttributeName"] for each in index["KeySchema"] if each["KeyType"] == "RANGE"]
    partitions: dict[tuple[Any, ...], list[Item]] = {}
    for item in rebuilt:
        partitions.setdefault(identity(item, hashes), []).append(item)
    wrong: list[str] = []
    for items in partitions.values():
        request = {
            "TableName": table,
            "IndexName": index["IndexName"],
            "KeyConditionExpression": " AND ".join(f"#h{at} = :h{at}" for at in range(len(hashes))),
            "ExpressionAttributeNames": {f"#h{at}": name for at, name in enumerate(hashes)},
            "ExpressionAttributeValues": {f":h{at}": items[0][name] for at, name in enumerate(hashes)},
        }
        found = _pages(engine, "Query", request)
        if _rows(found) != _rows(items) or not _in_order(found, ranges):
            label = f"{table}/{index['IndexName']}"
            wrong.append(f"{label} finds {len(found)} entries of a partition, not the {len(items)} rebuilt")
    return wrong


def _in_order(items: list[Item], names: list[str]) -> bool:
    order = [[sort_key(item[name]) for name in names] for item in items]
    return order == sorted(order)


def table_names(engine: Engine) -> list[str]:
    """Return the names of an engine's tables."""
    names: list[str] = engine.call("ListTables", {})["TableNames"]
    return names


def scan(engine: Engine, table: str, index: str | None = None) -> list[Item]:
    """Return every item of a table or index."""
    return _pages(engine, "Scan", {"TableName": table} | ({"IndexName": index} if index else {}))


def _pages(engine: Engine, operation: str, request: dict[str, Any]) -> list[Item]:
    items: list[Item] = []
    while True:
        page = engine.call(operation, request)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        request = request | {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _compare_counts(
    wrong: list[str], label: str, result: dict[str, Any], items: list[Item], size: str
) -> None:
    expected = (len(items), sum(map(item_bytes, items)))
    if (result["ItemCount"], result[size]) != expected:
        wrong.append(f"{label} counts {result['ItemCount']} and {result[size]} bytes, not {expected}")


def _indexes(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [*table.get("LocalSecondaryIndexes", ()), *table.get("GlobalSecondaryIndexes", ())]


def _rows(items: list[Item]) -> Rows:
    rows = frozenset(msgspec.json.encode(_ordered(item), order="deterministic") for item in items)
    assert len(rows) == len(items), "an item was returned twice"
    return rows


def _ordered(value: Any) -> Any:
    value = plain(value) if isinstance(value, dict) else value
    if isinstance(value, dict):
        return {name: _ordered(member) for name, member in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [_ordered(member) for member in value] if isinstance(value, list) else value
