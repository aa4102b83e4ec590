"""Keys of items: the values a key can have, the writes that set index keys, and items that link two others.

The model's bound templates escape, pad and check values. Code that writes a foreign table does none of that, so here a
template matches its literals with any text between them.
"""

from __future__ import annotations

import re

from tavola.design.access_paths import key_parts
from tavola.design.lint.rule import LintContext
from tavola.keys import Placeholder, TemplateRefused
from tavola.model.document import EntityDesign, KeyDesign, Need, SourceDesign, TableDesign, WritePattern
from tavola.values import Value


def can_render(entity: EntityDesign, source: SourceDesign, value: Value) -> bool:
    """Return whether a template could have rendered a key value. A field with choices has one of them."""
    text = value.get("S")
    if source.template is None or not isinstance(text, str):
        return True
    pattern = ""
    for segment in source.template.segments:
        pattern += re.escape(segment) if isinstance(segment, str) else _placeholder_pattern(entity, segment)
    # A constant may be declared up to its first field only: `RUN#` of `RUN#{run_id}`.
    return bool(re.fullmatch(pattern, text, re.DOTALL)) or literal_prefix(source) == text != ""


def literal_prefix(source: SourceDesign) -> str:
    """Return the literal that every value of a key attribute begins with."""
    if source.template is None:
        return ""
    first = source.template.segments[0]
    return first if isinstance(first, str) else ""


def source_outline(source: SourceDesign) -> tuple[str, ...]:
    """Return the literals of a key attribute, with `*` for each field."""
    if source.template is None:
        return ("*",)
    return tuple(segment if isinstance(segment, str) else "*" for segment in source.template.segments)


def may_collide(
    entity: EntityDesign, source: SourceDesign, other: EntityDesign, other_source: SourceDesign
) -> bool:
    """Return whether two templates can render the same text although no value contains the delimiter.

    False is certain, True is not. Fields that are key attributes themselves are taken to differ.
    """
    try:
        left, right = entity.bind_template(source), other.bind_template(other_source)
    except TemplateRefused:
        return False
    return left is not None and right is not None and left.may_meet(right)


def _placeholder_pattern(entity: EntityDesign, placeholder: Placeholder) -> str:
    known = {field.name: field for field in entity.fields}
    field = known.get(placeholder.field)
    if field is None or not field.choices:
        return ".*"
    return f"(?:{'|'.join(re.escape(str(choice)) for choice in field.choices)})"


def templated_attributes(key: KeyDesign) -> frozenset[str]:
    """Return the attributes of an index key that a writer has to render from a template."""
    return frozenset(source.attribute for source in key.sources if source.template is not None)


def puts_writing_key(entity: EntityDesign, key: KeyDesign) -> tuple[WritePattern, ...]:
    """Return the puts that declare to write the whole index key; empty if no put declares it."""
    names = templated_attributes(key)
    puts = (write for write in entity.writes if write.kind == "put")
    return tuple(write for write in puts if names and names <= set(write.rewrites))


def omits_index_key(table: TableDesign, entity: EntityDesign, key: KeyDesign, write: WritePattern) -> bool:
    """Return whether a put omits an index key that other puts of the entity write."""
    if not table.foreign or key.index is None or write.kind != "put" or key.sparse:
        return False
    writers = puts_writing_key(entity, key)
    return bool(writers) and all(write is not writer for writer in writers)


def linked_fields(entity: EntityDesign) -> tuple[str, str] | None:
    """Return the two fields that an entity links, the partition key's first; None if it is not a link.

    `USER#{follower}` with `FOLLOWS#{followed}` is a link: both fields identify things, neither is a time or a number.
    """
    if entity.key is None:
        return None
    partition_parts, sort_parts = key_parts(entity.key.hash), key_parts(entity.key.range)
    if len(partition_parts) != 1 or len(sort_parts) != 1 or partition_parts[0].field == sort_parts[0].field:
        return None
    pair = partition_parts[0].field, sort_parts[0].field
    are_identifiers = all(
        field.key_kind in ("text", "uuid") and field.tags == ("S",) and field.choices is None
        for field in map(entity.field, pair)
    )
    return pair if are_identifiers else None


def is_reverse_lookup(context: LintContext, need: Need) -> bool:
    """Return whether a need looks for links by their second field, which no key has first."""
    owner = context.entities_by_name.get(need.entities[0])
    pair = None if owner is None else linked_fields(owner[1])
    return pair is not None and pair[1] in need.equal_fields and pair[0] not in need.equal_fields
