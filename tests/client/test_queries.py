"""Queries, pages, cursors, counts and collections."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tavola import Collection, Connection, CursorRefused, ItemUnreadable, ModelError, QueryRefused, member
from tavola.client.pages import decode_cursor, encode_cursor
from tests.client.desk import Desk, Event, Feedback, Session, Status, Ticket, TicketFile, TicketRef

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)
STATES: tuple[Status, ...] = ("open", "pending", "closed")


def hours(count: int) -> datetime:
    """Return the time `count` hours after the first."""
    return AT + timedelta(hours=count)


class Verdict(Collection, pk="TICKET#{ticket_id}"):
    """A ticket and its feedback, without its events."""

    ticket_id: str
    ticket: Ticket | None = member()
    feedback: Feedback | None = member()


@pytest.fixture
def desk(db: Connection) -> Connection:
    """A desk with thirty tickets of two customers."""
    for n in range(30):
        db.put(
            Ticket(
                ticket_id=f"t{n:02}",
                customer_id="c1" if n % 3 else "c2",
                subject=f"ticket {n}",
                status=STATES[n % 3],
                priority=n % 5,
                assignee="ann" if n % 2 else None,
                queue="vip" if n % 4 == 0 else None,
                created_at=hours(n),
            )
        )
    return db


def ids(found: object) -> list[str]:
    """Return the ids of the results, in order."""
    return [each.ticket_id for each in found]  # type: ignore[attr-defined]


def test_sort_parts_narrow_a_query_from_the_left(desk: Connection) -> None:
    """Each sort part narrows the query; results are in sort-key order."""
    everything = Ticket.ByCustomer(customer_id="c2")

    assert len(list(desk.query(everything))) == 10
    assert ids(desk.query(everything.status.eq("open"))) == [f"t{n:02}" for n in range(0, 30, 3)]
    assert ids(desk.query(everything.status.eq("open").created_at.gt(hours(20)))) == ["t21", "t24", "t27"]
    one = everything.status.eq("open").created_at.eq(hours(3)).ticket_id.begins_with("t0")
    assert ids(desk.query(one)) == ["t03"]


def test_a_range_stays_among_its_own(desk: Connection) -> None:
    """A range on a part never runs into other entities of the partition."""
    desk.put(Feedback(ticket_id="t00", customer_id="c2", score=9))

    assert ids(desk.query(Ticket.ByCustomer(customer_id="c2").status.gte("closed"))) == [
        f"t{n:02}" for n in range(0, 30, 3)
    ]
    assert [f.score for f in desk.query(Feedback.ByCustomer(customer_id="c2").score.lte(9))] == [9]


def test_both_orders_of_a_customers_tickets_are_served(desk: Connection) -> None:
    """Pitfall 2: newest first within one status, and over shards of any status by date."""
    newest = desk.query(Ticket.ByCustomer(customer_id="c2").status.eq("open"), newest_first=True)

    assert ids(newest) == [f"t{n:02}" for n in range(27, -1, -3)]


def test_a_status_is_sharded_and_read_in_order(desk: Connection) -> None:
    """Pitfall 3: a status of few values is spread over shards and read back merged, by date range."""
    found = desk.query(Ticket.ByStatus(status="open").created_at.between(hours(6), hours(18)))

    assert ids(found) == ["t06", "t09", "t12", "t15", "t18"]
    assert all(isinstance(each, TicketRef) for each in found)
    assert found.requests == 8


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 7, 10, 11])
def test_pages_over_shards_cover_everything_once(desk: Connection, limit: int, newest_first: bool) -> None:
    """Cursors over all shards lead through every item once, in order, whatever the limit; none after the last."""
    question = Ticket.ByStatus(status="pending")
    seen: list[str] = []
    cursor = None
    while True:
        page = desk.query(question, limit=limit, cursor=cursor, newest_first=newest_first)
        seen += ids(page.items)
        assert len(page.items) == limit or page.cursor is None
        cursor = page.cursor
        if cursor is None:
            break

    assert seen == sorted((f"t{n:02}" for n in range(1, 30, 3)), reverse=newest_first)


def test_a_full_last_page_has_no_cursor(desk: Connection) -> None:
    """A page that ends with the last item has no cursor, also if it reached the limit exactly."""
    page = desk.query(Ticket.ByCustomer(customer_id="c2"), limit=10)

    assert (len(page.items), page.cursor) == (10, None)


def test_a_cursor_belongs_to_its_question(desk: Connection) -> None:
    """A cursor of another partition, index, filter or direction is refused, and so is a changed one."""
    question = Ticket.ByCustomer(customer_id="c1")
    cursor = desk.query(question, limit=2).cursor
    assert cursor is not None

    others: list[Callable[[], object]] = [
        lambda: desk.query(Ticket.ByCustomer(customer_id="c2"), limit=2, cursor=cursor),
        lambda: desk.query(question, limit=2, cursor=cursor, newest_first=True),
        lambda: desk.query(question.where(Ticket.priority.eq(1)), limit=2, cursor=cursor),
        lambda: desk.query(Ticket.ByAssignee(assignee="ann"), limit=2, cursor=cursor),
        lambda: desk.query(question, limit=2, cursor=cursor[:-2] + "AA"),
        lambda: desk.query(question, limit=2, cursor="not one"),
    ]
    for query in others:
        with pytest.raises(CursorRefused):
            query()
    assert len(desk.query(question, limit=3, cursor=cursor).items) == 3


def test_a_cursor_holds_where_the_secret_is_shared() -> None:
    """Two processes with one secret take each other's cursors; without it they refuse them."""
    cursor = encode_cursor(b"one", "q", [1])

    assert decode_cursor(b"one", "q", cursor, 1) == [1]
    with pytest.raises(CursorRefused, match="secret"):
        decode_cursor(b"other", "q", cursor, 1)


def test_a_filter_fills_the_page(desk: Connection) -> None:
    """A limit counts items that pass the filter, and the page reports the items read."""
    page = desk.query(Ticket.ByCustomer(customer_id="c1").where(Ticket.priority.eq(4)), limit=3)

    assert [t.priority for t in page.items] == [4, 4, 4]
    assert page.scanned > 3


def test_a_sparse_index_has_its_members_alone(desk: Connection) -> None:
    """A ticket without an assignee is not in the assignees' index;

    order is by priority, then newest first.
    """
    found = list(desk.query(Ticket.ByAssignee(assignee="ann")))

    assert len(found) == 15
    assert [(t.priority, -t.created_at.timestamp()) for t in found] == sorted(
        (t.priority, -t.created_at.timestamp()) for t in found
    )


def test_a_multi_attribute_index_is_queried_in_native_types(desk: Connection) -> None:
    """An index of several attributes takes numbers as numbers and needs no template."""
    found = desk.query(Ticket.InQueue(queue="vip", status="open").priority.gte(2))

    assert [t.priority for t in found] == sorted(t.priority for t in found)
    assert all(t.queue == "vip" and t.status == "open" and t.priority >= 2 for t in found)
    assert len(list(found)) == 2


def test_a_part_cannot_be_skipped(desk: Connection) -> None:
    """A condition on a part before the part to its left is refused when the query is built."""
    with pytest.raises(QueryRefused, match="status"):
        Ticket.ByCustomer(customer_id="c1").created_at.gte(AT)


def test_a_count_reads_and_returns_none(desk: Connection) -> None:
    """A count equals the number of items a query returns, over shards and with a filter."""
    assert desk.count(Ticket.ByStatus(status="open")) == 10
    assert desk.count(Ticket.ByCustomer(customer_id="c1")) == 20
    selection = Ticket.ByCustomer(customer_id="c1").status.eq("closed").where(Ticket.priority < 2)
    assert desk.count(selection) == len(list(desk.query(selection)))


def test_a_collection_is_one_query(desk: Connection) -> None:
    """A ticket, its feedback and its events come in one request, each typed."""
    for n in (2, 1, 3):
        desk.put(Event(ticket_id="t01", at=hours(n), event_id=f"e{n}", kind="note"))
    desk.put(Feedback(ticket_id="t01", customer_id="c1", score=5))
    with desk.measure() as spent:
        file = desk.collect(TicketFile(ticket_id="t01"))

    assert spent.operations == {"Query": 1}
    assert file.ticket is not None
    assert file.ticket.subject == "ticket 1"
    assert file.feedback is not None
    assert [event.event_id for event in file.events] == ["e1", "e2", "e3"]
    assert desk.collect(TicketFile(ticket_id="none")).ticket is None


def test_a_collection_reads_only_the_range_of_its_members(desk: Connection) -> None:
    """Items before and after the members in their partition are not read;

    a limit applies to the first items.
    """
    for n in range(40):
        desk.put(Event(ticket_id="t01", at=hours(n), event_id=f"e{n:02}", kind="note " + "x" * 4_000))
    desk.put(Feedback(ticket_id="t01", customer_id="c1", score=5))
    with desk.measure() as spent:
        verdict = desk.collect(Verdict(ticket_id="t01"))

    assert verdict.ticket is not None
    assert verdict.feedback is not None
    assert (spent.operations, spent.reads) == ({"Query": 1}, 0.5)
    latest = desk.collect(TicketFile(ticket_id="t01"), newest_first=True, limit=5)
    assert latest.ticket is not None
    assert [event.event_id for event in latest.events] == ["e39", "e38", "e37"]
    with pytest.raises(ModelError):
        desk.collect(TicketFile(ticket_id="t01"), limit=0)


def test_one_timeline_has_one_order(desk: Connection) -> None:
    """Pitfall 7: all events of a ticket share one key format: by date range, latest n, of any kind."""
    for n, kind in enumerate(("opened", "status_change", "note", "closed")):
        desk.put(Event(ticket_id="t05", at=hours(n), event_id=f"e{n}", kind=kind))
    timeline = Event.InTicket(ticket_id="t05")

    assert [e.kind for e in desk.query(timeline, newest_first=True, limit=2)] == ["closed", "note"]
    assert [e.kind for e in desk.query(timeline.at.between(hours(1), hours(2)))] == ["status_change", "note"]


def test_an_expired_item_is_hidden(desk: Connection, clock: object) -> None:
    """An expired item is hidden from get, query, scan and count, deleted or not, and can be created again."""
    now = datetime.fromtimestamp(clock.now(), UTC)  # type: ignore[attr-defined]
    desk.put(Session(session_id="old", agent="ann", expires=now - timedelta(seconds=1)))
    desk.put(Session(session_id="new", agent="ann", expires=now + timedelta(hours=1)))

    assert desk.get(Session.Key(session_id="old")) is None
    assert desk.get(Session.Key(session_id="new")) is not None
    assert [s.session_id for s in desk.scan(Session)] == ["new"]
    desk.create(Session(session_id="old", agent="bob", expires=now + timedelta(hours=1)))


def test_a_scan_returns_one_entity(desk: Connection) -> None:
    """A scan of an entity reads the whole table and returns that entity alone, also in parallel segments."""
    desk.put(Event(ticket_id="t01", at=AT, event_id="e1", kind="note"))

    assert len(list(desk.scan(Ticket))) == 30
    assert len(list(desk.scan(Ticket, where=Ticket.status.eq("open"), segments=4))) == 10
    assert len(list(desk.scan(Event, page_size=7))) == 1


def test_reserved_words_never_fail(desk: Connection) -> None:
    """Pitfall 15: attributes that are reserved words are written with placeholders by themselves."""
    found = desk.query(
        Ticket.ByCustomer(customer_id="c1").where(Ticket.status.eq("closed") & Ticket.queue.exists())
    )

    assert all(t.status == "closed" and t.queue for t in found)
    assert (
        desk.update(Ticket.Key(ticket_id="t01"), Ticket.status.set("closed"), Ticket.queue.set("all")).queue
        == "all"
    )


def test_an_unreadable_item_is_skipped_on_request(desk: Connection) -> None:
    """It is an error by default; with a callback, the page is filled without it and its cursor continues."""
    name = desk.context.name_of(Desk)
    key = {"pk": {"S": "TICKET#t05"}, "sk": {"S": "METADATA"}}
    stored = desk.call("GetItem", {"TableName": name, "Key": key})["Item"]
    desk.call("PutItem", {"TableName": name, "Item": stored | {"subject": {"N": "7"}}})
    question = Ticket.ByCustomer(customer_id="c1")
    reports: list[ItemUnreadable] = []

    with pytest.raises(ItemUnreadable):
        desk.query(question, limit=3)
    first = desk.query(question, limit=3, unreadable=reports.append)  # the second of them does not fit
    rest = desk.query(question, limit=50, cursor=first.cursor, unreadable=reports.append)

    found = [ticket.ticket_id for ticket in (*first.items, *rest.items)]
    assert sorted(found) == [f"t{n:02}" for n in range(30) if n % 3 and n != 5]
    assert len(first.items) == 3
    assert [error.key for error in reports] == [key]
