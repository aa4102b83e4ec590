"""Definitions: what a new or changed table may be, as far as the request alone can tell.

The order of the rules is AWS's: billing first, then the table's key, then each local and each global
index, then what is counted over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from tavola.limits import (
    CAPACITY_UNITS_MAX,
    GLOBAL_INDEXES_MAX,
    LOCAL_INDEXES_MAX,
    MULTI_KEY_ATTRIBUTES_MAX,
    PROJECTED_ATTRIBUTES_TOTAL_MAX,
)
from tavola.protocol.faults import LimitExceededFault, ValidationFault
from tavola.protocol.fields import Unfit, is_control_table, is_new_table
from tavola.protocol.replicas import check_replica_updates
from tavola.protocol.tables import (
    AttributeDefinition,
    CreateTableRequest,
    DeleteGlobalSecondaryIndexAction,
    GlobalSecondaryIndex,
    GlobalSecondaryIndexUpdate,
    KeySchemaElement,
    LocalSecondaryIndex,
    OnDemandThroughput,
    Projection,
    ProvisionedThroughput,
    SSESpecification,
    UpdateGlobalSecondaryIndexAction,
    UpdateTableRequest,
)
from tavola.protocol.tags import check_tags
from tavola.protocol.vectors import check_vector_indexes, check_vector_updates
from tavola.protocol.wording import Wording

_INVALID = "One or more parameter values were invalid: "
_Action = UpdateGlobalSecondaryIndexAction | GlobalSecondaryIndex | DeleteGlobalSecondaryIndexAction


def check_create(request: CreateTableRequest, wording: Wording) -> None:
    """Refuse a table that DynamoDB does not make."""
    local = request.local_secondary_indexes
    globally = request.global_secondary_indexes
    names = [
        index.index_name for index in (*(local or ()), *(globally or ()), *(request.vector_indexes or ()))
    ]
    if not is_new_table(request.table_name):
        raise Unfit
    on_demand = request.billing_mode == "PAY_PER_REQUEST"
    _check_billing(request, on_demand)
    defined = _defined(request.attribute_definitions)
    _check_table_key(request.key_schema, defined)
    vectors = request.vector_indexes
    indexed = local is not None or globally is not None or vectors is not None
    if not indexed and len(defined) != len(request.key_schema):
        _refuse(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in "
            "AttributeDefinitions"
        )
    if local is not None:
        _check_local(local, request.key_schema, defined)
    if globally is not None:
        _check_global(globally, defined, on_demand)
    if vectors is not None:
        check_vector_indexes(vectors, defined, on_demand)
        for vector in vectors:
            _check_projection(vector.projection)
    _check_unique(names)
    if local is not None and len(local) > LOCAL_INDEXES_MAX:
        _refuse(f"Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES_MAX}")
    if globally is not None and len(globally) > GLOBAL_INDEXES_MAX:
        _refuse(f"GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}")
    check_projections(
        [index.projection for index in (*(local or ()), *(globally or ()), *(vectors or ()))]
    )
    _check_used(request, defined)
    stream = request.stream_specification
    if stream is not None:
        if stream.stream_enabled and stream.stream_view_type is None:
            _refuse("Table is being created with a stream enabled, UpdateViewType is required")
        if not stream.stream_enabled and stream.stream_view_type is not None:
            _refuse("Table is being created with a stream disabled, UpdateViewType should not be specified")
    _check_encryption(request.sse_specification)
    if request.tags:
        check_tags(request.tags)


def check_update_table(request: UpdateTableRequest, wording: Wording) -> None:
    """Refuse a change that no table could take."""
    updates = request.global_secondary_index_updates or []
    if not is_control_table(request.table_name):
        raise Unfit
    if not updates and all(
        member is None
        for member in (
            request.billing_mode,
            request.provisioned_throughput,
            request.stream_specification,
            request.sse_specification,
            request.replica_updates,
            request.table_class,
            request.deletion_protection_enabled,
            request.on_demand_throughput,
            request.warm_throughput,
            request.global_table_settings_replication_mode,
            request.disassociation_protection_enabled,
            request.vector_index_updates or None,
        )
    ):
        raise ValidationFault(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
            "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"
        )
    _check_alone(request)
    check_replica_updates(request)
    on_demand = request.billing_mode == "PAY_PER_REQUEST"
    if on_demand and request.provisioned_throughput is not None:
        _refuse(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
        )
    if request.billing_mode == "PROVISIONED" and request.provisioned_throughput is None:
        _refuse("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    _check_units(request.provisioned_throughput)
    _check_bounds(request.on_demand_throughput, "table", least=-1)
    if request.billing_mode == "PROVISIONED":
        _check_no_bounds(request.on_demand_throughput, "when the table BillingMode is PROVISIONED")
    _check_index_updates(updates, request.attribute_definitions, on_demand)
    vector_updates = request.vector_index_updates or []
    check_vector_updates(vector_updates, _defined(request.attribute_definitions or ()))
    for update in vector_updates:
        if update.create is not None:
            _check_projection(update.create.projection)
    stream = request.stream_specification
    if stream is not None:
        if stream.stream_enabled and stream.stream_view_type is None:
            _refuse("If stream is being enabled then UpdateViewType is required")
        if not stream.stream_enabled and stream.stream_view_type is not None:
            _refuse("If stream is being disabled, then UpdateViewType must not be specified")
    _check_encryption(request.sse_specification)
    structural = sum(update.create is not None or update.delete is not None for update in updates)
    if structural + len(vector_updates) > 1:
        raise LimitExceededFault(
            "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
        )


def _check_alone(request: UpdateTableRequest) -> None:
    """Refuse a change of the encryption, or of replicas, that comes with another one."""
    others = (
        request.billing_mode,
        request.provisioned_throughput,
        request.global_secondary_index_updates or None,
        request.vector_index_updates or None,
        request.stream_specification,
        request.table_class,
        request.deletion_protection_enabled,
        request.on_demand_throughput,
        request.warm_throughput,
    )
    alone = all(member is None for member in others)
    if request.sse_specification is not None and not (alone and request.replica_updates is None):
        _refuse("Server-Side Encryption modification must be the only operation in the request")
    if request.replica_updates is not None and not alone:
        _refuse("Replica modification must be the only operation in the request")


def check_index_key(schema: Sequence[KeySchemaElement]) -> None:
    """Refuse a global index's key that is not one to four hash attributes, then up to four range ones."""
    names = [element.attribute_name for element in schema]
    if len(set(names)) < len(names):
        if len(names) == 2:
            raise ValidationFault(
                "Both the Hash Key and the Range Key element in the KeySchema have the same name"
            )
        raise ValidationFault("The KeySchema contains multiple key attributes with the same name")
    kinds = [element.key_type for element in schema]
    if kinds[0] != "HASH":
        if "HASH" in kinds and len(kinds) > 2:
            _refuse("All HASH key attributes must precede RANGE key attributes in the KeySchema")
        raise ValidationFault("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if "RANGE" in kinds and "HASH" in kinds[kinds.index("RANGE") :]:
        _refuse("All HASH key attributes must precede RANGE key attributes in the KeySchema")
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > MULTI_KEY_ATTRIBUTES_MAX:
            _refuse(f"The KeySchema exceeds the maximum allowed number of {kind} key attributes")


def check_keys_defined(schema: Sequence[KeySchemaElement], defined: Iterable[str]) -> None:
    """Refuse an index whose key names an attribute without a type.

    Of an index that a live table gets, the engine asks this with the table's definitions added.
    """
    known = list(defined)
    names = [element.attribute_name for element in schema]
    if not set(names) <= set(known):
        _refuse(
            "Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: [{', '.join(names)}], AttributeDefinitions: [{', '.join(known)}]"
        )


def check_projections(projections: Sequence[Projection]) -> None:
    """Refuse more named attributes over all indexes of a table than DynamoDB projects."""
    if (
        sum(len(projection.non_key_attributes or ()) for projection in projections)
        > PROJECTED_ATTRIBUTES_TOTAL_MAX
    ):
        _refuse(
            "Number of NonKeyAttributes over all indexes exceeds the per-table limit of "
            f"{PROJECTED_ATTRIBUTES_TOTAL_MAX}"
        )


def _check_billing(request: CreateTableRequest, on_demand: bool) -> None:
    if on_demand:
        if request.provisioned_throughput is not None:
            _refuse(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
                "PAY_PER_REQUEST"
            )
        _check_bounds(request.on_demand_throughput, "table", least=1)
        return
    if request.provisioned_throughput is None:
        _refuse(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
        )
    _check_units(request.provisioned_throughput)
    _check_no_bounds(request.on_demand_throughput, "when table BillingMode is PROVISIONED.")


def _check_units(throughput: ProvisionedThroughput | None, index: str | None = None) -> None:
    if throughput is None:
        return
    where = "" if index is None else f" for index {index}"
    for name, units in (
        ("ReadCapacityUnits", throughput.read_capacity_units),
        ("WriteCapacityUnits", throughput.write_capacity_units),
    ):
        if units > CAPACITY_UNITS_MAX:
            raise ValidationFault(f"Given value {units} for {name} is out of bounds{where}")


def _bounds(throughput: OnDemandThroughput | None) -> list[tuple[str, int]]:
    if throughput is None:
        return []
    bounds = (
        ("MaxReadRequestUnits", throughput.max_read_request_units),
        ("MaxWriteRequestUnits", throughput.max_write_request_units),
    )
    return [(name, bound) for name, bound in bounds if bound is not None]


def _check_bounds(throughput: OnDemandThroughput | None, where: str, *, least: int) -> None:
    for name, bound in _bounds(throughput):
        if bound < least or bound == 0:
            _refuse(f"Requested {name} for OnDemandThroughput for {where} is outside of valid range")


def _check_no_bounds(throughput: OnDemandThroughput | None, reason: str) -> None:
    for name, _ in _bounds(throughput):
        _refuse(f"{name} for OnDemandThroughput cannot be specified {reason}")


def _defined(definitions: Sequence[AttributeDefinition]) -> list[str]:
    names = [definition.attribute_name for definition in definitions]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValidationFault(f"Attribute Name is duplicated: {name}")
    return names


def _check_table_key(schema: Sequence[KeySchemaElement], defined: Sequence[str]) -> None:
    names = [element.attribute_name for element in schema]
    if len(names) == 1:
        check_keys_defined(schema, defined)
    elif not set(names) <= set(defined) or (names[0] == names[1] and len(defined) == 1):
        raise ValidationFault("Invalid KeySchema: Some index key attribute have no definition")
    _check_pair(schema)


def _check_pair(schema: Sequence[KeySchemaElement]) -> None:
    """Refuse what is no hash attribute, or no hash and range attribute."""
    if len(schema) == 2 and schema[0].attribute_name == schema[1].attribute_name:
        raise ValidationFault(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
        )
    if schema[0].key_type != "HASH":
        raise ValidationFault("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if len(schema) == 2 and schema[1].key_type != "RANGE":
        raise ValidationFault("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")


def _check_local(
    indexes: Sequence[LocalSecondaryIndex], table: Sequence[KeySchemaElement], defined: Sequence[str]
) -> None:
    if not indexes:
        _refuse("List of LocalSecondaryIndexes is empty")
    if len(table) != 2:
        _refuse(
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"
        )
    for index in indexes:
        check_keys_defined(index.key_schema, defined)
        _check_pair(index.key_schema)
        if len(index.key_schema) != 2:
            _refuse(f"Index KeySchema does not have a range key for index: {index.index_name}")
        hash_name, table_hash_name = index.key_schema[0].attribute_name, table[0].attribute_name
        if hash_name != table_hash_name:
            _refuse(
                "Index KeySchema does not have the same leading hash key as table KeySchema for index: "
                f"{index.index_name}. index hash key: {hash_name}, table hash key: {table_hash_name}"
            )
        _check_projection(index.projection)


def _check_global(indexes: Sequence[GlobalSecondaryIndex], defined: Sequence[str], on_demand: bool) -> None:
    if not indexes:
        _refuse("List of GlobalSecondaryIndexes is empty")
    for index in indexes:
        check_keys_defined(index.key_schema, defined)
        check_index_key(index.key_schema)
        _check_projection(index.projection)
        _check_index_throughput(index, on_demand)
        if not on_demand and index.provisioned_throughput is None:
            _refuse(f"ProvisionedThroughput must be specified for index: {index.index_name}")


def _check_index_throughput(index: GlobalSecondaryIndex, on_demand: bool) -> None:
    if on_demand and index.provisioned_throughput is not None:
        _refuse(
            f"ProvisionedThroughput should not be specified for index: {index.index_name} when BillingMode is "
            "PAY_PER_REQUEST"
        )
    _check_units(index.provisioned_throughput, index.index_name)
    _check_bounds(index.on_demand_throughput, f"index : {index.index_name}", least=1)


def _check_projection(projection: Projection) -> None:
    kind, named = projection.projection_type, projection.non_key_attributes
    if kind is None:
        _refuse("Unknown ProjectionType: null")
    if named is not None and kind != "INCLUDE":
        _refuse(f"ProjectionType is {kind}, but NonKeyAttributes is specified")
    if named is None and kind == "INCLUDE":
        _refuse("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    if named is not None:
        for place, name in enumerate(named):
            if name in named[:place]:
                _refuse(f"Duplicate element in NonKeyAttributes: {name}")


def _check_unique(names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            _refuse(f"Duplicate index name: {name}")


def _check_used(request: CreateTableRequest, defined: Sequence[str]) -> None:
    indexes = (*(request.local_secondary_indexes or ()), *(request.global_secondary_indexes or ()))
    schemas = (request.key_schema, *(index.key_schema for index in indexes))
    used = list(dict.fromkeys(element.attribute_name for schema in schemas for element in schema))
    searched = {
        element.attribute_name
        for index in request.vector_indexes or ()
        for element in index.search_schema or ()
    }
    if not set(defined) <= set(used) | searched:
        _refuse(
            f"Some AttributeDefinitions are not used. AttributeDefinitions: [{', '.join(defined)}], "
            f"keys used: [{', '.join(used)}]"
        )


def _check_encryption(specification: SSESpecification | None) -> None:
    if specification is None:
        return
    if specification.enabled is False:
        if specification.sse_type is not None:
            _refuse("SSEType can not be specified if Enabled is false")
        if specification.kms_master_key_id is not None:
            _refuse("KMSMasterKeyId can not be specified if Enabled is false")
    elif specification.sse_type == "AES256":
        _refuse("SSEType AES256 is not supported")
    elif specification.kms_master_key_id is not None and specification.sse_type is None:
        _refuse("SSEType KMS is required if KMSMasterKeyId is specified")


def _actions(update: GlobalSecondaryIndexUpdate) -> list[_Action]:
    return [action for action in (update.update, update.create, update.delete) if action is not None]


def _check_index_updates(
    updates: Sequence[GlobalSecondaryIndexUpdate],
    definitions: Sequence[AttributeDefinition] | None,
    on_demand: bool,
) -> None:
    seen: set[str] = set()
    for update in updates:
        actions = _actions(update)
        if not actions:
            _refuse(
                "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                "GlobalSecondaryIndexUpdate.Delete must not be null"
            )
        if len(actions) > 1:
            _refuse("Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
        name = actions[0].index_name
        if name in seen:
            _refuse(
                f"Only one global secondary index update per index is allowed simultaneously. Index: {name}"
            )
        seen.add(name)
        if update.update is not None:
            _check_units(update.update.provisioned_throughput, name)
            _check_bounds(update.update.on_demand_throughput, f"index : {name}", least=-1)
        if update.create is not None:
            if definitions is None:
                _refuse(f"AttributeDefinitions is not specified for index: {name}")
            check_index_key(update.create.key_schema)
            _check_projection(update.create.projection)
            _check_index_throughput(update.create, on_demand)


def _refuse(rule: str) -> NoReturn:
    raise ValidationFault(_INVALID + rule)
