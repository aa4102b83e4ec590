"""Permissions as data, from which the policies of every output format are rendered.

A grant refers to tables, indexes and streams by their names in the design; each writer spells such a reference in its own way: as an ARN,
a reference within the template, or an interpolation. A role's grants become one managed policy, or several if one would exceed AWS's limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.iac.errors import PlanError
from tavola.protocol.arns import ResourceArn, Scope, partition_of

Effect = Literal["Allow", "Deny"]
Part = Literal["table", "index", "stream", "backup"]
RoleKind = Literal["reader", "writer", "service", "tenant", "consumer", "backup", "deployer"]

VERSION = "2012-10-17"
EVERYTHING = "*"
POLICY_CHARACTERS_MAX = 6144  # per managed policy, not counting white space (IAM quotas)
ROLE_POLICIES_MAX = 10  # attached to a role, by default (IAM quotas)
# The longest text before and after the names in a DynamoDB ARN.
_LONGEST_PREFIX = "arn:aws-us-gov:dynamodb:ap-southeast-1:123456789012:table/"
_LONGEST_SUFFIX = {"table": "", "index": "", "stream": "2026-01-01T00:00:00.000", "backup": "", "key": ""}
_EMPTY = len(json.dumps({"Version": VERSION, "Statement": []}, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class ResourceReference:
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


ANYWHERE = ResourceReference(EVERYTHING)  # for actions that IAM cannot restrict to a table


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
    references: tuple[ResourceReference, ...]
    conditions: tuple[PolicyCondition, ...] = ()
    reasons: tuple[str, ...] = ()
    effect: Effect = "Allow"


# DynamoDB also accepts plain HTTP.
ONLY_OVER_TLS = Grant(
    "OnlyOverTls",
    ("dynamodb:*",),
    (ANYWHERE,),
    (PolicyCondition("Bool", "aws:SecureTransport", ("false",)),),
    ("deny requests without TLS",),
    "Deny",
)


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """The permissions of one role."""

    role: str  # such as reader, or consumer-numbers
    kind: RoleKind
    description: str
    grants: tuple[Grant, ...]
    consumer: str = ""  # the stream consumer whose role it is
    stream: str = ""  # the table whose stream it reads
    notes: tuple[str, ...] = ()  # what a policy cannot express, or what was left out

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it concerns, in order."""
        tables = (reference.table for grant in self.grants for reference in grant.references)
        return tuple(dict.fromkeys(name for name in tables if name != EVERYTHING))


def render_document(policy: RolePolicy, arn: Callable[[ResourceReference], Any]) -> dict[str, Any]:
    """Return a policy document, with each resource spelled by `arn`."""
    return {"Version": VERSION, "Statement": [render_statement(grant, arn) for grant in policy.grants]}


def render_statement(grant: Grant, arn: Callable[[ResourceReference], Any]) -> dict[str, Any]:
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
        single = len(condition.values) == 1 and not condition.operator.startswith("For")
        values = condition.values[0] if single else list(condition.values)
        conditions.setdefault(condition.operator, {})[condition.key] = values
    return conditions


def render_policy(
    policy: RolePolicy, *, region: str = "*", account: str = "*", names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a policy document with complete ARNs; `names` maps design names to deployed table names."""

    def arn(reference: ResourceReference) -> str:
        if reference == ANYWHERE:
            return EVERYTHING
        name = (names or {}).get(reference.table, reference.table)
        suffix = {"table": None, "index": reference.index}.get(reference.part, EVERYTHING)
        return ResourceArn(partition_of(region), Scope(account, region), name, reference.part, suffix).text

    return render_document(policy, arn)


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """A managed policy of a role; a policy that is too long becomes several."""

    name: str
    description: str
    grants: tuple[Grant, ...]


def plan_policies(roles: Iterable[RolePolicy]) -> Iterator[PolicyPlan]:
    """Yield the managed policies of roles, except consumers and the deployer, which applies the plan itself."""
    for role in roles:
        if role.kind in ("consumer", "deployer"):
            continue
        parts = list(split_policy(PolicyPlan(role.role, role.description, role.grants)))
        for number, part in enumerate(parts, 1):
            yield part if len(parts) == 1 else replace(part, name=f"{role.role}-{number}")


def split_policy(policy: PolicyPlan) -> Iterator[PolicyPlan]:
    """Split a policy that is too long for AWS: each part has some of the Allow statements and all Deny statements."""
    denials = tuple(grant for grant in policy.grants if grant.effect == "Deny")
    limit = POLICY_CHARACTERS_MAX - count_characters(denials)
    part: list[Grant] = []
    for grant in policy.grants:
        if grant.effect == "Deny":
            continue
        for piece in _split_grant(policy.name, grant, limit):
            if part and count_characters((*part, piece)) - _EMPTY > limit:
                yield replace(policy, grants=(*part, *denials))
                part = []
            part.append(piece)
    if part:
        yield replace(policy, grants=(*part, *denials))


def count_characters(grants: Iterable[Grant]) -> int:
    """Return the maximum length of grants as a document; AWS does not count white space."""
    statements = [
        json.dumps(render_statement(grant, _longest_arn), separators=(",", ":")) for grant in grants
    ]
    return _EMPTY + sum(map(len, statements)) + max(0, len(statements) - 1)


def _longest_arn(reference: ResourceReference) -> str:
    return (
        EVERYTHING
        if reference == ANYWHERE
        else f"{_LONGEST_PREFIX}{reference}{_LONGEST_SUFFIX[reference.part]}"
    )


def _split_grant(role: str, grant: Grant, limit: int) -> Iterator[Grant]:
    """Split a statement that is too long by its resources, then by its actions; a request has one of each, so the parts allow the same."""
    if count_characters((grant,)) <= limit:
        yield grant
    elif len(grant.references) > 1:
        yield from _halve_grant(role, grant, limit, "references")
    elif len(grant.actions) > 1:
        yield from _halve_grant(role, grant, limit, "actions")
    else:
        length = count_characters((grant,)) - _EMPTY
        raise PlanError(
            f"role {role}",
            f"statement {grant.sid} has {length:,} characters, the limit of a managed policy is {POLICY_CHARACTERS_MAX:,}; give the "
            "entity fewer attributes or shorter names, or omit the policies with --no-policies",
        )


def _halve_grant(role: str, grant: Grant, limit: int, member: str) -> Iterator[Grant]:
    values = getattr(grant, member)
    middle = len(values) // 2
    for number, half in enumerate((values[:middle], values[middle:]), 1):
        yield from _split_grant(role, replace(grant, sid=f"{grant.sid}Part{number}", **{member: half}), limit)
