"""Catalogue: one overloaded index for users, orders and products, and a sparse index for featured products.

`GSI1` serves a different pattern for each entity: users by email, orders by status, products by category. Key prefixes separate them;
`tavola design tavola.apps.gallery.catalogue` prints the model. There are few order statuses, so they are sharded.

A product is in `GSI2` while it is featured. Membership follows from an attribute of the product, so an update adds or removes it in
the same write. It is a second index because each product is already in the first one, under its category.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, run_query

State = Literal["pending", "shipped", "delivered"]


class Catalogue(tv.Table, name="gallery-catalogue", pk="PK", sk="SK"):
    """A shop: users, orders and products."""

    gsi1 = tv.Gsi(pk="GSI1PK", sk="GSI1SK", name="GSI1")
    gsi2 = tv.Gsi(pk="GSI2PK", sk="GSI2SK", name="GSI2")


class Buyer(tv.Entity, table=Catalogue):
    """A user of the shop."""

    user_id: tv.Attr[str]
    email: tv.Attr[str]

    class Key(tv.PrimaryKey["Buyer"], pk="USER#{user_id}", sk="USER#{user_id}"):
        user_id: str

    class ByEmail(
        tv.Query["Buyer"],
        on=Catalogue.gsi1,
        pk="EMAIL#{email}",
        sk="USER#{user_id}",
        access=tv.AccessPattern("A user by email", per_second=15, items=1, item_bytes=220),
    ):
        email: str
        user_id: tv.Sort[str] = tv.sort()


class Purchase(
    tv.Entity,
    table=Catalogue,
    writes=(tv.WritePattern("An order's status", "update", ("status",), per_second=20, item_bytes=240),),
):
    """An order."""

    order_id: tv.Attr[str]
    status: tv.Attr[State] = tv.attr(default="pending")
    placed_on: tv.Attr[date]

    class Key(tv.PrimaryKey["Purchase"], pk="ORDER#{order_id}", sk="ORDER#{order_id}"):
        order_id: str

    # tavola: ignore[mutable-index-key] an order changes its status a few times and is queried by it
    class ByStatus(
        tv.Query["Purchase"],
        on=Catalogue.gsi1,
        pk="STATUS#{status}",
        sk="ORDER#{placed_on}#{order_id}",
        shards=4,
        access=tv.AccessPattern("Orders of a status by day", per_second=5, items=25, item_bytes=240),
    ):
        status: State
        placed_on: tv.Sort[date] = tv.sort()
        order_id: tv.Sort[str] = tv.sort()


class Product(
    tv.Entity,
    table=Catalogue,
    writes=(tv.WritePattern("Featured or not", "update", ("featured",), per_second=1, item_bytes=260),),
):
    """Something for sale."""

    product_id: tv.Attr[str]
    category: tv.Attr[str]
    price: tv.Attr[Decimal]
    featured: tv.Attr[bool] = tv.attr(default=False)

    class Key(tv.PrimaryKey["Product"], pk="PRODUCT#{product_id}", sk="PRODUCT#{product_id}"):
        product_id: str

    class ByCategory(
        tv.Query["Product"],
        on=Catalogue.gsi1,
        pk="CATEGORY#{category}",
        sk="PRODUCT#{product_id}",
        access=tv.AccessPattern("Products of a category", per_second=40, items=30, item_bytes=260),
    ):
        category: str
        product_id: tv.Sort[str] = tv.sort()

    class Featured(
        tv.Query["Product"],
        on=Catalogue.gsi2,
        pk="FEATURED",
        sk="PRODUCT#{product_id}",
        members={"featured": True},
        access=tv.AccessPattern("Featured products", per_second=80, items=4, item_bytes=260),
    ):
        product_id: tv.Sort[str] = tv.sort()


def sample_entities() -> tuple[tv.Entity, ...]:
    """Return three users, nine orders and twelve products, three of them featured."""
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


SAMPLE = Sample(
    "catalogue",
    "Catalogue",
    summary="An overloaded index for three entities, and a sparse index that products enter and leave.",
    source="Common patterns: GSI overloading, and sparse indexes",
    tables=(Catalogue,),
    entities=sample_entities,
)


@SAMPLE.demonstrate("overloading", "One index, three patterns")
async def overloading(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query one index for three kinds of entities."""
    return (
        await run_query(db, "A user by email", Buyer.ByEmail(email="user-02@example.com")),
        await run_query(
            db, "Pending orders, newest first", Purchase.ByStatus(status="pending"), newest_first=True
        ),
        await run_query(db, "Products of a category", Product.ByCategory(category="electronics")),
    )


@SAMPLE.demonstrate("featured", "Enter and leave a sparse index", writes=True)
async def feature_product(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Feature a product and undo it; the index follows in the same write."""
    key = Product.Key(product_id="product-101")
    await db.update(key, Product.featured.set(False))
    before = await run_query(db, "Featured before", Product.Featured())
    try:
        await db.update(key, Product.featured.set(True))
        during = await run_query(db, "Featured with product-101", Product.Featured())
    finally:
        await db.update(key, Product.featured.set(False))
    return before, during, await run_query(db, "Featured after", Product.Featured())
