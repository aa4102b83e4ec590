"""Migration: what becomes of the state of a module whose indexes were blocks of their table and become resources, or the other way.

Terraform does not know that the two are one: without these steps it drops an index that is there and makes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.plan import InfrastructurePlan
from tavola.iac.terraform.scope import ModuleNames
from tavola.iac.terraform.tables import import_index

_APART = "apart:"


def index_steps(plan: InfrastructurePlan, before: frozenset[str] | None) -> Iterator[str]:
    """Give the steps for each table whose indexes are kept otherwise than `before`, or than nobody knows where that is None."""
    scope = ModuleNames()
    for table in plan.tables:
        was = before is not None and f"{_APART}{table.name}" in before
        if table.has_separate_indexes == was:
            continue
        indexes = [(index, scope.index(table.name, index)) for index in table.global_indexes]
        if table.has_separate_indexes:
            commands = "; ".join(import_index(table, index, scope) for index, _ in indexes)
            yield (
                f"{table.name}: it is auto scaled, so its indexes are resources of their own; if the table exists already, run this "
                f"before the first apply, or they are dropped and made anew: {commands}"
            )
        elif indexes:
            commands = "; ".join(
                f"terraform state rm aws_dynamodb_global_secondary_index.{name}" for _, name in indexes
            )
            yield (
                f"{table.name}: it is no longer auto scaled, so its indexes are blocks of the table again; run this before the next "
                f"apply, or they are dropped and made anew: {commands}"
            )
