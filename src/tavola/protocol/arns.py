"""Accounts, regions and ARNs: the scope that a request acts in, and the names of resources in it.

Nearly every TableName member accepts a name or an ARN; `table_name_of` returns the name of either. An access key of twelve
digits is the account itself; a key in AWS's format encodes its account; any other key has none.
"""

from __future__ import annotations

import base64
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
_ACCOUNT = re.compile(r"[0-9]{12}")
_AWS_KEY = re.compile(r"(?:AKIA|ASIA)([A-Z2-7]{16})")
_CARRIES_ACCOUNT = 1 << 47  # set in the first six bytes of keys made since 2019, which encode the account
_ACCOUNT_SHIFT = 7


class Scope(Struct, frozen=True):
    """An account and a region."""

    account: str
    region: str


DEFAULT_SCOPE = Scope(account="000000000000", region="us-east-1")
"""The account and region used when a request names none."""


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
        suffix = "" if self.label is None else f"/{self.kind}/{self.label}"
        table = f"{self.scope.region}:{self.scope.account}:table/{self.table}"
        return f"arn:{self.partition}:dynamodb:{table}{suffix}"


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
def _table_of_arn(text: str) -> str:
    arn = _TABLE_ARN.fullmatch(text)
    return text if arn is None else arn[4]


def table_name_of(name_or_arn: str) -> str:
    """Return the table's name from a name or an ARN."""
    return _table_of_arn(name_or_arn) if name_or_arn.startswith("arn:") else name_or_arn


def scope_of(name_or_arn: str) -> Scope | None:
    """Return the account and region of a table's ARN; None for a bare name."""
    arn = _TABLE_ARN.fullmatch(name_or_arn)
    return None if arn is None else Scope(account=arn[3], region=arn[2])


def parse_resource_arn(text: str) -> ResourceArn | None:
    """Return the parts of a DynamoDB ARN; None if the text is not one."""
    arn = _RESOURCE_ARN.fullmatch(text)
    if arn is None:
        return None
    partition, region, account, table, kind, label = arn.groups()
    return ResourceArn(partition, Scope(account, region), table, kind or "table", label)


def account_of_key(access_key: str) -> str | None:
    """Return the account encoded in an access key, None if it has none."""
    if _ACCOUNT.fullmatch(access_key):
        return access_key
    body = _AWS_KEY.fullmatch(access_key)
    if body is None:
        return None
    number = int.from_bytes(base64.b32decode(body[1])[:6], "big")
    if not number & _CARRIES_ACCOUNT:
        return None
    return f"{(number & ~_CARRIES_ACCOUNT) >> _ACCOUNT_SHIFT:012}"


def access_key_of(account: str, random: bytes, prefix: str = "AKIA") -> str:
    """Return an access key in AWS's format for an account; `random` is five random bytes."""
    tail = int.from_bytes(random, "big")
    number = _CARRIES_ACCOUNT | int(account) << _ACCOUNT_SHIFT | tail >> 33
    body = number.to_bytes(6, "big") + (tail & 0xFFFFFFFF).to_bytes(4, "big")
    return prefix + base64.b32encode(body).decode()
