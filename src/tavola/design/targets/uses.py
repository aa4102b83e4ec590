"""The capabilities that a design uses, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tavola.design.findings import DesignPath
from tavola.model.document import Design, EntityDesign, PatternDesign, TableDesign

NAME_CHARACTERS_SHORT = 192  # longest table name that all implementations with long names support


@dataclass(frozen=True, slots=True)
class FeatureUse:
    """One use of a capability: the place, and what it does there, as a phrase that begins with a verb."""

    capability: str
    place: DesignPath
    what: str


def find_uses(design: Design) -> tuple[FeatureUse, ...]:
    """Return the uses in a design, in the order of its declarations."""
    found: list[FeatureUse] = []
    for table in design.tables:
        found += _settings_uses(table)
        found += _index_uses(table)
        for entity in table.entities:
            found += _entity_uses(table, entity)
            for pattern in entity.all_patterns:
                found += _pattern_uses(table, entity, pattern)
        found += _policy_uses(design, table)
    return tuple(dict.fromkeys(found))


def _settings_uses(table: TableDesign) -> Iterator[FeatureUse]:
    settings, place = table.settings, DesignPath("table", table.name, table.label)
    if settings.ttl is not None:
        yield FeatureUse("ttl", place, f"uses TTL on {settings.ttl!r}")
    if settings.stream is not None:
        yield FeatureUse("streams", place, f"has a {settings.stream} stream")
    for consumer in table.consumers:
        at = DesignPath("consumer", table.name, consumer.name)
        yield FeatureUse("streams", at, "reads the table's stream")
        if consumer.events or consumer.filters:
            yield FeatureUse("streams.events", at, "filters stream records")
    if settings.recovery:
        yield FeatureUse("recovery", place, f"has point-in-time recovery of {settings.recovery_days} days")
    if settings.encryption is not None:
        yield FeatureUse("encryption", place, "is encrypted with a customer managed key")
    if settings.table_class != "STANDARD":
        yield FeatureUse("table-class", place, f"has the table class {settings.table_class}")
    if settings.deletion_protection:
        yield FeatureUse("deletion-protection", place, "has deletion protection")
    if settings.tags:
        yield FeatureUse("tags", place, f"has the tags {', '.join(settings.tags)}")
    if settings.replicas:
        yield FeatureUse("global-tables", place, f"is replicated to {', '.join(settings.replicas)}")
    if settings.read_units is not None:
        yield FeatureUse("provisioned-throttling", place, "has provisioned capacity")
    if len(table.name) > NAME_CHARACTERS_SHORT:
        yield FeatureUse("names.long", place, f"has a name of {len(table.name)} characters")
    if "." in table.name:
        yield FeatureUse("names.dots", place, "has a dot in its name")


def _index_uses(table: TableDesign) -> Iterator[FeatureUse]:
    for index in table.indexes:
        place = DesignPath("index", table.name, f"{table.label}.{index.label}")
        if index.local:
            yield FeatureUse("index.local", place, "is a local index")
            continue
        yield FeatureUse("index.global", place, "is a global index")
        if len(index.hash) > 1 or len(index.range) > 1:
            yield FeatureUse("index.multi-attribute", place, f"has a key of {', '.join(index.attributes)}")
        if index.projection != "ALL":
            projected = (
                "keys only" if index.projection == "KEYS_ONLY" else f"{len(index.projection)} attributes"
            )
            yield FeatureUse("index.projection", place, f"projects {projected}")


def _entity_uses(table: TableDesign, entity: EntityDesign) -> Iterator[FeatureUse]:
    place = DesignPath("entity", table.name, entity.name)
    for write in entity.writes:
        at = DesignPath("write", table.name, f"{entity.name}: {write.title}")
        if write.transactional or write.together:
            yield FeatureUse("transactions.write", at, "is written in a transaction")
        if write.items > 1:
            yield FeatureUse("batch-write", at, f"writes {write.items} items at once")
    for field in entity.fields:
        at = DesignPath("field", table.name, f"{entity.name}.{field.name}")
        if field.lock:
            yield FeatureUse("conditional-writes", at, "is a lock for optimistic locking")
        if field.unique:
            yield FeatureUse("transactions.write", at, "is unique, which is enforced by a transaction")
        if field.key_kind == "decimal" or field.type == "decimal":
            yield FeatureUse("numbers", at, "is a decimal of up to 38 digits")
    if entity.immutable:
        yield FeatureUse("conditional-writes", place, "is immutable, which is enforced by a condition")


def _pattern_uses(table: TableDesign, entity: EntityDesign, pattern: PatternDesign) -> Iterator[FeatureUse]:
    if pattern.access is not None and pattern.access.transactional:
        place = DesignPath("pattern", table.name, f"{entity.name}.{pattern.name}")
        yield FeatureUse("transactions.read", place, "is read in a transaction")


def _policy_uses(design: Design, table: TableDesign) -> Iterator[FeatureUse]:
    for entity in table.entities:
        for field in entity.fields:
            if field.tenant:
                place = DesignPath("field", table.name, f"{entity.name}.{field.name}")
                yield FeatureUse(
                    "iam.leading-keys", place, "is the tenant, which policies isolate by the partition key"
                )
    for policy in design.policies:
        if "LeadingKeys" in str(policy.document) and (not policy.tables or table.name in policy.tables):
            yield FeatureUse(
                "iam.leading-keys",
                DesignPath("policy", table.name, policy.name),
                "has a condition on the partition key",
            )
