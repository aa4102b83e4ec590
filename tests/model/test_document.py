"""The design as data and as a JSON document: whole, the same when read back, refused with its path."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tavola.model import (
    AccessPattern,
    Attr,
    Collection,
    Entity,
    Gsi,
    Lsi,
    PrimaryKey,
    Query,
    Shards,
    Sort,
    Table,
    WritePattern,
    attr,
    member,
    sort,
    upgrade,
)
from tavola.model.document import (
    Design,
    DocumentRefused,
    check_references,
    design_document,
    design_of,
    document_schema,
    read_document,
    write_document,
)
from tests.client import desk

Change = Callable[[dict[str, Any]], None]


class State(Enum):
    NEW = "new"
    PAID = "paid"
    SENT = "sent"


class Line(BaseModel):
    sku: str
    count: int


class Shop(
    Table,
    name="prod-shop",
    pk="PK",
    sk="SK",
    ttl="expires_at",
    tag="kind",
    delimiter="|",
    stream="NEW_IMAGE",
    recovery=True,
    recovery_days=7,
    encryption="alias/shop",
    table_class="STANDARD_INFREQUENT_ACCESS",
    deletion_protection=True,
    read_units=5,
    write_units=10,
    tags={"team": "orders"},
):
    """Orders and who placed them."""

    by_day = Gsi(pk="G1PK", sk="G1SK", projection=("total", "state"), name="ByDay")
    unsent = Gsi(pk="G2PK", sk="G2SK")
    native = Gsi(pk=("customer", "state"), sk=("placed_on", "number"), projection="KEYS_ONLY")
    by_total = Lsi(sk="total")


class Order(
    Entity,
    table=Shop,
    tag="order",
    version=2,
    stale="refuse",
    writes=(WritePattern("pay", "update", ("state",), per_second=2.5, transactional=True),),
):
    """An order."""

    customer: Attr[str]
    number: Attr[int]
    state: Attr[State] = attr(default=State.NEW)
    total: Attr[int] = attr(default=0, description="In cents.")
    placed_on: Attr[date]
    mail: Attr[str] = attr(name="e", unique=True, within=("customer",))
    lines: Attr[list[Line]] = attr(default_factory=list)
    grade: Attr[Literal[1, 2, 3] | None] = attr(default=None)
    revision: Attr[int] = attr(default=0, lock=True)

    class Key(
        PrimaryKey["Order"],
        pk="CUSTOMER|{customer}",
        sk="ORDER|{number:08}",
        access=AccessPattern("One order", per_second=50, items=1, item_bytes=900, consistent=True),
    ):
        customer: str
        number: int

    class OfCustomer(Query["Order"], on=Key):
        customer: str
        number: Sort[int] = sort()

    class OfDay(
        Query["OrderRef"],
        on=Shop.by_day,
        pk="DAY|{placed_on}",
        sk="{number:08}",
        shards=Shards(4, reading=8, of=("customer",)),
    ):
        placed_on: date
        number: Sort[int] = sort()

    class Unsent(
        Query["Order"],
        on=Shop.unsent,
        pk="UNSENT",
        sk="{placed_on}|{grade}",
        sparse=True,
        members={"state": (State.NEW, State.PAID)},
        access=AccessPattern("To be sent", per_second=0.1, peak_per_second=3),
    ):
        placed_on: Sort[date] = sort()
        grade: Sort[Literal[1, 2, 3]] = sort()

    class OfState(Query["Order"], on=Shop.native, hydrate=True):
        customer: str
        state: State
        placed_on: Sort[date] = sort()
        number: Sort[int] = sort()

    @staticmethod
    @upgrade(1)
    def _graded(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "grade": None}


class OrderRef(Entity):
    """What an index tells of an order."""

    number: Attr[int]
    placed_on: Attr[date]
    total: Attr[int]


class Customer(Entity, table=Shop):
    """Who orders."""

    customer: Attr[str]
    since: Attr[datetime]
    expires_at: Attr[datetime | None] = attr(default=None)

    class Key(PrimaryKey["Customer"], pk="CUSTOMER|{customer}", sk="PROFILE"):
        customer: str


class Account(Collection, pk="CUSTOMER|{customer}", access=AccessPattern("The account page", items=20)):
    """A customer with all orders."""

    customer: str
    profile: Customer | None = member()
    orders: list[Order] = member()


class Counters(Table, name="prod-counters", pk="name", sk=None):
    """A table of its own, with a key of one attribute."""


class Counter(Entity, table=Counters):
    name: Attr[str]
    value: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Counter"]):
        name: str


DESIGNS: list[Any] = [(desk,), (Shop, Counters), (desk.Desk, Shop), ()]


def _document() -> dict[str, Any]:
    return design_document(Shop, Counters)


@pytest.mark.parametrize("declarations", DESIGNS)
def test_a_design_comes_back_from_its_document(declarations: tuple[Any, ...]) -> None:
    """read(write(design)) is the design, through the text of JSON too."""
    design = design_of(*declarations)

    document = write_document(design)

    assert read_document(document) == design
    assert read_document(json.loads(json.dumps(document))) == design
    assert write_document(read_document(document)) == document


def test_a_document_is_written_in_one_order() -> None:
    """The same design gives the same text, so that two documents can be compared line by line."""
    assert json.dumps(_document()) == json.dumps(_document())
    assert list(_document()) == ["format", "version", "tables", "views"]
    assert [entity["name"] for entity in _document()["tables"][0]["entities"]] == ["Order", "Customer"]


def test_a_module_is_a_design() -> None:
    """The tables, views and collections that a module declares are found in it."""
    design = design_of(desk)

    assert [table.label for table in design.tables] == ["Desk"]
    assert [view.name for view in design.views] == ["TicketRef"]
    assert [collection.name for collection in design.tables[0].collections] == ["TicketFile"]
    assert design == design_of(desk.Desk) == design_of(desk.TicketFile) == design_of(desk.Ticket)


def test_a_design_holds_every_setting_of_a_table() -> None:
    """What a table was declared with is in the document, the defaults too."""
    settings = _document()["tables"][0]["settings"]

    assert settings == {
        "name": "prod-shop",
        "hash": "PK",
        "range": "SK",
        "ttl": "expires_at",
        "tag": "kind",
        "delimiter": "|",
        "stream": "NEW_IMAGE",
        "recovery": True,
        "recovery_days": 7,
        "encryption": "alias/shop",
        "table_class": "STANDARD_INFREQUENT_ACCESS",
        "deletion_protection": True,
        "read_units": 5,
        "write_units": 10,
        "tags": {"team": "orders"},
    }


def test_a_design_holds_what_tools_need_of_keys() -> None:
    """Templates as data, shards, membership and types are there without a class of the user's."""
    order = design_of(Shop).tables[0].entity("Order")
    day, unsent, native = order.keys
    document = _document()["tables"][0]

    assert document["key_types"] == {
        "PK": "S", "SK": "S", "G1PK": "S", "G1SK": "S", "G2PK": "S", "G2SK": "S",
        "customer": "S", "state": "S", "placed_on": "S", "number": "N", "total": "N",
    }  # fmt: skip
    assert document["entities"][0]["key"]["range"][0]["template"] == {
        "text": "ORDER|{number:08}",
        "delimiter": "|",
        "segments": ["ORDER|", {"field": "number", "spec": "08"}],
    }
    assert day.shards == Shards(4, reading=8, of=("customer",))
    assert day.fields == ("placed_on", "number", "customer")
    assert unsent.sparse
    assert unsent.members[0].values == ({"S": "new"}, {"S": "paid"})
    assert [source.field for source in native.sources] == ["customer", "state", "placed_on", "number"]
    assert order.field("grade").choices == (1, 2, 3)
    assert order.field("lines").type == "list[Line]"
    assert order.field("mail").within == ("customer",)
    assert order.version == 2
    assert order.primary is not None
    assert order.primary.access is not None
    assert order.primary.access.consistent


def test_templates_of_a_read_design_make_the_same_keys() -> None:
    """A design that was read renders keys as the classes do, without importing them."""
    table = read_document(_document()).tables[0]
    order = table.entity("Order")
    assert order.key is not None
    sort_key = order.bind_template(order.key.range[0])
    sharded = order.bind_template(order.keys[0].hash[0])

    assert sort_key is not None
    assert sort_key.render({"number": 7}) == "ORDER|00000007"
    assert sharded is not None
    assert sharded.render({"placed_on": date(2026, 3, 1), "__shard__": 3}) == "DAY|2026-03-01|0003"
    assert order.bind_template(order.keys[2].hash[0]) is None


def test_every_way_to_read_is_given_in_order() -> None:
    """Tools walk over the access patterns of all tables."""
    told = [f"{entity.name}.{pattern.name}" for _, entity, pattern in design_of(Shop, Counters).patterns()]

    assert told == [
        "Order.Key", "Order.OfCustomer", "Order.OfDay", "Order.Unsent", "Order.OfState", "Customer.Key",
        "Counter.Key",
    ]  # fmt: skip


def test_a_newer_document_is_refused_with_what_to_do() -> None:
    """A document of a later format is not half read: Tavola is to be updated."""
    document = _document() | {"version": 2, "tables": "of another shape"}

    with pytest.raises(
        DocumentRefused, match="newer than this Tavola, which reads 1; update Tavola"
    ) as refused:
        read_document(document)
    assert refused.value.place == "$.version"


def _set(path: str, value: Any) -> Change:
    """Return a change that puts a value at a path such as `tables.0.settings.ttl`; `...` takes it away."""
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))

    def change(document: dict[str, Any]) -> None:
        target: Any = document
        for step in steps:
            target = target[step]
        if value is ...:
            del target[last]
        else:
            target[last] = value

    return change


ORDER = "tables.0.entities.0"
REFUSED: list[tuple[Change, str, str]] = [
    (_set("format", "terraform"), "$.format", "'terraform' is not one of tavola-design"),
    (_set("version", 0), "$.version", "the first is 1"),
    (_set("version", "1"), "$.version", "a whole number"),
    (_set("tables", ...), "$.tables", "it is required"),
    (_set("tables", {}), "$.tables", "an array"),
    (_set("tables.0", None), "$.tables[0]", "expected an object, got null"),
    (_set("colour", "red"), "$.colour", "unknown member"),
    (_set("tables.0.a b", 1), "$.tables[0]['a b']", "unknown member"),
    (_set("tables.0.settings.recovery", 1), "$.tables[0].settings.recovery", "true or false"),
    (_set("tables.0.settings.recovery_days", True), "$.tables[0].settings.recovery_days", "a whole number"),
    (
        _set("tables.0.settings.stream", "ALL"),
        "$.tables[0].settings.stream",
        "'ALL' is not one of KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE, OLD_IMAGE",
    ),
    (_set("tables.0.settings.tags.team", 5), "$.tables[0].settings.tags.team", "text"),
    (_set("tables.1.settings.name", "prod-shop"), "$.tables[1].name", "taken"),
    (_set("tables.0.key_types.PK", ...), "$.tables[0].key_types", "'PK' of the table's key"),
    (_set("tables.0.key_types.PK", "SS"), "$.tables[0].key_types.PK", "'SS' is not one of B, N, S"),
    (_set("tables.0.key_types.PK", "N"), "$.tables[0].entities[0].key.hash[0].type", "not the type"),
    (_set("tables.0.indexes.0.projection", "SOME"), "$.tables[0].indexes[0].projection", "ALL, KEYS_ONLY"),
    (_set("tables.0.indexes.0.projection", ["a", 1]), "$.tables[0].indexes[0].projection[1]", "text"),
    (_set("tables.0.indexes.1.name", "ByDay"), "$.tables[0].indexes[1].name", "taken"),
    (_set(f"{ORDER}.key", ...), "$.tables[0].entities[0].key", "has a key"),
    (
        _set(f"{ORDER}.key.hash.0.attribute", "pk"),
        "$.tables[0].entities[0].key.hash",
        "its attributes are pk, but the key's are PK",
    ),
    (
        _set(f"{ORDER}.keys.0.index", "Other"),
        "$.tables[0].entities[0].keys[0].index",
        "unknown index 'Other'; the indexes are ByDay, unsent, native, by_total",
    ),
    (
        _set(f"{ORDER}.keys.0.shards.count", 0),
        "$.tables[0].entities[0].keys[0].shards",
        "0 is not a number of shards; use 1 to 10000",
    ),
    (
        _set(f"{ORDER}.keys.0.shards.of", ["who"]),
        "$.tables[0].entities[0].keys[0].shards.of",
        "'who' is not a field of the entity; the fields are customer, grade, lines,",
    ),
    (
        _set(f"{ORDER}.keys.1.members.0.values.0", {"S": 5}),
        "$.tables[0].entities[0].keys[1].members[0].values[0]",
        "5} is not an attribute value: Unexpected value type in payload",
    ),
    (
        _set(f"{ORDER}.key.hash.0.template.text", "CUSTOMER|{customer"),
        "$.tables[0].entities[0].key.hash[0].template.text",
        "unmatched {",
    ),
    (
        _set(f"{ORDER}.key.hash.0.template.text", "OTHER|{customer}"),
        "$.tables[0].entities[0].key.hash[0].template.segments",
        "they do not match the template 'OTHER|{customer}'; correct them, or leave them",
    ),
    (
        _set(f"{ORDER}.key.hash.0.template", {"text": "C|{who}", "delimiter": "|"}),
        "$.tables[0].entities[0].key.hash[0]",
        "'who' is not a field of the entity; the fields are customer, grade, lines,",
    ),
    (
        _set(f"{ORDER}.key.hash.0.template", {"text": "C|{customer:12}", "delimiter": "|"}),
        "$.tables[0].entities[0].key.hash[0].template",
        "12",
    ),
    (
        _set(f"{ORDER}.key.hash.0.field", "customer"),
        "$.tables[0].entities[0].key.hash[0]",
        "it needs either a field or a template",
    ),
    (_set(f"{ORDER}.fields.1.name", "customer"), "$.tables[0].entities[0].fields[1].name", "taken"),
    (
        _set(f"{ORDER}.fields.0.tags", ["X"]),
        "$.tables[0].entities[0].fields[0].tags[0]",
        "'X' is not one of B, BOOL, BS, L, M, N, NS, NULL, S, SS",
    ),
    (
        _set(f"{ORDER}.fields.0.key_kind", "rune"),
        "$.tables[0].entities[0].fields[0].key_kind",
        "unknown kind of key part 'rune'; use one of text, int, decimal, datetime, date,",
    ),
    (
        _set(f"{ORDER}.fields.2.choices", [0.5]),
        "$.tables[0].entities[0].fields[2].choices[0]",
        "or text, got",
    ),
    (_set(f"{ORDER}.fields.5.within", ["who"]), "$.tables[0].entities[0].fields[5].within", "not a field"),
    (_set(f"{ORDER}.patterns.0.result", "Nobody"), "$.tables[0].entities[0].patterns[0].result", "'Nobody'"),
    (
        _set(f"{ORDER}.patterns.1.index", "unsold"),
        "$.tables[0].entities[0].patterns[1].index",
        "unknown index",
    ),
    (
        _set(f"{ORDER}.patterns.1.index", "by_total"),
        "$.tables[0].entities[0].patterns[1].index",
        "add it to keys",
    ),
    (_set(f"{ORDER}.patterns.1.sorts", ["x"]), "$.tables[0].entities[0].patterns[1].sorts", "not a field"),
    (_set(f"{ORDER}.writes.0.changes", ["x"]), "$.tables[0].entities[0].writes[0].changes", "not a field"),
    (_set(f"{ORDER}.writes.0.kind", "scan"), "$.tables[0].entities[0].writes[0].kind", "delete, put, update"),
    (
        _set("tables.0.collections.0.parts", []),
        "$.tables[0].collections[0].parts",
        "they must be exactly the fields of the partition key",
    ),
    (_set("tables.0.collections.0.index", "x"), "$.tables[0].collections[0].index", "unknown index"),
    (
        _set("tables.0.collections.0.members.0.entity", "Counter"),
        "$.tables[0].collections[0].members[0].entity",
        "this table has no entity 'Counter'",
    ),
    (_set("views.0.key", {"hash": []}), "$.views[0].key", "a view has no key; give the entity a table"),
]


@pytest.mark.parametrize(("change", "path", "told"), REFUSED, ids=[path for _, path, _ in REFUSED])
def test_a_wrong_document_is_refused_with_its_path(change: Change, path: str, told: str) -> None:
    """The error leads to the member that is wrong and says what it should be."""
    document = deepcopy(_document())
    change(document)

    with pytest.raises(DocumentRefused) as refused:
        read_document(document)
    assert refused.value.place == path
    assert told in refused.value.problem


def test_what_is_no_document_is_refused() -> None:
    """Anything but an object is no design."""
    with pytest.raises(DocumentRefused, match=r"\[\] is not a design document, which is a JSON object"):
        read_document([])  # type: ignore[arg-type]


@pytest.mark.parametrize("declarations", DESIGNS)
def test_what_classes_declare_refers_to_what_is_there(declarations: tuple[Any, ...]) -> None:
    """A design from classes passes the checks that a document has to pass."""
    check_references(design_of(*declarations))


def test_an_empty_design_is_one() -> None:
    """No table is a design as well: a document begins somewhere."""
    assert design_of() == Design() == read_document({"format": "tavola-design", "version": 1, "tables": []})


def test_the_schema_describes_every_member() -> None:
    """Editors are told each member, whether it must be there and what it is otherwise."""
    schema = document_schema()
    table, entity, field = (schema["$defs"][name] for name in ("TableDesign", "EntityDesign", "FieldDesign"))

    assert schema["required"] == ["format", "version", "tables"]
    assert schema["properties"]["tables"]["items"] == {"$ref": "#/$defs/TableDesign"}
    assert set(table["properties"]) >= {"settings", "indexes", "entities", "collections", "key_types"}
    assert field["properties"]["required"]["default"] is True
    assert entity["additionalProperties"] is False
    json.dumps(schema)


def _members(schema: Any) -> set[str]:
    """Return the names of all members in a schema."""
    if isinstance(schema, list):
        return {name for each in schema for name in _members(each)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})) | {name for each in schema.values() for name in _members(each)}


def test_the_guide_tells_every_member() -> None:
    """A member that the guide does not know would be a secret."""
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "design-document.md"
    told = page.read_text(encoding="utf-8")

    assert [name for name in sorted(_members(document_schema())) if f"`{name}`" not in told] == []


def test_times_in_memberships_are_told_as_they_are_stored() -> None:
    """What decides membership is written as the attribute value that tools find in items."""

    class Log(Table):
        recent = Gsi(pk="gpk", sk="gsk")

    class Entry(Entity, table=Log):
        at: Attr[datetime]
        kept: Attr[bool]

        class Key(PrimaryKey["Entry"], pk="ENTRY", sk="{at}"):
            at: datetime

        class Recent(
            Query["Entry"],
            on=Log.recent,
            pk="RECENT",
            sk="{at}",
            members={"kept": True, "at": (datetime(2026, 1, 1, tzinfo=UTC), None)},
        ):
            at: Sort[datetime] = sort()

    (key,) = design_of(Log).tables[0].entities[0].keys

    assert key.members[0].values == ({"BOOL": True},)
    assert key.members[1].values == ({"S": "2026-01-01T00:00:00.000000Z"}, None)
    assert read_document(design_document(Log)) == design_of(Log)
