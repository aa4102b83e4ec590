"""Attribute names are a large part of what is stored and paid for.

Why: Every item carries the names of its attributes. They count for its size as values do: in storage, and in units where
they lift an item over the next 1 KB (writes) or 4 KB (reads).

Example: `measurement_temperature_celsius` on two billion readings is 58 GB of names.

Instead: Give the attribute a short name in the table and keep the long one in the program: `attr(name="t")`. It pays for
entities of very many small items alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import LintContext
from tavola.model.document import EntityDesign, TableDesign
from tavola.model.sizes import item_size
from tavola.values import text_size

SEVERITY: Severity = "advice"

_SHORT_BYTES = 2
_SHARE = 0.25
_DOLLARS = 10


def find(context: LintContext) -> Iterator[Finding]:
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
        yield Finding(
            "long-attribute-names",
            SEVERITY,
            context.entity_place(table, entity),
            f"names take {sum(map(text_size, names)):,} of an item's {size.total:,} bytes ({', '.join(longest)}): with {items:,} items, names of "
            f"{_SHORT_BYTES} letters would save {items * saved / 1024**3:,.0f} GB, about {format_monthly_with_book(dollars)}",
            'give them short names in the table and keep the long ones in the program: attr(name="…")',
        )


def _names(table: TableDesign, entity: EntityDesign) -> tuple[str, ...]:
    """Return the attributes that could have shorter names: all but the table's key."""
    fixed = {*table.settings.key_names, *(name for index in table.indexes for name in index.attributes)}
    attributes = (field.attribute for field in entity.fields)
    return tuple(name for name in attributes if name not in fixed and text_size(name) > _SHORT_BYTES)
