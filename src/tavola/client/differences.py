"""Differences: two designs of one table held against each other, for what stored items must undergo.

Entities are the same by their tag, indexes by their name. What a difference asks for is told with it: nothing, a
rewrite of items in place, a move under another key, or care, where old items could not be read any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.client.reports import DesignDifference, Means
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, TableDesign


def differences(was: TableDesign, now: TableDesign) -> tuple[DesignDifference, ...]:
    """Return what is otherwise in a design than it was, as far as stored items are concerned."""
    return tuple(_differences(was, now))


def given_up(was: TableDesign, now: TableDesign) -> tuple[str, ...]:
    """Return the attributes that keys were written to and that nothing in the design writes now."""
    return tuple(
        sorted(_written(was) - _written(now) - {f.attribute for e in now.entities for f in e.fields})
    )


def _written(table: TableDesign) -> set[str]:
    return {
        source.attribute
        for entity in table.entities
        for key in entity.keys
        for source in key.sources
        if source.field is None
    }


def _differences(was: TableDesign, now: TableDesign) -> Iterator[DesignDifference]:
    if (was.settings.hash, was.settings.range) != (now.settings.hash, now.settings.range):
        yield DesignDifference("", "the table's key is of other attributes; it takes a new table", "move")
    if was.settings.tag != now.settings.tag and now.settings.tag is not None:
        yield DesignDifference("", f"items say in {now.settings.tag} what they are", "rewrite")
    known = {index.name for index in was.indexes}
    for index in now.indexes:
        if index.name not in known:
            yield DesignDifference("", f"the index {index.name} is new; table_changes() adds it", "nothing")
    before = {entity.tag: entity for entity in was.entities}
    after = {entity.tag: entity for entity in now.entities}
    for tag in sorted(before.keys() - after.keys()):
        yield DesignDifference(
            tag, "it is no longer in the design; its items stay, as of no known entity", "care"
        )
    for tag, entity in after.items():
        if tag in before:
            yield from _entity(before[tag], entity)


def _entity(was: EntityDesign, now: EntityDesign) -> Iterator[DesignDifference]:
    if was.version != now.version:
        means: Means = "rewrite" if now.version > was.version else "care"
        yield DesignDifference(
            now.tag, f"its schema is of version {now.version}, and was of {was.version}", means
        )
    if _essence(was.key) != _essence(now.key):
        what = f"its key in the table is {_words(now.key)}, and was {_words(was.key)}"
        yield DesignDifference(now.tag, what, "move")
    for index in dict.fromkeys((*(k.index for k in was.keys), *(k.index for k in now.keys))):
        yield from _key(now.tag, str(index), was.key_on(index), now.key_on(index))
    before = {field.name: field for field in was.fields}
    for field in now.fields:
        if now.version == was.version:
            yield from _field(now.tag, before.get(field.name), field)
        yield from _unique(now.tag, before.get(field.name), field)
    for name in sorted(before.keys() - {field.name for field in now.fields}):
        if before[name].unique:
            what = f"{name} was unique, and is not in the design any more; verify_keys(repair=True) removes its guards"
            yield DesignDifference(now.tag, what, "rewrite")


def _unique(tag: str, was: FieldDesign | None, now: FieldDesign) -> Iterator[DesignDifference]:
    """Give what is otherwise in who may share a field's value."""
    if was is None:
        return
    if now.unique and (not was.unique or was.within != now.within):
        before = f"was so{_within(was)}" if was.unique else "was not"
        what = f"{now.name} is unique{_within(now)}, and {before}; a backfill makes the guards"
        yield DesignDifference(tag, f"{what}, and tells values that are taken twice", "rewrite")
    elif was.unique and not now.unique:
        what = f"{now.name} is unique no more; verify_keys(repair=True) removes its guards"
        yield DesignDifference(tag, what, "rewrite")


def _within(field: FieldDesign) -> str:
    return f" within {' and '.join(field.within)}" if field.within else " in the whole table"


def _key(tag: str, index: str, was: KeyDesign | None, now: KeyDesign | None) -> Iterator[DesignDifference]:
    if was is None:
        yield DesignDifference(tag, f"it is in {index} now", "rewrite")
    elif now is None:
        yield DesignDifference(tag, f"it is in {index} no more", "rewrite")
    else:
        if _essence(was) != _essence(now):
            yield DesignDifference(
                tag, f"its key in {index} is {_words(now)}, and was {_words(was)}", "rewrite"
            )
        if (was.sparse, was.members) != (now.sparse, now.members):
            yield DesignDifference(tag, f"other items of it are in {index}", "rewrite")
        if was.shards != now.shards:
            yield DesignDifference(
                tag, f"its shards in {index} are {_shards(now)}, and were {_shards(was)}", "rewrite"
            )


def _field(tag: str, was: FieldDesign | None, now: FieldDesign) -> Iterator[DesignDifference]:
    if was is None:
        if now.required and not now.nullable:
            what = f"{now.name} is new and has no default, so old items cannot be read; give it one, or raise version="
            yield DesignDifference(tag, what, "care")
    elif was.attribute != now.attribute:
        what = f"{now.name} is stored as {now.attribute}, and was as {was.attribute}; raise version= with an @upgrade"
        yield DesignDifference(tag, what, "care")
    elif not set(was.tags) & set(now.tags):
        what = (
            f"{now.name} is stored as {'/'.join(now.tags)}, and was as {'/'.join(was.tags)}; raise version= with an "
            "@upgrade"
        )
        yield DesignDifference(tag, what, "care")


def _essence(key: KeyDesign | None) -> list[tuple[str, str, str]]:
    """Return how a key is written, its shards aside; the number of a shard's digits is part of the template."""
    return [] if key is None else [(s.attribute, s.tag, _source(s)) for s in key.sources]


def _source(source: object) -> str:
    template, field = getattr(source, "template", None), getattr(source, "field", None)
    return f"{{{field}}}" if template is None else str(template.source)


def _words(key: KeyDesign | None) -> str:
    return "nothing" if key is None else " and ".join(repr(_source(source)) for source in key.sources)


def _shards(key: KeyDesign) -> str:
    shards = key.shards
    if shards is None:
        return "none"
    if shards.by == "time":
        return f"each {shards.bucket} of {shards.of[0]}"
    read = f", {shards.reads} read" if shards.reads != shards.count else ""
    return f"{shards.count} by {shards.by}{read}"
