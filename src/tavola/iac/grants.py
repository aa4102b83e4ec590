"""Permissions as data, from which every vendor's policy syntax is rendered.

A grant refers to tables, indexes and streams by their names in the design; each writer spells such a reference in its own way: as an ARN,
a reference within the template, or an interpolation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tavola.protocol.arns import ResourceArn, Scope, partition_of

Effect = Literal["Allow", "Deny"]
Part = Literal["table", "index", "stream", "backup"]
RoleKind = Literal["reader", "writer", "service", "tenant", "consumer", "keeper", "founder"]

VERSION = "2012-10-17"
EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table of the design, one of its indexes, its stream or its backups."""

    table: str  # its name in the design
    part: Part = "table"
    index: str = ""

    def __str__(self) -> str:
        match self.part:
            case "table":
                return self.table
            case "index":
                return f"{self.table}/index/{self.index}"
            case _:
                return f"{self.table}/{self.part}/*"


ANYWHERE = TableReference(EVERYTHING)  # for actions that IAM knows no narrower resource of


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """A condition of a statement: an operator, a condition key and the allowed values."""

    operator: str
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """Actions on resources that are allowed or denied under conditions, with the access patterns that need them."""

    sid: str
    actions: tuple[str, ...]  # such as dynamodb:GetItem
    references: tuple[TableReference, ...]
    conditions: tuple[PolicyCondition, ...] = ()
    reasons: tuple[str, ...] = ()
    effect: Effect = "Allow"


# DynamoDB answers over plain HTTP too.
ONLY_OVER_TLS = Grant(
    "OnlyOverTls",
    ("dynamodb:*",),
    (ANYWHERE,),
    (PolicyCondition("Bool", "aws:SecureTransport", ("false",)),),
    ("nothing goes in clear",),
    "Deny",
)


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """The permissions of one role."""

    role: str  # such as reader, or consumer-numbers
    kind: RoleKind
    description: str
    grants: tuple[Grant, ...]
    consumer: str = ""  # whose role it is, of a stream
    stream: str = ""  # the table whose stream that reads
    notes: tuple[str, ...] = ()  # what no policy can tell apart, or was left out

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it concerns, in order."""
        named = (reference.table for grant in self.grants for reference in grant.references)
        return tuple(dict.fromkeys(name for name in named if name != EVERYTHING))


def render_document(policy: RolePolicy, arn: Callable[[TableReference], Any]) -> dict[str, Any]:
    """Return a policy document, with each resource spelled by `arn`."""
    return {"Version": VERSION, "Statement": [render_statement(grant, arn) for grant in policy.grants]}


def render_statement(grant: Grant, arn: Callable[[TableReference], Any]) -> dict[str, Any]:
    """Return a grant as a policy statement."""
    statement: dict[str, Any] = {
        "Sid": grant.sid,
        "Effect": grant.effect,
        "Action": list(grant.actions),
        "Resource": [arn(reference) for reference in grant.references],
    }
    if grant.conditions:
        statement["Condition"] = render_conditions(grant)
    return statement


def render_conditions(grant: Grant) -> dict[str, dict[str, Any]]:
    """Return the conditions of a grant as IAM expects them: by operator, then by key."""
    conditions: dict[str, dict[str, Any]] = {}
    for condition in grant.conditions:
        values = condition.values[0] if _is_single_value(condition) else list(condition.values)
        conditions.setdefault(condition.operator, {})[condition.key] = values
    return conditions


def render_policy(
    policy: RolePolicy, *, region: str = "*", account: str = "*", names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a policy document with complete ARNs; `names` maps design names to deployed table names."""

    def arn(reference: TableReference) -> str:
        if reference == ANYWHERE:
            return EVERYTHING
        name = (names or {}).get(reference.table, reference.table)
        suffix = {"table": None, "index": reference.index}.get(reference.part, EVERYTHING)
        return ResourceArn(partition_of(region), Scope(account, region), name, reference.part, suffix).text

    return render_document(policy, arn)


def _is_single_value(condition: PolicyCondition) -> bool:
    """Return whether a condition has a plain value instead of a list."""
    return len(condition.values) == 1 and not condition.operator.startswith("For")
