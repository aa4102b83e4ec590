"""Role policies as managed policies, split where they would exceed IAM's size limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tavola.iac.errors import PlanRefused
from tavola.iac.grants import (
    ANYWHERE,
    EVERYTHING,
    VERSION,
    Grant,
    RolePolicy,
    TableReference,
    render_statement,
)

POLICY_CHARACTERS_MAX = 6144  # of a managed policy, white space not counted (IAM quotas)
POLICIES_OF_A_ROLE = 10  # that may be attached to one, unless AWS was asked for more (IAM quotas)
# The longest that an ARN of DynamoDB comes to before and behind what the design says.
_BEFORE = "arn:aws-us-gov:dynamodb:ap-southeast-1:123456789012:table/"
_BEHIND = {"table": "", "index": "", "stream": "2026-01-01T00:00:00.000", "backup": "", "key": ""}
_EMPTY = len(json.dumps({"Version": VERSION, "Statement": []}, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """A managed policy of a role; a policy that is too long becomes several."""

    name: str
    description: str
    grants: tuple[Grant, ...]


def plan_policies(roles: Iterable[RolePolicy]) -> Iterator[PolicyPlan]:
    """Yield the managed policies of roles. The deploying role needs none: it is the one that applies the plan."""
    for role in roles:
        if role.kind in ("consumer", "founder"):
            continue
        parts = list(split_policy(PolicyPlan(role.role, role.description, role.grants)))
        for number, part in enumerate(parts, 1):
            yield part if len(parts) == 1 else replace(part, name=f"{role.role}-{number}")


def split_policy(policy: PolicyPlan) -> Iterator[PolicyPlan]:
    """Split a policy that is too long for AWS; each part allows its share and denies what the whole denies."""
    refusals = tuple(grant for grant in policy.grants if grant.effect == "Deny")
    limit = POLICY_CHARACTERS_MAX - count_characters(refusals)
    part: list[Grant] = []
    for grant in policy.grants:
        if grant.effect == "Deny":
            continue
        for piece in _split_grant(policy.name, grant, limit):
            if part and count_characters((*part, piece)) - _EMPTY > limit:
                yield replace(policy, grants=(*part, *refusals))
                part = []
            part.append(piece)
    if part:
        yield replace(policy, grants=(*part, *refusals))


def count_characters(grants: Iterable[Grant]) -> int:
    """Return the maximum length of grants as a document; AWS does not count white space."""
    statements = [
        json.dumps(render_statement(grant, _longest_arn), separators=(",", ":")) for grant in grants
    ]
    return _EMPTY + sum(map(len, statements)) + max(0, len(statements) - 1)


def _longest_arn(reference: TableReference) -> str:
    return EVERYTHING if reference == ANYWHERE else f"{_BEFORE}{reference}{_BEHIND[reference.part]}"


def _split_grant(role: str, grant: Grant, room: int) -> Iterator[Grant]:
    """Split a statement that is too long by its resources, then by its actions: each request concerns one of each."""
    if count_characters((grant,)) <= room:
        yield grant
    elif len(grant.references) > 1:
        yield from _halve_grant(role, grant, room, "references")
    elif len(grant.actions) > 1:
        yield from _halve_grant(role, grant, room, "actions")
    else:
        length = count_characters((grant,)) - _EMPTY
        raise PlanRefused(
            f"the role {role}",
            f"its statement {grant.sid} comes to {length:,} characters, and a managed policy has {POLICY_CHARACTERS_MAX:,}; give the "
            "entity fewer attributes or shorter names, or leave the policies out with --no-policies",
        )


def _halve_grant(role: str, grant: Grant, room: int, word: str) -> Iterator[Grant]:
    values = getattr(grant, word)
    middle = len(values) // 2
    for number, half in enumerate((values[:middle], values[middle:]), 1):
        yield from _split_grant(role, replace(grant, sid=f"{grant.sid}Part{number}", **{word: half}), room)
