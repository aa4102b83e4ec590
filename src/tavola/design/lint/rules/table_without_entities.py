"""A table has no entities, or the design has no tables.

Why: Most rules check entities, their keys and access patterns. Without entities only the table's settings are
checked, so a clean report means little.

Example: A design imported from DescribeTable, which returns keys and indexes but no entities.

Instead: Declare the table's entities with their keys and access patterns, or remove the table from the
design.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "advice"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield a design without tables and without needs to solve, and tables without entities."""
    design = context.design
    if not design.tables and not design.views and not design.needs:
        yield Defect(
            DesignPath(kind="design", table="", name="design"),
            "The design has no tables, so there is nothing to check",
            "Pass a module or a document that declares tables",
        )
    if not design.tables and design.views and not design.needs:
        yield Defect(
            DesignPath(kind="design", table="", name="design"),
            f"The design has no tables, and {join_names(view.name for view in design.views)} {'has' if len(design.views) == 1 else 'have'} "
            "no keys: only fields and writes are checked",
            "Declare the keys, or declare access patterns (Need) and run `tavola solve` to get keys",
        )
    for table in design.tables:
        if not table.entities:
            yield Defect(
                context.table_place(table),
                "The table has no entities, so only its settings are checked",
                "Declare its entities with their keys and access patterns",
            )
