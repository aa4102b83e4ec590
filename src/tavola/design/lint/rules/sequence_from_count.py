"""The number of a new item is computed by counting existing items.

Why: Two writers that count at the same time get the same number, and one overwrites the other. A count reads
and charges for everything it counts, and a single query counts the first 1 MB only. After a delete, a number
is assigned twice.

Example: `sequence = table.query(…, Select="COUNT")["Count"] + 1`.

Instead: Take numbers from an atomic counter (`tavola.patterns.Sequences`), or from the lock of the parent
item in the same transaction, and put the item with a condition that its key is new.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the fields that are numbered by a count."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            if field.numbered == "count":
                yield Defect(
                    context.field_place(table, entity, field),
                    f"A new {entity.name} gets its {field.name} by counting items: two concurrent writes get the same number, and a count stops at "
                    "1 MB",
                    "Use an atomic counter (tavola.patterns.Sequences), and put with a condition that the key is new",
                )
