"""The month of demo data is believable, keeps to the rules, and is the same from the same seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tavola import AsyncConnection, Progress, RetryPolicy, SeededEntropy, connect_async, to_item
from tavola.apps.seeding import RandomChoices, SeedUnfinished
from tavola.apps.support_desk import metrics, service
from tavola.apps.support_desk.domain import (
    SUBJECT_CHARACTERS_MAX,
    TRANSITIONS,
    EventKind,
    TicketStatus,
    make_subject,
)
from tavola.apps.support_desk.model import Event, Feedback, Ticket, Tickets, TicketVector
from tavola.apps.support_desk.month import DemoMonth
from tavola.apps.support_desk.phrases import TOPICS, complaint_text
from tavola.apps.support_desk.seed import SeedCounts, load
from tavola.apps.support_desk.similar import embed
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.patterns import FolderBlobs
from tests.apps.conftest import Run, Target

NOW = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)  # a Monday
BRISK = RetryPolicy(base_s=0.0001, cap_s=0.001)


def _month(seed: int = 1) -> DemoMonth:
    return DemoMonth(SeededEntropy(seed), NOW, days=30, customers=300, engineers=12, operators=24)


@pytest.fixture(scope="module")
def entities() -> list[Any]:
    """Two thousand tickets and what hangs on them."""
    month = _month()
    return [
        entity
        for number in range(2_000)
        for entity in month.ticket("device.log" if number % 250 == 0 else None)
    ]


def _of(entities: list[Any], kind: type[Any]) -> list[Any]:
    return [entity for entity in entities if isinstance(entity, kind)]


def test_one_seed_gives_one_month() -> None:
    """The same entropy and moment make the same entities; another seed makes others."""
    first, again, other = _month(), _month(), _month(2)

    once = [to_item(entity) for _ in range(20) for entity in first.ticket()]

    assert once == [to_item(entity) for _ in range(20) for entity in again.ticket()]
    assert once != [to_item(entity) for _ in range(20) for entity in other.ticket()]


def test_each_ticket_keeps_to_the_rules(entities: list[Any]) -> None:
    """Events are numbered in a row and in time, each status may follow the one before, and the ticket is as the last says."""
    timelines: dict[str, list[Event]] = {}
    for event in _of(entities, Event):
        timelines.setdefault(event.ticket_id, []).append(event)

    for ticket in _of(entities, Ticket):
        events = timelines[ticket.ticket_id]
        assert [event.sequence for event in events] == list(range(1, ticket.version + 1))
        assert [event.at for event in events] == sorted(event.at for event in events)
        assert all(event.new_status in TRANSITIONS[event.old_status] for event in events if event.old_status)
        moved = [event for event in events if event.new_status]
        assert (moved[-1].new_status, events[-1].at) == (ticket.status, ticket.updated_at)
        assert ticket.completed_at == (moved[-1].at if ticket.status is TicketStatus.READY else None)
        assert (ticket.escalated_at is not None) == (ticket.status is TicketStatus.ESCALATED)
        assert ticket.files == sum(event.kind is EventKind.FILE_ATTACHED for event in events)
        assert all(event.actor is not None for event in events)
        assert NOW - timedelta(days=35) < ticket.created_at < NOW


def test_the_month_is_believable(entities: list[Any]) -> None:
    """Some three events a ticket, of every kind, 2 % escalated, 40 % of the resolved judged; weekends are quiet, a few customers are loud."""
    tickets = _of(entities, Ticket)
    resolved = [ticket for ticket in tickets if ticket.status is TicketStatus.READY]
    weekend = [ticket for ticket in tickets if ticket.created_at.weekday() > 4]
    night = [ticket for ticket in tickets if ticket.created_at.hour < 6]
    loudest = Counter(ticket.customer_id for ticket in tickets).most_common()

    assert 3.0 < len(_of(entities, Event)) / len(tickets) < 3.4
    assert {event.kind for event in _of(entities, Event)} == set(EventKind) - {EventKind.FILE_REMOVED}
    assert any(event.old_status is TicketStatus.READY for event in _of(entities, Event))  # opened again
    assert (
        0.004
        < sum(ticket.status in (TicketStatus.NEW, TicketStatus.PROCESSING) for ticket in tickets)
        / len(tickets)
        < 0.03
    )
    assert 0.01 < sum(ticket.status is TicketStatus.ESCALATED for ticket in tickets) / len(tickets) < 0.03
    assert 0.35 < len(_of(entities, Feedback)) / len(resolved) < 0.45
    assert len({ticket.assigned_to for ticket in tickets if ticket.assigned_to}) <= 12
    assert len(weekend) / len(tickets) < 0.15
    assert len(night) / len(tickets) < 0.08
    assert len(loudest) > 150
    assert loudest[0][1] > 10 * loudest[len(loudest) // 2][1]
    assert len(_of(entities, TicketVector)) > 0.1 * len(tickets)


@pytest.mark.parametrize("today", [NOW, NOW + timedelta(days=3, hours=6)], ids=["Monday", "Thursday"])
def test_the_desk_is_as_quick_at_the_end_as_at_the_beginning(today: datetime) -> None:
    """The time to resolution of a day, counted on the day it was resolved, neither climbs nor falls over the month that is shown."""
    month = DemoMonth(SeededEntropy(7), today, days=30, customers=300, engineers=12, operators=24)
    tickets = [
        each
        for _ in range(6_000)
        for each in month.ticket()
        if isinstance(each, Ticket) and each.completed_at
    ]
    weeks: dict[int, list[float]] = {}
    days: dict[date, list[float]] = {}
    for ticket in tickets:
        assert ticket.completed_at is not None
        hours = (ticket.completed_at - ticket.created_at).total_seconds() / 3_600
        back = (today.date() - ticket.completed_at.date()).days
        if back < 30:
            days.setdefault(ticket.completed_at.date(), []).append(hours)
            weeks.setdefault(back // 10, []).append(hours)

    assert len(days) == 30
    assert all(2 < sum(hours) / len(hours) < 20 for hours in days.values())
    first, middle, last = (sum(weeks[n]) / len(weeks[n]) for n in (2, 1, 0))
    assert max(first, middle, last) < 1.35 * min(first, middle, last)


def test_twenty_thousand_tickets_have_their_own_words() -> None:
    """Few first lines are the same, and hardly a text; those about one thing still share words."""
    chance = RandomChoices(SeededEntropy(3))
    texts = [complaint_text(chance.choose(TOPICS), chance.choose) for _ in range(20_000)]
    subjects = Counter(make_subject(text) for text in texts)

    assert len(set(texts)) > 19_500
    assert len(subjects) > 15_000
    assert subjects.most_common(1)[0][1] < 12
    assert max(map(len, subjects)) <= SUBJECT_CHARACTERS_MAX
    printers = [embed(text) for text in texts if "office printer" in text and "stripes" in text][:2]
    assert sum(a * b for a, b in zip(*printers, strict=True)) > 0.4


def test_a_month_is_loaded_with_its_numbers(target: Target, run: Run[Any], tmp_path: Path) -> None:
    """Everything is in the table under keys that are right, the numbers are exact, and progress is told."""
    progress: list[Progress] = []

    async def steps() -> tuple[SeedCounts, Any, Any, Any]:
        async with target.connect() as db:
            store = SupportDeskStore(db, FolderBlobs(tmp_path))
            await store.create_tables()
            loaded = await load(
                store, entropy=SeededEntropy(1), now=NOW, tickets=260, progress=progress.append
            )
            dashboard = await metrics.read_dashboard(db, NOW.date(), 35)
            exact = await store.projector.recount()
            report = await db.verify_keys(Tickets)
            recent = await service.list_recent_tickets(store, limit=1)
            file = await service.get_full_ticket(store, recent.items[0].ticket_id)
            assert file.events
            return loaded, dashboard, exact, report

    loaded, dashboard, exact, report = run(steps())

    assert (loaded.tickets, loaded.attachments) == (260, 2)
    assert report.items == loaded.items
    assert report.problems == ()
    assert dashboard.tickets == 260
    assert dashboard.by_status == {
        status: exact[metrics.DESK, f"total/status/{status}"].count
        if (metrics.DESK, f"total/status/{status}") in exact
        else 0
        for status in TicketStatus
    }
    assert dashboard.satisfaction.count == loaded.feedback
    assert sum(day.opened for day in dashboard.days) == 260
    assert [(each.done, each.total) for each in progress] == [(200, 260), (260, 260)]


def test_what_is_left_undone_is_asked_again(tmp_path: Path, run: Run[Any]) -> None:
    """Items that a batch leaves are written in the end; a table that takes nothing is an error, and not a silence."""

    async def steps() -> int:
        async with connect_async("memory:", emulate="unprocessed=0.2,seed=5", retry_policy=BRISK) as db:
            store = SupportDeskStore(db, FolderBlobs(tmp_path))
            await store.create_tables()
            await load(store, entropy=SeededEntropy(1), now=NOW, tickets=30, rebuild=False)
            return len([each async for each in await db.scan(Ticket)])

    assert run(steps()) == 30

    class Full(AsyncConnection):
        """A table that is throttled for ever."""

        async def call(self, operation: str, request: Any = None) -> dict[str, Any]:
            """Leave every batch undone."""
            if operation == "BatchWriteItem":
                return {"UnprocessedItems": request["RequestItems"]}
            return await super().call(operation, request)

    async def refused() -> None:
        async with connect_async("memory:", retry_policy=BRISK) as db:
            full = Full(db.backend, context=db.context)
            store = SupportDeskStore(full, FolderBlobs(tmp_path))
            await store.create_tables()
            await load(store, entropy=SeededEntropy(1), now=NOW, tickets=1, rebuild=False)

    with pytest.raises(SeedUnfinished):
        run(refused())


def test_a_ticket_has_one_language(entities: list[Any]) -> None:
    """The subject, the notes, the reasons and the comments of a ticket are all in English or all in Italian."""
    written: dict[str, set[str]] = {}
    for entity in entities:
        texts: list[str | None] = []
        if isinstance(entity, Ticket):
            texts = [entity.escalation_reason]
        elif isinstance(entity, Event):
            texts = [entity.note]
        elif isinstance(entity, Feedback):
            texts = [entity.comment]
        written.setdefault(entity.ticket_id, set()).update(text for text in texts if text is not None)
    seen = set()
    for ticket in _of(entities, Ticket):
        phrases = next(topic.phrases for topic in TOPICS if ticket.symptom_text.startswith(topic.devices))
        seen.add(phrases.location)

        assert written[ticket.ticket_id] <= {
            text
            for field in fields(phrases)
            if field.name != "location"
            for text in getattr(phrases, field.name)
        }
    assert seen == {"room", "locale"}
