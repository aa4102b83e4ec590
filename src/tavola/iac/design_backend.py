"""Standing: a former design as if its tables were there, so that two designs are held against each other as a design and a table are.

It answers what DynamoDB would be asked to compare a table, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.client.table_changes import Blueprint, table_request
from tavola.model.document import Design, TableDesign
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import table_arn, table_name_of
from tavola.protocol.faults import ResourceNotFoundFault


def blueprint_of(table: TableDesign, name: str | None = None) -> Blueprint:
    """Return what DynamoDB is told of a table of a design, by the name that it has there."""
    return Blueprint(name or table.name, table.label, table.settings, table.key_types, table.indexes)


class DesignBackend:
    """A backend of tables that a design describes; it has no items."""

    def __init__(self, design: Design, names: Mapping[str, str] | None = None) -> None:
        told = names or {}
        self._tables = {told.get(table.name, table.name): table for table in design.tables}

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what DynamoDB would tell of a table."""
        name = table_name_of(str(request.get("TableName") or request.get("ResourceArn", "")))
        table = self._tables.get(name)
        if table is None:
            raise ResourceNotFoundFault(f"Requested resource not found: Table: {name} not found")
        settings = table.settings
        match operation:
            case "DescribeTable":
                return {"Table": _describe_table(blueprint_of(table, name))}
            case "DescribeTimeToLive":
                on = {"TimeToLiveStatus": "ENABLED", "AttributeName": settings.ttl}
                return {"TimeToLiveDescription": on if settings.ttl else {"TimeToLiveStatus": "DISABLED"}}
            case "DescribeContinuousBackups":
                kept: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
                if settings.recovery:
                    days = settings.recovery_days
                    kept = {"PointInTimeRecoveryStatus": "ENABLED", "RecoveryPeriodInDays": days}
                return {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": kept}}
            case "ListTagsOfResource":
                return {"Tags": [{"Key": key, "Value": value} for key, value in settings.tags.items()]}
            case _:
                raise AssertionError(f"{operation} is asked of a design")

    def close(self) -> None:
        """Let go of nothing: there is nothing open."""


def _describe_table(table: Blueprint) -> dict[str, Any]:
    """Return the description of a table that was made by what its design asks for."""
    made = table_request(table)
    told: dict[str, Any] = {
        "TableArn": table_arn(DEFAULT_SCOPE, table.name),
        "TableStatus": "ACTIVE",
        "BillingModeSummary": {"BillingMode": made["BillingMode"]},
        "TableClassSummary": {"TableClass": made["TableClass"]},
    }
    kept = (
        "TableName", "KeySchema", "AttributeDefinitions", "ProvisionedThroughput", "StreamSpecification",
        "DeletionProtectionEnabled", "LocalSecondaryIndexes",
    )  # fmt: skip
    told |= {name: made[name] for name in kept if name in made}
    told["GlobalSecondaryIndexes"] = [
        {**index, "IndexStatus": "ACTIVE"} for index in made.get("GlobalSecondaryIndexes", ())
    ]
    if "SSESpecification" in made:  # by what the design calls the key
        told["SSEDescription"] = {"Status": "ENABLED", "KMSMasterKeyArn": table.settings.encryption}
    return told
