"""A small shop to browse: two entities, every kind of index, and the studio on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from tavola import Attr, Entity, Gsi, Lsi, PrimaryKey, Query, Sort, Table, attr, connect, connect_async, sort
from tavola.engine import Engine
from tavola.model import AccessPattern
from tavola.model.document import Design, design_of
from tavola.studio.studio import Studio, TablesLocation

REGION = "eu-west-1"
R = TypeVar("R")


class Shop(Table, name="studio-shop", pk="PK", sk="SK", ttl="ends"):
    """Orders and their lines."""

    by_customer = Gsi(pk="GSI1PK", sk="GSI1SK", name="customers")
    by_state = Gsi(pk="GSI2PK", projection=("total",), name="states")
    by_place = Gsi(pk=("country", "city"), sk=("street", "number"), projection="KEYS_ONLY", name="places")
    by_weight = Lsi("weight", name="weights")


class Order(Entity, table=Shop):
    """An order."""

    order_id: Attr[str]
    customer: Attr[str]
    placed_at: Attr[datetime]
    state: Attr[str | None] = attr(default=None)
    total: Attr[int] = attr(default=0)
    email: Attr[str | None] = attr(default=None, unique=True)
    country: Attr[str | None] = attr(default=None)
    city: Attr[str | None] = attr(default=None)
    street: Attr[str | None] = attr(default=None)
    number: Attr[int | None] = attr(default=None)

    class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER"):
        order_id: str

    class ByCustomer(
        Query["Order"],
        on=Shop.by_customer,
        pk="CUSTOMER#{customer}",
        sk="{placed_at}#{order_id}",
        access=AccessPattern("Orders of a customer", items=20, item_bytes=400),
    ):
        customer: str
        placed_at: Sort[datetime] = sort()

    class ByState(Query["OrderState"], on=Shop.by_state, pk="STATE#{state}", sparse=True):
        state: str

    class ByPlace(Query["OrderState"], on=Shop.by_place, sparse=True):
        country: str
        city: str
        street: Sort[str] = sort()
        number: Sort[int] = sort()


class OrderState(Entity):
    """What the index of states has of an order."""

    order_id: Attr[str]


class Line(Entity, table=Shop):
    """A line of an order."""

    order_id: Attr[str]
    position: Attr[int]
    weight: Attr[int]

    class Key(PrimaryKey["Line"], pk="ORDER#{order_id}", sk="LINE#{position:03}"):
        order_id: str
        position: int

    class OfOrder(Query["Line"], on=Key):
        order_id: str
        position: Sort[int] = sort()

    class ByWeight(Query["Line"], on=Shop.by_weight):
        order_id: str
        weight: Sort[int] = sort()


def shop_design() -> Design:
    """Return the shop's design as data."""
    return design_of(Shop)


@dataclass(frozen=True)
class Browsed:
    """A studio on a shop with some orders, and a way to ask it."""

    studio: Studio
    engine: Engine
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Ask DynamoDB itself."""
        answer: dict[str, Any] = self.run(self.studio.db.call(operation, request))
        return answer


@contextmanager
def browsed(engine: Engine | None = None, *, design: bool = True, orders: int = 12) -> Iterator[Browsed]:
    """Give a studio on an engine; without one, on a shop in memory."""
    with asyncio.Runner() as runner:
        made = engine or filled_shop(orders)

        async def opened() -> Studio:
            return Studio(
                db=connect_async(made, region=REGION),
                where=TablesLocation("memory", "memory:", REGION),
                design=shop_design() if design else None,
                designs=("shop",) if design else (),
                engine=made,
            )

        studio = runner.run(opened())
        try:
            yield Browsed(studio, made, runner.run)
        finally:
            runner.run(studio.db.close())
            made.close()


def filled_shop(orders: int) -> Engine:
    """Return an engine with a shop: each order of two lines, every other one open, every third with a place."""
    engine = Engine.open()
    with connect(engine, region=REGION) as db:
        db.create_tables(Shop)
        for n in range(orders):
            place: dict[str, Any] = (
                {"country": "IT", "city": "Pisa", "street": f"Via {n % 2}", "number": n} if n % 3 == 0 else {}
            )
            db.create(
                Order(
                    order_id=f"o{n}",
                    customer=f"c{n % 2}",
                    placed_at=datetime.fromisoformat(f"2026-01-{n % 28 + 1:02}T00:00:00+00:00"),
                    state="open" if n % 2 else None,
                    total=n * 10,
                    email=f"{n}@example.org",
                    **place,
                )
            )
            for position in (1, 2):
                db.put(Line(order_id=f"o{n}", position=position, weight=n * 100 + position))
    return engine
