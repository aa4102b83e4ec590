"""The TTL attribute is not a number.

Why: DynamoDB reads its time to live from a Number of epoch seconds. An item with anything else in that attribute is left
alone for ever, without an error: the table grows, and what should be gone is returned.

Example: `expires = "2026-01-15T10:00:00Z"` on a table with `ttl="expires"`.

Instead: Declare the field as `datetime` under the table's ttl attribute and Tavola stores it as epoch seconds; elsewhere
store `int(moment.timestamp())` of an aware time.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "error"

TIMES = frozenset({"datetime", "date", "time"})


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the TTL fields that may be stored as another type than N. `ttl-unit` covers times stored as text."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            others = [tag for tag in field.tags if tag not in ("N", "NULL")]
            if field.attribute == table.settings.ttl and others and field.type not in TIMES:
                yield Finding(
                    "ttl-type",
                    SEVERITY,
                    context.field_place(table, entity, field),
                    f"{table.name} expires items by {field.attribute}, and here it is of type {' or '.join(others)}: such items never expire",
                    "store epoch seconds in it, as a number",
                )
