"""Requests that create, describe, update, delete and list tables.

Members are declared in the order in which AWS reports violations. `definitions` and `table_changes` have the further
checks.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tavola.protocol.fields import (
    INDEX_KEY_SCHEMA,
    NON_KEY_ATTRIBUTES,
    ONE_OR_MORE,
    TABLE_KEY_SCHEMA,
    BillingMode,
    ControlTableName,
    DefinedIndexName,
    DisassociationMode,
    KeyAttributeName,
    KeyType,
    ListTablesLimit,
    Long,
    MultiRegionConsistency,
    NameInvalid,
    NewTableName,
    PositiveLong,
    ProjectionType,
    ScalarAttributeType,
    SearchSchemaElementType,
    SettingsReplicationMode,
    Shape,
    SSEType,
    StartTableName,
    StreamViewType,
    TableClass,
    VectorDistanceFunction,
    is_start_table,
)
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.tags import Tag


class AttributeDefinition(Shape, frozen=True, kw_only=True):
    """The type of an attribute that some key uses."""

    attribute_name: KeyAttributeName
    attribute_type: ScalarAttributeType


class KeySchemaElement(Shape, frozen=True, kw_only=True):
    """One attribute of a key."""

    attribute_name: KeyAttributeName
    key_type: KeyType


class Projection(Shape, frozen=True, kw_only=True):
    """The attributes in an index besides keys."""

    projection_type: ProjectionType | None = None
    non_key_attributes: Annotated[list[KeyAttributeName], NON_KEY_ATTRIBUTES] | None = None


class ProvisionedThroughput(Shape, frozen=True, kw_only=True):
    """Reserved capacity units."""

    write_capacity_units: PositiveLong
    read_capacity_units: PositiveLong


class OnDemandThroughput(Shape, frozen=True, kw_only=True):
    """The maximum throughput of an on-demand table or index; -1 for none."""

    max_read_request_units: Long | None = None
    max_write_request_units: Long | None = None


class WarmThroughput(Shape, frozen=True, kw_only=True):
    """The throughput that a table or index can serve immediately."""

    read_units_per_second: Long | None = None
    write_units_per_second: Long | None = None


class LocalSecondaryIndex(Shape, frozen=True, kw_only=True):
    """An index that shares the table's partition key."""

    index_name: DefinedIndexName
    key_schema: Annotated[list[KeySchemaElement], TABLE_KEY_SCHEMA]
    projection: Projection


class GlobalSecondaryIndex(Shape, frozen=True, kw_only=True):
    """An index with a key of its own: one to four hash attributes, then up to four range attributes."""

    index_name: DefinedIndexName
    key_schema: Annotated[list[KeySchemaElement], INDEX_KEY_SCHEMA]
    projection: Projection
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class StreamSpecification(Shape, frozen=True, kw_only=True):
    """Whether a stream is enabled, and which images it has."""

    stream_enabled: bool
    stream_view_type: StreamViewType | None = None


class SSESpecification(Shape, frozen=True, kw_only=True):
    """Which key encrypts the table."""

    enabled: bool | None = None
    sse_type: SSEType | None = msgspec.field(name="SSEType", default=None)
    kms_master_key_id: str | None = msgspec.field(name="KMSMasterKeyId", default=None)


class VectorAttributeDefinition(Shape, frozen=True, kw_only=True):
    """The attribute that holds an item's vector."""

    attribute_name: KeyAttributeName


class SearchSchemaElement(Shape, frozen=True, kw_only=True):
    """An attribute that a vector search may condition on."""

    attribute_name: str
    search_schema_element_type: SearchSchemaElementType


class VectorIndex(Shape, frozen=True, kw_only=True):
    """An index that finds the nearest vectors."""

    index_name: DefinedIndexName
    vector_attribute: VectorAttributeDefinition
    search_schema: Annotated[list[SearchSchemaElement], ONE_OR_MORE] | None = None
    projection: Projection
    dimensions: PositiveLong
    distance_function: VectorDistanceFunction


class CreateTableRequest(Shape, frozen=True, kw_only=True):
    """The request of CreateTable."""

    attribute_definitions: list[AttributeDefinition]
    table_name: NewTableName
    billing_mode: BillingMode | None = None
    provisioned_throughput: ProvisionedThroughput | None = None
    key_schema: Annotated[list[KeySchemaElement], TABLE_KEY_SCHEMA]
    global_secondary_indexes: list[GlobalSecondaryIndex] | None = None
    local_secondary_indexes: list[LocalSecondaryIndex] | None = None
    stream_specification: StreamSpecification | None = None
    sse_specification: SSESpecification | None = msgspec.field(name="SSESpecification", default=None)
    tags: list[Tag] | None = None
    table_class: str | None = None  # one of TABLE_CLASSES; checked separately, as AWS does
    deletion_protection_enabled: bool | None = None
    warm_throughput: WarmThroughput | None = None
    resource_policy: str | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    global_table_source_arn: str | None = None
    global_table_settings_replication_mode: SettingsReplicationMode | None = None
    vector_indexes: list[VectorIndex] | None = None


class UpdateGlobalSecondaryIndexAction(Shape, frozen=True, kw_only=True):
    """New throughput for a global index."""

    index_name: DefinedIndexName
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None


class CreateGlobalSecondaryIndexAction(GlobalSecondaryIndex, frozen=True, kw_only=True):
    """A global index to be built on a live table."""


class DeleteGlobalSecondaryIndexAction(Shape, frozen=True, kw_only=True):
    """A global index to be dropped."""

    index_name: DefinedIndexName


class GlobalSecondaryIndexUpdate(Shape, frozen=True, kw_only=True):
    """One change of a table's global indexes."""

    update: UpdateGlobalSecondaryIndexAction | None = None
    create: CreateGlobalSecondaryIndexAction | None = None
    delete: DeleteGlobalSecondaryIndexAction | None = None


class ProvisionedThroughputOverride(Shape, frozen=True, kw_only=True):
    """A replica's own read capacity."""

    read_capacity_units: PositiveLong | None = None


class OnDemandThroughputOverride(Shape, frozen=True, kw_only=True):
    """A replica's own bound on reads."""

    max_read_request_units: Long | None = None


class ReplicaGlobalSecondaryIndex(Shape, frozen=True, kw_only=True):
    """A replica's own settings of a global index."""

    index_name: DefinedIndexName
    provisioned_throughput_override: ProvisionedThroughputOverride | None = None
    on_demand_throughput_override: OnDemandThroughputOverride | None = None


class CreateReplicationGroupMemberAction(Shape, frozen=True, kw_only=True):
    """A replica to be added."""

    region_name: str
    kms_master_key_id: str | None = msgspec.field(name="KMSMasterKeyId", default=None)
    provisioned_throughput_override: ProvisionedThroughputOverride | None = None
    on_demand_throughput_override: OnDemandThroughputOverride | None = None
    global_secondary_indexes: Annotated[list[ReplicaGlobalSecondaryIndex], ONE_OR_MORE] | None = None
    table_class_override: TableClass | None = None


class UpdateReplicationGroupMemberAction(CreateReplicationGroupMemberAction, frozen=True, kw_only=True):
    """New settings of a replica."""


class DeleteReplicationGroupMemberAction(Shape, frozen=True, kw_only=True):
    """A replica to be removed."""

    region_name: str


class DisassociateReplicationGroupMemberAction(Shape, frozen=True, kw_only=True):
    """A replica to convert to an independent table."""

    region_name: str
    disassociation_mode: DisassociationMode


class ReplicationGroupUpdate(Shape, frozen=True, kw_only=True):
    """One change of a table's replicas."""

    create: CreateReplicationGroupMemberAction | None = None
    update: UpdateReplicationGroupMemberAction | None = None
    delete: DeleteReplicationGroupMemberAction | None = None
    disassociate: DisassociateReplicationGroupMemberAction | None = None


class CreateGlobalTableWitnessGroupMemberAction(Shape, frozen=True, kw_only=True):
    """A witness to be added."""

    region_name: str


class DeleteGlobalTableWitnessGroupMemberAction(Shape, frozen=True, kw_only=True):
    """A witness to be removed."""

    region_name: str


class GlobalTableWitnessGroupUpdate(Shape, frozen=True, kw_only=True):
    """One change of a table's witness."""

    create: CreateGlobalTableWitnessGroupMemberAction | None = None
    delete: DeleteGlobalTableWitnessGroupMemberAction | None = None


class CreateVectorIndexAction(VectorIndex, frozen=True, kw_only=True):
    """A vector index to be built on a live table."""


class DeleteVectorIndexAction(Shape, frozen=True, kw_only=True):
    """A vector index to be dropped."""

    index_name: DefinedIndexName


class VectorIndexUpdate(Shape, frozen=True, kw_only=True):
    """One change of a table's vector indexes."""

    create: CreateVectorIndexAction | None = None
    delete: DeleteVectorIndexAction | None = None


class UpdateTableRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateTable."""

    attribute_definitions: list[AttributeDefinition] | None = None
    table_name: ControlTableName
    billing_mode: BillingMode | None = None
    provisioned_throughput: ProvisionedThroughput | None = None
    global_secondary_index_updates: list[GlobalSecondaryIndexUpdate] | None = None
    stream_specification: StreamSpecification | None = None
    sse_specification: SSESpecification | None = msgspec.field(name="SSESpecification", default=None)
    replica_updates: Annotated[list[ReplicationGroupUpdate], ONE_OR_MORE] | None = None
    table_class: str | None = None  # one of TABLE_CLASSES; checked separately, as AWS does
    deletion_protection_enabled: bool | None = None
    multi_region_consistency: MultiRegionConsistency | None = None
    global_table_witness_updates: (
        Annotated[list[GlobalTableWitnessGroupUpdate], msgspec.Meta(min_length=1, max_length=1)] | None
    ) = None
    on_demand_throughput: OnDemandThroughput | None = None
    warm_throughput: WarmThroughput | None = None
    global_table_settings_replication_mode: SettingsReplicationMode | None = None
    disassociation_protection_enabled: bool | None = None
    vector_index_updates: list[VectorIndexUpdate] | None = None


class DeleteTableRequest(Shape, frozen=True, kw_only=True):
    """The request of DeleteTable."""

    table_name: ControlTableName


class DescribeTableRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeTable."""

    table_name: ControlTableName


class ListTablesRequest(Shape, frozen=True, kw_only=True):
    """The request of ListTables."""

    limit: ListTablesLimit | None = None
    exclusive_start_table_name: StartTableName | None = None


class DescribeLimitsRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeLimits. It has no members."""


class DescribeEndpointsRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeEndpoints. It has no members."""


class TimeToLiveSpecification(Shape, frozen=True, kw_only=True):
    """The attribute with an item's expiry time, and whether expiry is enabled."""

    enabled: bool
    attribute_name: KeyAttributeName


class UpdateTimeToLiveRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateTimeToLive."""

    table_name: ControlTableName
    time_to_live_specification: TimeToLiveSpecification


class DescribeTimeToLiveRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeTimeToLive."""

    table_name: ControlTableName


def check_list(request: ListTablesRequest, wording: MessageStyle) -> None:
    """Refuse an invalid ExclusiveStartTableName."""
    start = request.exclusive_start_table_name
    if start is not None and not is_start_table(start):
        raise NameInvalid
