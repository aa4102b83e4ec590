"""IAM policies for each role, and a denial that protects immutable items.

IAM can distinguish partition keys but not sort keys. So everything immutable has its own partition keys, `model.IMMUTABLE_PREFIXES`, which
a policy can name. A policy cannot require a condition on a put: a role that may write history in a transaction can overwrite it
there, and every change replaces the current record. That is not prevented; `verification` says how much of it is detected.

A served application needs `projector`: it records, and it reads the table's stream. `service` is for a program that only records, such as an ingest.
Neither may create the table; the role that sets it up does, without the denial.
"""

from __future__ import annotations

from tavola.apps.policy_documents import PolicyDocument, policy_document, statement, table_arn
from tavola.apps.terraform_review.model import IMMUTABLE_PREFIXES, Reviews

_READS = ("GetItem", "BatchGetItem", "Query")
_REWRITES = (
    "UpdateItem",
    "DeleteItem",
    "BatchWriteItem",
    "PartiQLInsert",
    "PartiQLUpdate",
    "PartiQLDelete",
)
_TABLE_CHANGES = ("DeleteTable", "UpdateTimeToLive", "UpdateContinuousBackups")
_STREAM = ("DescribeStream", "GetShardIterator", "GetRecords")


def reader(region: str, account: str, table: str = Reviews.settings.name) -> PolicyDocument:
    """Return the policy of a reader: items by key and queries, on the table and its indexes; no scans, no writes."""
    arn = table_arn(table, region, account)
    return policy_document(
        statement("Look", _READS, arn), statement("LookByIndexes", ("Query",), f"{arn}/index/*")
    )


def service(region: str, account: str, table: str = Reviews.settings.name) -> PolicyDocument:
    """Return the policy of a recorder: it reads, and creates or replaces items in transactions; it deletes nothing."""
    return policy_document(
        *reader(region, account, table)["Statement"],
        statement(
            "Write", ("PutItem", "ConditionCheckItem", "DescribeTable"), table_arn(table, region, account)
        ),
        *immutability(region, account, table)["Statement"],
    )


def projector(region: str, account: str, table: str = Reviews.settings.name) -> PolicyDocument:
    """Return the policy of a server that also maintains the statistics: `service`, the stream, and scans for a rebuild."""
    arn = table_arn(table, region, account)
    return policy_document(
        *service(region, account, table)["Statement"],
        statement("ReadAll", ("Scan",), arn),
        statement("Follow", _STREAM, f"{arn}/stream/*"),
    )


def keeper(region: str, account: str, table: str = Reviews.settings.name) -> PolicyDocument:
    """Return the policy of a backup operator: creates and lists backups, and restores to tables of other names; deletes none."""
    arn = table_arn(table, region, account)
    return policy_document(
        statement("KeepBackups", ("CreateBackup", "ListBackups", "DescribeContinuousBackups", "DescribeTable"), arn),
        statement("LookAtBackups", ("DescribeBackup", "RestoreTableFromBackup"), f"{arn}/backup/*"),
        statement("Restore", ("RestoreTableToPointInTime",), arn),
        statement(
            "IntoAnother",
            ("RestoreTableToPointInTime", "RestoreTableFromBackup", "DescribeTable", "BatchWriteItem", "PutItem",
             "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan"),
            f"{arn}-restored-*",
        ),
    )  # fmt: skip


def immutability(region: str, account: str, table: str = Reviews.settings.name) -> PolicyDocument:
    """Return the denial for every role: immutable items cannot be updated or deleted, and can be put in transactions only.

    It also protects the table itself and its backups.
    """
    arn = table_arn(table, region, account)
    protected_keys = {
        "ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [f"{prefix}*" for prefix in IMMUTABLE_PREFIXES]}
    }
    outside_transaction = {"StringNotEquals": {"dynamodb:EnclosingOperation": "TransactWriteItems"}}
    return policy_document(
        statement("FactsAreNotRewritten", _REWRITES, arn, effect="Deny", condition=protected_keys),
        statement(
            "FactsComeWithTheirReview",
            ("PutItem",),
            arn,
            effect="Deny",
            condition={**protected_keys, **outside_transaction},
        ),
        statement("TheTableStays", _TABLE_CHANGES, arn, effect="Deny"),
        statement("BackupsStay", ("DeleteBackup",), f"{arn}/backup/*", effect="Deny"),
    )
