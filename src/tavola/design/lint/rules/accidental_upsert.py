"""An update creates the item if it does not exist, and the new item is incomplete.

Why: UpdateItem is an upsert. A comment on a ticket that does not exist creates an item with a key and a
comment but no entity type, status or customer. Code that lists tickets then fails on it.

Example: `table.update_item(Key={"ticket_id": unknown}, UpdateExpression="SET comments = list_append(…)")`.

Instead: Add the condition `attribute_exists(ticket_id)` and return 404 if it fails. Tavola's `update` adds
this condition by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names, list_first

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the updates that can create an item without all of its fields."""
    for table, entity, write in context.all_writes():
        if write.kind != "update" or not write.creates:
            continue
        primary_fields = set(entity.key.fields) if entity.key is not None else set()
        written_fields = {*primary_fields, *write.changes, *write.adds}
        lacking = [
            field.name
            for field in entity.fields
            if field.required and not field.nullable and field.name not in written_fields
        ]
        if lacking:
            yield Defect(
                context.write_place(table, entity, write),
                f"If the {entity.name} does not exist, the update creates one that has only {join_names((*write.changes, *write.adds)) or 'a key'} "
                f"and lacks {list_first(lacking, 4)}",
                "Add the condition attribute_exists on the key, and return an error to the caller if it fails",
            )
