"""Fixes that change how a key is made: shards, padding, prefixes, or sparse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tavola.design.findings import Finding
from tavola.design.lint.heat import partition_heat
from tavola.design.lint.remedies.proposal import Fixer, Proposal, entity_at, keys_at, put_entity, put_key
from tavola.design.lint.rule import LintContext
from tavola.design.lint.rules.unpadded_number import is_fraction
from tavola.design.text import join_names
from tavola.keys import Placeholder, Template, TemplateRefused
from tavola.model import SHARD
from tavola.model.document import Design, EntityDesign, KeyDesign, Shards, SourceDesign, TableDesign

_DIGITS = "06"
_REWRITE = "; rewrite existing items (tavola backfill)"
_COPY = "; primary keys cannot be changed, so copy existing items to the new key"


def _add_shards(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the key with as many shards as its load needs."""
    context = LintContext(design)
    for table, entity, key in keys_at(design, finding):
        found = partition_heat(context, table, entity, key)
        wanted = (
            None if found is None else found.shards_needed("write", "read") or found.shards_needed("write")
        )
        for count in () if wanted is None else (wanted, wanted * 2):
            made = with_shard_count(table, key, count)
            if made is not None and count > 1:
                yield Proposal(
                    put_key(design, table, entity, key, made),
                    f"Spreads {entity.name} over {count} shards in {_on(table, key)}; a query reads all of them{_migration_note(key)}",
                )


def _reduce_shards(design: Design, finding: Finding) -> Iterator[Proposal]:
    context = LintContext(design)
    for table, entity, key in keys_at(design, finding):
        found = partition_heat(context, table, entity, key)
        wanted = None if found is None else found.shards_needed("write")
        made = None if wanted is None else with_shard_count(table, key, wanted)
        if made is not None:
            yield Proposal(
                put_key(design, table, entity, key, made),
                f"Reduces {entity.name} to {wanted} shard{'' if wanted == 1 else 's'} in {_on(table, key)}; while items are rewritten, keep reading "
                "the old number (tavola.patterns.shard_change)",
            )


def with_shard_count(table: TableDesign, key: KeyDesign, count: int) -> KeyDesign | None:
    """Return a key with `count` shards, 1 meaning none; None if its partition key is the items' own attribute."""
    last = key.hash[-1]
    if last.template is None:
        return None
    mark = f"{last.template.delimiter}{{{SHARD}:04}}"
    text = last.template.source.removesuffix(mark)
    spread = replace(
        last, template=Template.parse(f"{text}{mark}" if count > 1 else text, last.template.delimiter)
    )
    by, of = ("hash", ()) if key.shards is None or key.shards.by == "time" else (key.shards.by, key.shards.of)
    shards = Shards(count, by, of) if count > 1 else None
    return replace(key, hash=(*key.hash[:-1], spread), shards=shards)


def _pad_numbers(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the sort key with whole numbers zero-padded, so that they sort by value; fractions get an index by number."""
    for table, entity, key in keys_at(design, finding):
        numbers = {
            field.name
            for field in entity.fields
            if (field.tags == ("N",) or field.type == "int") and not is_fraction(field)
        }
        padded = tuple(_with_zeros(source, numbers) for source in key.range)
        if padded == key.range:
            yield from _sort_by_number(design, table, entity, key)
            continue
        whole = {name for source in padded for name in source.fields if name in numbers}
        fields = tuple(
            replace(field, key_kind="int") if field.name in whole and field.key_kind == "text" else field
            for field in entity.fields
        )
        changed = put_key(design, table, replace(entity, fields=fields), key, replace(key, range=padded))
        yield Proposal(
            changed,
            f"Zero-pads {join_names(sorted(whole))} to {int(_DIGITS)} digits (use as many as the largest value needs), so that "
            f"{'it sorts' if len(whole) == 1 else 'they sort'} numerically{_migration_note(key)}",
        )


def _sort_by_number(
    design: Design, table: TableDesign, entity: EntityDesign, key: KeyDesign
) -> Iterator[Proposal]:
    """Yield an index of this entity alone, sorted by the number that its sort key has as text."""
    others = [each for each in table.entities if each is not entity and each.key_on(key.index) is not None]
    if key.index is None or others or len(key.range) != 1 or len(key.range[0].fields) != 1:
        return
    [source] = key.range
    field = entity.field(source.fields[0])
    alone = source.template is None or all(isinstance(each, Placeholder) for each in source.template.segments)
    if field.tags != ("N",) or not alone or field.attribute in table.key_types:
        return
    index = table.index(key.index)
    projection = index.projection
    if not isinstance(projection, str):
        projection = tuple(name for name in projection if name != field.attribute) or "KEYS_ONLY"
    sorted_ = replace(index, range=(field.attribute,), projection=projection)
    indexes = tuple(sorted_ if each is index else each for each in table.indexes)
    used = {*table.settings.key_names, *(name for each in indexes for name in each.attributes)}
    types = {name: tag for name, tag in table.key_types.items() if name in used}
    changed = replace(table, indexes=indexes, key_types={**types, field.attribute: "N"})
    numbered = replace(
        key,
        range=(SourceDesign(field.attribute, "N", field=field.name),),
        sparse=key.sparse or field.nullable,
    )
    yield Proposal(
        put_key(design, changed, entity, key, numbered),
        f"Sorts {index.name} by the number {field.attribute}; an index key cannot be changed, so the index is recreated",
    )


def _with_zeros(source: SourceDesign, numbers: set[str]) -> SourceDesign:
    if source.template is None:
        return source
    text = re.sub(
        r"\{(\w+)(?::raw)?\}",
        lambda found: f"{{{found[1]}:{_DIGITS}}}" if found[1] in numbers else found[0],
        source.template.source,
    )
    return replace(source, template=Template.parse(text, source.template.delimiter))


def _add_prefix(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the entity with its own prefix in the sort key, else in the partition key."""
    for table, entity in entity_at(design, finding):
        for key in entity.all_keys:
            for half in ("range", "hash"):
                made = _with_prefix(table, entity, key, half)
                if made is not None:
                    yield Proposal(
                        put_key(design, table, entity, key, made),
                        f"Gives keys of {entity.name} the unique prefix {_word(entity)}{table.settings.delimiter}{_migration_note(key)}",
                    )


def _with_prefix(table: TableDesign, entity: EntityDesign, key: KeyDesign, half: str) -> KeyDesign | None:
    sources = key.range if half == "range" else key.hash
    if not sources or sources[0].template is None:
        return None
    template = sources[0].template
    try:
        named = Template.parse(f"{_word(entity)}{template.delimiter}{template.source}", template.delimiter)
    except TemplateRefused:
        return None
    changed = (replace(sources[0], template=named), *sources[1:])
    return replace(key, range=changed) if half == "range" else replace(key, hash=changed)


def _word(entity: EntityDesign) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", entity.tag or entity.name).strip("_").upper() or "E"


def _make_sparse(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, entity, key in keys_at(design, finding):
        if key.index is not None:
            yield Proposal(
                put_key(design, table, entity, key, replace(key, sparse=True)),
                f"Makes {key.index} sparse: a {entity.name} without a key value is not in it",
            )


def _make_indexes_global(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the table with global indexes instead of local ones, which limit a partition key to 10 GB."""
    for table, entity in entity_at(design, finding):
        local = [index.name for index in table.indexes if index.local]
        indexes = tuple(replace(index, local=False) for index in table.indexes)
        yield Proposal(
            put_entity(design, replace(table, indexes=indexes), entity),
            f"Makes {join_names(local)} global, with eventually consistent reads; local indexes cannot be removed, so recreate "
            "an existing table",
        )


def _migration_note(key: KeyDesign) -> str:
    return _COPY if key.index is None else _REWRITE


def _on(table: TableDesign, key: KeyDesign) -> str:
    return key.index or table.label


FIXERS: dict[str, Fixer] = {
    "item-collection-too-large": _make_indexes_global,
    "hot-partition": _add_shards,
    "unpadded-number": _pad_numbers,
    "constant-partition-key": _add_shards,
    "overlapping-keys": _add_prefix,
    "time-based-partition-key": _add_shards,
    "too-few-shards": _add_shards,
    "too-many-shards": _reduce_shards,
    "mixed-sort-keys": _add_prefix,
    "null-in-index-key": _make_sparse,
}
