"""A design with the rest of the form: other types, a base class, native and local keys, steps, helpers over any entity."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar, assert_type
from uuid import UUID

from pydantic import BaseModel, Field

from tavola import (
    AccessPattern,
    AsyncConnection,
    AsyncPage,
    Attr,
    Change,
    Collection,
    Condition,
    Connection,
    Entity,
    Gsi,
    Lsi,
    Page,
    PrimaryKey,
    Query,
    Rest,
    Selection,
    Shards,
    Sort,
    Step,
    Table,
    WritePattern,
    attr,
    member,
    sort,
)

AT = datetime(2026, 3, 1, tzinfo=UTC)
Sku = NewType("Sku", str)
Currency = Literal["EUR", "USD"]


class Stage(Enum):
    """How far an order is."""

    PLACED = "placed"
    PAID = "paid"
    SENT = "sent"


class Shop(
    Table, name="shop", pk="PK", sk="SK", ttl="ends_at", stream="NEW_AND_OLD_IMAGES", tags={"team": "shop"}
):
    """Orders, products and carts."""

    by_stage = Gsi(pk="GSI1PK", sk="GSI1SK", projection=("total", "customer"))
    by_customer = Gsi(pk="GSI2PK", sk="GSI2SK")
    inverted = Gsi(pk="SK", sk="PK")
    native = Gsi(pk=("customer", "currency"), sk=("placed_on", "total"))
    by_total = Lsi(sk="total", projection="KEYS_ONLY")


class Metrics(Table, pk="device", sk="at", tag=None):
    """A table whose keys are an entity's own attributes."""


class Address(BaseModel):
    """Where something goes."""

    street: str
    city: str


class Stamped(Entity):
    """What every item has; no table of its own."""

    created_at: Attr[datetime] = attr(default_factory=lambda: AT)
    revision: Attr[int] = attr(default=0, lock=True)


class Order(
    Stamped,
    table=Shop,
    writes=(
        WritePattern("place an order", "put", per_second=5),
        WritePattern("pay", "update", changes=("stage",)),
    ),
):
    """An order."""

    order_id: Attr[UUID]
    customer: Attr[str]
    currency: Attr[Currency] = attr(default="EUR")
    placed_on: Attr[date]
    total: Attr[Decimal]
    stage: Attr[Stage] = attr(default=Stage.PLACED)
    number: Attr[str | None] = attr(default=None, unique=True, within=("customer",))
    note: Attr[Annotated[str, Field(max_length=200)]] = attr(
        default="", name="n", description="for the courier"
    )
    tags: Attr[set[str]] = attr(default_factory=set[str])
    lines: Attr[list[Sku]] = attr(default_factory=list[Sku])
    counts: Attr[dict[str, int]] = attr(default_factory=dict[str, int])
    ship_to: Attr[Address | None] = attr(default=None)
    seal: Attr[bytes | None] = attr(default=None)

    class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER", access=AccessPattern("an order", 20)):
        order_id: UUID

    class ByStage(
        Query["OrderLine"], on=Shop.by_stage, pk="STAGE#{stage}", sk="{placed_on}", shards=Shards(4)
    ):
        stage: Stage
        placed_on: Sort[date] = sort()

    class InStage(
        Query["Order"],
        on=Shop.by_stage,
        pk="STAGE#{stage}",
        sk="{placed_on}",
        shards=Shards(4),
        hydrate=True,
    ):
        stage: Stage
        placed_on: Sort[date] = sort()

    class ByCustomer(
        Query["Order"],
        on=Shop.by_customer,
        pk="CUSTOMER#{customer}",
        sk="ORDER#{stage}#{placed_on}#{order_id}",
    ):
        customer: str
        stage: Step[Stage, Dated] = sort()

        class Dated(Rest["Order"]):
            placed_on: Step[date, Numbered] = sort()

            class Numbered(Rest["Order"]):
                order_id: Sort[UUID] = sort()

    class Native(Query["Order"], on=Shop.native):
        customer: str
        currency: Currency
        placed_on: Sort[date] = sort()
        total: Sort[Decimal] = sort()

    class ByTotal(Query["Order"], on=Shop.by_total, hydrate=True):
        order_id: UUID
        total: Sort[Decimal] = sort()


class OrderLine(Entity):
    """What the index by stage holds of an order."""

    order_id: Attr[UUID]
    placed_on: Attr[date]
    total: Attr[Decimal]


class Follow(Entity, table=Shop):
    """Who follows whom, read in both directions."""

    follower: Attr[str]
    followed: Attr[str]
    since: Attr[datetime]

    class Key(PrimaryKey["Follow"], pk="USER#{follower}", sk="FOLLOWS#{followed}"):
        follower: str
        followed: str

    class Following(Query["Follow"], on=Key):
        follower: str
        followed: Sort[str] = sort()

    class Followers(Query["Follow"], on=Shop.inverted):
        followed: str
        follower: Sort[str] = sort()


class Measurement(Entity, table=Metrics):
    """A value of a device, under native keys."""

    device: Attr[str]
    at: Attr[int]
    value: Attr[Decimal]

    class Key(PrimaryKey["Measurement"]):
        device: str
        at: int

    class OfDevice(Query["Measurement"], on=Key):
        device: str
        at: Sort[int] = sort()


class CustomerFile(Collection, on=Shop.by_customer, pk="CUSTOMER#{customer}"):
    """Everything of a customer, in the order of the index."""

    customer: str
    orders: list[Order] = member()


TABLES = (Shop, Metrics)

E = TypeVar("E", bound=Entity)


def fetch(db: Connection, key: PrimaryKey[E], otherwise: Callable[[], E]) -> E:
    """Return an entity of whatever kind, or make it."""
    entity = db.get(key)
    return otherwise() if entity is None else entity


def first(db: Connection, selection: Selection[E], where: Condition[E] | None = None) -> E | None:
    """Return the first of an answer."""
    asked = selection if where is None else selection.where(where)
    return next(iter(db.query(asked, limit=1)), None)


def change(db: Connection, key: PrimaryKey[E], *changes: Change[E]) -> E:
    """Change an entity of whatever kind."""
    return db.update(key, *changes)


class Stock(Generic[E]):
    """Entities of one kind, with the verbs that a program needs."""

    def __init__(self, db: Connection, kind: type[E]) -> None:
        self.db = db
        self.kind = kind

    def all(self, where: Condition[E] | None = None) -> list[E]:
        """Return all of them."""
        return list(self.db.scan(self.kind, where=where))


def recent(since: datetime) -> Condition[Stamped]:
    """Return a condition that serves every entity with a stamp."""
    return Stamped.created_at >= since


def use(db: Connection) -> None:
    """Do everything once."""
    one = UUID(int=1)
    order = Order(
        order_id=one, customer="c1", placed_on=date(2026, 3, 1), total=Decimal("9.90"), tags={"gift"},
        lines=[Sku("a")], ship_to=Address(street="s", city="Rome"), number="7",
    )  # fmt: skip
    assert_type(order.stage, Stage)
    assert_type(order.total, Decimal)
    assert_type(order.created_at, datetime)
    assert_type(order.ship_to, Address | None)
    order = db.put(order)

    assert_type(db.get(Order.Key(order_id=one)), Order | None)
    assert_type(db.query(Order.ByStage(stage=Stage.PLACED).placed_on.gte(date(2026, 1, 1))), Page[OrderLine])
    whole = db.query(Order.InStage(stage=Stage.PLACED))
    assert_type(whole, Page[Order])
    steps = (
        Order.ByCustomer(customer="c1").stage.eq(Stage.PLACED).placed_on.eq(date(2026, 3, 1)).order_id.eq(one)
    )
    assert_type(db.query(steps), Page[Order])
    stepped = Order.ByCustomer(customer="c1").stage.eq(Stage.PLACED).placed_on.gte(date(2026, 1, 1))
    assert_type(stepped, Selection[Order])
    native = Order.Native(customer="c1", currency="EUR").placed_on.eq(date(2026, 3, 1)).total.gt(Decimal(5))
    assert_type(db.query(native), Page[Order])
    assert_type(db.query(Order.ByTotal(order_id=one).total.lte(Decimal(10)), consistent=True), Page[Order])
    recently = first(db, Order.ByCustomer(customer="c1"), recent(AT) & (Order.total > Decimal(1)))
    assert_type(recently, Order | None)
    assert_type(fetch(db, Order.Key(order_id=one), lambda: order), Order)
    assert_type(Stock(db, Order).all(Order.created_at >= AT), list[Order])
    assert_type(db.scan(Order, where=Stamped.revision > 0), Page[Order])

    assert [len(list(page)) for page in (whole, db.query(steps), db.query(stepped), db.query(native))] == [
        1
    ] * 4
    assert recently == order
    changes(db, one)
    directions(db)


def changes(db: Connection, one: UUID) -> None:
    """Change every kind of field."""
    changed = change(
        db,
        Order.Key(order_id=one),
        Order.stage.set(Stage.PAID),
        Order.total.add(Decimal("0.10")),
        Order.tags.add({"blue"}),
        Order.lines.append(Sku("b")),
        Order.counts["seen"].set(1),
        Order.ship_to["city"].set("Oslo"),
        Order.note.set("ring twice"),
    )
    assert_type(changed, Order)
    assert_type(changed.tags, set[str])
    more = db.update(
        changed,
        Order.total.set(Order.total - Decimal(1)),
        Order.tags.discard({"blue"}),
        Order.ship_to.set(None),
        Order.seal.set_if_absent(b"x"),
        Stamped.created_at.set(AT),
        when=(Order.stage.ne(Stage.SENT) | Order.number.exists()) & ~Order.lines.contains(Sku("z")),
    )
    sized = Order.tags.size() >= 1
    assert_type(sized, Condition[Order])
    assert_type(Order.lines[0].eq(Sku("a")), Condition[Order])
    assert_type(Order.created_at <= Order.created_at, Condition[Order])
    pieces: list[Change[Order]] = [Order.counts["seen"].set(2), Order.seal.remove()]

    assert (more.total, more.tags, more.ship_to) == (Decimal("9.00"), {"gift"}, None)
    assert db.update(more, *pieces, when=sized).counts == {"seen": 2}


def directions(db: Connection) -> None:
    """Read a relation both ways, several kinds at once, and native keys."""
    db.put(Follow(follower="ann", followed="bob", since=AT))
    db.put(Measurement(device="d", at=3, value=Decimal(1)))
    assert_type(db.query(Follow.Following(follower="ann").followed.begins_with("b")), Page[Follow])
    back = db.query(Follow.Followers(followed="bob"))
    assert_type(back, Page[Follow])
    both = db.get_all(Follow.Key(follower="ann", followed="bob"), Measurement.Key(device="d", at=3))
    assert_type(both, tuple[Follow | None, Measurement | None])
    many = db.get_many([Follow.Key(follower="ann", followed="bob"), Follow.Key(follower="x", followed="y")])
    assert_type(many, list[Follow | None])
    counted = db.count(Measurement.OfDevice(device="d").at.between(1, 5))
    assert_type(counted, int)
    assert_type(db.collect(CustomerFile(customer="c1")).orders, list[Order])

    assert len(back.items) == 1
    assert None not in both
    assert counted == 1


async def use_async(db: AsyncConnection) -> None:
    """Ask a little of everything through the other shell."""
    await db.put(Follow(follower="ann", followed="bob", since=AT))
    assert_type(await db.query(Follow.Followers(followed="bob")), AsyncPage[Follow])
    key = Follow.Key(follower="ann", followed="bob")
    both = await db.get_all(key, Measurement.Key(device="d", at=3))
    assert_type(both, tuple[Follow | None, Measurement | None])
    async for order in await db.query(Order.InStage(stage=Stage.PAID)):
        assert_type(order, Order)
    rows: list[Any] = (await db.collect(CustomerFile(customer="c1"))).orders

    assert rows == []
