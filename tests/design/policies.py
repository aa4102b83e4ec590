"""Short builders for policies, beside those for designs."""

from __future__ import annotations

from typing import Any

from tavola.model.document import Policy


def allow(actions: str, *resources: str, **conditions: Any) -> dict[str, Any]:
    """A statement that allows actions, written without their service, on tables written without region and account."""
    return _statement("Allow", actions, resources, conditions)


def deny(actions: str, *resources: str, **conditions: Any) -> dict[str, Any]:
    """A statement that denies."""
    return _statement("Deny", actions, resources, conditions)


def policy(*statements: dict[str, Any], name: str = "app", tables: tuple[str, ...] = ()) -> Policy:
    """A policy of statements."""
    return Policy(name, {"Version": "2012-10-17", "Statement": list(statements)}, tables)


def leading(*keys: str, operator: str = "ForAllValues:StringLike", null: bool = True) -> dict[str, Any]:
    """A condition on the partition key, with the one that there must be a key unless `null` is False."""
    told: dict[str, Any] = {operator: {"dynamodb:LeadingKeys": list(keys)}}
    return {**told, **({"Null": {"dynamodb:LeadingKeys": "false"}} if null else {})}


def _statement(
    effect: str, actions: str, resources: tuple[str, ...], conditions: dict[str, Any]
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "Effect": effect,
        "Action": [name if ":" in name or name == "*" else f"dynamodb:{name}" for name in actions.split()],
        "Resource": [_arn(resource) for resource in resources],
    }
    return {**told, **({"Condition": conditions["when"]} if "when" in conditions else {})}


def _arn(resource: str) -> str:
    if resource == "*" or resource.startswith(("arn:", "$")):
        return resource
    return f"arn:aws:dynamodb:eu-west-1:111122223333:table/{resource}"
