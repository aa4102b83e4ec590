"""Overview: a design on a page: which entity uses which key and index, and how.

An overloaded index has a different meaning for each of its entities, and attribute names such as `GSI1PK` do not show it. The
page has a table for the key and for each index, with a row for each pattern: the fields of the query, the form of the keys, and
the items that are included. The rows are also available as data (`key_uses`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tavola.model.design import Design, EntityDesign, KeyDesign, PatternDesign, SourceDesign, TableDesign
from tavola.model.shapes import SHARD

HEADER = ("entity", "pattern", "query by", "partition key", "sort key", "items / shards", "purpose")


@dataclass(frozen=True, slots=True)
class KeyUse:
    """How one pattern of an entity uses a table's key or an index: the cells of a row, in words."""

    entity: str
    pattern: str
    arguments: str
    partition: tuple[str, ...]  # a template for each attribute, a shard's number as {shard}
    sort: tuple[str, ...]
    included: str  # which items are in the key, and its shards
    title: str  # of its access pattern, empty if it has none


def overview(design: Design) -> str:
    """Return a design as a page of Markdown."""
    return "\n".join(line for table in design.tables for line in _table(table)).rstrip() + "\n"


def _table(table: TableDesign) -> Iterator[str]:
    settings = table.settings
    yield f"# {table.name}"
    yield ""
    if table.description:
        yield table.description
        yield ""
    if settings_text := describe_settings(table, code="`"):
        yield settings_text
        yield ""
    attributes = settings.hash if settings.range is None else f"{settings.hash}, {settings.range}"
    yield f"## Table key ({attributes})"
    yield ""
    yield from _rows(key_uses(table))
    for index in table.indexes:
        kind = "local index" if index.local else "index"
        projection = index.projection if isinstance(index.projection, str) else ", ".join(index.projection)
        yield f"## {index.name}, {kind} ({', '.join(index.attributes)}; projects {projection})"
        yield ""
        yield from _rows(key_uses(table, index.name))
    if table.collections:
        yield "## Collections"
        yield ""
        for collection in table.collections:
            members = ", ".join(f"{m.entity}{' (all)' if m.many else ''}" for m in collection.members)
            place = "the table" if collection.index is None else collection.index
            yield f"- **{collection.name}** in {place}, `{collection.partition.source}`: {members}"
        yield ""


def describe_settings(table: TableDesign, code: str = "") -> str:
    """Return the table's settings that differ from DynamoDB's defaults; `code` quotes attribute names."""
    settings = table.settings
    facts = [
        settings.ttl and f"TTL attribute: {code}{settings.ttl}{code}.",
        settings.stream and f"Stream: {settings.stream}.",
        settings.recovery and f"Point-in-time recovery: {settings.recovery_days} days.",
        settings.deletion_protection and "Deletion protection: on.",
        settings.table_class != "STANDARD" and f"Table class: {settings.table_class}.",
    ]
    return " ".join(fact for fact in facts if fact)


def key_uses(table: TableDesign, index: str | None = None) -> tuple[KeyUse, ...]:
    """Return how entities use a table's own key, or an index by its name: a row for each pattern, in order."""
    return tuple(_uses(table, index))


def _uses(table: TableDesign, index: str | None) -> Iterator[KeyUse]:
    for entity in table.entities:
        key = entity.key_on(index)
        if key is None:
            continue
        patterns = [p for p in (entity.primary, *entity.patterns) if p is not None and p.index == index]
        for pattern in patterns:
            yield _use(entity, key, pattern)


def _use(entity: EntityDesign, key: KeyDesign, pattern: PatternDesign) -> KeyUse:
    arguments = "; then ".join(", ".join(names) for names in (pattern.partition, pattern.sorts) if names)
    gives = "" if pattern.result in ("", entity.name) else f" → {pattern.result}"
    return KeyUse(
        entity.name,
        pattern.name + gives,
        arguments or "nothing (one partition)",
        _show_templates(key.hash),
        _show_templates(key.range),
        _membership(key),
        "" if pattern.access is None else pattern.access.title,
    )


def _show_templates(sources: tuple[SourceDesign, ...]) -> tuple[str, ...]:
    texts = [f"{{{s.field}}}" if s.template is None else s.template.source for s in sources]
    return tuple(text.replace(f"{{{SHARD}:04}}", "{shard}") for text in texts)


def _membership(key: KeyDesign) -> str:
    conditions = []
    if key.sparse:
        conditions.append("only items with all key fields")
    for member in key.members:
        values = (next(iter(v.values())) if v else "absent" for v in member.values)
        conditions.append(f"{member.field} is {' or '.join(map(str, values))}")
    if key.shards is not None:
        shards_text = (
            f"a {key.shards.bucket} each"
            if key.shards.by == "time"
            else f"{key.shards.count} by {key.shards.by}"
        )
        conditions.append(f"shards: {shards_text}")
    return "; ".join(conditions) or "all"


def _rows(uses: tuple[KeyUse, ...]) -> Iterator[str]:
    if not uses:
        yield "No access pattern uses it."
        yield ""
        return
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for use in uses:
        keys = (_code(use.partition), _code(use.sort))
        cells = (use.entity, use.pattern, use.arguments, *keys, use.included, use.title)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _code(templates: tuple[str, ...]) -> str:
    return " + ".join(f"`{text}`" for text in templates) or "none"
