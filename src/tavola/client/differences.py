"""Differences between two designs of one table, and their consequences for stored items.

Entities are matched by name (tag), indexes by name. The consequence of a difference is one of: nothing; rewrite (items are
rewritten in place); move (items need another primary key); care (old items could no longer be read).
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.client.reports import Consequence, DesignDifference
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, TableDesign


def differences(was: TableDesign, now: TableDesign) -> tuple[DesignDifference, ...]:
    """Return the differences that affect stored items."""
    return tuple(_differences(was, now))


def removed_attributes(was: TableDesign, now: TableDesign) -> tuple[str, ...]:
    """Return the key attributes that the new design no longer writes."""
    return tuple(
        sorted(
            _template_attributes(was)
            - _template_attributes(now)
            - {f.attribute for e in now.entities for f in e.fields}
        )
    )


def _template_attributes(table: TableDesign) -> set[str]:
    return {
        source.attribute
        for entity in table.entities
        for key in entity.keys
        for source in key.sources
        if source.field is None
    }


def _differences(was: TableDesign, now: TableDesign) -> Iterator[DesignDifference]:
    if (was.settings.hash, was.settings.range) != (now.settings.hash, now.settings.range):
        yield DesignDifference("", "the primary key has other attributes, which requires a new table", "move")
    if was.settings.tag != now.settings.tag and now.settings.tag is not None:
        yield DesignDifference("", f"items store their entity name in {now.settings.tag}", "rewrite")
    known = {index.name for index in was.indexes}
    for index in now.indexes:
        if index.name not in known:
            yield DesignDifference("", f"the index {index.name} is new; table_changes() adds it", "nothing")
    before = {entity.tag: entity for entity in was.entities}
    after = {entity.tag: entity for entity in now.entities}
    for tag in sorted(before.keys() - after.keys()):
        yield DesignDifference(
            tag, "it is no longer in the design; its items stay, and belong to no known entity", "care"
        )
    for tag, entity in after.items():
        if tag in before:
            yield from _entity(before[tag], entity)


def _entity(was: EntityDesign, now: EntityDesign) -> Iterator[DesignDifference]:
    if was.version != now.version:
        consequence: Consequence = "rewrite" if now.version > was.version else "care"
        what = f"its schema version is {now.version}, and was {was.version}"
        yield DesignDifference(now.tag, what, consequence)
    if _key_data(was.key) != _key_data(now.key):
        what = f"its primary key is {_key_text(now.key)}, and was {_key_text(was.key)}"
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
            what = f"{name} was unique and is no longer in the design; verify_keys(repair=True) removes its guards"
            yield DesignDifference(now.tag, what, "rewrite")


def _unique(tag: str, was: FieldDesign | None, now: FieldDesign) -> Iterator[DesignDifference]:
    """Yield the differences in which values must be unique."""
    if was is None:
        return
    if now.unique and (not was.unique or was.within != now.within):
        before = f"was unique{_within(was)}" if was.unique else "was not"
        what = f"{now.name} is unique{_within(now)}, and {before}; a backfill creates the guards and reports duplicates"
        yield DesignDifference(tag, what, "rewrite")
    elif was.unique and not now.unique:
        what = f"{now.name} is no longer unique; verify_keys(repair=True) removes its guards"
        yield DesignDifference(tag, what, "rewrite")


def _within(field: FieldDesign) -> str:
    return f" within {' and '.join(field.within)}" if field.within else " in the whole table"


def _key(tag: str, index: str, was: KeyDesign | None, now: KeyDesign | None) -> Iterator[DesignDifference]:
    if was is None:
        yield DesignDifference(tag, f"its items are added to {index}", "rewrite", index)
    elif now is None:
        yield DesignDifference(tag, f"its items are removed from {index}", "rewrite", index)
    else:
        if _key_data(was) != _key_data(now):
            what = f"its key in {index} is {_key_text(now)}, and was {_key_text(was)}"
            yield DesignDifference(tag, what, "rewrite")
        if (was.sparse, was.members) != (now.sparse, now.members):
            yield DesignDifference(tag, f"{index} contains other items of it", "rewrite")
        if was.shards != now.shards:
            what = f"{index}: {_shards_change(was, now)}"
            yield DesignDifference(tag, what, "rewrite")


def _field(tag: str, was: FieldDesign | None, now: FieldDesign) -> Iterator[DesignDifference]:
    if was is None:
        if now.required and not now.nullable:
            what = f"{now.name} is new and has no default, so old items cannot be read; add one, or raise version="
            yield DesignDifference(tag, what, "care")
    elif was.attribute != now.attribute:
        what = f"{now.name} is stored as {now.attribute}, and was {was.attribute}; raise version= with an @upgrade"
        yield DesignDifference(tag, what, "care")
    elif not set(was.tags) & set(now.tags):
        types = f"{'/'.join(now.tags)}, and was {'/'.join(was.tags)}"
        what = f"{now.name} has the type {types}; raise version= with an @upgrade"
        yield DesignDifference(tag, what, "care")


def _key_data(key: KeyDesign | None) -> list[tuple[str, str, str]]:
    """Return how a key is written, without its shards; the number of digits of a shard is part of the template."""
    return [] if key is None else [(s.attribute, s.tag, _source_text(s)) for s in key.sources]


def _source_text(source: object) -> str:
    template, field = getattr(source, "template", None), getattr(source, "field", None)
    return f"{{{field}}}" if template is None else str(template.source)


def _key_text(key: KeyDesign | None) -> str:
    return "nothing" if key is None else " and ".join(repr(_source_text(source)) for source in key.sources)


def _shards_change(was: KeyDesign, now: KeyDesign) -> str:
    """Return how shards change, such as `8 → 4 shards (hash)`."""
    old, new = was.shards, now.shards
    if (
        old is not None
        and new is not None
        and old.by == new.by != "time"
        and (old.count, new.count) == (old.reads, new.reads)
    ):
        return f"{old.count} → {new.count} shards ({new.by})"
    return f"shards {_shards_text(was)} → {_shards_text(now)}"


def _shards_text(key: KeyDesign) -> str:
    shards = key.shards
    if shards is None:
        return "none"
    if shards.by == "time":
        return f"each {shards.bucket} of {shards.of[0]}"
    read = f", {shards.reads} read" if shards.reads != shards.count else ""
    return f"{shards.count} by {shards.by}{read}"
