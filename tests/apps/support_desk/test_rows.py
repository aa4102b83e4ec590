"""What the support desk has to do, a test for each row."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tavola import (
    Connection,
    ManualClock,
    RetryPolicy,
    TransactionCancelled,
    connect,
    connect_async,
)
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import (
    Amendment,
    EventKind,
    NewFeedback,
    NewTicket,
    Priority,
    TicketStatus,
    TimeRange,
    UserRole,
)
from tavola.apps.support_desk.errors import (
    AttachmentMissing,
    EmbeddingRefused,
    TextTooLong,
    TicketChanged,
    TicketMissing,
    TicketTransitionRefused,
)
from tavola.apps.support_desk.metrics import DESK, MAPPING, create_handler
from tavola.apps.support_desk.model import (
    SHARDS,
    TABLES,
    Attachment,
    Event,
    Login,
    RequestOutcome,
    Ticket,
    Tickets,
    TicketVector,
)
from tavola.apps.support_desk.similar import embed
from tavola.apps.support_desk.store import Retention, SupportDeskStore
from tavola.patterns import FolderBlobs, IdempotencyMismatch
from tavola.triggers import Trigger
from tests.apps.conftest import Run, Target
from tests.apps.support_desk.conftest import MORNING, Desk, opened


def _ids(found: Any) -> list[str]:
    return [each.ticket_id for each in found]


def _operations(desk: Desk, use_case: Any, *arguments: Any, **options: Any) -> dict[str, int]:
    return dict(desk.spent(use_case, *arguments, **options).operations)


@pytest.fixture
def busy(desk: Desk) -> dict[str, str]:
    """Some tickets: three of one customer, two of another; one is resolved, with feedback."""
    found = {
        name: desk.open(customer)
        for name, customer in zip("abcde", ["c1", "c1", "c2", "c1", "c2"], strict=True)
    }
    desk.move(found["b"], TicketStatus.PROCESSING, TicketStatus.READY)
    desk(service.give_feedback, found["b"], NewFeedback("op-01", 5, was_helpful=True, comment="quick"))
    desk.clock.advance(60)
    desk(service.give_feedback, found["b"], NewFeedback("op-02", 2))
    return found


def test_s01_each_access_pattern_is_one_query(desk: Desk, busy: dict[str, str]) -> None:
    """Seven ways of asking, each a read or one query, of shards one for each; none is a scan."""
    a, b, c, d, _ = busy.values()

    assert desk(service.get_ticket, b).status is TicketStatus.READY
    assert _ids(desk(service.list_customer_tickets, "c1")) == [d, b, a]
    assert _ids(desk(service.list_customer_tickets, "c1", status=TicketStatus.NEW)) == [d, a]
    assert _ids(desk(service.list_customer_tickets, "c1", newest_first=False)) == [a, b, d]
    during = TimeRange(MORNING, MORNING + timedelta(minutes=4))
    assert _ids(desk(service.list_tickets_by_status, TicketStatus.NEW, during)) == [d, c, a]
    assert _ids(desk(service.list_recent_tickets, during)) == [d, c, b, a]
    assert [each.rating for each in desk(service.list_ticket_feedback, b)] == [2, 5]
    whole = desk(service.get_ticket_with_feedback, b)
    assert whole.ticket is not None
    assert [each.operator_id for each in whole.feedback] == ["op-01", "op-02"]
    assert [each.rating for each in desk(service.list_operator_feedback, "op-01")] == [5]
    file = desk(service.get_full_ticket, b)
    assert [len(file.events), len(file.feedback), len(file.attachments)] == [3, 2, 0]

    assert _operations(desk, service.get_ticket, b) == {"GetItem": 1}
    assert _operations(desk, service.list_customer_tickets, "c1") == {"Query": 1}
    assert _operations(desk, service.list_customer_tickets, "c1", status=TicketStatus.NEW) == {"Query": 1}
    assert _operations(desk, service.get_ticket_with_feedback, b) == {"Query": 1}
    assert _operations(desk, service.get_full_ticket, b) == {"Query": 1}
    assert _operations(desk, service.list_operator_feedback, "op-01") == {"Query": 1}
    assert _operations(desk, service.list_tickets_by_status, TicketStatus.NEW, during) == {"Query": SHARDS}
    assert _operations(desk, service.list_recent_tickets, during) == {"Query": SHARDS}


def test_s01_a_long_history_costs_the_feedback_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket with its feedback is one query of just these; with everything it is one query too, of the last events."""
    monkeypatch.setattr(service, "FULL_TICKET_ITEMS_MAX", 40)
    ticket_id = desk.open()
    for n in range(60):
        desk(service.add_note, ticket_id, f"{n} " + "x" * 3_900)
    desk(service.give_feedback, ticket_id, NewFeedback("op-01", 5))
    desk(service.attach, ticket_id, name="a.txt", content_type="text/plain", data=b"small")

    cost = desk.spent(service.get_ticket_with_feedback, ticket_id)
    file = desk(service.get_full_ticket, ticket_id)

    assert (cost.operations, cost.reads <= 1) == ({"Query": 1}, True)
    assert _operations(desk, service.get_full_ticket, ticket_id) == {"Query": 1}
    assert [each.rating for each in file.feedback] == [5]
    assert [each.name for each in file.attachments] == ["a.txt"]
    assert [event.sequence for event in file.events] == list(range(26, 63))  # of 62


def test_s01_the_table_is_that_of_the_document(desk: Desk, target: Target) -> None:
    """One table with its name, indexes, stream, time to live, recovery and tags; numbers have another."""
    name = desk.db.context.name_of(Tickets)

    table = desk.run(desk.db.call("DescribeTable", {"TableName": name}))["Table"]

    assert name.endswith("prod-tickets-unified")
    assert sorted(index["IndexName"] for index in table["GlobalSecondaryIndexes"]) == [
        "GSI1-customer-index",
        "GSI2-status-index",
        "GSI3-operator-index",
        "GSI4-customer-status-index",
        "GSI5-recent-index",
        "escalated-tickets-index",
    ]
    assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    ends = desk.run(desk.db.call("DescribeTimeToLive", {"TableName": name}))["TimeToLiveDescription"]
    assert ends == {"AttributeName": "ttl", "TimeToLiveStatus": "ENABLED"}
    tags = desk.run(desk.db.call("ListTagsOfResource", {"ResourceArn": table["TableArn"]}))["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {
        "Environment": "production",
        "Application": "ai-technical-support",
    }
    if target.kind != "local":  # which has no such operation
        backups = desk.run(desk.db.call("DescribeContinuousBackups", {"TableName": name}))
        recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    assert [each.settings.name for each in TABLES] == ["prod-tickets-unified", "prod-metrics"]


def test_s01_a_list_goes_on_where_it_ended(desk: Desk) -> None:
    """A cursor leads through every ticket once, over one partition and over shards."""
    made = [desk.open() for _ in range(7)]
    lists: list[tuple[Any, tuple[Any, ...]]] = [
        (service.list_customer_tickets, ("cust-001",)),
        (service.list_tickets_by_status, (TicketStatus.NEW,)),
        (service.list_recent_tickets, ()),
    ]

    for use_case, arguments in lists:
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = desk(use_case, *arguments, limit=3, cursor=cursor)
            seen += _ids(page)
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == made[::-1]


def test_s01_a_session_that_is_over_is_not_valid(desk: Desk) -> None:
    """A session is valid until its end, whether or not DynamoDB has deleted it."""
    login = desk(service.start_session, "agent-07", UserRole.AGENT)
    found = desk(service.use_session, login.session_id)
    assert found is not None
    assert (found.user_id, found.role) == ("agent-07", UserRole.AGENT)

    desk.clock.advance(24 * 3600 - 1)
    assert desk(service.use_session, login.session_id) is not None
    desk.clock.advance(24 * 3600 + 1)
    stored = desk.run(
        desk.db.call(
            "GetItem",
            {
                "TableName": desk.db.context.name_of(Tickets),
                "Key": {"PK": {"S": f"SESSION#{login.session_id}"}, "SK": {"S": "METADATA"}},
            },
        )
    )

    assert desk(service.use_session, login.session_id) is None
    assert ("Item" in stored) or desk.db.target == "memory:"
    other = desk(service.start_session, "agent-07", UserRole.AGENT)
    assert desk(service.end_session, other.session_id)
    assert desk(service.use_session, other.session_id) is None


def test_s02_a_timeline_has_one_order(desk: Desk) -> None:
    """Events stand under their ticket by time and number: all, by date, the latest, those of a day."""
    ticket_id = desk.open()
    desk.move(ticket_id, TicketStatus.PROCESSING)
    desk.clock.advance(86_400)
    desk(service.add_note, ticket_id, "called back", actor="op-01")
    desk(service.add_note, ticket_id, "and again in the same moment", actor="op-01")
    desk.clock.advance(86_400)
    desk.move(ticket_id, TicketStatus.READY)

    events = desk(service.list_events, ticket_id).items
    day = MORNING.date() + timedelta(days=1)
    assert [event.sequence for event in events] == [1, 2, 3, 4, 5]
    assert [event.kind for event in events] == [
        EventKind.CREATED,
        EventKind.STATUS_CHANGED,
        EventKind.NOTE_ADDED,
        EventKind.NOTE_ADDED,
        EventKind.STATUS_CHANGED,
    ]
    assert [event.sequence for event in desk(service.list_day_events, ticket_id, day)] == [3, 4]
    assert [event.sequence for event in desk(service.list_latest_events, ticket_id, 2)] == [5, 4]
    later = desk(service.list_events, ticket_id, TimeRange(start=MORNING + timedelta(days=1)))
    assert [event.sequence for event in later] == [3, 4, 5]
    first = desk(
        service.list_events, ticket_id, TimeRange(end=MORNING + timedelta(hours=1)), newest_first=True
    )
    assert [event.sequence for event in first] == [2, 1]
    assert desk(service.list_events, ticket_id, TimeRange(MORNING, MORNING - timedelta(days=1))).items == ()


def test_s03_a_ticket_its_event_and_its_answer_come_together(desk: Desk) -> None:
    """Creating is one read and one transaction, with everything in it; a status change too."""
    spent = desk.spent(service.open_ticket, NewTicket("cust-001", "No paper"), idempotency_key="r-1")
    assert spent.operations == {"GetItem": 1, "TransactWriteItems": 1}
    ticket_id = desk(service.list_customer_tickets, "cust-001").items[0].ticket_id
    file = desk(service.get_full_ticket, ticket_id)
    assert file.ticket is not None
    assert (file.ticket.version, [event.sequence for event in file.events]) == (1, [1])

    spent = desk.spent(service.change_ticket, ticket_id, TicketStatus.PROCESSING)
    assert spent.operations == {"GetItem": 1, "TransactWriteItems": 1}
    event = desk(service.list_latest_events, ticket_id, 1)[0]
    assert (event.sequence, event.old_status, event.new_status) == (
        2,
        TicketStatus.NEW,
        TicketStatus.PROCESSING,
    )
    assert desk(service.get_ticket, ticket_id, consistent=True).version == 2


def test_s02_each_day_goes_on_with_the_tickets_numbers(desk: Desk) -> None:
    """The next number is the ticket's, not the day's: it is its version, so no day begins anew and no two writers share one."""
    ticket_id = desk.open()
    for _ in range(3):
        desk.clock.advance(86_400)
        desk(service.add_note, ticket_id, "a day later")

    days = [MORNING.date() + timedelta(days=n) for n in range(4)]
    numbers = [[event.sequence for event in desk(service.list_day_events, ticket_id, day)] for day in days]
    assert numbers == [[1], [2], [3], [4]]
    assert desk(service.get_ticket, ticket_id, consistent=True).version == 4


def test_s03_what_is_throttled_or_in_conflict_is_tried_again(tmp_path: Path, run: Run[Any]) -> None:
    """Transactions that meet, and batches that are left half done, are asked again after growing pauses of chance; nothing is lost."""

    pauses: list[float] = []

    class Noting(RetryPolicy):
        """A client's patience, with the pauses that it takes."""

        def pause_s(self, attempt: int) -> float:
            pauses.append(super().pause_s(attempt))
            return pauses[-1]

    async def steps() -> int:
        patience = Noting(attempts_max=40, base_s=0.002, cap_s=0.05)
        emulate = "conflicts=20ms,unprocessed=0.5,seed=3"
        async with connect_async("memory:", emulate=emulate, retry_policy=patience) as db:
            store = SupportDeskStore(db, FolderBlobs(tmp_path))
            await store.create_tables()
            opened = (await service.open_ticket(store, NewTicket("cust-001", "x"))).value.ticket_id
            await asyncio.gather(*(service.add_note(store, opened, f"note {n}") for n in range(6)))
            found = await service.get_tickets(store, [opened, *(f"tkt_{n}" for n in range(60))])
            assert sum(each is not None for each in found) == 1
            return (await service.get_ticket(store, opened, consistent=True)).version

    assert run(steps()) == 7
    assert len(set(pauses)) > 3  # of different lengths


def test_s03_any_number_of_tickets_in_one_batch(desk: Desk) -> None:
    """More than a hundred ids are cut into requests; the answer is in their order, None where there is none."""
    made = [desk.open() for _ in range(5)]
    ticket_ids = [*made, "tkt_none", *(f"tkt_{number}" for number in range(130)), made[0]]

    found = desk(service.get_tickets, ticket_ids)

    assert [None if each is None else each.ticket_id for each in found] == [*made, *[None] * 131, made[0]]


def test_s03_reasons_of_a_cancelled_transaction_are_told_apart(desk: Desk) -> None:
    """A ticket that is missing, one that was changed, a status that may not follow: each has its own error."""
    ticket_id = desk.open()

    with pytest.raises(TicketMissing):
        desk(service.change_ticket, "tkt_none", TicketStatus.PROCESSING)
    with pytest.raises(TicketMissing):
        desk(service.give_feedback, "tkt_none", NewFeedback("op-01", 3), idempotency_key="f-1")
    with pytest.raises(TicketMissing):
        desk(service.give_feedback, "tkt_none", NewFeedback("op-01", 3))
    with pytest.raises(TicketMissing):
        desk(service.add_note, "tkt_none", "?")
    with pytest.raises(TicketTransitionRefused) as refused:
        desk(service.change_ticket, ticket_id, TicketStatus.READY)
    assert refused.value.allowed == (TicketStatus.PROCESSING, TicketStatus.FAILED, TicketStatus.ESCALATED)
    desk.move(ticket_id, TicketStatus.PROCESSING)
    with pytest.raises(TicketChanged) as changed:
        desk(service.change_ticket, ticket_id, TicketStatus.READY, expected=1)
    assert (changed.value.expected, changed.value.current) == (1, 2)
    assert [event.sequence for event in desk(service.list_events, ticket_id)] == [1, 2]


def test_s03_a_change_of_several_things_is_one_event(desk: Desk) -> None:
    """Status and other fields change in one write; what is so already is no change, and nothing is written."""
    ticket_id = desk.open()

    after = desk(
        service.change_ticket,
        ticket_id,
        status=TicketStatus.PROCESSING,
        changes=Amendment(priority=Priority.HIGH, subject="Printer dead"),
        actor="agent-1",
        note="taken",
    )
    same = desk(
        service.change_ticket,
        ticket_id,
        status=TicketStatus.PROCESSING,
        changes=Amendment(priority=Priority.HIGH),
    )

    assert (after.priority, after.subject, after.version) == (Priority.HIGH, "Printer dead", 2)
    assert same == after == desk(service.get_ticket, ticket_id, consistent=True)
    last = desk(service.list_latest_events, ticket_id, 1)[0]
    assert (last.kind, last.actor, last.note) == (EventKind.STATUS_CHANGED, "agent-1", "taken")
    assert last.details == {"priority": "HIGH", "subject": "Printer dead"}
    assert desk(service.list_customer_tickets, "cust-001").items[0].subject == "Printer dead"


def test_s04_the_stream_keeps_the_numbers(desk: Desk, busy: dict[str, str]) -> None:
    """Tickets per status and priority, opened and resolved, time to resolution and satisfaction are exact."""
    desk.count()

    board = desk(service.read_dashboard, days=2)

    assert board.by_status == {
        TicketStatus.NEW: 4,
        TicketStatus.PROCESSING: 0,
        TicketStatus.READY: 1,
        TicketStatus.FAILED: 0,
        TicketStatus.ESCALATED: 0,
    }
    assert (board.tickets, board.by_priority[Priority.MEDIUM]) == (5, 5)
    made = desk(service.get_ticket, busy["b"])
    assert made.completed_at is not None
    assert board.resolution_s.mean == Decimal((made.completed_at - made.created_at).total_seconds())
    assert (board.satisfaction.mean, board.ratings) == (Decimal("3.5"), {1: 0, 2: 1, 3: 0, 4: 0, 5: 1})
    today = board.days[1]
    assert (today.day, today.opened, today.resolved) == (MORNING.date(), 5, 1)
    assert (today.satisfaction.count, board.days[0].opened) == (2, 0)


def test_s04_the_same_as_a_lambda_function(clock: ManualClock, tmp_path: Path) -> None:
    """The handler runs under the document's mapping: batches of 100, five seconds, halved on error, three retries."""
    assert (MAPPING.batch_size, MAPPING.maximum_batching_window_in_seconds) == (100, 5)
    assert (MAPPING.bisect_batch_on_function_error, MAPPING.maximum_retry_attempts) == (True, 3)
    with connect(f"file:{tmp_path}/desk.db", clock=clock) as db:
        _some_tickets(db, 7)

        Trigger(db, table="prod-tickets-unified", handler=create_handler(db), mapping=MAPPING).drain()

        number = db.call(
            "GetItem",
            {
                "TableName": "prod-metrics",
                "Key": {"PK": {"S": f"METRIC#{DESK}"}, "SK": {"S": "total/status/NEW"}},
            },
        )["Item"]
        assert number["count"] == {"N": "7"}


def _some_tickets(db: Connection, count: int) -> None:
    db.create_tables(*TABLES)
    for number in range(count):
        db.create(
            Ticket(
                ticket_id=f"tkt_{number}",
                customer_id="cust-001",
                subject="x",
                symptom_text="x",
                created_at=MORNING,
                updated_at=MORNING,
            )
        )


def test_s05_what_is_over_is_never_returned(desk: Desk) -> None:
    """Answers to requests are kept for 24 hours and cached ones for 15 minutes, as epoch seconds; then they are not there."""
    first = desk.open(idempotency_key="k")
    desk.clock.advance(24 * 3600 - 61)
    assert desk.open(idempotency_key="k") == first
    key = RequestOutcome.Key(scope="tickets/cust-001", request="k")
    outcome = desk.run(desk.db.get(key))
    assert outcome is not None
    desk.clock.advance(2)

    assert desk.run(desk.db.get(key)) is None
    assert desk.open(idempotency_key="k") != first
    assert desk.store.neighbours.life == timedelta(minutes=15)
    assert desk.store.tickets_opened.life == timedelta(hours=24)


@pytest.fixture
def keeping(target: Target, run: Run[Any], clock: ManualClock, tmp_path: Path) -> Iterator[Desk]:
    """A desk that keeps closed tickets for a week and events for a day."""
    retention = Retention(tickets=timedelta(days=7), audit=timedelta(days=1))
    yield from opened(target, run, clock, tmp_path, retention)


def test_s05_retention_hides_what_is_no_longer_kept(keeping: Desk) -> None:
    """Closed tickets and events end when they are told to; a ticket that is opened again stays."""
    closed, again = keeping.open(), keeping.open()
    for ticket_id in (closed, again):
        keeping.move(ticket_id, TicketStatus.PROCESSING, TicketStatus.READY)
    keeping.move(again, TicketStatus.PROCESSING)

    keeping.clock.advance(8 * 86_400)

    with pytest.raises(TicketMissing):
        keeping(service.get_ticket, closed)
    assert _ids(keeping(service.list_customer_tickets, "cust-001")) == [again]
    assert _ids(keeping(service.list_recent_tickets)) == [again]
    assert keeping(service.get_full_ticket, again).events == []


def test_s05_what_hangs_on_a_ticket_ends_with_it(keeping: Desk) -> None:
    """Files and embedding have their ticket's end, as it is closed and as it is opened again; feedback stays, and counts."""
    text = "The printer jams at the fuser"
    closed, again = (keeping.open(text=text, embedding=embed(text)) for _ in range(2))
    for ticket_id in (closed, again):
        keeping(service.attach, ticket_id, name="a.txt", content_type="text/plain", data=b"x")
        keeping.move(ticket_id, TicketStatus.PROCESSING, TicketStatus.READY)
        keeping(service.attach, ticket_id, name="late.txt", content_type="text/plain", data=b"y")
    keeping(service.give_feedback, closed, NewFeedback("op-01", 5))
    keeping.move(again, TicketStatus.PROCESSING)

    async def ends(ticket_id: str) -> set[Any]:
        files = await keeping.db.query(Attachment.ByTicket(ticket_id=ticket_id))
        vector = await keeping.db.get(TicketVector.Key(ticket_id=ticket_id))
        assert vector is not None
        return {each.ttl async for each in files} | {vector.ttl}

    end = keeping(service.get_ticket, closed).ttl
    assert end is not None
    assert keeping.run(ends(closed)) == {end}
    assert keeping.run(ends(again)) == {None}
    keeping.clock.advance(8 * 86_400)

    for name in ("a.txt", "late.txt"):
        assert keeping(service.get_attachment, again, name).name == name
        with pytest.raises(AttachmentMissing):
            keeping(service.get_attachment, closed, name)
        with pytest.raises(AttachmentMissing):
            keeping(service.detach, closed, name)
    assert [each.rating for each in keeping(service.list_operator_feedback, "op-01")] == [5]


def test_s05_a_file_of_a_ticket_that_is_over_is_not_returned(keeping: Desk) -> None:
    """Whatever its own end says: a file without its ticket is none."""
    ticket_id = keeping.open()
    keeping(service.attach, ticket_id, name="a.txt", content_type="text/plain", data=b"x")
    keeping.run(keeping.db.delete(Ticket.Key(ticket_id=ticket_id)))

    with pytest.raises(AttachmentMissing):
        keeping(service.get_attachment, ticket_id, "a.txt")


def test_s05_similar_ones_are_found_past_those_that_are_over(keeping: Desk) -> None:
    """Embeddings that outlast their tickets hide nothing: the search goes on until there are enough."""
    if not keeping.store.similar.available:
        pytest.skip("the target has no vector indexes")
    texts = [f"printer jams fuser {word}" for word in ("alpha", "beta", "gamma", "delta", "epsilon")]
    over = [keeping.open(text=text, embedding=embed(text)) for text in texts]
    live = [keeping.open(text=text, embedding=embed(text)) for text in ("printer jams", "printer tray jams")]
    for ticket_id in over:
        keeping.run(keeping.db.delete(Ticket.Key(ticket_id=ticket_id)))

    near = keeping(service.find_similar_tickets, text="printer jams fuser", count=2)
    assert {each.ticket.ticket_id for each in near} == set(live)
    like = keeping(service.find_tickets_like, live[0], count=1)
    assert [each.ticket.ticket_id for each in like] == [live[1]]


def test_s06_escalations_enter_a_sparse_index_and_leave_it(desk: Desk) -> None:
    """All escalated tickets last escalated first, and one engineer's; a resolved one is in neither."""
    a, b, c, _ = (desk.open() for _ in range(4))
    for ticket_id, engineer in ((b, "eng-01"), (a, "eng-02"), (c, "eng-01")):
        desk.clock.advance(60)
        desk(service.escalate, ticket_id, engineer=engineer, reason="line stands still")
    assert _ids(desk(service.list_escalations)) == [c, a, b]
    assert _ids(desk(service.list_escalations, engineer="eng-01")) == [c, b]
    escalation = desk(service.list_escalations, limit=1).items[0]
    assert (escalation.assigned_to, escalation.escalation_reason) == ("eng-01", "line stands still")

    desk.move(c, TicketStatus.READY)
    desk.clock.advance(60)
    desk(service.escalate, a, engineer="eng-03", reason="handed on")

    assert _ids(desk(service.list_escalations)) == [a, b]
    assert _ids(desk(service.list_escalations, engineer="eng-02")) == []
    assert _ids(desk(service.list_escalations, engineer="eng-03")) == [a]
    assert desk(service.get_ticket, c, consistent=True).assigned_to is None
    assert _operations(desk, service.list_escalations) == {"Query": 1}
    assert _operations(desk, service.list_escalations, engineer="eng-01") == {"Query": 1}


def test_s08_the_same_request_is_answered_and_not_done_again(desk: Desk) -> None:
    """The same key and payload give the stored answer, another payload is refused, another customer's key is another."""
    new = NewTicket("cust-001", "No network", priority=Priority.HIGH)
    first = desk(service.open_ticket, new, idempotency_key="r-1")
    again = desk(
        service.open_ticket,
        NewTicket("cust-001", "No network", priority=Priority.HIGH),
        idempotency_key="r-1",
    )
    other = desk(service.open_ticket, NewTicket("cust-002", "No network"), idempotency_key="r-1")

    assert (first.replayed, again.replayed, other.replayed) == (False, True, False)
    assert again.value == first.value
    with pytest.raises(IdempotencyMismatch):
        desk(service.open_ticket, NewTicket("cust-001", "No printer"), idempotency_key="r-1")
    assert len(desk(service.list_customer_tickets, "cust-001")) == 1
    feedback = NewFeedback("op-01", 4)
    one = desk(service.give_feedback, first.value.ticket_id, feedback, idempotency_key="f-1")
    two = desk(service.give_feedback, first.value.ticket_id, feedback, idempotency_key="f-1")
    assert (two.value, two.replayed) == (one.value, True)
    assert len(desk(service.list_ticket_feedback, first.value.ticket_id)) == 1


def test_s09_the_dashboard_is_one_query(desk: Desk, busy: dict[str, str]) -> None:
    """Numbers are read with one query of few items, whatever the number of tickets."""
    desk.count()

    spent = desk.spent(service.read_dashboard)
    board = desk(service.read_dashboard)

    assert spent.operations == {"Query": 1}
    assert spent.reads <= 2
    assert len(board.days) == 30


def test_s11_a_large_text_and_large_files_come_back_whole(desk: Desk) -> None:
    """A text and files that no item holds go to the blob store, and are read back as they were."""
    text = "".join(f"{number:x} perché\n" for number in range(60_000))
    assert len(text.encode()) > 400 * 1024
    data = bytes(range(256)) * 4_000
    ticket_id = desk.open(text=text)
    desk(service.attach, ticket_id, name="core.bin", content_type="application/octet-stream", data=data)
    desk(service.attach, ticket_id, name="note.txt", content_type="text/plain", data=b"small")
    desk(service.attach, ticket_id, name="note.txt", content_type="text/plain", data=b"newer")

    file = desk(service.get_full_ticket, ticket_id)
    assert file.ticket is not None
    assert file.ticket.full_text is not None
    assert file.ticket.full_text.place is not None
    assert text.startswith(file.ticket.symptom_text)
    assert desk(service.read_full_text, file.ticket) == text
    assert [each.name for each in file.attachments] == ["core.bin", "note.txt"]
    assert [desk(service.read_attachment, each) for each in file.attachments] == [data, b"newer"]
    desk(service.detach, ticket_id, "note.txt")
    with pytest.raises(AttachmentMissing):
        desk(service.get_attachment, ticket_id, "note.txt")
    with pytest.raises(AttachmentMissing):
        desk(service.detach, ticket_id, "note.txt")
    with pytest.raises(TicketMissing):
        desk(service.attach, "tkt_none", name="a", content_type="text/plain", data=b"")
    with pytest.raises(TextTooLong):
        desk.open(text="x" * 4_000_001)


def test_s11_no_status_is_one_hot_partition(desk: Desk) -> None:
    """What all new tickets would share is spread over shards of the index, evenly, and comes back as one list in order."""
    made = [desk.open() for _ in range(80)]

    async def stored() -> list[dict[str, Any]]:
        answer = await desk.db.call("Scan", {"TableName": desk.db.context.name_of(Tickets)})
        return [item for item in answer["Items"] if "GSI2PK" in item]

    shards = Counter(item["GSI2PK"]["S"] for item in desk.run(stored()))
    assert len(shards) == SHARDS
    assert min(shards.values()) > 80 / SHARDS / 4
    assert _ids(desk(service.list_tickets_by_status, TicketStatus.NEW, limit=80)) == made[::-1]


def test_s11_a_hot_ticket_is_throttled_and_then_goes_on(
    clock: ManualClock, tmp_path: Path, run: Run[Any]
) -> None:
    """What one partition does not take is an error with its reasons and leaves no gap; a second later it is taken."""

    async def steps() -> tuple[TransactionCancelled, list[int], int]:
        patience = RetryPolicy(3, base_s=0.0002, cap_s=0.0005)
        async with connect_async("memory:", emulate="throughput", clock=clock, retry_policy=patience) as db:
            store = SupportDeskStore(db, FolderBlobs(tmp_path))
            await store.create_tables()
            opened = (await service.open_ticket(store, NewTicket("cust-001", "x"))).value.ticket_id
            error = await _until_throttled(store, opened)
            clock.advance(5)
            added = await service.add_note(store, opened, "later")
            numbers = [each.sequence async for each in await db.query(Event.ByTicket(ticket_id=opened))]
            return error, numbers, added.value.sequence

    error, numbers, last = run(steps())
    assert {reason.kind for reason in error.failed.values()} == {"throttled"}
    assert numbers == list(range(1, last + 1))


async def _until_throttled(store: SupportDeskStore, ticket_id: str) -> TransactionCancelled:
    for _ in range(400):
        try:
            await service.add_note(store, ticket_id, "x" * 4_000)
        except TransactionCancelled as error:
            return error
    raise AssertionError("one partition took it all")


def test_s11_stale_reads_and_conflicts_are_told(desk: Desk) -> None:
    """A read that must see the last write says so; a change on what was overtaken writes nothing."""
    ticket_id = desk.open()
    before = desk(service.get_ticket, ticket_id, consistent=True)
    desk.move(ticket_id, TicketStatus.PROCESSING)

    with pytest.raises(TicketChanged):
        desk(service.escalate, ticket_id, engineer="eng-01", reason="?", expected=before.version)

    assert desk(service.list_escalations).items == ()


def test_similar_tickets_are_found_by_their_embeddings(desk: Desk) -> None:
    """Tickets near a text come nearest first; a wrong embedding is refused before anything is written."""
    if not desk.store.similar.available:
        pytest.skip("the target has no vector indexes")
    texts = ("The printer jams at the fuser", "The printer jams after one page", "The router drops the line")
    first, second, third = (desk.open(text=text, embedding=embed(text)) for text in texts)
    plain = desk.open(text="Our printer jams at the fuser")

    near = desk(service.find_similar_tickets, text="printer jams", count=3)
    like = desk(service.find_tickets_like, first, count=1)

    assert [each.ticket.ticket_id for each in near][2] == third
    assert near[0].distance <= near[1].distance <= near[2].distance
    assert [each.ticket.ticket_id for each in like] == [second]
    words = desk(service.find_tickets_like, plain, count=1)
    assert [each.ticket.ticket_id for each in words] == [first], "without an embedding, by its words"
    assert desk(service.find_tickets_like, "tkt_none") == []
    with pytest.raises(EmbeddingRefused, match="64"):
        desk.open(embedding=(1.0, 2.0))
    assert len(desk(service.list_recent_tickets)) == 4


def test_a_stranger_in_the_transaction_is_not_taken_for_done(desk: Desk) -> None:
    """An event that stands where the next one should cancels the change with its own reason, and nothing is written."""
    ticket_id = desk.open()
    desk.clock.advance(60)
    at = desk.store.now()
    intruder = Event(ticket_id=ticket_id, at=at, sequence=2, kind=EventKind.NOTE_ADDED)
    desk.run(desk.db.create(intruder))

    with pytest.raises(TransactionCancelled):
        desk(service.change_ticket, ticket_id, TicketStatus.PROCESSING)

    assert desk(service.get_ticket, ticket_id, consistent=True).status is TicketStatus.NEW


def test_ids_of_sessions_stay_out_of_sentences(desk: Desk) -> None:
    """Who has the id of a session has the session, so no repr shows it."""
    login = desk(service.start_session, "cust-001", UserRole.CUSTOMER)

    assert login.session_id not in repr(login)
    assert isinstance(login, Login)
