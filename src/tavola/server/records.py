"""Records: the members of an access record, named and nested as CloudTrail's are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tavola.engine import ItemAccess
from tavola.protocol.arns import Scope, parse_resource_arn, table_arn
from tavola.server.callers import Caller
from tavola.server.scrubbing import arns_in, tables_in

VERSION = "1.11"
SOURCE = "dynamodb.amazonaws.com"
KEYS_MAX = 100  # of one table in one record; a transaction has no more
GAP = "AccessLogGap"  # the event of records that are missing

READ_ONLY = frozenset(
    {
        *("BatchGetItem", "GetItem", "GetRecords", "GetResourcePolicy", "GetShardIterator", "Query", "Scan"),
        *("SearchVectors", "TransactGetItems"),
    }
)
"""Operations that change nothing, beside those that describe and list."""

_DATA = (READ_ONLY - {"GetResourcePolicy"}) | {
    *("BatchExecuteStatement", "BatchWriteItem", "DeleteItem", "ExecuteStatement", "ExecuteTransaction"),
    *("PutItem", "TransactWriteItems", "UpdateItem"),
}
_TYPES = {
    "table": "AWS::DynamoDB::Table",
    "stream": "AWS::DynamoDB::Stream",
    "backup": "AWS::DynamoDB::Backup",
    "export": "AWS::DynamoDB::Export",
    "import": "AWS::DynamoDB::Import",
    "index": "AWS::DynamoDB::Index",
}


def is_read(operation: str) -> bool:
    """Tell whether an operation changes nothing."""
    return operation in READ_ONLY or operation.startswith(("Describe", "List"))


def head_members(caller: Caller, operation: str) -> dict[str, Any]:
    """Return what all records of one caller's calls of one operation share."""
    is_data = operation in _DATA
    members: dict[str, Any] = {
        "eventVersion": VERSION,
        "eventSource": SOURCE,
        "eventType": "AwsApiCall",
        "eventName": operation,
        "eventCategory": "Data" if is_data else "Management",
        "readOnly": is_read(operation),
        "awsRegion": caller.scope.region,
        "recipientAccountId": caller.scope.account,
        "sourceIPAddress": caller.address,
        "userAgent": caller.agent,
        "userIdentity": caller.identity,
    }
    return members


def gap_members(epoch_s: float, dropped: int) -> dict[str, Any]:
    """Return the record that stands for records which could not be kept."""
    return {
        "eventVersion": VERSION,
        "eventSource": SOURCE,
        "eventName": GAP,
        "eventTime": event_time(epoch_s),
        "additionalEventData": {"dropped": dropped},
    }


def event_time(epoch_s: float) -> str:
    """Return a moment as CloudTrail writes it, to the second."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def table_of(arn: str) -> str:
    """Return the name of the table in an ARN."""
    return arn.partition(":table/")[2].partition("/")[0]


def resources_of(arns: Iterable[str]) -> list[dict[str, str]]:
    """Return the resources of a record."""
    parsed = ((arn, parse_resource_arn(arn)) for arn in arns)
    return [
        {"accountId": found.scope.account, "type": _TYPES[found.kind], "ARN": arn}
        for arn, found in parsed
        if found is not None
    ]


def named_members(scope: Scope, request: Any) -> dict[str, Any]:
    """Return the parameters and resources of a decoded request by what it names, whether it is there or not."""
    tables = tables_in(request)
    named = [
        {"tableName": table, **({} if index is None else {"indexName": index})} for table, index in tables
    ]
    arns = dict.fromkeys((*(table_arn(scope, table) for table, _ in tables), *arns_in(request)))
    return {
        "requestParameters": {"tables": named} if len(named) > 1 else (named[0] if named else None),
        "resources": resources_of(arns),
    }


def joined_members(touched: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters and resources of a request that was done in part: touched, or only named."""
    tables = [*_tables(touched["requestParameters"])]
    known = {table["tableName"] for table in tables}
    tables += [table for table in _tables(named["requestParameters"]) if table["tableName"] not in known]
    resources = {each["ARN"]: each for each in (*touched["resources"], *named["resources"])}
    return {
        "requestParameters": {"tables": tables} if len(tables) > 1 else tables[0],
        "resources": list(resources.values()),
    }


def _tables(parameters: Any) -> list[dict[str, Any]]:
    if parameters is None:
        return []
    found: list[dict[str, Any]] = parameters.get("tables", [parameters])
    return found


def touched_parameters(accesses: Sequence[ItemAccess]) -> list[dict[str, Any]]:
    """Return the tables that a call touched, each with the keys; here an access's key is a hash, or nothing.

    The index of a read is named; those that a write keeps up to date were not asked for.
    """
    places: dict[tuple[str, str | None], dict[bytes, None]] = {}
    read_by = {
        access.table: access.index_name for access in accesses if access.index_name and not access.writes
    }
    for access in accesses:
        keys = places.setdefault((access.table, read_by.get(access.table)), {})
        if access.key and len(keys) < KEYS_MAX:
            keys[access.key] = None
    return [
        {
            "tableName": table_of(table),
            **({} if index is None else {"indexName": index}),
            "keys": [key.decode("ascii") for key in keys],
        }
        for (table, index), keys in places.items()
    ]


def consumed_units(accesses: Sequence[ItemAccess]) -> list[dict[str, Any]]:
    """Return the units that a call consumed, by table and index."""
    units: dict[tuple[str, str | None], tuple[float, float]] = {}
    for access in accesses:
        place = access.table, access.index_name
        reads, writes = units.get(place, (0.0, 0.0))
        units[place] = reads + access.reads, writes + access.writes
    return [
        {
            "table": table_of(table),
            **({} if index is None else {"index": index}),
            "reads": reads,
            "writes": writes,
        }
        for (table, index), (reads, writes) in units.items()
    ]
