"""When an item is over: one rule for readers, for conditions and for the engine that deletes."""

from __future__ import annotations

import pytest

from tavola import Attr, Entity, ManualClock, PrimaryKey, Table, connect
from tavola.client.requests import (
    absent_node,
    exists_node,
    expired_node,
    ignoring_expired,
    is_expired,
    not_expired_node,
)
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import ConditionNode
from tavola.limits import TTL_PAST_S_MAX
from tavola.model import shape_of
from tavola.values import Item

NOW_S = 2_000_000_000.75
NOW = int(NOW_S)

STORED: list[tuple[str, bool]] = [
    (str(NOW + 1), False),
    (str(NOW), True),
    (f"{NOW}.9", True),  # whole seconds count
    (str(NOW - 1), True),
    (str(NOW - TTL_PAST_S_MAX + 1), True),
    (str(NOW - TTL_PAST_S_MAX), False),  # five years ago is no time
    ("0", False),
    ("-5", False),
    (str(NOW * 1000), False),  # milliseconds
]


class Sessions(Table, ttl="expires_at"):
    """A table whose items expire."""


class Session(Entity, table=Sessions):
    """An item that does."""

    session_id: Attr[str]
    expires_at: Attr[int]

    class Key(PrimaryKey["Session"], pk="SESSION#{session_id}", sk="SESSION"):
        session_id: str


def _item(name: str, ttl: object) -> Item:
    return {"pk": {"S": name}, "sk": {"S": "SESSION"}, "expires_at": ttl}  # type: ignore[dict-item]


def _holds(node: ConditionNode, item: Item) -> bool:
    return bool(compile_decider(node)(item, {}))


@pytest.mark.parametrize(("stored", "over"), STORED)
def test_readers_and_conditions_agree(stored: str, over: bool) -> None:
    """An item is expired for a reader exactly if it is expired for each condition."""
    shape, item = shape_of(Session), _item("a", {"N": stored})

    assert is_expired(Sessions, item, NOW_S) is over
    assert _holds(expired_node("expires_at", NOW_S), item) is over
    assert _holds(not_expired_node("expires_at", NOW_S), item) is not over
    assert _holds(exists_node(shape, NOW_S), item) is not over
    assert _holds(absent_node(shape, NOW_S), item) is over
    condition = ignoring_expired(shape, exists_node(shape, NOW_S), NOW_S)
    assert condition is not None
    assert _holds(condition, item) is not over


def test_the_engine_deletes_the_items_that_readers_hide() -> None:
    """Over all kinds of times, the sweep deletes exactly the items that readers hide."""
    clock = ManualClock(NOW_S)
    with connect("memory:", clock=clock, ttl_interval_s=1) as db:
        db.create_tables(Sessions)
        for number, (stored, _) in enumerate(STORED):
            db.call("PutItem", {"TableName": "Sessions", "Item": _item(str(number), {"N": stored})})
        clock.advance(1)
        for _ in range(20):  # a sweep continues from call to call
            db.call("ListTables")
        left = {item["pk"]["S"] for item in db.call("Scan", {"TableName": "Sessions"})["Items"]}

    seen = {
        str(number)
        for number, (stored, _) in enumerate(STORED)
        if not is_expired(Sessions, _item(str(number), {"N": stored}), clock.now())
    }
    assert left == seen
    assert 3 < len(seen) < len(STORED)


@pytest.mark.parametrize("stored", [{"S": str(NOW)}, {"NULL": True}, {"L": []}])
def test_only_a_number_is_a_time(stored: object) -> None:
    """An attribute of another type never expires an item, for any check."""
    item = _item("a", stored)

    assert not is_expired(Sessions, item, NOW_S)
    assert _holds(exists_node(shape_of(Session), NOW_S), item)
    assert not _holds(absent_node(shape_of(Session), NOW_S), item)
