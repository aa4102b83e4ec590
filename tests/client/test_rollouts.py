"""Two versions of a program on one table: what each may read and write of the other's items."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tavola import Attr, Connection, Entity, ItemUnreadable, PrimaryKey, Table, attr, upgrade


def program(version: int, unique: bool = False) -> SimpleNamespace:
    """Return the design as a release of the program has it."""

    class Shop(Table, name="rollout", ttl="ends"):
        pass

    class Order(Entity, table=Shop, version=version):
        order_id: Attr[str]
        name: Attr[str | None] = attr(default=None, unique=unique)
        ends: Attr[int | None] = attr(default=None)

        if version > 1:
            cents: Attr[int] = attr(default=0)

            @staticmethod
            @upgrade(1)
            def to_cents(item: dict[str, Any]) -> dict[str, Any]:
                return {**item, "cents": 1}

        if version > 2:
            euros: Attr[int] = attr(default=7)

            @staticmethod
            @upgrade(2)
            def to_euros(item: dict[str, Any]) -> dict[str, Any]:
                return item

        class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER"):
            order_id: str

    return SimpleNamespace(Shop=Shop, Order=Order, key=Order.Key(order_id="o1"))


@pytest.mark.parametrize("unique", [False, True])
def test_a_put_never_overwrites_an_item_of_a_newer_schema(
    opened: Callable[..., Connection], unique: bool
) -> None:
    """A program that writes versions refuses to lose what a newer one added, alone and in a transaction."""
    db: Any = opened()
    new, old = program(3, unique), program(2, unique)
    db.create_tables(new.Shop)
    stored = db.put(new.Order(order_id="o1", euros=3))

    with pytest.raises(
        ItemUnreadable, match="has schema version 3, and this program supports up to 2; update the program"
    ):
        db.put(old.Order(order_id="o1"))
    with pytest.raises(ItemUnreadable), db.transaction() as tx:
        tx.put(old.Order(order_id="o1"))
    with pytest.raises(ItemUnreadable):
        db.put(old.Order(order_id="o1"), when=old.Order.cents == 9)
    assert db.get(new.key) == stored

    db.delete(new.key)
    assert db.put(old.Order(order_id="o1", cents=2)) == db.get(old.key)
    assert db.get(new.key).cents == 2
    db.put(new.Order(order_id="o1"))


def test_a_put_takes_the_place_of_an_older_or_an_expired_item(opened: Callable[..., Connection]) -> None:
    """A put overwrites an older item, and an expired one of any schema."""
    db: Any = opened()
    first, second, third = program(1), program(2), program(3)
    db.create_tables(first.Shop)
    db.put(first.Order(order_id="o1"))
    assert db.put(second.Order(order_id="o1", cents=5)) == db.get(second.key)

    db.put(third.Order(order_id="o1", ends=1_999_999_999))
    assert db.put(second.Order(order_id="o1", cents=6)) == db.get(second.key)


def test_a_program_of_the_first_schema_cannot_detect_newer_items(opened: Callable[..., Connection]) -> None:
    """It cannot read newer items, and its unconditional put overwrites them: deploy readers first."""
    db: Any = opened()
    first, second = program(1), program(2)
    db.create_tables(first.Shop)
    db.put(second.Order(order_id="o1", cents=5))

    with pytest.raises(ItemUnreadable):
        db.get(first.key)
    db.put(first.Order(order_id="o1"))
    assert db.get(second.key).cents == 1
