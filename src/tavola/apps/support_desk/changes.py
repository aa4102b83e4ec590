"""Changes of a ticket, each with its event in the same transaction.

A ticket's version is its lock and the number of its last event. A change is one transaction:

    update TICKET#t1 METADATA   version 3 → 4, on condition that it is still 3
    create TICKET#t1 EVENT#…#000004

So two writers never use the same event number, and of two concurrent changes one fails. A caller that named a version gets the
failure; otherwise the change is repeated on the ticket's new state. An event is never older than the one before it, so
time and number give the same order whatever the writers' clocks say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from tavola import AsyncTransaction, Change, Intent, TransactionCancelled
from tavola.apps.support_desk.domain import (
    EVENTS_MAX,
    FILES_MAX,
    Amendment,
    EventKind,
    TicketStatus,
    is_allowed,
)
from tavola.apps.support_desk.errors import (
    EventLimitReached,
    NotEscalated,
    SupportDeskError,
    TicketBusy,
    TicketChanged,
    TicketMissing,
    TicketTransitionRefused,
)
from tavola.apps.support_desk.model import Attachment, Event, Ticket, TicketVector
from tavola.apps.support_desk.store import NoteAdded, SupportDeskStore
from tavola.patterns import Answer

ATTEMPTS_MAX = 8  # at a change without an expected version
NO_AMENDMENT = Amendment()

T = TypeVar("T")
Fill = Callable[[AsyncTransaction], object]


async def change_ticket(
    store: SupportDeskStore,
    ticket_id: str,
    status: TicketStatus | None = None,
    *,
    changes: Amendment = NO_AMENDMENT,
    expected: int | None = None,
    actor: str | None = None,
    note: str | None = None,
) -> Ticket:
    """Change a ticket's status or other fields and write one event; return the changed ticket.

    `expected` is the version that the caller read; if the ticket is at another version, `TicketChanged` is raised. A status that may not
    follow raises `TicketTransitionRefused`. If nothing differs, nothing is written. Use `escalate` to reach ESCALATED.
    """

    async def change(before: Ticket) -> Ticket:
        at = change_time(store, before)
        values = _amended_fields(before, changes)
        details = {name: "" if value is None else str(value) for name, value in values.items()}
        kind = EventKind.AMENDED if values else EventKind.NOTE_ADDED
        if status is not None and status is not before.status:
            if status is TicketStatus.ESCALATED or not is_allowed(before.status, status):
                raise TicketTransitionRefused(ticket_id, before.status, status)
            kind = EventKind.STATUS_CHANGED
            values |= _status_fields(store, status, at)
        if not values and note is None:
            return before
        return await commit_change(store, before, TicketChange(kind, at, values, actor, note, details))

    return await change_current(store, ticket_id, expected, change)


async def escalate(
    store: SupportDeskStore,
    ticket_id: str,
    *,
    engineer: str,
    reason: str,
    expected: int | None = None,
    actor: str | None = None,
) -> Ticket:
    """Assign a ticket to an engineer; an escalated one is reassigned. Return the changed ticket."""

    async def change(before: Ticket) -> Ticket:
        if before.status is not TicketStatus.ESCALATED and not is_allowed(
            before.status, TicketStatus.ESCALATED
        ):
            raise TicketTransitionRefused(ticket_id, before.status, TicketStatus.ESCALATED)
        at = change_time(store, before)
        values = {
            **_status_fields(store, TicketStatus.ESCALATED, at),
            "assigned_to": engineer,
            "escalated_at": at,
            "escalation_reason": reason,
        }
        escalation = TicketChange(EventKind.ESCALATED, at, values, actor, reason, {"assigned_to": engineer})
        return await commit_change(store, before, escalation)

    return await change_current(store, ticket_id, expected, change)


async def end_escalation(
    store: SupportDeskStore, ticket_id: str, *, expected: int | None = None, actor: str | None = None
) -> Ticket:
    """Return an escalated ticket to PROCESSING; raise `NotEscalated` if it is not escalated."""

    async def change(before: Ticket) -> Ticket:
        if before.status is not TicketStatus.ESCALATED:
            raise NotEscalated(ticket_id, before.status)
        at = change_time(store, before)
        values = _status_fields(store, TicketStatus.PROCESSING, at)
        return await commit_change(store, before, TicketChange(EventKind.STATUS_CHANGED, at, values, actor))

    return await change_current(store, ticket_id, expected, change)


async def add_note(
    store: SupportDeskStore,
    ticket_id: str,
    note: str,
    *,
    actor: str | None = None,
    idempotency_key: str | None = None,
) -> Answer[NoteAdded]:
    """Add a note to a ticket's timeline; once per idempotency key."""

    async def add(before: Ticket) -> Answer[NoteAdded]:
        at = change_time(store, before)
        staged_changes: list[StagedChange] = []

        def fill(tx: AsyncTransaction) -> NoteAdded:
            change = TicketChange(EventKind.NOTE_ADDED, at, actor=actor, note=note)
            staged = stage_change(tx, store, before, change)
            staged_changes.append(staged)
            return NoteAdded(
                ticket_id=ticket_id, at=at, sequence=staged.event.sequence, actor=actor, note=note
            )

        try:
            if idempotency_key is not None:
                scope = f"notes/{ticket_id}"
                return await store.notes_added.together(idempotency_key, (note, actor), fill, scope=scope)
            async with store.db.transaction() as tx:
                receipt = fill(tx)
            return Answer(receipt, replayed=False)
        except TransactionCancelled as error:
            conflict = conflict_error(error, staged_changes[-1].intent, before)
            if conflict is None:
                raise
            raise conflict from error

    return await change_current(store, ticket_id, None, add)


# Shared steps


async def get_current(store: SupportDeskStore, ticket_id: str, expected: int | None = None) -> Ticket:
    """Return a ticket with a consistent read; raise `TicketChanged` if it is not at the expected version."""
    ticket = await store.db.get(Ticket.Key(ticket_id=ticket_id), consistent=True)
    if ticket is None:
        raise TicketMissing(ticket_id)
    if expected is not None and ticket.version != expected:
        raise TicketChanged(ticket_id, expected, ticket.version)
    return ticket


async def change_current(
    store: SupportDeskStore, ticket_id: str, expected: int | None, change: Callable[[Ticket], Awaitable[T]]
) -> T:
    """Apply a change to the current ticket; without an expected version, repeat it if another writer was faster."""

    async def once() -> T:
        return await change(await get_current(store, ticket_id, expected))

    return await once() if expected is not None else await retry_on_conflict(store, ticket_id, once)


async def retry_on_conflict(store: SupportDeskStore, ticket_id: str, change: Callable[[], Awaitable[T]]) -> T:
    """Call a function that reads and then writes, again after growing pauses if others write in between; finally raise `TicketBusy`."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            return await change()
        except TicketChanged as error:
            if attempt == ATTEMPTS_MAX:
                raise TicketBusy(ticket_id, attempt) from error
        await asyncio.sleep(store.db.context.retry_policy.pause_s(attempt))
    raise AssertionError("the last attempt returns or raises")


def change_time(store: SupportDeskStore, before: Ticket) -> datetime:
    """Return the time of a change: now, but not before the last change."""
    return max(store.now(), before.updated_at)


@dataclass(frozen=True, slots=True)
class TicketChange:
    """A change to write: new values of the ticket's fields, and what its event says."""

    kind: EventKind
    at: datetime
    values: Mapping[str, Any] = field(default_factory=dict)
    actor: str | None = None
    note: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StagedChange:
    """A change in a transaction: the ticket as it will be, its event, and the write that holds the lock."""

    ticket: Ticket
    event: Event
    intent: Intent[Ticket]


def stage_change(
    tx: AsyncTransaction, store: SupportDeskStore, before: Ticket, change: TicketChange
) -> StagedChange:
    """Add a change of a ticket, and its event, to a transaction."""
    sequence = before.version + 1
    if sequence > EVENTS_MAX:
        raise EventLimitReached(before.ticket_id, EVENTS_MAX)
    status: TicketStatus = change.values.get("status", before.status)
    event = Event(
        ticket_id=before.ticket_id,
        at=change.at,
        sequence=sequence,
        kind=change.kind,
        actor=change.actor,
        old_status=before.status if status is not before.status else None,
        new_status=status if status is not before.status else None,
        note=change.note,
        details=dict(change.details),
        ttl=store.event_expiry(change.at),
    )
    values = {**change.values, "updated_at": change.at}
    changes: list[Change[Ticket]] = [getattr(Ticket, name).set(value) for name, value in values.items()]
    # These never change; stating them lets the client compute index keys without another read.
    unchanged = Ticket.customer_id.eq(before.customer_id) & Ticket.created_at.eq(before.created_at)
    intent = tx.update(before, *changes, when=unchanged)
    tx.create(event)
    return StagedChange(before.model_copy(update={**values, "version": sequence}), event, intent)


async def commit_change(
    store: SupportDeskStore, before: Ticket, change: TicketChange, *, more: Fill | None = None
) -> Ticket:
    """Change a ticket and write its event, with what `more` adds to the transaction; return the changed ticket.

    Raises `TicketChanged` if the ticket has changed since `before`.
    """
    tx = store.db.transaction()
    staged = stage_change(tx, store, before, change)
    if more is not None:
        more(tx)
    if "ttl" in change.values and change.values["ttl"] != before.ttl:
        await _expire_with_ticket(tx, store, before, change.values["ttl"])
    try:
        await tx.commit()
    except TransactionCancelled as error:
        conflict = conflict_error(error, staged.intent, before)
        if conflict is None:
            raise
        raise conflict from error
    return staged.ticket


def conflict_error(
    error: TransactionCancelled, intent: Intent[Ticket], before: Ticket
) -> SupportDeskError | None:
    """Return the desk's error for a cancelled change; None if the change itself was not the reason."""
    reason = error.failed.get(intent)
    if reason is not None and reason.kind == "lock":
        current = reason.item
        return TicketChanged(
            before.ticket_id, before.version, before.version if current is None else current.version
        )
    if reason is not None and reason.kind == "missing":
        return TicketMissing(before.ticket_id)
    return None


async def _expire_with_ticket(
    tx: AsyncTransaction, store: SupportDeskStore, ticket: Ticket, expires_at: datetime | None
) -> None:
    """Set the expiry of a ticket's files and embedding to the ticket's, in the same transaction; feedback is kept.

    The lock on the ticket protects these, because attaching a file changes the ticket too.
    """
    if ticket.files:
        selection = Attachment.ByTicket(ticket_id=ticket.ticket_id)
        for file in (await store.db.query(selection, limit=FILES_MAX)).items:
            tx.update(file, Attachment.ttl.set(expires_at))
    vector = await store.db.get(TicketVector.Key(ticket_id=ticket.ticket_id), consistent=True)
    if vector is not None:
        tx.update(vector, TicketVector.ttl.set(expires_at))


def _amended_fields(before: Ticket, changes: Amendment) -> dict[str, Any]:
    """Return the fields that an amendment changes."""
    requested: dict[str, Any] = {"subject": changes.subject, "priority": changes.priority}
    values = {name: value for name, value in requested.items() if value not in (None, getattr(before, name))}
    if changes.product is not None and (changes.product or None) != before.product:
        values["product"] = changes.product or None
    return values


def _status_fields(store: SupportDeskStore, status: TicketStatus, at: datetime) -> dict[str, Any]:
    """Return the fields that a change of status sets."""
    return {
        "status": status,
        "completed_at": at if status is TicketStatus.READY else None,
        "assigned_to": None,
        "escalated_at": None,
        "escalation_reason": None,
        "ttl": store.ticket_expiry(status, at),
    }
