"""A backend that answers as if the tables of a design existed, so that two designs are compared like a design and a deployed table.

It answers only the operations that the comparison uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.client.table_changes import Blueprint, table_request
from tavola.model.document import Design, TableDesign
from tavola.protocol.arns import DEFAULT_SCOPE, table_arn, table_name_of
from tavola.protocol.faults import ResourceNotFoundFault


def blueprint_of(table: TableDesign, name: str | None = None) -> Blueprint:
    """Return the table of a design in the form that the client compares and creates, under the name it has in DynamoDB."""
    return Blueprint(name or table.name, table.label, table.settings, table.key_types, table.indexes)


class DesignBackend:
    """A backend whose tables are those of a design; it has no items."""

    def __init__(self, design: Design, names: Mapping[str, str] | None = None) -> None:
        names_by_design = names or {}
        self._tables = {names_by_design.get(table.name, table.name): table for table in design.tables}

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what DynamoDB would answer about a table."""
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
                recovery: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
                if settings.recovery:
                    days = settings.recovery_days
                    recovery = {"PointInTimeRecoveryStatus": "ENABLED", "RecoveryPeriodInDays": days}
                return {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": recovery}}
            case "ListTagsOfResource":
                return {"Tags": [{"Key": key, "Value": value} for key, value in settings.tags.items()]}
            case _:
                raise AssertionError(f"a design does not answer {operation}")

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _describe_table(table: Blueprint) -> dict[str, Any]:
    """Return the DescribeTable output of a table created from this blueprint."""
    request = table_request(table)
    description: dict[str, Any] = {
        "TableArn": table_arn(DEFAULT_SCOPE, table.name),
        "TableStatus": "ACTIVE",
        "BillingModeSummary": {"BillingMode": request["BillingMode"]},
        "TableClassSummary": {"TableClass": request["TableClass"]},
    }
    copied = (
        "TableName", "KeySchema", "AttributeDefinitions", "ProvisionedThroughput", "StreamSpecification",
        "DeletionProtectionEnabled", "LocalSecondaryIndexes",
    )  # fmt: skip
    description |= {name: request[name] for name in copied if name in request}
    description["GlobalSecondaryIndexes"] = [
        {**index, "IndexStatus": "ACTIVE"} for index in request.get("GlobalSecondaryIndexes", ())
    ]
    if "SSESpecification" in request:  # with the key's name in the design
        description["SSEDescription"] = {"Status": "ENABLED", "KMSMasterKeyArn": table.settings.encryption}
    return description
