"""Explaining: requests and cost are estimated before an operation runs, and match when it does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tavola import (
    AccessPattern,
    Attr,
    Connection,
    Entity,
    Gsi,
    ItemMissing,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    sort,
)
from tavola.client.consumption import Units
from tavola.design.cost.capacity import pattern_units
from tavola.model.sizes import item_bytes
from tavola.model.survey import design_of
from tavola.prices import UnknownPriceBook
from tests.client.desk import Event, Ticket, TicketFile

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


class _Waited:
    """The explanations of an asynchronous client, waited for."""

    def __init__(self, face: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._face, self._loop = face, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._face, name)

        def call(*args: Any, **options: Any) -> Any:
            result = found(*args, **options)
            if asyncio.iscoroutine(result):
                return self._loop.run_until_complete(result)
            return _Waited(result, self._loop)

        return call


def explaining(db: Any) -> Any:
    """Return `db.explain`, waited for where it is asynchronous."""
    loop = getattr(db, "_loop", None)
    return db.explain if loop is None else _Waited(db.explain, loop)


@pytest.fixture
def explain(db: Connection) -> Any:
    """The desk's explanations, one test for both shells."""
    return explaining(db)


def ticket(**more: object) -> Ticket:
    """Return a ticket."""
    return Ticket(**{"ticket_id": "t1", "customer_id": "c1", "subject": "VPN", "created_at": AT, **more})  # type: ignore[arg-type]


def place(units: dict[tuple[str, str | None], Units], index: str | None) -> Units | None:
    """Return the units of one index, or of the table, whatever prefix the table's name has."""
    return next((found for (_, name), found in units.items() if name == index), None)


def test_nothing_is_written_by_an_explanation(db: Connection, explain: Any) -> None:
    """Explaining a put, a create, an update or a delete changes no item."""
    db.put(ticket())

    explain.put(ticket(subject="other"))
    explain.create(ticket(ticket_id="t2"))
    explain.update(Ticket.Key(ticket_id="t1"), Ticket.replies.add(1))
    explain.update(Ticket.Key(ticket_id="t1"), Ticket.status.set("closed"))
    explain.delete(Ticket.Key(ticket_id="t1"))

    assert db.get(Ticket.Key(ticket_id="t1")) == ticket()
    assert db.get(Ticket.Key(ticket_id="t2")) is None


def test_nothing_is_sent_by_an_explanation_of_a_read(db: Connection, explain: Any) -> None:
    """Explaining a read sends no request and consumes no units."""
    with db.measure() as spent:
        explain.get(Ticket.Key(ticket_id="t1"))
        explain.query(Ticket.ByStatus(status="open"))
        explain.scan(Ticket)
        explain.count(Ticket.ByCustomer(customer_id="c1"))
        explain.collect(TicketFile(ticket_id="t1"))

    assert spent.calls == 0


def test_a_put_estimates_the_table_and_every_index(db: Connection, explain: Any) -> None:
    """The estimate of a put, by table and index, equals the consumed capacity."""
    full = ticket(subject="x" * 2_500, assignee="ann", queue="vip")

    explanation = explain.put(full)
    done = explain.put(full, run=True)

    assert explanation.estimated == Units(writes=13.0)
    assert [
        place(explanation.estimated_by_index, index)
        for index in (None, "gsi1", "gsi2", "gsi3", "queue_index")
    ] == [Units(writes=units) for units in (3.0, 3.0, 3.0, 1.0, 3.0)]
    assert done.consumed == explanation.estimated
    assert done.consumed_by_index == explanation.estimated_by_index
    assert done.result == db.get(Ticket.Key(ticket_id="t1")) == full


def test_a_put_over_a_known_item_is_estimated_exactly(db: Connection, explain: Any) -> None:
    """An index entry that moves is paid twice, one that leaves once, and one that stays the same not at all."""
    db.put(before := ticket(subject="x" * 1_500, assignee="ann", queue="vip"))
    after = before.model_copy(update={"status": "closed", "assignee": None})

    explanation = explain.put(after, current=before)
    done = explain.put(after, run=True)

    assert [
        place(explanation.estimated_by_index, index)
        for index in (None, "gsi1", "gsi2", "gsi3", "queue_index")
    ] == [Units(writes=units) for units in (2.0, 4.0, 2.0, 2.0, 4.0)]
    assert done.consumed_by_index == explanation.estimated_by_index
    assert explanation.assumptions == ()


def test_an_update_that_must_read_shows_both_requests(db: Connection, explain: Any) -> None:
    """A key with fields outside the update needs a read first; both requests and a remedy are shown."""
    db.put(ticket(assignee="ann"))

    explanation = explain.update(Ticket.Key(ticket_id="t1"), Ticket.priority.set(1))

    assert [each.operation for each in explanation.requests] == ["GetItem", "UpdateItem"]
    assert explanation.operation == "UpdateItem"
    assert "gsi2sk" in explanation.requests[1].body["UpdateExpression"]
    assert any("read first" in warning and "created_at" in warning for warning in explanation.warnings)
    done = explain.update(Ticket.Key(ticket_id="t1"), Ticket.priority.set(1), run=True)
    assert done.consumed_by_index == explanation.estimated_by_index
    assert done.result.priority == 1


def test_an_update_that_needs_no_read_is_one_request(db: Connection, explain: Any) -> None:
    """An update that touches no key is one write; with the current entity its cost is exact."""
    db.put(stored := ticket(subject="x" * 3_000))

    explanation = explain.update(Ticket.Key(ticket_id="t1"), Ticket.replies.add(1), current=stored)
    done = explain.update(Ticket.Key(ticket_id="t1"), Ticket.replies.add(1), run=True)

    assert [each.operation for each in explanation.requests] == ["UpdateItem"]
    assert explanation.estimated == Units(
        writes=8.0
    )  # four for the table and for gsi1; the keys in gsi3 stay
    assert done.consumed_by_index == explanation.estimated_by_index


def test_an_update_of_a_missing_item_is_explained(explain: Any) -> None:
    """The explanation warns that the operation would be refused; running it raises."""
    explanation = explain.update(Ticket.Key(ticket_id="t0"), Ticket.status.set("closed"))

    assert explanation.warnings[0].startswith(
        "With the current item, it would fail: Ticket ticket_id='t0' does not exist"
    )
    with pytest.raises(ItemMissing):
        explain.update(Ticket.Key(ticket_id="t0"), Ticket.status.set("closed"), run=True)


def test_a_delete_is_estimated_by_the_entity(db: Connection, explain: Any) -> None:
    """A delete costs the stored size, in the table and in each index."""
    db.put(stored := ticket(subject="x" * 1_500))

    explanation = explain.delete(stored)
    done = explain.delete(stored, run=True)

    assert explanation.estimated == done.consumed == Units(writes=5.0)
    assert done.consumed_by_index == explanation.estimated_by_index


def test_a_get_is_half_a_unit_for_each_4_kb(db: Connection, explain: Any) -> None:
    """The item size can be passed; a consistent read costs twice as much, and the explanation says so."""
    db.put(ticket(subject="x" * 5_000))

    explanation = explain.get(Ticket.Key(ticket_id="t1"), item_bytes=5_300)
    consistent = explain.get(Ticket.Key(ticket_id="t1"), consistent=True, item_bytes=5_300)

    assert (
        explanation.estimated
        == explain.get(Ticket.Key(ticket_id="t1"), run=True).consumed
        == Units(reads=1.0)
    )
    assert consistent.estimated == Units(reads=2.0)
    assert any("costs twice" in warning for warning in consistent.warnings)


def test_a_query_names_its_index_and_its_partitions(explain: Any) -> None:
    """A sharded query reads every shard, and the explanation shows its minimum cost."""
    explanation = explain.query(
        Ticket.ByStatus(status="open").created_at.gte(AT), newest_first=True, limit=10
    )

    assert (explanation.operation, explanation.index, len(explanation.requests)) == ("Query", "gsi3", 8)
    assert {each.concurrent for each in explanation.requests} == {8}
    assert all(each.body["ScanIndexForward"] is False for each in explanation.requests)
    assert any("8 partitions at once" in warning for warning in explanation.warnings)


def test_the_filter_expression_trap_is_made_visible(db: Connection, explain: Any) -> None:
    """P1: a filter pays for all items read; the explanation shows items read, items returned and cost."""
    for number in range(100):
        status = "open" if number % 10 == 0 else "closed"
        db.put(ticket(ticket_id=f"t{number:03}", status=status, subject="x" * 700))

    trap = explain.query(Ticket.ByCustomer(customer_id="c1").where(Ticket.status == "open"), run=True)
    design = explain.query(Ticket.ByCustomer(customer_id="c1").status.eq("open"), run=True)
    whole = explain.query(Ticket.ByCustomer(customer_id="c1"), run=True)

    assert trap.result == design.result
    assert trap.consumed == whole.consumed == Units(reads=12.0)  # the filter did not reduce the cost
    assert design.consumed == Units(reads=1.5)
    assert (trap.waste.scanned, trap.waste.returned, trap.waste.units) == (100, 10, 10.5)
    assert trap.consumed.reads - trap.waste.units == design.consumed.reads
    assert design.waste is None
    assert "90 of 100 items" in trap.warnings[0]
    assert "an index key that contains status" in trap.warnings[0]
    assert (trap.usd_per_million, design.usd_per_million) == (Decimal("1.5"), Decimal("0.1875"))
    assert "filter     100 items read, 10 returned, 10.5 read units wasted" in str(trap)


def test_a_filter_is_warned_of_before_it_is_run(explain: Any) -> None:
    """The request alone is enough for the warning."""
    explanation = explain.query(Ticket.ByCustomer(customer_id="c1").where(Ticket.priority > 2))

    assert explanation.warnings[0].startswith("The filter on priority does not reduce the cost")


def test_a_count_pays_for_the_items_it_reads(db: Connection, explain: Any) -> None:
    """A count reads all items; without their sizes, the waste of a filter is estimated by item count."""
    for number in range(20):
        db.put(ticket(ticket_id=f"t{number:03}", priority=number, subject="x" * 1_000))

    explanation = explain.count(Ticket.ByCustomer(customer_id="c1").where(Ticket.priority < 5), run=True)

    assert explanation.result == 5
    assert explanation.consumed == explain.query(Ticket.ByCustomer(customer_id="c1"), run=True).consumed
    assert explanation.waste.units == pytest.approx(explanation.consumed.reads * 0.75)


def test_a_scan_is_warned_of(db: Connection, explain: Any) -> None:
    """A scan reads the whole table, also the items of other entities."""
    db.put(ticket())
    for number in range(30):
        db.put(Event(ticket_id="t1", at=AT + timedelta(minutes=number), event_id="e", kind="x" * 1_000))

    explanation = explain.scan(Ticket)
    done = explain.scan(Ticket, run=True)

    assert explanation.operation == "Scan"
    assert explanation.estimated is None
    assert explanation.usd_per_million is None
    assert explanation.warnings[0].startswith("A scan reads every item of ")
    assert done.result == [ticket()]
    assert (done.waste.scanned, done.waste.returned) == (31, 1)


def test_a_query_is_run_to_its_end(db: Connection, explain: Any) -> None:
    """Without a limit the whole answer is read, page by page, and all of it is counted."""
    for number in range(12):
        db.put(ticket(ticket_id=f"t{number:03}"))

    paged = explain.query(Ticket.ByCustomer(customer_id="c1"), page_size=5, run=True)
    limited = explain.query(Ticket.ByCustomer(customer_id="c1"), limit=5, run=True)

    assert len(paged.result) == 12
    assert [each.scanned for each in paged.requests] == [5, 5, 2]
    assert paged.consumed == Units(reads=1.5)
    assert len(limited.result) == 5


def test_a_collection_is_one_query(db: Connection, explain: Any) -> None:
    """Several entities of one partition come with one request."""
    db.put(ticket())
    db.put(Event(ticket_id="t1", at=AT, event_id="e", kind="opened"))

    explanation = explain.collect(TicketFile(ticket_id="t1"), run=True)

    assert [each.operation for each in explanation.requests] == ["Query"]
    assert explanation.result.ticket == ticket()
    assert explanation.consumed == Units(reads=0.5)


def test_a_batch_shows_every_request_and_pays_for_each_item(db: Connection, explain: Any) -> None:
    """Sixty puts are three requests; each item is rounded up by itself, and estimated exactly."""
    tickets = [ticket(ticket_id=f"t{number:03}", subject="x" * 700) for number in range(60)]

    explanation = explain.put_many(tickets)
    assert db.get(Ticket.Key(ticket_id="t000")) is None
    done = explain.put_many(tickets, run=True)

    assert [each.operation for each in explanation.requests] == ["BatchWriteItem"] * 3
    assert explanation.estimated == done.consumed == Units(writes=60 * 3.0)
    assert done.consumed_by_index == explanation.estimated_by_index
    assert (explanation.result, done.result) == (None, 60)


def test_a_batch_of_gets_and_one_of_deletes_are_explained(db: Connection, explain: Any) -> None:
    """Each key is one read; a delete by entity is charged by its size."""
    tickets = [ticket(ticket_id=f"t{number:03}", subject="x" * 1_700) for number in range(30)]
    db.put_many(tickets)
    keys = [Ticket.Key(ticket_id=f"t{number:03}") for number in range(30)]

    read = explain.get_many(keys, item_bytes=2_000)
    gone = explain.delete_many(tickets)

    assert read.estimated == explain.get_many(keys, run=True).consumed == Units(reads=15.0)
    assert gone.estimated == explain.delete_many(tickets, run=True).consumed == Units(writes=30 * 5.0)


def transacted(db: Any, fill: Callable[[Any], object], **wish: Any) -> Any:
    """Return the explanation of a transaction that a function fills."""
    loop = getattr(db, "_loop", None)
    if loop is None:
        with db.explain.transaction(**wish) as transaction:
            fill(transaction)
        return transaction.explanation

    async def filled() -> Any:
        async with db.explain.transaction(**wish) as transaction:
            fill(transaction)
        return transaction.explanation

    return loop.run_until_complete(filled())


def test_a_transaction_is_estimated_twice_on_the_table_and_once_on_its_indexes(db: Connection) -> None:
    """Nothing is written until the transaction runs; it then costs the estimate, by table and index."""
    full = ticket(subject="x" * 1_500)
    event = Event(ticket_id="t1", at=AT, event_id="e1", kind="opened")

    def fill(transaction: Any) -> None:
        transaction.create(full)
        transaction.put(event)
        transaction.check(Ticket.Key(ticket_id="t0"), when=Ticket.subject.not_exists())

    explanation = transacted(db, fill)
    assert db.get(Ticket.Key(ticket_id="t1")) is None
    done = transacted(db, fill, run=True)

    assert [each.operation for each in explanation.requests] == ["TransactWriteItems"]
    assert place(explanation.estimated_by_index, None) == Units(writes=2 * (2.0 + 1.0 + 1.0))
    assert place(explanation.estimated_by_index, "gsi1") == Units(writes=2.0)
    assert done.consumed_by_index == explanation.estimated_by_index
    assert any("A transaction costs twice" in warning for warning in explanation.warnings)
    assert db.get(Ticket.Key(ticket_id="t1")) == full


def test_a_transaction_that_must_read_is_estimated_by_the_items_read(db: Connection) -> None:
    """Items that its updates need are read, and make the estimate exact."""
    for number in range(3):
        db.put(ticket(ticket_id=f"t{number}", subject="x" * 1_000 * number))

    def fill(transaction: Any) -> None:
        for number in range(3):
            transaction.update(Ticket.Key(ticket_id=f"t{number}"), Ticket.status.set("closed"))

    explanation = transacted(db, fill)
    done = transacted(db, fill, run=True)

    assert [each.operation for each in explanation.requests] == ["BatchGetItem", "TransactWriteItems"]
    assert explanation.requests[1].estimate is not None
    assert done.requests[1].consumed == explanation.requests[1].estimate.by_owner


def test_reads_of_one_moment_cost_twice_a_consistent_read(db: Connection, explain: Any) -> None:
    """The estimate of a transaction of gets equals its consumed capacity."""
    db.put(ticket(subject="x" * 5_000))
    keys = [Ticket.Key(ticket_id="t1"), Event.Key(ticket_id="t1", at=AT, event_id="e")]

    explanation = explain.get_together(*keys, item_bytes=5_300)
    done = explain.get_together(*keys, run=True)

    assert explanation.estimated == Units(reads=8.0)
    assert done.consumed == Units(reads=6.0)  # a missing item costs the minimum
    assert done.result == [ticket(subject="x" * 5_000), None]


def test_running_is_measured_too(db: Connection, explain: Any) -> None:
    """A meter around an explanation counts the requests that the explanation runs."""
    with db.measure() as spent:
        done = explain.put(ticket(), run=True)

    assert Units(spent.reads, spent.writes) == done.consumed


def test_a_price_has_its_date_and_region(explain: Any) -> None:
    """Every price names its price book; another book can be chosen, and an unknown one is refused."""
    here = explain.put(ticket())
    there = explain.with_prices("ap-northeast-2").put(ticket())
    then = explain.with_prices("us-east-1", datetime(2024, 10, 31, tzinfo=UTC).date()).put(ticket())

    assert here.book.startswith("us-east-1, ")
    assert (here.usd_per_million, then.usd_per_million) == (Decimal("1.875"), Decimal("3.75"))
    assert there.book.startswith("ap-northeast-2, ")
    assert there.usd_per_million == Decimal("2.04")
    with pytest.raises(UnknownPriceBook, match="no price book for region 'moon-1'"):
        explain.with_prices("moon-1").put(ticket())


def test_a_region_without_a_price_book_is_reported(opened: Callable[..., Connection]) -> None:
    """A connection to such a region uses the default book and warns."""
    db = opened(region="sa-east-1")

    explanation = explaining(db).put(ticket())

    assert explanation.book.startswith("us-east-1, ")
    assert any("no price book for sa-east-1" in warning for warning in explanation.warnings)


class Shop(Table, table_class="STANDARD_INFREQUENT_ACCESS"):
    """A table with declared patterns, rarely read."""

    by_day = Gsi(pk="day", sk=None)


class Order(Entity, table=Shop, writes=(WritePattern("pay", "update", ("paid",), item_bytes=6_000),)):
    """An order."""

    order_id: Attr[str]
    day: Attr[str]
    paid: Attr[bool] = attr(default=False)

    class Key(
        PrimaryKey["Order"],
        pk="ORDER#{order_id}",
        sk="ORDER",
        access=AccessPattern("one order", item_bytes=9_000, consistent=True),
    ):
        order_id: str

    class OfDay(
        Query["Order"],
        on=Shop.by_day,
        pk="{day}",
        access=AccessPattern("orders of a day", items=50, item_bytes=1_000),
    ):
        day: str


def test_declared_sizes_make_the_estimate(opened: Callable[..., Connection]) -> None:
    """The sizes of access patterns are used without a deployed table, at the price of its table class."""
    explain = explaining(opened())

    one = explain.get(Order.Key(order_id="o1"))
    day = explain.query(Order.OfDay(day="2026-09-01"))
    paid = explain.update(Order.Key(order_id="o1"), Order.paid.set(True))

    assert (one.estimated, one.assumptions) == (Units(reads=3.0), ())
    assert one.usd_per_million == 3 * Decimal("0.155")
    assert day.estimated == Units(reads=6.5)
    assert place(paid.estimated_by_index, None) == Units(writes=6.0)
    assert place(paid.estimated_by_index, "by_day") == Units(writes=6.0)


def test_an_explanation_reads_as_a_block(db: Connection, explain: Any) -> None:
    """The text names the operation, the request, the units, the money and what to mind."""
    text = str(explain.put(ticket(subject="x" * 900), run=True)).splitlines()

    assert text[0] == "put Ticket ticket_id='t1'"
    assert text[1].startswith("  PutItem on ")
    assert text[1].endswith("Desk")
    assert any(line.strip().startswith("subject:") and "(900 characters)" in line for line in text)
    assert any(line.startswith("  estimated  5 write units") for line in text)
    assert any(line.startswith("  consumed   5 write units") for line in text)
    assert "  cost       3.125 USD per million calls, on demand (us-east-1, 2026-08-01)" in text


def test_an_explanation_is_a_document(explain: Any) -> None:
    """The JSON holds the whole request, the units by table and index, and money as text."""
    explanation = explain.put(ticket(subject="x" * 900))

    document = json.loads(explanation.json())

    assert document["requests"][0]["request"] == explanation.requests[0].body
    assert document["operation"] == "PutItem"
    assert document["estimated"]["write_units"] == 5.0
    assert {each["index"] for each in document["estimated"]["by_index"]} == {None, "gsi1", "gsi3"}
    assert document["usd_per_million"] == "3.125"
    assert document["prices"] == explanation.book
    assert document["consumed"] is None


class Club(Table, read_units=5, write_units=5):
    """A provisioned table."""

    by_mail = Gsi(pk="gsi1pk", sk="gsi1sk", projection="KEYS_ONLY")


class Guest(Entity, table=Club):
    """A guest with a unique address."""

    guest_id: Attr[str]
    mail: Attr[str] = attr(unique=True)
    story: Attr[str] = attr(default="")

    class Key(PrimaryKey["Guest"], pk="GUEST#{guest_id}", sk="GUEST"):
        guest_id: str

    class ByMail(Query["Guest"], on=Club.by_mail, pk="MAIL#{mail}", sk="{guest_id}", hydrate=True):
        mail: str
        guest_id: Sort[str] = sort()


@pytest.fixture
def club(opened: Callable[..., Connection]) -> Connection:
    """A connection with the club's table."""
    found = opened()
    found.create_tables(Club)
    return found


def test_a_unique_value_is_paid_in_the_same_transaction(club: Connection) -> None:
    """The guards of unique values are in the request, in the text and in the sum; they are in no index."""
    guest = Guest(guest_id="g1", mail="a@example.org")
    key = Guest.Key(guest_id="g1")

    created = explaining(club).create(guest)
    assert created.estimated_by_index == explaining(club).create(guest, run=True).consumed_by_index
    moved = explaining(club).update(key, Guest.mail.set("b@example.org"))
    done = explaining(club).update(key, Guest.mail.set("b@example.org"), run=True)

    assert created.estimated == Units(writes=2 * 2 + 1.0)
    assert moved.requests[1].estimate.by_owner == done.requests[1].consumed
    text = [line.strip() for line in str(moved).splitlines()]
    assert [line for line in text if line in ("Update:", "Put:", "Delete:")] == ["Update:", "Put:", "Delete:"]


def test_fetching_unprojected_attributes_is_explained(club: Connection) -> None:
    """A query of a KEYS_ONLY index also reads whole items; when run, both costs are reported."""
    club.put(guest := Guest(guest_id="g1", mail="a@example.org"))

    explanation = explaining(club).query(Guest.ByMail(mail="a@example.org"))
    done = explaining(club).query(Guest.ByMail(mail="a@example.org"), run=True)

    assert explanation.more.startswith("BatchGetItem for the entries found")
    assert [each.operation for each in done.requests] == ["Query", "BatchGetItem"]
    assert (done.consumed, done.result) == (Units(reads=1.0), [guest])


class Stall(Table):
    """A table whose indexes hold keys, some attributes, and whole items."""

    keys = Gsi(pk="g1pk", sk="g1sk", projection="KEYS_ONLY")
    some = Gsi(pk="g2pk", sk="g2sk", projection=("owner", "price"))
    whole = Gsi(pk="g3pk", sk="g3sk")


class Ware(Entity, table=Stall):
    """Something large that is found by its owner."""

    ware_id: Attr[str]
    owner: Attr[str]
    price: Attr[int] = attr(default=1)
    text: Attr[str] = attr(default="x" * 2_900)

    class Key(PrimaryKey["Ware"], pk="WARE#{ware_id}", sk="WARE"):
        ware_id: str

    class Keyed(
        Query["Ware"],
        on=Stall.keys,
        pk="OWNER#{owner}",
        sk="{ware_id}",
        hydrate=True,
        access=AccessPattern("wares", items=100, item_bytes=3_000),
    ):
        owner: str
        ware_id: Sort[str] = sort()

    class Some(
        Query["Ware"],
        on=Stall.some,
        pk="OWNER#{owner}",
        sk="{ware_id}",
        hydrate=True,
        access=AccessPattern("wares", items=100, item_bytes=3_000),
    ):
        owner: str
        ware_id: Sort[str] = sort()

    class Whole(
        Query["Ware"],
        on=Stall.whole,
        pk="OWNER#{owner}",
        sk="{ware_id}",
        access=AccessPattern("wares", items=100, item_bytes=3_000),
    ):
        owner: str
        ware_id: Sort[str] = sort()


@pytest.mark.parametrize(
    ("query", "index"), [(Ware.Keyed, "keys"), (Ware.Some, "some"), (Ware.Whole, "whole")]
)
def test_a_projected_index_is_estimated_by_what_it_holds(
    opened: Callable[..., Connection], query: Any, index: str
) -> None:
    """The cost of a query on a projected index and of its item reads is estimated within a few units."""
    db = opened()
    db.create_tables(Stall)
    db.put_many(Ware(ware_id=f"w{n:03}", owner="ann") for n in range(100))

    explanation = explaining(db).query(query(owner="ann"))
    done = explaining(db).query(query(owner="ann"), run=True)

    for where in (None, index):
        found = [place(units, where) for units in (explanation.estimated_by_index, done.consumed_by_index)]
        assert (found[0] or Units()).reads == pytest.approx((found[1] or Units()).reads, abs=2.5)
    assert any(f"an entry of {index} has" in each for each in explanation.assumptions) == (index != "whole")
    assert float(explanation.usd_per_million) == pytest.approx(float(done.usd_per_million), rel=0.1)
    assert not any("is got from the table" in each for each in done.assumptions)


class Bin(Table):
    """A table with one index that projects only keys."""

    by_owner = Gsi(pk="g1pk", sk="g1sk", projection="KEYS_ONLY")


class Part(Entity, table=Bin):
    """An entity whose size nothing declares."""

    part_id: Attr[str]
    owner: Attr[str]
    note: Attr[str] = attr(default="")

    class Key(PrimaryKey["Part"], pk="PART#{part_id}", sk="PART", access=AccessPattern("one part")):
        part_id: str

    class ByOwner(
        Query["Part"],
        on=Bin.by_owner,
        pk="OWNER#{owner}",
        sk="{part_id}",
        hydrate=True,
        access=AccessPattern("parts of an owner", items=300),
    ):
        owner: str
        part_id: Sort[str] = sort()


def test_undeclared_sizes_are_those_that_cost_estimates(opened: Callable[..., Connection]) -> None:
    """`db.explain` and `tavola cost` count a read of items of undeclared size with the same units."""
    db = opened()
    db.create_tables(Bin)
    table = design_of(Bin).tables[0]
    entity = table.entity("Part")
    assert entity.primary is not None

    one = explaining(db).get(Part.Key(part_id="p1"))
    many = explaining(db).query(Part.ByOwner(owner="ann"))

    assert one.estimated.reads == sum(units.read for units in pattern_units(table, entity, entity.primary))
    assert {where: units.reads for (_, where), units in many.estimated_by_index.items()} == {
        units.index: units.read for units in pattern_units(table, entity, entity.patterns[0])
    }
    size = item_bytes(table, entity)
    assert (
        f"that an item of Part has {size} bytes, estimated from its fields; pass item_bytes="
        in one.assumptions
    )


def test_batches_of_any_kind_are_explained(db: Connection, explain: Any) -> None:
    """The estimates of `get_all` and `write_many` equal their consumed capacity."""
    keys = (Ticket.Key(ticket_id="t1"), Event.Key(ticket_id="t1", at=AT, event_id="e1"))
    gone = [Ticket.Key(ticket_id="t9")]

    explanation = explain.write_many(puts=[ticket()], deletes=gone)
    assert db.get(Ticket.Key(ticket_id="t1")) is None
    done = explain.write_many(puts=[ticket()], deletes=gone, run=True)
    found = explain.get_all(*keys, run=True)

    assert [each.operation for each in explanation.requests] == ["BatchWriteItem"]
    assert done.result == 2
    assert found.result == (ticket(), None)
    assert found.what == "get_all of 2 keys"
    assert explain.get_all(*keys).operation == "BatchGetItem"


def test_a_large_item_and_a_provisioned_table_are_explained(club: Connection) -> None:
    """An item near the size limit is warned of, one past it is reported as refused, and provisioned tables have no price per request."""
    explain = explaining(club)

    near = explain.put(Guest(guest_id="g1", mail="m", story="x" * 300_000))
    past = explain.put(Guest(guest_id="g1", mail="m", story="x" * 410_000))

    assert any("73 % of the maximum" in warning for warning in near.warnings)
    assert any("will be rejected" in warning for warning in past.warnings)
    assert "Club is provisioned; the cost shown is the on-demand price." in near.warnings
