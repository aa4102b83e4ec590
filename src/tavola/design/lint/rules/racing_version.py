"""A number that must grow by one is read, incremented and written back without detecting a second writer.

Why: Two writers read version 7 and both write version 8. Without a condition the later one wins and the other's change is
gone, in silence.

Example: `latest = query(…)[0]; put(version=latest.version + 1)` without `attribute_not_exists`, or an update that sets
`version` on an entity without a lock.

Instead: Mark the field as the lock (`version: Attr[int] = attr(default=0, lock=True)`), so that a write holds only on the
version that was read; make versions that are kept immutable, so that each is created once: the second writer is told. Other code
puts on `attribute_not_exists`, or updates on the version it read, and says so: `WritePattern(…, conditional=True)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.naming import split_words
from tavola.design.lint.rule import LintContext
from tavola.model.document import EntityDesign, FieldDesign, TableDesign

SEVERITY: Severity = "error"

_NAMES = frozenset({"version", "revision", "rev"})


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the sequence numbers and versions that are written without a lock."""
    for table, entity in context.all_entities():
        locked = any(field.lock for field in entity.fields)
        for field in entity.fields:
            if field.numbered == "last" and not locked and not _created_once(table, entity, field):
                yield Finding(
                    "racing-version",
                    SEVERITY,
                    context.field_place(table, entity, field),
                    f"a new {entity.name} takes the {field.name} after the last one it read, and no write of it is on a condition: of two "
                    "writers one is overwritten",
                    _remedy(table, entity, field),
                )
            elif not locked and field.tags == ("N",) and set(split_words(field.name)) & _NAMES:
                setting = [
                    write
                    for write in context.updates_of(entity, field.name)
                    if field.name in write.changes and not write.conditional
                ]
                if setting:
                    yield Finding(
                        "racing-version",
                        "warning",
                        context.field_place(table, entity, field),
                        f"“{setting[0].title}” sets {field.name}, and no lock sees to it that it is still what was read",
                        f"update on condition that {field.name} is what was read, and say conditional=True"
                        if table.foreign
                        else f"make {field.name} the lock: attr(default=0, lock=True)",
                    )


def _created_once(table: TableDesign, entity: EntityDesign, field: FieldDesign) -> bool:
    """Return whether every put is conditional, as puts of an immutable entity with the number in its key are."""
    puts = [write for write in entity.writes if write.kind == "put"]
    if puts and all(write.conditional for write in puts):
        return True
    return _in_key(entity, field) and entity.immutable and not table.foreign


def _remedy(table: TableDesign, entity: EntityDesign, field: FieldDesign) -> str:
    if not _in_key(entity, field):
        return "put it on condition that nothing was written since, and say conditional=True; or raise a lock of what it belongs to"
    if table.foreign:
        return "put on attribute_not_exists of the key, and say conditional=True; or raise a lock of what it belongs to"
    return "declare the entity immutable, so that a put holds only if its key is new, or raise a lock of what it belongs to"


def _in_key(entity: EntityDesign, field: FieldDesign) -> bool:
    return entity.key is not None and field.name in entity.key.fields
