"""The items a bulk edit or export covers, read a slice at a time.

A selection is a list of keys, a query, or a whole table. A slice is one request and holds the cursor of the next, so no table
is held in memory and the caller can stop between slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tavola.client.connection import AsyncConnection
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import ConditionNode
from tavola.limits import BATCH_GET_KEYS_MAX
from tavola.studio.edits.requests import call_with_retries
from tavola.studio.edits.validation import validate_item
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.conditions import check_condition, combine_conditions
from tavola.studio.queries.planner import ItemQuery, plan_query
from tavola.studio.studio import Studio
from tavola.studio.table_layouts import TableLayout, parse_layout
from tavola.studio.types import Item as GivenItem
from tavola.values import Item

_TRIES = 8  # of a BatchGetItem with unprocessed keys
_FIRST_DELAY_S = 0.05


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """Items of a table: by keys, by a query, or all."""

    table: str
    keys: tuple[GivenItem, ...] | None = None
    question: ItemQuery | None = None
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class SliceCursor:
    """Where the next slice starts: at a position in the list of keys, or after a key of the table or index."""

    place: int = 0
    after: GivenItem | None = None


@dataclass(frozen=True, slots=True)
class ItemSlice:
    """A slice of the items, with the items read for it, the units consumed, and the next cursor."""

    items: tuple[Item, ...]
    missing: tuple[GivenItem, ...]  # keys that no item has
    scanned: int
    units: float
    next: SliceCursor | None


def query_attributes(selection: ItemSelection) -> frozenset[str]:
    """Return the attributes in a selection's conditions; if one changes, the item may no longer match."""
    conditions = () if selection.question is None else selection.question.conditions
    return frozenset(str(condition.steps[0]) for condition in conditions)


async def read_slice(
    studio: Studio, layout: TableLayout, selection: ItemSelection, cursor: SliceCursor | None, limit: int
) -> ItemSlice:
    """Return the next whole items of a selection, about `limit` at most."""
    if selection.keys is not None:
        return await _read_keys(studio, layout, selection, cursor or SliceCursor(), limit)
    question = selection.question or ItemQuery(selection.table, as_of=selection.as_of)
    if question.table != selection.table:
        raise RequestRefused(
            "selection-malformed",
            "The tables do not match",
            f"The selection is for {selection.table}, but its query is for {question.table}.",
            "Use the same table in both.",
        )
    described = (await call_with_retries(studio.db, "DescribeTable", {"TableName": selection.table}))["Table"]
    planned = plan_query(parse_layout(described), question)
    request = {**planned.request, "ReturnConsumedCapacity": "TOTAL"}
    if planned.route.operation != "GetItem":
        request["Limit"] = limit
        if cursor is not None and cursor.after is not None:
            request["ExclusiveStartKey"] = cursor.after
    db = await studio.connection_at(question.as_of or selection.as_of)
    answer = await call_with_retries(db, planned.route.operation, request)
    items: list[Item] = [answer["Item"]] if "Item" in answer else answer.get("Items", [])
    units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
    items = _matching(planned.studio_test, items)
    if planned.route.target.projection != "ALL":
        keys = [layout.key_of(item) for item in items]
        items, fetch_units = await get_items(db, layout, keys, consistent=db is studio.db)
        # The index may lag behind the table, so the conditions are checked again on the whole items.
        items = _matching(
            combine_conditions([check_condition(condition) for condition in question.conditions]), items
        )
        units += fetch_units
    last = answer.get("LastEvaluatedKey")
    next_cursor = None if last is None else SliceCursor(after=last)
    return ItemSlice(tuple(items), (), answer.get("ScannedCount", len(items)), units, next_cursor)


def _matching(node: ConditionNode | None, items: list[Item]) -> list[Item]:
    """Return the items that match a condition."""
    if node is None:
        return items
    test = compile_decider(node)
    return [item for item in items if test(item, {})]


async def _read_keys(
    studio: Studio, layout: TableLayout, selection: ItemSelection, cursor: SliceCursor, limit: int
) -> ItemSlice:
    keys = selection.keys or ()
    place = cursor.place + max(1, limit)
    # Canonical numbers, so that 1.0 finds the key 1.
    requested = [validate_item(layout.key_of(key)).item for key in keys[cursor.place : place]]
    db = await studio.connection_at(selection.as_of)
    items, units = await get_items(db, layout, requested, consistent=not selection.as_of)
    present = {layout.identity_of(item) for item in items}
    missing = tuple(key for key in requested if layout.identity_of(key) not in present)
    next_cursor = SliceCursor(place) if place < len(keys) else None
    return ItemSlice(tuple(items), missing, len(requested), units, next_cursor)


async def get_items(
    db: AsyncConnection, layout: TableLayout, keys: Sequence[Item], *, consistent: bool, bare: bool = False
) -> tuple[list[Item], float]:
    """Return the items of keys in the order of the keys, without duplicates, and the units; `bare`: only their keys."""
    options: dict[str, Any] = {"ConsistentRead": consistent}
    if bare:
        names = {f"#k{position}": name for position, name in enumerate(layout.schema.names)}
        options |= {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
    keys_by_identity = {layout.identity_of(key): key for key in keys}
    items_by_identity: dict[tuple[str, ...], Item] = {}
    units = 0.0
    identities = list(keys_by_identity)
    for start in range(0, len(identities), BATCH_GET_KEYS_MAX):
        pending = [keys_by_identity[identity] for identity in identities[start : start + BATCH_GET_KEYS_MAX]]
        for attempt in range(_TRIES):
            request = {
                "RequestItems": {layout.table: {**options, "Keys": pending}},
                "ReturnConsumedCapacity": "TOTAL",
            }
            answer = await call_with_retries(db, "BatchGetItem", request)
            items: list[Item] = answer["Responses"].get(layout.table, [])
            items_by_identity |= {layout.identity_of(item): item for item in items}
            units += sum(consumed["CapacityUnits"] for consumed in answer.get("ConsumedCapacity", ()))
            pending = answer.get("UnprocessedKeys", {}).get(layout.table, {}).get("Keys", [])
            if not pending:
                break
            await asyncio.sleep(_FIRST_DELAY_S * 2**attempt)
        else:
            raise RequestRefused(
                "throttled",
                "Throttled",
                f"Only {len(items_by_identity):,} of {len(keys_by_identity):,} items of {layout.table} could be read.",
                "Wait a moment and continue; nothing was changed.",
                status=429,
            )
    return [items_by_identity[identity] for identity in identities if identity in items_by_identity], units
