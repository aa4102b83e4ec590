"""Write sharding: many partitions that answer as one."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola import (
    Attr,
    Connection,
    Entity,
    Gsi,
    ItemMissing,
    ModelError,
    PrimaryKey,
    Query,
    SeededEntropy,
    Shards,
    Sort,
    Table,
    attr,
    connect,
    sort,
)
from tavola.patterns import RecipeRefused, ShardBalance, shard_change, shards_for

START = datetime(2026, 9, 1, tzinfo=UTC)


class Desk(Table):
    """The one table: an index of each kind of shards, and one without."""

    plain = Gsi(pk="g0pk", sk="g0sk")
    two = Gsi(pk="g1pk", sk="g1sk")
    many = Gsi(pk="g2pk", sk="g2sk")
    chance = Gsi(pk="g3pk", sk="g3sk")
    times = Gsi(pk="g4pk", sk="g4sk")


class Ticket(Entity, table=Desk):
    """A ticket that is in all of them under one order."""

    ticket_id: Attr[str]
    status: Attr[str] = attr(default="open")
    rank: Attr[int]
    at: Attr[datetime]
    note: Attr[str] = attr(default="")

    class Key(PrimaryKey["Ticket"], pk="TICKET#{ticket_id}", sk="TICKET"):
        ticket_id: str

    class Plain(Query["Ticket"], on=Desk.plain, pk="S#{status}", sk="{at}#{rank:04}#{ticket_id}"):
        status: str
        at: Sort[datetime] = sort()
        rank: Sort[int] = sort()
        ticket_id: Sort[str] = sort()

    class Two(Query["Ticket"], on=Desk.two, pk="S#{status}", sk="{at}#{rank:04}#{ticket_id}", shards=2):
        status: str
        at: Sort[datetime] = sort()
        rank: Sort[int] = sort()
        ticket_id: Sort[str] = sort()

    class Many(
        Query["Ticket"],
        on=Desk.many,
        pk="S#{status}",
        sk="{at}#{rank:04}#{ticket_id}",
        shards=Shards(7, of=("rank",)),
    ):
        status: str
        at: Sort[datetime] = sort()
        rank: Sort[int] = sort()
        ticket_id: Sort[str] = sort()

    class Chance(
        Query["Ticket"],
        on=Desk.chance,
        pk="S#{status}",
        sk="{at}#{rank:04}#{ticket_id}",
        shards=Shards(5, by="random"),
    ):
        status: str
        at: Sort[datetime] = sort()
        rank: Sort[int] = sort()
        ticket_id: Sort[str] = sort()

    class Times(
        Query["Ticket"],
        on=Desk.times,
        pk="S#{status}",
        sk="{at}#{rank:04}#{ticket_id}",
        shards=Shards.by_time("at", "day"),
    ):
        status: str
        at: Sort[datetime] = sort()
        rank: Sort[int] = sort()
        ticket_id: Sort[str] = sort()


SHARDED: list[Any] = [Ticket.Two, Ticket.Many, Ticket.Chance]
ITEMS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 12), st.sampled_from(["open", "closed"])), max_size=25
)


def _moment(number: int) -> datetime:
    return START + timedelta(hours=9 * number)


def _ticket(number: int, item: tuple[int, int, str]) -> Ticket:
    at, rank, status = item
    return Ticket(ticket_id=f"t{number:03}", status=status, rank=rank, at=_moment(at))


def _questions(pattern: Any, low: int, high: int) -> Iterator[Any]:
    """Give a question of each operator, on the first and on the second part."""
    a, b = _moment(low), _moment(high)
    if pattern.__name__ != "Times":
        yield from _unbounded(pattern, a)
    yield pattern(status="open").at.between(a, b)
    yield pattern(status="open").at.eq(a)
    yield pattern(status="open").at.eq(a).rank.lt(high)
    yield pattern(status="open").at.eq(a).rank.gte(low)
    yield pattern(status="open").at.eq(a).rank.between(low, high)
    yield pattern(status="open").at.eq(a).rank.eq(high)
    yield pattern(status="open").at.eq(a).rank.eq(high).ticket_id.begins_with("t0")


def _unbounded(pattern: Any, at: datetime) -> Iterator[Any]:
    """Give the questions that shards by time refuse, because they have no end or no beginning."""
    yield pattern(status="open")
    yield pattern(status="open").at.lt(at)
    yield pattern(status="open").at.lte(at)
    yield pattern(status="open").at.gt(at)
    yield pattern(status="open").at.gte(at)


UNBOUNDED = len(list(_unbounded(Ticket.Plain, START)))


def _paged(db: Connection, question: Any, limit: int | None, newest_first: bool) -> list[str]:
    """Return what a question finds, so many at a time."""
    if limit is None:
        return [ticket.ticket_id for ticket in db.query(question, newest_first=newest_first)]
    found: list[str] = []
    cursor = None
    while True:
        page = db.query(question, limit=limit, cursor=cursor, newest_first=newest_first)
        assert len(page.items) <= limit
        found += [ticket.ticket_id for ticket in page.items]
        cursor = page.cursor
        if cursor is None:
            return found
        assert page.items, "a page that leads on holds something"


def _design(sk: str, bucket: str) -> Any:
    """Return an entity whose indexes all have one sort key: in one partition, and under each kind of shards."""

    class Wall(Table, name="Wall"):
        plain = Gsi(pk="g0pk", sk="g0sk")
        two = Gsi(pk="g1pk", sk="g1sk")
        many = Gsi(pk="g2pk", sk="g2sk")
        chance = Gsi(pk="g3pk", sk="g3sk")
        times = Gsi(pk="g4pk", sk="g4sk")

    class Notice(Entity, table=Wall):
        ticket_id: Attr[str]
        status: Attr[str]
        rank: Attr[int]
        at: Attr[datetime]

        class Key(PrimaryKey["Notice"], pk="NOTICE#{ticket_id}", sk="NOTICE"):
            ticket_id: str

        class Plain(Query["Notice"], on=Wall.plain, pk="S#{status}", sk=sk):
            status: str
            at: Sort[datetime] = sort()
            rank: Sort[int] = sort()
            ticket_id: Sort[str] = sort()

        class Two(Query["Notice"], on=Wall.two, pk="S#{status}", sk=sk, shards=2):
            status: str
            at: Sort[datetime] = sort()
            rank: Sort[int] = sort()
            ticket_id: Sort[str] = sort()

        class Many(Query["Notice"], on=Wall.many, pk="S#{status}", sk=sk, shards=Shards(7, of=("rank",))):
            status: str
            at: Sort[datetime] = sort()
            rank: Sort[int] = sort()
            ticket_id: Sort[str] = sort()

        class Chance(Query["Notice"], on=Wall.chance, pk="S#{status}", sk=sk, shards=Shards(5, by="random")):
            status: str
            at: Sort[datetime] = sort()
            rank: Sort[int] = sort()
            ticket_id: Sort[str] = sort()

        class Times(
            Query["Notice"], on=Wall.times, pk="S#{status}", sk=sk, shards=Shards.by_time("at", bucket)
        ):
            status: str
            at: Sort[datetime] = sort()
            rank: Sort[int] = sort()
            ticket_id: Sort[str] = sort()

    return Notice


DESIGNS = [
    _design("{at}#{rank:04}#{ticket_id}", "day"),
    _design("{at:desc}#{rank:desc}#{ticket_id}", "day"),
    _design("{at:day}#{rank:desc}#{ticket_id}", "hour"),
]


@pytest.mark.parametrize("design", DESIGNS, ids=["rising", "falling", "rough"])
@settings(max_examples=10, deadline=None)
@given(
    ITEMS,
    st.integers(0, 6),
    st.integers(0, 12),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
)
def test_scatter_gather_is_one_partitions_answer(
    design: Any,
    items: list[tuple[int, int, str]],
    low: int,
    high: int,
    limit: int,
    newest_first: bool,
    page_size: int | None,
) -> None:
    """Sharded in any way, with every operator, limit, order of parts and direction, an answer is what one partition would give."""
    with connect("memory:", entropy=SeededEntropy(7)) as db:
        db.create_tables(design.__options__["table"])
        db.put_many(
            design(ticket_id=f"t{number:03}", status=status, rank=rank, at=_moment(at))
            for number, (at, rank, status) in enumerate(items)
        )
        plain = list(_questions(design.Plain, low, high))
        answers = [[t.ticket_id for t in db.query(each, newest_first=newest_first)] for each in plain]
        for pattern in (design.Two, design.Many, design.Chance, design.Times):
            wanted = answers[UNBOUNDED:] if pattern is design.Times else answers
            for expected, question in zip(wanted, _questions(pattern, low, high), strict=True):
                for size in (None, limit):
                    assert _paged(db, question, size, newest_first) == expected
                every = db.query(question, newest_first=newest_first, page_size=page_size)
                assert [ticket.ticket_id for ticket in every] == expected
                assert db.count(question) == len(expected)


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "drop", "touch", "move"]), st.integers(0, 60), st.integers(0, 6)),
    max_size=4,
)
Pager = Callable[[Connection, Any, int, list[list[tuple[str, int, int]]], bool], list[str]]


def _apply(db: Connection, change: tuple[str, int, int], stable: int) -> None:
    verb, number, at = change
    other = Ticket.Key(ticket_id=f"x{number % 10}")
    if verb == "add":
        db.put(Ticket(ticket_id=f"x{number % 10}", rank=number % 5, at=_moment(at)))
    elif verb == "drop":
        db.delete(other)
    elif verb == "move":
        with contextlib.suppress(ItemMissing):
            db.update(other, Ticket.at.set(_moment(at)))
    elif verb == "touch" and stable:
        db.update(Ticket.Key(ticket_id=f"t{number % stable:03}"), Ticket.note.set(str(at)))


def _by_cursor(db: Connection, question: Any, limit: int, rounds: list[Any], newest_first: bool) -> list[str]:
    found: list[str] = []
    cursor = None
    for changes in itertools.chain(rounds, itertools.repeat([])):
        page = db.query(question, limit=limit, cursor=cursor, newest_first=newest_first)
        found += [ticket.ticket_id for ticket in page.items]
        cursor = page.cursor
        if cursor is None:
            break
        for change in changes:
            _apply(db, change, STABLE)
    return found


def _by_offset(db: Connection, question: Any, limit: int, rounds: list[Any], newest_first: bool) -> list[str]:
    """The fault that the check must see: so many are skipped that were read before."""
    found: list[str] = []
    for changes in itertools.chain(rounds, itertools.repeat([])):
        page = [t.ticket_id for t in db.query(question, newest_first=newest_first)][
            len(found) : len(found) + limit
        ]
        if not page:
            break
        found += page
        for change in changes:
            _apply(db, change, STABLE)
    return found


STABLE = 12


def _covers(pager: Pager, pattern: Any, limit: int, rounds: list[Any], newest_first: bool) -> bool:
    """Return whether what stood throughout is found exactly once, while others come, go and move."""
    with connect("memory:", entropy=SeededEntropy(3)) as db:
        db.create_tables(Desk)
        stable = [_ticket(number, (number % 6, number % 4, "open")) for number in range(STABLE)]
        db.put_many([*stable, *(Ticket(ticket_id=f"x{n}", rank=n, at=_moment(n % 6)) for n in range(8))])
        found = pager(db, pattern(status="open"), limit, rounds, newest_first)
        return sorted(name for name in found if name.startswith("t")) == [t.ticket_id for t in stable]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SHARDED), st.integers(1, 5), st.lists(CHANGES, max_size=8), st.booleans())
def test_a_cursor_covers_once_what_stood_throughout(
    pattern: Any, limit: int, rounds: list[list[tuple[str, int, int]]], newest_first: bool
) -> None:
    """While items come, go and move between the pages, each that stood throughout is found exactly once."""
    assert _covers(_by_cursor, pattern, limit, rounds, newest_first)


def test_the_check_sees_a_pager_that_skips() -> None:
    """Paging by an offset, which misses and repeats under the same changes, is told apart from a cursor."""
    rounds = [[("drop", 0, 0), ("drop", 6, 0)], [("add", 9, 0)], [("drop", 1, 0), ("drop", 2, 0)]]

    assert not _covers(_by_offset, Ticket.Two, 3, rounds, False)
    assert _covers(_by_cursor, Ticket.Two, 3, rounds, False)


def test_a_number_of_shards_from_rates() -> None:
    """As many shards as a peak needs, with room, and no more; an item that moves is written twice."""
    assert shards_for(100, 500).count == 1
    assert shards_for(3_000, 900).count == 6
    assert shards_for(3_000, 900, headroom=1.0).count == 3
    assert shards_for(3_000, 1_500, key_changes=True).count == 24
    advice = shards_for(3_000, 900)
    assert (advice.write_units_per_second, advice.per_shard) == (3_000, 500)
    assert "3,000 write units a second over 6" in advice.why
    with pytest.raises(RecipeRefused, match="headroom"):
        shards_for(1, 1, headroom=0)


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Desk)
    return found


def test_balance_is_counted_shard_by_shard(db: Connection, made: Callable[..., Any]) -> None:
    """Each shard of a question is counted; a field that is always the same puts all into one."""
    for number in range(40):
        db.put(Ticket(ticket_id=f"t{number}", rank=3, at=START))
    balance = made(ShardBalance, db)

    even = balance.of(Ticket.Two(status="open"))
    skewed = balance.of(Ticket.Many(status="open"))

    assert (even.total, len(even.counts)) == (40, 2)
    assert 1.0 <= even.ratio < 1.6
    assert (skewed.total, skewed.ratio) == (40, 7.0)
    assert skewed.counts[skewed.largest] == 40
    with pytest.raises(RecipeRefused, match="not sharded"):
        balance.of(Ticket.Plain(status="open"))


def test_growing_needs_no_rewrite_and_shrinking_does() -> None:
    """With more shards everything is found at once; with fewer, both are read until the items are rewritten."""
    grown = shard_change(8, 16)
    shrunk = shard_change(Shards(16, by="random"), Shards(4, by="random"))

    assert (grown.rewrite, grown.during, grown.after) == (False, Shards(8, reading=16), Shards(16))
    assert "writes to 8 and reads 16" in grown.steps[0]
    assert (shrunk.rewrite, shrunk.during.count, shrunk.during.reads) == (True, 4, 16)
    assert shrunk.after == Shards(4, by="random")
    assert "reading=16" in shrunk.steps[0]
    assert shard_change(Shards.by_time("at", "day"), Shards.by_time("at", "day")).rewrite is False
    with pytest.raises(ModelError, match="part of the table's key"):
        shard_change(8, 16, table_key=True)
    with pytest.raises(ModelError, match="part of the template"):
        shard_change(8, Shards.by_time("at", "day"))


def _program(shards: Any) -> Any:
    """Return the entity as a program declares it that was deployed with some number of shards."""

    class Queue(Table, name="Queue"):
        index = Gsi(pk="g1pk", sk="g1sk")

    class Job(Entity, table=Queue, tag="Job"):
        job_id: Attr[str]

        class Key(PrimaryKey["Job"], pk="JOB#{job_id}", sk="JOB"):
            job_id: str

        class All(Query["Job"], on=Queue.index, pk="JOBS", sk="{job_id}", shards=shards):
            job_id: Sort[str] = sort()

    return Job


def _found(db: Connection, program: Any) -> int:
    return len(list(db.query(program.All())))


def test_more_shards_while_two_programs_run() -> None:
    """At each step of the plan, the programs of the step before find all that the new ones write; without it, they do not."""
    plan = shard_change(2, 8)
    old, during, new = _program(2), _program(plan.during), _program(plan.after)
    with connect("memory:") as db:
        db.create_tables(old.__options__["table"])
        written = 0
        for programs in ((old,), (old, during), (during,), (during, new), (new,)):
            for program in programs:
                for _ in range(10):
                    db.put(program(job_id=f"j{written:03}"))
                    written += 1
            assert [_found(db, program) for program in programs] == [written] * len(programs)
        assert _found(db, old) < written


def test_fewer_shards_while_two_programs_run() -> None:
    """Fewer shards find everything when the plan's backfill is done, and not before."""
    plan = shard_change(8, 2)
    old, during, new = _program(8), _program(plan.during), _program(plan.after)
    with connect("memory:") as db:
        table = during.__options__["table"]
        db.create_tables(table)
        for number in range(30):
            db.put((old, during)[number % 2](job_id=f"j{number:03}"))
        assert [_found(db, program) for program in (old, during)] == [30, 30]
        assert _found(db, new) < 30

        report = db.backfill(table)

        assert 0 < report.written < 30
        assert _found(db, new) == 30


def test_writers_do_not_disturb_a_reader(served: str) -> None:
    """While threads write beside them, what stood throughout is found exactly once by every reader."""
    with connect(served, table_prefix="shards-") as db:
        db.create_tables(Desk)
        stable = [_ticket(number, (number % 6, number % 4, "open")) for number in range(30)]
        db.put_many(stable)
        names = [ticket.ticket_id for ticket in stable]

        def write(number: int) -> list[str]:
            for turn in range(25):
                _apply(db, (["add", "move", "touch", "drop"][turn % 4], number * 7 + turn, turn % 6), 30)
            return names

        def read(number: int) -> list[str]:
            found = _paged(db, SHARDED[number % 3](status="open"), 4, bool(number % 2))
            return sorted(name for name in found if name.startswith("t"))

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda n: write(n) if n % 2 else read(n // 2), range(12)))

        assert all(answer == names for answer in answers)
        db.delete_tables(Desk)
