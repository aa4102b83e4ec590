"""Derive key attributes from an item's fields, so that an edit leaves no stale key.

The design's templates render the table's key, every index key, the tag and the lock from the edited item. Where other code
writes the keys (`foreign`), or a template was guessed by an import, a key is derived only if the stored key equals what the
template renders from the fields before the edit. Otherwise the key is left alone and the user is warned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from tavola.errors import TavolaError
from tavola.keys import KeyPartMissing, Placeholder
from tavola.model import SHARD, VERSION_ATTRIBUTE
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign
from tavola.studio.edits.validation import ItemIssue
from tavola.studio.field_values import FieldUnreadable, field_values
from tavola.studio.recognition import value_text
from tavola.studio.types import AttributeValue
from tavola.values import Item, Value, add_numbers, equal


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A derived attribute that an edit changes."""

    attribute: str
    index: str | None  # None: the primary key
    template: str  # empty: the tag or the lock
    before: AttributeValue | None
    after: AttributeValue | None


@dataclass(frozen=True, slots=True)
class DerivedItem:
    """An item with derived keys, the attributes that changed, and the keys that could not be derived."""

    item: Item
    changes: tuple[KeyChange, ...] = ()
    issues: tuple[ItemIssue, ...] = ()


@dataclass(frozen=True, slots=True)
class _KeyAttributes:
    """The derived attributes of a key; a value of None means that the item is not in the index."""

    attributes: dict[str, Value | None]
    templates: dict[str, str]


class _KeyUncertain(Exception):
    """A key that cannot be derived: the reason as a sentence, and the attribute."""


def derive_keys(table: TableDesign, entity: EntityDesign, item: Item, before: Item | None) -> DerivedItem:
    """Return an item with all key attributes derived from its fields; `before` is the stored item."""
    result: Item = dict(item)
    changes: list[KeyChange] = []
    issues: list[ItemIssue] = []
    for name, value in _system_attributes(table, entity, item, before):
        if not values_equal(result.get(name), value):
            result[name] = value
            changes.append(KeyChange(name, None, "", item.get(name), value))
    for key in (entity.key, *entity.keys):
        if key is None:
            continue
        try:
            derived = _derive_key(table, entity, key, result, before)
        except _KeyUncertain as reason:
            if before is None or _is_affected(entity, key, item, before):
                issues.append(ItemIssue((str(reason.args[1]),), str(reason.args[0]), "warning"))
            continue
        for name, expected in derived.attributes.items():
            if values_equal(result.get(name), expected):
                continue
            changes.append(KeyChange(name, key.index, derived.templates[name], item.get(name), expected))
            if expected is None:
                result.pop(name, None)
            else:
                result[name] = expected
    return DerivedItem(result, tuple(changes), tuple(issues))


def stale_keys(
    table: TableDesign, entity: EntityDesign, item: Item, before: Item | None
) -> Iterator[ItemIssue]:
    """Yield a warning for each key attribute that does not match the item's fields."""
    derived = derive_keys(table, entity, item, before)
    yield from derived.issues
    for change in derived.changes:
        if not change.template:
            continue
        place = "the primary key" if change.index is None else change.index
        expected_text = "absent" if change.after is None else repr(value_text(change.after))
        text = f"Stale key: {place} is computed from {change.template}, which gives {expected_text}."
        yield ItemIssue((change.attribute,), text, "warning")


def key_inputs(entity: EntityDesign | None, names: Collection[str]) -> set[str]:
    """Return the attributes from which, together with the edited ones, keys are derived.

    The derived key is right only while they still have the values that were read.
    """
    inputs: set[str] = set()
    for key in () if entity is None else (entity.key, *entity.keys):
        if entity is None or key is None or not any(source.template is not None for source in key.sources):
            continue
        attributes = {field.attribute for field in entity.fields if field.name in key.fields}
        attributes |= {source.attribute for source in key.sources}
        if not attributes.isdisjoint(names):
            inputs |= attributes
    return inputs.difference(names)


def values_equal(one: Value | AttributeValue | None, other: Value | AttributeValue | None) -> bool:
    """Return whether two values are equal; None means absent."""
    if one is None or other is None:
        return one is other
    return one == other or equal(dict(one), dict(other))


def increment_lock(lock: Value) -> Value:
    """Return a lock incremented by one write."""
    return {"N": add_numbers(lock.get("N", "0"), "1")}


def with_next_lock(
    entity: EntityDesign | None, current: Item | None, replacement: Item | None
) -> Item | None:
    """Return a restored item with the lock incremented from the current one, so that stale writers still fail."""
    if entity is None or current is None or replacement is None:
        return replacement
    lock = next((field.attribute for field in entity.fields if field.lock), None)
    if lock is None or lock not in current or values_equal(current[lock], replacement.get(lock)):
        return replacement
    return replacement | {lock: increment_lock(current[lock])}


def _system_attributes(
    table: TableDesign, entity: EntityDesign, item: Item, before: Item | None
) -> Iterator[tuple[str, Value]]:
    """Yield the attributes that Tavola itself writes: the lock, the tag and the schema version."""
    lock = next((field for field in entity.fields if field.lock), None)
    if lock is not None and not table.foreign:
        lock_value = (before or {}).get(lock.attribute, {}).get("N")
        if before is None:
            yield lock.attribute, {"N": "1"}
        elif lock_value is not None and any(
            not values_equal(before.get(n), item.get(n)) for n in {*before, *item}
        ):
            yield lock.attribute, increment_lock({"N": lock_value})
    if before is not None or table.foreign:
        return
    if table.settings.tag is not None and table.settings.tag not in item:
        yield table.settings.tag, {"S": entity.tag}
    if entity.version > 1 and VERSION_ATTRIBUTE not in item:
        yield VERSION_ATTRIBUTE, {"N": str(entity.version)}


def _derive_key(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, item: Item, before: Item | None
) -> _KeyAttributes:
    """Return the derived attributes of a key; raise `_KeyUncertain` if they cannot be derived."""
    primary_sources = entity.key.sources if entity.key is not None else ()
    base = {source.attribute for source in primary_sources} if key.index is not None else set()
    written = [s for s in key.sources if s.template is not None and s.attribute not in base]
    if not written:
        return _KeyAttributes({}, {})
    templates = {source.attribute: source.template.source for source in written if source.template}
    outdated = before is not None and entity.version > 1 and _version(before) != entity.version
    if table.foreign or outdated or any(source.guessed for source in written):
        _check_evidence(table, entity, key, written, item, before)
    rendered = _render_attributes(entity, key, written, item, loose=table.foreign)
    if rendered is None and key.index is None:
        raise _KeyUncertain(
            f"It is part of the primary key, and fields of {templates[written[0].attribute]} are missing.",
            written[0].attribute,
        )
    absent = _absent_default(entity, key, item) if rendered is None else None
    if absent is not None and before is not None:
        template_text = templates[written[0].attribute]
        raise _KeyUncertain(
            f"The template {template_text} uses a missing field whose default only your program knows; the key is left "
            "unchanged.",
            written[0].attribute,
        )
    if absent is not None:
        raise _KeyUncertain(
            f"The item will not be in {key.index}: {absent.name} is missing, and only your program knows its default. "
            "Enter a value.",
            absent.attribute,
        )
    if rendered is not None and before is not None:
        rendered |= _keep_shard(entity, key, written, item, rendered)
    return _KeyAttributes(
        {s.attribute: None if rendered is None else rendered[s.attribute] for s in written}, templates
    )


def _render_attributes(
    entity: EntityDesign, key: KeyDesign, written: list[SourceDesign], item: Item, *, loose: bool
) -> dict[str, Value] | None:
    """Return the attributes of a key; None if the item is not in the index."""
    for member in key.members:
        stored = item.get(entity.field(member.field).attribute)
        if not any(values_equal(stored, value) for value in member.values):
            return None
    if loose:
        texts = {source.attribute: _render_loosely(entity, source, item) for source in written}
        return {n: {"S": t} for n, t in texts.items() if t is not None} if all(texts.values()) else None
    sources = key.sources if key.sparse else tuple(written)
    of = key.shards.of if key.shards is not None else ()
    names = tuple(dict.fromkeys([*(name for source in sources for name in source.fields), *of]))
    try:
        values = field_values(entity, item, tuple(n for n in names if entity.field(n).key_kind is not None))
    except FieldUnreadable as error:
        # The same message for every key of the field, so that it is reported once, at the field.
        message = f"{error}; keys computed from it are left unchanged."
        raise _KeyUncertain(message, error.attribute) from error
    if key.sparse and any(n not in values and entity.field(n).attribute not in item for n in names):
        return None
    if key.shards is not None and key.shards.by != "time":
        values[SHARD] = _shard_number(entity, key, item)
    rendered: dict[str, Value] = {}
    for source in written:
        try:
            bound = entity.bind_template(source)
            assert bound is not None, "`written` has only sources with a template"
            rendered[source.attribute] = {"S": bound.render(values)}
        except KeyPartMissing:
            return None
        except TavolaError as error:
            raise _KeyUncertain(
                f"The key can't be computed: {error}. It is left unchanged.", source.attribute
            ) from error
    return rendered


def _render_loosely(entity: EntityDesign, source: SourceDesign, item: Item) -> str | None:
    """Return a template rendered with stored values as they are, neither padded nor escaped."""
    assert source.template is not None, "the caller passes only sources with a template"
    text = ""
    for segment in source.template.segments:
        if not isinstance(segment, Placeholder):
            text += segment
            continue
        field = next((f for f in entity.fields if f.name == segment.field), None)
        stored = None if field is None else item.get(field.attribute)
        if stored is None:
            return None
        text += value_text(stored)
    return text


def _check_evidence(
    table: TableDesign,
    entity: EntityDesign,
    key: KeyDesign,
    written: list[SourceDesign],
    item: Item,
    before: Item | None,
) -> None:
    """Refuse to derive a key unless the stored key shows that the template renders it."""
    if before is None:
        missing = [source for source in written if source.attribute not in item]
        if len(missing) == len(written):
            return  # a new item without these attributes: the template is the best guess
        raise _KeyUncertain(
            "This key is not computed from the template; it is left as entered.", written[0].attribute
        )
    try:
        was = _render_attributes(entity, key, written, before, loose=table.foreign)
    except _KeyUncertain:
        was = None
    stored = {s.attribute: before[s.attribute] for s in written if s.attribute in before}
    if was is None and not stored:
        return
    if was is None or any(not values_equal(stored.get(name), value) for name, value in was.items()):
        template = written[0].template
        template_note = "" if template is None else f" ({template.source})"
        raise _KeyUncertain(
            f"The stored key does not match its template{template_note}, so it is left unchanged; check that it is still correct.",
            written[0].attribute,
        )


def _is_affected(entity: EntityDesign, key: KeyDesign, item: Item, before: Item) -> bool:
    """Return whether an edit changes a field of a key."""
    attributes = {entity.field(name).attribute for name in key.fields}
    return any(not values_equal(before.get(name), item.get(name)) for name in attributes)


def _absent_default(entity: EntityDesign, key: KeyDesign, item: Item) -> FieldDesign | None:
    """Return an absent field of a key that has a default; None if there is none."""
    fields = [field for field in entity.fields if field.name in key.fields]
    return next((f for f in fields if f.attribute not in item and not f.required and not f.nullable), None)


def _version(item: Item) -> int:
    return int(item.get(VERSION_ATTRIBUTE, {}).get("N", "1"))


def _shard_number(entity: EntityDesign, key: KeyDesign, item: Item) -> int:
    """Return an item's shard from its key or the declared fields; for random shards any is valid."""
    assert key.shards is not None, "only sharded keys have shards"
    primary_key = entity.key
    assert primary_key is not None, "a stored entity has a key"
    if key.shards.of or key.index is None:
        names = key.shards.of or tuple(sorted(key.fields))
        key_text = "\x00".join(f"{name}={_stored_text(entity, item, name)}" for name in names)
    else:
        key_text = "\x00".join(value_text(item.get(source.attribute, {})) for source in primary_key.sources)
    return crc32(key_text.encode()) % key.shards.count


def _stored_text(entity: EntityDesign, item: Item, name: str) -> str:
    return value_text(item.get(entity.field(name).attribute, {}))


def _keep_shard(
    entity: EntityDesign, key: KeyDesign, written: list[SourceDesign], item: Item, rendered: dict[str, Value]
) -> dict[str, Value]:
    """Return the stored value of a sharded key if only its shard differs and that shard is valid."""
    shards = key.shards
    if shards is None or shards.by == "time" or (shards.by == "hash" and shards.reading is None):
        return {}
    source = written[0]
    bound = entity.bind_template(source)
    stored = item.get(source.attribute, {}).get("S")
    if bound is None or stored is None:
        return {}
    current: dict[str, Any] | None = bound.read(stored)
    expected = bound.read(rendered[source.attribute]["S"])
    if current is None or expected is None or not 0 <= current[SHARD] < shards.reads:
        return {}
    return {source.attribute: {"S": stored}} if {**current, SHARD: expected[SHARD]} == expected else {}
