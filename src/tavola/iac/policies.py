"""Derive least-privilege policies for each role of a design from its access patterns.

A reader may run every read pattern, a writer every write, a service both, a tenant whatever its own partition keys allow. Reading a stream, making
backups and creating tables are roles of their own. Nothing is allowed that no pattern needs: no Scan unless a need uses one, no update of
immutable entities, no index by wildcard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tavola.client.table_changes import AWS_KEY, OWN_KEY
from tavola.iac.grants import (
    ANYWHERE,
    ONLY_OVER_TLS,
    Grant,
    PolicyCondition,
    ResourceReference,
    RoleKind,
    RolePolicy,
    render_document,
    render_policy,
)
from tavola.iac.pattern_actions import consumer_actions, list_pattern_actions
from tavola.iac.required_actions import (
    ANY,
    LEADING_KEYS,
    LeadingKeys,
    PatternActions,
    RequiredAction,
    covers,
    is_exact,
    leading_keys,
    list_unbounded_keys,
)
from tavola.model.document import Consumer, Design, EntityDesign, TableDesign

__all__ = [
    "ANYWHERE",
    "Grant",
    "PolicyCondition",
    "ResourceReference",
    "RoleKind",
    "RolePolicy",
    "derive_policies",
    "render_document",
    "render_policy",
]

_NOT_WHOSE = "it also uses a key that does not contain the tenant"
_STREAM_ACTIONS = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
_DEPLOY_ACTIONS = tuple(
    """
    CreateTable DescribeContinuousBackups DescribeTable DescribeTimeToLive ListTagsOfResource
    TagResource UntagResource UpdateContinuousBackups UpdateTable UpdateTimeToLive
    """.split()
)
_BACKUP_ACTIONS = ("CreateBackup", "DescribeContinuousBackups", "DescribeTable")
_WORDS = {
    "Read": {"GetItem", "BatchGetItem", "ConditionCheckItem"},
    "Query": {"Query"},
    "Scan": {"Scan"},
    "Write": {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem"},
}


def derive_policies(
    design: Design, *, narrow: bool | None = None, tls: bool = True
) -> tuple[RolePolicy, ...]:
    """Return the policies of every role of a design; `narrow` is passed to `list_pattern_actions`.

    Each denies requests without TLS, unless `tls` is False for a local server that speaks plain HTTP.
    """
    requests = list_pattern_actions(design, narrow=narrow)
    reads = [each for each in requests if each.kind == "read"]
    writes = [each for each in requests if each.kind == "write"]
    own = [each for each in requests if each.is_tenant_scoped]
    policies = [
        _plan_role(design, "reader", "Runs every read pattern of the design; no writes.", reads),
        _plan_role(
            design, "writer", "Runs every write of the design, with the reads that these need.", writes
        ),
        _plan_role(design, "service", "Runs every access pattern of the design.", requests),
        _tenant_role(design, own, requests),
        *(_consumer_role(design, table, each) for table in design.tables for each in table.consumers),
        _backup_role(design),
        _deploy_role(design),
    ]
    refusals = (ONLY_OVER_TLS,) if tls else ()
    return tuple(
        replace(
            policy, grants=(*policy.grants, *refusals), notes=(*policy.notes, *_key_notes(design, policy))
        )
        for policy in policies
        if policy.grants
    )


def _key_notes(design: Design, policy: RolePolicy) -> Iterator[str]:
    """Yield the KMS keys that a role needs and that others must allow, since the plan does not create them."""
    for table in design.tables:
        key = table.settings.encryption
        if key in (None, AWS_KEY, OWN_KEY) or table.name not in policy.tables:
            continue
        yield (
            f"{table.name} is encrypted by {key}: that key's policy, or another of yours, must allow this role kms:Encrypt, "
            "kms:Decrypt, kms:ReEncrypt*, kms:GenerateDataKey*, kms:DescribeKey and kms:CreateGrant through DynamoDB (kms:ViaService)"
        )


def _plan_role(
    design: Design, kind: RoleKind, description: str, requests: Sequence[PatternActions]
) -> RolePolicy:
    requirements = [
        _Requirement(each, _leading, pattern.title) for pattern in requests for each in pattern.actions
    ]
    return RolePolicy(
        kind,
        kind,
        description,
        _build_grants(design, requirements),
        notes=tuple(_list_indistinguishable(design, requests)),
    )


def _tenant_role(
    design: Design, own: Sequence[PatternActions], every: Sequence[PatternActions]
) -> RolePolicy:
    requirements = [
        _Requirement(_restrict_attributes(each), _tenant_leading, pattern.title)
        for pattern in own
        for each in pattern.actions
    ]
    fields = dict.fromkeys(
        field.name
        for table in design.tables
        for entity in table.entities
        for field in entity.fields
        if field.tenant
    )
    tags = " and ".join(fields)
    omitted = [
        f"{each.place} is not allowed: {next(filter(None, (action.withheld_reason for action in each.actions)), _NOT_WHOSE)}"
        for each in every
        if not each.is_tenant_scoped
        and any(action.leading_tenant is not None or action.withheld_reason for action in each.actions)
    ]
    description = f"Accesses only items of the caller's own tenant: the principal tag {tags} holds the tenant as written in keys."
    notes = (*_list_indistinguishable(design, own), *omitted, *list_unbounded_keys(design))
    return RolePolicy("tenant", "tenant", description, _build_grants(design, requirements), notes=notes)


def _restrict_attributes(action: RequiredAction) -> RequiredAction:
    attributes = action.tenant_attributes
    return action if attributes is None else replace(action, attributes=attributes)


def _consumer_role(design: Design, table: TableDesign, consumer: Consumer) -> RolePolicy:
    """Return the permissions for reading a stream, with Lambda or with Tavola's own reader, which looks the stream up first."""
    label, name = _sid_word(table.label), consumer.name
    maintained = [
        consumer_actions(home, entity, name)
        for home in design.tables
        for entity in home.entities
        if entity.name in consumer.writes
    ]
    requirements = [
        _Requirement(each, _leading, name) for requests in maintained for each in requests.actions
    ]
    grants = (
        Grant(
            f"{label}Stream",
            _dynamodb_actions(_STREAM_ACTIONS),
            (ResourceReference(table.name, "stream"),),
            (),
            (name,),
        ),
        Grant(
            f"{label}Describe",
            _dynamodb_actions(("DescribeTable",)),
            (ResourceReference(table.name),),
            (),
            (name,),
        ),
        *_build_grants(design, requirements),
    )
    writes = f" and maintains {' and '.join(consumer.writes)}" if consumer.writes else ""
    description = f"Reads the stream of {table.name} for {name}{writes}."
    several = sum(each.name == name for home in design.tables for each in home.consumers) > 1
    role = f"consumer-{table.name}-{name}" if several else f"consumer-{name}"
    return RolePolicy(role, "consumer", description, grants, consumer=name, stream=table.name)


def _backup_role(design: Design) -> RolePolicy:
    tables_with_recovery = [table for table in design.tables if table.settings.recovery]
    grants: tuple[Grant, ...] = ()
    if tables_with_recovery:
        tables = tuple(ResourceReference(table.name) for table in tables_with_recovery)
        backups = tuple(ResourceReference(table.name, "backup") for table in tables_with_recovery)
        grants = (
            Grant("CreateBackups", _dynamodb_actions(_BACKUP_ACTIONS), tables, (), ("create backups",)),
            Grant(
                "DescribeBackups", _dynamodb_actions(("DescribeBackup",)), backups, (), ("describe backups",)
            ),
            Grant(
                "ListBackups",
                _dynamodb_actions(("ListBackups",)),
                (ANYWHERE,),
                (),
                ("ListBackups cannot be limited to a table",),
            ),
        )
    return RolePolicy(
        "backup", "backup", "Creates and describes backups; it cannot delete or restore them.", grants
    )


def _deploy_role(design: Design) -> RolePolicy:
    tables = tuple(ResourceReference(table.name) for table in design.tables)
    grants = (Grant("Tables", _dynamodb_actions(_DEPLOY_ACTIONS), tables, (), ("create and change tables",)),)
    description = "Creates tables and changes their settings, as `tavola deploy` does; it cannot access items or delete tables."
    return RolePolicy("deployer", "deployer", description, grants if tables else ())


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A required action, the partition keys it applies to, and the pattern that needs it."""

    action: RequiredAction
    lead: Callable[[RequiredAction], LeadingKeys]
    reason: str

    @property
    def leading(self) -> LeadingKeys:
        return self.lead(self.action)


def _leading(action: RequiredAction) -> LeadingKeys:
    return action.leading


def _tenant_leading(action: RequiredAction) -> LeadingKeys:
    assert action.leading_tenant is not None, "only tenant-scoped actions are granted to a tenant"
    return action.leading_tenant


def _build_grants(design: Design, requirements: Iterable[_Requirement]) -> tuple[Grant, ...]:
    """Return the grants for some requirements; those that differ only in keys, actions or resource are merged."""
    groups: dict[tuple[str, ResourceReference, tuple[str, ...], bool, str], list[_Requirement]] = {}
    for requirement in _drop_covered(list(requirements)):
        action = requirement.action
        group_key = (action.action, action.reference, action.attributes, action.specific, action.enclosing)
        groups.setdefault(group_key, []).append(requirement)
    permissions = [permission for group in groups.values() for permission in _group_by_keys(group)]
    permissions = _merge_permissions(permissions, lambda each: (each.references, each.conditions))
    permissions = _merge_permissions(permissions, lambda each: (each.actions, each.conditions))
    sid_counts: dict[str, int] = {}
    grants = []
    for each in permissions:
        sid = _sid(design, each)
        sid_counts[sid] = sid_counts.get(sid, 0) + 1
        sid += "" if sid_counts[sid] == 1 else str(sid_counts[sid])
        grants.append(replace(each, sid=sid, actions=_dynamodb_actions(each.actions)))
    return tuple(grants)


def _drop_covered(requirements: list[_Requirement]) -> list[_Requirement]:
    """Return the requirements that no other already allows."""

    def is_covered(narrow: _Requirement, wide: _Requirement) -> bool:
        one, other = narrow.action, wide.action
        return (
            (one.action, one.reference) == (other.action, other.reference)
            and other.attributes in ((), one.attributes)
            and other.enclosing in ("", one.enclosing)
            and covers(wide.leading, narrow.leading)
        )

    kept: list[_Requirement] = []
    for each in requirements:
        covering = next((position for position, other in enumerate(kept) if is_covered(each, other)), None)
        if covering is None:
            kept = [other for other in kept if not is_covered(other, each)]
            kept.append(each)
        elif each.leading == kept[covering].leading and each.reason not in kept[covering].reason.split("; "):
            kept[covering] = replace(kept[covering], reason=f"{kept[covering].reason}; {each.reason}")
    return kept


def _group_by_keys(requirements: Sequence[_Requirement]) -> Iterator[Grant]:
    """Yield unnamed grants for equal requirements whose keys fit one statement; keys of several attributes stay separate."""
    groups: dict[tuple[bool, LeadingKeys], list[_Requirement]] = {}
    for each in requirements:
        variable = any("${aws:" in pattern for pattern in each.leading)
        groups.setdefault((variable and _are_exact(each.leading), each.leading[1:]), []).append(each)
    for group in groups.values():
        action = group[0].action
        leads = list(dict.fromkeys(each.leading for each in group))
        conditions = [*_key_conditions(leads)]
        if action.attributes:
            conditions.append(
                PolicyCondition("ForAllValues:StringEquals", "dynamodb:Attributes", action.attributes)
            )
        if action.specific:
            conditions.append(PolicyCondition("StringEquals", "dynamodb:Select", ("SPECIFIC_ATTRIBUTES",)))
        if action.enclosing:
            conditions.append(
                PolicyCondition("StringEquals", "dynamodb:EnclosingOperation", (action.enclosing,))
            )
        reasons = tuple(dict.fromkeys(word for each in group for word in each.reason.split("; ")))
        yield Grant("", (action.action,), (action.reference,), tuple(conditions), reasons)


def _key_conditions(leads: Sequence[LeadingKeys]) -> Iterator[PolicyCondition]:
    """Yield conditions that restrict the partition key; a request without one satisfies none of them."""
    for key, patterns in zip(LEADING_KEYS, zip(*leads, strict=True), strict=False):
        values = tuple(sorted(dict.fromkeys(patterns)))
        if ANY not in values:
            operator = "StringEquals" if _are_exact(values) else "StringLike"
            yield PolicyCondition(f"ForAllValues:{operator}", key, values)
            yield PolicyCondition("Null", key, ("false",))


def _are_exact(patterns: Iterable[str]) -> bool:
    return all(map(is_exact, patterns))


def _merge_permissions(allowed: Iterable[Grant], by: Callable[[Grant], object]) -> list[Grant]:
    """Merge permissions that are equal by some key."""
    groups: dict[object, list[Grant]] = {}
    for each in allowed:
        groups.setdefault(by(each), []).append(each)
    return [
        Grant(
            "",
            tuple(sorted({action for each in group for action in each.actions})),
            tuple(dict.fromkeys(reference for each in group for reference in each.references)),
            group[0].conditions,
            tuple(dict.fromkeys(reason for each in group for reason in each.reasons)),
        )
        for group in groups.values()
    ]


def _sid(design: Design, allowed: Grant) -> str:
    """Return the name of a statement: its table, its index if there is one, and the kind of action."""
    first = allowed.references[0]
    table = design.table(first.table)
    single_index = len(allowed.references) == 1 and first.part == "index"
    place = (
        _sid_word(table.index(first.index).label)
        if single_index
        else "Indexes"
        if first.part == "index"
        else ""
    )
    actions = set(allowed.actions)
    word = next((word for word, known in _WORDS.items() if actions <= known), "Items")
    return f"{_sid_word(table.label)}{place}{word}"


def _sid_word(text: str) -> str:
    """Return a name in the characters that a Sid allows."""
    parts = "".join(sign if sign.isalnum() and sign.isascii() else " " for sign in text).split()
    return "".join(part[0].upper() + part[1:] for part in parts)


def _dynamodb_actions(actions: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"dynamodb:{action}" for action in sorted(actions))


def _list_indistinguishable(design: Design, requests: Sequence[PatternActions]) -> Iterator[str]:
    """Yield what the design separates and a policy cannot: IAM sees partition keys, not sort keys."""
    for table in design.tables:
        changing = [
            (re.split("[.: ]", pattern.place)[0], action)
            for pattern in requests
            for action in pattern.actions
            if action.reference == ResourceReference(table.name)
            and action.action in ("UpdateItem", "DeleteItem", "BatchWriteItem")
        ]
        for entity in table.entities:
            sharing = [(owner, each.action) for owner, each in changing if _may_share_partition(entity, each)]
            if entity.immutable and sharing:
                verbs = sorted({verb for _, verb in sharing})
                owners = sorted({owner for owner, _ in sharing} - {entity.name}) or ["another entity"]
                yield (
                    f"IAM cannot block {' and '.join(verbs)} on {entity.name} (immutable), because {' and '.join(owners)} "
                    f"{'shares' if len(owners) == 1 else 'share'} its partition key. Give {entity.name} its own partition "
                    "key to enforce it"
                )


def _may_share_partition(entity: EntityDesign, action: RequiredAction) -> bool:
    assert entity.key is not None
    own = leading_keys(entity, entity.key)
    return len(own) == len(action.leading) and (covers(action.leading, own) or covers(own, action.leading))
