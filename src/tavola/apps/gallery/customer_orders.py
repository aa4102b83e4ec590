"""Customer orders: a composite sort key that can be queried at each level.

Day, status and order are the levels of an index, so all orders, those of a day, and those of a day and a status are one query each. The
status changes, so it is in an index and not in the table's key: an order keeps its key and moves within the index in the same write.

Key parts are joined unambiguously: a `#` in a value is escaped, so "on#hold" with order "1" never collides with "on" and order "hold#1".
Totals are decimals and stay exact.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import tavola as tv
from tavola.apps.gallery.demonstrations import (
    Sample,
    StepResult,
    entities,
    expect_refusal,
    run_get,
    run_query,
)

CUSTOMER = "cust-123"


class Shop(tv.Table, name="gallery-shop", pk="PK", sk="SK"):
    """Orders of all customers."""

    by_day = tv.Gsi(pk="GSI1PK", sk="GSI1SK")


class CustomerOrder(
    tv.Entity,
    table=Shop,
    writes=(
        tv.WritePattern("An order", "put", per_second=10, item_bytes=260),
        tv.WritePattern("An order's status", "update", ("status",), per_second=30, item_bytes=260),
    ),
):
    """A customer's order."""

    customer_id: tv.Attr[str]
    order_id: tv.Attr[str]
    placed_on: tv.Attr[date]
    status: tv.Attr[str] = tv.attr(default="pending")
    total: tv.Attr[Decimal]

    class Key(
        tv.PrimaryKey["CustomerOrder"],
        pk="CUSTOMER#{customer_id}",
        sk="ORDER#{order_id}",
        access=tv.AccessPattern("A customer's order", per_second=50, items=1, item_bytes=260),
    ):
        customer_id: str
        order_id: str

    # tavola: ignore[mutable-index-key] an order changes its status a few times and is queried by it
    class ByDay(
        tv.Query["CustomerOrder"],
        on=Shop.by_day,
        pk="CUSTOMER#{customer_id}",
        sk="ORDER#{placed_on}#{status}#{order_id}",
        access=tv.AccessPattern(
            "A customer's orders: all, on one day, or on one day with one status",
            per_second=20,
            items=10,
            item_bytes=260,
        ),
    ):
        customer_id: str
        placed_on: tv.Sort[date] = tv.sort()
        status: tv.Sort[str] = tv.sort()
        order_id: tv.Sort[str] = tv.sort()


def orders() -> tuple[CustomerOrder, ...]:
    """Return the orders of a customer on three days, and of another customer."""
    rows = (
        ("order-111", date(2026, 1, 10), "delivered", "49.99"),
        ("order-456", date(2026, 1, 15), "shipped", "99.99"),
        ("order-457", date(2026, 1, 15), "shipped", "0.10"),
        ("order-458", date(2026, 1, 15), "shipped", "0.20"),
        ("order-789", date(2026, 1, 15), "pending", "149.99"),
        ("order-800", date(2026, 2, 1), "pending", "12345678901234567890123456789012345.67"),
    )
    mine = [
        CustomerOrder(
            customer_id=CUSTOMER, order_id=order, placed_on=day, status=status, total=Decimal(total)
        )
        for order, day, status, total in rows
    ]
    other = CustomerOrder(
        customer_id="cust-124", order_id="order-900", placed_on=date(2026, 1, 15), total=Decimal("5")
    )
    return (*mine, other)


SAMPLE = Sample(
    "customer-orders",
    "Customer orders",
    summary="A composite sort key queried at each level, escaped delimiters, and exact decimals.",
    source="Common patterns: composite sort key",
    tables=(Shop,),
    entities=orders,
)


@SAMPLE.demonstrate("levels", "Query each level of the sort key")
async def levels(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query each level of the sort key; skipping a level is refused."""
    mine = CustomerOrder.ByDay(customer_id=CUSTOMER)
    day = mine.placed_on.eq(date(2026, 1, 15))
    return (
        await run_query(db, "All orders", mine),
        await run_query(db, "Orders on 15 January", day),
        await run_query(db, "Orders shipped and placed on 15 January", day.status.eq("shipped")),
        await run_query(db, "Orders in January", mine.placed_on.between(date(2026, 1, 1), date(2026, 1, 31))),
        await run_get(db, "One order", CustomerOrder.Key(customer_id=CUSTOMER, order_id="order-456")),
        expect_refusal("Shipped orders on any day", lambda: mine.status.eq("shipped")),
    )


@SAMPLE.demonstrate("delimiters", "Store a delimiter in a value", writes=True)
async def delimiters(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Write two orders whose key parts would collide without escaping, then delete them."""
    day = date(2026, 3, 1)
    pair = tuple(
        CustomerOrder(customer_id="cust-900", order_id=order, placed_on=day, status=status, total=Decimal(1))
        for status, order in (("on#hold", "1"), ("on", "hold#1"))
    )
    await db.put_many(pair)
    mine = CustomerOrder.ByDay(customer_id="cust-900").placed_on.eq(day)
    try:
        return (
            StepResult("Sort keys in the index", tuple(tv.to_item(entity)["GSI1SK"]["S"] for entity in pair)),
            await run_query(db, "Both orders", mine),
            await run_query(db, "Orders with status on", mine.status.eq("on")),
            await run_query(db, "Orders with status on#hold", mine.status.eq("on#hold")),
        )
    finally:
        await db.delete_many(pair)


@SAMPLE.demonstrate("status", "Change a status", writes=True)
async def change_status(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Ship an order: it moves from one level of the index to another. Then undo it."""
    day = CustomerOrder.ByDay(customer_id=CUSTOMER).placed_on.eq(date(2026, 1, 15))
    key = CustomerOrder.Key(customer_id=CUSTOMER, order_id="order-789")
    await db.update(key, CustomerOrder.status.set("shipped"))
    try:
        return (
            await run_query(db, "Pending after", day.status.eq("pending")),
            await run_query(db, "Shipped after", day.status.eq("shipped")),
        )
    finally:
        await db.update(key, CustomerOrder.status.set("pending"))


@SAMPLE.demonstrate("sums", "Add up exact decimals")
async def sums(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Add up totals: 0.1 + 0.2 is exactly 0.3, and 37 digits stay 37 digits."""
    mine = CustomerOrder.ByDay(customer_id=CUSTOMER)
    small = await run_query(
        db, "Shipped on 15 January", mine.placed_on.eq(date(2026, 1, 15)).status.eq("shipped")
    )
    large = await run_query(db, "Orders in February", mine.placed_on.gte(date(2026, 2, 1)))
    total = sum((order.total for order in entities(small, CustomerOrder)), Decimal(0))
    return (
        small,
        StepResult("Their total", (total,)),
        large,
        StepResult(
            "Its total with all 37 digits", tuple(order.total for order in entities(large, CustomerOrder))
        ),
    )
