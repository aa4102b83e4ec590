"""Keys and questions: what they hold, and what they refuse before anything is asked."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from tavola import (
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    QueryRefused,
    Rest,
    Selection,
    Sort,
    Step,
    Table,
    attr,
    sort,
)
from tavola.model import request_of
from tests.client.desk import Event, Ticket, TicketFile, TicketRef

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Hall(Table):
    """A table with a native index and one of a part."""

    native = Gsi(pk="room", sk="seat")
    some = Gsi(pk="gpk", sk="gsk", projection=("name",))


class Guest(Entity, table=Hall):
    """A guest, with a seat."""

    guest_id: Attr[str]
    room: Attr[str]
    seat: Attr[int]
    name: Attr[str]
    note: Attr[str] = attr(default="")

    class Key(PrimaryKey["Guest"], pk="GUEST#{guest_id}", sk="GUEST"):
        guest_id: str

    class InRoom(Query["Guest"], on=Hall.native):
        room: str
        seat: Sort[int] = sort()

    class ByName(Query["Guest"], on=Hall.some, pk="ROOM#{room}", sk="{name}#{seat}", hydrate=True):
        room: str
        name: Step[str, Seated] = sort()

        class Seated(Rest["Guest"]):
            seat: Sort[int] = sort()


REFUSED: list[tuple[Any, str]] = [
    (Ticket.Key, "Ticket.Key: ticket_id must be given as well"),
    (lambda: Ticket.Key(tiket_id="t"), "Ticket.Key: it has no argument tiket_id; its arguments are ticket_id"),  # type: ignore[call-arg]
    (lambda: Ticket.Key(ticket_id=None), "Ticket.Key: ticket_id is None, which cannot be part of a key; use a value"),  # type: ignore[arg-type]
    (lambda: Ticket.InQueue(queue="q"), "Ticket.InQueue: status must be given as well"),  # type: ignore[call-arg]
    (
        lambda: Ticket.ByCustomer(customer_id="c", status="open"),  # type: ignore[call-arg]
        "Ticket.ByCustomer: status is a part of the sort key; ask with .status.eq(…)",
    ),
    (
        lambda: Ticket.ByCustomer(customer_id="c").created_at.gte(AT),
        "Ticket.ByCustomer: status must be fixed with eq() before created_at can be used. Sort key parts are used from left to right, without gaps.",
    ),
    (
        lambda: Ticket.ByCustomer(customer_id="c").status.eq("open").status.eq("open"),
        "Ticket.ByCustomer: status is fixed already; ask for each part once",
    ),
    (
        lambda: Ticket.ByCustomer(customer_id="c").status.eq(None),  # type: ignore[arg-type]
        "Ticket.ByCustomer: status is asked for None, which no key holds",
    ),
    (
        lambda: Ticket.ByCustomer(customer_id="c").where(True),  # type: ignore[arg-type]
        "Ticket.ByCustomer: where() takes a condition such as Ticket.field.eq(…), not True",
    ),
    (
        lambda: Guest.InRoom(room="r").where(Guest.seat > 3),
        "Guest.InRoom: seat is part of the key, which cannot be filtered; use .seat instead",
    ),
    (
        lambda: Guest.ByName(room="r").where(Guest.note.eq("x")),
        "Guest.ByName: some does not project note, so no item would match; project 'note', or compare fields that the query returns",
    ),
    (
        lambda: Ticket.ByStatus(status="open").where(TicketRef.created_at > AT),
        "Ticket.ByStatus: gsi3 does not project created_at, so no item would match; project 'created_at', or compare fields that the query returns",
    ),
    (TicketFile, "TicketFile: its arguments are ticket_id, not nothing"),
    (
        lambda: TicketFile(ticket_id=None),  # type: ignore[arg-type]
        "TicketFile: ticket_id is None, which cannot be part of a key; use a value",
    ),
    (
        lambda: TicketFile(ticket_id="t").events,
        "TicketFile: events is not there before it was asked for; take it from db.collect(…)",
    ),
    (lambda: setattr(Ticket.Key(ticket_id="t"), "ticket_id", "u"), "Ticket.Key: ticket_id stays as it was given; make another key"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "refusal"), REFUSED, ids=[refusal for _, refusal in REFUSED])
def test_a_wrong_question_is_refused(asked: Any, refusal: str) -> None:
    """What no request could answer is refused when it is made, in these words."""
    with pytest.raises(QueryRefused) as refused:
        asked()

    assert str(refused.value) == refusal


def test_a_range_ends_a_question() -> None:
    """After a range, and after a filter, no further part can be asked."""
    ranged: Any = Ticket.ByAssignee(assignee="ann").priority.lt(3)
    filtered: Any = Ticket.ByAssignee(assignee="ann").where(Ticket.replies > 1)

    with pytest.raises(
        AttributeError, match=r"Ticket\.ByAssignee: created_at cannot follow a range or a filter"
    ):
        _ = ranged.created_at
    with pytest.raises(
        AttributeError, match=r"Ticket\.ByAssignee: priority cannot follow a range or a filter"
    ):
        _ = filtered.priority
    assert not hasattr(ranged, "nothing")


def test_a_question_is_data() -> None:
    """What was asked can be read back, in order, and asking more leaves it as it was."""
    base = Ticket.ByCustomer(customer_id="c")
    asked = base.status.eq("open").created_at.between(AT, AT).where(Ticket.replies > 1)
    question = request_of(asked)

    assert (question.values, question.fixed) == ({"customer_id": "c"}, {"status": "open"})
    assert question.range is not None
    assert (question.range.part, question.range.operator) == ("created_at", "between")
    assert request_of(base).fixed == {}
    assert repr(base.status.eq("open").created_at.gte(AT)) == (
        "<Ticket.ByCustomer customer_id='c', status='open', "
        "created_at gte (datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc),)>"
    )


def test_two_filters_are_both_kept() -> None:
    """A second filter is added to the first."""
    once = Ticket.ByAssignee(assignee="ann").where(Ticket.replies > 1)
    twice = request_of(once.where(Ticket.subject.begins_with("VPN"))).filter

    assert twice is not None
    assert len(twice.node.parts) == 2  # type: ignore[union-attr]


def test_steps_lead_through_the_whole_sort_key() -> None:
    """Parts behind a step are asked of what `eq` gives, and are parts of the same question."""
    asked: Selection[Guest] = Guest.ByName(room="r").name.eq("ann").seat.gte(3)
    question = request_of(asked)

    assert question.pattern.sorts == ("name", "seat")
    assert question.fixed == {"name": "ann"}
    assert question.range is not None


def test_keys_are_values() -> None:
    """Equal arguments make equal keys, which can be counted, copied and sent to another process."""
    key = Event.Key(ticket_id="t", at=AT, event_id="e")
    alike = Event.Key(event_id="e", ticket_id="t", at=AT)

    assert key == alike
    assert key != Event.Key(ticket_id="t", at=AT, event_id="f")
    assert key != Ticket.Key(ticket_id="t")
    assert len({key, alike, copy.deepcopy(key), pickle.loads(pickle.dumps(key))}) == 1
    assert repr(Ticket.Key(ticket_id="t")) == "Ticket.Key(ticket_id='t')"
