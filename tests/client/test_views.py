"""Some fields of an item alone: a get with a view; and entities as raw items."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    ItemUnreadable,
    ModelError,
    PrimaryKey,
    Table,
    attr,
    connect,
    from_item,
    to_item,
    upgrade,
)
from tests.client.desk import Desk, Ticket

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)
KEY = Ticket.Key(ticket_id="t1")


class Brief(Entity):
    """The fields of a ticket in a list."""

    ticket_id: Attr[str]
    subject: Attr[str]


class Misfit(Entity):
    """A view with a field that tickets lack."""

    colour: Attr[str]


def ticket() -> Ticket:
    """Return a ticket."""
    return Ticket(ticket_id="t1", customer_id="c1", subject="VPN", created_at=AT)


def test_a_get_may_return_a_view(db: Connection) -> None:
    """A get with a view returns the view, None for a missing item; a field outside the entity is refused."""
    db.put(ticket())

    assert db.get(KEY, view=Brief) == Brief(ticket_id="t1", subject="VPN")
    assert db.get(Ticket.Key(ticket_id="t2"), view=Brief) is None
    with pytest.raises(ModelError, match=r"Misfit\.colour: .* Ticket has no such field"):
        db.get(KEY, view=Misfit)


def test_only_the_fields_of_a_view_are_sent() -> None:
    """The others stay where they are."""
    with connect("memory:") as db:
        db.create_tables(Desk)
        db.put(ticket())
        call, requests = db.backend.call, []

        def watched(operation: str, request: Any) -> Any:
            requests.append(request)
            return call(operation, request)

        db.backend.call = watched  # type: ignore[method-assign]
        db.get(KEY, view=Brief)

    (expression,) = [request["ProjectionExpression"] for request in requests]
    assert "subject" in expression
    assert "customer_id" not in expression


def test_a_view_of_an_older_schema_is_upgraded(opened: Callable[..., Connection]) -> None:
    """An upgrade may make a field of any others, so such an item is read whole."""

    class Shop(Table, name="viewed"):
        pass

    class Order(Entity, table=Shop, version=2):
        order_id: Attr[str]
        cents: Attr[int] = attr(default=0)

        @staticmethod
        @upgrade(1)
        def to_cents(item: dict[str, Any]) -> dict[str, Any]:
            return {**item, "cents": item.pop("total") * 100}

        class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER"):
            order_id: str

    class Sum(Entity):
        cents: Attr[int]

    db = opened()
    db.create_tables(Shop)
    name = next(n for n in db.call("ListTables")["TableNames"] if n.endswith("viewed"))
    item = {"pk": {"S": "ORDER#o1"}, "sk": {"S": "ORDER"}, "order_id": {"S": "o1"}, "total": {"N": "3"}}
    db.call("PutItem", {"TableName": name, "Item": item | {"_entity": {"S": "Order"}}})

    assert db.get(Order.Key(order_id="o1"), view=Sum) == Sum(cents=300)


def test_an_entity_and_its_item_are_one(db: Connection) -> None:
    """`to_item` returns what a put stores, and `from_item` reads items from other sources."""
    item = to_item(db.put(ticket()))
    name = next(n for n in db.call("ListTables")["TableNames"] if n.endswith(Desk.settings.name))
    key = {name: item[name] for name in Desk.settings.key_names}

    stored = db.call("GetItem", {"TableName": name, "Key": key})["Item"]
    assert stored.keys() == item.keys()
    assert from_item(Ticket, stored) == ticket() == from_item(Ticket, item)
    assert from_item(Brief, item) == Brief(ticket_id="t1", subject="VPN")


def test_only_entities_can_be_stored() -> None:
    """An item of another entity, a view and a class are refused."""
    item = to_item(ticket())

    with pytest.raises(ItemUnreadable, match="the item belongs to another entity"):
        from_item(Ticket, {**item, "_entity": {"S": "Event"}})
    with pytest.raises(ModelError, match="it has no table and no Key"):
        to_item(Brief(ticket_id="t1", subject="VPN"))
    with pytest.raises(ModelError, match="to_item: it stores entities"):
        to_item(Ticket)  # type: ignore[arg-type]  # the mistake


def test_bytes_of_botocore_are_taken() -> None:
    """botocore has a B as bytes, DynamoDB JSON as base64 text; both are read."""

    class Files(Table):
        pass

    class File(Entity, table=Files):
        name: Attr[str]
        head: Attr[bytes]

        class Key(PrimaryKey["File"], pk="FILE#{name}", sk="FILE"):
            name: str

    item = to_item(File(name="a", head=b"\x00\xff"))

    assert item["head"] == {"B": "AP8="}
    assert from_item(File, {**item, "head": {"B": b"\x00\xff"}}) == File(name="a", head=b"\x00\xff")
