"""The access checks that each operation requires.

An action has the name of its operation, with DynamoDB's exceptions: items of a transaction are checked as GetItem,
PutItem and so on, and PartiQL statements as the PartiQL action for what they do. A request is allowed only if all its
checks are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from tavola.iam.access_checks import (
    AccessCheck,
    ItemAccessCheck,
    RangeAccessCheck,
    canonical_arn,
    statement_access_checks,
    table_of,
)
from tavola.iam.directory import Directory
from tavola.iam.patterns import compile_action
from tavola.protocol.arns import Scope, parse_resource_arn, scope_of, table_arn
from tavola.protocol.resources import GuardResources, TableFacts

Accesses: TypeAlias = Callable[[Any, GuardResources, Scope], Iterable[AccessCheck]]

# Actions needed to fill a restored table, checked for the caller who restores it.
_FILLING = ("PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan", "BatchWriteItem")
# Actions that are not the name of any operation.
PERMISSIONS = """
ConditionCheckItem PartiQLDelete PartiQLInsert PartiQLSelect PartiQLUpdate AssociateTableReplica
CreateGlobalTableWitness CreateTableReplica DeleteGlobalTableWitness DeleteTableReplica
DescribeReservedCapacity DescribeReservedCapacityOfferings DisassociateTableReplica GetAbacStatus ListShards
PurchaseReservedCapacityOfferings ReadDataForReplication ReplicateSettings RestoreTableFromAwsBackup
StartAwsBackupJob UpdateAbacStatus UpdateGlobalTableVersion WriteDataForReplication
""".split()


def required_checks(
    operation: str, request: Any, resources: GuardResources, scope: Scope
) -> Iterable[AccessCheck]:
    """Return every access check that a parsed request requires; all must be allowed.

    BatchExecuteStatement requires none here: its statements are checked one by one with `statement_accesses`.
    """
    checks_of = _OPERATIONS.get(operation)
    if checks_of is None:  # unknown operation: check it against all resources
        return (AccessCheck(f"dynamodb:{operation}", "*", request),)
    return checks_of(request, resources, scope)


def _item(action: str) -> Accesses:
    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        resource, facts = table_of(request.table_name, resources, scope)
        return (ItemAccessCheck(action, resource, request, facts, request.key),)

    return checks


def _put(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
    resource, facts = table_of(request.table_name, resources, scope)
    return (ItemAccessCheck("dynamodb:PutItem", resource, request, facts, request.item),)


def _range(action: str) -> Accesses:
    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        resource, facts = table_of(request.table_name, resources, scope)
        index = request.index_name
        if index is not None:
            resource = f"{resource}/index/{index}"
        return (RangeAccessCheck(action, resource, request, facts, index),)

    return checks


def _batch_get(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
    for name, get in request.request_items.items():
        resource, facts = table_of(name, resources, scope)
        for key in get.keys:
            yield ItemAccessCheck("dynamodb:BatchGetItem", resource, get, facts, key, shared=request)


def _batch_write(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
    for name, writes in request.request_items.items():
        resource, facts = table_of(name, resources, scope)
        for write in writes:
            part = write.put_request or write.delete_request
            key = write.delete_request.key if write.put_request is None else write.put_request.item
            yield ItemAccessCheck("dynamodb:BatchWriteItem", resource, part, facts, key, shared=request)


def _transact_get(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
    for member in request.transact_items:
        get = member.get
        resource, facts = table_of(get.table_name, resources, scope)
        yield ItemAccessCheck("dynamodb:GetItem", resource, get, facts, get.key, "TransactGetItems", request)


def _transact_write(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
    for member in request.transact_items:
        for action, part in (
            ("dynamodb:PutItem", member.put),
            ("dynamodb:UpdateItem", member.update),
            ("dynamodb:DeleteItem", member.delete),
            ("dynamodb:ConditionCheckItem", member.condition_check),
        ):
            if part is not None:
                resource, facts = table_of(part.table_name, resources, scope)
                key = part.item if part is member.put else part.key
                yield ItemAccessCheck(action, resource, part, facts, key, "TransactWriteItems", request)


def _statement(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
    return statement_access_checks(request, resources, scope)


def _statements(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
    for statement in request.transact_statements:
        yield from statement_access_checks(
            statement, resources, scope, enclosing="ExecuteTransaction", shared=request
        )


def _each_by_itself(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
    return ()


def _table(action: str) -> Accesses:
    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        resource, facts = table_of(request.table_name, resources, scope)
        return (AccessCheck(action, resource, request, facts),)

    return checks


def _create(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
    resource, facts = table_of(request.table_name, resources, scope)
    yield AccessCheck("dynamodb:CreateTable", resource, request, facts)
    if request.tags:
        yield AccessCheck("dynamodb:TagResource", resource, request, facts)
    if request.resource_policy is not None:
        yield AccessCheck("dynamodb:PutResourcePolicy", resource, request, facts)


def _insights(action: str) -> Accesses:
    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        resource, facts = table_of(request.table_name, resources, scope)
        if request.index_name is not None:
            resource = f"{resource}/index/{request.index_name}"
        return (AccessCheck(action, resource, request, facts),)

    return checks


def _by_arn(action: str, member: str) -> Accesses:
    """Return a function for requests that name their resource by an ARN."""

    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        resource = canonical_arn(getattr(request, member) or "*")
        return (AccessCheck(action, resource, request, _facts(resource, resources)),)

    return checks


def _tags(action: str) -> Accesses:
    """Return a function for tag operations; the tags of a stream are those of its table."""

    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        resource = canonical_arn(request.resource_arn or "*").partition("/stream/")[0]
        return (AccessCheck(action, resource, request, _facts(resource, resources)),)

    return checks


def _facts(resource: str, resources: GuardResources) -> TableFacts | None:
    """Return the facts about the table that an ARN names, directly or as its parent."""
    parts = parse_resource_arn(resource)
    return None if parts is None else resources.facts(table_arn(parts.scope, parts.table))


def _account(action: str) -> Accesses:
    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        return (AccessCheck(action, "*", request),)

    return checks


def _listing(action: str, member: str) -> Accesses:
    """Return a function for list operations: a check on `*`, and on a named table of another account."""

    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
        yield AccessCheck(action, "*", request)
        table = getattr(request, member)
        if table is not None and (scope_of(table) or scope) != scope:
            resource, facts = table_of(table, resources, scope)
            yield AccessCheck(action, resource, request, facts)

    return checks


def _list_streams(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
    if request.table_name is None:
        return (AccessCheck("dynamodb:ListStreams", "*", request),)
    resource, facts = table_of(request.table_name, resources, scope)
    return (AccessCheck("dynamodb:ListStreams", f"{resource}/stream/*", request, facts),)


def _records(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
    stream = resources.iterator_stream(request.shard_iterator)
    if stream is None:
        return ()  # not an iterator of this caller; it reads nothing
    return (AccessCheck("dynamodb:GetRecords", stream, request, _facts(stream, resources)),)


def _restore(action: str, *members: str) -> Accesses:
    """Return a function for restores: a check on the source, and all actions that fill the target."""

    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterator[AccessCheck]:
        source = next(filter(None, (getattr(request, member) for member in members)), None)
        if source is not None:
            if "/backup/" in source:
                yield AccessCheck(action, canonical_arn(source), request, _facts(source, resources))
            else:
                resource, facts = table_of(source, resources, scope)
                yield AccessCheck(action, resource, request, facts)
        target, facts = table_of(request.target_table_name, resources, scope)
        yield AccessCheck(action, target, request, facts)
        for filling in _FILLING:
            yield AccessCheck(f"dynamodb:{filling}", target, request, facts)

    return checks


def _import(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
    resource, facts = table_of(request.table_creation_parameters.table_name, resources, scope)
    return (AccessCheck("dynamodb:ImportTable", resource, request, facts),)


def _global_table(action: str) -> Accesses:
    def checks(request: Any, resources: GuardResources, scope: Scope) -> Iterable[AccessCheck]:
        arn = f"arn:aws:dynamodb::{scope.account}:global-table/{request.global_table_name}"
        return (AccessCheck(action, arn, request),)

    return checks


def _each(make: Callable[..., Accesses], names: str, *more: str) -> dict[str, Accesses]:
    return {name: make(f"dynamodb:{name}", *more) for name in names.split()}


_OPERATIONS: dict[str, Accesses] = {
    "BatchExecuteStatement": _each_by_itself,
    "BatchGetItem": _batch_get,
    "BatchWriteItem": _batch_write,
    "CreateTable": _create,
    "ExecuteStatement": _statement,
    "ExecuteTransaction": _statements,
    "GetRecords": _records,
    "ImportTable": _import,
    "ListStreams": _list_streams,
    "PutItem": _put,
    "TransactGetItems": _transact_get,
    "TransactWriteItems": _transact_write,
    "ListItemVersions": _item(
        "dynamodb:GetItem"
    ),  # Tavola's own operation: GetItem includes an item's history
    **_each(_item, "DeleteItem GetItem UpdateItem"),
    **_each(_range, "Query Scan SearchVectors"),
    **_each(
        _table,
        """
        CreateBackup DeleteTable DescribeContinuousBackups DescribeKinesisStreamingDestination DescribeTable
        DescribeTableReplicaAutoScaling DescribeTimeToLive DisableKinesisStreamingDestination
        EnableKinesisStreamingDestination StartBulkPutItems UpdateContinuousBackups
        UpdateKinesisStreamingDestination UpdateTable UpdateTableReplicaAutoScaling UpdateTimeToLive
        """,
    ),
    **_each(_insights, "DescribeContributorInsights UpdateContributorInsights"),
    **_each(
        _by_arn,
        "DeleteResourcePolicy GetResourcePolicy PutResourcePolicy",
        "resource_arn",
    ),
    **_each(_tags, "ListTagsOfResource TagResource UntagResource"),
    **_each(_by_arn, "DeleteBackup DescribeBackup", "backup_arn"),
    **_each(_by_arn, "DescribeExport", "export_arn"),
    **_each(_by_arn, "DescribeImport", "import_arn"),
    **_each(_by_arn, "ExportTableToPointInTime", "table_arn"),
    **_each(_by_arn, "CancelBulkOperation DescribeBulkOperation", "bulk_operation_arn"),
    **_each(_by_arn, "DescribeStream GetShardIterator", "stream_arn"),
    **_each(
        _account,
        """
        DescribeEndpoints DescribeLimits ListBulkOperations ListGlobalTables ListTables
        """,
    ),
    **_each(_listing, "ListBackups ListContributorInsights", "table_name"),
    **_each(_listing, "ListExports ListImports", "table_arn"),
    **_each(_restore, "RestoreTableFromBackup", "backup_arn"),
    **_each(_restore, "RestoreTableToPointInTime", "source_table_arn", "source_table_name"),
    **_each(
        _global_table,
        """
        CreateGlobalTable DescribeGlobalTable DescribeGlobalTableSettings UpdateGlobalTable
        UpdateGlobalTableSettings
        """,
    ),
}

ACTIONS: tuple[str, ...] = tuple(sorted(f"dynamodb:{name}" for name in (*_OPERATIONS, *PERMISSIONS)))
"""Every action that a policy can name, used to find mistyped ones."""


def unknown_actions(directory: Directory) -> Iterator[tuple[str, str]]:
    """Yield the policy actions that match no DynamoDB action, with their location."""
    known = [action.lower() for action in ACTIONS]
    for policy, document in directory.documents():
        for statement in document.statements:
            for text in statement.actions or statement.not_actions or ():
                if text.lower().startswith("dynamodb:") and not any(map(compile_action(text), known)):
                    yield f"{policy}, {statement.place}", text
