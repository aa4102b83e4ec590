"""Customer orders: a composite sort key, asked at each of its levels.

Day, status and order are the levels of an index, so that all orders, those of a day, and those of a day and a status are one query each. The status
changes, so it is in an index and not in the table's own key: an order keeps its key, and moves within the index in the same write.

Parts are joined so that they can be told apart again: a `#` in a value is escaped, and "on#hold" with order "1" never meets "on" with order
"hold#1". Totals are decimals and stay exact.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    sort,
    to_item,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked, entities, got, refused

CUSTOMER = "cust-123"


class Shop(Table, name="gallery-shop", pk="PK", sk="SK"):
    """Orders of all customers."""

    by_day = Gsi(pk="GSI1PK", sk="GSI1SK")


class CustomerOrder(
    Entity,
    table=Shop,
    writes=(
        WritePattern("An order", "put", per_second=10, item_bytes=260),
        WritePattern("An order's status", "update", ("status",), per_second=30, item_bytes=260),
    ),
):
    """An order, as its customer sees it."""

    customer_id: Attr[str]
    order_id: Attr[str]
    placed_on: Attr[date]
    status: Attr[str] = attr(default="pending")
    total: Attr[Decimal]

    class Key(
        PrimaryKey["CustomerOrder"],
        pk="CUSTOMER#{customer_id}",
        sk="ORDER#{order_id}",
        access=AccessPattern("An order of a customer", per_second=50, items=1, item_bytes=260),
    ):
        customer_id: str
        order_id: str

    # tavola: ignore[mutable-index-key] an order changes its status a few times, and is asked for by it
    class ByDay(
        Query["CustomerOrder"],
        on=Shop.by_day,
        pk="CUSTOMER#{customer_id}",
        sk="ORDER#{placed_on}#{status}#{order_id}",
        access=AccessPattern(
            "A customer's orders: all, of a day, of a day and a status",
            per_second=20,
            items=10,
            item_bytes=260,
        ),
    ):
        customer_id: str
        placed_on: Sort[date] = sort()
        status: Sort[str] = sort()
        order_id: Sort[str] = sort()


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


async def levels(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask at each level of the sort key, and for one that cannot be skipped."""
    mine = CustomerOrder.ByDay(customer_id=CUSTOMER)
    day = mine.placed_on.eq(date(2026, 1, 15))
    return (
        await asked(db, "All orders", mine),
        await asked(db, "Those of 15 January", day),
        await asked(db, "Of these, the shipped ones", day.status.eq("shipped")),
        await asked(db, "Of January", mine.placed_on.between(date(2026, 1, 1), date(2026, 1, 31))),
        await got(db, "One order", CustomerOrder.Key(customer_id=CUSTOMER, order_id="order-456")),
        refused("The shipped ones of all days", lambda: mine.status.eq("shipped")),
    )


async def delimiters(db: AsyncConnection) -> tuple[Told, ...]:
    """Store two orders whose parts are the same text when joined without care; then take them away."""
    day = date(2026, 3, 1)
    pair = tuple(
        CustomerOrder(customer_id="cust-900", order_id=order, placed_on=day, status=status, total=Decimal(1))
        for status, order in (("on#hold", "1"), ("on", "hold#1"))
    )
    await db.put_many(pair)
    mine = CustomerOrder.ByDay(customer_id="cust-900").placed_on.eq(day)
    try:
        return (
            Told("The sort keys in the index", tuple(to_item(each)["GSI1SK"]["S"] for each in pair)),
            await asked(db, "Both are there", mine),
            await asked(db, "Those of status on", mine.status.eq("on")),
            await asked(db, "Those of status on#hold", mine.status.eq("on#hold")),
        )
    finally:
        await db.delete_many(pair)


async def a_status_changes(db: AsyncConnection) -> tuple[Told, ...]:
    """Ship an order, and see it leave one level and enter another; then take it back."""
    day = CustomerOrder.ByDay(customer_id=CUSTOMER).placed_on.eq(date(2026, 1, 15))
    key = CustomerOrder.Key(customer_id=CUSTOMER, order_id="order-789")
    await db.update(key, CustomerOrder.status.set("shipped"))
    try:
        return (
            await asked(db, "Pending after", day.status.eq("pending")),
            await asked(db, "Shipped after", day.status.eq("shipped")),
        )
    finally:
        await db.update(key, CustomerOrder.status.set("pending"))


async def sums(db: AsyncConnection) -> tuple[Told, ...]:
    """Add up totals: a tenth and two tenths are three tenths, and 37 digits are 37 digits."""
    mine = CustomerOrder.ByDay(customer_id=CUSTOMER)
    small = await asked(
        db, "Shipped on 15 January", mine.placed_on.eq(date(2026, 1, 15)).status.eq("shipped")
    )
    large = await asked(db, "Of February", mine.placed_on.gte(date(2026, 2, 1)))
    total = sum((order.total for order in entities(small, CustomerOrder)), Decimal(0))
    return (
        small,
        Told("Their sum", (total,)),
        large,
        Told("Its total, all 37 digits", tuple(order.total for order in entities(large, CustomerOrder))),
    )


SAMPLE = Sample(
    name="customer-orders",
    title="Customer orders",
    shows="A composite sort key asked at each level, delimiters that never merge, decimals that stay exact.",
    source="Common patterns: composite sort key",
    tables=(Shop,),
    entities=orders,
    demonstrations=(
        Demonstration("levels", "Each level of the sort key", levels),
        Demonstration("delimiters", "A delimiter in a value", delimiters, writes=True),
        Demonstration("status", "A status changes", a_status_changes, writes=True),
        Demonstration("sums", "Exact sums", sums),
    ),
)
