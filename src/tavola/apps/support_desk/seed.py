"""Seed: a believable month of a support desk, written into a store.

    await load(store, entropy=SeededEntropy(1), now=datetime.now(UTC), tickets=20_000)

The same entropy and moment give the same month. It is written in batches, as items: tickets have a lock and events are immutable, and
`put_many`, which could hold to neither, takes none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tavola import Entity, Entropy, Progress, to_item
from tavola.apps.support_desk.errors import DeskError
from tavola.apps.support_desk.model import Attachment, Event, Feedback, Ticket, Tickets, TicketVector
from tavola.apps.support_desk.month import Month
from tavola.apps.support_desk.store import SupportDeskStore

BATCH_ITEMS = 25  # what a BatchWriteItem takes
TICKETS_AT_ONCE = 200  # some forty batches: of a file, what is under way together shares a sync of the disk
COUNTED_AT_ONCE = 10_000  # items: the numbers are few, and each is changed once for so many
ROUNDS_MAX = 8  # how often what a batch left undone is asked again
FILE = "device.log"
FILE_EVERY = 250  # tickets, one has an attachment
LINES_SMALL, LINES_LARGE = 40, 6_000  # of an attachment: in the item, and in the blob store


class SeedUnfinished(DeskError):
    """Items that the table would not take, however often it was asked."""

    def __init__(self, left: int) -> None:
        self.left = left
        super().__init__(
            f"{left} items of the demo data were not written; the table is throttled, try again later"
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was made."""

    tickets: int = 0
    events: int = 0
    feedback: int = 0
    attachments: int = 0
    embeddings: int = 0

    @property
    def items(self) -> int:
        """How many items that is."""
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
) -> Loaded:
    """Write a month of tickets with what hangs on them into an empty table; with `rebuild`, the numbers too. Return what was made."""
    month = Month(entropy, now, days=days, customers=customers, engineers=engineers, operators=operators)
    counts: dict[type[Entity], int] = {}
    uncounted: list[Entity] = []
    done = 0
    while done < tickets:
        some = min(TICKETS_AT_ONCE, tickets - done)
        entities: list[Entity] = []
        for number in range(done, done + some):
            with_file = number % FILE_EVERY == 0
            entities += month.ticket(FILE if with_file else None)
            if with_file:
                large = number % (10 * FILE_EVERY) == 0
                entities.append(await _file(store, month, entities, LINES_LARGE if large else LINES_SMALL))
        for entity in entities:
            counts[type(entity)] = counts.get(type(entity), 0) + 1
        await _write(store, [to_item(entity) for entity in entities])
        done += some
        if rebuild:
            uncounted += [entity for entity in entities if isinstance(entity, Ticket | Feedback)]
            if len(uncounted) >= COUNTED_AT_ONCE or done == tickets:
                await store.projector.fill(uncounted)
                uncounted = []
        if progress is not None:
            progress(Progress(done, tickets))
    return Loaded(*(counts.get(kind, 0) for kind in (Ticket, Event, Feedback, Attachment, TicketVector)))


async def _file(store: SupportDeskStore, month: Month, entities: Sequence[Entity], lines: int) -> Attachment:
    """Return a log that hangs on the last ticket."""
    ticket = next(each for each in reversed(entities) if isinstance(each, Ticket))
    return Attachment(
        ticket_id=ticket.ticket_id,
        name=FILE,
        content_type="text/plain",
        body=await store.blobs.keep(month.log_of(lines)),
        added_at=ticket.created_at,
        added_by=ticket.customer_id,
    )


async def _write(store: SupportDeskStore, items: Sequence[dict[str, Any]]) -> None:
    """Put items in batches, many at once; what is left undone is asked again after growing pauses."""
    name = store.db.context.name_of(Tickets)
    left = [{"PutRequest": {"Item": item}} for item in items]
    for attempt in range(1, ROUNDS_MAX + 1):
        answers = await asyncio.gather(
            *(
                store.db.call("BatchWriteItem", {"RequestItems": {name: left[at : at + BATCH_ITEMS]}})
                for at in range(0, len(left), BATCH_ITEMS)
            )
        )
        left = [request for answer in answers for request in answer.get("UnprocessedItems", {}).get(name, ())]
        if not left:
            return
        await asyncio.sleep(store.db.context.retry_policy.pause_s(attempt))
    raise SeedUnfinished(len(left))
