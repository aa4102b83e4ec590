"""Recognition: the entity of each item, and the fields in its keys."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from tavola import connect
from tavola.engine import Engine
from tavola.model import Table
from tavola.model.document import TableDesign, design_of
from tavola.studio.key_text import KeyPiece
from tavola.studio.recognition import Recogniser, designed_keys, layout_keys
from tavola.studio.table_layouts import parse_layout
from tests.studio.browsed import REGION, shop_design

SHOP = shop_design().tables[0]


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[dict[str, list[Any]], dict[str, Any]]]:
    """The items of every table of the demo, and what DescribeTable says of them."""
    from tavola.cli import samples

    items: dict[str, list[Any]] = {}
    described: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demo.db"
        samples.create_file(file, REGION, samples.SampleSize(60, 12, 7))
        with closing(Engine.open(file)) as engine, connect(engine, region=REGION) as db:
            for name in db.call("ListTables")["TableNames"]:
                described[name] = db.call("DescribeTable", {"TableName": name})["Table"]
                items[name] = db.call("Scan", {"TableName": name})["Items"]
            yield items, described


def designs() -> dict[str, TableDesign]:
    """Return the designs of all applications by the names of their tables."""
    from tavola.apps import gallery

    names = [f"tavola.apps.{each}.model" for each in ("support_desk", "service_desk", "terraform_review")]
    names += [f"tavola.apps.gallery.{each.name}" for each in iter_modules(gallery.__path__)]
    modules = [import_module(name) for name in names]
    declaring = [
        module
        for module in modules
        if any(
            isinstance(each, type) and issubclass(each, Table) and each is not Table
            for each in vars(module).values()
        )
    ]
    return {table.name: table for table in design_of(*declaring).tables}


def test_every_item_of_the_demo_is_an_entity(demo: Any) -> None:
    """Every item that the applications store is an entity of their designs, and every key is read to its fields."""
    items, described = demo
    known = designs()
    seen: Counter[str] = Counter()
    for name, result in items.items():
        recogniser = Recogniser(layout_keys(parse_layout(described[name])), known[name])
        for item in result:
            response = recogniser.recognise(item)
            assert response.kind == "entity", (name, item)
            for reading in recogniser.parse_keys(item):
                text = next(iter(item[reading.attribute].values()))
                assert "".join(piece.text for piece in reading.pieces) == text
                assert all(piece.value is None or piece.field for piece in reading.pieces)
            seen[name] += 1

    assert set(seen) == set(items)
    assert min(seen.values()) > 0


def test_an_item_without_its_tag_is_recognised_by_its_key(demo: Any) -> None:
    """Templates tell the same entities as the tags do."""
    items, described = demo
    for name, design in designs().items():
        recogniser = Recogniser(layout_keys(parse_layout(described[name])), design)
        for item in items[name]:
            bare = {attribute: value for attribute, value in item.items() if attribute != design.settings.tag}

            assert recogniser.recognise(bare) == recogniser.recognise(item)


def test_index_keys_are_parsed() -> None:
    """The key of an index is read by the entity's template there, and the table's key after it."""
    recogniser = Recogniser(designed_keys(SHOP), SHOP)
    item = {
        "PK": {"S": "ORDER#o1"}, "SK": {"S": "ORDER"}, "_entity": {"S": "Order"},
        "GSI1PK": {"S": "CUSTOMER#c%231"}, "GSI1SK": {"S": "2026-01-02T00:00:00.000000Z#o1"},
    }  # fmt: skip

    readings = recogniser.parse_keys(item, "customers")

    assert [reading.attribute for reading in readings] == ["GSI1PK", "GSI1SK", "PK", "SK"]
    assert readings[0].pieces == (KeyPiece("CUSTOMER#"), KeyPiece("c%231", "customer", "c%231"))
    assert readings[1].pieces == (
        KeyPiece("2026-01-02T00:00:00.000000Z", "placed_at", "2026-01-02T00:00:00Z"),
        KeyPiece("#"),
        KeyPiece("o1", "order_id", "o1"),
    )
    assert set(recogniser.read_all(item)) == {"", "customers"}


def test_a_padded_number_is_read() -> None:
    """A field comes back as its value, not as it is written in the key."""
    recogniser = Recogniser(designed_keys(SHOP), SHOP)
    item = {"PK": {"S": "ORDER#o1"}, "SK": {"S": "LINE#007"}}

    assert recogniser.recognise(item).entity == "Line"
    assert recogniser.parse_keys(item)[1].pieces == (KeyPiece("LINE#"), KeyPiece("007", "position", "7"))


def test_a_guard_is_recognised() -> None:
    """The item that keeps a value unique is no entity, and says whose it is."""
    guard: dict[str, Any] = {
        "PK": {"S": "UNIQUE#Order#email#a@b"}, "SK": {"S": "UNIQUE#Order#email#a@b"}, "_entity": {"S": "UNIQUE"},
        "_unique": {"S": "Order.email"}, "_owner": {"M": {}},
    }  # fmt: skip
    recogniser = Recogniser(designed_keys(SHOP), SHOP)

    response = recogniser.recognise(guard)

    assert (response.kind, response.entity) == ("guard", "Order")
    assert "Order.email" in response.note
    assert recogniser.recognise({name: guard[name] for name in ("PK", "SK", "_entity")}).kind == "guard"


@pytest.mark.parametrize(
    ("item", "kind", "entity"),
    [
        ({"PK": {"S": "NOTE#1"}, "SK": {"S": "NOTE#1"}, "text": {"S": "x"}}, "guess", "NOTE"),
        ({"PK": {"S": "ORDER#1"}, "SK": {"S": "REMARK#2"}, "text": {"S": "x"}}, "guess", "REMARK"),
        ({"PK": {"S": "LOCK#1"}, "SK": {"S": "LOCK#1"}}, "marker", "LOCK"),
        ({"PK": {"S": "plain"}, "SK": {"S": "1"}, "a": {"N": "1"}}, "unknown", None),
        ({"PK": {"S": "x"}, "SK": {"S": "y"}, "_entity": {"S": "Ghost"}, "a": {"N": "1"}}, "guess", "Ghost"),
        ({"PK": {"S": "ORDER#1"}, "SK": {"S": "LINE#seven"}, "a": {"N": "1"}}, "guess", "LINE"),
    ],
)
def test_items_unknown_to_the_design_are_reported(item: Any, kind: str, entity: str | None) -> None:
    """An item of no entity is a guess, a marker or unknown, each with its ground."""
    response = Recogniser(designed_keys(SHOP), SHOP).recognise(item)

    assert (response.kind, response.entity) == (kind, entity)
    assert response.note


def test_without_a_design_the_key_is_guessed() -> None:
    """The sort key's first word names the entity, the partition key's where that has none; both are guesses."""
    recogniser = Recogniser(designed_keys(SHOP))
    event = {"PK": {"S": "TICKET#123"}, "SK": {"S": "EVENT#2026-01-01T00:00:00Z#1"}, "a": {"N": "1"}}
    ticket = {"PK": {"S": "TICKET#123"}, "SK": {"S": "METADATA"}, "a": {"N": "1"}}

    assert recogniser.recognise(event).entity == "EVENT"
    assert recogniser.recognise(ticket).entity == "TICKET"
    assert {recogniser.recognise(each).kind for each in (event, ticket)} == {"guess"}
    assert recogniser.parse_keys(ticket)[0].pieces == (KeyPiece("TICKET#"), KeyPiece("123", None, "123"))
    assert recogniser.recognise({**ticket, "entity_type": {"S": "Case"}}).entity == "Case"


def test_a_foreign_design_is_read_loosely() -> None:
    """Keys that other code writes are not padded or escaped, so they are recognised by literals, the longest first."""
    design = replace(SHOP, foreign=True)
    recogniser = Recogniser(designed_keys(design), design)
    item = {"PK": {"S": "ORDER#a b#c"}, "SK": {"S": "LINE#7"}}

    assert recogniser.recognise(item).entity == "Line"
    assert recogniser.parse_keys(item)[0].pieces == (
        KeyPiece("ORDER#"),
        KeyPiece("a b#c", "order_id", "a b#c"),
    )


def test_binary_and_number_keys_are_shown() -> None:
    """Keys that are not text are shown as stored."""
    readings = Recogniser({None: ("n", "b")}).parse_keys(
        {"n": {"N": "12"}, "b": {"B": "AAE="}, "x": {"S": "y"}}
    )

    assert [reading.pieces[0].text for reading in readings] == ["12", "AAE="]


def test_a_thousand_items_cost_milliseconds(demo: Any) -> None:
    """Recognising a page of rows is no part of what a person waits for."""
    items, described = demo
    name = "prod-tickets-unified"
    recogniser = Recogniser(layout_keys(parse_layout(described[name])), designs()[name])
    page = (items[name] * 20)[:1000]

    began = time.perf_counter()
    for item in page:
        recogniser.recognise(item)
        recogniser.parse_keys(item)

    assert time.perf_counter() - began < 0.1  # about 8 ms; ten times that on a busy machine
