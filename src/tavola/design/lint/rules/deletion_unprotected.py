"""A production table can be deleted with one call.

Why: DeleteTable takes the table with all its items; a template from which the table has gone, or a script run against the
wrong account, makes the call as well as a person.

Example: `class Orders(Table, tags={"Environment": "production"})` without `deletion_protection=True`.

Instead: `deletion_protection=True`: DeleteTable is refused until somebody switches it off. It costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.naming import is_production
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the production tables without deletion protection."""
    for table in context.design.tables:
        if table.settings.deletion_protection or "deletion_protection" in table.settings.unknown:
            continue
        if context.production or is_production(table):
            yield Finding(
                "deletion-unprotected",
                SEVERITY,
                context.table_place(table),
                "it is in production, and one call deletes it with everything in it",
                "set deletion_protection=True; it costs nothing",
            )
