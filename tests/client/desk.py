"""A support desk, small and whole: the design that the client's tests work on."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from tavola import Attr, Collection, Entity, Gsi, PrimaryKey, Query, Sort, Table, attr, member, sort

Status = Literal["open", "pending", "closed"]


class Desk(Table, ttl="expires", stream="NEW_AND_OLD_IMAGES"):
    """The one table."""

    gsi1 = Gsi(pk="gsi1pk", sk="gsi1sk")
    gsi2 = Gsi(pk="gsi2pk", sk="gsi2sk")
    gsi3 = Gsi(pk="gsi3pk", sk="gsi3sk", projection="KEYS_ONLY")
    queue_index = Gsi(pk=("queue", "status"), sk=("priority", "created_at"))


class Ticket(Entity):
    """A ticket, found by customer, agent, status and queue."""

    ticket_id: Attr[str]
    customer_id: Attr[str]
    subject: Attr[str]
    status: Attr[Status] = attr(default="open")
    priority: Attr[int] = attr(default=3)
    assignee: Attr[str | None] = attr(default=None)
    queue: Attr[str | None] = attr(default=None)
    replies: Attr[int] = attr(default=0)
    created_at: Attr[datetime]

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="METADATA"):
        ticket_id: str

    class ByCustomer(
        Query["Ticket"],
        on=Desk.gsi1,
        pk="CUSTOMER#{customer_id}",
        sk="TICKET#{status}#{created_at}#{ticket_id}",
    ):
        customer_id: str
        status: Sort[Status] = sort()
        created_at: Sort[datetime] = sort()
        ticket_id: Sort[str] = sort()

    class ByAssignee(
        Query["Ticket"],
        on=Desk.gsi2,
        pk="AGENT#{assignee}",
        sk="{priority:02}#{created_at:desc}",
        sparse=True,
    ):
        assignee: str
        priority: Sort[int] = sort()
        created_at: Sort[datetime] = sort()

    class ByStatus(Query["TicketRef"], on=Desk.gsi3, pk="STATUS#{status}", sk="{created_at}", shards=8):
        status: Status
        created_at: Sort[datetime] = sort()

    class InQueue(Query["Ticket"], on=Desk.queue_index, sparse=True):
        queue: str
        status: Status
        priority: Sort[int] = sort()
        created_at: Sort[datetime] = sort()


class TicketRef(Entity):
    """The keys of a ticket, from a KEYS_ONLY index."""

    ticket_id: Attr[str]
    status: Attr[Status]
    created_at: Attr[datetime]


class Event(Entity, table=Desk):
    """Something that happened to a ticket."""

    ticket_id: Attr[str]
    at: Attr[datetime]
    event_id: Attr[str]
    kind: Attr[str]

    class Key(PrimaryKey["Event"], pk="TICKET#{ticket_id}", sk="EVENT#{at}#{event_id}"):
        ticket_id: str
        at: datetime
        event_id: str

    class InTicket(Query["Event"], on=Key):
        ticket_id: str
        at: Sort[datetime] = sort()
        event_id: Sort[str] = sort()


class Feedback(Entity, table=Desk):
    """A customer's rating of how a ticket was handled."""

    ticket_id: Attr[str]
    customer_id: Attr[str]
    score: Attr[int]

    class Key(PrimaryKey["Feedback"], pk="TICKET#{ticket_id}", sk="FEEDBACK"):
        ticket_id: str

    class ByCustomer(Query["Feedback"], on=Desk.gsi1, pk="CUSTOMER#{customer_id}", sk="FEEDBACK#{score:02}"):
        customer_id: str
        score: Sort[int] = sort()


class Session(Entity, table=Desk):
    """A login, which expires."""

    session_id: Attr[str]
    agent: Attr[str]
    expires: Attr[datetime]

    class Key(PrimaryKey["Session"], pk="SESSION#{session_id}", sk="SESSION"):
        session_id: str


class TicketFile(Collection, pk="TICKET#{ticket_id}"):
    """A ticket with everything under it."""

    ticket_id: str
    ticket: Ticket | None = member()
    feedback: Feedback | None = member()
    events: list[Event] = member()
