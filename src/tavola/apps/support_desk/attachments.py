"""Attachments of tickets, and texts that are too long for an item.

Small files are stored in the item, large ones in the blob store, compressed if that helps. The blob is stored before its item,
so a reference never points to nothing; unreferenced blobs are deleted later (see `blob_sweeper`). Adding or removing a file
is a change of its ticket with an event, so no file is replaced without a trace, and a closed ticket's files expire with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from tavola.apps.support_desk.changes import TicketChange, change_time, commit_change, retry_on_conflict
from tavola.apps.support_desk.domain import (
    FILES_MAX,
    SYMPTOM_CHARACTERS_INLINE,
    SYMPTOM_CHARACTERS_MAX,
    EventKind,
)
from tavola.apps.support_desk.errors import (
    AttachmentLimitReached,
    AttachmentMissing,
    TextTooLong,
    TicketMissing,
)
from tavola.apps.support_desk.model import Attachment, Ticket
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.patterns import Blob

CheckExisting = Callable[[Attachment | None], object]
"""Called with the existing file of a name before it is changed; raises to prevent the change."""


@dataclass(frozen=True, slots=True)
class AttachResult:
    """An attached file."""

    file: Attachment
    replaced: bool  # a file of the same name


async def attach(
    store: SupportDeskStore,
    ticket_id: str,
    *,
    name: str,
    content_type: str,
    data: bytes,
    actor: str | None = None,
    check_existing: CheckExisting | None = None,
) -> AttachResult:
    """Attach a file to an existing ticket; a file of the same name is replaced unless `check_existing` raises."""
    # Before the bytes are stored; checked again below
    ticket, existing = await _read_ticket_and_file(store, ticket_id, name)
    _check_can_attach(ticket, existing, check_existing)
    if existing is not None and is_same_file(existing, content_type, data):
        return AttachResult(existing, replaced=True)
    body = await store.blobs.keep(data)

    async def change() -> AttachResult:
        ticket, existing = await _read_ticket_and_file(store, ticket_id, name)
        _check_can_attach(ticket, existing, check_existing)
        at = change_time(store, ticket)
        file = Attachment(
            ticket_id=ticket_id,
            name=name,
            content_type=content_type,
            body=body,
            added_at=at,
            added_by=actor,
            ttl=ticket.ttl,
        )
        replaced = existing is not None
        values = {} if replaced else {"files": ticket.files + 1}
        details = {"name": name, "replaced": "yes"} if replaced else {"name": name}
        attached = TicketChange(EventKind.FILE_ATTACHED, at, values, actor, details=details)
        await commit_change(store, ticket, attached, more=lambda tx: tx.put(file))
        return AttachResult(file, replaced)

    return await retry_on_conflict(store, ticket_id, change)


def is_same_file(existing: Attachment, content_type: str, data: bytes) -> bool:
    """Return whether a file is identical to the existing one, so that nothing needs to be written."""
    return existing.content_type == content_type and existing.body.sha256 == sha256(data).hexdigest()


async def get_attachment(store: SupportDeskStore, ticket_id: str, name: str) -> Attachment:
    """Return an attachment's item; raise `AttachmentMissing` if it, or its ticket, does not exist."""
    ticket, file = await store.db.get_all(
        Ticket.Key(ticket_id=ticket_id), Attachment.Key(ticket_id=ticket_id, name=name)
    )
    if ticket is None or file is None:
        raise AttachmentMissing(ticket_id, name)
    return file


async def detach(
    store: SupportDeskStore,
    ticket_id: str,
    name: str,
    *,
    actor: str | None = None,
    check_existing: CheckExisting | None = None,
) -> None:
    """Remove an attachment; raise `AttachmentMissing` if it does not exist. A later sweep deletes its blob."""

    async def change() -> None:
        try:
            ticket, existing = await _read_ticket_and_file(store, ticket_id, name)
        except TicketMissing:
            raise AttachmentMissing(ticket_id, name) from None
        if existing is None:
            raise AttachmentMissing(ticket_id, name)
        if check_existing is not None:
            check_existing(existing)
        key = Attachment.Key(ticket_id=ticket_id, name=name)
        values = {"files": max(0, ticket.files - 1)}
        at = change_time(store, ticket)
        removed = TicketChange(EventKind.FILE_REMOVED, at, values, actor, details={"name": name})
        await commit_change(store, ticket, removed, more=lambda tx: tx.delete(key))

    await retry_on_conflict(store, ticket_id, change)


async def read_attachment(store: SupportDeskStore, file: Attachment) -> bytes:
    """Return an attachment's verified bytes."""
    return await store.blobs.read(file.body)


async def store_text(store: SupportDeskStore, text: str) -> tuple[str, Blob | None]:
    """Return the part of a text that the ticket holds, and the whole text as a blob if it is longer."""
    if len(text) > SYMPTOM_CHARACTERS_MAX:
        raise TextTooLong("description", len(text), SYMPTOM_CHARACTERS_MAX)
    if len(text) <= SYMPTOM_CHARACTERS_INLINE:
        return text, None
    return text[:SYMPTOM_CHARACTERS_INLINE], await store.blobs.keep(text.encode())


async def read_full_text(store: SupportDeskStore, ticket: Ticket) -> str:
    """Return a ticket's whole text, also if the ticket holds only its beginning (then `ticket.full_text` is set)."""
    if ticket.full_text is None:
        return ticket.symptom_text
    return (await store.blobs.read(ticket.full_text)).decode()


async def _read_ticket_and_file(
    store: SupportDeskStore, ticket_id: str, name: str
) -> tuple[Ticket, Attachment | None]:
    """Return a ticket and its file of a name, in one consistent read."""
    ticket, file = await store.db.get_together(
        Ticket.Key(ticket_id=ticket_id), Attachment.Key(ticket_id=ticket_id, name=name)
    )
    if ticket is None:
        raise TicketMissing(ticket_id)
    return ticket, file


def _check_can_attach(
    ticket: Ticket, existing: Attachment | None, check_existing: CheckExisting | None
) -> None:
    if check_existing is not None:
        check_existing(existing)
    if existing is None and ticket.files >= FILES_MAX:
        raise AttachmentLimitReached(ticket.ticket_id, FILES_MAX)
