"""Seller orders: orders of a seller in a region, by day and category.

`SellerOrderIndex` can be queried for a quarter, a day, and a category of a day, but not for a category over all days: its sort key
begins with the day, and a part cannot be skipped. A shop that needs this declares an index that begins with the category.
"""

from __future__ import annotations

from datetime import date, timedelta
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

SELLER = "seller-04"


class Sales(tv.Table, name="gallery-sales", pk="PK", sk="SK"):
    """Orders of all sellers."""

    by_seller = tv.Gsi(
        pk=("sellerId", "region"), sk=("orderDate", "category", "orderId"), name="SellerOrderIndex"
    )


class SellerOrder(
    tv.Entity, table=Sales, writes=(tv.WritePattern("An order", "put", per_second=30, item_bytes=280),)
):
    """An order of a seller."""

    order_id: tv.Attr[str] = tv.attr(name="orderId")
    seller_id: tv.Attr[str] = tv.attr(name="sellerId")
    region: tv.Attr[str]
    order_date: tv.Attr[date] = tv.attr(name="orderDate")
    category: tv.Attr[str]
    total: tv.Attr[Decimal]

    class Key(
        tv.PrimaryKey["SellerOrder"],
        pk="ORDER#{order_id}",
        sk="METADATA",
        access=tv.AccessPattern("An order by its id", per_second=60, items=1, item_bytes=280),
    ):
        order_id: str

    class OfSeller(
        tv.Query["SellerOrder"],
        on=Sales.by_seller,
        access=tv.AccessPattern(
            "A seller's orders in a region, by day and category", per_second=15, items=40, item_bytes=280
        ),
    ):
        seller_id: str
        region: str
        order_date: tv.Sort[date] = tv.sort()
        category: tv.Sort[str] = tv.sort()
        order_id: tv.Sort[str] = tv.sort()


def orders() -> tuple[SellerOrder, ...]:
    """Return orders of some days in two quarters, in two regions."""
    categories = ("books", "garden", "toys")
    return tuple(
        SellerOrder(
            order_id=f"order-{100 + number}",
            seller_id=SELLER,
            region="eu" if number % 3 else "us",
            order_date=date(2026, 3, 20) + timedelta(days=number // 2),
            category=categories[number % 3],
            total=Decimal(1999 + 350 * number) / 100,
        )
        for number in range(36)
    )


SAMPLE = Sample(
    "seller-orders",
    "Seller orders",
    summary="Orders by day and category with one index, and a query that it cannot serve.",
    source="Patterns and best practices: common patterns of multi-attribute keys, e-commerce",
    tables=(Sales,),
    entities=orders,
)


@SAMPLE.demonstrate("by-day", "Query by quarter, day and category")
async def by_day(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query a quarter, a day, and a category of that day."""
    sold = SellerOrder.OfSeller(seller_id=SELLER, region="eu")
    day = date(2026, 3, 22)
    return (
        await run_query(db, "Second quarter", sold.order_date.between(date(2026, 4, 1), date(2026, 6, 30))),
        await run_query(db, "22 March", sold.order_date.eq(day)),
        await run_query(db, "22 March, toys", sold.order_date.eq(day).category.eq("toys")),
        await run_get(db, "One order by its ID", SellerOrder.Key(order_id="order-105")),
        expect_refusal("Toys on all days", lambda: sold.category.eq("toys")),
    )


@SAMPLE.demonstrate("turnover", "Add up a quarter")
async def turnover(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Add up the orders of a quarter."""
    first = SellerOrder.OfSeller(seller_id=SELLER, region="us").order_date.lt(date(2026, 4, 1))
    sold = await run_query(db, "First quarter in the US", first)
    total = sum((order.total for order in entities(sold, SellerOrder)), Decimal(0))
    return (sold, StepResult("Revenue", (total,)))
