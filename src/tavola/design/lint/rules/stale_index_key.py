"""An update changes a field but not the index key made of it.

Why: DynamoDB knows attributes, not templates. A key that was made of the old value stays as it was, so the item is found under what it no longer
is, and not under what it is.

Example: An update sets `status` to CLOSED and leaves `GSI2PK = STATUS#OPEN`: the ticket stays among the open ones for ever.

Instead: Set every key attribute that the field is part of in the same update, also when the field is removed or counted up. A design of
Tavola does that by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
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
            yield Finding(
                "stale-index-key",
                SEVERITY,
                context.write_place(table, entity, write),
                f"it changes {join_names(fields)} and leaves {join_names(stale)} as it was: the item stays at its old place in "
                f"{join_names(stale.values())}",
                f"set {join_names(stale)} in the same update",
            )
