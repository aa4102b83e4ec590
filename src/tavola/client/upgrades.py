"""Upgrades: writes to items of an older schema than their entity's.

A change of such an item in place would leave half of it old and half new. So an update holds only for items of the
present schema; where an older one stands, it is upgraded and changed in one write, whole, under the condition that it
still is as it was read. Conditions of the caller are decided on the item as it reads, not as it is stored.
"""

from __future__ import annotations

from tavola.client.context import Context
from tavola.client.marshalling import VERSION, version_of
from tavola.client.requests import unchanged
from tavola.client.rewrites import form_of, managed_attributes
from tavola.expressions.nodes import Comparison, ConditionNode, FunctionCall, Literal, Or, Path
from tavola.model import Shape
from tavola.values import Item


def outdated(shape: Shape, item: Item | None) -> bool:
    """Return whether an item is of another schema version than its entity."""
    return item is not None and shape.version > 1 and version_of(shape, item) != shape.version


def of_this_schema(shape: Shape, *, or_absent: bool) -> list[ConditionNode]:
    """Return the condition that an item is of its entity's schema, or is none; nothing for the first schema."""
    if shape.version == 1:
        return []
    present = Comparison("=", Path((VERSION,)), Literal({"N": str(shape.version)}))
    if not or_absent:
        return [present]
    return [Or((FunctionCall("attribute_not_exists", (Path((shape.home.settings.hash,)),)), present))]


def not_newer(shape: Shape) -> list[ConditionNode]:
    """Return the condition that no item of a newer schema stands there, which a put would lose fields of.

    A program of the first schema writes no version and asks for none: it cannot know that there will be another.
    """
    if shape.version == 1:
        return []
    path = Path((VERSION,))
    known = Comparison("<=", path, Literal({"N": str(shape.version)}))
    return [Or((FunctionCall("attribute_not_exists", (path,)), known))]


def as_read(shape: Shape, item: Item) -> list[ConditionNode]:
    """Return the conditions that an item is what was read, attribute by attribute."""
    settings = shape.home.settings
    names = (item.keys() | shape.by_attribute.keys() | {VERSION}) - set(settings.key_names)
    exists: list[ConditionNode] = [FunctionCall("attribute_exists", (Path((settings.hash,)),))]
    return exists + [unchanged(item, name) for name in sorted(names)]


def renewed(shape: Shape, item: Item, context: Context) -> Item:
    """Return an item as its entity would write it now, index keys and all; `ItemUnreadable` for one of a newer schema."""
    return form_of(shape, item, context, managed_attributes(shape.home), settled=False).right
