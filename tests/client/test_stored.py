"""Stored items: reads and conditions on raw attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tavola import Attr, Connection, Entity, PrimaryKey, Table, TransactionCancelled, attr
from tavola.client.stored import as_stored, count_stored, get_stored, read_stored, scan_stored


class Shelf(Table):
    """One table."""


class Attic(Table):
    """Another."""


class Box(Entity, table=Shelf):
    """Something with a field that was added later."""

    number: Attr[int]
    colour: Attr[str] = attr(default="red")

    class Key(PrimaryKey["Box"], pk="BOX", sk="{number:04}"):
        number: int


class Trunk(Entity, table=Attic):
    """Something elsewhere."""

    number: Attr[int]

    class Key(PrimaryKey["Trunk"], pk="TRUNK", sk="{number:04}"):
        number: int


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with both tables, three boxes and a trunk; the first box was written before boxes had colours."""
    found = opened()
    found.create_tables(Shelf, Attic)
    for number in range(3):
        found.put(Box(number=number))
    found.put(Trunk(number=7))
    target = {"TableName": found.context.name_of(Shelf), "Key": {"pk": {"S": "BOX"}, "sk": {"S": "0000"}}}
    found.call("UpdateItem", {**target, "UpdateExpression": "REMOVE colour"})
    return found


def test_items_are_read_raw(db: Connection) -> None:
    """Items of several tables come in the order of their keys, without defaults for missing attributes."""
    keys: list[Any] = [Trunk.Key(number=7), Box.Key(number=0), Box.Key(number=9), Box.Key(number=1)]
    trunk, first, none, second = db.run(get_stored(db.context, keys))

    assert trunk is not None
    assert trunk["number"] == {"N": "7"}
    assert none is None
    assert first is not None
    assert "colour" not in first
    assert second is not None
    assert second["colour"] == {"S": "red"}
    assert read_stored(Box, first) == Box(number=0)


def test_a_condition_on_the_stored_item(db: Connection) -> None:
    """It holds for an item whose absent field reads as its default, and fails once any attribute has changed."""
    for number in (0, 1):
        key = Box.Key(number=number)
        (item,) = db.run(get_stored(db.context, [key]))
        assert item is not None
        unchanged = as_stored(Box, item)
        db.update(key, Box.colour.set("blue"), when=unchanged)
        with pytest.raises(TransactionCancelled), db.transaction() as writes:
            writes.delete(key, when=unchanged)


def test_every_item_of_a_table_is_scanned(db: Connection) -> None:
    """Items of unknown entities are included, and a page has a cursor."""
    db.call("PutItem", {"TableName": db.context.name_of(Shelf), "Item": {"pk": {"S": "?"}, "sk": {"S": "?"}}})
    page = db.run(scan_stored(db.context, Shelf, None))

    assert len(page.items) == 4
    assert page.after is None
    first = page.items[0]
    rest = db.run(scan_stored(db.context, Shelf, {name: first[name] for name in ("pk", "sk")}))
    assert rest.items == page.items[1:]


def test_the_results_of_a_query_are_counted(db: Connection) -> None:
    """The count covers all pages of the request."""
    request = {
        "TableName": db.context.name_of(Shelf), "KeyConditionExpression": "pk = :b",
        "ExpressionAttributeValues": {":b": {"S": "BOX"}}, "Limit": 1,
    }  # fmt: skip

    assert db.run(count_stored(request)) == 3
