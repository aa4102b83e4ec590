"""Tables: one table as it stands, with what its design says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.client.table_changes import Blueprint, create_table
from tavola.errors import TavolaError
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, SourceDesign
from tavola.studio.api.session import TableSummary, summary_of
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import Refused
from tavola.studio.studio import Studio


@dataclass(frozen=True, slots=True)
class AskTable:
    """Which table."""

    table: str


@dataclass(frozen=True, slots=True)
class EntityField:
    """A field of an entity, and the attribute that it is stored as."""

    name: str
    attribute: str
    type: str  # in words, such as `list[text]`
    tags: tuple[str, ...]  # the DynamoDB types that it may have
    required: bool
    choices: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class EntityKeyPart:
    """One key attribute of an entity: the template that makes it, or the field that it is."""

    attribute: str
    type: str
    template: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntityKey:
    """The key of an entity in the table (no index) or in an index."""

    index: str | None
    hash: tuple[EntityKeyPart, ...]
    range: tuple[EntityKeyPart, ...]
    sparse: bool


@dataclass(frozen=True, slots=True)
class TableEntity:
    """An entity that lives in a table."""

    name: str
    tag: str
    description: str
    fields: tuple[EntityField, ...]
    keys: tuple[EntityKey, ...]  # the table's own first
    immutable: bool


@dataclass(frozen=True, slots=True)
class TableDetail:
    """All that is known of one table; what the endpoint does not tell is None."""

    table: TableSummary
    arn: str
    created_at_s: float | None
    table_class: str
    deletion_protection: bool
    read_units: int | None  # None: on demand
    write_units: int | None
    stream_view: str | None
    ttl: str | None  # the attribute
    recovery: bool | None
    recovery_days: int | None
    encryption: str | None
    tag: str | None  # the attribute that says which entity an item is
    foreign: bool  # other code writes its keys
    description: str
    entities: tuple[TableEntity, ...]


@dataclass(frozen=True, slots=True)
class TableMade:
    """The table that was made."""

    table: str


async def make(studio: Studio, asked: AskTable) -> TableMade:
    """Make a table that the design declares, with its indexes and settings, as `tavola deploy` does; one that is there stays."""
    design = studio.table_design(asked.table)
    if design is None:
        raise Refused(
            "table-undeclared",
            "No design declares the table",
            f"Nothing says what {asked.table} is made of.",
            "Start the studio with the design that declares it.",
            status=404,
        )
    table = Blueprint(design.name, design.label, design.settings, design.key_types, design.indexes)
    await studio.db.run(create_table(table))
    return TableMade(design.name)


async def describe(studio: Studio, asked: AskTable) -> TableDetail:
    """Return one table, by what the endpoint and the design say of it."""
    described = (await studio.db.call("DescribeTable", {"TableName": asked.table}))["Table"]
    ttl = await _asked(studio, "DescribeTimeToLive", asked.table)
    backups = await _asked(studio, "DescribeContinuousBackups", asked.table)
    design = studio.table_design(asked.table)
    recovery = _recovery(backups)
    units = described.get("ProvisionedThroughput", {})
    summary = summary_of(described, design)
    demand = summary.billing == "on-demand"
    created = described.get("CreationDateTime")
    lives = (ttl or {}).get("TimeToLiveDescription", {})
    alive = lives.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return TableDetail(
        table=summary,
        arn=described.get("TableArn", ""),
        created_at_s=created if isinstance(created, int | float) else None,
        table_class=described.get("TableClassSummary", {}).get("TableClass", "STANDARD"),
        deletion_protection=described.get("DeletionProtectionEnabled", False),
        read_units=None if demand else units.get("ReadCapacityUnits"),
        write_units=None if demand else units.get("WriteCapacityUnits"),
        stream_view=described.get("StreamSpecification", {}).get("StreamViewType"),
        ttl=lives.get("AttributeName") if alive else None,
        recovery=None if recovery is None else recovery.get("PointInTimeRecoveryStatus") == "ENABLED",
        recovery_days=None if recovery is None else recovery.get("RecoveryPeriodInDays"),
        encryption=described.get("SSEDescription", {}).get("KMSMasterKeyArn"),
        tag=None if design is None else design.settings.tag,
        foreign=design is not None and design.foreign,
        description="" if design is None else design.description,
        entities=() if design is None else tuple(map(_entity, design.entities)),
    )


async def _asked(studio: Studio, operation: str, table: str) -> Mapping[str, Any] | None:
    """Return an answer that a table can be shown without; None from an endpoint that does not give it."""
    try:
        return await studio.db.call(operation, {"TableName": table})
    except TavolaError:
        return None


def _recovery(backups: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if backups is None:
        return None
    told: Mapping[str, Any] = backups.get("ContinuousBackupsDescription", {})
    found: Mapping[str, Any] = told.get("PointInTimeRecoveryDescription", {})
    return found


def _entity(entity: EntityDesign) -> TableEntity:
    keys = (entity.key, *entity.keys)
    return TableEntity(
        entity.name,
        entity.tag,
        entity.description,
        tuple(map(_field, entity.fields)),
        tuple(_key(key) for key in keys if key is not None),
        entity.immutable,
    )


def _field(found: FieldDesign) -> EntityField:
    choices = () if found.choices is None else tuple(map(str, found.choices))
    return EntityField(
        found.name, found.attribute, found.type, found.tags, found.required, choices, found.description
    )


def _key(key: KeyDesign) -> EntityKey:
    return EntityKey(key.index, tuple(map(_part, key.hash)), tuple(map(_part, key.range)), key.sparse)


def _part(source: SourceDesign) -> EntityKeyPart:
    template = f"{{{source.field}}}" if source.template is None else source.template.source
    return EntityKeyPart(source.attribute, source.tag, template, source.fields)


ENDPOINTS = (
    Endpoint("GET", "/tables/describe", describe),
    Endpoint("POST", "/tables/make", make, changes=True),
)
