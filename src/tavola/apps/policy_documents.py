"""The parts of an IAM policy document for DynamoDB tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

PolicyDocument: TypeAlias = dict[str, Any]


def policy_document(*statements: Mapping[str, Any]) -> PolicyDocument:
    """Return a policy of these statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def statement(
    sid: str,
    actions: Sequence[str],
    resources: str | Sequence[str],
    *,
    effect: str = "Allow",
    condition: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a statement about DynamoDB actions, which are named without their prefix."""
    members: dict[str, Any] = {
        "Sid": sid,
        "Effect": effect,
        "Action": [f"dynamodb:{action}" for action in actions],
        "Resource": resources if isinstance(resources, str) else list(resources),
    }
    return members if condition is None else {**members, "Condition": condition}


def table_arn(table: str, region: str, account: str) -> str:
    """Return the ARN of a table."""
    return f"arn:aws:dynamodb:{region}:{account}:table/{table}"
