"""Seller orders: what a seller sold in a region, by day and category.

`SellerOrderIndex` answers for a quarter, a day, and a category of a day. Not for a category over all days: its order begins with the day, and a
part cannot be skipped. A shop that asks that often declares an index whose order begins with the category.
"""

from __future__ import annotations

from datetime import date, timedelta
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
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked, entities, got, refused

SELLER = "seller-04"


class Sales(Table, name="gallery-sales", pk="PK", sk="SK"):
    """Orders of all sellers."""

    by_seller = Gsi(
        pk=("sellerId", "region"), sk=("orderDate", "category", "orderId"), name="SellerOrderIndex"
    )


class SellerOrder(
    Entity, table=Sales, writes=(WritePattern("An order", "put", per_second=30, item_bytes=280),)
):
    """An order, as its seller sees it."""

    order_id: Attr[str] = attr(name="orderId")
    seller_id: Attr[str] = attr(name="sellerId")
    region: Attr[str]
    order_date: Attr[date] = attr(name="orderDate")
    category: Attr[str]
    total: Attr[Decimal]

    class Key(
        PrimaryKey["SellerOrder"],
        pk="ORDER#{order_id}",
        sk="METADATA",
        access=AccessPattern("An order by its id", per_second=60, items=1, item_bytes=280),
    ):
        order_id: str

    class OfSeller(
        Query["SellerOrder"],
        on=Sales.by_seller,
        access=AccessPattern(
            "A seller's orders in a region, by day and category", per_second=15, items=40, item_bytes=280
        ),
    ):
        seller_id: str
        region: str
        order_date: Sort[date] = sort()
        category: Sort[str] = sort()
        order_id: Sort[str] = sort()


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


async def by_day(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask for a quarter, a day and a category of it."""
    sold = SellerOrder.OfSeller(seller_id=SELLER, region="eu")
    day = date(2026, 3, 22)
    return (
        await asked(db, "The second quarter", sold.order_date.between(date(2026, 4, 1), date(2026, 6, 30))),
        await asked(db, "22 March", sold.order_date.eq(day)),
        await asked(db, "22 March, toys", sold.order_date.eq(day).category.eq("toys")),
        await got(db, "One of them, by its id", SellerOrder.Key(order_id="order-105")),
        refused("Toys of all days", lambda: sold.category.eq("toys")),
    )


async def turnover(db: AsyncConnection) -> tuple[Told, ...]:
    """Add up a quarter, exactly."""
    first = SellerOrder.OfSeller(seller_id=SELLER, region="us").order_date.lt(date(2026, 4, 1))
    sold = await asked(db, "The first quarter in the US", first)
    total = sum((order.total for order in entities(sold, SellerOrder)), Decimal(0))
    return (sold, Told("Its turnover", (total,)))


SAMPLE = Sample(
    name="seller-orders",
    title="Seller orders",
    shows="Orders by day and category with one index, and what that order cannot answer.",
    source="Patterns and best practices: common patterns of multi-attribute keys, e-commerce",
    tables=(Sales,),
    entities=orders,
    demonstrations=(
        Demonstration("by-day", "Quarter, day, category", by_day),
        Demonstration("turnover", "Turnover of a quarter", turnover),
    ),
)
