"""Batches: many gets, puts and deletes, split as DynamoDB wants them, with what was left undone asked again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tavola.client.context import Context
from tavola.client.steps import Call, Steps, Wait
from tavola.limits import BATCH_GET_KEYS_MAX
from tavola.model import Table
from tavola.values import Item


def get_items(
    context: Context, table: type[Table], keys: Sequence[Item], consistent: bool
) -> Steps[list[Item | None]]:
    """Return the items under keys of one table, in the order of the keys; None where there is none."""
    name = context.name_of(table)
    found: dict[str, Item] = {}
    wanted = list({_told(key): key for key in keys}.values())
    for start in range(0, len(wanted), BATCH_GET_KEYS_MAX):
        asked: dict[str, Any] = {"Keys": wanted[start : start + BATCH_GET_KEYS_MAX]}
        if consistent:
            asked["ConsistentRead"] = True
        attempt = 0
        while asked:
            answer = yield Call("BatchGetItem", {"RequestItems": {name: asked}})
            for item in answer["Responses"].get(name, ()):
                found[_told({attribute: item[attribute] for attribute in keys[0]})] = item
            asked = answer.get("UnprocessedKeys", {}).get(name, {})
            if asked:
                attempt += 1
                yield Wait(context.patience.pause_s(min(attempt, 6)))
    return [found.get(_told(key)) for key in keys]


def _told(key: Item) -> str:
    return repr(sorted((name, *next(iter(value.items()))) for name, value in key.items()))
