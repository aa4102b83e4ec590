"""The TTL attribute is not a number.

Why: DynamoDB TTL requires a Number with epoch seconds. Items with any other type in that attribute never
expire, without an error: the table grows, and expired items are returned.

Example: `expires = "2026-01-15T10:00:00Z"` on a table with `ttl="expires"`.

Instead: Declare the field as `datetime` with the table's TTL attribute, and Tavola stores epoch seconds. In
other code, store `int(moment.timestamp())` of a timezone-aware value.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "error"

TIMES = frozenset({"datetime", "date", "time"})


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the TTL fields that may be stored as another type than N. `ttl-unit` covers times stored as text."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            others = [tag for tag in field.tags if tag not in ("N", "NULL")]
            if field.attribute == table.settings.ttl and others and field.type not in TIMES:
                yield Defect(
                    context.field_place(table, entity, field),
                    f"The TTL attribute {field.attribute} of {table.name} has type {' or '.join(others)}, not N: these items never expire",
                    "Store epoch seconds as a number",
                )
