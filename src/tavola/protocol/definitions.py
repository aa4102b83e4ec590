"""Check the definition of a new table, as far as the request alone decides.

The order is AWS's: billing, the table's key, unused attribute definitions, each local and each global index, then the
totals over all indexes.
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
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import TABLE_CLASSES, NameInvalid, is_new_table
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.tables import (
    AttributeDefinition,
    CreateTableRequest,
    GlobalSecondaryIndex,
    KeySchemaElement,
    LocalSecondaryIndex,
    OnDemandThroughput,
    Projection,
    ProvisionedThroughput,
    SSESpecification,
)
from tavola.protocol.tags import check_tags
from tavola.protocol.vectors import check_vector_indexes

_INVALID = "One or more parameter values were invalid: "


def check_create(request: CreateTableRequest, wording: MessageStyle) -> None:
    """Refuse an invalid table definition."""
    local_indexes = request.local_secondary_indexes
    global_indexes = request.global_secondary_indexes
    names = [
        index.index_name
        for index in (*(local_indexes or ()), *(global_indexes or ()), *(request.vector_indexes or ()))
    ]
    if not is_new_table(request.table_name):
        raise NameInvalid
    check_table_class(request.table_class)
    on_demand = request.billing_mode == "PAY_PER_REQUEST"
    _check_billing(request, on_demand)
    defined = defined_names(request.attribute_definitions)
    _check_table_key(request.key_schema, defined)
    vectors = request.vector_indexes
    indexed = local_indexes is not None or global_indexes is not None or vectors is not None
    if not indexed and len(defined) != len(request.key_schema):
        refuse(
            "Number of attributes in KeySchema does not exactly match number of attributes defined in "
            "AttributeDefinitions"
        )
    if local_indexes is not None:
        _check_any_local(local_indexes, request.key_schema)
    if global_indexes is not None and not global_indexes:
        refuse("List of GlobalSecondaryIndexes is empty")
    for index in (*(local_indexes or ()), *(global_indexes or ())):
        check_keys_defined(index.key_schema, defined)
    _check_local_keys(local_indexes or (), request.key_schema)
    for global_index in global_indexes or ():
        check_index_key(global_index.key_schema)
    if vectors is not None:
        check_vector_indexes(vectors, defined, on_demand)
    _check_used(request, defined)
    for projected in (*(local_indexes or ()), *(global_indexes or ()), *(vectors or ())):
        check_projection(projected.projection)
    _check_global(global_indexes or (), on_demand)
    duplicate = find_duplicate(names)
    if duplicate is not None:
        refuse(f"Duplicate index name: {duplicate}")
    if local_indexes is not None and len(local_indexes) > LOCAL_INDEXES_MAX:
        refuse(f"Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES_MAX}")
    if global_indexes is not None and len(global_indexes) > GLOBAL_INDEXES_MAX:
        refuse(f"GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}")
    check_projections(
        [index.projection for index in (*(local_indexes or ()), *(global_indexes or ()), *(vectors or ()))]
    )
    stream = request.stream_specification
    if stream is not None:
        if stream.stream_enabled and stream.stream_view_type is None:
            refuse("Table is being created with a stream enabled, UpdateViewType is required")
        if not stream.stream_enabled and stream.stream_view_type is not None:
            refuse("Table is being created with a stream disabled, UpdateViewType should not be specified")
    check_encryption(request.sse_specification)
    if request.tags:
        check_tags(request.tags)


def check_table_class(name: str | None) -> None:
    """Refuse an unknown table class, for which AWS has its own message."""
    if name is not None and name not in TABLE_CLASSES:
        raise ValidationFault(
            "Invalid table-class parameter provided. Please try again with a valid table-class value: "
            f"[{', '.join(TABLE_CLASSES)}]."
        )


def check_index_key(schema: Sequence[KeySchemaElement]) -> None:
    """Refuse a global index key that is not one to four hash attributes followed by up to four range attributes."""
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
            refuse("All HASH key attributes must precede RANGE key attributes in the KeySchema")
        raise ValidationFault("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if "RANGE" in kinds and "HASH" in kinds[kinds.index("RANGE") :]:
        refuse("All HASH key attributes must precede RANGE key attributes in the KeySchema")
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > MULTI_KEY_ATTRIBUTES_MAX:
            refuse(f"The KeySchema exceeds the maximum allowed number of {kind} key attributes")


def check_keys_defined(schema: Sequence[KeySchemaElement], defined: Iterable[str]) -> None:
    """Refuse an index key with an undefined attribute.

    For an index added to a live table, `defined` includes the table's own definitions.
    """
    known = list(defined)
    names = [element.attribute_name for element in schema]
    if not set(names) <= set(known):
        refuse(
            "Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: [{', '.join(names)}], AttributeDefinitions: [{', '.join(known)}]"
        )


def check_projections(projections: Sequence[Projection]) -> None:
    """Refuse more projected attributes over all indexes than DynamoDB allows."""
    if (
        sum(len(projection.non_key_attributes or ()) for projection in projections)
        > PROJECTED_ATTRIBUTES_TOTAL_MAX
    ):
        refuse(
            "Number of NonKeyAttributes over all indexes exceeds the per-table limit of "
            f"{PROJECTED_ATTRIBUTES_TOTAL_MAX}"
        )


def _check_billing(request: CreateTableRequest, on_demand: bool) -> None:
    if on_demand:
        if request.provisioned_throughput is not None:
            refuse(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
                "PAY_PER_REQUEST"
            )
        check_bounds(request.on_demand_throughput, "table", least=1)
        return
    if request.provisioned_throughput is None:
        refuse(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
        )
    check_units(request.provisioned_throughput)
    check_no_bounds(request.on_demand_throughput, "", "when table BillingMode is PROVISIONED.")


def check_units(throughput: ProvisionedThroughput | None, index: str | None = None) -> None:
    """Refuse throughput beyond DynamoDB's bounds."""
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


def check_bounds(throughput: OnDemandThroughput | None, where: str, *, least: int) -> None:
    """Refuse an invalid maximum throughput; where allowed, -1 removes it."""
    for name, bound in _bounds(throughput):
        if bound < least or bound == 0:
            refuse(f"Requested {name} for OnDemandThroughput for {where} is outside of valid range")


def check_no_bounds(throughput: OnDemandThroughput | None, where: str, reason: str) -> None:
    """Refuse a maximum throughput on provisioned capacity; `where` names the index, if any."""
    for name, _ in _bounds(throughput):
        refuse(f"{name} for OnDemandThroughput{where} cannot be specified {reason}")


def defined_names(definitions: Sequence[AttributeDefinition]) -> list[str]:
    """Return the defined attribute names; refuse duplicates."""
    names = [definition.attribute_name for definition in definitions]
    duplicate = find_duplicate(names)
    if duplicate is not None:
        raise ValidationFault(f"Attribute Name is duplicated: {duplicate}")
    return names


def find_duplicate(names: Sequence[str]) -> str | None:
    """Return the first name that occurred before, None if all are different."""
    return next((name for position, name in enumerate(names) if name in names[:position]), None)


def _check_table_key(schema: Sequence[KeySchemaElement], defined: Sequence[str]) -> None:
    names = [element.attribute_name for element in schema]
    if len(names) == 1 and defined:
        check_keys_defined(schema, defined)
    elif not set(names) <= set(defined) or (names[0] == names[-1] and len(defined) == 1):
        raise ValidationFault("Invalid KeySchema: Some index key attribute have no definition")
    _check_pair(schema)


def _check_pair(schema: Sequence[KeySchemaElement]) -> None:
    """Refuse anything but one hash attribute, or a hash and a range attribute."""
    if len(schema) == 2 and schema[0].attribute_name == schema[1].attribute_name:
        raise ValidationFault(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
        )
    if schema[0].key_type != "HASH":
        raise ValidationFault("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if len(schema) == 2 and schema[1].key_type != "RANGE":
        raise ValidationFault("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")


def _check_any_local(indexes: Sequence[LocalSecondaryIndex], table: Sequence[KeySchemaElement]) -> None:
    if not indexes:
        refuse("List of LocalSecondaryIndexes is empty")
    if len(table) != 2:
        refuse(
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"
        )


def _check_local_keys(indexes: Sequence[LocalSecondaryIndex], table: Sequence[KeySchemaElement]) -> None:
    for index in indexes:
        _check_pair(index.key_schema)
        if len(index.key_schema) != 2:
            refuse(f"Index KeySchema does not have a range key for index: {index.index_name}")
        hash_name, table_hash_name = index.key_schema[0].attribute_name, table[0].attribute_name
        if hash_name != table_hash_name:
            refuse(
                "Index KeySchema does not have the same leading hash key as table KeySchema for index: "
                f"{index.index_name}. index hash key: {hash_name}, table hash key: {table_hash_name}"
            )


def _check_global(indexes: Sequence[GlobalSecondaryIndex], on_demand: bool) -> None:
    for index in indexes:
        name = index.index_name
        if on_demand and index.provisioned_throughput is not None:
            refuse(
                f"ProvisionedThroughput should not be specified for index: {name} when BillingMode is "
                "PAY_PER_REQUEST"
            )
        if not on_demand and index.provisioned_throughput is None:
            refuse(f"ProvisionedThroughput is not specified for index: {name}")
        if not on_demand:
            reason = "when table BillingMode is PROVISIONED."
            check_no_bounds(index.on_demand_throughput, f" for index: {name}", reason)
        check_index_throughput(index)


def check_index_throughput(index: GlobalSecondaryIndex) -> None:
    """Refuse an index with invalid units or maximum throughput."""
    check_units(index.provisioned_throughput, index.index_name)
    check_bounds(index.on_demand_throughput, f"index : {index.index_name}", least=1)


def check_projection(projection: Projection) -> None:
    """Refuse a projection whose type and attributes contradict each other."""
    kind, attributes = projection.projection_type, projection.non_key_attributes
    if kind is None:
        refuse("Unknown ProjectionType: null")
    if attributes is not None and kind != "INCLUDE":
        refuse(f"ProjectionType is {kind}, but NonKeyAttributes is specified")
    if attributes is None and kind == "INCLUDE":
        refuse("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    duplicate = find_duplicate(attributes or ())
    if duplicate is not None:
        refuse(f"Duplicate element in NonKeyAttributes: {duplicate}")


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
        refuse(
            f"Some AttributeDefinitions are not used. AttributeDefinitions: [{', '.join(defined)}], "
            f"keys used: [{', '.join(used)}]"
        )


def check_encryption(specification: SSESpecification | None) -> None:
    """Refuse a KMS key without KMS encryption, and an encryption type that AWS has retired."""
    if specification is None:
        return
    if specification.enabled is False:
        if specification.sse_type is not None:
            refuse("SSEType can not be specified if Enabled is false")
        if specification.kms_master_key_id is not None:
            refuse("KMSMasterKeyId can not be specified if Enabled is false")
    elif specification.sse_type == "AES256":
        refuse("SSEType AES256 is not supported")
    elif specification.kms_master_key_id is not None and specification.sse_type is None:
        refuse("SSEType KMS is required if KMSMasterKeyId is specified")


def refuse(rule: str) -> NoReturn:
    """Raise a ValidationFault with AWS's prefix for parameter errors."""
    raise ValidationFault(_INVALID + rule)
