"""CreateTable, DescribeTable, DeleteTable, ListTables, DescribeLimits and DescribeEndpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tavola.engine.catalog import (
    IndexDefinition,
    StoredTable,
    StreamSettings,
    TableDefinition,
    Throughput,
)
from tavola.engine.jobs import failure_of
from tavola.engine.operations.backups import drop_table
from tavola.engine.operations.call import OperationCall, encode
from tavola.engine.operations.descriptions import describe, is_changing
from tavola.engine.operations.encryption import encryption_of
from tavola.engine.operations.policies import policy_of_request
from tavola.engine.operations.regions import refuse_source, settings_replication
from tavola.engine.operations.throughput import (
    NO_UNITS,
    check_bounds_allowed,
    check_initial_warm_throughput,
    check_units_allowed,
    to_dict,
)
from tavola.engine.operations.vectors import vector_definition
from tavola.engine.streams import label_of
from tavola.limits import (
    ACCOUNT_CAPACITY_UNITS_MAX,
    LIST_TABLES_MAX,
    TABLE_CAPACITY_UNITS_MAX,
    TABLES_PER_REGION_MAX,
)
from tavola.protocol.arns import scope_of, table_arn, table_name_of
from tavola.protocol.faults import (
    AccessDeniedFault,
    LimitExceededFault,
    ResourceInUseFault,
    ResourceNotFoundFault,
    ValidationFault,
)
from tavola.protocol.tables import (
    CreateTableRequest,
    DeleteTableRequest,
    DescribeEndpointsRequest,
    DescribeLimitsRequest,
    DescribeTableRequest,
    GlobalSecondaryIndex,
    KeySchemaElement,
    ListTablesRequest,
    LocalSecondaryIndex,
    ProvisionedThroughput,
    StreamSpecification,
)
from tavola.protocol.tags import tags_by_key

# Members of a description that the response to DeleteTable does not have.
_ABSENT_FROM_DELETED = frozenset(
    {
        "AttributeDefinitions",
        "CreationDateTime",
        "GlobalSecondaryIndexes",
        "KeySchema",
        "LocalSecondaryIndexes",
        "VectorIndexes",
    }
)


def create_table(call: OperationCall, request: CreateTableRequest) -> bytes:
    """Create a table; it is CREATING, and ACTIVE after the engine's configured delay."""
    refuse_source(request)
    catalog = call.services.catalog
    existing = catalog.find(call.scope, request.table_name)
    if existing is not None:
        check_not_creating(call, existing)
        raise ResourceInUseFault(f"Table already exists: {request.table_name}")
    if len(catalog.names(call.scope)) >= TABLES_PER_REGION_MAX:
        raise LimitExceededFault(
            f"Subscriber limit exceeded: There is a limit of {TABLES_PER_REGION_MAX} tables per subscriber"
        )
    _check_throughput(request, call.scope.region)
    now_s = call.services.clock.now()
    hash_, range_ = key_names(request.key_schema)
    indexes = [
        index_definition(index, slot)
        for slot, index in enumerate(
            (*(request.local_secondary_indexes or ()), *(request.global_secondary_indexes or ())), 1
        )
    ]
    vectors = [
        vector_definition(vector, slot)
        for slot, vector in enumerate(request.vector_indexes or (), len(indexes) + 1)
    ]
    on_demand = request.billing_mode == "PAY_PER_REQUEST"
    encryption = encryption_of(request.sse_specification, call.scope)
    policy = policy_of_request(request.resource_policy, now_s)
    replicated = settings_replication(request.global_table_settings_replication_mode)
    call.services.begin()
    definition = TableDefinition(
        number=catalog.next_number(),
        account=call.scope.account,
        region=call.scope.region,
        name=request.table_name,
        uuid=call.services.entropy.uuid(),
        created_at_s=now_s,
        ready_at_s=call.services.time.stamp().store_s + call.services.table_delay_s,
        types={
            definition.attribute_name: definition.attribute_type
            for definition in request.attribute_definitions
        },
        hash=hash_[0],
        range=range_[0] if range_ else None,
        indexes=tuple(indexes),
        slots=len(indexes) + len(vectors),
        billing=request.billing_mode or "PROVISIONED",
        on_demand_since_s=now_s if on_demand else None,
        throughput=units_of(request.provisioned_throughput),
        on_demand=to_dict(request.on_demand_throughput),
        warm=to_dict(request.warm_throughput),
        table_class=request.table_class,
        protected=bool(request.deletion_protection_enabled),
        stream=stream_of(call, request.table_name, request.stream_specification, now_s),
        tags=tags_by_key(request.tags or ()),
        encryption=encryption,
        vectors=tuple(vectors),
        settings_replication=replicated,
        policy=policy,
    )
    table = catalog.create(definition)
    if definition.stream is not None:
        call.services.streams.enable(table)
    return encode({"TableDescription": describe(table, call.services.time.now(), status="CREATING")})


def describe_table(call: OperationCall, request: DescribeTableRequest) -> bytes:
    """Return a table's description; for a recently failed restore, the reason."""
    now = call.services.time.now()
    try:
        table = find_table(call, request.table_name)
    except ResourceNotFoundFault as fault:
        arn = table_arn(call.check_scope(request.table_name), table_name_of(request.table_name))
        failure = failure_of(call.services.store, arn, now.store_s)
        if failure is None:
            raise
        raise ResourceNotFoundFault(f"{fault}. {failure.sentence}") from fault
    return encode({"Table": describe(table, now)})


def delete_table(call: OperationCall, request: DeleteTableRequest) -> bytes:
    """Delete a table and everything in it."""
    table = find_table(call, request.table_name)
    now = call.services.time.now()
    check_not_creating(call, table)
    if table.definition.protected:
        raise ValidationFault(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )
    if is_changing(table.definition, now.store_s):
        raise ResourceInUseFault(
            "Attempt to change a resource which is still in use: Cannot delete table while indexes are being "
            "created, updated, or deleted."
        )
    call.services.begin()
    call.services.streams.disable(table)
    drop_table(call.services, table)
    call.services.emulation.drop(table)
    description = describe(table, now, status="DELETING")
    return encode(
        {
            "TableDescription": {
                name: value for name, value in description.items() if name not in _ABSENT_FROM_DELETED
            }
        }
    )


def list_tables(call: OperationCall, request: ListTablesRequest) -> bytes:
    """Return the names of the caller's tables in byte order."""
    names = call.services.catalog.names(call.scope)
    start = request.exclusive_start_table_name
    if start is not None:
        names = [name for name in names if name > start]
    limit = request.limit or LIST_TABLES_MAX
    members: dict[str, Any] = {"TableNames": names[:limit]}
    if len(names) > limit:
        members["LastEvaluatedTableName"] = names[limit - 1]
    return encode(members)


def describe_limits(call: OperationCall, request: DescribeLimitsRequest) -> bytes:
    """Return the capacity limits of account and table."""
    return encode(
        {
            "AccountMaxReadCapacityUnits": ACCOUNT_CAPACITY_UNITS_MAX,
            "AccountMaxWriteCapacityUnits": ACCOUNT_CAPACITY_UNITS_MAX,
            "TableMaxReadCapacityUnits": TABLE_CAPACITY_UNITS_MAX,
            "TableMaxWriteCapacityUnits": TABLE_CAPACITY_UNITS_MAX,
        }
    )


def describe_endpoints(call: OperationCall, request: DescribeEndpointsRequest) -> bytes:
    """Return the address of the region's endpoint: over HTTP, the one that the caller has used.

    So an SDK with endpoint discovery stays with this server.
    """
    address = None if call.context is None else call.context.address
    address = address or f"dynamodb.{call.scope.region}.amazonaws.com"
    return encode({"Endpoints": [{"Address": address, "CachePeriodInMinutes": 1440}]})


def find_table(call: OperationCall, name_or_arn: str) -> StoredTable:
    """Return the table that a control plane request names, whatever its state."""
    arn_scope = scope_of(name_or_arn)
    if arn_scope is not None and arn_scope.account != call.scope.account and not call.is_guarded:
        raise AccessDeniedFault("Access is denied")
    if arn_scope is not None and arn_scope.region != call.scope.region:
        raise ValidationFault(f"1 validation error detected: Invalid AWS region in '{name_or_arn}'")
    scope = call.check_scope(name_or_arn)
    name = table_name_of(name_or_arn)
    table = call.services.catalog.find(scope, name)
    if table is None:
        raise ResourceNotFoundFault.of_table(name)
    return table


def check_not_creating(call: OperationCall, table: StoredTable) -> None:
    """Refuse to change a table that is being created."""
    if not call.services.catalog.is_active(table):
        raise ResourceInUseFault(
            f"Attempt to change a resource which is still in use: Table is being created: {table.name}"
        )


def _check_throughput(request: CreateTableRequest, region: str) -> None:
    """Refuse throughput beyond the region's limits."""
    billing = request.billing_mode or "PROVISIONED"
    check_units_allowed(request.provisioned_throughput, region)
    check_bounds_allowed(request.on_demand_throughput, region)
    check_initial_warm_throughput(
        request.warm_throughput, billing, units_of(request.provisioned_throughput), region
    )
    for index in request.global_secondary_indexes or ():
        name = index.index_name
        check_units_allowed(index.provisioned_throughput, region, name)
        check_bounds_allowed(index.on_demand_throughput, region, f"index : {name}")
        units = units_of(index.provisioned_throughput)
        check_initial_warm_throughput(index.warm_throughput, billing, units, region, f"index {name}")


def index_definition(
    index: LocalSecondaryIndex | GlobalSecondaryIndex, slot: int, **state: Any
) -> IndexDefinition:
    """Return the stored definition of a requested index."""
    hash_, range_ = key_names(index.key_schema)
    kind = "global" if isinstance(index, GlobalSecondaryIndex) else "local"
    assert index.projection.projection_type is not None, "`parse` refuses an index without a projection"
    settings: dict[str, Any] = {}
    if isinstance(index, GlobalSecondaryIndex):
        settings = {
            "throughput": units_of(index.provisioned_throughput),
            "on_demand": to_dict(index.on_demand_throughput),
            "warm": to_dict(index.warm_throughput),
        }
    return IndexDefinition(
        name=index.index_name,
        kind=kind,  # type: ignore[arg-type]  # one of the two
        slot=slot,
        hash=hash_,
        range=range_,
        projection=index.projection.projection_type,
        named=tuple(index.projection.non_key_attributes or ()),
        **settings,
        **state,
    )


def key_names(schema: Sequence[KeySchemaElement]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the hash and range attributes of a requested key, in order."""
    return (
        tuple(element.attribute_name for element in schema if element.key_type == "HASH"),
        tuple(element.attribute_name for element in schema if element.key_type == "RANGE"),
    )


def units_of(throughput: ProvisionedThroughput | None) -> Throughput:
    """Return requested units in stored form; none are zero."""
    if throughput is None:
        return NO_UNITS
    return Throughput(throughput.read_capacity_units, throughput.write_capacity_units)


def stream_of(
    call: OperationCall, table: str, specification: StreamSpecification | None, now_s: float
) -> StreamSettings | None:
    """Return the stored setting of a requested stream, labelled with the current time."""
    if specification is None or not specification.stream_enabled:
        return None
    assert specification.stream_view_type is not None, "`parse` refuses a stream without a view"
    moment_s = call.services.streams.free_moment(call.scope, table, now_s)
    return StreamSettings(view=specification.stream_view_type, label=label_of(moment_s))
