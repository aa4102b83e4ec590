"""A list, set or map in one item grows with every update without a limit.

Why: An item holds 400 KB. Every append is paid by the size of the whole item, so the list gets dearer as it grows, and
one day the update is refused with a ValidationException; from then on nothing can be added to that item at all.

Example: a ticket with `comments: list[Comment]`, to which "add a comment" appends.

Instead: Give each element an item of its own under the same partition key (`sk="COMMENT#{added_at}"`) and read them with
one query; or bound the field (`max_length=`) and keep the latest in it only.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.limits import ITEM_BYTES_MAX, WRITE_UNIT_BYTES
from tavola.model.document import FieldDesign
from tavola.model.sizes import item_bytes

SEVERITY: Severity = "warning"

_ELEMENT_BYTES = 100  # of an element whose size nobody said
_MEMBERS = frozenset({"L", "SS", "NS", "BS"})
_EITHER = ("object", "json")  # a map with keys that come as they like, or a record; nobody says
_MAPS = ("map", "dict", *_EITHER)


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the collection fields that an update changes and that have no maximum length."""
    for table, entity in context.all_entities():
        for field in entity.fields:
            growing = context.updates_of(entity, field.name)
            if not growing or field.length_max is not None or not _grows(field):
                continue
            left = ITEM_BYTES_MAX - item_bytes(table, entity)
            appends = max(0, left) // _ELEMENT_BYTES
            yield Finding(
                "unbounded-list",
                "advice" if field.type.lower().startswith(_EITHER) else SEVERITY,
                context.field_place(table, entity, field),
                f"“{growing[0].title}” adds to {field.name} without a bound: with elements of {_ELEMENT_BYTES} bytes the item is "
                f"full after about {appends:,}, and an append to one of 200 KB already costs {200 * 1024 // WRITE_UNIT_BYTES} write units",
                f"make each element an item under the same partition key, or bound {field.name} (max_length=)",
            )


def _grows(field: FieldDesign) -> bool:
    if field.type.startswith("tuple["):
        return False
    return bool(_MEMBERS & set(field.tags)) or ("M" in field.tags and field.type.lower().startswith(_MAPS))
