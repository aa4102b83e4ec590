"""Where the document is wrong, and what the desk does instead."""

from __future__ import annotations

import asyncio
import os
import re
import time
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tavola import (
    AsyncTransaction,
    KeyPartRefused,
    ManualClock,
    ModelError,
    TavolaError,
    TransactionCancelled,
    ValidationFault,
    connect_async,
    to_item,
)
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import (
    EventKind,
    NewFeedback,
    NewTicket,
    TicketStatus,
    TimeRange,
    UserRole,
)
from tavola.apps.support_desk.metrics import ticket_shares
from tavola.apps.support_desk.model import SHARDS, Event, Feedback, Ticket, Tickets, TicketVector
from tavola.apps.support_desk.similar import embed
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.patterns import FolderBlobs
from tests.apps.conftest import Run
from tests.apps.support_desk.conftest import MORNING, Desk


def _ids(found: Any) -> list[str]:
    return [each.ticket_id for each in found]


def _raw(desk: Desk, operation: str, **request: Any) -> dict[str, Any]:
    name = desk.db.context.name_of(Tickets)
    answer: dict[str, Any] = desk.run(desk.db.call(operation, {"TableName": name, **request}))
    return answer


def _key(ticket_id: str) -> dict[str, Any]:
    return {"PK": {"S": f"TICKET#{ticket_id}"}, "SK": {"S": "METADATA"}}


def test_wrong_01_a_status_change_moves_the_ticket_in_every_index(desk: Desk) -> None:
    """Pitfall 1: after any change each index has the ticket where its status says, and nowhere else."""
    ticket_id = desk.open()
    desk.move(ticket_id, TicketStatus.PROCESSING)
    desk(service.escalate, ticket_id, engineer="eng-01", reason="?")
    desk.move(ticket_id, TicketStatus.READY, TicketStatus.PROCESSING, TicketStatus.FAILED)

    for status in TicketStatus:
        expected = [ticket_id] if status is TicketStatus.FAILED else []
        assert _ids(desk(service.list_tickets_by_status, status)) == expected
        assert _ids(desk(service.list_customer_tickets, "cust-001", status=status)) == expected
    assert desk(service.list_escalations).items == ()
    assert desk(service.list_customer_tickets, "cust-001").items[0].status is TicketStatus.FAILED
    assert desk.run(desk.db.verify_keys(Tickets)).problems == ()


def test_wrong_01_the_documents_own_update_leaves_stale_keys(desk: Desk) -> None:
    """Pitfall 1: an update of `status` alone, as the document has it, is found by the verification."""
    ticket_id = desk.open()

    _raw(
        desk,
        "UpdateItem",
        Key=_key(ticket_id),
        UpdateExpression="SET #status = :new",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":new": {"S": "READY"}},
    )

    faults = desk.run(desk.db.verify_keys(Tickets)).problems
    assert {fault.index for fault in faults} == {"GSI2-status-index", "GSI4-customer-status-index"}


def test_wrong_02_newest_first_holds_over_all_statuses(desk: Desk) -> None:
    """Pitfall 2: a customer's tickets are newest first whatever their status, and those of one status too."""
    made = [desk.open() for _ in range(6)]
    for ticket_id in (made[0], made[3], made[5]):
        desk.move(ticket_id, TicketStatus.PROCESSING)

    assert _ids(desk(service.list_customer_tickets, "cust-001")) == made[::-1]
    assert _ids(desk(service.list_customer_tickets, "cust-001", status=TicketStatus.PROCESSING)) == [
        made[5],
        made[3],
        made[0],
    ]


def test_wrong_03_a_status_is_spread_over_shards_and_read_in_order(desk: Desk) -> None:
    """Pitfall 3: tickets of one status stand in several partitions, and a merged read gives them by date."""
    made = [desk.open(customer=f"cust-{number % 3}") for number in range(24)]

    partitions = {_raw(desk, "GetItem", Key=_key(each))["Item"]["GSI2PK"]["S"] for each in made}
    found = desk(service.list_tickets_by_status, TicketStatus.NEW, limit=24)

    assert 1 < len(partitions) <= SHARDS
    assert _ids(found) == made[::-1]


def test_wrong_04_escalations_need_no_range_on_a_partition_key(desk: Desk) -> None:
    """Pitfall 4: DynamoDB refuses the document's own question; the sparse index answers what it meant."""
    ticket_id = desk.open()
    desk(service.escalate, ticket_id, engineer="eng-01", reason="?")

    with pytest.raises(ValidationFault, match="not supported"):
        _raw(
            desk,
            "Query",
            IndexName="escalated-tickets-index",
            KeyConditionExpression="GSI6PK >= :all",
            ExpressionAttributeValues={":all": {"S": "2000-01-01"}},
        )
    assert _ids(desk(service.list_escalations)) == [ticket_id]


def test_wrong_05_a_list_reads_what_its_index_projects(desk: Desk) -> None:
    """Pitfall 5: a summary comes out of the index whole; the index does not have the text, so none is promised."""
    ticket_id = desk.open(text="A secret text")

    stored = _raw(
        desk,
        "Query",
        IndexName="GSI1-customer-index",
        KeyConditionExpression="GSI1PK = :customer",
        ExpressionAttributeValues={":customer": {"S": "CUSTOMER#cust-001"}},
    )["Items"][0]
    found = desk(service.list_customer_tickets, "cust-001").items[0]

    assert "symptom_text" not in stored
    assert (found.ticket_id, found.subject, found.status) == (ticket_id, "A secret text", TicketStatus.NEW)
    assert dict(desk.spent(service.list_customer_tickets, "cust-001").operations) == {"Query": 1}
    with pytest.raises(ModelError):
        Ticket.ByCustomer(customer_id="cust-001").where(Ticket.symptom_text.contains("secret"))  # type: ignore[arg-type]


def test_wrong_06_no_two_events_share_a_number(desk: Desk) -> None:
    """Pitfall 6: writers at once get numbers of their own, without a gap."""
    ticket_id = desk.open()

    async def notes() -> None:
        await asyncio.gather(*(service.add_note(desk.store, ticket_id, f"note {n}") for n in range(6)))

    desk.run(notes())

    assert [event.sequence for event in desk(service.list_events, ticket_id)] == list(range(1, 8))
    assert desk(service.get_ticket, ticket_id, consistent=True).version == 7


def test_wrong_07_events_have_one_form_of_key(desk: Desk) -> None:
    """Pitfall 7: whatever happened, and whatever the writer's clock says, key order is the order of events."""
    ticket_id = desk.open()
    desk.move(ticket_id, TicketStatus.PROCESSING)
    desk.clock.advance(-7_200)  # another writer, two hours behind
    desk(service.add_note, ticket_id, "late clock")
    desk(service.escalate, ticket_id, engineer="eng-01", reason="?")

    items = _raw(
        desk,
        "Query",
        KeyConditionExpression="PK = :pk AND begins_with(SK, :event)",
        ExpressionAttributeValues={":pk": {"S": f"TICKET#{ticket_id}"}, ":event": {"S": "EVENT#"}},
    )["Items"]
    assert all(re.fullmatch(r"EVENT#\d{4}-\d\d-\d\dT[\d:.]+Z#\d{6}", item["SK"]["S"]) for item in items)
    assert [item["sequence"]["N"] for item in items] == ["1", "2", "3", "4"]


def test_wrong_08_everything_is_counted_once(desk: Desk) -> None:
    """Pitfall 8: what comes, changes and goes is counted; the whole stream delivered again changes nothing."""
    kept, gone = desk.open(), desk.open()
    desk.move(kept, TicketStatus.PROCESSING, TicketStatus.READY)
    desk.run(desk.db.delete(Ticket.Key(ticket_id=gone)))

    assert desk.count() > 0
    once = desk(service.read_dashboard)
    desk.count()
    desk.count()

    assert (once.tickets, once.by_status[TicketStatus.READY], once.by_status[TicketStatus.NEW]) == (1, 1, 0)
    assert desk(service.read_dashboard) == once


def test_wrong_08_what_time_to_live_deletes_is_counted_out(tmp_path: Path, run: Run[Any]) -> None:
    """Pitfall 8: a ticket that DynamoDB deletes when it has expired leaves the numbers."""
    clock = ManualClock(MORNING.timestamp())

    async def steps() -> tuple[int, int]:
        async with connect_async("memory:", clock=clock, ttl_interval_s=1) as db:
            store = SupportDeskStore(db, FolderBlobs(tmp_path))
            await store.create_tables()
            opened = await service.open_ticket(store, NewTicket("cust-001", "No paper"))
            key = Ticket.Key(ticket_id=opened.value.ticket_id)
            await db.update(key, Ticket.ttl.set(MORNING + timedelta(hours=1)))
            await store.projector.follow(await db.subscribe(Tickets, from_="start", follow=False))
            before = (await service.read_dashboard(store)).tickets
            clock.advance(7_200)
            await db.call("ListTables")  # any call sweeps what is due
            await store.projector.follow(await db.subscribe(Tickets, from_="start", follow=False))
            return before, (await service.read_dashboard(store)).tickets

    assert run(steps()) == (1, 0)


def test_wrong_09_only_the_duplicate_key_means_done(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 9: a creation that something else stands in the way of is told, and not tried for ever."""
    taken = desk.open()
    tried: list[AsyncTransaction] = []
    begin = desk.db.transaction

    def counted() -> AsyncTransaction:
        tried.append(begin())
        return tried[-1]

    with monkeypatch.context() as patched:
        patched.setattr(desk.store, "new_id", lambda kind: taken)
        patched.setattr(desk.db, "transaction", counted)
        with pytest.raises(TransactionCancelled):
            desk(service.open_ticket, NewTicket("cust-001", "Another"), idempotency_key="r-9")

    assert len(tried) == 1
    again = desk(service.open_ticket, NewTicket("cust-001", "Another"), idempotency_key="r-9")
    assert not again.replayed  # nothing was kept of the failure


def test_wrong_10_times_are_aware_and_ends_are_epoch_seconds(desk: Desk) -> None:
    """Pitfall 10: a naive moment is refused; an end is the same second whatever the machine's zone."""
    zone = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    try:
        login = desk(service.start_session, "agent-1", UserRole.AGENT)
    finally:
        os.environ.pop("TZ") if zone is None else os.environ.update(TZ=zone)
        time.tzset()

    key = {"PK": {"S": f"SESSION#{login.session_id}"}, "SK": {"S": "METADATA"}}
    stored = _raw(desk, "GetItem", Key=key)["Item"]
    assert stored["ttl"] == {"N": str(int(MORNING.timestamp()) + 24 * 3600)}
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - that is the mistake
    with pytest.raises((TavolaError, ValidationError)):
        desk(service.list_recent_tickets, TimeRange(start=naive))
    with pytest.raises((TavolaError, ValidationError)):
        to_item(Event(ticket_id="t", at=naive, sequence=1, kind=EventKind.NOTE_ADDED))


def test_wrong_12_a_batch_of_any_size_comes_back_whole(tmp_path: Path, run: Run[Any]) -> None:
    """Pitfall 12: keys are whole, more than a hundred are cut, and what DynamoDB leaves unprocessed is asked again."""

    async def steps() -> list[Ticket | None]:
        async with connect_async("memory:", emulate="unprocessed=0.3,seed=3") as db:
            store = SupportDeskStore(db, FolderBlobs(tmp_path))
            await store.create_tables()
            ids = [
                (await service.open_ticket(store, NewTicket("cust-001", f"ticket {n}"))).value.ticket_id
                for n in range(140)
            ]
            return await service.get_tickets(store, ids)

    found = run(steps())

    assert [each.symptom_text for each in found if each is not None] == [f"ticket {n}" for n in range(140)]


def test_wrong_13_numbers_lose_no_digit(desk: Desk) -> None:
    """Pitfall 13: seconds are decimals, exact to the microsecond; an embedding comes back as it was given."""
    embedding = (0.1, 1 / 3, -2.5e-7, *embed("x")[3:])
    ticket_id = desk.open(embedding=embedding)
    vector = desk.run(desk.db.get(TicketVector.Key(ticket_id=ticket_id)))
    assert vector is not None
    assert tuple(vector.embedding) == embedding

    started = MORNING
    lasted = timedelta(days=4_000, microseconds=1)
    ticket = Ticket(
        ticket_id="t",
        customer_id="c",
        status=TicketStatus.READY,
        subject="s",
        symptom_text="s",
        created_at=started,
        updated_at=started,
        completed_at=started + lasted,
    )
    shares = {share.part: share.value for share in ticket_shares(ticket)}
    assert shares["total/resolution"] == Decimal("345600000.000001")
    with pytest.raises(ValidationError):
        Feedback(ticket_id="t", feedback_id="f", operator_id="o", submitted_at=started, rating=4.5)  # type: ignore[arg-type]


def test_wrong_19_parts_of_a_key_never_run_together(desk: Desk) -> None:
    """Pitfall 19: a delimiter in an id makes another key, never somebody else's."""
    first = desk.open(customer="a#b", idempotency_key="c")
    second = desk.open(customer="a", idempotency_key="b#c")
    third = desk.open(customer="a", idempotency_key="c")
    assert len({first, second, third}) == 3
    assert desk.open(customer="a", idempotency_key="b#c", text="The printer is out of order") == second

    assert _ids(desk(service.list_customer_tickets, "a")) == [third, second]
    assert _ids(desk(service.list_customer_tickets, "a#b")) == [first]
    for name in ("x", "x#y", "x#"):
        desk(service.attach, first, name=name, content_type="text/plain", data=name.encode())
    names = sorted(each.name for each in desk(service.get_full_ticket, first).attachments)
    assert names == ["x", "x#", "x#y"]
    desk(service.give_feedback, first, NewFeedback("op#1", 3))
    assert desk(service.list_operator_feedback, "op").items == ()
    with pytest.raises((KeyPartRefused, TavolaError, ValidationError)):
        desk.open(customer="")
