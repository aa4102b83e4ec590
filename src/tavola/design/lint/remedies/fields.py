"""Fixes that change the declaration of a field or an entity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tavola.design.findings import Finding
from tavola.design.lint.remedies.proposal import (
    Fixer,
    Proposal,
    entity_at,
    field_at,
    keys_at,
    put_entity,
    put_field,
    put_settings,
)
from tavola.model.document import Design, FieldDesign

_FLOAT = re.compile(r"\b(float|double)\b", re.IGNORECASE)
_NAIVE = re.compile(r"\b(naive|local)[ _-]*", re.IGNORECASE)
_ELEMENTS = (100, 50, 20, 10)  # bounds of a list that somebody would give
_CHARACTERS = (256, 128, 64, 32)  # bounds of a text that stands in a key


def epoch_seconds(field: FieldDesign, attribute: str | None = None) -> FieldDesign:
    """Return a field as a TTL attribute: a time, stored as epoch seconds."""
    return replace(
        field,
        attribute=field.attribute if attribute is None else attribute,
        type="epoch-seconds",
        tags=("N",),
        key_kind=None,
    )


def _store_as_decimal(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = field_at(design, finding)
    if found is not None:
        table, entity, field = found
        exact = replace(field, type=_FLOAT.sub("decimal", field.type))
        yield Proposal(
            put_field(design, table, entity, exact),
            f"{field.name} is a decimal, which keeps every digit it is given; the code that writes it makes a Decimal of text",
        )


def _add_time_zone(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = field_at(design, finding)
    if found is not None:
        table, entity, field = found
        zoned = replace(field, type=_NAIVE.sub("", field.type).strip() or "datetime")
        yield Proposal(
            put_field(design, table, entity, zoned),
            f"{field.name} is a moment with its zone; the code that writes it asks datetime.now(UTC)",
        )


def _store_as_seconds(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = field_at(design, finding)
    if found is not None:
        table, entity, field = found
        yield Proposal(
            put_field(design, table, entity, epoch_seconds(field)),
            f"{field.name} is stored in epoch seconds, as a number; items that stand are to be written anew",
        )


def _limit_list(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = field_at(design, finding)
    if found is None:
        return
    table, entity, field = found
    for most in _ELEMENTS:
        yield Proposal(
            put_field(design, table, entity, replace(field, length_max=most)),
            f"{field.name} has {most} elements at most, a number to be chosen; where more are wanted, each is an item under the same "
            "partition key",
        )


def _limit_text(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, entity, key in keys_at(design, finding):
        long = [
            field
            for field in entity.fields
            if field.name in key.fields and field.type == "text" and field.choices is None
        ]
        for most in _CHARACTERS:
            fields = tuple(
                replace(field, length_max=min(most, field.length_max or most)) if field in long else field
                for field in entity.fields
            )
            yield Proposal(
                put_entity(design, table, replace(entity, fields=fields)),
                f"{' and '.join(field.name for field in long)} {'has' if len(long) == 1 else 'have'} {most} characters at most, so that "
                "every key fits; a longer one could be a digest",
            )


def _use_counter(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = field_at(design, finding)
    if found is not None:
        table, entity, field = found
        yield Proposal(
            put_field(design, table, entity, replace(field, numbered="counter")),
            f"{field.name} comes from a counter that is raised atomically (tavola.patterns.Sequences), and no two items get one number",
        )


def _detect_second_writer(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield ways to make the second of two writers fail: a new key, a lock, or a condition in foreign code."""
    found = field_at(design, finding)
    if found is None:
        return
    table, entity, field = found
    if not table.foreign:
        yield Proposal(
            put_entity(design, table, replace(entity, immutable=True)),
            f"{entity.name} is immutable: a put holds only if its key is new, and the second of two writers is told",
        )
        yield Proposal(
            put_field(design, table, entity, replace(field, lock=True, required=False, numbered=None)),
            f"{field.name} is the lock: an update holds only if it is what was read, and raises it",
        )
    writes = tuple(replace(write, conditional=True) for write in entity.writes)
    yield Proposal(
        put_entity(design, table, replace(entity, writes=writes)),
        f"writes of {entity.name} are on a condition, which the code that writes them is to have",
    )


def _make_mutable(design: Design, finding: Finding) -> Iterator[Proposal]:
    home = entity_at(design, finding)
    if home is not None:
        table, entity = home
        yield Proposal(
            put_entity(design, table, replace(entity, immutable=False)),
            f"{entity.name} is derived and does change; what must never change is better an item of its own",
        )


def _add_expiry(design: Design, finding: Finding) -> Iterator[Proposal]:
    home = entity_at(design, finding)
    if home is None:
        return
    table, entity = home
    attribute = table.settings.ttl or "expires_at"
    held = next((field for field in entity.fields if field.attribute == attribute), None)
    name = "expires_at" if all(field.name != "expires_at" for field in entity.fields) else "expires_at_s"
    made = epoch_seconds(held or FieldDesign(name, attribute, "epoch-seconds", ("N",)))
    kept = tuple(field for field in entity.fields if field.attribute != attribute)
    changed = put_entity(design, table, replace(entity, fields=(*kept, made)))
    expiring = next(each for each in changed.tables if each.name == table.name)
    yield Proposal(
        put_settings(changed, expiring, ttl=attribute),
        f"each {entity.name} says when it ends, under {attribute}, and DynamoDB deletes it then at no cost",
    )


FIXERS: dict[str, Fixer] = {
    "changed-immutable": _make_mutable,
    "float-numbers": _store_as_decimal,
    "idempotency-without-expiry": _add_expiry,
    "key-too-long": _limit_text,
    "naive-time": _add_time_zone,
    "racing-version": _detect_second_writer,
    "sequence-by-count": _use_counter,
    "ttl-type": _store_as_seconds,
    "ttl-unit": _store_as_seconds,
    "unbounded-list": _limit_list,
}
