"""Demo data: a month of a support desk, written into an empty table.

    await load(store, entropy=SeededEntropy(1), now=datetime.now(UTC), tickets=20_000)

The same entropy and time give the same month. Items are written in plain batches: tickets have a lock and events are immutable, which
`put_many` refuses because it cannot check either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tavola import Entity, Entropy, Progress
from tavola.apps.seeding import write_entities
from tavola.apps.support_desk.model import Attachment, Event, Feedback, Ticket, Tickets, TicketVector
from tavola.apps.support_desk.month import DemoMonth
from tavola.apps.support_desk.store import SupportDeskStore

TICKETS_AT_ONCE = 200  # about forty concurrent batches, which share a disk sync in a file store
COUNTED_AT_ONCE = 10_000  # items per update of the numbers

FILE = "device.log"
FILE_EVERY = 250  # tickets; one of them has an attachment
LINES_SMALL, LINES_LARGE = 40, 6_000  # of an attachment in the item, and in the blob store


@dataclass(frozen=True, slots=True)
class SeedCounts:
    """How many items were written."""

    tickets: int = 0
    events: int = 0
    feedback: int = 0
    attachments: int = 0
    embeddings: int = 0

    @property
    def items(self) -> int:
        """The total."""
        return self.tickets + self.events + self.feedback + self.attachments + self.embeddings


async def load(
    store: SupportDeskStore,
    *,
    entropy: Entropy,
    now: datetime,
    progress: Callable[[Progress], object] | None = None,
    tickets: int = 20_000,
    days: int = 30,
    customers: int = 300,
    engineers: int = 12,
    operators: int = 24,
    rebuild: bool = True,
) -> SeedCounts:
    """Write a month of tickets into an empty table; with `rebuild`, the dashboard's numbers too."""
    month = DemoMonth(entropy, now, days=days, customers=customers, engineers=engineers, operators=operators)
    counts: dict[type[Entity], int] = {}
    uncounted: list[Entity] = []
    written = 0
    while written < tickets:
        count = min(TICKETS_AT_ONCE, tickets - written)
        entities: list[Entity] = []
        for number in range(written, written + count):
            with_file = number % FILE_EVERY == 0
            entities += month.ticket(FILE if with_file else None)
            if with_file:
                large = number % (10 * FILE_EVERY) == 0
                entities.append(await _file(store, month, entities, LINES_LARGE if large else LINES_SMALL))
        for entity in entities:
            counts[type(entity)] = counts.get(type(entity), 0) + 1
        await write_entities(store.db, Tickets, entities)
        written += count
        if rebuild:
            uncounted += [entity for entity in entities if isinstance(entity, Ticket | Feedback)]
            if len(uncounted) >= COUNTED_AT_ONCE or written == tickets:
                await store.projector.fill(uncounted)
                uncounted = []
        if progress is not None:
            progress(Progress(written, tickets))
    return SeedCounts(*(counts.get(kind, 0) for kind in (Ticket, Event, Feedback, Attachment, TicketVector)))


async def _file(
    store: SupportDeskStore, month: DemoMonth, entities: Sequence[Entity], lines: int
) -> Attachment:
    """Return a log file attached to the last ticket."""
    ticket = next(entity for entity in reversed(entities) if isinstance(entity, Ticket))
    return Attachment(
        ticket_id=ticket.ticket_id,
        name=FILE,
        content_type="text/plain",
        body=await store.blobs.keep(month.log_of(lines)),
        added_at=ticket.created_at,
        added_by=ticket.customer_id,
    )
