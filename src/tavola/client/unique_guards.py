"""Guards of unique values: items that are written in one transaction with the entities that have the values.

DynamoDB has no unique constraints except on the primary key. So each unique value gets a guard item in the same table whose
key contains the value:

    USER#42              email=ada@example.com          the entity
    UNIQUE#User#email#ada@example.com   owner=USER#42   its guard

Creating the entity puts both in one transaction, and the put of the guard is conditional: it fails unless there is no guard,
an expired one, or one with the same owner. A guard expires with its owner. Guards are computed from items as they are stored,
so a release removes exactly what was claimed.

An item of an older schema may have claimed its values under another field name or type, and another program may have stored
a value that does not fit the field. For those, `former_guards` returns every key under which the value could have been
claimed: releasing a guard that does not exist is harmless, and one that belongs to another item is not released. Guards that
it cannot guess (a renamed field stored under a new attribute) are reported by `verify_keys`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from itertools import product
from typing import Any

from tavola.client.marshalling import VERSION, plain_values, values_in, version_of
from tavola.client.requests import absent_node, add_condition, expired_node, unchanged_node
from tavola.client.updates import attributes_read_by
from tavola.expressions.nodes import Comparison, ConditionNode, FunctionCall, Literal, Or, Path
from tavola.keys import BoundTemplate, KeyPartRefused, Part, Template, part_for
from tavola.limits import RANGE_KEY_BYTES_MAX
from tavola.model import (
    OWNER_ATTRIBUTE,
    UNIQUE,
    UNIQUE_ATTRIBUTE,
    Change,
    EntityShape,
    ItemUnreadable,
    ModelError,
    Table,
    Unique,
)
from tavola.values import Item

FORMER_NAMES_MAX = 8  # attributes without a field that are tried as former names of a unique field


@dataclass(frozen=True, slots=True)
class UniqueValueGuard:
    """The item that reserves one unique value for its owner."""

    table: type[Table]
    text: str  # its key
    field: str
    value: Any
    item: Item

    @property
    def key(self) -> Item:
        """Its primary key."""
        return {name: self.item[name] for name in self.table.settings.key_names}

    @property
    def owner(self) -> Item:
        """The key of the item that has the value."""
        owner: Item = self.item[OWNER_ATTRIBUTE]["M"]
        return owner


def _guard_fields(shape: EntityShape) -> frozenset[str]:
    """Return the fields that an entity's guards depend on: those in their keys, and the time to live."""
    if not shape.uniques:
        return frozenset()
    ttl = shape.by_attribute.get(shape.home.settings.ttl or "")
    fields = frozenset(name for unique in shape.uniques for name in unique.fields)
    return fields if ttl is None else fields | {ttl.name}


def changes_guards(shape: EntityShape, changes: Sequence[Change[Any]]) -> bool:
    """Return whether an update can change the guards of an item."""
    return not _guard_fields(shape).isdisjoint(change.field for change in changes)


def guards_of(shape: EntityShape, item: Item | None, primary: Item) -> dict[str, UniqueValueGuard]:
    """Return the guards of an item by their keys; None has none."""
    if item is None or not shape.uniques:
        return {}
    _check_key(shape, primary)
    guards: dict[str, UniqueValueGuard] = {}
    for unique in shape.uniques:
        values = values_in(shape, item, unique.fields)
        text = unique.text(values)
        if text is not None:
            guards[text] = _make_guard(shape, unique.field, values[unique.field], text, item, primary)
    return guards


def _make_guard(
    shape: EntityShape, field: str, value: Any, text: str, item: Item, primary: Item
) -> UniqueValueGuard:
    settings = shape.home.settings
    guard: Item = {settings.hash: {"S": text}}
    if settings.range is not None:
        guard[settings.range] = {"S": text}  # different for each guard, so an index on it is not hot
    if settings.tag is not None:
        guard[settings.tag] = {"S": UNIQUE}
    if settings.ttl is not None and settings.ttl in item:
        guard[settings.ttl] = item[settings.ttl]
    guard[UNIQUE_ATTRIBUTE] = {"S": f"{shape.name}.{field}"}
    guard[OWNER_ATTRIBUTE] = {"M": primary}
    return UniqueValueGuard(shape.home, text, field, value, guard)


def _check_key(shape: EntityShape, primary: Item) -> None:
    settings = shape.home.settings
    text = primary[settings.hash]["S"]
    if text.startswith((f"{UNIQUE}{settings.delimiter}", f"LONG{UNIQUE}{settings.delimiter}")):
        assert shape.key is not None
        raise ModelError(
            f"{shape.entity.__name__}.{shape.key.name}",
            f"{text!r} starts with the prefix of guards of unique values; use another key",
        )


def diff_guards(
    old: dict[str, UniqueValueGuard], new: dict[str, UniqueValueGuard]
) -> tuple[list[UniqueValueGuard], list[UniqueValueGuard]]:
    """Return the guards to claim and the guards to release when an item changes."""
    claims = [guard for text, guard in new.items() if text not in old or old[text].item != guard.item]
    return claims, [guard for text, guard in old.items() if text not in new]


def claim(name: str, guard: UniqueValueGuard, releasing: Iterable[Item], now_s: float) -> dict[str, Any]:
    """Return the action that claims a value that is free, expired, or released in the same transaction."""
    request = {"TableName": name, "Item": guard.item}
    return {"Put": add_condition(request, _claimable_node(guard, [guard.owner, *releasing], now_s))}


def release(name: str, guard: UniqueValueGuard, releasing: Iterable[Item], now_s: float) -> dict[str, Any]:
    """Return the action that releases a value; it fails if another item has the value."""
    request = {"TableName": name, "Key": guard.key}
    return {"Delete": add_condition(request, _claimable_node(guard, [guard.owner, *releasing], now_s))}


def _claimable_node(guard: UniqueValueGuard, owners: Iterable[Item], now_s: float) -> ConditionNode:
    settings = guard.table.settings
    parts: list[ConditionNode] = [FunctionCall("attribute_not_exists", (Path((settings.hash,)),))]
    seen: list[Item] = []
    for owner in owners:
        if owner not in seen:
            seen.append(owner)
            parts.append(Comparison("=", Path((OWNER_ATTRIBUTE,)), Literal({"M": owner})))
    if settings.ttl is not None:
        parts.append(expired_node(settings.ttl, now_s))
    return Or(tuple(parts))


def guard_nodes(
    shape: EntityShape, item: Item | None, now_s: float, changes: Sequence[Change[Any]] = ()
) -> list[ConditionNode]:
    """Return the conditions that everything the guards were computed from is unchanged."""
    if item is None:
        return [absent_node(shape, now_s)]
    fields = _guard_fields(shape)
    attributes = {shape.fields[name].attribute for name in fields} | attributes_read_by(changes, fields)
    return [unchanged_node(item, attribute) for attribute in sorted(attributes)]


def former_guards(shape: EntityShape, item: Item | None, primary: Item) -> dict[str, UniqueValueGuard]:
    """Return the guards that a stored item may have, by their keys, also under former names and types."""
    if item is None or not shape.uniques or UNIQUE_ATTRIBUTE in item:
        return {}
    outdated = version_of(shape, item) != shape.version
    guards: dict[str, UniqueValueGuard] = {}
    try:
        guards = guards_of(shape, item, primary)
    except (ItemUnreadable, KeyPartRefused):
        pass  # the stored values do not fit the fields
    else:
        if not outdated:
            return guards
    values = plain_values(shape, item)
    names: list[str] = []
    if outdated:
        names = sorted(values.keys() - shape.fields.keys() - _managed_names(shape))[:FORMER_NAMES_MAX]
    for unique in shape.uniques:
        for name in (unique.field, *names):
            for text in _possible_keys(unique, name, values):
                if text not in guards:
                    guards[text] = _make_guard(shape, name, values[name], text, item, primary)
    return guards


def _managed_names(shape: EntityShape) -> set[str | None]:
    """Return the attributes that belong to no field: keys, the tag and the version."""
    table = shape.home
    keys = {name for index in table.indexes for name in index.attributes}
    return {*table.settings.key_names, table.settings.tag, VERSION, *keys}


def _possible_keys(unique: Unique, name: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys under which a value could have been claimed, one for each type that it could have had."""
    forms = [list(_possible_types(values.get(field_name))) for field_name in (*unique.within, name)]
    for chosen in product(*forms):
        parts: dict[str, Any] = {"entity": unique.entity, "unique": name}
        parts |= {f"part{number}": value for number, (_, value) in enumerate(chosen)}
        template = _template(
            unique.template.source, unique.template.delimiter, tuple(kind for kind, _ in chosen)
        )
        try:
            text = template.render(parts)
        except KeyPartRefused:
            continue
        if len(text.encode()) <= RANGE_KEY_BYTES_MAX:
            yield text
        else:
            yield unique.long.render({**parts, "digest": sha256(text.encode()).hexdigest()})


def _possible_types(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the key part types that a plain value could have had, with the value in each type."""
    if isinstance(value, bool):
        yield "bool", value
    elif isinstance(value, int | Decimal):
        if value == int(value):
            yield "int", int(value)
        yield "decimal", Decimal(value)
    elif isinstance(value, str):
        yield "text", value
        for kind, parse in (("datetime", datetime.fromisoformat), ("date", date.fromisoformat)):
            try:
                yield kind, parse(value)
            except ValueError:
                continue


@lru_cache(maxsize=256)
def _template(source: str, delimiter: str, kinds: tuple[str, ...]) -> BoundTemplate:
    """Return the template of guard keys with parts of other types."""
    parts: dict[str, Part] = {"entity": part_for("text"), "unique": part_for("text")}
    parts |= {f"part{number}": part_for(kind) for number, kind in enumerate(kinds)}
    return Template.parse(source, delimiter).bind(parts)
