"""What each identity may do, as IAM has it; and the denial that keeps facts as they were written, whoever asks.

IAM tells partition keys apart and not sort keys. So everything that is never written again has partition keys of its own,
`model.IMMUTABLE_PREFIXES`, and a policy can name them. What it cannot ask for is a condition in a put: who may write history in a transaction
may write over it or add to it there, and the current record is replaced by each change. That is not prevented, and it is found as far as `verification` says.

A served application needs `projector`: it records, and it follows the table's stream. `service` is for who records alone, such as an ingest. Neither
makes the table: that is for who sets it up, without the denial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tavola.apps.terraform_review.model import IMMUTABLE_PREFIXES, Reviews

Policy = dict[str, Any]

_READS = ("GetItem", "BatchGetItem", "Query")
_REWRITES = (
    "UpdateItem",
    "DeleteItem",
    "BatchWriteItem",
    "PartiQLInsert",
    "PartiQLUpdate",
    "PartiQLDelete",
)
_ENDINGS = ("DeleteTable", "UpdateTimeToLive", "UpdateContinuousBackups")  # of everything at once
_STREAM = ("DescribeStream", "GetShardIterator", "GetRecords")


def reader(region: str, account: str, table: str = Reviews.settings.name) -> Policy:
    """Return the policy of who looks: items by key and queries, of the table and its indexes; no scan, no write."""
    arn = _arn(region, account, table)
    return _policy(_allow("Look", _READS, arn), _allow("LookByIndexes", ("Query",), f"{arn}/index/*"))


def service(region: str, account: str, table: str = Reviews.settings.name) -> Policy:
    """Return the policy of who records: it reads, and creates or replaces in transactions; it deletes nothing."""
    return _policy(
        *reader(region, account, table)["Statement"],
        _allow("Write", ("PutItem", "ConditionCheckItem", "DescribeTable"), _arn(region, account, table)),
        *immutability(region, account, table)["Statement"],
    )


def projector(region: str, account: str, table: str = Reviews.settings.name) -> Policy:
    """Return the policy of a server, which also keeps the statistics: what `service` may, the stream, and the scan of a rebuild."""
    arn = _arn(region, account, table)
    return _policy(
        *service(region, account, table)["Statement"],
        _allow("ReadAll", ("Scan",), arn),
        _allow("Follow", _STREAM, f"{arn}/stream/*"),
    )


def keeper(region: str, account: str, table: str = Reviews.settings.name) -> Policy:
    """Return the policy of who keeps backups: made and listed, and restored to tables of other names; none is deleted."""
    arn = _arn(region, account, table)
    return _policy(
        _allow("KeepBackups", ("CreateBackup", "ListBackups", "DescribeContinuousBackups", "DescribeTable"), arn),
        _allow("LookAtBackups", ("DescribeBackup", "RestoreTableFromBackup"), f"{arn}/backup/*"),
        _allow("Restore", ("RestoreTableToPointInTime",), arn),
        _allow(
            "IntoAnother",
            ("RestoreTableToPointInTime", "RestoreTableFromBackup", "DescribeTable", "BatchWriteItem", "PutItem",
             "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan"),
            f"{arn}-restored-*",
        ),
    )  # fmt: skip


def immutability(region: str, account: str, table: str = Reviews.settings.name) -> Policy:
    """Return the denial for everybody: facts are neither updated nor deleted, and are put in transactions alone; the table and its backups stay."""
    arn = _arn(region, account, table)
    leading = {
        "ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [f"{prefix}*" for prefix in IMMUTABLE_PREFIXES]}
    }
    outside = {"StringNotEquals": {"dynamodb:EnclosingOperation": "TransactWriteItems"}}
    return _policy(
        _statement("FactsAreNotRewritten", "Deny", _REWRITES, arn, leading),
        _statement("FactsComeWithTheirReview", "Deny", ("PutItem",), arn, {**leading, **outside}),
        _statement("TheTableStays", "Deny", _ENDINGS, arn),
        _statement("BackupsStay", "Deny", ("DeleteBackup",), f"{arn}/backup/*"),
    )


def _arn(region: str, account: str, table: str) -> str:
    return f"arn:aws:dynamodb:{region}:{account}:table/{table}"


def _policy(*statements: dict[str, Any]) -> Policy:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(sid: str, actions: Sequence[str], resource: str) -> dict[str, Any]:
    return _statement(sid, "Allow", actions, resource)


def _statement(
    sid: str, effect: str, actions: Sequence[str], resource: str, condition: dict[str, Any] | None = None
) -> dict[str, Any]:
    told = {
        "Sid": sid,
        "Effect": effect,
        "Action": [f"dynamodb:{action}" for action in actions],
        "Resource": resource,
    }
    return told if condition is None else {**told, "Condition": condition}
