"""A production table has no point-in-time recovery.

Why: A faulty release or script can delete or overwrite items in minutes, and DynamoDB keeps no history by
default. Point-in-time recovery (PITR) restores the table to any second of the last 35 days, as a new table.

Example: `class Orders(Table, tags={"Environment": "production"})` without `recovery=True`.

Instead: Set `recovery=True`. PITR is charged by table size, not by writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_size
from tavola.limits import RECOVERY_DAYS_MAX
from tavola.model.sizes import stored_item_bytes

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the production tables without point-in-time recovery."""
    for table in context.production_tables_without("recovery"):
        stored = sum(stored_item_bytes(table, entity) * (entity.items or 0) for entity in table.entities)
        size = f" of about {format_size(stored)}" if stored >= 2**27 else ""
        yield Defect(
            context.table_place(table),
            f"The production table{size} has no point-in-time recovery: deleted or overwritten items cannot be restored",
            f"Set recovery=True; the table can then be restored to any second of the last {RECOVERY_DAYS_MAX} days",
        )
