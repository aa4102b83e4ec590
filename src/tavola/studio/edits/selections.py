"""The items a bulk edit or export covers, read a slice at a time.

A selection is a list of keys, a query, or a whole table. A slice is one request and holds the cursor of the next, so no table
is held in memory and the caller can stop between slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import ConditionNode
from tavola.handles import AsyncConnection
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

_TRIES = 8  # of a batch that comes back unfinished
_FIRST_DELAY_S = 0.05


@dataclass(frozen=True, slots=True)
class ItemSelection:
    """Items of a table: those of these keys, or those that answer a question; all where neither is given."""

    table: str
    keys: tuple[GivenItem, ...] | None = None
    question: ItemQuery | None = None
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class SliceCursor:
    """Where the next slice begins: after so many keys, or after this key of the table or index."""

    place: int = 0
    after: GivenItem | None = None


@dataclass(frozen=True, slots=True)
class ItemSlice:
    """Some of the items, how many were looked at for them, what it took, and where to go on."""

    items: tuple[Item, ...]
    missing: tuple[GivenItem, ...]  # keys under which nothing stands
    scanned: int
    units: float
    next: SliceCursor | None


def query_attributes(selection: ItemSelection) -> frozenset[str]:
    """Return the attributes that a selection's question is about: an item of which one changes may be found no more."""
    conditions = () if selection.question is None else selection.question.conditions
    return frozenset(str(condition.steps[0]) for condition in conditions)


async def read_slice(
    studio: Studio, layout: TableLayout, selection: ItemSelection, cursor: SliceCursor | None, limit: int
) -> ItemSlice:
    """Return the next items of a selection, whole, at most about `limit` of them."""
    if selection.keys is not None:
        return await _read_keys(studio, layout, selection, cursor or SliceCursor(), limit)
    question = selection.question or ItemQuery(selection.table, as_of=selection.as_of)
    if question.table != selection.table:
        raise RequestRefused(
            "selection-malformed",
            "Two tables are named",
            f"The selection is of {selection.table}, and its question of {question.table}.",
            "Name one.",
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
        items, more = await get_items(db, layout, keys, consistent=db is studio.db)
        # The index may be behind the table: what the question would not find there is not in the selection.
        items = _matching(combine_conditions([check_condition(each) for each in question.conditions]), items)
        units += more
    last = answer.get("LastEvaluatedKey")
    following = None if last is None else SliceCursor(after=last)
    return ItemSlice(tuple(items), (), answer.get("ScannedCount", len(items)), units, following)


def _matching(node: ConditionNode | None, items: list[Item]) -> list[Item]:
    """Return the items of which a condition holds."""
    if node is None:
        return items
    test = compile_decider(node)
    return [item for item in items if test(item, {})]


async def _read_keys(
    studio: Studio, layout: TableLayout, selection: ItemSelection, cursor: SliceCursor, limit: int
) -> ItemSlice:
    keys = selection.keys or ()
    place = cursor.place + max(1, limit)
    # In DynamoDB's own spelling, or 1.0 would not be found to be 1.
    requested = [validate_item(layout.key_of(key)).item for key in keys[cursor.place : place]]
    db = await studio.connection_at(selection.as_of)
    items, units = await get_items(db, layout, requested, consistent=not selection.as_of)
    have = {layout.identity_of(item) for item in items}
    missing = tuple(key for key in requested if layout.identity_of(key) not in have)
    following = SliceCursor(place) if place < len(keys) else None
    return ItemSlice(tuple(items), missing, len(requested), units, following)


async def get_items(
    db: AsyncConnection, layout: TableLayout, keys: Sequence[Item], *, consistent: bool, bare: bool = False
) -> tuple[list[Item], float]:
    """Return the items of keys in the keys' order, and the units that it took; each key once; `bare`: their keys alone."""
    wanting: dict[str, Any] = {"ConsistentRead": consistent}
    if bare:
        names = {f"#k{at}": name for at, name in enumerate(layout.schema.names)}
        wanting |= {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
    keys_by_identity = {layout.identity_of(key): key for key in keys}
    items_by_identity: dict[tuple[str, ...], Item] = {}
    units = 0.0
    places = list(keys_by_identity)
    for start in range(0, len(places), BATCH_GET_KEYS_MAX):
        pending = [keys_by_identity[place] for place in places[start : start + BATCH_GET_KEYS_MAX]]
        for attempt in range(_TRIES):
            request = {
                "RequestItems": {layout.table: {**wanting, "Keys": pending}},
                "ReturnConsumedCapacity": "TOTAL",
            }
            answer = await call_with_retries(db, "BatchGetItem", request)
            items: list[Item] = answer["Responses"].get(layout.table, [])
            items_by_identity |= {layout.identity_of(item): item for item in items}
            units += sum(each["CapacityUnits"] for each in answer.get("ConsumedCapacity", ()))
            pending = answer.get("UnprocessedKeys", {}).get(layout.table, {}).get("Keys", [])
            if not pending:
                break
            await asyncio.sleep(_FIRST_DELAY_S * 2**attempt)
        else:
            raise RequestRefused(
                "throttled",
                "Throttled",
                f"{layout.table} gave {len(items_by_identity):,} of {len(keys_by_identity):,} items and then no more.",
                "Wait a moment and go on; nothing was changed.",
                status=429,
            )
    return [items_by_identity[place] for place in places if place in items_by_identity], units
