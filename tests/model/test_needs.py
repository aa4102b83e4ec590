"""Needs: access patterns without keys, declared or taken off a design; and what the tools are told besides."""

from __future__ import annotations

from datetime import datetime
from types import ModuleType
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import Field

from tavola.model import (
    AccessPattern,
    Attr,
    Collection,
    Consumer,
    Entity,
    Given,
    Gsi,
    ModelError,
    Need,
    PrimaryKey,
    Query,
    Route,
    Scaling,
    Sort,
    Table,
    WritePattern,
    attr,
    member,
    sort,
)
from tavola.model.document import DocumentRefused, design_of, needs_of, read_document, write_document


class Shop(
    Table,
    stream="NEW_IMAGE",
    read_units=5,
    write_units=5,
    scaling=Scaling(read_max=100, write_max=50),
    replicas=("eu-west-1",),
    consumers=(Consumer("counter", handler="shop.counter", filters=({"eventName": ["INSERT"]},)),),
):
    by_state = Gsi(pk="gpk", sk="gsk", projection=("state", "placed"))


class Order(
    Entity, table=Shop, items=5_000, writes=(WritePattern("pay", "update", ("state",), adds=("count",)),)
):
    customer: Attr[str] = attr(distinct=100, tenant=True)
    order: Attr[str]
    state: Attr[Literal["new", "paid"]] = attr(default="new")
    placed: Attr[datetime | None] = attr(default=None)
    note: Attr[Annotated[str, Field(max_length=80)] | None] = attr(default=None, typical_bytes=40)
    count: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Order"], pk="CUSTOMER#{customer}", sk="ORDER#{order}"):
        customer: str
        order: str

    class Unpaid(
        Query["OrderLine"],
        on=Shop.by_state,
        pk="UNPAID",
        sk="{placed}",
        members={"state": "new"},
        sparse=True,
        access=AccessPattern("unpaid orders", per_second=2, items=10, descending=True),
    ):
        placed: Sort[datetime] = sort()


class OrderLine(Entity):
    state: Attr[Literal["new", "paid"]]
    placed: Attr[datetime | None]


class Customer(Entity, table=Shop):
    customer: Attr[str]

    class Key(PrimaryKey["Customer"], pk="CUSTOMER#{customer}", sk="PROFILE"):
        customer: str


class Everything(Collection, pk="CUSTOMER#{customer}"):
    customer: str
    who: Customer | None = member()
    orders: list[Order] = member()


DESIGN = design_of(Shop)
NEEDS = {need.name: need for need in needs_of(DESIGN)}


def test_what_tools_are_told_stands_in_the_design() -> None:
    """How many values, how large, how long, whose, how many items, who reads the stream: as it was declared."""
    [table] = DESIGN.tables
    order = table.entity("Order")
    customer, note = order.field("customer"), order.field("note")

    assert (customer.distinct, customer.values, customer.tenant) == (100, 100, True)
    assert (note.typical_bytes, note.length_max) == (40, 80)
    assert order.field("state").values == 2
    assert order.items == 5_000
    assert order.writes[0].adds == ("count",)
    assert table.settings.scaling == Scaling(100, 50)
    assert table.settings.replicas == ("eu-west-1",)
    assert [consumer.name for consumer in table.consumers] == ["counter"]
    assert read_document(write_document(DESIGN)) == DESIGN


def test_a_key_is_one_item() -> None:
    """Of an entity's own key remains that all its fields are given and one item comes back."""
    need = NEEDS["Order.Key"]

    assert (need.equal_fields, need.single, need.order) == (("customer", "order"), True, ())


def test_a_query_keeps_what_it_gives_and_its_order() -> None:
    """Of a query remain its fields, its order, who may be in the index at all, and what its view reads."""
    need = NEEDS["Order.Unpaid"]

    assert need.equal_fields == ()
    assert need.constants == (Given("state", "=", {"S": "new"}), Given("placed", "exists"))
    assert need.order == ("placed",)
    assert need.access is not None
    assert (need.access.reads, need.access.per_second) == (("state", "placed"), 2)


def test_a_collection_gives_several() -> None:
    """Of a collection remains that several entities come together."""
    assert (NEEDS["Everything"].entities, NEEDS["Everything"].equal_fields) == (
        ("Customer", "Order"),
        ("customer",),
    )


def test_a_module_declares_needs_beside_entities_without_keys() -> None:
    """What has no key yet is a view, and a need says how it will be asked for."""

    class Sale(Entity, items=10, writes=(WritePattern("sell", "put"),)):
        shop: Attr[str]
        at: Attr[datetime]

    module = ModuleType("sales")
    Sale.__module__ = "sales"
    module.__dict__.update(
        Sale=Sale,
        of_shop=Need("sales of a shop", Sale, "shop", "at"),
        late=Need("late sales", "Sale", (Given("at", ">"),)),
    )

    design = design_of(module)

    assert [(view.name, view.items, len(view.writes)) for view in design.views] == [("Sale", 10, 1)]
    assert [(need.name, need.entities, need.equal_fields, need.order) for need in design.needs] == [
        ("sales of a shop", ("Sale",), ("shop",), ("at",)),
        ("late sales", ("Sale",), (), ()),
    ]
    assert design.needs[1].range_conditions == (Given("at", ">"),)
    assert read_document(write_document(design)) == design


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Given("at", cast(Any, "~")), "'~' is not an operator; use one of =, <, <=, >, >=, between, begins_with, in,"),
        (lambda: Route(cast(Any, "look")), "'look' is not an operation; use one of get, batch_get, query, scan"),
        (lambda: Need("nothing", ()), "entities is empty; name the entity that is returned"),
        (lambda: Need("wrong", "Sale", access=AccessPattern("wrong", per_second=-1)), r"Need\('wrong'\) 'wrong': per_second=-1 is not a rate; use 0 or more"),
        (lambda: Need("wrong", "Sale", access=AccessPattern("wrong", skew=-1)), r"Need\('wrong'\) 'wrong': skew=-1 is not a valid exponent; use 0 for even traffic"),
        (lambda: Need("wrong", "Sale", access=AccessPattern("wrong", items=2, returned=3)), r"Need\('wrong'\) 'wrong': returned=3 must be between 0 and items=2: it is how many"),
        (lambda: Scaling(10, 10, read_min=20), "no range"),
        (lambda: Scaling(10, 10, target=95), "target=95 is out of range; use 20 to 90 percent"),
        (lambda: attr(distinct=0), "distinct=0 is too low; use 1 or more, or remove it"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make: Any, told: str) -> None:
    """A condition, a route, an amount that there cannot be is refused where it is declared."""
    with pytest.raises(ModelError, match=told):
        make()


def test_scaling_is_of_provisioned_units() -> None:
    """A table on demand has no units that could follow its traffic."""
    with pytest.raises(ModelError, match="provisioned"):
        type("Wrong", (Table,), {}, scaling=Scaling(10, 10))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"entities": ["Nobody"]}, r"\$\.needs\[0\]\.entities\[0\]"),
        ({"where": [{"field": "nothing"}]}, r"\$\.needs\[0\]\.where\[0\]\.field"),
        ({"order": ["nothing"]}, r"\$\.needs\[0\]\.order\[0\]"),
        ({"access": {"title": "x", "per_second": -1}}, r"\$\.needs\[0\]"),
    ],
)
def test_a_need_names_what_is_there(change: dict[str, Any], path: str) -> None:
    """In a document a need of what is not there is refused with its path."""
    document = write_document(DESIGN)
    document["needs"] = [{"name": "asked", "entities": ["Order"], **change}]

    with pytest.raises(DocumentRefused, match=path):
        read_document(document)


def test_amounts_of_a_document_are_held_to_what_there_can_be() -> None:
    """A rate below nothing is refused in a pattern and in a write as it is in a class."""
    for place in (
        ("primary", {"access": {"title": "x", "per_second": -1}}),
        ("writes", [{"title": "x", "kind": "put", "items": 0}]),
    ):
        document = write_document(DESIGN)
        entity = document["tables"][0]["entities"][0]
        entity[place[0]] = {**entity["primary"], **place[1]} if isinstance(place[1], dict) else place[1]

        with pytest.raises(DocumentRefused, match=r"entities\[0\]"):
            read_document(document)
