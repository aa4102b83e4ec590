"""A list, set or map in an item grows without limit.

Why: An item may have up to 400 KB. Every append is charged for the whole item, so it gets more expensive as
the list grows. At the limit the update fails with a ValidationException, and nothing can be added to that
item any more.

Example: A ticket with `comments: list[Comment]`, to which "add a comment" appends.

Instead: Store each element as an item under the same partition key (`sk="COMMENT#{added_at}"`) and read them
with one query, or limit the field (`max_length=`) to the latest elements.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.limits import ITEM_BYTES_MAX, WRITE_UNIT_BYTES
from tavola.model.document import FieldDesign
from tavola.model.sizes import item_bytes

SEVERITY = "warning"

_ELEMENT_BYTES = 100  # assumed size of an element
_MEMBERS = frozenset({"L", "SS", "NS", "BS"})
_EITHER = ("object", "json")  # a map with arbitrary keys or a fixed record
_MAPS = ("map", "dict", *_EITHER)


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the collection fields that an update changes and that have no maximum length."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            growing = context.updates_of(entity, field.name)
            if not growing or field.length_max is not None or not _grows(field):
                continue
            left = ITEM_BYTES_MAX - item_bytes(table, entity)
            appends = max(0, left) // _ELEMENT_BYTES
            yield Defect(
                context.field_place(table, entity, field),
                f"“{growing[0].title}” adds to {field.name} without limit: an item is full after about {appends:,} elements of "
                f"{_ELEMENT_BYTES} bytes, and at 200 KB each append costs {200 * 1024 // WRITE_UNIT_BYTES} write units",
                f"Store each element as an item under the same partition key, or limit {field.name} (max_length=)",
                severity="advice" if field.type.lower().startswith(_EITHER) else None,
            )


def _grows(field: FieldDesign) -> bool:
    if field.type.startswith("tuple["):
        return False
    return bool(_MEMBERS & set(field.tags)) or ("M" in field.tags and field.type.lower().startswith(_MAPS))
