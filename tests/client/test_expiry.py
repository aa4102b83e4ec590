"""When an item is over: one rule for readers, for conditions and for the engine that deletes."""

from __future__ import annotations

import pytest

from tavola import Attr, Entity, ManualClock, PrimaryKey, Table, connect
from tavola.client.expiry import absent, alive, as_seen, ended, expired, there
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


class Rooms(Table, ttl="expires_at"):
    """A table whose items expire."""


class Session(Entity, table=Rooms):
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
    """What a reader takes for expired is what each condition takes for it."""
    shape, item = shape_of(Session), _item("a", {"N": stored})

    assert expired(Rooms, item, NOW_S) is over
    assert _holds(ended("expires_at", NOW_S), item) is over
    assert _holds(alive("expires_at", NOW_S), item) is not over
    assert _holds(there(shape, NOW_S), item) is not over
    assert _holds(absent(shape, NOW_S), item) is over
    wanted = as_seen(shape, there(shape, NOW_S), NOW_S)
    assert wanted is not None
    assert _holds(wanted, item) is not over


def test_the_engine_deletes_what_readers_hide() -> None:
    """Among all kinds of times, the sweep takes just those that a reader no longer sees."""
    clock = ManualClock(NOW_S)
    with connect("memory:", clock=clock, ttl_interval_s=1) as db:
        db.create_tables(Rooms)
        for number, (stored, _) in enumerate(STORED):
            db.call("PutItem", {"TableName": "Rooms", "Item": _item(str(number), {"N": stored})})
        clock.advance(1)
        for _ in range(20):  # a sweep goes on from call to call
            db.call("ListTables")
        left = {item["pk"]["S"] for item in db.call("Scan", {"TableName": "Rooms"})["Items"]}

    seen = {
        str(number)
        for number, (stored, _) in enumerate(STORED)
        if not expired(Rooms, _item(str(number), {"N": stored}), clock.now())
    }
    assert left == seen
    assert 3 < len(seen) < len(STORED)


@pytest.mark.parametrize("stored", [{"S": str(NOW)}, {"NULL": True}, {"L": []}])
def test_only_a_number_is_a_time(stored: object) -> None:
    """An attribute of another type lets nothing expire, in whichever way it is asked."""
    item = _item("a", stored)

    assert not expired(Rooms, item, NOW_S)
    assert _holds(there(shape_of(Session), NOW_S), item)
    assert not _holds(absent(shape_of(Session), NOW_S), item)
