"""Idempotency keys, sessions or cached answers are kept forever.

Why: They are of use for minutes or days, and one is written for each request. Without a time to live they become most of
the table: paid every month, backed up, read by every scan.

Example: an entity `Idempotency` with the key `IDEMPOTENCY#{request_id}` and no field under the table's ttl attribute.

Instead: Give the entity a time under the table's ttl attribute, `expires_at: Attr[datetime] = attr(name="ttl")`: DynamoDB
deletes it without a write unit, usually within days.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.monthly_costs import MONTH_S
from tavola.design.lint.naming import temporary_kind
from tavola.design.lint.rule import LintContext
from tavola.model.sizes import stored_item_bytes

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the entities that look temporary by their name and are never deleted."""
    for table, entity in context.all_entities():
        what = temporary_kind(entity)
        if what is None or any(field.attribute == table.settings.ttl for field in entity.fields):
            continue
        if any(write.kind == "delete" for write in entity.writes):
            continue  # somebody sees to it
        rate = sum(write.per_second or 0 for write in entity.writes if write.kind == "put")
        grown = rate * MONTH_S * stored_item_bytes(table, entity) / 1024**3
        yield Finding(
            "idempotency-without-expiry",
            SEVERITY,
            context.entity_place(table, entity),
            f"it is {what} and never expires"
            + (f": {grown:,.1f} GB more every month" if grown >= 0.1 else ""),
            "give it a time under the table's ttl attribute"
            if table.settings.ttl is not None
            else "give the table a ttl and the entity a time under that attribute",
        )
