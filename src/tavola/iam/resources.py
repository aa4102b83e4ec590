"""The ARNs and owners of the resources that requests access."""

from __future__ import annotations

from msgspec.structs import replace

from tavola.protocol.arns import Scope, parse_resource_arn, table_arn
from tavola.protocol.resources import GuardResources, TableFacts


def table_of(name_or_arn: str, resources: GuardResources, scope: Scope) -> tuple[str, TableFacts | None]:
    """Return the ARN of a table, and its facts if it exists."""
    facts = resources.facts(name_or_arn)
    if facts is not None:
        return facts.arn, facts
    return (
        canonical_arn(name_or_arn) if name_or_arn.startswith("arn:") else table_arn(scope, name_or_arn)
    ), None


def canonical_arn(arn: str) -> str:
    """Return an ARN with the partition `aws`, so that other spellings cannot bypass a policy."""
    parts = parse_resource_arn(arn)
    return arn if parts is None else replace(parts, partition="aws").text


def owner_of(resource: str) -> str | None:
    """Return the account in an ARN; None for `*`, which means the caller's own."""
    parts = resource.split(":", 5)
    return parts[4] if len(parts) == 6 and parts[4] else None
