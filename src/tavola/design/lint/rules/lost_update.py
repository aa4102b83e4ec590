"""A version number is read, incremented and written back without a condition.

Why: Two writers read version 7 and both write version 8. Without a condition the last write wins, and the
other change is lost silently.

Example: `latest = query(…)[0]; put(version=latest.version + 1)` without `attribute_not_exists`, or an update
that sets `version` on an entity without optimistic locking.

Instead: Use optimistic locking: declare the field as the lock (`version: Attr[int] = attr(default=0,
lock=True)`). Declare stored versions immutable, so that a second put of the same key fails. Other code puts
with `attribute_not_exists`, or updates on condition that the version is unchanged, and declares
`WritePattern(…, conditional=True)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import EntityDesign, FieldDesign, TableDesign

SEVERITY = "error"

_NAMES = frozenset({"version", "revision", "rev"})


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the sequence numbers and versions that are written without a lock."""
    for table, entity in context.all_entities():
        locked = any(field.lock for field in entity.fields)
        for field in entity.fields:
            if field.numbered == "last" and not locked and not _created_once(table, entity, field):
                yield Defect(
                    context.field_place(table, entity, field),
                    f"A new {entity.name} gets the last {field.name} read plus one, and no write has a condition: one of two concurrent "
                    "writes is lost",
                    _describe_remedy(table, entity, field),
                )
            elif not locked and field.tags == ("N",) and set(split_words(field.name)) & _NAMES:
                setting = [
                    write
                    for write in context.updates_of(entity, field.name)
                    if field.name in write.changes and not write.conditional
                ]
                if setting:
                    yield Defect(
                        context.field_place(table, entity, field),
                        f"“{setting[0].title}” sets {field.name} without a condition on the {field.name} that was read: one of two concurrent updates is lost",
                        f"Update on condition that {field.name} is unchanged, and declare conditional=True"
                        if table.foreign
                        else f"Use optimistic locking: {field.name} = attr(default=0, lock=True)",
                        severity="warning",
                    )


def _created_once(table: TableDesign, entity: EntityDesign, field: FieldDesign) -> bool:
    """Return whether every put is conditional, as puts of an immutable entity with the number in its key are."""
    puts = [write for write in entity.writes if write.kind == "put"]
    if puts and all(write.conditional for write in puts):
        return True
    return _in_key(entity, field) and entity.immutable and not table.foreign


def _describe_remedy(table: TableDesign, entity: EntityDesign, field: FieldDesign) -> str:
    if not _in_key(entity, field):
        return "Put with a condition that nothing changed since the read, and declare conditional=True; or increment the lock of its parent item"
    if table.foreign:
        return "Put with attribute_not_exists on the key, and declare conditional=True; or increment the lock of its parent item"
    return "Declare the entity immutable, so that a put succeeds only if its key is new, or increment the lock of its parent item"


def _in_key(entity: EntityDesign, field: FieldDesign) -> bool:
    return entity.key is not None and field.name in entity.key.fields
