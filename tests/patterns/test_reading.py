"""Reading one's own writes: however late an index is, what was written is in the answer, in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola import (
    Attr,
    Connection,
    Entity,
    Gsi,
    ManualClock,
    PrimaryKey,
    Query,
    Sort,
    Table,
    attr,
    connect,
    connect_async,
    sort,
)
from tavola.patterns import OwnWrites, RecipeRefused, WriteReceipt


class Desk(Table):
    """The one table."""

    gsi1 = Gsi(pk="gsi1pk", sk="gsi1sk")
    keys = Gsi(pk="gsi2pk", sk="gsi2sk", projection="KEYS_ONLY")


class Ticket(Entity, table=Desk):
    """A ticket, listed by customer while it is open."""

    ticket_id: Attr[str]
    customer: Attr[str]
    rank: Attr[int]
    state: Attr[str] = attr(default="open")

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="TICKET"):
        ticket_id: str

    class Open(
        Query["Ticket"],
        on=Desk.gsi1,
        pk="C#{customer}",
        sk="{rank:06}#{ticket_id}",
        members={"state": "open"},
    ):
        customer: str
        rank: Sort[int] = sort()
        ticket_id: Sort[str] = sort()

    class Refs(Query["Ref"], on=Desk.keys, pk="C#{customer}", sk="{rank:06}"):
        customer: str
        rank: Sort[int] = sort()


class Ref(Entity):
    """What an index of keys tells."""

    ticket_id: Attr[str]
    customer: Attr[str]
    rank: Attr[int]


class Comment(Entity, table=Desk):
    """Something in the table itself."""

    ticket_id: Attr[str]
    number: Attr[int]

    class Key(PrimaryKey["Comment"], pk="COMMENTS#{ticket_id}", sk="{number:04}"):
        ticket_id: str
        number: int

    class Of(Query["Comment"], on=Key):
        ticket_id: str
        number: Sort[int] = sort()


class Moving:
    """A clock that moves whenever it is looked at."""

    def __init__(self) -> None:
        self._now_s = 1_790_000_000.0

    def now(self) -> float:
        """Return the time, a little later than before."""
        self._now_s += 0.005
        return self._now_s

    def elapsed(self) -> float:
        """Return the same time."""
        return self.now()


def _late(clock: Any, lag: str = "20m") -> Connection:
    """Return a connection to a table whose index is late."""
    db = connect("memory:", emulate=f"gsi-lag={lag},seed=5", clock=clock)
    db.create_tables(Desk)
    return db


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["t1", "t2", "t3", "t4"]),
        st.sampled_from(["put", "delete"]),
        st.sampled_from(["c1", "c2"]),
        st.integers(1, 5),
        st.sampled_from(["open", "closed"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(CHANGES, st.booleans(), st.sampled_from([None, 1, 2, 10]), st.data())
def test_an_answer_has_what_was_written(
    changes: list[tuple[str, str, str, int, str]], newest_first: bool, limit: int | None, data: st.DataObject
) -> None:
    """After any writes of one's own, an answer is what an index that is never late would give, for every kind of question."""
    clock = ManualClock()
    with _late(clock) as db:
        own = OwnWrites(db, attempts=0)
        written: list[WriteReceipt] = []
        truth: dict[str, Ticket] = {}
        for ticket_id, verb, customer, rank, state in changes:
            clock.advance(data.draw(st.sampled_from([0, 300, 900])))
            if verb == "put":
                truth[ticket_id] = db.put(
                    Ticket(ticket_id=ticket_id, customer=customer, rank=rank, state=state)
                )
            else:
                db.delete(Ticket.Key(ticket_id=ticket_id))
                truth.pop(ticket_id, None)
            written.append(own.receipt(Ticket.Key(ticket_id=ticket_id)))
        low = data.draw(st.integers(1, 5))
        questions: list[tuple[Any, Callable[[Ticket], bool]]] = [
            (Ticket.Open(customer="c1"), lambda t: True),
            (Ticket.Open(customer="c1").rank.gte(low), lambda t: t.rank >= low),
            (Ticket.Open(customer="c1").rank.lt(low), lambda t: t.rank < low),
            (Ticket.Open(customer="c1").rank.between(2, low), lambda t: 2 <= t.rank <= low),
            (Ticket.Open(customer="c1").rank.eq(low), lambda t: t.rank == low),
            (Ticket.Open(customer="c1").rank.eq(low).ticket_id.begins_with("t"), lambda t: t.rank == low),
        ]
        for question, holds in questions:
            expected = sorted(
                (t for t in truth.values() if t.customer == "c1" and t.state == "open" and holds(t)),
                key=lambda t: (t.rank, t.ticket_id), reverse=newest_first,
            )  # fmt: skip
            found = own.query(question, *written, limit=limit, newest_first=newest_first)

            ids = [ticket.ticket_id for ticket in found]
            wanted = [ticket.ticket_id for ticket in expected]
            assert ids == wanted if found.cursor is None else ids == wanted[: len(ids)]
            assert limit is None or found.cursor is not None or len(ids) == len(wanted)


def test_the_index_alone_would_have_been_wrong() -> None:
    """The index of the property above is late indeed: asked by itself it lacks what was put and has what was deleted."""
    clock = ManualClock()
    with _late(clock) as db:
        own = OwnWrites(db, attempts=0)
        wrong = 0
        written: list[WriteReceipt] = []
        for number in range(20):
            clock.advance(600)
            ticket = db.put(Ticket(ticket_id=f"t{number}", customer="c1", rank=number))
            db.delete(Ticket.Key(ticket_id=f"t{number - 1}"))
            written.append(own.receipt(ticket))

            assert own.query(Ticket.Open(customer="c1"), *written).items == (ticket,)
            wrong += db.query(Ticket.Open(customer="c1")).items != [ticket]
        assert wrong > 5


def test_a_late_index_is_waited_for() -> None:
    """An index that shows a write after a moment is asked again, and its own answer given."""
    with _late(Moving(), "40ms") as db:
        own = OwnWrites(db, attempts=20, pause_s=0)
        for number in range(10):
            ticket = db.put(Ticket(ticket_id=f"t{number}", customer="c1", rank=number))
            with db.measure() as spent:
                found = own.query(Ticket.Open(customer="c1"), own.receipt(ticket))
            assert [t.rank for t in found] == list(range(number + 1))
            assert spent.operations["Query"] <= 21


def test_nothing_written_costs_nothing() -> None:
    """Without a write of one's own, and in the table itself, one query is asked and no item."""
    with _late(ManualClock()) as db:
        own = OwnWrites(db)
        db.put(Comment(ticket_id="t1", number=1))
        with db.measure() as spent:
            own.query(Ticket.Open(customer="c1"), own.receipt(Comment.Key(ticket_id="t1", number=1)))
            found = own.query(Comment.Of(ticket_id="t1"))

        assert spent.operations == {"Query": 2}
        assert len(found) == 1


def test_a_write_travels_as_text() -> None:
    """What was written is told to the next request as text, and text that tells nothing is refused."""
    with _late(ManualClock()) as db:
        own = OwnWrites(db, attempts=0)
        ticket = db.put(Ticket(ticket_id="t#1", customer="c1", rank=1))
        text = str(own.receipt(ticket))

        assert WriteReceipt.parse(text) == own.receipt(ticket)
        assert own.query(Ticket.Open(customer="c1"), WriteReceipt.parse(text)).items == (ticket,)
        assert own.query(Ticket.Open(customer="c2"), WriteReceipt.parse(text)).items == ()
        for wrong in ("", "not base64!", "W10", "eyJhIjoxfQ"):
            with pytest.raises(RecipeRefused, match="is not a write token"):
                WriteReceipt.parse(wrong)
        forged = WriteReceipt("Ticket", (("ticket_id", {"S": "t1"}), ("rank", {"S": "x"})))
        with pytest.raises(RecipeRefused, match="names no Ticket"):
            own.query(Ticket.Open(customer="c1"), forged)


def test_an_asynchronous_client_reads_its_writes() -> None:
    """The same with a client on a loop."""

    async def main() -> Any:
        async with connect_async("memory:", emulate="gsi-lag=20m,seed=5", clock=ManualClock()) as db:
            await db.create_tables(Desk)
            own = OwnWrites(db, attempts=1, pause_s=0)
            ticket = await db.put(Ticket(ticket_id="t1", customer="c1", rank=1))
            return await own.query(Ticket.Open(customer="c1"), own.receipt(ticket))

    assert len(asyncio.run(main())) == 1


def test_questions_that_cannot_be_mended_are_refused() -> None:
    """A filter, and a query that gives less than was written, are refused with what to do."""
    with _late(ManualClock()) as db:
        own = OwnWrites(db)
        with pytest.raises(RecipeRefused, match=r"leave out where\(\)"):
            own.query(Ticket.Open(customer="c1").where(Ticket.rank > 3))
        with pytest.raises(RecipeRefused, match="it returns Ref"):
            own.query(Ticket.Refs(customer="c1"))
