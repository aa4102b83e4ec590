"""Attachments: files that hang on tickets, and texts that no item holds.

Small ones are in the item, large ones in the blob store, compressed where that helps. The blob is safe before its item is written, so what
an item points to is there; what no item points to is swept up later (see `sweeping`). A file that comes or goes is a change of its ticket,
with an event: so nobody's file is replaced without a trace, and a ticket that is closed takes all its files with it in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from tavola.apps.support_desk.changes import moment_after, persistently, record
from tavola.apps.support_desk.domain import (
    FILES_MAX,
    SYMPTOM_CHARACTERS_INLINE,
    SYMPTOM_CHARACTERS_MAX,
    EventKind,
)
from tavola.apps.support_desk.errors import AttachmentMissing, TextTooLong, TicketLaden, TicketMissing
from tavola.apps.support_desk.model import Attachment, Ticket
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.patterns import Blob

Judge = Callable[[Attachment | None], object]
"""Looks at what stands under a name before it is changed, and raises where that must not be."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that hangs on a ticket now."""

    file: Attachment
    replaced: bool  # one of the same name was there


async def attach(
    store: SupportDeskStore,
    ticket_id: str,
    *,
    name: str,
    content_type: str,
    data: bytes,
    actor: str | None = None,
    judge: Judge | None = None,
) -> Attached:
    """Attach a file to a ticket that is there, over one of the same name unless `judge` refuses; a large one goes to the blob store."""
    before, standing = await _both(store, ticket_id, name)  # before the bytes are kept; it is asked again
    _check(before, standing, judge)
    if standing is not None and same_file(standing, content_type, data):
        return Attached(standing, replaced=True)
    body = await store.blobs.keep(data)

    async def change() -> Attached:
        before, standing = await _both(store, ticket_id, name)
        _check(before, standing, judge)
        at = moment_after(store, before)
        made = Attachment(
            ticket_id=ticket_id,
            name=name,
            content_type=content_type,
            body=body,
            added_at=at,
            added_by=actor,
            ttl=before.ttl,
        )
        replaced = standing is not None
        values = {} if replaced else {"files": before.files + 1}
        details = {"name": name, "replaced": "yes"} if replaced else {"name": name}
        await record(
            store,
            before,
            EventKind.FILE_ATTACHED,
            values,
            at,
            actor=actor,
            details=details,
            more=lambda tx: tx.put(made),
        )
        return Attached(made, replaced)

    return await persistently(store, ticket_id, change)


def same_file(standing: Attachment, content_type: str, data: bytes) -> bool:
    """Return whether a file is what stands there already: then nothing is to be written."""
    return standing.content_type == content_type and standing.body.sha256 == sha256(data).hexdigest()


async def attachment(store: SupportDeskStore, ticket_id: str, name: str) -> Attachment:
    """Return what is known of an attachment (`.content_type`, `.body.size`); one of a ticket that is over is an `AttachmentMissing` too."""
    ticket, found = await store.db.get_all(
        Ticket.Key(ticket_id=ticket_id), Attachment.Key(ticket_id=ticket_id, name=name)
    )
    if ticket is None or found is None:
        raise AttachmentMissing(ticket_id, name)
    return found


async def detach(
    store: SupportDeskStore,
    ticket_id: str,
    name: str,
    *,
    actor: str | None = None,
    judge: Judge | None = None,
) -> None:
    """Take an attachment away; `AttachmentMissing` if it is not there. A blob of its own goes with a later sweep."""

    async def change() -> None:
        try:
            before, standing = await _both(store, ticket_id, name)
        except TicketMissing:
            raise AttachmentMissing(ticket_id, name) from None
        if standing is None:
            raise AttachmentMissing(ticket_id, name)
        if judge is not None:
            judge(standing)
        await record(
            store,
            before,
            EventKind.FILE_REMOVED,
            {"files": max(0, before.files - 1)},
            moment_after(store, before),
            actor=actor,
            details={"name": name},
            more=lambda tx: tx.delete(Attachment.Key(ticket_id=ticket_id, name=name)),
        )

    await persistently(store, ticket_id, change)


async def attachment_data(store: SupportDeskStore, found: Attachment) -> bytes:
    """Return an attachment's bytes, whole and checked."""
    return await store.blobs.read(found.body)


async def text_kept(store: SupportDeskStore, text: str) -> tuple[str, Blob | None]:
    """Return what of a text a ticket holds, and the whole of it as a blob where that is more."""
    if len(text) > SYMPTOM_CHARACTERS_MAX:
        raise TextTooLong("symptom text", len(text), SYMPTOM_CHARACTERS_MAX)
    if len(text) <= SYMPTOM_CHARACTERS_INLINE:
        return text, None
    return text[:SYMPTOM_CHARACTERS_INLINE], await store.blobs.keep(text.encode())


async def whole_text(store: SupportDeskStore, ticket: Ticket) -> str:
    """Return a ticket's text whole, also where the ticket holds only its beginning (`ticket.full_text` is set then)."""
    if ticket.full_text is None:
        return ticket.symptom_text
    return (await store.blobs.read(ticket.full_text)).decode()


async def _both(store: SupportDeskStore, ticket_id: str, name: str) -> tuple[Ticket, Attachment | None]:
    """Return a ticket and its file of a name, as they are at one moment."""
    ticket, found = await store.db.get_together(
        Ticket.Key(ticket_id=ticket_id), Attachment.Key(ticket_id=ticket_id, name=name)
    )
    if ticket is None:
        raise TicketMissing(ticket_id)
    return ticket, found


def _check(ticket: Ticket, standing: Attachment | None, judge: Judge | None) -> None:
    if judge is not None:
        judge(standing)
    if standing is None and ticket.files >= FILES_MAX:
        raise TicketLaden(ticket.ticket_id, FILES_MAX)
