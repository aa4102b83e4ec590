"""Fixes that change one declaration: a field, an entity, a table setting, a write pattern or a stream consumer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tavola.design.findings import Finding
from tavola.design.lint.item_keys import omits_index_key, templated_attributes
from tavola.design.lint.naming import is_expiry
from tavola.design.lint.remedies.proposal import (
    Fixer,
    Proposal,
    consumer_at,
    entity_at,
    field_at,
    keys_at,
    put_consumer,
    put_entity,
    put_field,
    put_settings,
    put_write,
    table_at,
    write_at,
)
from tavola.design.text import join_names
from tavola.model.document import Consumer, Design, EntityDesign, FieldDesign, TableDesign, WritePattern

_FLOAT = re.compile(r"\b(float|double)\b", re.IGNORECASE)
_NAIVE = re.compile(r"\b(naive|local)[ _-]*", re.IGNORECASE)
_LIST_LENGTHS = (100, 50, 20, 10)
_TEXT_LENGTHS = (256, 128, 64, 32)
_RETRIES = 3
_EVENTS = ("INSERT", "MODIFY", "REMOVE")


# Fields and entities.


def _field_fix(change: Callable[[FieldDesign], FieldDesign], summary: str) -> Fixer:
    """Return a fixer that replaces the field of a finding; `{field}` in the summary is its name."""

    def fix(design: Design, finding: Finding) -> Iterator[Proposal]:
        for table, entity, field in field_at(design, finding):
            changed = put_field(design, table, entity, change(field))
            yield Proposal(changed, summary.format(field=field.name))

    return fix


def _epoch_seconds(field: FieldDesign, attribute: str | None = None) -> FieldDesign:
    """Return a field as a TTL attribute: a time, stored as epoch seconds."""
    return replace(
        field,
        attribute=field.attribute if attribute is None else attribute,
        type="epoch-seconds",
        tags=("N",),
        key_kind=None,
    )


_store_as_seconds = _field_fix(
    _epoch_seconds, "Stores {field} as a number in epoch seconds; rewrite existing items"
)


def _limit_list(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, entity, field in field_at(design, finding):
        for length in _LIST_LENGTHS:
            yield Proposal(
                put_field(design, table, entity, replace(field, length_max=length)),
                f"Limits {field.name} to {length} elements; choose the limit. For more, store each element as an item under the same "
                "partition key",
            )


def _limit_text(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, entity, key in keys_at(design, finding):
        long = [
            field
            for field in entity.fields
            if field.name in key.fields and field.type == "text" and field.choices is None
        ]
        for length in _TEXT_LENGTHS:
            fields = tuple(
                replace(field, length_max=min(length, field.length_max or length)) if field in long else field
                for field in entity.fields
            )
            yield Proposal(
                put_entity(design, table, replace(entity, fields=fields)),
                f"Limits {join_names(field.name for field in long)} to {length} characters, so that every key fits; use a hash for "
                "longer values",
            )


def _detect_second_writer(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield ways to make the second of two writers fail: a new key, a lock, or a condition in foreign code."""
    for table, entity, field in field_at(design, finding):
        if not table.foreign:
            yield Proposal(
                put_entity(design, table, replace(entity, immutable=True)),
                f"Declares {entity.name} immutable: a put succeeds only if its key is new, so the second of two writers gets an error",
            )
            yield Proposal(
                put_field(design, table, entity, replace(field, lock=True, required=False, numbered=None)),
                f"Uses {field.name} for optimistic locking: an update succeeds only if it is unchanged, and increments it",
            )
        writes = tuple(replace(write, conditional=True) for write in entity.writes)
        yield Proposal(
            put_entity(design, table, replace(entity, writes=writes)),
            f"Declares writes of {entity.name} conditional; the code that writes them must add the condition",
        )


def _make_mutable(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, entity in entity_at(design, finding):
        yield Proposal(
            put_entity(design, table, replace(entity, immutable=False)),
            f"Declares {entity.name} mutable; move data that must never change to a separate item",
        )


def _add_expiry(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, entity in entity_at(design, finding):
        attribute = table.settings.ttl or "expires_at"
        existing = next((field for field in entity.fields if field.attribute == attribute), None)
        name = "expires_at" if all(field.name != "expires_at" for field in entity.fields) else "expires_at_s"
        expiry = _epoch_seconds(existing or FieldDesign(name, attribute, "epoch-seconds", ("N",)))
        others = tuple(field for field in entity.fields if field.attribute != attribute)
        changed = put_entity(design, table, replace(entity, fields=(*others, expiry)))
        expiring = next(each for each in changed.tables if each.name == table.name)
        yield Proposal(
            put_settings(changed, expiring, ttl=attribute),
            f"Stores an expiry time for each {entity.name} in {attribute}; DynamoDB deletes expired items at no charge",
        )


# Table settings.


def _settings_fix(changes: dict[str, Any], summary: str) -> Fixer:
    """Return a fixer that replaces settings of the table; `{table}` in texts is its label, `{name}` its name."""

    def fix(design: Design, finding: Finding) -> Iterator[Proposal]:
        for table in table_at(design, finding):
            words = {"table": table.label, "name": table.name, "days": table.settings.recovery_days}
            values = {
                name: value.format(**words) if isinstance(value, str) else value
                for name, value in changes.items()
            }
            yield Proposal(put_settings(design, table, **values), summary.format(**words))

    return fix


def _match_ttl(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield both ways to match TTL and field: the table names the field's attribute, or the field takes the table's."""
    found = list(field_at(design, finding))
    for table, entity, field in found:
        if table.settings.ttl is not None:
            yield Proposal(
                put_field(design, table, entity, _with_attribute(field, table.settings.ttl)),
                f"Stores {entity.name}.{field.name} in the TTL attribute {table.settings.ttl}, so items are deleted at that time; rewrite existing items",
            )
    for table in () if found else table_at(design, finding):
        if table.settings.ttl is not None:
            yield from _match_table_ttl(design, table, table.settings.ttl)


def _match_table_ttl(design: Design, table: TableDesign, ttl: str) -> Iterator[Proposal]:
    for entity in table.entities:
        for field in entity.fields:
            if is_expiry(field):
                yield Proposal(
                    put_settings(design, table, ttl=field.attribute),
                    f"Sets the TTL attribute of {table.label} to {field.attribute}, which {entity.name} has",
                )
                yield Proposal(
                    put_field(design, table, entity, _with_attribute(field, ttl)),
                    f"Stores {entity.name}.{field.name} in {ttl}, the TTL attribute of {table.label}",
                )
    yield Proposal(
        put_settings(design, table, ttl=None),
        f"Disables TTL on {table.label}, since no item has an expiry time",
    )


def _with_attribute(field: FieldDesign, attribute: str) -> FieldDesign:
    is_number = field.type == "epoch-seconds" or field.tags == ("N",)
    return replace(field, attribute=attribute) if is_number else _epoch_seconds(field, attribute)


# Writes and consumers.


def _write_fix(changes: dict[str, Any], summary: str) -> Fixer:
    """Return a fixer that changes the write of a finding; `{entity}` in the summary is its entity."""

    def fix(design: Design, finding: Finding) -> Iterator[Proposal]:
        for table, entity, write in write_at(design, finding):
            changed = put_write(design, table, entity, write, replace(write, **changes))
            yield Proposal(changed, summary.format(entity=entity.name))

    return fix


def _write_index_keys(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the write with all index keys that depend on its fields, or that other puts write."""
    for table, entity, write in write_at(design, finding):
        added = tuple(
            name
            for name in dict.fromkeys(_omitted_attributes(table, entity, write))
            if name not in write.rewrites
        )
        if added:
            yield Proposal(
                put_write(design, table, entity, write, replace(write, rewrites=(*write.rewrites, *added))),
                f"Sets {join_names(added)} in the same request; the code that writes the item must do so",
            )


def _omitted_attributes(table: TableDesign, entity: EntityDesign, write: WritePattern) -> Iterator[str]:
    changed = {*write.changes, *write.adds}
    for key in entity.keys:
        if write.kind == "update":
            for source in key.sources:
                if source.template is not None and changed & set(source.fields):
                    yield source.attribute
        elif omits_index_key(table, entity, key, write):
            yield from sorted(templated_attributes(key))


def _consumer_fix(*ways: tuple[dict[str, Any], str]) -> Fixer:
    """Return a fixer that proposes the given settings of the consumer, one after the other."""

    def fix(design: Design, finding: Finding) -> Iterator[Proposal]:
        for table, consumer in consumer_at(design, finding):
            for changes, summary in ways:
                yield Proposal(put_consumer(design, table, consumer, **changes), summary)

    return fix


def _exclude_own_writes(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, consumer in consumer_at(design, finding):
        tag = table.settings.tag
        sources = [entity.tag for entity in table.entities if entity.name not in consumer.writes]
        if tag is None or not sources:
            return
        filters = tuple(
            {"dynamodb": {image: {tag: {"S": list(sources)}}}} for image in ("NewImage", "OldImage")
        )
        yield Proposal(
            put_consumer(design, table, consumer, filters=filters),
            "Filters out records of the consumer's own writes; remove entities that it does not use from the filter",
        )


def _add_failure_destination(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, consumer in consumer_at(design, finding):
        settings = _failure_settings(consumer)
        yield Proposal(
            put_consumer(design, table, consumer, **settings),
            f"After {settings['retries']} retries, splits a failing batch until the bad record is isolated, and sends it to a queue",
        )


def _failure_settings(consumer: Consumer) -> dict[str, Any]:
    return {
        "retries": consumer.retries if consumer.retries >= 0 else _RETRIES,
        "failures": consumer.failures or "sqs",
        "bisect": True,
    }


FIXERS: dict[str, Fixer] = {
    "accidental-upsert": _write_fix(
        {"conditional": True, "creates": False},
        "Adds the condition attribute_exists on the key; the caller gets an error if the item does not exist",
    ),
    "consumer-misses-events": _consumer_fix(
        (
            {"events": _EVENTS},
            "Handles INSERT, MODIFY and REMOVE; the handler must use the old and new image",
        ),
        (
            {"events": _EVENTS, "filters": ()},
            "Receives every record; the handler must skip records it does not need",
        ),
    ),
    "float-numbers": _field_fix(
        lambda field: replace(field, type=_FLOAT.sub("decimal", field.type)),
        "Stores {field} as a decimal, which keeps every digit; the code that writes it must create a Decimal from a string",
    ),
    "immutable-entity-updated": _make_mutable,
    "key-too-long": _limit_text,
    "lost-update": _detect_second_writer,
    "missing-index-key": _write_index_keys,
    "naive-datetime": _field_fix(
        lambda field: replace(field, type=_NAIVE.sub("", field.type).strip() or "datetime"),
        "Stores {field} with a time zone; the code that writes it must use datetime.now(UTC)",
    ),
    "no-auto-scaling": _settings_fix(
        {"read_units": None, "write_units": None},
        "Switches {table} to on-demand capacity; with scaling=Scaling(…) it would stay provisioned and scale with traffic",
    ),
    "no-customer-managed-key": _settings_fix(
        {"encryption": "alias/{name}"},
        "Encrypts {table} with alias/{name}; create that key first, or let `tavola iac` create it (--kms-key new)",
    ),
    "no-deletion-protection": _settings_fix(
        {"deletion_protection": True},
        "Protects {table}: DeleteTable is rejected until deletion protection is turned off",
    ),
    "no-failure-destination": _add_failure_destination,
    "no-point-in-time-recovery": _settings_fix(
        {"recovery": True},
        "Enables point-in-time recovery of the last {days} days for {table}, charged by table size",
    ),
    "non-idempotent-consumer": _consumer_fix(
        (
            {"idempotent": True},
            "Declares that a record delivered twice is counted once; the handler must store a marker for each record",
        )
    ),
    "recursive-consumer": _exclude_own_writes,
    "sequence-from-count": _field_fix(
        lambda field: replace(field, numbered="counter"),
        "Takes {field} from an atomic counter (tavola.patterns.Sequences), so no two items get the same number",
    ),
    "stale-index-key": _write_index_keys,
    "temporary-item-without-ttl": _add_expiry,
    "transaction-conflicts": _write_fix(
        {"transactional": False, "together": ""},
        "Writes {entity} separately after the transaction, or from the stream: it may lag behind",
    ),
    "ttl-type": _store_as_seconds,
    "ttl-unit": _store_as_seconds,
    "ttl-unused": _match_ttl,
    "unbounded-list": _limit_list,
    "unread-item-failures": _consumer_fix(
        (
            {"report_batch_item_failures": True},
            "Makes Lambda deliver records again that the handler's response names; a handler that raises is not affected",
        )
    ),
    "wrong-stream-view-type": _settings_fix(
        {"stream": "NEW_AND_OLD_IMAGES"},
        "Streams both images; on an existing table the current stream ends, and a stream with a new ARN begins",
    ),
}
