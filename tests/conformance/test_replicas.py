"""Global tables: responses in a single region."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import OOM, refused, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

LEGACY = (
    f"{OOM}DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables "
    "version 2019.11.21, instead of version 2017.11.29 (Legacy)."
)


def test_legacy_global_tables_are_made_no_more(client: DynamoDBClient, tables: Tables) -> None:
    """AWS makes none in any region, nor adds a replica to one."""
    table = tables()
    group: Any = [{"RegionName": "us-east-1"}, {"RegionName": "us-west-2"}]

    made = refused(client.create_global_table, GlobalTableName=table, ReplicationGroup=group)
    grown = refused(client.update_global_table, GlobalTableName=table, ReplicaUpdates=[{"Create": group[0]}])

    assert (made.code, made.message) == ("ValidationException", LEGACY)
    assert (grown.code, grown.message) == ("ValidationException", LEGACY)


def test_no_legacy_global_table_is_found(client: DynamoDBClient, tables: Tables) -> None:
    """Neither the table itself nor its settings; a list has none."""
    table = tables()
    sentence = f"Global table with name: '{table}' does not exist."

    result = [
        refused(client.describe_global_table, GlobalTableName=table),
        refused(client.describe_global_table_settings, GlobalTableName=table),
        refused(
            client.update_global_table,
            GlobalTableName=table,
            ReplicaUpdates=[{"Delete": {"RegionName": "us-west-2"}}],
        ),
        refused(
            client.update_global_table_settings,
            GlobalTableName=table,
            GlobalTableBillingMode="PROVISIONED",
            GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate={
                "MinimumUnits": 1,
                "MaximumUnits": 10,
                "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}},
            },
        ),
    ]

    assert {each.code for each in result} == {"GlobalTableNotFoundException"}
    assert [each.message for each in result] == [f"Global table not found: {sentence}", *[sentence] * 3]
    listed: Any = client.list_global_tables(Limit=1, RegionName="us-east-1")
    assert listed["GlobalTables"] == []
    assert "LastEvaluatedGlobalTableName" not in listed


def test_an_update_of_nothing_is_refused(client: DynamoDBClient, tables: Tables) -> None:
    """AWS's message says only that the request is invalid."""
    result = refused(client.update_global_table, GlobalTableName=tables(), ReplicaUpdates=[])

    assert result.message == "One or more parameter values were invalid"


def test_replica_auto_scaling_needs_replicas(
    client: DynamoDBClient, tables: Tables, fresh: Callable[[], str]
) -> None:
    """A table of one region has none; a missing table is reported as such."""
    table, missing = tables(), fresh()
    sentence = f"Global table with name: {table} does not exist."

    described = refused(client.describe_table_replica_auto_scaling, TableName=table)
    updated = refused(
        client.update_table_replica_auto_scaling,
        TableName=table,
        ProvisionedWriteCapacityAutoScalingUpdate={"MinimumUnits": 1, "MaximumUnits": 2},
    )
    absent = refused(client.describe_table_replica_auto_scaling, TableName=missing)

    assert (described.code, described.message) == ("ResourceNotFoundException", sentence)
    assert (updated.code, updated.message) == ("ResourceNotFoundException", sentence)
    assert absent.message == f"Requested resource not found: Table: {missing} not found"


_ELSEWHERE = {"RegionName": "eu-west-1"}


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (
            {"ReplicaUpdates": [{"Create": _ELSEWHERE}]},
            (
                "Region eu-west-1 is not supported. The latest version of global tables are only supported in the "
                "following regions: [us-east-1]"
            ),
        ),
        (
            {"ReplicaUpdates": [{"Create": {"RegionName": "us-east-1"}}]},
            (
                "Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or "
                "UpdateTable as required."
            ),
        ),
        (
            {"ReplicaUpdates": [{"Delete": _ELSEWHERE}]},
            (
                "Update global table operation failed because one or more replicas were not part of the global table. "
                "Please retry the request without these replicas: [eu-west-1]."
            ),
        ),
        (
            {"ReplicaUpdates": [{"Update": {**_ELSEWHERE, "TableClassOverride": "STANDARD"}}]},
            (
                "Update global table operation failed because one or more replicas were not part of the global table. "
                "Please retry the request without these replicas: [eu-west-1]."
            ),
        ),
        (
            {"ReplicaUpdates": [{"Update": _ELSEWHERE}]},
            "There are no actions specified in the Replica Update Action of the request.",
        ),
        (
            {"ReplicaUpdates": [{}]},
            "There are no actions specified in the Replica Update Action of the request.",
        ),
        (
            {"ReplicaUpdates": [{"Create": _ELSEWHERE, "Delete": _ELSEWHERE}]},
            "Update table operation with more than one type of replica actions not allowed.",
        ),
        (
            {"ReplicaUpdates": [{"Create": _ELSEWHERE}, {"Create": {"RegionName": "eu-west-2"}}]},
            "Update table operation with more than one create or delete replica actions not allowed",
        ),
        (
            {"ReplicaUpdates": [{"Create": _ELSEWHERE}], "DeletionProtectionEnabled": True},
            f"{OOM}Replica modification must be the only operation in the request",
        ),
        (
            {"ReplicaUpdates": [{"Create": _ELSEWHERE}], "MultiRegionConsistency": "STRONG"},
            "Unsupported replica count for global tables with MultiRegionConsistency set to STRONG.",
        ),
        (
            {
                "ReplicaUpdates": [{"Create": _ELSEWHERE}],
                "GlobalTableWitnessUpdates": [{"Create": {"RegionName": "eu-west-2"}}],
            },
            "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present.",
        ),
        (
            {"GlobalTableSettingsReplicationMode": "ENABLED_WITH_OVERRIDES"},
            (
                "Value 'ENABLED_WITH_OVERRIDES' at 'GlobalTableSettingsReplicationMode' failed to satisfy constraint: "
                "Only ENABLED and DISABLED settings replication are supported for a Regional Table."
            ),
        ),
    ],
)
def test_replicas_are_refused_in_these_words(
    client: DynamoDBClient, tables: Tables, request_: dict[str, Any], sentence: str
) -> None:
    """AWS's own rules come first; requests that pass them need a region that does not exist here."""
    result = refused(client.update_table, TableName=tables(), **request_)

    assert (result.code, result.message) == ("ValidationException", sentence)


@pytest.mark.parametrize(
    "request_",
    [
        {"MultiRegionConsistency": "STRONG"},
        {"MultiRegionConsistency": "EVENTUAL"},
    ],
)
def test_a_consistency_alone_is_no_change(
    client: DynamoDBClient, tables: Tables, request_: dict[str, Any]
) -> None:
    """It belongs to replicas, and does not count as a change without them."""
    result = refused(client.update_table, TableName=tables(), **request_)

    assert result.message.startswith("At least one of ProvisionedThroughput, BillingMode")


def test_settings_replication_is_stored(client: DynamoDBClient, tables: Tables) -> None:
    """A regional table may declare how its settings will be replicated; by default it reports nothing."""
    table = tables()
    assert "GlobalTableSettingsReplicationMode" not in client.describe_table(TableName=table)["Table"]

    for mode in ("ENABLED", "ENABLED", "DISABLED"):
        client.update_table(TableName=table, GlobalTableSettingsReplicationMode=mode)
        described: Any = client.describe_table(TableName=table)["Table"]
        assert described["GlobalTableSettingsReplicationMode"] == mode


def test_a_regional_table_reports_no_replicas(client: DynamoDBClient, tables: Tables) -> None:
    """The members are absent, not empty."""
    described = client.describe_table(TableName=tables())["Table"]

    assert not {
        "Replicas",
        "GlobalTableVersion",
        "MultiRegionConsistency",
        "GlobalTableWitnesses",
    } & set(described)


def test_no_table_is_made_as_a_replica(client: DynamoDBClient, fresh: Callable[[], str]) -> None:
    """There is no other account's table to replicate."""
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/source"
    result = refused(client.create_table, **table_request(fresh(), "pk", GlobalTableSourceArn=arn))

    assert result.code == "ValidationException"
    assert arn in result.message
