"""An item approaches 400 KB, or a small change pays for a large item.

Why: DynamoDB refuses an item above 400 KB. Below that, reads are paid per 4 KB and writes per 1 KB of the whole item,
however little of it changes: counting a view in a profile of 10 KB costs ten times what it costs in an item of its own.

Example: `WritePattern("count a view", "update", ("views",), per_second=300, item_bytes=10_000)`.

Instead: Split the item: what is large and seldom changes in one, what is small and busy in another, under one partition
key so that one query reads both. Bodies above some 100 KB go to a blob store (`tavola.patterns.Blobs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from tavola.design.findings import Finding, Severity
from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import LintContext
from tavola.limits import ITEM_BYTES_MAX, WRITE_UNIT_BYTES
from tavola.model.document import EntityDesign, WritePattern
from tavola.model.sizes import value_bytes

SEVERITY: Severity = "error"

_NEAR = 0.8  # of the most; beyond it, one long text more is too much
_LARGE_BYTES = 8 * 1024
_WASTED_UNITS_PER_S = 10  # below that nobody would split an item


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the entities whose declared size approaches the limit, and updates that pay for what they do not change."""
    for table, entity in context.all_entities():
        declared_sizes = [write.item_bytes for write in entity.writes if write.item_bytes is not None]
        if entity.primary is not None and entity.primary.access is not None:
            declared_sizes += [entity.primary.access.item_bytes or 0]
        declared = sum(field.typical_bytes or 0 for field in entity.fields)
        largest = max([declared, *declared_sizes])
        if largest >= _NEAR * ITEM_BYTES_MAX:
            over = largest > ITEM_BYTES_MAX
            yield Finding(
                "large-item",
                "error" if over else "warning",
                context.entity_place(table, entity),
                f"its items are {largest / 1024:,.0f} KB and an item may be {ITEM_BYTES_MAX // 1024} KB: "
                + ("they are refused" if over else "a little more and they are refused"),
                "keep the body in a blob store (tavola.patterns.Blobs) or in several items, and what is asked for in this one",
            )
        for write in entity.writes:
            wasted = _wasted_units(entity, write)
            if wasted is not None:
                units = ceil((write.item_bytes or 0) / WRITE_UNIT_BYTES)
                yield Finding(
                    "large-item",
                    "advice",
                    context.write_place(table, entity, write),
                    f"each change of {', '.join((*write.changes, *write.adds))} is paid as {units} write units, the whole item of "
                    f"{(write.item_bytes or 0) / 1024:.0f} KB: about {format_monthly_with_book(monthly_cost(writes=wasted))} more than an item of its own takes",
                    "put what changes often into an item of its own under the same partition key; one query reads both",
                )


def _wasted_units(entity: EntityDesign, write: WritePattern) -> float | None:
    """Return the write units per second that an update pays for unchanged bytes; None if negligible."""
    changed = {*write.changes, *write.adds}
    if write.kind != "update" or not changed or write.per_second is None:
        return None
    if write.item_bytes is None or write.item_bytes < _LARGE_BYTES:
        return None
    fields = [field for field in entity.fields if field.name in changed]
    if any(field.typical_bytes is None and set(field.tags) - {"N", "BOOL", "NULL"} and not field.choices
           and field.type not in ("datetime", "date", "uuid") for field in fields):  # fmt: skip
        return None  # something of any size changes; it may be the large part itself
    small = max(1, ceil(sum(map(value_bytes, fields)) / WRITE_UNIT_BYTES))
    factor = 2 if write.transactional or write.together else 1
    wasted = write.per_second * write.items * factor * (ceil(write.item_bytes / WRITE_UNIT_BYTES) - small)
    return wasted if wasted >= _WASTED_UNITS_PER_S else None
