"""Leading: partition keys as IAM's condition keys tell them, a pattern for each attribute of the key.

IAM compares the partition key of what is asked and no sort key. What a template says literally stands in the pattern, a field
is a star; for a tenant, the field that says whose an item is becomes the tag of whoever asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tavola.keys import Template, part_for
from tavola.model import UNIQUE
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign

ANY = "*"
LEADING_KEYS = (
    "dynamodb:LeadingKeys",
    "dynamodb:SecondPartitionKeyValues",
    "dynamodb:ThirdPartitionKeyValues",
    "dynamodb:FourthPartitionKeyValues",
)

LeadingKeys = tuple[str, ...]  # a pattern for each attribute of a partition key

_SIGNS = re.compile(r"[*?$]")


def escape_pattern(text: str) -> str:
    """Return a text as a pattern that it alone matches."""
    return _SIGNS.sub(lambda found: f"${{{found[0]}}}", text)


def principal_tag(field: str) -> str:
    """Return the variable that stands for the tag of who asks: one of the field's name."""
    return f"${{aws:PrincipalTag/{field}}}"


def is_exact(pattern: str) -> bool:
    """Return whether a pattern has no star: every sign in it is itself, or a variable's value."""
    return "*" not in pattern.replace("${*}", "")


def leading_keys(entity: EntityDesign, key: KeyDesign) -> LeadingKeys:
    """Return the partition keys that items of an entity have, by the table's key or an index's."""
    return tuple(_pattern(entity, source, ()) for source in key.hash)


def tenant_leading_keys(entity: EntityDesign, key: KeyDesign) -> LeadingKeys | None:
    """Return the partition keys that are a tenant's own; None where the key does not say whose an item is."""
    tenants = tenant_fields(entity)
    if not any(name in source.fields for source in key.hash for name in tenants):
        return None
    if any(text_after_tenant(source.template, tenants) for source in key.hash if source.template is not None):
        return None
    return tuple(_pattern(entity, source, tenants) for source in key.hash)


def collection_leading_keys(
    template: Template, fields: Iterable[FieldDesign]
) -> tuple[LeadingKeys, LeadingKeys | None]:
    """Return the partition keys of a collection, and those of a tenant's own."""
    tenants = tuple(field.name for field in fields if field.tenant)
    named = any(name in template.fields for name in tenants) and not text_after_tenant(template, tenants)
    return (_glob(template, ()),), ((_glob(template, tenants),) if named else None)


def guard_leading_keys(
    table: TableDesign, entity: EntityDesign, field: FieldDesign
) -> tuple[LeadingKeys, LeadingKeys]:
    """Return the partition keys of the guards that keep a field unique: those of values, and of long ones' digests."""
    delimiter = table.settings.delimiter
    parts = {name: part_for("text") for name in ("entity", "unique", "rest")}
    made = []
    for word in (UNIQUE, f"LONG{UNIQUE}"):
        template = Template.parse(delimiter.join((word, "{entity}", "{unique}", "{rest}")), delimiter)
        text = template.bind(parts).render({"entity": entity.tag, "unique": field.name, "rest": "x"})
        made.append((escape_pattern(text[:-1]) + ANY,))
    return made[0], made[1]


def tenant_fields(entity: EntityDesign) -> tuple[str, ...]:
    """Return the fields that say whose an item is."""
    return tuple(field.name for field in entity.fields if field.tenant)


def text_after_tenant(template: Template, tenants: tuple[str, ...]) -> str:
    """Return what follows a tenant's name in a template where that does not end it; nothing where all names are ended.

    A name ends where the key ends, or at the delimiter, which no name should have in it. After `{tenant}-`, `acme` would be led to what
    is `acme-eu`'s.
    """
    for segment, after in zip(template.segments, template.segments[1:], strict=False):
        if isinstance(segment, str) or segment.field not in tenants:
            continue
        if not isinstance(after, str):
            return f"{{{after.field}}}"
        if not after.startswith(template.delimiter):
            return after
    return ""


def covers(wide: LeadingKeys, narrow: LeadingKeys) -> bool:
    """Return whether whatever one pattern allows, another does: it is the same, or any."""
    return len(wide) == len(narrow) and all(
        one in (ANY, other) for one, other in zip(wide, narrow, strict=True)
    )


def _pattern(entity: EntityDesign, source: SourceDesign, tenants: tuple[str, ...]) -> str:
    if source.template is not None:
        return _glob(source.template, tenants)
    return principal_tag(source.field) if source.field is not None and source.field in tenants else ANY


def _glob(template: Template, tenants: tuple[str, ...]) -> str:
    told = [
        escape_pattern(segment)
        if isinstance(segment, str)
        else principal_tag(segment.field)
        if segment.field in tenants
        else ANY
        for segment in template.segments
    ]
    return re.sub(r"(?<!\{)\*(\*)+", ANY, "".join(told))
