"""Uses: the capabilities that a design needs, each with the places that need it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tavola.design.findings import DesignPath
from tavola.model.document import Design, EntityDesign, PatternDesign, TableDesign

NAME_CHARACTERS_SHORT = 192  # the longest table name that every engine with long names takes


@dataclass(frozen=True, slots=True)
class Use:
    """One need of a capability: where, and for what, as the end of a sentence that begins with the place."""

    capability: str
    place: DesignPath
    what: str


def uses_of(design: Design) -> tuple[Use, ...]:
    """Return what a design needs, table by table in the order of its declaration."""
    found: list[Use] = []
    for table in design.tables:
        found += _of_settings(table)
        found += _of_indexes(table)
        for entity in table.entities:
            found += _of_entity(table, entity)
            for pattern in (entity.primary, *entity.patterns):
                if pattern is not None:
                    found += _of_pattern(table, entity, pattern)
        found += _of_policies(design, table)
    return tuple(dict.fromkeys(found))


def _of_settings(table: TableDesign) -> Iterator[Use]:
    settings, place = table.settings, DesignPath("table", table.name, table.label)
    if settings.ttl is not None:
        yield Use("ttl", place, f"expires items by {settings.ttl!r}")
    if settings.stream is not None:
        yield Use("streams", place, f"has a stream of {settings.stream}")
    for consumer in table.consumers:
        at = DesignPath("consumer", table.name, consumer.name)
        yield Use("streams", at, "reads the table's stream")
        if consumer.events or consumer.filters:
            yield Use("streams.events", at, "acts on some kinds of records alone")
    if settings.recovery:
        yield Use("recovery", place, f"can be restored to any moment of {settings.recovery_days} days")
    if settings.encryption is not None:
        yield Use("encryption", place, "is encrypted with a key of its own")
    if settings.table_class != "STANDARD":
        yield Use("table-class", place, f"has the class {settings.table_class}")
    if settings.deletion_protection:
        yield Use("deletion-protection", place, "is protected from deletion")
    if settings.tags:
        yield Use("tags", place, f"has the tags {', '.join(settings.tags)}")
    if settings.replicas:
        yield Use("global-tables", place, f"is replicated to {', '.join(settings.replicas)}")
    if settings.read_units is not None:
        yield Use("provisioned-throttling", place, "is provisioned, so that its cost has a bound")
    if len(table.name) > NAME_CHARACTERS_SHORT:
        yield Use("names.long", place, f"has a name of {len(table.name)} characters")
    if "." in table.name:
        yield Use("names.dots", place, "has a dot in its name")


def _of_indexes(table: TableDesign) -> Iterator[Use]:
    for index in table.indexes:
        place = DesignPath("index", table.name, f"{table.label}.{index.label}")
        if index.local:
            yield Use("index.local", place, "is a local index")
            continue
        yield Use("index.global", place, "is a global index")
        if len(index.hash) > 1 or len(index.range) > 1:
            yield Use("index.multi-attribute", place, f"has a key of {', '.join(index.attributes)}")
        if index.projection != "ALL":
            told = "its keys" if index.projection == "KEYS_ONLY" else f"{len(index.projection)} attributes"
            yield Use("index.projection", place, f"holds {told} alone")


def _of_entity(table: TableDesign, entity: EntityDesign) -> Iterator[Use]:
    place = DesignPath("entity", table.name, entity.name)
    for write in entity.writes:
        at = DesignPath("write", table.name, f"{entity.name}: {write.title}")
        if write.transactional or write.together:
            yield Use("transactions.write", at, "is written in a transaction")
        if write.items > 1:
            yield Use("batch-write", at, f"writes {write.items} items at once")
    for field in entity.fields:
        at = DesignPath("field", table.name, f"{entity.name}.{field.name}")
        if field.lock:
            yield Use("conditional-writes", at, "is a lock, which each write checks")
        if field.unique:
            yield Use("transactions.write", at, "is unique, which a transaction with its guard keeps")
        if field.key_kind == "decimal" or field.type == "decimal":
            yield Use("numbers", at, "is a decimal of up to 38 digits")
    if entity.immutable:
        yield Use("conditional-writes", place, "is written once, which a condition keeps")


def _of_pattern(table: TableDesign, entity: EntityDesign, pattern: PatternDesign) -> Iterator[Use]:
    if pattern.access is not None and pattern.access.transactional:
        place = DesignPath("pattern", table.name, f"{entity.name}.{pattern.name}")
        yield Use("transactions.read", place, "is read in a transaction")


def _of_policies(design: Design, table: TableDesign) -> Iterator[Use]:
    for entity in table.entities:
        for field in entity.fields:
            if field.tenant:
                place = DesignPath("field", table.name, f"{entity.name}.{field.name}")
                yield Use(
                    "iam.leading-keys", place, "says whose an item is, which policies keep apart by the key"
                )
    for policy in design.policies:
        if "LeadingKeys" in str(policy.document) and (not policy.tables or table.name in policy.tables):
            yield Use(
                "iam.leading-keys",
                DesignPath("policy", table.name, policy.name),
                "decides by the partition key",
            )
