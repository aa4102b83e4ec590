"""Idempotency keys, sessions or cached responses are never deleted.

Why: Temporary items are useful for minutes or days, and one is written per request. Without TTL they become
most of the table: stored, backed up and scanned forever.

Example: An entity `Idempotency` with the key `IDEMPOTENCY#{request_id}` and no field for the table's TTL
attribute.

Instead: Store an expiry time in the table's TTL attribute: `expires_at: Attr[datetime] = attr(name="ttl")`.
DynamoDB deletes expired items at no charge, typically within a few days.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.monthly_costs import MONTH_S
from tavola.design.lint.naming import temporary_kind
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_size
from tavola.model.sizes import stored_item_bytes

SEVERITY = "warning"

_MUCH_BYTES = 0.1 * 1024**3  # less growth per month is not worth mentioning


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the entities that look temporary by their name and are never deleted."""
    for table, entity in context.all_entities():
        what = temporary_kind(entity)
        if what is None or any(field.attribute == table.settings.ttl for field in entity.fields):
            continue
        if any(write.kind == "delete" for write in entity.writes):
            continue  # the application deletes them
        rate = sum(write.per_second or 0 for write in entity.writes if write.kind == "put")
        grown = rate * MONTH_S * stored_item_bytes(table, entity)
        yield Defect(
            context.entity_place(table, entity),
            f"Stores {what} that never expire"
            + (f": the table grows by {format_size(grown)} per month" if grown >= _MUCH_BYTES else ""),
            f"Store an expiry time in the TTL attribute ({table.settings.ttl})"
            if table.settings.ttl is not None
            else "Enable TTL on the table (ttl=), and store an expiry time in that attribute",
        )
