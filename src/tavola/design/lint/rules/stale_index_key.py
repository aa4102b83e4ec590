"""An update changes a field but not the index key that contains it.

Why: DynamoDB stores attributes and knows nothing about key templates. A key attribute rendered from the old
value stays, so queries still find the item under its old value and not under the new one.

Example: An update sets `status` to CLOSED and leaves `GSI2PK = STATUS#OPEN`: the ticket stays in the list of
open tickets.

Instead: In the same update, set every key attribute that contains the field, also when the field is removed
or incremented. Tavola does this by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the updates of foreign tables that leave an index key with the old values."""
    for table, entity, write in context.all_writes():
        if not table.foreign or write.kind != "update":
            continue
        changed = {*write.changes, *write.adds}
        stale: dict[str, str] = {}
        fields: list[str] = []
        for key in entity.keys:
            for source in key.sources:
                fed = [name for name in source.fields if name in changed]
                if source.template is not None and fed and source.attribute not in write.rewrites:
                    stale[source.attribute] = key.index or ""
                    fields += fed
        if stale:
            yield Defect(
                context.write_place(table, entity, write),
                f"Changes {join_names(fields)} but not {join_names(stale)}: the item keeps its old position in "
                f"{join_names(stale.values())}",
                f"Set {join_names(stale)} in the same update",
            )
