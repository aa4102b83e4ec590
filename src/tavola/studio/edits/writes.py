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
from tavola.model import OWNER_ATTRIBUTE
from tavola.model.document import EntityDesign, TableDesign
from tavola.protocol.faults import ConditionalCheckFailedFault, TransactionCanceledFault
from tavola.studio.edits import requests
from tavola.studio.edits.derivation import deciding, same, text_of
from tavola.studio.edits.layouts import Layout
from tavola.studio.edits.requests import ATTRIBUTES_MAX, differing
from tavola.studio.edits.retries import patiently
from tavola.studio.edits.unique_guards import Guard, claim, guards_of, release
from tavola.studio.problems import Refused
from tavola.studio.studio import Studio
from tavola.values import Item, decode_item, equal, item_size, transact_write_units

_TRIES = 4  # of a transaction that meets another, and of taking something back
_FIRST_DELAY_S = 0.02
_HELD_MAX = 40  # beside those that change
_TOLD_MAX = 4_000  # characters of what was lost

Outcome = Literal["written", "unchanged", "conflict", "exists"]


@dataclass(frozen=True, slots=True)
class Change:
    """What stands or is thought to, and what shall stand; None is no item."""

    before: Item | None
    after: Item | None
    table: TableDesign | None = None
    entity: EntityDesign | None = None
    was: EntityDesign | None = None  # what it is before; None: the same
    held: frozenset[str] = (
        frozenset()
    )  # attributes that must be as they were read, whether they change or not


@dataclass(frozen=True, slots=True)
class Result:
    """How a write ended: what stands now, and the write units that it took."""

    outcome: Outcome
    stands: Item | None
    units: float


async def write(studio: Studio, layout: Layout, change: Change) -> Result:
    """Make the change, or tell what stands in its way; nothing is written then."""
    before, after = change.before, change.after
    if before is None and after is None:
        return Result("unchanged", None, 0.0)
    if needs_transaction(layout, change):
        return await _together(studio, layout, change)
    if before is None:
        assert after is not None, "a change has one of both"
        request = requests.put_new(layout.table, after, layout.schema.names[0])
        return await _single(studio, "PutItem", request, after)
    if after is None:
        return await _delete(studio, layout, before)
    return await _edit(studio, layout, change, before, after)


def needs_transaction(layout: Layout, change: Change) -> bool:
    """Tell whether a change takes a transaction: its key changes, or a value that must be unique."""
    claims, releases = _guards(change)
    return bool(claims or releases or _moved(layout, change))


def _moved(layout: Layout, change: Change) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and layout.key_of(before) != layout.key_of(after)


def guard_units(change: Change) -> float:
    """Return the write units of the guards that a change claims and releases."""
    claims, releases = _guards(change)
    return sum(transact_write_units(0, item_size(guard.item)) for guard in (*claims, *releases))


async def read_item(studio: Studio, layout: Layout, key: Mapping[str, Any]) -> Item | None:
    """Return what stands under a key now."""
    request = {"TableName": layout.table, "Key": layout.key_of(key), "ConsistentRead": True}
    found: Item | None = (await patiently(studio.db, "GetItem", request)).get("Item")
    return found


def same_items(one: Item | None, other: Item | None) -> bool:
    """Tell whether two items are equal; None is no item."""
    if one is None or other is None:
        return one is other
    return equal({"M": one}, {"M": other})


async def _edit(studio: Studio, layout: Layout, change: Change, before: Item, after: Item) -> Result:
    names = differing(before, after)
    if not names:
        return Result("unchanged", before, 0.0)
    key, held = layout.key_of(before), _held(change, names)
    step = ATTRIBUTES_MAX - len(held)
    done: list[list[str]] = []
    units = 0.0
    for start in range(0, len(names), step):
        part = names[start : start + step]
        request = requests.update(layout.table, key, before, after, part, held)
        try:
            result = await _single(studio, "UpdateItem", request, None)
        except TavolaError:
            if done:  # of the step without an answer nobody knows, so it is taken back too
                await _take_back(studio, layout, before, after, [*done, part])
            raise
        units += result.units
        if result.outcome != "written":
            units += await _take_back(studio, layout, before, after, done)
            return Result(result.outcome, await read_item(studio, layout, key), units)
        done.append(part)
    return Result("written", await read_item(studio, layout, key), units)


def _held(change: Change, names: Sequence[str]) -> list[str]:
    """Return the attributes beside those that change which must be as they were read, or a key would be stale."""
    held = deciding(change.entity, names) | change.held.difference(names)
    return sorted(held)[:_HELD_MAX]


async def _take_back(
    studio: Studio, layout: Layout, before: Item, after: Item, done: Sequence[Sequence[str]]
) -> float:
    """Undo the steps that were written, so that all is written or nothing; what others wrote over them is theirs."""
    key = layout.key_of(before)
    units, stays = 0.0, 0
    for part in reversed(done):
        left = list(part)
        for _ in range(_TRIES):
            try:
                request = requests.update(layout.table, key, after, before, left)
                result = await _single(studio, "UpdateItem", request, None)
            except TavolaError:
                break
            units += result.units
            stands = result.stands or {}
            left = [n for n in left if stands and same(stands.get(n), after.get(n))]
            if result.outcome == "written" or not left:
                left = []
                break
        stays += len(left)
    if stays:
        raise Refused(
            "partly-written",
            "Only a part was written",
            f"The edit took several steps; after some of them it could go neither on nor back. {stays:,} attributes are "
            "as you made them, and the others are not.",
            "Read the item again, look at it, and save what is missing.",
            status=409,
        )
    return units


async def _delete(studio: Studio, layout: Layout, before: Item) -> Result:
    stands = await read_item(studio, layout, before)
    if not same_items(stands, before):
        return Result("conflict", stands, 0.0)
    request = requests.delete(layout.table, layout.key_of(before), before)
    request["ReturnValues"] = "ALL_OLD"
    result = await _single(studio, "DeleteItem", request, None)
    if result.outcome == "written" and not same_items(result.stands, before):
        # Somebody added an attribute between the two calls, which no condition can ask about.
        assert result.stands is not None, "the condition held of an item"
        back = requests.put_new(layout.table, result.stands, layout.schema.names[0])
        again = await _single(studio, "PutItem", back, result.stands)
        if again.outcome != "written":
            raise _gone(before, result.stands)
        return Result("conflict", again.stands, result.units + again.units)
    return Result(result.outcome, None if result.outcome == "written" else result.stands, result.units)


def _gone(before: Item, deleted: Item) -> Refused:
    """Tell of a deletion that took more along than was seen, and could not be taken back."""
    more = {name: value for name, value in deleted.items() if not same(before.get(name), value)}
    return Refused(
        "deleted-with-more",
        "It was deleted, and more with it than you saw",
        f"Somebody added to the item in the same moment: {json.dumps(more, ensure_ascii=False)[:_TOLD_MAX]}. It could not be "
        "put back, because another item stands there by now.",
        "Look at what stands there, and add what was lost if it belongs there.",
        status=409,
    )


async def _single(studio: Studio, operation: str, request: dict[str, Any], written: Item | None) -> Result:
    request["ReturnConsumedCapacity"] = "TOTAL"
    try:
        answer = await patiently(studio.db, operation, request)
    except ConditionalCheckFailedFault as fault:
        return Result("exists" if operation == "PutItem" else "conflict", _brought(fault.item), 0.0)
    return Result("written", answer.get("Attributes", written), units_in(answer))


async def _together(studio: Studio, layout: Layout, change: Change) -> Result:
    """Write an item, and what must be written with it, in one transaction."""
    before, after, table = change.before, change.after, change.table
    actions, whole = _actions(layout, change)
    stands = None if before is None else await read_item(studio, layout, before)
    if before is not None and (stands is None or (whole and not same_items(stands, before))):
        return Result("conflict", stands, 0.0)
    own = len(actions)
    owners = tuple(layout.key_of(item) for item in (before, after) if item is not None)
    claims, releases = _guards(change)
    attempt = 0
    while True:
        guarding: list[dict[str, Any]] = []
        if table is not None:
            now_s = studio.clock.now()
            guarding += [claim(table, guard, owners, now_s) for guard in claims]
            guarding += [release(table, guard, owners, now_s) for guard in releases]
        request = {"TransactItems": [*actions, *guarding], "ReturnConsumedCapacity": "TOTAL"}
        try:
            answer = await patiently(studio.db, "TransactWriteItems", request)
        except TransactionCanceledFault as fault:
            codes = [reason.code for reason in fault.reasons]
            failed = [place for place, code in enumerate(codes) if code == "ConditionalCheckFailed"]
            if failed and failed[0] >= own + len(claims):
                # Another has the value, so it is not this item's to give back.
                foreign = {place - own - len(claims) for place in failed}
                releases = [guard for at, guard in enumerate(releases) if at not in foreign]
            elif failed:
                return await _refusal(studio, layout, change, fault, failed, own, claims)
            elif "TransactionConflict" in codes and attempt + 1 < _TRIES:
                await asyncio.sleep(_FIRST_DELAY_S * 2**attempt)
                attempt += 1
            else:
                raise
        else:
            now = None if after is None else await read_item(studio, layout, after)
            return Result("written", now, units_in(answer))


def _actions(layout: Layout, change: Change) -> tuple[list[dict[str, Any]], bool]:
    """Return what is done to the item itself, and whether all of it must be as it was read, for all of it is written."""
    before, after = change.before, change.after
    if before is None:
        assert after is not None, "a change has one of both"
        return [{"Put": requests.put_new(layout.table, after, layout.schema.names[0])}], True
    key = layout.key_of(before)
    if after is None:
        return [{"Delete": requests.delete(layout.table, key, before)}], True
    names = differing(before, after)
    if _moved(layout, change):
        return [
            {"Delete": requests.delete(layout.table, key, before, names)},
            {"Put": requests.put_new(layout.table, after, layout.schema.names[0])},
        ], True
    held = _held(change, names)
    if len(names) + len(held) > ATTRIBUTES_MAX:
        return [{"Put": requests.put_over(layout.table, after, before, names)}], True
    return [{"Update": requests.update(layout.table, key, before, after, names, held)}], False


async def _refusal(
    studio: Studio,
    layout: Layout,
    change: Change,
    fault: TransactionCanceledFault,
    failed: list[int],
    own: int,
    claims: list[Guard],
) -> Result:
    """Return what stood in a transaction's way; refuse a value that another item has."""
    if failed[0] >= own:
        guard, found = claims[failed[0] - own], _brought(fault.reasons[failed[0]].item)
        owner = (found or {}).get(OWNER_ATTRIBUTE, {}).get("M", {})
        whose = ", ".join(f"{name} {text_of(value)}" for name, value in owner.items()) or "another item"
        raise Refused(
            "unique-taken",
            f"{guard.field} is taken",
            f"No two items may share this {guard.field}, and the item at {whose} has it.",
            "Give another value, or change the other item first. Nothing was written.",
            status=409,
        )
    if change.before is None or failed[0] == 1:
        return Result("exists", _brought(fault.reasons[failed[0]].item), 0.0)
    return Result("conflict", await read_item(studio, layout, change.before), 0.0)


def _guards(change: Change) -> tuple[list[Guard], list[Guard]]:
    """Return the guards that a change claims and those that it releases."""
    if change.table is None:
        return [], []
    was = change.was or change.entity
    old = {} if was is None else guards_of(change.table, was, change.before)
    new = {} if change.entity is None else guards_of(change.table, change.entity, change.after)
    claims = [g for text, g in new.items() if text not in old or old[text].item != g.item]
    return claims, [guard for text, guard in old.items() if text not in new]


def _brought(raw: Any) -> Item | None:
    if raw is None or isinstance(raw, dict):
        return raw
    return decode_item(bytes(raw))


def units_in(answer: Mapping[str, Any]) -> float:
    """Return the capacity units that an answer tells."""
    told = answer.get("ConsumedCapacity")
    if told is None:
        return 0.0
    return sum(float(each["CapacityUnits"]) for each in (told if isinstance(told, list) else [told]))
