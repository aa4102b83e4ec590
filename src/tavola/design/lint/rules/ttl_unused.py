"""A table has a TTL attribute that no item has, or items have an expiry that is not the TTL attribute.

Why: Time to live works where the table's attribute and the items' are the same one. Where they are not, nothing is deleted
and nothing complains; the table grows until somebody looks at the bill. Not every end is the item's own: a coupon that is no longer
valid, or a card, is kept. So a field that may be either is advice.

Example: `Table(ttl="expires_at")` while entities store `ttl`; a field `ttl` on entities of a table without `ttl=`.

Instead: Where the item may be deleted then, name the attribute that items carry, `Table(ttl="expires_at")`, or store the field under
the table's name, `attr(name="ttl")`. Where it is to be kept, leave it, and say so with an ignore and its reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.naming import is_expiry, is_time_to_live, temporary_kind
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the tables whose TTL attribute no entity has, and fields named like an expiry that are not the TTL."""
    for table in context.design.tables:
        ttl = table.settings.ttl
        carrying = [
            entity for entity in table.entities if any(field.attribute == ttl for field in entity.fields)
        ]
        if ttl is not None and table.entities and not carrying:
            yield Finding(
                "ttl-unused",
                SEVERITY,
                context.table_place(table),
                f"it expires items by {ttl}, and no entity carries that attribute: nothing is ever deleted",
                f"store the time under this name, attr(name={ttl!r}), or name the attribute that items have",
            )
        for entity in table.entities:
            if entity in carrying:
                continue
            for field in entity.fields:
                if not is_expiry(field) or (
                    ttl is None and not (is_time_to_live(field) or temporary_kind(entity))
                ):
                    continue  # without a time to live, an end may be that of what the item is about
                how = "has no time to live" if ttl is None else f"expires items by {ttl}"
                what = (
                    f"set ttl={field.attribute!r} on it"
                    if ttl is None
                    else f"store it as {ttl}, attr(name={ttl!r})"
                )
                yield Finding(
                    "ttl-unused",
                    "advice",
                    context.field_place(table, entity, field),
                    f"{field.name} is called as an item's own end is, and the table {how}: nothing deletes it then",
                    f"if the item may be deleted then, {what}; if it is to be kept, ignore this with the reason",
                )
