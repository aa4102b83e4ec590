"""Uniques: the guards of unique values, which are written in one transaction with the entities that have them.

A guard is an item of the same table under a key made of the value. It names its owner's key, ends with its owner, and
is claimed only where there is none, or one that has expired, or the owner's own. Guards are worked out of items as they
are stored, so what is released is what was claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tavola.client.expiry import absent, ended
from tavola.client.marshalling import values_in
from tavola.client.requests import conditioned, unchanged
from tavola.client.updates import read_by
from tavola.expressions.nodes import Comparison, ConditionNode, FunctionCall, Literal, Or, Path
from tavola.model import OWNER_ATTRIBUTE, UNIQUE, UNIQUE_ATTRIBUTE, Change, ModelError, Shape, Table
from tavola.values import Item


@dataclass(frozen=True, slots=True)
class Guard:
    """The item that keeps one value for its owner."""

    table: type[Table]
    text: str  # its key
    field: str
    value: Any
    item: Item

    @property
    def key(self) -> Item:
        """Its key, as DynamoDB is asked for it."""
        return {name: self.item[name] for name in self.table.settings.key_names}

    @property
    def owner(self) -> Item:
        """The key of the item that has the value."""
        owner: Item = self.item[OWNER_ATTRIBUTE]["M"]
        return owner


def needs_transaction(shape: Shape) -> bool:
    """Return whether an entity's items are written with others or under a condition, which no batch can do."""
    return bool(shape.uniques) or shape.lock is not None


def watched_fields(shape: Shape) -> frozenset[str]:
    """Return the fields that decide about an entity's guards: those of their keys, and when they end."""
    if not shape.uniques:
        return frozenset()
    ttl = shape.by_attribute.get(shape.home.settings.ttl or "")
    told = frozenset(name for unique in shape.uniques for name in unique.fields)
    return told if ttl is None else told | {ttl.name}


def moves_guards(shape: Shape, changes: Sequence[Change[Any]]) -> bool:
    """Return whether changes can make an item's guards others than they are."""
    return bool(shape.uniques) and not watched_fields(shape).isdisjoint(change.field for change in changes)


def guards_of(shape: Shape, item: Item | None, primary: Item) -> dict[str, Guard]:
    """Return the guards that an item has, by their keys; None has none."""
    if item is None or not shape.uniques:
        return {}
    _check_key(shape, primary)
    guards: dict[str, Guard] = {}
    for unique in shape.uniques:
        values = values_in(shape, item, unique.fields)
        text = unique.text(values)
        if text is None:
            continue
        guards[text] = guard_of(shape, unique.field, values[unique.field], text, item, primary)
    return guards


def guard_of(shape: Shape, field: str, value: Any, text: str, item: Item, primary: Item) -> Guard:
    """Return the guard under a key, which keeps a value for an item and ends with it."""
    settings = shape.home.settings
    guard: Item = {settings.hash: {"S": text}}
    if settings.range is not None:
        guard[settings.range] = {"S": text}  # another for each, so that an index by it stays spread
    if settings.tag is not None:
        guard[settings.tag] = {"S": UNIQUE}
    if settings.ttl is not None and settings.ttl in item:
        guard[settings.ttl] = item[settings.ttl]
    guard[UNIQUE_ATTRIBUTE] = {"S": f"{shape.name}.{field}"}
    guard[OWNER_ATTRIBUTE] = {"M": primary}
    return Guard(shape.home, text, field, value, guard)


def _check_key(shape: Shape, primary: Item) -> None:
    settings = shape.home.settings
    told = primary[settings.hash]["S"]
    if told.startswith((f"{UNIQUE}{settings.delimiter}", f"LONG{UNIQUE}{settings.delimiter}")):
        assert shape.key is not None
        raise ModelError(
            f"{shape.entity.__name__}.{shape.key.name}", f"{told!r} begins as the guards of unique values do"
        )


def moved(old: dict[str, Guard], new: dict[str, Guard]) -> tuple[list[Guard], list[Guard]]:
    """Return the guards to be claimed and those to be released when an item changes."""
    claimed = [guard for text, guard in new.items() if text not in old or old[text].item != guard.item]
    return claimed, [guard for text, guard in old.items() if text not in new]


def claim(name: str, guard: Guard, givers: Iterable[Item], now_s: float) -> dict[str, Any]:
    """Return the action that takes a value: from nobody, from one that has ended, or from those that give it."""
    request = {"TableName": name, "Item": guard.item}
    return {"Put": conditioned(request, _free(guard, [guard.owner, *givers], now_s))}


def release(name: str, guard: Guard, givers: Iterable[Item], now_s: float) -> dict[str, Any]:
    """Return the action that gives a value back; it fails where another has it."""
    request = {"TableName": name, "Key": guard.key}
    return {"Delete": conditioned(request, _free(guard, [guard.owner, *givers], now_s))}


def _free(guard: Guard, owners: Iterable[Item], now_s: float) -> ConditionNode:
    settings = guard.table.settings
    parts: list[ConditionNode] = [FunctionCall("attribute_not_exists", (Path((settings.hash,)),))]
    told: list[Item] = []
    for owner in owners:
        if owner not in told:
            told.append(owner)
            parts.append(Comparison("=", Path((OWNER_ATTRIBUTE,)), Literal({"M": owner})))
    if settings.ttl is not None:
        parts.append(ended(settings.ttl, now_s))
    return Or(tuple(parts))


def watched_nodes(
    shape: Shape, item: Item | None, now_s: float, changes: Sequence[Change[Any]] = ()
) -> list[ConditionNode]:
    """Return the conditions that an item's guards, and what changes make of them, still are as worked out of it."""
    if item is None:
        return [absent(shape, now_s)]
    fields = watched_fields(shape)
    attributes = {shape.fields[name].attribute for name in fields} | read_by(changes, fields)
    return [unchanged(item, attribute) for attribute in sorted(attributes)]
