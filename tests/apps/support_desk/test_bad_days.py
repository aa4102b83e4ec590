"""Bad days: duplicates by the hundred, changes at once, a process that is killed, a projector that stopped."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tavola import ItemImmutable
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import NewFeedback, NewTicket, Priority, TicketStatus
from tavola.apps.support_desk.errors import TicketBusy, TicketChanged, TicketTransitionRefused
from tavola.apps.support_desk.metrics import create_projector
from tavola.apps.support_desk.model import DeskMetric, Event, Ticket, Tickets
from tavola.patterns import Answer
from tests.apps.support_desk.conftest import Desk

DUPLICATES = 200


def test_two_hundred_duplicates_of_one_request_make_one_ticket(desk: Desk) -> None:
    """However many ask the same at once, there is one ticket with one event, and all are given its id."""
    new = NewTicket("cust-001", "No paper", priority=Priority.HIGH)

    async def at_once() -> list[Answer[Any]]:
        return await asyncio.gather(
            *(service.open_ticket(desk.store, new, idempotency_key="r-1") for _ in range(DUPLICATES))
        )

    answers = desk.run(at_once())

    assert len({answer.value.ticket_id for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1
    assert len(desk(service.list_recent_tickets)) == 1
    assert len(desk(service.list_events, answers[0].value.ticket_id)) == 1


def test_without_a_key_duplicates_are_tickets(desk: Desk) -> None:
    """A planted fault: the same requests without a key make a ticket each, so what keeps them one is the key."""
    new = NewTicket("cust-001", "No paper")

    async def at_once() -> None:
        await asyncio.gather(*(service.open_ticket(desk.store, new) for _ in range(5)))

    desk.run(at_once())

    assert len(desk(service.list_recent_tickets)) == 5


def test_of_changes_at_once_one_wins_and_the_others_are_told(desk: Desk) -> None:
    """Many who saw the same version change a ticket: one history comes of it, and the ticket is as its last event says."""
    ticket_id = desk.open()
    wishes = [TicketStatus.PROCESSING, TicketStatus.FAILED] * 10

    async def at_once() -> list[Any]:
        changes = (service.change_ticket(desk.store, ticket_id, status, expected=1) for status in wishes)
        return await asyncio.gather(*changes, return_exceptions=True)

    results = desk.run(at_once())

    won = [each for each in results if isinstance(each, Ticket)]
    assert len(won) == 1
    assert all(isinstance(each, TicketChanged) for each in results if each not in won)
    _one_history(desk, ticket_id, 2)


def test_changes_at_once_without_a_version_leave_one_history(desk: Desk) -> None:
    """Who gave no version is tried again where another was faster; no number is shared and none is left out."""
    ticket_id = desk.open()

    async def at_once() -> list[Any]:
        changes: list[Any] = []
        for number in range(8):
            changes.append(service.change_ticket(desk.store, ticket_id, TicketStatus.PROCESSING))
            changes.append(service.escalate(desk.store, ticket_id, engineer=f"eng-{number}", reason="?"))
            changes.append(service.change_ticket(desk.store, ticket_id, TicketStatus.READY))
        return await asyncio.gather(*changes, return_exceptions=True)

    results = desk.run(at_once())

    failed = [each for each in results if isinstance(each, BaseException)]
    assert all(isinstance(each, TicketBusy | TicketTransitionRefused) for each in failed)
    ticket = desk(service.get_ticket, ticket_id, consistent=True)
    _one_history(desk, ticket_id, ticket.version)


def _one_history(desk: Desk, ticket_id: str, length: int) -> None:
    """Check that events are numbered in a row, follow from each other, and end where the ticket stands."""
    ticket = desk(service.get_ticket, ticket_id, consistent=True)
    events = desk(service.list_events, ticket_id).items
    assert [event.sequence for event in events] == list(range(1, length + 1))
    changes = [event for event in events if event.new_status is not None]
    assert [event.old_status for event in changes[1:]] == [event.new_status for event in changes[:-1]]
    assert (changes[-1].new_status, ticket.version) == (ticket.status, length)


@pytest.mark.slow
def test_a_process_killed_in_a_create_leaves_all_or_nothing(tmp_path: Path) -> None:
    """Killed at any point, there is a ticket with its event and its answer, or none of them; the same request then makes it one."""
    seen = _killed(tmp_path)

    assert (
        sum(outcome["killed"] for outcome in seen) > len(seen) // 2
    )  # the last points may lie behind the end
    assert {(outcome["tickets"], outcome["events"], outcome["outcomes"]) for outcome in seen} == {
        (0, 0, 0),
        (1, 1, 1),
    }
    assert all(outcome["replayed"] == bool(outcome["tickets"]) for outcome in seen)
    assert {outcome["in the end"] for outcome in seen} == {1}


@pytest.mark.slow
def test_kills_find_what_is_written_one_after_another(tmp_path: Path) -> None:
    """A planted fault: without a transaction some kills leave a part."""
    seen = _killed(tmp_path, "--apart")

    parts = {(outcome["tickets"], outcome["events"], outcome["outcomes"]) for outcome in seen} - {
        (0, 0, 0),
        (1, 1, 1),
    }
    assert parts


def _killed(folder: Path, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.apps.support_desk.killed", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _kept(desk: Desk) -> dict[tuple[str, str], tuple[int, Any]]:
    """Return the numbers as they are kept."""

    async def steps() -> dict[tuple[str, str], tuple[int, Any]]:
        return {
            (each.name, each.part): (each.count, each.total)
            async for each in await desk.db.scan(DeskMetric, consistent=True)
            if each.count
        }

    found: dict[tuple[str, str], tuple[int, Any]] = desk.run(steps())
    return found


def _exact(desk: Desk) -> dict[tuple[str, str], tuple[int, Any]]:
    """Return the numbers as the table itself has them."""
    sums = desk.run(desk.store.projector.recount())
    return {number: (summed.count, summed.total) for number, summed in sums.items()}


def _work(desk: Desk, rounds: int) -> None:
    """Open tickets, resolve some, judge some, delete one."""
    for number in range(rounds):
        first, second, third = (desk.open(customer=f"cust-{number}") for _ in range(3))
        desk.move(first, TicketStatus.PROCESSING, TicketStatus.READY)
        desk(service.give_feedback, first, NewFeedback("op-01", 1 + number % 5))
        desk(service.escalate, second, engineer="eng-01", reason="?")
        desk.run(desk.db.delete(Ticket.Key(ticket_id=third)))


def test_a_stopped_projector_catches_up_to_exact_numbers(desk: Desk, tmp_path: Path) -> None:
    """It goes on from its checkpoint, also where it died after counting and before noting that."""
    folder = tmp_path / "place"

    async def follow() -> int:
        changes = await desk.db.subscribe(Tickets, from_="start", follow=False, checkpoint=folder)
        return await create_projector(desk.db).follow(changes)

    async def count_and_die() -> None:
        changes = await desk.db.subscribe(Tickets, from_="start", follow=False, checkpoint=folder)
        batch = await changes.take()
        assert batch is not None
        await create_projector(desk.db).apply(batch.changes)  # and nobody asks for the next

    _work(desk, 1)
    desk.run(follow())
    assert _kept(desk) == _exact(desk)
    _work(desk, 2)
    assert _kept(desk) != _exact(desk)  # it stands still, and the numbers are behind
    desk.run(count_and_die())
    _work(desk, 1)
    assert desk.run(follow()) > 0

    assert _kept(desk) == _exact(desk)


def test_two_projectors_at_once_count_once(desk: Desk) -> None:
    """Two readers of one stream, and a rebuild beside them, come to the numbers of one."""
    _work(desk, 2)

    async def at_once() -> None:
        readers = [create_projector(desk.db) for _ in range(2)]
        await asyncio.gather(
            *[
                reader.follow(await desk.db.subscribe(Tickets, from_="start", follow=False))
                for reader in readers
            ],
            desk.store.projector.rebuild(),
        )

    desk.run(at_once())

    assert _kept(desk) == _exact(desk)


def test_numbers_are_rebuilt_from_the_table(desk: Desk) -> None:
    """Where the stream is lost the table tells: a rebuild gives the same numbers, and mends what is wrong."""
    _work(desk, 2)
    desk.run(desk.store.projector.rebuild())
    assert _kept(desk) == _exact(desk)
    desk.count()
    assert _kept(desk) == _exact(desk)

    assert desk.run(desk.store.projector.rebuild()).counted == 0


def test_an_event_cannot_be_written_over(desk: Desk) -> None:
    """What happened stays: the client refuses to put over an event, or to change one."""
    ticket_id = desk.open()
    event = desk(service.list_latest_events, ticket_id, 1)[0]
    key = Event.Key(ticket_id=ticket_id, at=event.at, sequence=1)

    with pytest.raises(ItemImmutable):
        desk.run(desk.db.put(event))
    with pytest.raises(ItemImmutable):
        desk.run(desk.db.update(key, Event.note.set("x")))
