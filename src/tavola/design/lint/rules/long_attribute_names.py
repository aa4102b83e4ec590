"""Attribute names make up a large part of the stored data.

Why: Attribute names count towards item size: in storage, and in capacity units when they push an item over
the next 1 KB (writes) or 4 KB (reads).

Example: `measurement_temperature_celsius` on two billion readings takes 58 GB.

Instead: Use a short attribute name in the table and keep the long name in code: `attr(name="t")`. It is worth
doing only for very many small items.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_size
from tavola.model.document import EntityDesign, TableDesign
from tavola.model.sizes import item_size
from tavola.values import text_size

SEVERITY = "advice"

_SHORT_BYTES = 2
_SHARE = 0.25
_DOLLARS = 10


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the entities whose attribute names are a quarter of the item and cost a noticeable amount."""
    for table, entity in context.all_entities():
        names = _names(table, entity)
        size = item_size(table, entity)
        saved = sum(text_size(name) - _SHORT_BYTES for name in names)
        if entity.items is None or not names or saved < _SHARE * size.total:
            continue
        items = min(entity.items, 10**18)
        dollars = monthly_cost(stored_bytes=items * saved)
        if dollars < _DOLLARS:
            continue
        longest = sorted(names, key=lambda name: (-text_size(name), name))[:3]
        yield Defect(
            context.entity_place(table, entity),
            f"Attribute names take {sum(map(text_size, names)):,} of {size.total:,} bytes per item ({', '.join(longest)}): for {items:,} items, names of "
            f"{_SHORT_BYTES} characters would save {format_size(items * saved)}, {format_monthly_with_book(dollars)}",
            'Use short attribute names in the table and keep the long ones in code: attr(name="…")',
        )


def _names(table: TableDesign, entity: EntityDesign) -> tuple[str, ...]:
    """Return the attributes that could have shorter names: all but the table's key."""
    fixed = {*table.settings.key_names, *(name for index in table.indexes for name in index.attributes)}
    attributes = (field.attribute for field in entity.fields)
    return tuple(name for name in attributes if name not in fixed and text_size(name) > _SHORT_BYTES)
