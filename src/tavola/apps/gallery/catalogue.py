"""Catalogue: users, orders and products on one index, each in its own way; and featured products on a sparse one.

`GSI1` means something else for each entity: users by email, orders by status, products by category. The words in the keys keep them apart, and
the model says which is which: `tavola design tavola.apps.gallery.catalogue` prints it. The statuses of orders are few, so they are spread over shards.

A product is in `GSI2` while it is featured. That is a value of the product, so an update that changes it moves the product in or out in the
same write; nobody has to remember the index. It is a second index because a product is in the first one already, under its category.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

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
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked

State = Literal["pending", "shipped", "delivered"]


class Catalogue(Table, name="gallery-catalogue", pk="PK", sk="SK"):
    """A shop: who buys, what was ordered, what there is."""

    gsi1 = Gsi(pk="GSI1PK", sk="GSI1SK", name="GSI1")
    gsi2 = Gsi(pk="GSI2PK", sk="GSI2SK", name="GSI2")


class Buyer(Entity, table=Catalogue):
    """A user of the shop."""

    user_id: Attr[str]
    email: Attr[str]

    class Key(PrimaryKey["Buyer"], pk="USER#{user_id}", sk="USER#{user_id}"):
        user_id: str

    class ByEmail(
        Query["Buyer"],
        on=Catalogue.gsi1,
        pk="EMAIL#{email}",
        sk="USER#{user_id}",
        access=AccessPattern("A user by email", per_second=15, items=1, item_bytes=220),
    ):
        email: str
        user_id: Sort[str] = sort()


class Purchase(
    Entity,
    table=Catalogue,
    writes=(WritePattern("An order's status", "update", ("status",), per_second=20, item_bytes=240),),
):
    """An order."""

    order_id: Attr[str]
    status: Attr[State] = attr(default="pending")
    placed_on: Attr[date]

    class Key(PrimaryKey["Purchase"], pk="ORDER#{order_id}", sk="ORDER#{order_id}"):
        order_id: str

    # tavola: ignore[mutable-index-key] an order changes its status a few times, and is asked for by it
    class ByStatus(
        Query["Purchase"],
        on=Catalogue.gsi1,
        pk="STATUS#{status}",
        sk="ORDER#{placed_on}#{order_id}",
        shards=4,
        access=AccessPattern("Orders of a status by day", per_second=5, items=25, item_bytes=240),
    ):
        status: State
        placed_on: Sort[date] = sort()
        order_id: Sort[str] = sort()


class Product(
    Entity,
    table=Catalogue,
    writes=(WritePattern("Featured or not", "update", ("featured",), per_second=1, item_bytes=260),),
):
    """Something for sale."""

    product_id: Attr[str]
    category: Attr[str]
    price: Attr[Decimal]
    featured: Attr[bool] = attr(default=False)

    class Key(PrimaryKey["Product"], pk="PRODUCT#{product_id}", sk="PRODUCT#{product_id}"):
        product_id: str

    class ByCategory(
        Query["Product"],
        on=Catalogue.gsi1,
        pk="CATEGORY#{category}",
        sk="PRODUCT#{product_id}",
        access=AccessPattern("Products of a category", per_second=40, items=30, item_bytes=260),
    ):
        category: str
        product_id: Sort[str] = sort()

    class Featured(
        Query["Product"],
        on=Catalogue.gsi2,
        pk="FEATURED",
        sk="PRODUCT#{product_id}",
        members={"featured": True},
        access=AccessPattern("Featured products", per_second=80, items=4, item_bytes=260),
    ):
        product_id: Sort[str] = sort()


def goods() -> tuple[Entity, ...]:
    """Return three users, nine orders and twelve products, of which three are featured."""
    states: tuple[State, ...] = ("pending", "shipped", "delivered")
    categories = ("electronics", "garden", "toys")
    buyers = [Buyer(user_id=f"user-{n:02}", email=f"user-{n:02}@example.com") for n in (1, 2, 3)]
    purchases = [
        Purchase(order_id=f"order-{450 + n}", status=states[n % 3], placed_on=date(2026, 1, 10 + n))
        for n in range(9)
    ]
    products = [
        Product(
            product_id=f"product-{100 + n}",
            category=categories[n % 3],
            price=Decimal(999 + 500 * n) / 100,
            featured=n % 4 == 0,
        )
        for n in range(12)
    ]
    return (*buyers, *purchases, *products)


async def overloading(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask one index for three kinds of things."""
    return (
        await asked(db, "A user by email", Buyer.ByEmail(email="user-02@example.com")),
        await asked(
            db, "Pending orders, newest first", Purchase.ByStatus(status="pending"), newest_first=True
        ),
        await asked(db, "Products of a category", Product.ByCategory(category="electronics")),
    )


async def featured(db: AsyncConnection) -> tuple[Told, ...]:
    """Feature a product, and stop featuring it; the index follows in the same write."""
    key = Product.Key(product_id="product-101")
    await db.update(key, Product.featured.set(False))
    before = await asked(db, "Featured before", Product.Featured())
    try:
        await db.update(key, Product.featured.set(True))
        during = await asked(db, "With product-101", Product.Featured())
    finally:
        await db.update(key, Product.featured.set(False))
    return before, during, await asked(db, "Without it", Product.Featured())


SAMPLE = Sample(
    name="catalogue",
    title="Catalogue",
    shows="One index that three entities use in their own ways, and a sparse one that products enter and leave.",
    source="Common patterns: GSI overloading, and sparse indexes",
    tables=(Catalogue,),
    entities=goods,
    demonstrations=(
        Demonstration("overloading", "One index, three patterns", overloading),
        Demonstration("featured", "In and out of a sparse index", featured, writes=True),
    ),
)
