"""Replace one item with another without losing a concurrent change, in a way that can be undone.

An edit writes only the attributes it changes, each on condition that it still has the value that was read. Two people may
edit one item at once; only the one who would overwrite the other, or derive a key from outdated fields, gets a conflict:

    in place     UpdateItem, condition on the changed attributes (in steps if they do not fit one expression)
    key changes  TransactWriteItems: Delete of the old item, Put of the new one
    unique value TransactWriteItems: the write, plus Put and Delete of guard items
    delete       DeleteItem, condition on all attributes

One gap remains, because a condition cannot name unknown attributes: an attribute that another writer adds to an item without
a lock, between the last read and the transaction that moves or deletes it, is lost with the old item.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tavola.errors import TavolaError
from tavola.expressions.nodes import And, Comparison, ConditionNode, FunctionCall, Or, Path
from tavola.expressions.nodes import Literal as LiteralNode
from tavola.expressions.renderer import Renderer
from tavola.limits import TTL_PAST_S_MAX
from tavola.model import OWNER_ATTRIBUTE, UNIQUE, UNIQUE_ATTRIBUTE, Unique, unique_of
from tavola.model.document import EntityDesign, TableDesign
from tavola.protocol.faults import ConditionalCheckFailedFault, TransactionCanceledFault
from tavola.studio.edits import requests
from tavola.studio.edits.derivation import key_inputs, values_equal
from tavola.studio.edits.requests import ATTRIBUTES_MAX, call_with_retries, changed_attributes
from tavola.studio.field_values import FieldUnreadable, field_values
from tavola.studio.problems import RequestRefused
from tavola.studio.recognition import value_text
from tavola.studio.studio import Studio
from tavola.studio.table_layouts import TableLayout
from tavola.values import Item, decode_item, equal, item_size, transact_write_units


@dataclass(frozen=True, slots=True)
class UniqueGuard:
    """The guard item that reserves a unique value for its owner."""

    field: str
    item: Item
    key: Item

    @property
    def owner(self) -> Item:
        """The key of the item that has the value."""
        owner: Item = self.item[OWNER_ATTRIBUTE]["M"]
        return owner


def item_guards(table: TableDesign, entity: EntityDesign, item: Item | None) -> dict[str, UniqueGuard]:
    """Return the guards of an item by key; unreadable values have none."""
    if item is None or table.foreign:
        return {}
    guards: dict[str, UniqueGuard] = {}
    for unique in _uniques(table, entity):
        try:
            values = field_values(entity, item, tuple(unique.fields))
        except FieldUnreadable:
            continue
        text = unique.text(values)
        if text is not None:
            guards[text] = _guard(table, unique, text, item)
    return guards


def claim_action(
    table: TableDesign, guard: UniqueGuard, owners: tuple[Item, ...], now_s: float
) -> dict[str, Any]:
    """Return the transaction action that claims a value if it is free, expired, or held by one of the owners."""
    return {"Put": _unless_taken({"TableName": table.name, "Item": guard.item}, table, owners, now_s)}


def release_action(
    table: TableDesign, guard: UniqueGuard, owners: tuple[Item, ...], now_s: float
) -> dict[str, Any]:
    """Return the transaction action that releases a value; it fails if another item holds it."""
    return {"Delete": _unless_taken({"TableName": table.name, "Key": guard.key}, table, owners, now_s)}


def _uniques(table: TableDesign, entity: EntityDesign) -> list[Unique]:
    uniques = []
    for field in entity.fields:
        if field.unique:
            parts = [entity.field(name).part for name in (*field.within, field.name)]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts):
                delimiter = table.settings.delimiter
                uniques.append(unique_of(entity.tag, field.name, field.within, known, delimiter))
    return uniques


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
    parts += [Comparison("=", Path((OWNER_ATTRIBUTE,)), LiteralNode({"M": owner})) for owner in owners]
    if settings.ttl is not None:
        now, ttl = int(now_s), Path((settings.ttl,))
        first = LiteralNode({"N": str(max(now - TTL_PAST_S_MAX + 1, 1))})
        parts.append(
            And((Comparison(">=", ttl, first), Comparison("<", ttl, LiteralNode({"N": str(now + 1)}))))
        )
    renderer = Renderer()
    request["ConditionExpression"] = renderer.condition(Or(tuple(parts)))
    request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if renderer.names:
        request["ExpressionAttributeNames"] = renderer.names
    request["ExpressionAttributeValues"] = renderer.values
    return request


_TRIES = 4  # for conflicting transactions and for rolling back
_FIRST_DELAY_S = 0.02
_HELD_MAX = 40  # conditions besides those on changed attributes
_LOST_TEXT_MAX = 4_000  # characters

Outcome = Literal["written", "unchanged", "conflict", "exists"]


@dataclass(frozen=True, slots=True)
class ItemEdit:
    """An edit: the item as it was read, and its replacement; None means no item."""

    before: Item | None
    after: Item | None
    table: TableDesign | None = None
    entity: EntityDesign | None = None
    previous_entity: EntityDesign | None = None  # of `before`; None: the same
    held: frozenset[str] = frozenset()  # further attributes that must have the values that were read


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of a write: the stored item, and the write units consumed."""

    outcome: Outcome
    current: Item | None
    units: float


async def write_edit(studio: Studio, layout: TableLayout, change: ItemEdit) -> WriteResult:
    """Write an edit; on a conflict nothing is written and the stored item is returned."""
    before, after = change.before, change.after
    if before is None and after is None:
        return WriteResult("unchanged", None, 0.0)
    if needs_transaction(layout, change):
        return await _write_transaction(studio, layout, change)
    if before is None:
        assert after is not None, "checked above"
        request = requests.put_new(layout.table, after, layout.schema.names[0])
        return await _call_conditional(studio, "PutItem", request, after)
    if after is None:
        return await _delete(studio, layout, before)
    return await _edit(studio, layout, change, before, after)


def needs_transaction(layout: TableLayout, change: ItemEdit) -> bool:
    """Return whether an edit needs a transaction: it changes the key or a unique value."""
    claims, releases = _changed_guards(change)
    return bool(claims or releases or _changes_key(layout, change))


def _changes_key(layout: TableLayout, change: ItemEdit) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and layout.key_of(before) != layout.key_of(after)


def guard_units(change: ItemEdit) -> float:
    """Return the write units of the guards that an edit claims and releases."""
    claims, releases = _changed_guards(change)
    return sum(transact_write_units(0, item_size(guard.item)) for guard in (*claims, *releases))


async def read_item(studio: Studio, layout: TableLayout, key: Mapping[str, Any]) -> Item | None:
    """Return the current item with a key."""
    request = {"TableName": layout.table, "Key": layout.key_of(key), "ConsistentRead": True}
    item: Item | None = (await call_with_retries(studio.db, "GetItem", request)).get("Item")
    return item


def items_equal(one: Item | None, other: Item | None) -> bool:
    """Return whether two items are equal; None means no item."""
    if one is None or other is None:
        return one is other
    return equal({"M": one}, {"M": other})


async def _edit(
    studio: Studio, layout: TableLayout, change: ItemEdit, before: Item, after: Item
) -> WriteResult:
    names = changed_attributes(before, after)
    if not names:
        return WriteResult("unchanged", before, 0.0)
    key, unchanged = layout.key_of(before), _held_attributes(change, names)
    step = ATTRIBUTES_MAX - len(unchanged)
    done: list[list[str]] = []
    units = 0.0
    for start in range(0, len(names), step):
        part = names[start : start + step]
        request = requests.update(layout.table, key, before, after, part, unchanged)
        try:
            result = await _call_conditional(studio, "UpdateItem", request, None)
        except TavolaError:
            if done:  # the outcome of the failed step is unknown, so it is rolled back too
                await _roll_back(studio, layout, before, after, [*done, part])
            raise
        units += result.units
        if result.outcome != "written":
            units += await _roll_back(studio, layout, before, after, done)
            return WriteResult(result.outcome, await read_item(studio, layout, key), units)
        done.append(part)
    return WriteResult("written", await read_item(studio, layout, key), units)


def _held_attributes(change: ItemEdit, names: Sequence[str]) -> list[str]:
    """Return further attributes that must have the values that were read, so that derived keys are right."""
    unchanged = key_inputs(change.entity, names) | change.held.difference(names)
    return sorted(unchanged)[:_HELD_MAX]


async def _roll_back(
    studio: Studio, layout: TableLayout, before: Item, after: Item, done: Sequence[Sequence[str]]
) -> float:
    """Undo the completed steps, so that all or nothing is written; concurrent changes of others are kept."""
    key = layout.key_of(before)
    units, stays = 0.0, 0
    for part in reversed(done):
        remaining = list(part)
        for _ in range(_TRIES):
            try:
                request = requests.update(layout.table, key, after, before, remaining)
                result = await _call_conditional(studio, "UpdateItem", request, None)
            except TavolaError:
                break
            units += result.units
            current = result.current or {}
            remaining = [n for n in remaining if current and values_equal(current.get(n), after.get(n))]
            if result.outcome == "written" or not remaining:
                remaining = []
                break
        stays += len(remaining)
    if stays:
        raise RequestRefused(
            "partly-written",
            "Only part of the edit was written",
            f"The edit needed several steps. One failed, and earlier ones could not be undone: {stays:,} attributes have "
            "your values, the others do not.",
            "Reload the item, check it, and save what is missing.",
            status=409,
        )
    return units


async def _delete(studio: Studio, layout: TableLayout, before: Item) -> WriteResult:
    current = await read_item(studio, layout, before)
    if not items_equal(current, before):
        return WriteResult("conflict", current, 0.0)
    request = requests.delete(layout.table, layout.key_of(before), before)
    request["ReturnValues"] = "ALL_OLD"
    result = await _call_conditional(studio, "DeleteItem", request, None)
    if result.outcome == "written" and not items_equal(result.current, before):
        # Another writer added an attribute between the two calls; a condition cannot name unknown attributes.
        assert result.current is not None, "the condition requires an item"
        back = requests.put_new(layout.table, result.current, layout.schema.names[0])
        again = await _call_conditional(studio, "PutItem", back, result.current)
        if again.outcome != "written":
            raise _deletion_error(before, result.current)
        return WriteResult("conflict", again.current, result.units + again.units)
    return WriteResult(result.outcome, None if result.outcome == "written" else result.current, result.units)


def _deletion_error(before: Item, deleted: Item) -> RequestRefused:
    """Return the error for a deletion that removed unseen attributes and could not be undone."""
    changed_since = {
        name: value for name, value in deleted.items() if not values_equal(before.get(name), value)
    }
    return RequestRefused(
        "deleted-with-more",
        "The deleted item had newer attributes",
        f"Another writer added attributes at the same moment: {json.dumps(changed_since, ensure_ascii=False)[:_LOST_TEXT_MAX]}. The "
        "item could not be restored, because a new item with this key exists.",
        "Check the new item, and add the lost attributes if they belong there.",
        status=409,
    )


async def _call_conditional(
    studio: Studio, operation: str, request: dict[str, Any], written: Item | None
) -> WriteResult:
    request["ReturnConsumedCapacity"] = "TOTAL"
    try:
        answer = await call_with_retries(studio.db, operation, request)
    except ConditionalCheckFailedFault as fault:
        return WriteResult(
            "exists" if operation == "PutItem" else "conflict", _decode_returned(fault.item), 0.0
        )
    return WriteResult("written", answer.get("Attributes", written), response_units(answer))


async def _write_transaction(studio: Studio, layout: TableLayout, change: ItemEdit) -> WriteResult:
    """Write an item, and what must be written with it, in one transaction."""
    before, after, table = change.before, change.after, change.table
    actions, must_equal = _item_actions(layout, change)
    current = None if before is None else await read_item(studio, layout, before)
    if before is not None and (current is None or (must_equal and not items_equal(current, before))):
        return WriteResult("conflict", current, 0.0)
    own = len(actions)
    owners = tuple(layout.key_of(item) for item in (before, after) if item is not None)
    claims, releases = _changed_guards(change)
    attempt = 0
    while True:
        guarding: list[dict[str, Any]] = []
        if table is not None:
            now_s = studio.clock.now()
            guarding += [claim_action(table, guard, owners, now_s) for guard in claims]
            guarding += [release_action(table, guard, owners, now_s) for guard in releases]
        request = {"TransactItems": [*actions, *guarding], "ReturnConsumedCapacity": "TOTAL"}
        try:
            answer = await call_with_retries(studio.db, "TransactWriteItems", request)
        except TransactionCanceledFault as fault:
            codes = [reason.code for reason in fault.reasons]
            failed = [place for place, code in enumerate(codes) if code == "ConditionalCheckFailed"]
            if failed and failed[0] >= own + len(claims):
                # Another item holds the value, so this one cannot release it.
                foreign = {place - own - len(claims) for place in failed}
                releases = [guard for position, guard in enumerate(releases) if position not in foreign]
            elif failed:
                return await _explain_failure(studio, layout, change, fault, failed, own, claims)
            elif "TransactionConflict" in codes and attempt + 1 < _TRIES:
                await asyncio.sleep(_FIRST_DELAY_S * 2**attempt)
                attempt += 1
            else:
                raise
        else:
            now = None if after is None else await read_item(studio, layout, after)
            return WriteResult("written", now, response_units(answer))


def _item_actions(layout: TableLayout, change: ItemEdit) -> tuple[list[dict[str, Any]], bool]:
    """Return the actions on the item itself, and whether the whole item must equal the one that was read."""
    before, after = change.before, change.after
    if before is None:
        assert after is not None, "an edit has `before` or `after`"
        return [{"Put": requests.put_new(layout.table, after, layout.schema.names[0])}], True
    key = layout.key_of(before)
    if after is None:
        return [{"Delete": requests.delete(layout.table, key, before)}], True
    names = changed_attributes(before, after)
    if _changes_key(layout, change):
        return [
            {"Delete": requests.delete(layout.table, key, before, names)},
            {"Put": requests.put_new(layout.table, after, layout.schema.names[0])},
        ], True
    unchanged = _held_attributes(change, names)
    if len(names) + len(unchanged) > ATTRIBUTES_MAX:
        return [{"Put": requests.put_over(layout.table, after, before, names)}], True
    return [{"Update": requests.update(layout.table, key, before, after, names, unchanged)}], False


async def _explain_failure(
    studio: Studio,
    layout: TableLayout,
    change: ItemEdit,
    fault: TransactionCanceledFault,
    failed: list[int],
    own: int,
    claims: list[UniqueGuard],
) -> WriteResult:
    """Return the conflict that cancelled a transaction; refuse a unique value that another item holds."""
    if failed[0] >= own:
        guard, claimed = claims[failed[0] - own], _decode_returned(fault.reasons[failed[0]].item)
        owner = (claimed or {}).get(OWNER_ATTRIBUTE, {}).get("M", {})
        owner_text = (
            ", ".join(f"{name} {value_text(value)}" for name, value in owner.items()) or "another item"
        )
        raise RequestRefused(
            "unique-taken",
            f"{guard.field} is already in use",
            f"{guard.field} must be unique, and the item {owner_text} has this value.",
            "Enter another value, or change the other item first. Nothing was written.",
            status=409,
        )
    if change.before is None or failed[0] == 1:
        return WriteResult("exists", _decode_returned(fault.reasons[failed[0]].item), 0.0)
    return WriteResult("conflict", await read_item(studio, layout, change.before), 0.0)


def _changed_guards(change: ItemEdit) -> tuple[list[UniqueGuard], list[UniqueGuard]]:
    """Return the guards that an edit claims and those it releases."""
    if change.table is None:
        return [], []
    was = change.previous_entity or change.entity
    old = {} if was is None else item_guards(change.table, was, change.before)
    new = {} if change.entity is None else item_guards(change.table, change.entity, change.after)
    claims = [g for text, g in new.items() if text not in old or old[text].item != g.item]
    return claims, [guard for text, guard in old.items() if text not in new]


def _decode_returned(raw: Any) -> Item | None:
    if raw is None or isinstance(raw, dict):
        return raw
    return decode_item(bytes(raw))


def response_units(answer: Mapping[str, Any]) -> float:
    """Return the capacity units that a response reports."""
    consumed = answer.get("ConsumedCapacity")
    if consumed is None:
        return 0.0
    return sum(
        float(table_capacity["CapacityUnits"])
        for table_capacity in (consumed if isinstance(consumed, list) else [consumed])
    )
