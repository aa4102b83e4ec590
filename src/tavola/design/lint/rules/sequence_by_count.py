"""The number of a new item is found by counting the existing ones.

Why: Two writers that count at the same time get the same number, and one overwrites the other. A count is also a query of
everything counted, paid by its size, and from 1 MB on it is the count of the first page alone. An item that was deleted
makes a number come twice.

Example: `sequence = table.query(…, Select="COUNT")["Count"] + 1`.

Instead: Take numbers from a counter item that an update raises atomically (`tavola.patterns.Sequences`), or from the lock of
the item that the numbered ones belong to, in the same transaction; and put with a condition that the key is new.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the fields that are numbered by a count."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            if field.numbered == "count":
                yield Finding(
                    "sequence-by-count",
                    SEVERITY,
                    context.field_place(table, entity, field),
                    f"a new {entity.name} gets its {field.name} by counting: two writers get one number, and a count past 1 MB is one "
                    "page's",
                    "raise a counter atomically (tavola.patterns.Sequences) and put on condition that the key is new",
                )
