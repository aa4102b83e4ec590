"""A production table has no deletion protection.

Why: DeleteTable removes the table and all items. A template that no longer contains the table, or a script
that runs against the wrong account, can make that call.

Example: `class Orders(Table, tags={"Environment": "production"})` without `deletion_protection=True`.

Instead: Set `deletion_protection=True`. DynamoDB then rejects DeleteTable until the setting is turned off. It
is free.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the production tables without deletion protection."""
    for table in context.production_tables_without("deletion_protection"):
        yield Defect(
            context.table_place(table),
            "The production table has no deletion protection: one DeleteTable call removes it with all items",
            "Set deletion_protection=True; it is free",
        )
