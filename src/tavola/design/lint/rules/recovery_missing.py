"""A production table cannot be restored to a point in time.

Why: A faulty release or a mistaken script deletes or rewrites items in minutes, and DynamoDB keeps no past by itself.
Point-in-time recovery restores the table as it was at any second of up to 35 days, into a new one.

Example: `class Orders(Table, tags={"Environment": "production"})` without `recovery=True`.

Instead: `recovery=True`; it costs by the table's size, whatever is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.naming import is_production
from tavola.design.lint.rule import LintContext
from tavola.limits import RECOVERY_DAYS_MAX
from tavola.model.sizes import stored_item_bytes

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the production tables without point-in-time recovery."""
    for table in context.design.tables:
        if table.settings.recovery or "recovery" in table.settings.unknown:
            continue
        if not (context.production or is_production(table)):
            continue
        stored = sum(stored_item_bytes(table, entity) * (entity.items or 0) for entity in table.entities)
        size = f" of about {stored / 1024**3:,.1f} GB" if stored >= 2**27 else ""
        yield Finding(
            "recovery-missing",
            SEVERITY,
            context.table_place(table),
            f"it is in production{size}, and what is deleted or overwritten by mistake is gone",
            f"set recovery=True: any second of up to {RECOVERY_DAYS_MAX} days can be restored",
        )
