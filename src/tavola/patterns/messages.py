"""Messages: what an outbox keeps of events and relays, and what it hands to a publisher."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, JsonValue

from tavola.model import Attr, Entity, attr


@dataclass(frozen=True, slots=True)
class Message:
    """What is to be told: its kind, and what JSON can hold of it."""

    kind: str
    payload: JsonValue = None


class StoredMessage(BaseModel):
    """A message as it waits."""

    message_id: str
    kind: str
    payload: JsonValue = None
    at: datetime


class OutgoingEvents(Entity):
    """What waits of one aggregate to be published; give it a table, a key of aggregate, and a query by lane."""

    aggregate: Attr[str]
    lane: Attr[int | None] = attr(default=None)  # None: nothing waits
    published: Attr[int] = attr(default=0)  # how many were, in all
    fence: Attr[int] = attr(default=0)  # of the last relay that cut the list
    messages: Attr[list[StoredMessage]] = attr(default_factory=list)


class RelayLease(Entity):
    """Whose turn it is to publish what waits in a lane; give it a table and a key of lane."""

    lane: Attr[int]
    holder: Attr[str]
    fence: Attr[int]  # grows with every holder, over all lanes
    until: Attr[datetime]


class PublishedEvent(Entity):
    """An event that was published, kept for a while; give it a table and a key of aggregate and number."""

    aggregate: Attr[str]
    number: Attr[int]
    message_id: Attr[str]
    kind: Attr[str]
    payload: Attr[JsonValue] = attr(default=None)
    at: Attr[datetime]
    expires: Attr[datetime | None] = attr(default=None)


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """An event on its way out."""

    aggregate: str
    number: int  # 1, 2, 3 … of its aggregate, without a gap, in the order of the changes
    message_id: str
    kind: str
    payload: Any
    at: datetime  # when it was written
    fence: int  # grows with every relay: who has seen a higher one may refuse this

    @property
    def dedup_id(self) -> str:
        """What is the same whenever this event is published again, and of no other event."""
        return f"{self.aggregate}/{self.number}"


@dataclass(frozen=True, slots=True)
class Unpublished:
    """An event that the publisher refused; it is tried in the next round, before what follows it."""

    event: OutboxEvent
    error: Exception


@dataclass(frozen=True, slots=True)
class Relayed:
    """What one round did."""

    published: int = 0
    failed: tuple[Unpublished, ...] = ()
    lanes: tuple[int, ...] = ()  # those that were this relay's; the others are another's now


def events_in(row: OutgoingEvents, fence: int) -> list[OutboxEvent]:
    """Return what waits in a row, each with its number."""
    return [
        OutboxEvent(
            row.aggregate,
            row.published + place,
            each.message_id,
            each.kind,
            each.payload,
            each.at,
            fence,
        )
        for place, each in enumerate(row.messages, start=1)
    ]
