"""The units that are foretold are those that the engine bills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import pytest

from tavola import (
    AccessPattern,
    Attr,
    Collection,
    Connection,
    Entity,
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
    member,
    sort,
)
from tavola.design.cost import collection_units, need_units, pattern_units, write_pattern_units
from tavola.model.document import EntityDesign, PatternDesign, TableDesign, design_of
from tavola.values import item_size

BODY = "x" * 2_600
ITEM_BYTES = 3_000


class Shelf(Table, name="shelf"):
    """A table with an index of each kind."""

    by_state = Gsi(pk="g1pk", sk="g1sk")
    by_owner = Gsi(pk="g2pk", sk="g2sk", projection=("owner", "state"))
    taken = Gsi(pk="g3pk", sk="g3sk", projection="KEYS_ONLY")
    by_rank = Lsi(sk="l1sk", projection="KEYS_ONLY")


class Book(
    Entity,
    table=Shelf,
    writes=(
        WritePattern("put", "put", item_bytes=ITEM_BYTES),
        WritePattern("change state", "update", ("state",), item_bytes=ITEM_BYTES),
        WritePattern("change owner", "update", ("owner",), item_bytes=ITEM_BYTES),
        WritePattern("take", "update", ("taken_by",), item_bytes=ITEM_BYTES),
        WritePattern("change body", "update", ("body",), item_bytes=ITEM_BYTES),
        WritePattern("put, transacted", "put", item_bytes=ITEM_BYTES, transactional=True),
        WritePattern("remove", "delete", item_bytes=ITEM_BYTES),
    ),
):
    """An item of about 3,000 bytes in four indexes."""

    isbn: Attr[str]
    state: Attr[str] = attr(default="new")
    owner: Attr[str] = attr(default="library")
    rank: Attr[int] = attr(default=1)
    taken_by: Attr[str | None] = attr(default=None)
    body: Attr[str] = attr(default=BODY)

    class Key(
        PrimaryKey["Book"],
        pk="BOOK#{isbn}",
        sk="BOOK",
        access=AccessPattern("one", item_bytes=ITEM_BYTES),
    ):
        isbn: str

    class ByState(
        Query["Book"],
        on=Shelf.by_state,
        pk="STATE#{state}",
        sk="{rank:04}#{isbn}",
        shards=3,
        access=AccessPattern("by state", items=4, item_bytes=ITEM_BYTES),
    ):
        state: str
        rank: Sort[int] = sort()

    class ByOwner(
        Query["Book"],
        on=Shelf.by_owner,
        pk="OWNER#{owner}",
        sk="{isbn}",
        hydrate=True,
        access=AccessPattern("by owner", items=4),
    ):
        owner: str

    class Taken(Query["Book"], on=Shelf.taken, pk="TAKEN", sk="{taken_by}#{isbn}", sparse=True, hydrate=True):
        taken_by: Sort[str] = sort()

    class ByRank(Query["Book"], on=Shelf.by_rank, sk="{rank:04}", hydrate=True):
        isbn: str
        rank: Sort[int] = sort()


class Chapter(Entity, table=Shelf):
    """A large item in the partition of its book."""

    isbn: Attr[str]
    number: Attr[int]
    rank: Attr[int]
    body: Attr[str] = attr(default="z" * 2_600)

    class Key(PrimaryKey["Chapter"], pk="BOOK#{isbn}", sk="CHAPTER#{number:04}"):
        isbn: str
        number: int

    class ByRank(
        Query["Chapter"],
        on=Shelf.by_rank,
        sk="{rank:04}",
        hydrate=True,
        access=AccessPattern("by rank", items=3, item_bytes=2_700, consistent=True),
    ):
        isbn: str
        rank: Sort[int] = sort()


class WholeBook(
    Collection, pk="BOOK#{isbn}", access=AccessPattern("a book with its chapters", items=4, item_bytes=2_775)
):
    """A book with its chapters."""

    isbn: str
    book: Book | None = member()
    chapters: list[Chapter] = member()


class Reader(
    Entity,
    table=Shelf,
    writes=(
        WritePattern("put", "put", item_bytes=5_000),
        WritePattern("rename", "update", ("email",), item_bytes=5_000),
        WritePattern("rename, transacted", "update", ("email",), item_bytes=5_000, transactional=True),
        WritePattern("remove", "delete", item_bytes=5_000),
    ),
):
    """A large item with a value that is unique."""

    name: Attr[str]
    email: Attr[str] = attr(unique=True)
    body: Attr[str] = attr(default="w" * 4_850)

    class Key(PrimaryKey["Reader"], pk="READER#{name}", sk="READER"):
        name: str


class Loan(Entity, table=Shelf, writes=(WritePattern("move on", "update", ("state",), item_bytes=300),)):
    """A small item that is in an index in three of its four states."""

    loan_id: Attr[str]
    state: Attr[Literal["new", "out", "late", "back"]] = attr(default="new")

    class Key(PrimaryKey["Loan"], pk="LOAN#{loan_id}", sk="LOAN"):
        loan_id: str

    class Open(
        Query["Loan"],
        on=Shelf.by_owner,
        pk="LOANS#{state}",
        sk="{loan_id}",
        members={"state": ("new", "out", "late")},
        hydrate=True,
    ):
        state: Literal["new", "out", "late", "back"]


class Meter:
    """A backend that has everything billed, and adds it up by place."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.billed: dict[str | None, float] = {}

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, and note what it took."""
        metered = operation not in ("CreateTable", "DescribeTable", "UpdateTimeToLive", "ListTables")
        answer: dict[str, Any] = self.inner.call(
            operation, {**request, "ReturnConsumedCapacity": "INDEXES"} if metered else request
        )
        told = answer.get("ConsumedCapacity", [])
        for each in told if isinstance(told, list) else [told]:
            self._add(each)
        return answer

    def _add(self, told: Mapping[str, Any]) -> None:
        places = {None: told.get("Table", {"CapacityUnits": 0.0})}
        places |= told.get("GlobalSecondaryIndexes", {}) | told.get("LocalSecondaryIndexes", {})
        for name, units in places.items():
            self.billed[name] = self.billed.get(name, 0.0) + units["CapacityUnits"]

    def close(self) -> None:
        """Close what is behind it."""
        self.inner.close()


@pytest.fixture
def meter() -> Iterator[Meter]:
    """A meter before an empty engine."""
    with connect("memory:") as opened:
        yield Meter(opened.backend)


@pytest.fixture
def db(meter: Meter) -> Connection:
    """A connection through the meter, with the table made."""
    db = Connection(meter, "metered")
    db.create_tables(Shelf)
    return db


@pytest.fixture
def table() -> TableDesign:
    """The design of the shelf."""
    return design_of(Shelf).tables[0]


def billed(meter: Meter) -> dict[str | None, float]:
    """Return what was billed since the last time."""
    told = {place: units for place, units in meter.billed.items() if units}
    meter.billed.clear()
    return told


def foretold_write(table: TableDesign, title: str) -> dict[str | None, float]:
    """Return the units of a write pattern by place."""
    entity = table.entity("Book")
    write = next(each for each in entity.writes if each.title == title)
    return {units.index: units.read + units.write for units in write_pattern_units(table, entity, write)}


def foretold_read(table: TableDesign, name: str, **more: Any) -> dict[str | None, float]:
    """Return the units of a pattern by place; further words are of its access."""
    entity: EntityDesign = table.entity("Book")
    patterns: list[PatternDesign] = [each for each in (entity.primary, *entity.patterns) if each is not None]
    pattern = next(each for each in patterns if each.name == name)
    assert pattern.access is not None
    pattern = replace(pattern, access=replace(pattern.access, **more))
    if name == "Key":
        entity = replace(entity, primary=pattern)
    return {units.index: units.read for units in pattern_units(table, entity, pattern)}


def test_writes_take_what_is_foretold(db: Connection, meter: Meter, table: TableDesign) -> None:
    """Each kind of write is billed at each place as it was foretold: new, moved, changed, untouched."""
    book = Book(isbn="1")
    billed(meter)

    db.put(book)
    assert billed(meter) == foretold_write(table, "put")
    book = db.update(book, Book.state.set("old"))
    assert billed(meter) == foretold_write(table, "change state")
    book = db.update(book, Book.owner.set("reader"))
    assert billed(meter) == foretold_write(table, "change owner")
    db.update(book, Book.body.set("y" * len(BODY)))
    assert billed(meter) == foretold_write(table, "change body")


def test_setting_what_lets_into_an_index_takes_what_is_foretold(
    db: Connection, meter: Meter, table: TableDesign
) -> None:
    """Of ten items one is in the sparse index already: its entry is moved, for two, and the others enter, for one."""
    books = [Book(isbn=f"{number}", taken_by="one" if number == 0 else None) for number in range(10)]
    for book in books:
        db.put(book)
    billed(meter)

    for book in books:
        db.update(book, Book.taken_by.set("another"))

    told = {place: units / 10 for place, units in billed(meter).items()}
    assert told == foretold_write(table, "take")


def test_new_items_are_in_a_sparse_index_as_often_as_is_said(
    db: Connection, meter: Meter, table: TableDesign
) -> None:
    """Where no update lets items into a sparse index later, a tenth of those that are put are in it."""
    entity = table.entity("Book")
    put, *_ = entity.writes
    alone = replace(entity, writes=(put,))
    billed(meter)

    for number in range(10):
        db.put(Book(isbn=f"{number}", taken_by="one" if number == 0 else None))

    told = {place: units / 10 for place, units in billed(meter).items()}
    assert told == {units.index: units.write for units in write_pattern_units(table, alone, put)}


def test_a_transaction_takes_what_is_foretold(db: Connection, meter: Meter, table: TableDesign) -> None:
    """A transaction pays twice on the table, and once on its indexes."""
    billed(meter)

    with db.transaction() as together:
        together.put(Book(isbn="1"))

    assert billed(meter) == foretold_write(table, "put, transacted")


def test_a_deletion_takes_what_is_foretold(db: Connection, meter: Meter, table: TableDesign) -> None:
    """A deletion pays on the table and on every index that held the item; of a sparse one, a tenth of them do."""
    told: dict[str | None, float] = {}
    for number in range(10):
        db.put(Book(isbn=f"{number}", taken_by="reader" if number == 0 else None))
    billed(meter)

    for number in range(10):
        db.delete(Book.Key(isbn=f"{number}"))
    for place, units in billed(meter).items():
        told[place] = units / 10

    assert told == foretold_write(table, "remove")


def test_reads_take_what_is_foretold(db: Connection, meter: Meter, table: TableDesign) -> None:
    """A get, a query over shards and a query whose items are fetched whole are billed as they were foretold."""
    for number in range(24):
        db.put(Book(isbn=f"{number:04}", rank=number))
    billed(meter)

    db.get(Book.Key(isbn="0001"))
    assert billed(meter) == foretold_read(table, "Key")
    db.query(Book.ByState(state="new"), limit=3)  # one more is asked for, to know whether it goes on
    assert billed(meter) == foretold_read(table, "ByState")
    db.query(Book.ByOwner(owner="library"), limit=4)
    told = foretold_read(table, "ByOwner")
    got = billed(meter)
    assert got[None] == told[None]  # of the index one entry more is read, to know whether it goes on
    assert got["by_owner"] == told["by_owner"]
    db.get(Book.Key(isbn="0001"), consistent=True)
    assert billed(meter) == foretold_read(table, "Key", consistent=True)
    db.get_together(Book.Key(isbn="0001"))
    assert billed(meter) == foretold_read(table, "Key", transactional=True)
    db.get_many([Book.Key(isbn=f"{number:04}") for number in range(7)])
    assert billed(meter) == foretold_read(table, "Key", items=7)


def test_a_local_index_fetches_what_it_lacks(db: Connection, meter: Meter) -> None:
    """A query of a local index that asks for more than its entries have pays for each item, consistently too."""
    for rank in range(3):
        db.put(Chapter(isbn="1", number=rank, rank=rank))
    shelf = design_of(Shelf).tables[0]
    chapter = shelf.entity("Chapter")
    pattern = next(each for each in chapter.patterns if each.name == "ByRank")
    billed(meter)

    db.call(
        "Query",
        {
            "TableName": "shelf",
            "IndexName": "by_rank",
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": "BOOK#1"}},
            "Select": "ALL_ATTRIBUTES",
            "ConsistentRead": True,
        },
    )

    told = {units.index: units.read for units in pattern_units(shelf, chapter, pattern)}
    assert billed(meter) == told
    assert told == {"by_rank": 1.0, None: 3.0}


def test_a_collection_takes_what_is_foretold(db: Connection, meter: Meter) -> None:
    """A book with its chapters is one query, whose bytes are added up before they are rounded."""
    db.put(Book(isbn="1"))
    for number in range(3):
        db.put(Chapter(isbn="1", number=number, rank=number))
    shelf = design_of(Shelf).tables[0]
    billed(meter)

    db.collect(WholeBook(isbn="1"))

    [told] = collection_units(shelf, shelf.collections[0])
    assert billed(meter) == {None: told.read}
    assert told.read == 1.5  # 3,000 bytes and three times 2,700


def test_a_scan_takes_what_is_foretold(db: Connection, meter: Meter) -> None:
    """A need that is asked by a scan reads all that is there."""
    for number in range(24):
        db.put(Book(isbn=f"{number:04}"))
    told = design_of(Shelf)
    key = {"pk": {"S": "BOOK#0001"}, "sk": {"S": "BOOK"}}
    size = item_size(db.call("GetItem", {"TableName": "shelf", "Key": key})["Item"])
    access = AccessPattern("all", items=24, item_bytes=size)
    scanned = Need("all", "Book", access=access, route=Route("scan"))
    billed(meter)

    db.call("Scan", {"TableName": "shelf"})

    assert billed(meter) == {None: sum(units.read for units in need_units(told, scanned))}


@pytest.mark.parametrize(
    ("title", "alone"), [("put", True), ("rename", True), ("rename, transacted", False), ("remove", True)]
)
def test_a_unique_value_takes_what_is_foretold(db: Connection, meter: Meter, title: str, alone: bool) -> None:
    """Guards come and go with an item that is read first, and an update that is not in a transaction of others reads again."""
    shelf = design_of(Shelf).tables[0]
    reader = shelf.entity("Reader")
    write = next(each for each in reader.writes if each.title == title)
    known = Reader(name="a", email="a@b.example")
    if title != "put":
        db.put(known)
    billed(meter)

    if title == "put":
        db.put(known)
    elif title == "remove":
        db.delete(known)
    elif alone:
        db.update(known, Reader.email.set("c@d.example"))
    else:
        with db.transaction() as together:
            together.update(known, Reader.email.set("c@d.example"))

    told = {units.index: units.read + units.write for units in write_pattern_units(shelf, reader, write)}
    assert billed(meter) == told


def test_every_change_of_state_takes_what_is_foretold(db: Connection, meter: Meter) -> None:
    """All twelve changes between four states, three of them in an index, take together twelve times what one is said to."""
    shelf = design_of(Shelf).tables[0]
    loan = shelf.entity("Loan")
    states: tuple[Literal["new", "out", "late", "back"], ...] = ("new", "out", "late", "back")
    for before in states:
        for after in states:
            if before != after:
                db.put(Loan(loan_id=f"{before}-{after}", state=before))
    billed(meter)

    for before in states:
        for after in states:
            if before != after:
                db.update(Loan.Key(loan_id=f"{before}-{after}"), Loan.state.set(after))

    [write] = [each for each in loan.writes if each.title == "move on"]
    told = {units.index: 12 * units.write for units in write_pattern_units(shelf, loan, write)}
    assert billed(meter) == pytest.approx(told)
    assert told == {None: 12.0, "by_owner": pytest.approx(18.0)}
