"""The infrastructure of a design, without any vendor's syntax.

Tables with all settings, stream consumers, alarms, policies by role, a KMS key, a VPC endpoint. The writers (`terraform`, `cloudformation`, `cdk`)
render the same plan and decide nothing; `changes` compares two designs. Resources refer to each other by their DynamoDB names, and each writer
spells such a reference in its own syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tavola.client.table_changes import AWS_KEY, OWN_KEY
from tavola.iac.alarms import Alarm, AlarmTargets, plan_alarms
from tavola.iac.consumer_plan import ConsumerPlan, has_unknown_function, plan_consumers
from tavola.iac.errors import PlanError
from tavola.iac.grants import ANYWHERE, ROLE_POLICIES_MAX, PolicyPlan, RolePolicy, plan_policies
from tavola.iac.policies import derive_policies
from tavola.model.document import Design, IndexDesign, Scaling, TableDesign

__all__ = [
    "AWS_KEY",
    "LOG_DAYS",
    "OWN_KEY",
    "QUEUE_SECONDS",
    "RUNTIME",
    "ConsumerPlan",
    "IndexPlan",
    "InfrastructurePlan",
    "PlanOptions",
    "PolicyPlan",
    "TablePlan",
    "plan_infrastructure",
    "plan_table",
]

RUNTIME = "python3.13"
LOG_DAYS = 30
QUEUE_SECONDS = 14 * 24 * 3600  # SQS's maximum
_UNKNOWN = "${"  # starts an unresolved reference of an imported file
_KMS_KEY = re.compile(
    r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:(key/[A-Za-z0-9-]+|alias/[A-Za-z0-9/_-]+)"
    r"|alias/[A-Za-z0-9/_-]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32}"
)

_PORTABLE_TAG = re.compile(r"[\w\s.:/=+@-]*")
UNKNOWN_WORDS = {
    "ttl": "time to live",
    "recovery": "point-in-time recovery",
    "deletion_protection": "deletion protection",
    "encryption": "encryption",
    "table_class": "class",
    "scaling": "auto scaling",
}

ProjectionType = Literal["ALL", "INCLUDE", "KEYS_ONLY"]
CapacityKind = Literal["read", "write"]

KEY_ACTIONS = tuple(
    f"kms:{action}"
    for action in ("Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*", "CreateGrant", "DescribeKey")
)
DEFAULT_UTILIZATION = 70  # percent, where a vendor requires scaling that the design does not declare


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """A secondary index; a global one may have several attributes in each half of its key."""

    name: str
    local: bool
    hash: tuple[str, ...]
    range: tuple[str, ...]
    projection: ProjectionType
    included: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table with its settings."""

    name: str
    attributes: Mapping[str, str]  # every key attribute with its type, in the order of the keys
    hash: str
    range: str | None
    indexes: tuple[IndexPlan, ...] = ()
    read_units: int | None = None  # None: on demand
    write_units: int | None = None
    scaling: Scaling | None = None
    ttl: str | None = None
    stream: str | None = None
    recovery_days: int | None = None  # None: no point-in-time recovery
    key: str | None = None  # None: a key that AWS owns
    table_class: str = "STANDARD"
    deletion_protection: bool = False
    replicas: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    unknown: tuple[str, ...] = ()  # settings that the source does not state: neither written nor changed

    @property
    def has_separate_indexes(self) -> bool:
        """Whether its global indexes are auto scaled, for which Terraform needs separate resources."""
        return self.scaling is not None and bool(self.global_indexes)

    @property
    def on_demand(self) -> bool:
        """Whether it is billed per request."""
        return self.read_units is None

    @property
    def global_indexes(self) -> tuple[IndexPlan, ...]:
        """The indexes with their own throughput."""
        return tuple(index for index in self.indexes if not index.local)

    @property
    def local_indexes(self) -> tuple[IndexPlan, ...]:
        """The indexes that share the table's partitions."""
        return tuple(index for index in self.indexes if index.local)

    def capacity_range(self, kind: CapacityKind) -> tuple[int, int, int]:
        """Return the minimum and maximum units and the target utilization; without scaling, the declared units."""
        scaling = self.scaling
        if scaling is None:
            units = self.read_units if kind == "read" else self.write_units
            assert units is not None, "a table on demand has no capacity"
            return units, units, DEFAULT_UTILIZATION
        if kind == "read":
            return scaling.read_min, scaling.read_max, scaling.target
        return scaling.write_min, scaling.write_max, scaling.target

    def schema(self, index: IndexPlan | None = None) -> Iterator[tuple[str, str]]:
        """Yield a key as DynamoDB lists it: each attribute with HASH or RANGE, repeated for several attributes."""
        hashes = (self.hash,) if index is None else index.hash
        ranges = index.range if index is not None else () if self.range is None else (self.range,)
        yield from ((name, "HASH") for name in hashes)
        yield from ((name, "RANGE") for name in ranges)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a plan contains besides the tables."""

    alarms: bool = True
    policies: bool = True
    endpoint: bool = False  # a gateway endpoint, so that traffic stays in the network
    key: str | None = None  # for tables that name none: `new`, or an existing key


@dataclass(frozen=True, slots=True)
class InfrastructurePlan:
    """The infrastructure of a design."""

    tables: tuple[TablePlan, ...]
    consumers: tuple[ConsumerPlan, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    policies: tuple[PolicyPlan, ...] = ()
    endpoint: bool = False
    notes: tuple[str, ...] = ()  # remarks, and steps left to the user

    @property
    def makes_key(self) -> bool:
        """Whether a KMS key is created for the tables."""
        return any(table.key == OWN_KEY for table in self.tables)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tables; generated files record them to tell designs apart."""
        return tuple(table.name for table in self.tables)

    @property
    def contents(self) -> tuple[str, ...]:
        """Words for its optional parts. A generated file records them, so that a later run can report parts that it no longer generates."""
        parts = (
            ("key", self.makes_key),
            ("endpoint", self.endpoint),
            ("alarms", bool(self.alarms)),
            ("policies", bool(self.policies)),
        )
        words = [word for word, present in parts if present]
        words += [
            f"function:{consumer.function}" for consumer in self.consumers if not consumer.existing_function
        ]
        words += [
            f"failures:{consumer.function}"
            for consumer in self.consumers
            if consumer.created_destination is not None
        ]
        words += [f"replica:{table.name}:{region}" for table in self.tables for region in table.replicas]
        return (*words, *(f"apart:{table.name}" for table in self.tables if table.has_separate_indexes))

    @property
    def tags(self) -> dict[str, str]:
        """The tags that all its tables share, for resources that belong to no single table."""
        first, *others = (table.tags for table in self.tables)
        return portable_tags(
            {key: value for key, value in first.items() if all(tags.get(key) == value for tags in others)}
        )

    @property
    def unscoped_actions(self) -> tuple[str, ...]:
        """The actions that a policy allows without naming a table."""
        grants = (grant for policy in self.policies for grant in policy.grants)
        return tuple(
            dict.fromkeys(
                action
                for grant in grants
                if grant.effect == "Allow" and ANYWHERE in grant.references
                for action in grant.actions
            )
        )

    def table(self, name: str) -> TablePlan:
        """Return a table by its DynamoDB name."""
        return next(table for table in self.tables if table.name == name)


def portable_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that every AWS service accepts; the others stay on the table only."""
    return {
        key: value
        for key, value in tags.items()
        if _PORTABLE_TAG.fullmatch(key) and _PORTABLE_TAG.fullmatch(value)
    }


def plan_infrastructure(design: Design, options: PlanOptions | None = None) -> InfrastructurePlan:
    """Plan the infrastructure of a design; raises `PlanError` if it has none."""
    options = options or PlanOptions()
    if not design.tables:
        raise PlanError("the design", "no tables; declare one, or give another module or file")
    tables = tuple(plan_table(table, options.key) for table in design.tables)
    keys = {table.name: table.key for table in tables}
    tables_with_keys = [
        replace(table, settings=replace(table.settings, encryption=keys[table.name]))
        for table in design.tables
    ]
    roles = derive_policies(replace(design, tables=tuple(tables_with_keys)))
    consumers = tuple(plan_consumers(design, roles))
    policies = tuple(plan_policies(roles)) if options.policies else ()
    alarm_targets = AlarmTargets(
        tables=tuple((table.name, tuple(index.name for index in table.global_indexes)) for table in tables),
        replicas=tuple((table.name, region) for table in tables for region in table.replicas),
        functions=tuple(consumer.function for consumer in consumers if not consumer.existing_function),
        queues=tuple(consumer.function for consumer in consumers if consumer.created_destination == "sqs"),
    )
    return InfrastructurePlan(
        tables,
        consumers,
        plan_alarms(alarm_targets) if options.alarms else (),
        policies,
        options.endpoint,
        (
            *_policy_notes(roles, policies, consumers),
            *_unknown_settings_notes(tables),
            *_external_function_notes(design, consumers),
        ),
    )


def _policy_notes(
    roles: tuple[RolePolicy, ...], policies: tuple[PolicyPlan, ...], consumers: tuple[ConsumerPlan, ...]
) -> Iterator[str]:
    """Yield what the generated policies do not cover, and roles that need more policies than IAM attaches by default."""
    roles_by_note: dict[str, list[str]] = {}  # by note, so that each is printed once
    for role in roles:
        is_generated = (
            bool(consumers) if role.kind == "consumer" else bool(policies) and role.kind != "deployer"
        )
        for note in role.notes if is_generated else ():
            roles_by_note.setdefault(note, []).append(role.role)
    for note, names in roles_by_note.items():
        yield f"{'policy' if len(names) == 1 else 'policies'} {', '.join(names)}: {note}"
    for role in roles:
        parts = sum(policy.name.startswith(f"{role.role}-") for policy in policies)
        if parts > ROLE_POLICIES_MAX:
            yield f"{role.role} needs {parts} policies; IAM attaches {ROLE_POLICIES_MAX} to a role by default, request a higher quota"


def _unknown_settings_notes(tables: tuple[TablePlan, ...]) -> Iterator[str]:
    for table in tables:
        if table.unknown:
            names = ", ".join(UNKNOWN_WORDS.get(word, word) for word in table.unknown)
            yield f"{table.name}: the source does not state {names}; not written, an existing table keeps its settings"


def _external_function_notes(design: Design, consumers: tuple[ConsumerPlan, ...]) -> Iterator[str]:
    for table in design.tables:
        for consumer in table.consumers:
            if has_unknown_function(consumer):
                yield f"{table.name}.{consumer.name}: the function is defined elsewhere and its name is unknown; not written, name it with function="
    for plan in consumers:
        if plan.existing_function:
            yield (
                f"{plan.table}.{plan.name}: function {plan.existing_function} is defined elsewhere; only the event source mapping is written, and the "
                "function's own role must be allowed to read the stream"
            )


def plan_table(table: TableDesign, key: str | None = None) -> TablePlan:
    """Plan one table; `key` encrypts it if it declares no key of its own."""
    settings = table.settings
    if _UNKNOWN in settings.name:
        raise PlanError(
            table.name,
            "the table name is unresolved; write the full name in the design, or set its variables in terraform.tfvars",
        )
    names = [*settings.key_names, *(name for index in table.indexes for name in index.attributes)]
    unknown = next((name for name in names if name not in table.key_types), None)
    if unknown is not None:
        raise PlanError(
            table.name, f"key attribute {unknown!r} has no type; set it to S, N or B in key_types"
        )
    stream = settings.stream
    if table.consumers and stream is None:
        consumer = table.consumers[0].name
        raise PlanError(
            table.name, f'consumer {consumer} needs a stream; declare stream="NEW_AND_OLD_IMAGES"'
        )
    if settings.replicas:  # replication uses the stream
        if stream not in (None, "NEW_AND_OLD_IMAGES"):
            raise PlanError(table.name, f'replicas need stream="NEW_AND_OLD_IMAGES", not {stream}')
        stream = "NEW_AND_OLD_IMAGES"
    return TablePlan(
        name=settings.name,
        attributes={name: table.key_types[name] for name in dict.fromkeys(names)},
        hash=settings.hash,
        range=settings.range,
        indexes=tuple(_plan_index(index) for index in table.indexes),
        read_units=settings.read_units,
        write_units=settings.write_units,
        scaling=settings.scaling,
        ttl=settings.ttl,
        stream=stream,
        recovery_days=settings.recovery_days if settings.recovery else None,
        key=_encryption_key(table, key),
        table_class=settings.table_class,
        deletion_protection=settings.deletion_protection,
        replicas=settings.replicas,
        tags=dict(settings.tags),
        description=table.description,
        unknown=settings.unknown,
    )


def _encryption_key(table: TableDesign, key: str | None) -> str | None:
    """Return the KMS key of a table; a reference in an imported file that cannot be resolved is refused."""
    if key is not None:
        _check_key("--kms-key", key)
    declared = table.settings.encryption
    if declared is None:
        return key
    if _UNKNOWN not in declared:
        _check_key(table.name, declared)
        return declared
    if key is None:
        raise PlanError(
            table.name,
            f"the encryption key {declared} is unresolved; give a key with --kms-key, or --kms-key new to create one",
        )
    return key


def _check_key(place: str, key: str) -> None:
    if key != OWN_KEY and _KMS_KEY.fullmatch(key) is None:
        raise PlanError(
            place, f"{key!r} is not a KMS key; give new, or the ARN, id or alias (alias/…) of a key"
        )


def _plan_index(index: IndexDesign) -> IndexPlan:
    if isinstance(index.projection, tuple):
        return IndexPlan(index.name, index.local, index.hash, index.range, "INCLUDE", index.projection)
    return IndexPlan(index.name, index.local, index.hash, index.range, index.projection)
