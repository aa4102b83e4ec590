"""Find who made a change, where the item or its stream record says so.

Versioned records name the actor in `changed_by`, others in a similarly named field that the design maps to an attribute. Time
to live is marked in the stream record, and replication by an attribute that version 1 global tables add to every item.
"""

from __future__ import annotations

from collections.abc import Iterable

from tavola.model.document import TableDesign
from tavola.studio.types import Item

EXPIRY = "time to live"

_CHANGED = ("changedby", "updatedby", "modifiedby", "lastmodifiedby", "lastupdatedby", "editedby", "actor")
_CREATED = ("createdby", "author", "openedby", "reportedby")
_REGION = "aws:rep:updateregion"


class Actors:
    """Tells who changed an item of one table."""

    def __init__(self, design: TableDesign | None, region: str = "") -> None:
        self._region = region
        self._designed = {
            entity.name: {_normalise(field.name): field.attribute for field in entity.fields}
            for entity in (() if design is None else design.entities)
        }

    def actor(
        self, entity: str | None, old: Item | None, new: Item | None, *, expired: bool = False
    ) -> str | None:
        """Return who made a change, None if nothing says so; of a deletion nothing but the record could."""
        if expired:
            return EXPIRY
        if new is None:
            return None
        region = new.get(_REGION, {}).get("S")
        if region and region != self._region:
            return f"replication from {region}"
        # What the design does not know may be in the item all the same.
        names = {_normalise(name): name for name in new} | self._designed.get(entity or "", {})
        return _first_value(new, names, _CHANGED if old is not None else (*_CHANGED, *_CREATED))


def _first_value(item: Item, names: dict[str, str], wanted: Iterable[str]) -> str | None:
    for name in wanted:
        told = item.get(names.get(name, ""), {}).get("S")
        if told:
            return str(told)
    return None


def _normalise(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
