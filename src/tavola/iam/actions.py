"""Actions: every operation, as the accesses that a request of it makes.

An action has its operation's name, except where DynamoDB says otherwise: members of a transaction are items
that are got, put and so on; a statement is what it does. Whatever a request makes several accesses of is
allowed as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from tavola.iam.accesses import Access, ItemAccess, RangeAccess
from tavola.iam.directory import Directory
from tavola.iam.patterns import action_match
from tavola.iam.resources import Resources, canonical, table_of
from tavola.iam.statements import statement_accesses
from tavola.protocol.arns import Scope, parse_resource_arn, scope_of, table_arn
from tavola.protocol.resources import TableFacts

Accesses: TypeAlias = Callable[[Any, Resources, Scope], Iterable[Access]]

# What a restored table is filled with, in the name of whoever restores it.
_FILLING = ("PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan", "BatchWriteItem")
# No operation's name, and yet an action.
PERMISSIONS = """
ConditionCheckItem PartiQLDelete PartiQLInsert PartiQLSelect PartiQLUpdate AssociateTableReplica
CreateGlobalTableWitness CreateTableReplica DeleteGlobalTableWitness DeleteTableReplica
DescribeReservedCapacity DescribeReservedCapacityOfferings DisassociateTableReplica GetAbacStatus ListShards
PurchaseReservedCapacityOfferings ReadDataForReplication ReplicateSettings RestoreTableFromAwsBackup
StartAwsBackupJob UpdateAbacStatus UpdateGlobalTableVersion WriteDataForReplication
""".split()


def accesses(operation: str, request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
    """Return every access that a parsed request makes; each must be allowed.

    A batch of statements makes none: each statement is asked about by itself, as `statement_accesses`.
    """
    found = _OPERATIONS.get(operation)
    if found is None:  # nobody has said what it touches: it is taken for everything
        return (Access(f"dynamodb:{operation}", "*", request),)
    return found(request, resources, scope)


def _item(action: str) -> Accesses:
    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        resource, facts = table_of(request.table_name, resources, scope)
        return (ItemAccess(action, resource, request, facts, request.key),)

    return found


def _put(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
    resource, facts = table_of(request.table_name, resources, scope)
    return (ItemAccess("dynamodb:PutItem", resource, request, facts, request.item),)


def _range(action: str) -> Accesses:
    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        resource, facts = table_of(request.table_name, resources, scope)
        index = request.index_name
        if index is not None:
            resource = f"{resource}/index/{index}"
        return (RangeAccess(action, resource, request, facts, index),)

    return found


def _batch_get(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
    for name, wanted in request.request_items.items():
        resource, facts = table_of(name, resources, scope)
        for key in wanted.keys:
            yield ItemAccess("dynamodb:BatchGetItem", resource, wanted, facts, key, shared=request)


def _batch_write(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
    for name, writes in request.request_items.items():
        resource, facts = table_of(name, resources, scope)
        for write in writes:
            part = write.put_request or write.delete_request
            key = write.delete_request.key if write.put_request is None else write.put_request.item
            yield ItemAccess("dynamodb:BatchWriteItem", resource, part, facts, key, shared=request)


def _transact_get(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
    for member in request.transact_items:
        get = member.get
        resource, facts = table_of(get.table_name, resources, scope)
        yield ItemAccess("dynamodb:GetItem", resource, get, facts, get.key, "TransactGetItems", request)


def _transact_write(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
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
                yield ItemAccess(action, resource, part, facts, key, "TransactWriteItems", request)


def _statement(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
    return statement_accesses(request, resources, scope)


def _statements(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
    for each in request.transact_statements:
        yield from statement_accesses(each, resources, scope, enclosing="ExecuteTransaction", shared=request)


def _each_by_itself(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
    return ()


def _table(action: str) -> Accesses:
    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        resource, facts = table_of(request.table_name, resources, scope)
        return (Access(action, resource, request, facts),)

    return found


def _create(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
    resource, facts = table_of(request.table_name, resources, scope)
    yield Access("dynamodb:CreateTable", resource, request, facts)
    if request.tags:
        yield Access("dynamodb:TagResource", resource, request, facts)
    if request.resource_policy is not None:
        yield Access("dynamodb:PutResourcePolicy", resource, request, facts)


def _insights(action: str) -> Accesses:
    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        resource, facts = table_of(request.table_name, resources, scope)
        if request.index_name is not None:
            resource = f"{resource}/index/{request.index_name}"
        return (Access(action, resource, request, facts),)

    return found


def _named(action: str, member: str) -> Accesses:
    """Return the access of a request that names its resource by an ARN."""

    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        resource = canonical(getattr(request, member) or "*")
        return (Access(action, resource, request, _facts(resource, resources)),)

    return found


def _tagged(action: str) -> Accesses:
    """Return the access of a tag operation; a stream's tags are its table's."""

    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        resource = canonical(request.resource_arn or "*").partition("/stream/")[0]
        return (Access(action, resource, request, _facts(resource, resources)),)

    return found


def _facts(resource: str, resources: Resources) -> TableFacts | None:
    """Return what is known of the table that an ARN names, or that what it names hangs on."""
    parts = parse_resource_arn(resource)
    return None if parts is None else resources.facts(table_arn(parts.scope, parts.table))


def _account(action: str) -> Accesses:
    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        return (Access(action, "*", request),)

    return found


def _listing(action: str, member: str) -> Accesses:
    """Return the accesses of a list: to the account's all, and to a table of another account that is named."""

    def found(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
        yield Access(action, "*", request)
        named = getattr(request, member)
        if named is not None and (scope_of(named) or scope) != scope:
            resource, facts = table_of(named, resources, scope)
            yield Access(action, resource, request, facts)

    return found


def _list_streams(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
    if request.table_name is None:
        return (Access("dynamodb:ListStreams", "*", request),)
    resource, facts = table_of(request.table_name, resources, scope)
    return (Access("dynamodb:ListStreams", f"{resource}/stream/*", request, facts),)


def _records(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
    stream = resources.iterator_stream(request.shard_iterator)
    if stream is None:
        return ()  # no iterator of this caller: it reads nothing
    return (Access("dynamodb:GetRecords", stream, request, _facts(stream, resources)),)


def _restore(action: str, *members: str) -> Accesses:
    """Return the accesses of a restore: to its source, and all that fills its target."""

    def found(request: Any, resources: Resources, scope: Scope) -> Iterator[Access]:
        source = next(filter(None, (getattr(request, member) for member in members)), None)
        if source is not None:
            if "/backup/" in source:
                yield Access(action, canonical(source), request, _facts(source, resources))
            else:
                resource, facts = table_of(source, resources, scope)
                yield Access(action, resource, request, facts)
        target, facts = table_of(request.target_table_name, resources, scope)
        yield Access(action, target, request, facts)
        for filling in _FILLING:
            yield Access(f"dynamodb:{filling}", target, request, facts)

    return found


def _import(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
    resource, facts = table_of(request.table_creation_parameters.table_name, resources, scope)
    return (Access("dynamodb:ImportTable", resource, request, facts),)


def _global_table(action: str) -> Accesses:
    def found(request: Any, resources: Resources, scope: Scope) -> Iterable[Access]:
        arn = f"arn:aws:dynamodb::{scope.account}:global-table/{request.global_table_name}"
        return (Access(action, arn, request),)

    return found


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
    "ListItemVersions": _item("dynamodb:GetItem"),  # Tavola's own: who may get an item may see what it was
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
        _named,
        "DeleteResourcePolicy GetResourcePolicy PutResourcePolicy",
        "resource_arn",
    ),
    **_each(_tagged, "ListTagsOfResource TagResource UntagResource"),
    **_each(_named, "DeleteBackup DescribeBackup", "backup_arn"),
    **_each(_named, "DescribeExport", "export_arn"),
    **_each(_named, "DescribeImport", "import_arn"),
    **_each(_named, "ExportTableToPointInTime", "table_arn"),
    **_each(_named, "CancelBulkOperation DescribeBulkOperation", "bulk_operation_arn"),
    **_each(_named, "DescribeStream GetShardIterator", "stream_arn"),
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
"""Every action that a policy can name, for whoever wants to know whether one is mistyped."""


def unknown_actions(directory: Directory) -> Iterator[tuple[str, str]]:
    """Give the actions of policies that no action of DynamoDB matches, and where each stands."""
    known = [action.lower() for action in ACTIONS]
    for policy, document in directory.documents():
        for statement in document.statements:
            for text in statement.actions or statement.not_actions or ():
                if text.lower().startswith("dynamodb:") and not any(map(action_match(text), known)):
                    yield f"{policy}, {statement.place}", text
