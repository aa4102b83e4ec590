"""ARNs of tables, indexes, streams, backups and transfers.

Nearly every TableName member accepts a name or an ARN; `table_name_of` returns the name of either.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

_NAME = r"[a-zA-Z0-9_.-]{3,255}"
_TABLE_ARN = re.compile(rf"arn:(aws[a-z-]*):dynamodb:([a-z0-9-]+):([0-9]+):table/({_NAME})")
_RESOURCE_ARN = re.compile(
    rf"arn:(aws[a-z-]*):dynamodb:([a-z0-9-]+):([0-9]+):table/({_NAME})"
    rf"(?:/(index|stream|backup|export|import|bulk-operation)/(.+))?"
)

_PARTITIONS = (
    ("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"), ("us-isob-", "aws-iso-b"), ("us-isof-", "aws-iso-f"),
    ("eu-isoe-", "aws-iso-e"), ("us-iso-", "aws-iso"), ("eusc-", "aws-eusc"),
)  # fmt: skip


class Scope(Struct, frozen=True):
    """An account and a region."""

    account: str
    region: str


class ResourceArn(Struct, frozen=True):
    """A parsed DynamoDB ARN; `kind` is "table", or the kind of resource that belongs to the table."""

    partition: str
    scope: Scope
    table: str
    kind: str
    label: str | None  # index name, stream label or backup id; None for a table

    @property
    def text(self) -> str:
        """Return the ARN as text."""
        hung = "" if self.label is None else f"/{self.kind}/{self.label}"
        return (
            f"arn:{self.partition}:dynamodb:{self.scope.region}:{self.scope.account}:table/{self.table}{hung}"
        )


def partition_of(region: str) -> str:
    """Return the AWS partition of a region (`aws` for an unknown one)."""
    for prefix, partition in _PARTITIONS:
        if region.startswith(prefix):
            return partition
    return "aws"


def table_arn(scope: Scope, name: str) -> str:
    """Return the ARN of a table."""
    return f"arn:aws:dynamodb:{scope.region}:{scope.account}:table/{name}"


def index_arn(scope: Scope, table: str, index: str) -> str:
    """Return the ARN of a secondary index."""
    return f"{table_arn(scope, table)}/index/{index}"


def stream_arn(scope: Scope, table: str, label: str) -> str:
    """Return the ARN of a stream; the label is the time at which it was enabled."""
    return f"{table_arn(scope, table)}/stream/{label}"


def backup_arn(scope: Scope, table: str, backup: str) -> str:
    """Return the ARN of an on-demand backup."""
    return f"{table_arn(scope, table)}/backup/{backup}"


def export_arn(scope: Scope, table: str, export: str) -> str:
    """Return the ARN of an export."""
    return f"{table_arn(scope, table)}/export/{export}"


def import_arn(scope: Scope, table: str, job: str) -> str:
    """Return the ARN of an import."""
    return f"{table_arn(scope, table)}/import/{job}"


def bulk_arn(scope: Scope, table: str, job: str) -> str:
    """Return the ARN of a bulk operation."""
    return f"{table_arn(scope, table)}/bulk-operation/{job}"


def is_table_arn(text: str) -> bool:
    """Return whether a text is the ARN of a table, not of a resource that belongs to one."""
    return _TABLE_ARN.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _named(text: str) -> str:
    found = _TABLE_ARN.fullmatch(text)
    return text if found is None else found[4]


def table_name_of(name_or_arn: str) -> str:
    """Return the table's name from a name or an ARN."""
    return _named(name_or_arn) if name_or_arn.startswith("arn:") else name_or_arn


def scope_of(name_or_arn: str) -> Scope | None:
    """Return the account and region of a table's ARN; None for a bare name."""
    found = _TABLE_ARN.fullmatch(name_or_arn)
    return None if found is None else Scope(account=found[3], region=found[2])


def parse_resource_arn(text: str) -> ResourceArn | None:
    """Return the parts of a DynamoDB ARN; None if the text is not one."""
    found = _RESOURCE_ARN.fullmatch(text)
    if found is None:
        return None
    partition, region, account, table, kind, label = found.groups()
    return ResourceArn(partition, Scope(account, region), table, kind or "table", label)
