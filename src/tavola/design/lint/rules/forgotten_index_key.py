"""One way to create an item writes its index keys, another does not.

Why: An index holds the items that carry its key, whoever wrote them. What is created without it is stored and can be fetched by its id, and is in no
list: the queries of the index are right about some items and silent about the others.

Example: `put_ticket` writes `GSI1PK = CUSTOMER#…` and `GSI2PK = STATUS#…`; the transaction that creates a ticket with its first event writes
neither, so "tickets of a customer" never shows it.

Instead: Make the item in one place, with all of its keys, and let every write take it from there. A design of Tavola does: an entity is put
with its index keys, alone, in a batch or in a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.index_writes import omits_index_key, puts_writing_key, templated_attributes
from tavola.design.lint.relations import linked_fields
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names, join_titles

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the puts that omit index keys which other puts write; a warning if nothing reads these indexes.

    `one-way-relation` covers link items.
    """
    for table, entity, write in context.all_writes():
        keys = [key for key in entity.keys if omits_index_key(table, entity, key, write)]
        if not keys or linked_fields(entity) is not None:
            continue
        missing = sorted({name for key in keys for name in templated_attributes(key)} - set(write.rewrites))
        indexes = [str(key.index) for key in keys]
        asking = [title for index in indexes for title in context.reader_titles(table, index)]
        lost = (
            f", and {join_titles(asking[:3])} never find{'s' if len(asking) == 1 else ''} it"
            if asking
            else ""
        )
        yield Finding(
            "forgotten-index-key",
            SEVERITY if asking else "warning",
            context.write_place(table, entity, write),
            f"it leaves out {join_names(missing)}, which {join_titles(each.title for each in puts_writing_key(entity, keys[0]))} writes: what it puts is not in "
            f"{join_names(indexes)}{lost}",
            f"write {join_names(missing)} here too",
        )
