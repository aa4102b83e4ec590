"""An entity that is declared immutable is changed.

Why: What is immutable can be trusted, cached and audited because nobody writes it again. A number that is counted up is another kind of thing: to call
both immutable, and forbid updates for all, leaves those who keep the numbers no way but to break the promise, and nobody can say any more which
items still keep it.

Example: "Once written, records are never modified, no UpdateItem", and a `STATS` item of each stack whose `TotalReviews` grows.

Instead: Tell the two apart: versions, findings and events are immutable, statistics are derived from them and may be made again. Then let
policies deny changes of the first alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import changed_fields
from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the writes that change existing items of immutable entities. Deleting old items is no change."""
    for table, entity, write in context.all_writes():
        changed = changed_fields(entity, write)
        if entity.immutable and (write.kind == "update" or (write.kind == "put" and changed)):
            what = join_names(sorted(changed)) or "the item"
            yield Finding(
                "changed-immutable",
                SEVERITY,
                context.write_place(table, entity, write),
                f"it changes {what}, and {entity.name} is said to be immutable",
                f"put a new item instead, or say that {entity.name} is derived and does change (immutable=False)",
            )
