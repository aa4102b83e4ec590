"""A table of the design has no entities, or the design has no tables.

Why: Rules judge entities, their keys and how they are read. Of a table without entities they can judge the settings alone,
and a clean report means little.

Example: a design made from DescribeTable, which knows keys and indexes and no entity.

Instead: Declare the entities of the table with their keys and access patterns, or take the table out of the design.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "advice"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield a design without tables and without needs to solve, and tables without entities."""
    design = context.design
    if not design.tables and not design.views and not design.needs:
        yield Finding(
            "empty-table",
            SEVERITY,
            DesignPath(kind="design", table="", name="design"),
            "there is no table in it, so there is nothing to judge",
            "name a module that declares tables, or a document that has some",
        )
    if not design.tables and design.views and not design.needs:
        yield Finding(
            "empty-table",
            SEVERITY,
            DesignPath(kind="design", table="", name="design"),
            f"there is no table in it, and {join_names(view.name for view in design.views)} {'has' if len(design.views) == 1 else 'have'} "
            "no keys yet: of their fields and writes alone something can be said",
            "declare their keys, or what is asked of them (Need) and let `tavola solve` find the keys",
        )
    for table in design.tables:
        if not table.entities:
            yield Finding(
                "empty-table",
                SEVERITY,
                context.table_place(table),
                "nothing is said of what lives in it, so its settings alone are judged",
                "declare its entities, their keys and how they are read",
            )
