"""An item approaches 400 KB, or a small update pays for a large item.

Why: DynamoDB rejects items above 400 KB. Below that, reads are charged per 4 KB and writes per 1 KB of the
whole item, however little changes. Incrementing a view count in a 10 KB profile costs ten times as much as in
a separate item.

Example: `WritePattern("count a view", "update", ("views",), per_second=300, item_bytes=10_000)`.

Instead: Split the item vertically: large, stable attributes in one item, small, frequently updated ones in
another, under the same partition key so that one query reads both. Store bodies above about 100 KB in S3
(`tavola.patterns.Blobs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.limits import ITEM_BYTES_MAX, WRITE_UNIT_BYTES
from tavola.model.document import EntityDesign, WritePattern
from tavola.model.sizes import value_bytes

SEVERITY = "error"

_NEAR = 0.8  # share of the limit from which on one more long text is too much
_LARGE_BYTES = 8 * 1024
_WASTED_UNITS_PER_S = 10  # less is not worth splitting an item


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the entities whose declared size approaches the limit, and updates that pay for what they do not change."""
    for table, entity in context.all_entities():
        declared_sizes = [write.item_bytes for write in entity.writes if write.item_bytes is not None]
        if entity.primary is not None and entity.primary.access is not None:
            declared_sizes += [entity.primary.access.item_bytes or 0]
        declared = sum(field.typical_bytes or 0 for field in entity.fields)
        largest = max([declared, *declared_sizes])
        if largest >= _NEAR * ITEM_BYTES_MAX:
            over = largest > ITEM_BYTES_MAX
            yield Defect(
                context.entity_place(table, entity),
                f"Items reach {largest / 1024:,.0f} KB; DynamoDB rejects items above {ITEM_BYTES_MAX // 1024} KB"
                if over
                else f"Items reach {largest / 1024:,.0f} KB, close to the limit of {ITEM_BYTES_MAX // 1024} KB",
                "Store the body in S3 (tavola.patterns.Blobs) or in several items, and keep the queried attributes in this one",
                severity="error" if over else "warning",
            )
        for write in entity.writes:
            wasted = _wasted_units(entity, write)
            if wasted is not None:
                units = ceil((write.item_bytes or 0) / WRITE_UNIT_BYTES)
                yield Defect(
                    context.write_place(table, entity, write),
                    f"Each change of {join_names((*write.changes, *write.adds))} costs {units} write units for the whole item of "
                    f"{(write.item_bytes or 0) / 1024:.0f} KB; a separate item would save {format_monthly_with_book(monthly_cost(writes=wasted))}",
                    "Move frequently changed attributes to a separate item under the same partition key; one query reads both",
                    severity="advice",
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
        return None  # the changed attribute may be the large one
    small = max(1, ceil(sum(map(value_bytes, fields)) / WRITE_UNIT_BYTES))
    factor = 2 if write.transactional or write.together else 1
    wasted = write.per_second * write.items * factor * (ceil(write.item_bytes / WRITE_UNIT_BYTES) - small)
    return wasted if wasted >= _WASTED_UNITS_PER_S else None
