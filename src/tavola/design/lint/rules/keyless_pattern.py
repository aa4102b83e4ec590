"""The items that an access pattern asks for never carry its key.

Why: An index holds the items that have all its key attributes, and no others. A query by a key that nobody writes is right in every
way and returns nothing, for ever.

Example: "the review of a run" asks `GSI1PK = RUN#…`, and reviews are written with `GSI1PK = STACK#…` alone.

Instead: Write the key on the items that are asked for, or on an item of their own that points to them; or ask by the key they have.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import Asked, Subject
from tavola.design.lint.telling import joined
from tavola.design.lint.texts import can_make
from tavola.model.document import EntityDesign, KeyDesign

SEVERITY: Severity = "error"


def find(subject: Subject) -> Iterator[Finding]:
    """Give the needs whose items lack the key that they are asked by, or have it of other things."""
    for asked in subject.asked():
        told = _told(subject, asked)
        if told is not None:
            yield Finding("keyless-pattern", SEVERITY, subject.need_place(asked.need), *told)
    for table, entity, pattern in subject.design.patterns():
        key = entity.key_on(pattern.index)
        index = subject.index_of(table, pattern.index)
        if index is None or key is None:
            continue
        written = {source.attribute for source in key.sources}
        missing = [name for name in index.attributes if name not in written]
        if missing:
            yield Finding(
                "keyless-pattern",
                SEVERITY,
                subject.pattern_place(table, entity, pattern),
                f"{entity.name} never writes {joined(missing)}, so none of it is in {index.name}",
                f"write {joined(missing)} on every {entity.name}",
            )


def _told(subject: Subject, asked: Asked) -> tuple[str, str] | None:
    """Return what is wrong and what to do, None if some item has the key."""
    if asked.route.operation == "scan":
        return None
    if not asked.known:
        there = joined([index.name for index in asked.table.indexes]) or "none"
        return (
            f"it asks {asked.route.index}, and {asked.table.name} has {there}",
            "add the index, or ask one there is",
        )
    name = None if asked.index is None else asked.index.name
    entities = [entity for each in asked.need.entities if (entity := _here(subject, asked, each)) is not None]
    for entity in entities:
        key = entity.key_on(name)
        if key is None:
            attributes = joined(asked.hash + asked.range)
            return (
                f"it asks {asked.on}, and {entity.name} never carries its key, {attributes}",
                f"write {attributes} on every {entity.name}",
            )
        missing = [
            each for each in asked.hash + asked.range if each not in {s.attribute for s in key.sources}
        ]
        if missing:
            return (
                f"it asks {asked.on}, and {entity.name} never carries {joined(missing)}",
                f"write {joined(missing)} on every {entity.name}",
            )
        other = _other(asked, entity, key)
        if other is not None:
            return other
    return None


def _here(subject: Subject, asked: Asked, name: str) -> EntityDesign | None:
    home = subject.homes.get(name)
    return home[1] if home is not None and home[0] is asked.table else None


def _other(asked: Asked, entity: EntityDesign, key: KeyDesign) -> tuple[str, str] | None:
    """Return what is said where the key is made of other fields than the need gives, or of other texts."""
    given = {each.field for each in asked.need.where if each.operator in ("=", "in")}
    for source in key.hash:
        condition = next((each for each in asked.route.keys if each.field == source.attribute), None)
        if condition is None or condition.operator != "=":
            continue
        made = source.field if source.template is None else source.template.source
        if condition.value is not None:
            if source.template is not None and not can_make(entity, source, condition.value):
                value = condition.value.get("S", condition.value)
                return (
                    f"it asks {source.attribute} = {value}, and {entity.name} writes it as {made} alone",
                    f"write that key on every {entity.name}, or ask by the key it has",
                )
            continue
        unknown = [name for name in source.fields if name not in given]
        if unknown and given:
            return (
                f"it gives {joined(sorted(given))}, and {source.attribute} of {entity.name} is made of {made}",
                f"write a key of {joined(sorted(given))} on every {entity.name}, or ask by {joined(unknown)}",
            )
    return None
