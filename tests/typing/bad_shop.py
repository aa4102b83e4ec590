"""Mistakes with the rest of the form, one a line, and with the asynchronous shell; nothing here is ever run."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from uuid import UUID

from tavola import AsyncConnection, Change, Condition, Connection
from tests.typing.ok_shop import Follow, Order, OrderLine, Sku, Stage, Stamped, change, fetch, first, recent

ONE = UUID(int=1)


def types(db: Connection) -> None:
    """Enums, decimals, sets, lists and documents keep their types in conditions and changes."""
    Order.stage.set("paid")  # error: a text for an enum
    Order.ByStage(stage="paid")  # error: a text for an enum
    Order.total.set(1.5)  # error: a float for a decimal
    Order.total.add("1")  # error: a text for a decimal
    Order.tags.add({1})  # error: a number into a set of texts
    Order.tags.discard([1])  # error: a list for a set
    Order.tags.contains(1)  # error: a number in a set of texts
    Order.lines.append("a")  # error: a plain text for a Sku
    Order.counts["seen"].set("1")  # error: a text into a dict of numbers
    Order.lines["first"]  # error: a name into a list
    Order.revision.set("1")  # error: an inherited field, wrong type
    Order.created_at.eq("2026")  # error: an inherited field, wrong type
    Order.seal.begins_with(1)  # error: a number for a prefix


def steps(db: Connection) -> None:
    """A part cannot be skipped where the query declares steps."""
    customer = Order.ByCustomer(customer="c1")
    customer.placed_on.gte(date(2026, 1, 1))  # error: skips the stage
    customer.stage.eq(Stage.PAID).order_id.eq(ONE)  # error: skips the date
    customer.stage.eq(Stage.PAID).stage.eq(Stage.PAID)  # error: asks a part twice
    customer.stage.gt(Stage.PAID).placed_on  # error: a part after a range
    customer.stage.eq("paid")  # error: a text for an enum
    Order.Native(customer="c1", currency="GBP")  # error: wrong literal
    Order.Native(customer="c1", currency="EUR").placed_on.eq(date(2026, 1, 1)).total.gt("5")  # error: text


def helpers(db: Connection) -> None:
    """Functions over any entity keep it apart from others."""
    key = Order.Key(order_id=ONE)
    first(db, Order.ByCustomer(customer="c1"), Follow.followed == "bob")  # error: another entity's condition
    change(db, key, Follow.since.set(date(2026, 1, 1)))  # error: another entity's change
    fetch(db, key, lambda: "order")  # error: another type
    wrong: Condition[Follow] = recent  # error: a function is no condition
    stamped: Condition[Stamped] = Order.total > Decimal(1)  # error: a field that the base does not have
    changes: list[Change[Follow]] = [Order.note.set("x")]  # error: another entity's change
    line: OrderLine = db.query(Order.InStage(stage=Stage.PAID)).items[0]  # error: the whole, not the view
    Sku(1)  # error: a number for a Sku
    del wrong, stamped, changes, line


async def asynchronous(db: AsyncConnection) -> None:
    """The asynchronous shell knows the same, and that answers are awaited."""
    key = Order.Key(order_id=ONE)
    db.get(key).total  # error: not awaited
    (await db.get(key)).total  # error: None is not handled
    await db.update(key, Follow.since.remove())  # error: another entity's change
    await db.put(key)  # error: a key is no entity
    for _ in await db.query(Order.InStage(stage=Stage.PAID)):  # error: async for
        pass
    async for line in await db.query(Order.ByStage(stage=Stage.PAID)):
        line.customer  # error: not in the index's view
