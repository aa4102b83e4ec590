"""A write changes items of an entity that is declared immutable.

Why: Immutable items can be trusted, cached and audited because they are never rewritten. A running total is a
different kind of item. If both are declared immutable, code that maintains the totals has to break the rule,
and then the declaration no longer tells which items are safe to trust.

Example: "Records are never modified, no UpdateItem", and each stack has a `STATS` item with a growing
`TotalReviews`.

Instead: Separate the two: versions, findings and events are immutable; statistics are derived from them and
can be rebuilt. Then deny updates in IAM for the immutable items only.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import changed_fields
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the writes that change existing items of immutable entities. Deletes are allowed."""
    for table, entity, write in context.all_writes():
        changed = changed_fields(entity, write)
        if entity.immutable and (write.kind == "update" or (write.kind == "put" and changed)):
            what = join_names(sorted(changed)) or "the item"
            yield Defect(
                context.write_place(table, entity, write),
                f"Changes {what}, but {entity.name} is declared immutable",
                f"Put a new item instead, or declare {entity.name} mutable (immutable=False)",
            )
