"""A design with everything that makes the client ask more than one thing: uniques, upgrades, hydration, batches, counters, tenants."""

from __future__ import annotations

from typing import Any

from tavola import (
    AccessPattern,
    Attr,
    Consumer,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    sort,
    upgrade,
)


class Shop(
    Table,
    name="shop",
    ttl="ends",
    stream="NEW_IMAGE",
    recovery=True,
    consumers=(Consumer("counts", "shop.counts.handler", writes=("Counter",)),),
):
    listing = Gsi(pk="G1PK", sk="G1SK", projection="KEYS_ONLY")
    shelves = Gsi(pk=("region", "shelf"), sk=("price",))


class Customer(
    Entity,
    table=Shop,
    writes=(
        WritePattern("a customer comes", "put"),
        WritePattern("a customer's address changes", "update", changes=("email",), transactional=True),
        WritePattern("a customer goes", "delete"),
    ),
):
    tenant: Attr[str] = attr(tenant=True)
    customer_id: Attr[str]
    email: Attr[str] = attr(unique=True)
    ends: Attr[int | None] = attr(default=None)

    class Key(
        PrimaryKey["Customer"],
        pk="CUSTOMER#{tenant}#{customer_id}",
        sk="PROFILE",
        access=AccessPattern("customers at one moment", transactional=True, items=2),
    ):
        tenant: str
        customer_id: str

    class Named(Query["Customer"], on=Shop.listing, pk="NAMES#{tenant}", sk="{customer_id}", hydrate=True):
        tenant: str


class Note(
    Entity,
    table=Shop,
    immutable=True,
    writes=(WritePattern("a note is left", "put"),),
):
    tenant: Attr[str] = attr(tenant=True)
    note_id: Attr[str]
    text: Attr[str]

    class Key(
        PrimaryKey["Note"], pk="NOTES#{tenant}", sk="{note_id}", access=AccessPattern("a note of a tenant")
    ):
        tenant: str
        note_id: str

    class All(Query["Note"], on=Key):
        tenant: str
        note_id: Sort[str] = sort()


class Price(Entity):
    price: Attr[int]


class Product(
    Entity,
    table=Shop,
    writes=(
        WritePattern("products are loaded", "put", items=25),
        WritePattern("a price changes", "update", changes=("price",)),
        WritePattern("products go", "delete", items=25),
    ),
):
    product_id: Attr[str]
    region: Attr[str]
    shelf: Attr[str]
    price: Attr[int]
    text: Attr[str] = attr(default="")

    class Key(
        PrimaryKey["Product"],
        pk="PRODUCT#{product_id}",
        sk="PRODUCT",
        access=AccessPattern("what a product costs", reads=("price",)),
    ):
        product_id: str

    class OnShelf(Query["Product"], on=Shop.shelves):
        region: str
        shelf: str
        price: Sort[int] = sort()


class Counter(
    Entity,
    table=Shop,
    writes=(WritePattern("a hit is counted", "update", changes=("hits",), adds=("hits",), creates=True),),
):
    name: Attr[str]
    kind: Attr[str] = attr(default="all")
    hits: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Counter"], pk="COUNTER#{name}", sk="COUNTER"):
        name: str

    class Top(Query["Counter"], on=Shop.listing, pk="TOP#{kind}", sk="{hits:09}#{name}", hydrate=True):
        kind: str


class Visit(
    Entity,
    table=Shop,
    version=2,
    writes=(WritePattern("a visit is told more of", "update", changes=("page",)),),
):
    visit_id: Attr[str]
    page: Attr[str] = attr(default="")

    class Key(PrimaryKey["Visit"], pk="VISIT#{visit_id}", sk="VISIT", access=AccessPattern("a visit")):
        visit_id: str

    @staticmethod
    @upgrade(1)
    def with_page(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "page": "/"}
