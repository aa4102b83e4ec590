"""Changes: how a ticket is changed, with the event that tells of it, both or none.

A ticket's version is its lock and the number of its last event. A change is one transaction: the ticket, held to the version
that was read, and an event with the next number. So two writers never share a number, and of two changes at once one comes
second: who named a version is told so, and who did not is tried again on what the other left. An event is never older than the
one before it, so time and number give one order, whatever the writers' clocks say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from tavola import AsyncTransaction, Change, Intent, TransactionCancelled
from tavola.apps.support_desk.domain import EVENTS_MAX, FILES_MAX, Amendment, EventKind, Status, allowed
from tavola.apps.support_desk.errors import (
    DeskError,
    NotEscalated,
    TicketBusy,
    TicketChanged,
    TicketFull,
    TicketMissing,
    TransitionRefused,
)
from tavola.apps.support_desk.model import Attachment, Event, Ticket, TicketVector
from tavola.apps.support_desk.store import NoteAdded, SupportDeskStore
from tavola.patterns import Answer

ATTEMPTS_MAX = 8  # of a change that depends on nothing that others change
NOTHING = Amendment()

T = TypeVar("T")
Fill = Callable[[AsyncTransaction], object]


async def change_ticket(
    store: SupportDeskStore,
    ticket_id: str,
    *,
    status: Status | None = None,
    changes: Amendment = NOTHING,
    expected: int | None = None,
    actor: str | None = None,
    note: str | None = None,
) -> Ticket:
    """Change a ticket, its status or anything else, and tell one event, together; return the ticket as it is now.

    `expected` is the version that the caller has seen: where the ticket is at another, or somebody else is faster, that is a
    `TicketChanged`. A status that may not follow is a `TransitionRefused`. What is so already is no change, and
    where nothing changes nothing is written. ESCALATED is `escalate`'s.
    """

    async def change(before: Ticket) -> Ticket:
        at = moment_after(store, before)
        values = _amended(before, changes)
        details = {name: "" if value is None else str(value) for name, value in values.items()}
        kind = EventKind.AMENDED if values else EventKind.NOTE_ADDED
        if status is not None and status is not before.status:
            if status is Status.ESCALATED or not allowed(before.status, status):
                raise TransitionRefused(ticket_id, before.status, status)
            kind = EventKind.STATUS_CHANGED
            values |= _moved(store, status, at)
        if not values and note is None:
            return before
        after, _ = await record(store, before, kind, values, at, actor=actor, note=note, details=details)
        return after

    return await on_current(store, ticket_id, expected, change)


async def change_status(
    store: SupportDeskStore,
    ticket_id: str,
    status: Status,
    *,
    expected: int | None = None,
    actor: str | None = None,
    note: str | None = None,
) -> Ticket:
    """Change a ticket's status as `change_ticket` does."""
    return await change_ticket(store, ticket_id, status=status, expected=expected, actor=actor, note=note)


async def escalate(
    store: SupportDeskStore,
    ticket_id: str,
    *,
    engineer: str,
    reason: str,
    expected: int | None = None,
    actor: str | None = None,
) -> Ticket:
    """Hand a ticket to an engineer; one that is escalated already is handed on. Return the ticket as it is now."""

    async def change(before: Ticket) -> Ticket:
        if before.status is not Status.ESCALATED and not allowed(before.status, Status.ESCALATED):
            raise TransitionRefused(ticket_id, before.status, Status.ESCALATED)
        at = moment_after(store, before)
        values = {
            **_moved(store, Status.ESCALATED, at),
            "assigned_to": engineer,
            "escalated_at": at,
            "escalation_reason": reason,
        }
        told = {"assigned_to": engineer}
        after, _ = await record(
            store, before, EventKind.ESCALATED, values, at, actor=actor, note=reason, details=told
        )
        return after

    return await on_current(store, ticket_id, expected, change)


async def end_escalation(
    store: SupportDeskStore, ticket_id: str, *, expected: int | None = None, actor: str | None = None
) -> Ticket:
    """Take a ticket back from its engineer: it is PROCESSING again. One that is not escalated is a `NotEscalated`."""

    async def change(before: Ticket) -> Ticket:
        if before.status is not Status.ESCALATED:
            raise NotEscalated(ticket_id, before.status)
        at = moment_after(store, before)
        values = _moved(store, Status.PROCESSING, at)
        after, _ = await record(store, before, EventKind.STATUS_CHANGED, values, at, actor=actor)
        return after

    return await on_current(store, ticket_id, expected, change)


async def add_note(
    store: SupportDeskStore,
    ticket_id: str,
    note: str,
    *,
    actor: str | None = None,
    request: str | None = None,
) -> Answer[NoteAdded]:
    """Add a note to a ticket's timeline; idempotent under a request's key."""

    async def add(before: Ticket) -> Answer[NoteAdded]:
        at = moment_after(store, before)
        writes: list[Recorded] = []

        def fill(tx: AsyncTransaction) -> NoteAdded:
            made = told_in(tx, store, before, EventKind.NOTE_ADDED, {}, at, actor=actor, note=note)
            writes.append(made)
            return NoteAdded(ticket_id=ticket_id, at=at, sequence=made.event.sequence, actor=actor, note=note)

        try:
            if request is not None:
                scope = f"notes/{ticket_id}"
                return await store.notes_added.together(request, (note, actor), fill, scope=scope)
            async with store.db.transaction() as tx:
                added = fill(tx)
            return Answer(added, replayed=False)
        except TransactionCancelled as error:
            refused = refusal_of(error, writes[-1].intent, before)
            if refused is None:
                raise
            raise refused from error

    return await on_current(store, ticket_id, None, add)


# How


async def current(store: SupportDeskStore, ticket_id: str, expected: int | None = None) -> Ticket:
    """Return a ticket as it is now, read consistently; refuse one at another version than expected."""
    found = await store.db.get(Ticket.Key(ticket_id=ticket_id), consistent=True)
    if found is None:
        raise TicketMissing(ticket_id)
    if expected is not None and found.version != expected:
        raise TicketChanged(ticket_id, expected, found.version)
    return found


async def on_current(
    store: SupportDeskStore, ticket_id: str, expected: int | None, change: Callable[[Ticket], Awaitable[T]]
) -> T:
    """Do a change on a ticket as it is now; where no version is expected, again on what somebody else made of it meanwhile."""

    async def once() -> T:
        return await change(await current(store, ticket_id, expected))

    return await once() if expected is not None else await persistently(store, ticket_id, once)


async def persistently(store: SupportDeskStore, ticket_id: str, change: Callable[[], Awaitable[T]]) -> T:
    """Do a change that reads before it writes, again where others were faster, after growing pauses; in the end `TicketBusy`."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            return await change()
        except TicketChanged as error:
            if attempt == ATTEMPTS_MAX:
                raise TicketBusy(ticket_id, attempt) from error
        await asyncio.sleep(store.db.context.retry_policy.pause_s(attempt))
    raise AssertionError("the last attempt returns or raises")


def moment_after(store: SupportDeskStore, before: Ticket) -> datetime:
    """Return the moment of a change: now, and not before the last one."""
    return max(store.now(), before.updated_at)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A change that a transaction holds: the ticket as it will be, the event, and the write that the lock is on."""

    ticket: Ticket
    event: Event
    intent: Intent[Ticket]


def told_in(
    tx: AsyncTransaction,
    store: SupportDeskStore,
    before: Ticket,
    kind: EventKind,
    values: dict[str, Any],
    at: datetime,
    *,
    actor: str | None = None,
    note: str | None = None,
    details: dict[str, str] | None = None,
) -> Recorded:
    """Put a change of a ticket and its event into a transaction."""
    sequence = before.version + 1
    if sequence > EVENTS_MAX:
        raise TicketFull(before.ticket_id, EVENTS_MAX)
    status: Status = values.get("status", before.status)
    event = Event(
        ticket_id=before.ticket_id,
        at=at,
        sequence=sequence,
        kind=kind,
        actor=actor,
        old_status=before.status if status is not before.status else None,
        new_status=status if status is not before.status else None,
        note=note,
        details=details or {},
        ttl=store.audit_ends(at),
    )
    values = values | {"updated_at": at}
    changes: list[Change[Ticket]] = [getattr(Ticket, name).set(value) for name, value in values.items()]
    # What never changes is said all the same: the index keys are then known without another read.
    same = Ticket.customer_id.eq(before.customer_id) & Ticket.created_at.eq(before.created_at)
    intent = tx.update(before, *changes, when=same)
    tx.create(event)
    return Recorded(before.model_copy(update={**values, "version": sequence}), event, intent)


async def record(
    store: SupportDeskStore,
    before: Ticket,
    kind: EventKind,
    values: dict[str, Any],
    at: datetime,
    *,
    actor: str | None = None,
    note: str | None = None,
    details: dict[str, str] | None = None,
    more: Fill | None = None,
) -> tuple[Ticket, Event]:
    """Change a ticket and tell the event, with what `more` adds; return both. One that was changed since `before` is a `TicketChanged`."""
    tx = store.db.transaction()
    made = told_in(tx, store, before, kind, values, at, actor=actor, note=note, details=details)
    if more is not None:
        more(tx)
    if "ttl" in values and values["ttl"] != before.ttl:
        await _end_with(tx, store, before, values["ttl"])
    try:
        await tx.commit()
    except TransactionCancelled as error:
        refused = refusal_of(error, made.intent, before)
        if refused is None:
            raise
        raise refused from error
    return made.ticket, made.event


def refusal_of(error: TransactionCancelled, intent: Intent[Ticket], before: Ticket) -> DeskError | None:
    """Return what a cancelled change means at the desk; None where its reason is another's."""
    reason = error.failed.get(intent)
    if reason is not None and reason.kind == "lock":
        found = reason.item
        return TicketChanged(
            before.ticket_id, before.version, before.version if found is None else found.version
        )
    if reason is not None and reason.kind == "missing":
        return TicketMissing(before.ticket_id)
    return None


async def _end_with(
    tx: AsyncTransaction, store: SupportDeskStore, ticket: Ticket, ends: datetime | None
) -> None:
    """Let a ticket's files and its embedding end when it does, in the same transaction; feedback stays, and counts.

    The lock on the ticket holds these still: whoever attaches a file changes the ticket too.
    """
    if ticket.files:
        asked = Attachment.OfTicket(ticket_id=ticket.ticket_id)
        for file in (await store.db.query(asked, limit=FILES_MAX)).items:
            tx.update(file, Attachment.ttl.set(ends))
    vector = await store.db.get(TicketVector.Key(ticket_id=ticket.ticket_id), consistent=True)
    if vector is not None:
        tx.update(vector, TicketVector.ttl.set(ends))


def _amended(before: Ticket, changes: Amendment) -> dict[str, Any]:
    """Return the values of an amendment that are not so already."""
    told: dict[str, Any] = {"subject": changes.subject, "priority": changes.priority}
    values = {name: value for name, value in told.items() if value not in (None, getattr(before, name))}
    if changes.product is not None and (changes.product or None) != before.product:
        values["product"] = changes.product or None
    return values


def _moved(store: SupportDeskStore, status: Status, at: datetime) -> dict[str, Any]:
    """Return what a change of status sets, besides who has it in hand."""
    return {
        "status": status,
        "completed_at": at if status is Status.READY else None,
        "assigned_to": None,
        "escalated_at": None,
        "escalation_reason": None,
        "ttl": store.ticket_ends(status, at),
    }
