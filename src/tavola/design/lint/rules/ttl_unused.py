"""No item has the table's TTL attribute, or an expiry field is not the TTL attribute.

Why: TTL works only if the attribute set on the table is the one on the items. Otherwise nothing is deleted,
without an error. An expiry field does not always mean that the item should be deleted: an expired coupon or
card may have to be kept. Such fields are reported as advice.

Example: `Table(ttl="expires_at")` while items store `ttl`; a field `ttl` in a table without `ttl=`.

Instead: If the item may be deleted, set the table's TTL to the attribute that items have,
`Table(ttl="expires_at")`, or store the field in the TTL attribute, `attr(name="ttl")`. If it must be kept,
suppress the finding with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.naming import is_expiry, is_time_to_live, temporary_kind
from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the tables whose TTL attribute no entity has, and fields named like an expiry that are not the TTL."""
    for table in context.design.tables:
        ttl = table.settings.ttl
        carrying = [
            entity for entity in table.entities if any(field.attribute == ttl for field in entity.fields)
        ]
        if ttl is not None and table.entities and not carrying:
            yield Defect(
                context.table_place(table),
                f"The TTL attribute is {ttl}, but no entity has that attribute: nothing is ever deleted",
                f'Store the expiry time in this attribute, attr(name="{ttl}"), or set ttl= to the attribute that items have',
            )
        for entity in table.entities:
            if entity in carrying:
                continue
            for field in entity.fields:
                if not is_expiry(field) or (
                    ttl is None and not (is_time_to_live(field) or temporary_kind(entity))
                ):
                    continue  # without TTL, an expiry may describe the subject, such as a coupon, not the item
                how = "the table has no TTL" if ttl is None else f"the table's TTL attribute is {ttl}"
                what = (
                    f'set ttl="{field.attribute}" on the table'
                    if ttl is None
                    else f'store the time in {ttl}, attr(name="{ttl}")'
                )
                yield Defect(
                    context.field_place(table, entity, field),
                    f"{field.name} looks like an expiry time, but {how}: items are not deleted at that time",
                    f"If items may be deleted at that time, {what}; if they must be kept, suppress this with the reason",
                    severity="advice",
                )
