"""An update creates the item if it does not exist, and the new item is incomplete.

Why: UpdateItem creates what it does not find. A comment on an unknown ticket becomes an item with a key and a comment and
nothing else; it has no entity, no status, no customer, and every list that meets it trips over it.

Example: `table.update_item(Key={"ticket_id": unknown}, UpdateExpression="SET comments = list_append(…)")`.

Instead: Update on condition that the item is there, `attribute_exists(ticket_id)`, and answer 404 where it fails. Tavola's
`update` does so by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the updates that can create an item without all of its fields."""
    for table, entity, write in context.all_writes():
        if write.kind != "update" or not write.creates:
            continue
        own = set(entity.key.fields) if entity.key is not None else set()
        given = {*own, *write.changes, *write.adds}
        lacking = [
            field.name
            for field in entity.fields
            if field.required and not field.nullable and field.name not in given
        ]
        if lacking:
            yield Finding(
                "ghost-item",
                SEVERITY,
                context.write_place(table, entity, write),
                f"where there is no such {entity.name} it makes one with {', '.join(dict.fromkeys((*write.changes, *write.adds))) or 'a key'} alone, without "
                f"{', '.join(lacking[:4])}{' and more' if len(lacking) > 4 else ''}",
                "update on condition that the item is there (attribute_exists of its key), and tell the caller that it is not",
            )
