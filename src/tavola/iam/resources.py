"""Resources: what the guard may ask of whoever keeps the tables, and the names of what a request touches."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tavola.protocol.arns import Scope, parse_resource_arn, table_arn
from tavola.protocol.resources import TableFacts


class Resources(Protocol):
    """What is known of tables and streams; the engine gives it."""

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return what is known of the table that a request names; None if there is none."""
        ...

    def iterator_stream(self, iterator: str) -> str | None:
        """Return the ARN of the stream that a shard iterator reads; None if it is no iterator."""
        ...


def table_of(name_or_arn: str, resources: Resources, scope: Scope) -> tuple[str, TableFacts | None]:
    """Return the ARN of a table that a request names, and what is known of it if it is there."""
    facts = resources.facts(name_or_arn)
    if facts is not None:
        return facts.arn, facts
    return (canonical(name_or_arn) if name_or_arn.startswith("arn:") else table_arn(scope, name_or_arn)), None


def canonical(arn: str) -> str:
    """Return an ARN in the one partition there is, so that no other spelling gets past a policy."""
    parts = parse_resource_arn(arn)
    return arn if parts is None else replace(parts, partition="aws").text


def owner_of(resource: str) -> str | None:
    """Return the account that an ARN names; None for `*`, which is the caller's own."""
    parts = resource.split(":", 5)
    return parts[4] if len(parts) == 6 and parts[4] else None
