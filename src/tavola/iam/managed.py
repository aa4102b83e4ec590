"""The AWS managed policies about DynamoDB, reduced to their DynamoDB statements."""

from __future__ import annotations

from typing import Any


def _allowing(*actions: str) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}],
    }


MANAGED: dict[str, dict[str, Any]] = {
    "AdministratorAccess": _allowing("*"),
    "AmazonDynamoDBFullAccess": _allowing("dynamodb:*"),
    "AmazonDynamoDBReadOnlyAccess": _allowing(
        "dynamodb:BatchGetItem",
        "dynamodb:Describe*",
        "dynamodb:Get*",
        "dynamodb:List*",
        "dynamodb:PartiQLSelect",
        "dynamodb:Query",
        "dynamodb:Scan",
    ),
}
"""By their AWS name, under which they can be attached without being defined."""
