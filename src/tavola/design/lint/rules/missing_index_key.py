"""One write creates items with their index keys, another without.

Why: An index contains only items that have its key attributes. An item created without them can be fetched by
its primary key but is missing from every query on the index.

Example: `put_ticket` sets `GSI1PK = CUSTOMER#…` and `GSI2PK = STATUS#…`. The transaction that creates a
ticket with its first event sets neither, so "tickets of a customer" never returns it.

Instead: Build the item, including all index keys, in one function that every write uses. Tavola does this: it
renders all index keys of an entity on every put, batch and transaction.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.item_keys import (
    linked_fields,
    omits_index_key,
    puts_writing_key,
    templated_attributes,
)
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names, join_titles

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the puts that omit index keys which other puts write; a warning if nothing reads these indexes.

    `missing-inverted-index` covers link items.
    """
    for table, entity, write in context.all_writes():
        keys = [key for key in entity.keys if omits_index_key(table, entity, key, write)]
        if not keys or linked_fields(entity) is not None:
            continue
        missing = sorted({name for key in keys for name in templated_attributes(key)} - set(write.rewrites))
        indexes = [str(key.index) for key in keys]
        readers = [title for index in indexes for title in context.reader_titles(table, index)]
        lost = (
            f", and {join_titles(readers[:3])} never return{'s' if len(readers) == 1 else ''} it"
            if readers
            else ""
        )
        yield Defect(
            context.write_place(table, entity, write),
            f"Omits {join_names(missing)}, which {join_titles(put.title for put in puts_writing_key(entity, keys[0]))} writes: the item is missing from "
            f"{join_names(indexes)}{lost}",
            f"Write {join_names(missing)} here as well",
            severity=None if readers else "warning",
        )
