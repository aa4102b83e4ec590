"""The guard items that enforce unique values, claimed and released together with the edit.

They match what the entity client writes (a key made of the value, the owner's key, the owner's expiry), derived from the
design alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tavola.expressions.nodes import And, Comparison, ConditionNode, FunctionCall, Literal, Or, Path
from tavola.expressions.renderer import Renderer
from tavola.limits import TTL_PAST_S_MAX
from tavola.model import OWNER_ATTRIBUTE, UNIQUE, UNIQUE_ATTRIBUTE, Unique, unique_of
from tavola.model.document import EntityDesign, TableDesign
from tavola.studio.field_values import FieldUnreadable, field_values
from tavola.values import Item


@dataclass(frozen=True, slots=True)
class UniqueGuard:
    """The item that keeps one value for its owner."""

    field: str
    item: Item
    key: Item

    @property
    def owner(self) -> Item:
        """The key of the item that has the value."""
        owner: Item = self.item[OWNER_ATTRIBUTE]["M"]
        return owner


def item_guards(table: TableDesign, entity: EntityDesign, item: Item | None) -> dict[str, UniqueGuard]:
    """Return the guards of an item by their keys; values that cannot be read have none."""
    if item is None or table.foreign:
        return {}
    found: dict[str, UniqueGuard] = {}
    for unique in _uniques(table, entity):
        try:
            values = field_values(entity, item, tuple(unique.fields))
        except FieldUnreadable:
            continue
        text = unique.text(values)
        if text is not None:
            found[text] = _guard(table, unique, text, item)
    return found


def claim_action(
    table: TableDesign, guard: UniqueGuard, owners: tuple[Item, ...], now_s: float
) -> dict[str, Any]:
    """Return the action of a transaction that takes a value: from nobody, from one that has ended, or from the owners."""
    return {"Put": _unless_taken({"TableName": table.name, "Item": guard.item}, table, owners, now_s)}


def release_action(
    table: TableDesign, guard: UniqueGuard, owners: tuple[Item, ...], now_s: float
) -> dict[str, Any]:
    """Return the action of a transaction that gives a value back; it fails where another has it."""
    return {"Delete": _unless_taken({"TableName": table.name, "Key": guard.key}, table, owners, now_s)}


def _uniques(table: TableDesign, entity: EntityDesign) -> list[Unique]:
    found = []
    for field in entity.fields:
        if field.unique:
            parts = [entity.field(name).part for name in (*field.within, field.name)]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts):
                delimiter = table.settings.delimiter
                found.append(unique_of(entity.tag, field.name, field.within, known, delimiter))
    return found


def _guard(table: TableDesign, unique: Unique, text: str, item: Item) -> UniqueGuard:
    settings = table.settings
    guard: Item = {name: {"S": text} for name in settings.key_names}
    key = dict(guard)
    if settings.tag is not None:
        guard[settings.tag] = {"S": UNIQUE}
    if settings.ttl is not None and settings.ttl in item:
        guard[settings.ttl] = item[settings.ttl]
    guard[UNIQUE_ATTRIBUTE] = {"S": f"{unique.entity}.{unique.field}"}
    guard[OWNER_ATTRIBUTE] = {"M": {name: item[name] for name in settings.key_names if name in item}}
    return UniqueGuard(unique.field, guard, key)


def _unless_taken(
    request: dict[str, Any], table: TableDesign, owners: tuple[Item, ...], now_s: float
) -> dict[str, Any]:
    settings = table.settings
    parts: list[ConditionNode] = [FunctionCall("attribute_not_exists", (Path((settings.hash,)),))]
    parts += [Comparison("=", Path((OWNER_ATTRIBUTE,)), Literal({"M": owner})) for owner in owners]
    if settings.ttl is not None:
        now, ttl = int(now_s), Path((settings.ttl,))
        first = Literal({"N": str(max(now - TTL_PAST_S_MAX + 1, 1))})
        parts.append(And((Comparison(">=", ttl, first), Comparison("<", ttl, Literal({"N": str(now + 1)})))))
    renderer = Renderer()
    request["ConditionExpression"] = renderer.condition(Or(tuple(parts)))
    request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if renderer.names:
        request["ExpressionAttributeNames"] = renderer.names
    request["ExpressionAttributeValues"] = renderer.values
    return request
