"""A bookshop with one access pattern of each kind, a need that no index serves, and an unused index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from tavola import (
    AccessPattern,
    Attr,
    Collection,
    Entity,
    Given,
    Gsi,
    Lsi,
    Need,
    PrimaryKey,
    Query,
    Route,
    Sort,
    Table,
    WritePattern,
    attr,
    connect,
    connect_async,
    member,
    sort,
)
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import Engine
from tavola.model import Shards
from tavola.model.document import Design, design_of, read_document, write_document
from tavola.studio.studio import Studio, TablesLocation

FIRST = datetime(2026, 8, 1, 12, tzinfo=UTC)


class Shop(Table, name="bookshop"):
    """Orders and their lines."""

    by_customer = Gsi(pk="GSI1PK", sk="GSI1SK")
    by_state = Gsi(pk="GSI2PK", sk="GSI2SK", projection=("state",))
    by_day = Gsi(pk="GSI3PK", sk="GSI3SK")
    nobody = Gsi(pk="GSI4PK")
    by_price = Lsi(sk="LSI1SK")


class Numbers(Table, name="readings", pk="meter", sk="at"):
    """A table whose keys are its own attributes."""


class Order(
    Entity,
    table=Shop,
    items=1_000,
    writes=(
        WritePattern("place an order", "put", per_second=5, item_bytes=400),
        WritePattern("ship it", "update", ("state",), per_second=2, item_bytes=400, transactional=True),
    ),
):
    """A customer's order."""

    order_id: Attr[str]
    customer: Attr[str]
    state: Attr[Literal["new", "paid", "sent"]]
    placed_at: Attr[datetime]
    total: Attr[Decimal]
    note: Attr[str | None] = attr(default=None)

    class Key(
        PrimaryKey["Order"],
        pk="ORDER#{order_id}",
        sk="ORDER",
        access=AccessPattern("an order", per_second=50, items=1, item_bytes=400),
    ):
        order_id: str

    class ByCustomer(
        Query["Order"],
        on=Shop.by_customer,
        pk="CUSTOMER#{customer}",
        sk="{placed_at}#{order_id}",
        access=AccessPattern(
            "a customer's orders", per_second=10, peak_per_second=100, items=20, item_bytes=400
        ),
    ):
        customer: str
        placed_at: Sort[datetime] = sort()

    class ByState(
        Query["Order"],
        on=Shop.by_state,
        pk="STATE#{state}",
        sk="{placed_at}#{order_id}",
        shards=3,
        hydrate=True,
        access=AccessPattern("orders of a state", per_second=1, items=10, item_bytes=400),
    ):
        state: Literal["new", "paid", "sent"]
        placed_at: Sort[datetime] = sort()

    class ByDay(
        Query["Order"],
        on=Shop.by_day,
        pk="DAY",
        sk="{placed_at}#{order_id}",
        shards=Shards.by_time("placed_at", "day"),
        access=AccessPattern("orders of some days", per_second=1, items=10),
    ):
        placed_at: Sort[datetime] = sort()


class Line(Entity, table=Shop):
    """A book of an order."""

    order_id: Attr[str]
    number: Attr[int]
    isbn: Attr[UUID]
    due: Attr[date]
    price: Attr[Decimal]

    class Key(PrimaryKey["Line"], pk="ORDER#{order_id}", sk="LINE#{number:04}"):
        order_id: str
        number: int

    class ByPrice(Query["Line"], on=Shop.by_price, sk="PRICE#{price:6.2}"):
        order_id: str
        price: Sort[Decimal] = sort()


class WholeOrder(
    Collection, access=AccessPattern("an order with its lines", per_second=4, items=4, item_bytes=300)
):
    """An order with its lines, in one query."""

    order_id: str
    order: Order | None = member()
    lines: list[Line] = member()


class Reading(Entity, table=Numbers):
    """What a meter said."""

    meter: Attr[int]
    at: Attr[int]
    ok: Attr[bool]

    class Key(PrimaryKey["Reading"], pk="{meter}", sk="{at}"):
        meter: int
        at: int

    class Of(Query["Reading"], on=Key):
        meter: int
        at: Sort[int] = sort()


NEEDS = (
    Need("new orders of a customer", Order, ("customer", Given("state", "=", "new")), "placed_at"),
    Need("orders by note", Order, "note"),
    Need(
        "dear orders",
        Order,
        Given("total", ">="),
        access=AccessPattern("dear orders", per_second=0.1),
        route=Route("scan", filters=(Given("total", ">="),)),
    ),
)


def bookshop_design(*, document: bool = False) -> Design:
    """Return the design as its classes declare it, or as a document that knows no class says it."""
    declared = design_of(Shop, Numbers)
    design = Design(declared.tables, declared.views, NEEDS)
    return read_document(write_document(design)) if document else design


def orders() -> Iterator[Any]:
    """Give sixty orders of four customers over five days, each with two lines, and forty readings."""
    states: tuple[Literal["new", "paid", "sent"], ...] = ("new", "paid", "sent")
    for number in range(60):
        placed = FIRST + timedelta(hours=2 * number)
        yield Order(
            order_id=f"o{number:03}",
            customer=f"c{number % 4}",
            state=states[number % 3],
            placed_at=placed,
            total=Decimal(number) / 4,
            note="x" * 200 if number % 2 else None,
        )
        for line in range(2):
            yield Line(
                order_id=f"o{number:03}",
                number=line,
                isbn=UUID(int=number * 10 + line),
                due=placed.date(),
                price=Decimal(line) + Decimal("0.5"),
            )
    for number in range(40):
        yield Reading(meter=number % 2, at=number, ok=number % 3 == 0)


@contextmanager
def stocked(clock: Clock = SYSTEM_CLOCK, region: str | None = None) -> Iterator[Engine]:
    """Give an engine with the shop's tables and everything in them."""
    engine = Engine.open(clock=clock)
    with connect(engine, region=region) as db:
        db.create_tables(Shop, Numbers)
        db.put_many(orders())
    yield engine
    engine.close()


@asynccontextmanager
async def shop_studio(engine: Engine, *, document: bool = False, **more: Any) -> AsyncIterator[Studio]:
    """Give a studio on the shop."""
    async with connect_async(engine) as db:
        yield Studio(
            db=db,
            where=TablesLocation("memory", "memory:", "us-east-1"),
            design=bookshop_design(document=document),
            engine=engine,
            **more,
        )
