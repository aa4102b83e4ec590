"""Sequences: two writers never get one number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    ItemExists,
    ManualClock,
    PrimaryKey,
    Query,
    RetryPolicy,
    Sort,
    Table,
    connect,
    sort,
)
from tavola.patterns import PatternProgram, Recipe, RecipeRefused, Sequence, Sequences
from tavola.patterns.recipe import call_client, recipe_method
from tavola.protocol.faults import InternalServerFault
from tests.patterns.failing import SINGLE, TOGETHER, failing
from tests.patterns.interleaving import interleavings


class Desk(Table, ttl="expires"):
    """The one table."""


class Numbers(Sequence, table=Desk):
    """The sequences."""

    class Key(PrimaryKey["Numbers"], pk="SEQUENCE#{scope}", sk="{period}"):
        scope: str
        period: str


class Event(Entity, table=Desk):
    """Something that has a number."""

    ticket_id: Attr[str]
    number: Attr[int]
    kind: Attr[str]

    class Key(PrimaryKey["Event"], pk="TICKET#{ticket_id}", sk="EVENT#{number:06}"):
        ticket_id: str
        number: int

    class InTicket(Query["Event"], on=Key):
        ticket_id: str
        number: Sort[int] = sort()


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Desk)
    return found


def test_numbers_come_in_a_row(db: Connection, made: Callable[..., Any]) -> None:
    """A scope's numbers go from 1 without a gap; scopes are apart; a block is a range of its own."""
    numbers = made(Sequences, db, Numbers)

    assert [numbers.next("a") for _ in range(3)] == [1, 2, 3]
    assert numbers.next("b") == 1
    assert numbers.reserve("a", 100) == range(4, 104)
    assert numbers.next("a") == 104
    assert numbers.last("a") == 104
    assert numbers.last("c") == 0


def test_a_day_begins_at_one(db: Connection, made: Callable[..., Any], clock: ManualClock) -> None:
    """With every="day", each day of UTC has numbers of its own, in whatever zone a moment is told."""
    numbers = made(Sequences, db, Numbers, every="day", keep=timedelta(days=2))
    first = [numbers.next("a"), numbers.next("a")]
    clock.advance(86400)
    second = numbers.next("a")
    late = datetime.fromisoformat("2026-12-31T23:30:00-02:00")

    assert first == [1, 2]
    assert second == 1
    assert numbers.last("a", at=datetime.fromtimestamp(clock.now() - 86400, UTC)) == 2
    assert numbers.period(late) == "2027-01-01"


@pytest.fixture(params=["memory", "http"])
def shared(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection that threads share."""
    target = "memory:" if request.param == "memory" else request.getfixturevalue("served")
    found = connect(target, table_prefix=f"{request.node.name[:20].replace('[', '-')}-")
    found.create_tables(Desk)
    yield found
    found.delete_tables(Desk)
    found.close()


def test_threads_never_share_a_number(shared: Connection) -> None:
    """Pitfall 6: eight threads that take numbers and blocks get every number once, and none is left out."""
    numbers = Sequences(shared, Numbers)

    def take(_: int) -> list[int]:
        return [*(numbers.next("a") for _ in range(10)), *numbers.reserve("a", 5), numbers.next("a")]

    with ThreadPoolExecutor(8) as pool:
        taken = [number for found in pool.map(take, range(8)) for number in found]

    assert sorted(taken) == list(range(1, 129))


def _event(kind: str) -> Callable[[int], Event]:
    return lambda number: Event(ticket_id="t1", number=number, kind=kind)


def test_a_number_and_its_item_are_written_together(db: Connection, made: Callable[..., Any]) -> None:
    """The item of a number is there with it; one that cannot be created takes no number."""
    numbers = made(Sequences, db, Numbers)
    first = numbers.create_numbered("t1", _event("note"))
    with pytest.raises(ItemExists):
        numbers.create_numbered("t1", lambda number: first)
    second = numbers.create_numbered("t1", _event("reply"))

    assert (first.number, second.number) == (1, 2)
    assert db.query(Event.InTicket(ticket_id="t1")).items == [first, second]
    assert numbers.last("t1") == 2


def test_threads_leave_no_gap(shared: Connection) -> None:
    """Eight threads that write numbered items, some of them failing, leave every number with its item."""
    numbers = Sequences(shared, Numbers)

    def write(number: int) -> list[int]:
        found = []
        for turn in range(6):
            try:
                found.append(
                    numbers.create_numbered("t1", _failing if turn == 3 else _event(f"by {number}")).number
                )
            except ZeroDivisionError:
                pass
        return found

    with ThreadPoolExecutor(8) as pool:
        taken = [number for found in pool.map(write, range(8)) for number in found]

    assert sorted(taken) == list(range(1, 41))
    assert [event.number for event in shared.query(Event.InTicket(ticket_id="t1"))] == list(range(1, 41))


def _failing(number: int) -> Event:
    raise ZeroDivisionError


def test_two_numbered_items_in_every_order() -> None:
    """Whatever the order of their calls, two writers leave items 1 and 2."""
    made: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        made.append(connect("memory:", retry_policy=RetryPolicy(base_s=0)))
        made[-1].create_tables(Desk)
        numbers = Sequences(made[-1], Numbers)
        return made[-1], [numbers._create_numbered("t1", _event(kind), None) for kind in ("a", "b")]

    for outcomes in interleavings(make):
        assert sorted(event.number for event in outcomes) == [1, 2]
        stored = made[-1].query(Event.InTicket(ticket_id="t1")).items
        assert sorted(event.kind for event in stored) == ["a", "b"]
        made[-1].close()


class Counting(Recipe[Connection]):
    """The document's way, which the tests must see fail: count what is there, add one, write."""

    @recipe_method
    def next(self, ticket_id: str) -> PatternProgram[int]:
        """Return a number that somebody else may get as well."""
        count = yield from call_client(
            lambda db: db.count(Event.InTicket(ticket_id=ticket_id), consistent=True)
        )
        yield from call_client(lambda db: db.put(Event(ticket_id=ticket_id, number=count + 1, kind="note")))
        return count + 1


def _numbers(kind: Callable[[Connection], Any]) -> set[tuple[int, ...]]:
    """Return the numbers that two writers get, over all orders of their calls."""
    made: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        made.append(connect("memory:"))
        made[-1].create_tables(Desk)
        recipe = kind(made[-1])
        return made[-1], [type(recipe).next.steps(recipe, "t1") for _ in range(2)]

    found = set()
    for outcome in interleavings(make):
        found.add(tuple(sorted(outcome)))
        made[-1].close()
    return found


def test_two_writers_in_every_order() -> None:
    """Pitfall 6: whatever the order of their calls two writers get 1 and 2; who counts and adds one gets 1 twice."""
    assert _numbers(lambda db: Sequences(db, Numbers)) == {(1, 2)}
    assert (1, 1) in _numbers(Counting)


def test_a_sequence_that_was_put_with_no_number_is_begun(db: Connection, made: Callable[..., Any]) -> None:
    """An item that says that the last number is 0, or says nothing of it, is as good as none."""
    numbers = made(Sequences, db, Numbers)
    db.put(Numbers(scope="TICKET#t1", period="all"))

    assert numbers.create_numbered("TICKET#t1", _event("made")).number == 1
    assert numbers.next("TICKET#t1") == 2


def test_a_failure_of_the_service_gives_no_number_twice() -> None:
    """A number that was taken and answered with an internal error is a gap; where none may be, it is answered in the end."""
    with connect("memory:", retry_policy=RetryPolicy(base_s=0)) as db:
        db.create_tables(Desk)
        with pytest.raises(InternalServerFault):
            Sequences(failing(db, 1, of=SINGLE), Numbers).next("TICKET#t1")
        assert Sequences(db, Numbers).next("TICKET#t1") == 2

        told = Sequences(failing(db, 1, of=TOGETHER), Numbers).create_numbered("TICKET#t2", _event("made"))
        assert told.number == 1
        assert Sequences(db, Numbers).last("TICKET#t2") == 1


def test_what_cannot_number_is_refused() -> None:
    """A block of none, an unknown period, and forgetting what never ends are refused with what to do."""
    with connect("memory:") as db:
        with pytest.raises(RecipeRefused, match="reserve 1 or more"):
            Sequences(db, Numbers).reserve("a", 0)
        with pytest.raises(RecipeRefused, match="not a period"):
            Sequences(db, Numbers, every="week")  # type: ignore[arg-type]
        with pytest.raises(RecipeRefused, match="set every="):
            Sequences(db, Numbers, keep=timedelta(days=1))
