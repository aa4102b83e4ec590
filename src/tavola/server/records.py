"""Records: the members of an access log record, named and nested as in CloudTrail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tavola.engine import ItemAccess
from tavola.iam import RoleRequest
from tavola.protocol.arns import Scope, parse_resource_arn, table_arn
from tavola.server.callers import Caller
from tavola.server.scrubbing import arns_in, tables_in

VERSION = "1.11"
SOURCE = "dynamodb.amazonaws.com"
TOKEN_SOURCE = "sts.amazonaws.com"
KEYS_MAX = 100  # of one table in one record; a transaction has no more
GAP = "AccessLogGap"  # the event of records that are missing

READ_ONLY = frozenset(
    {
        *("BatchGetItem", "GetItem", "GetRecords", "GetResourcePolicy", "GetShardIterator", "Query", "Scan"),
        *("SearchVectors", "TransactGetItems"),
    }
)
"""Operations that change nothing, in addition to Describe… and List…."""

TOKEN_OPERATIONS = frozenset({"AssumeRole", "AssumeRoleWithWebIdentity", "GetCallerIdentity"})
"""Operations of STS. They store nothing."""

SIGN_IN = "ConsoleLogin"
LOOKUP_EVENTS = "LookupEvents"
SIMULATE_POLICY = "SimulatePrincipalPolicy"

_OTHER_SOURCES = {  # of events that are not calls of DynamoDB
    **dict.fromkeys(TOKEN_OPERATIONS, TOKEN_SOURCE),
    SIGN_IN: "signin.amazonaws.com",
    LOOKUP_EVENTS: "cloudtrail.amazonaws.com",
    SIMULATE_POLICY: "iam.amazonaws.com",
}
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
    """Return whether an operation changes nothing."""
    return operation in READ_ONLY or operation.startswith(("Describe", "List", "Lookup", "Simulate"))


def head_members(caller: Caller, operation: str) -> dict[str, Any]:
    """Return the members that all records of one caller and operation share."""
    return {
        "eventVersion": VERSION,
        "eventSource": _OTHER_SOURCES.get(operation, SOURCE),
        "eventType": "AwsConsoleSignIn" if operation == SIGN_IN else "AwsApiCall",
        "eventName": operation,
        "eventCategory": "Data" if operation in _DATA else "Management",
        "readOnly": is_read(operation) or operation in TOKEN_OPERATIONS,
        "awsRegion": caller.scope.region,
        "recipientAccountId": caller.scope.account,
        "sourceIPAddress": caller.address,
        "userAgent": caller.agent,
        "userIdentity": caller.identity,
    }


def gap_members(epoch_s: float, dropped: int) -> dict[str, Any]:
    """Return the record that replaces a number of dropped records."""
    return {
        "eventVersion": VERSION,
        "eventSource": SOURCE,
        "eventName": GAP,
        "eventTime": event_time(epoch_s),
        "additionalEventData": {"dropped": dropped},
    }


def event_time(epoch_s: float) -> str:
    """Return a time in CloudTrail's format, to the second."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def table_of(arn: str) -> str:
    """Return the name of the table in an ARN."""
    return arn.partition(":table/")[2].partition("/")[0]


def resources_of(arns: Iterable[str]) -> list[dict[str, str]]:
    """Return the resources of a record."""
    parsed = ((arn, parse_resource_arn(arn)) for arn in arns)
    return [
        {"accountId": resource.scope.account, "type": _TYPES[resource.kind], "ARN": arn}
        for arn, resource in parsed
        if resource is not None
    ]


def named_members(scope: Scope, request: Any) -> dict[str, Any]:
    """Return the parameters and resources that a decoded request names, whether they exist or not."""
    tables = tables_in(request)
    named = [
        {"tableName": table, **({} if index is None else {"indexName": index})} for table, index in tables
    ]
    arns = dict.fromkeys((*(table_arn(scope, table) for table, _ in tables), *arns_in(request)))
    return {
        "requestParameters": {"tables": named} if len(named) > 1 else (named[0] if named else None),
        "resources": resources_of(arns),
    }


def named_role(request: RoleRequest | None, key_id: str | None) -> dict[str, Any]:
    """Return the parameters, resources and response of a call that assumes a role; `key_id` is of the credentials."""
    if request is None:
        return {"requestParameters": None, "resources": []}
    issued = {} if key_id is None else {"responseElements": {"credentials": {"accessKeyId": key_id}}}
    return {
        "requestParameters": {"roleArn": request.role_arn, "roleSessionName": request.session_name},
        **issued,
        "resources": [{"type": "AWS::IAM::Role", "ARN": request.role_arn}],
    }


def joined_members(accessed: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters and resources of a partly executed request: those accessed and those only named."""
    tables = [*_tables(accessed["requestParameters"])]
    known = {table["tableName"] for table in tables}
    tables += [table for table in _tables(named["requestParameters"]) if table["tableName"] not in known]
    resources = {resource["ARN"]: resource for resource in (*accessed["resources"], *named["resources"])}
    return {
        "requestParameters": {"tables": tables} if len(tables) > 1 else tables[0],
        "resources": list(resources.values()),
    }


def _tables(parameters: Any) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = [] if parameters is None else parameters.get("tables", [parameters])
    return tables


def accessed_parameters(accesses: Sequence[ItemAccess]) -> list[dict[str, Any]]:
    """Return the tables that a call accessed, each with its keys; an access's key is a hash here, or None.

    An index is named if it was read, not if a write only updated it.
    """
    keys_by_target: dict[tuple[str, str | None], dict[bytes, None]] = {}
    read_by = {
        access.table: access.index_name for access in accesses if access.index_name and not access.writes
    }
    for access in accesses:
        keys = keys_by_target.setdefault((access.table, read_by.get(access.table)), {})
        if access.key and len(keys) < KEYS_MAX:
            keys[access.key] = None
    return [
        {
            "tableName": table_of(table),
            **({} if index is None else {"indexName": index}),
            "keys": [key.decode("ascii") for key in keys],
        }
        for (table, index), keys in keys_by_target.items()
    ]


def consumed_units(accesses: Sequence[ItemAccess]) -> list[dict[str, Any]]:
    """Return the units that a call consumed, by table and index."""
    units: dict[tuple[str, str | None], tuple[float, float]] = {}
    for access in accesses:
        target = access.table, access.index_name
        reads, writes = units.get(target, (0.0, 0.0))
        units[target] = reads + access.reads, writes + access.writes
    return [
        {
            "table": table_of(table),
            **({} if index is None else {"index": index}),
            "reads": reads,
            "writes": writes,
        }
        for (table, index), (reads, writes) in units.items()
    ]
