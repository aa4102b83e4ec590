"""Mistakes in asking and writing, one a line; nothing here is ever run."""

from __future__ import annotations

from datetime import UTC, datetime

from tavola import Connection
from tests.client.desk import Event, Feedback, Session, Ticket, TicketFile

AT = datetime(2026, 1, 1, tzinfo=UTC)


def keys(db: Connection) -> None:
    """Keys are given whole, by name, with values of the right type."""
    Ticket.Key(tiket_id="t1")  # error: wrong argument name
    Ticket.Key(ticket_id=1)  # error: wrong type
    Event.Key(ticket_id="t1", event_id="e1")  # error: incomplete key
    Ticket.Key("t1")  # error: positional
    Event.Key(ticket_id="t1", at="2026", event_id="e1")  # error: text for a time
    db.get(Ticket.ByCustomer(customer_id="c1"))  # error: a query is no key
    db.get("t1")  # error: a text is no key
    db.get(Ticket.Key(ticket_id="t1")).subject  # error: None is not handled
    db.delete(Ticket)  # error: a class is no key
    db.put(Ticket.Key(ticket_id="t1"))  # error: a key is no entity


def entities(db: Connection) -> None:
    """Entities are made by name with values of the right type."""
    Ticket(ticket_id="t1", customer_id="c1", created_at=AT)  # error: a required field is missing
    Ticket(ticket_id="t1", customer_id="c1", subject="s", created_at="2026")  # error: text for a time
    Ticket(ticket_id="t1", customer_id="c1", subject="s", created_at=AT, status="opne")  # error: literal
    Ticket(ticket_id="t1", customer_id="c1", subject="s", created_at=AT, color="red")  # error: unknown field
    Feedback(ticket_id="t1", customer_id="c1", score=1).score = "9"  # error: wrong type in an assignment
    Feedback(ticket_id="t1", customer_id="c1", score=1).points  # error: unknown attribute


def patterns(db: Connection) -> None:
    """Partitions are fixed by arguments, sort keys by parts."""
    Ticket.ByCustomer(customer="c1")  # error: wrong partition argument
    Ticket.ByCustomer(customer_id="c1", status="open")  # error: a sort part is no argument
    Ticket.ByCustomer(customer_id="c1").state  # error: unknown part
    Ticket.InQueue(queue="vip")  # error: half of a partition of two attributes
    Ticket.ByAssignee(assignee=None)  # error: nothing is stored under None
    Ticket.ByStatus(status="opne")  # error: wrong literal in a partition
    Ticket.ByCostumer(customer_id="c1")  # error: unknown pattern
    db.query(Ticket.Key(ticket_id="t1"))  # error: a key is no query
    db.query(Ticket)  # error: a class is no query
    db.query(Ticket.ByCustomer(customer_id="c1"), reversed=True)  # error: unknown option
    db.query(Ticket.ByCustomer(customer_id="c1"), limit="10")  # error: wrong type of an option


def ranges(db: Connection) -> None:
    """Operators of sort parts know the part's type, and a range ends the key."""
    customer = Ticket.ByCustomer(customer_id="c1")
    agent = Ticket.ByAssignee(assignee="ann")
    customer.status.eq("opne")  # error: wrong literal
    customer.status.between("open", "opne")  # error: wrong literal in a bound
    customer.status.eq("open").created_at.gte("2026")  # error: text for a time
    customer.status.eq(None)  # error: None is in no key
    agent.priority.lt("3")  # error: text for a number
    agent.priority.begins_with("3")  # error: a prefix of a number
    agent.priority.lt(3).created_at  # error: a part after a range
    agent.priority.between(1)  # error: half of a range
    db.query(agent.priority == 3)  # error: == is for conditions; .eq(3)
    agent.where(Ticket.replies > 1).priority  # error: a part after a filter


def conditions(db: Connection) -> None:
    """Conditions know their entity and their fields' types."""
    agent = Ticket.ByAssignee(assignee="ann")
    session = Session(session_id="s", agent="a", expires=AT)
    agent.where(Event.kind == "opened")  # error: another entity's field
    agent.where(Ticket.status == "opne")  # error: wrong literal
    agent.where(Ticket.status.eq("opne"))  # error: wrong literal
    agent.where(Ticket.replies > "2")  # error: text for a number
    agent.where(Ticket.replies.between(1, "2"))  # error: text for a number
    agent.where(Ticket.status.is_in("open", "opne"))  # error: wrong literal
    agent.where(not Ticket.assignee.exists())  # error: not instead of ~
    agent.where("status = open")  # error: a text is no condition
    agent.where(Ticket.replies.begins_with("2"))  # error: a prefix of a number
    agent.where(Ticket.replies.contains(2))  # error: a number has no members
    agent.where(Ticket.subject.contains(2))  # error: a number in a text
    agent.where(Ticket.replies.size() > 2)  # error: a number has no size
    agent.where((Ticket.status == "open") & (Event.kind == "x"))  # error: two entities in one condition
    agent.where((Event.kind == "x") | (Ticket.status == "open"))  # error: two entities in one condition
    Ticket.ByStatus(status="open").where(Ticket.subject == "VPN")  # error: not in the index's view
    db.put(session, when=Ticket.status == "open")  # error: other entity
    db.delete(Session.Key(session_id="s"), when=Ticket.status == "open")  # error: other entity
    db.scan(Ticket, where=Event.kind == "x")  # error: other entity
    db.scan("Ticket")  # error: a name is no entity


def updates(db: Connection) -> None:
    """Changes know their entity and their fields' types."""
    key = Ticket.Key(ticket_id="t1")
    db.update(key, Ticket.sattus.set("open"))  # error: unknown field
    db.update(key, Ticket.status.set("opne"))  # error: wrong literal
    db.update(key, Ticket.replies.set("3"))  # error: wrong type
    db.update(key, Event.kind.set("closed"))  # error: another entity's field
    db.update(key, Ticket.subject.add(1))  # error: adding to a text
    db.update(key, Ticket.replies.add("1"))  # error: adding a text
    db.update(key, Ticket.subject.remove())  # error: removing a required field
    db.update(key, Ticket.subject.set(None))  # error: None for a required field
    db.update(key, Ticket.subject.append("x"))  # error: a text is no list
    db.update(key, Ticket.subject.set(Ticket.replies + 1))  # error: a sum for a text
    db.update(key, Ticket.replies.set(Ticket.subject))  # error: a text field for a number
    db.update(key, Ticket.status == "closed")  # error: a condition is no change
    db.update(key, status="closed")  # error: fields are no keywords
    db.update(key, Ticket.status.set("closed"), when=Event.kind == "x")  # error: another entity's condition
    Ticket.replies["x"]  # error: a number has no parts


def results(db: Connection) -> None:
    """Answers have the types that their patterns say."""
    file = db.collect(TicketFile(ticket_id="t1"))
    db.query(Ticket.ByStatus(status="open")).items[0].subject  # error: not in the index's view
    file.events[0].subject  # error: another entity's field
    file.sessions  # error: no member of the collection
    file.ticket.subject  # error: None is not handled
    TicketFile(ticket="t1")  # error: wrong argument
    TicketFile(ticket_id="t1", events=[])  # error: a member is no argument
    db.collect(Ticket.Key(ticket_id="t1"))  # error: a key is no collection
    db.create_tables(Ticket)  # error: an entity is no table
    first, second = db.get_all(Ticket.Key(ticket_id="t1"), Event.Key(ticket_id="t1", at=AT, event_id="e1"))
    second.kind  # error: None is not handled
    if first is not None:
        first.kind  # error: another entity's field
