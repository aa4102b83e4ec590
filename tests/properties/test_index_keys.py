"""Index keys are never stale: after any sequence of writes, each is what a rebuild would write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tavola import (
    Attr,
    Connection,
    Entity,
    Gsi,
    ItemMissing,
    Lsi,
    PrimaryKey,
    Query,
    Shards,
    Sort,
    Table,
    UpdateIncomplete,
    attr,
    connect,
    sort,
)
from tavola.client import updates
from tavola.client.context import Context
from tavola.client.marshalling import entity_of, item_of
from tavola.client.updates import IndexKeyUpdate
from tavola.model import Change, shape_of
from tavola.protocol.faults import ValidationFault

State = Literal["new", "open", "done"]
START = datetime(2026, 1, 1, tzinfo=UTC)


class Works(Table):
    """A table with an index of every kind."""

    by_state = Gsi(pk="g1pk", sk="g1sk")
    by_owner = Gsi(pk="g2pk", sk="g2sk")
    urgent = Gsi(pk="g3pk", sk="g3sk", projection="KEYS_ONLY")
    by_day = Gsi(pk="g4pk", sk="g4sk")
    by_load = Lsi(sk="l1sk")


class Job(Entity, table=Works):
    """A job whose every field feeds some index."""

    team: Attr[str]
    number: Attr[int]
    state: Attr[State] = attr(default="new")
    owner: Attr[str | None] = attr(default=None)
    load: Attr[int] = attr(default=0)
    cost: Attr[Decimal | None] = attr(default=None)
    due: Attr[datetime] = attr(default=START)
    labels: Attr[set[str]] = attr(default_factory=set)
    spare: Attr[int] = attr(default=0)  # feeds no index, but others are set from it

    class Key(PrimaryKey["Job"], pk="TEAM#{team}", sk="JOB#{number:06}"):
        team: str
        number: int

    class ByState(Query["Job"], on=Works.by_state, pk="STATE#{state}", sk="{load:04,desc}#{due}", shards=4):
        state: State
        load: Sort[int] = sort()
        due: Sort[datetime] = sort()

    class ByOwner(Query["Job"], on=Works.by_owner, pk="OWNER#{owner}", sk="{cost:6.2}#{state}", sparse=True):
        owner: str
        cost: Sort[Decimal] = sort()
        state: Sort[State] = sort()

    class Urgent(
        Query["Job"], on=Works.urgent, pk="URGENT#{team}", sk="{due}#{load:04}",
        members={"state": ("new", "open")}, hydrate=True,
    ):  # fmt: skip
        team: str
        due: Sort[datetime] = sort()
        load: Sort[int] = sort()

    class ByDay(Query["Job"], on=Works.by_day, pk="{state}", sk="{due}", shards=Shards.by_time("due", "day")):
        state: State
        due: Sort[datetime] = sort()

    class ByLoad(Query["Job"], on=Works.by_load, sk="{load:04}#{number:06}"):
        team: str
        load: Sort[int] = sort()
        number: Sort[int] = sort()


_TEXTS = st.sampled_from(["ann", "b#b", "c c", "d$d", "é"])
_ALL: tuple[State, ...] = ("new", "open", "done")
_STATES = st.sampled_from(_ALL)
_COSTS = st.decimals(min_value=-999, max_value=999, places=2)
_DUES = st.integers(0, 500).map(lambda hours: START + timedelta(hours=hours))
_LOADS = st.integers(-50, 50)

CHANGES: dict[str, st.SearchStrategy[Change[Job]]] = {
    "state": _STATES.map(Job.state.set) | st.just(Job.state.set_if_absent("open")),
    "owner": _TEXTS.map(Job.owner.set) | st.just(Job.owner.remove()) | _TEXTS.map(Job.owner.set_if_absent),
    "load": _LOADS.map(Job.load.set)
    | _LOADS.map(Job.load.add)
    | _LOADS.map(lambda n: Job.load.set(Job.load + n))
    | _LOADS.map(lambda n: Job.load.set(Job.spare + n))
    | st.just(Job.load.set(Job.spare)),
    "spare": st.integers(-20, 20).map(Job.spare.set),
    "cost": _COSTS.map(Job.cost.set) | st.just(Job.cost.remove()) | _COSTS.map(Job.cost.set_if_absent),
    "due": _DUES.map(Job.due.set),
    "labels": st.sets(_TEXTS, min_size=1).map(Job.labels.add)
    | st.sets(_TEXTS, min_size=1).map(Job.labels.discard),
}
FIRST: tuple[Change[Job], ...] = (Job.load.add(1), Job.spare.set_if_absent(3))
_UPDATES = st.sets(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=4).flatmap(
    lambda names: st.tuples(*(CHANGES[name] for name in sorted(names)))
)
_ONE = st.sampled_from(["load", "spare", "state"]).flatmap(lambda name: st.tuples(CHANGES[name]))
_CONDITIONS = st.sampled_from([None, "state", "owner"])
STEPS = st.lists(st.tuples(st.integers(1, 4), _UPDATES, _CONDITIONS), min_size=1, max_size=12)


def stored(db: Connection) -> list[dict[str, Any]]:
    """Return every item as it stands."""
    found: list[dict[str, Any]] = db.call("Scan", {"TableName": "Works"})["Items"]
    return found


def place(number: int) -> dict[str, Any]:
    """Return the key of a job."""
    return {"pk": {"S": "TEAM#x"}, "sk": {"S": f"JOB#{number:06}"}}


def bare(db: Connection, number: int) -> None:
    """Take away what a job reads as by default, as an item has it that was written before the field was."""
    more = {"UpdateExpression": "REMOVE #s, due", "ExpressionAttributeNames": {"#s": "state"}}
    db.call("UpdateItem", {"TableName": "Works", "Key": place(number), **more})


def stale(db: Connection) -> list[dict[str, Any]]:
    """Return the items that a rebuild would write otherwise."""
    shape = shape_of(Job)

    def keys(item: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in item.items() if name not in shape.by_attribute}

    return [i for i in stored(db) if keys(item_of(shape, entity_of(Job, i), Context())) != keys(i)]


def play(db: Connection, steps: Sequence[tuple[int, tuple[Change[Job], ...], str | None]]) -> None:
    """Put three jobs, one of them from before some fields were, then change them and a fourth that an update makes."""
    for number in (1, 2, 3):
        db.put(Job(team="x", number=number, load=number))
    bare(db, 3)
    for number, changes, fixed in steps:
        key = Job.Key(team="x", number=number)
        before = db.get(key)
        when = None
        if before is None:
            assert number == 4
            changes = (*(c for c in changes if c.field not in ("load", "spare")), *FIRST)
        elif fixed == "owner":
            when = Job.owner.eq(before.owner)
        elif fixed == "state":
            held = db.call("GetItem", {"TableName": "Works", "Key": place(number)})["Item"]
            when = Job.state.eq(before.state) if "state" in held else Job.state.not_exists()
        db.update(key, *changes, when=when, create=number == 4)


@given(STEPS)
def test_an_index_equals_its_rebuild(steps: Any) -> None:
    """Whatever is set, removed, added, discarded or defaulted, every index key is as a rebuild would write it."""
    with connect("memory:") as db:
        db.create_tables(Works)
        play(db, steps)

        assert stale(db) == []


@given(STEPS)
def test_an_index_holds_whom_it_should(steps: Any) -> None:
    """Each pattern finds exactly the items whose fields say that they belong to it."""
    with connect("memory:") as db:
        db.create_tables(Works)
        play(db, steps)
        jobs = [entity_of(Job, item) for item in stored(db)]

        for state in ("new", "open", "done"):
            found = list(db.query(Job.ByState(state=state)))
            assert {j.number for j in found} == {j.number for j in jobs if j.state == state}
            assert [j.load for j in found] == sorted((j.load for j in found), reverse=True)
            days = db.query(Job.ByDay(state=state).due.between(START, START + timedelta(hours=500)))
            assert [j.due for j in days] == sorted(j.due for j in jobs if j.state == state)
        urgent = list(db.query(Job.Urgent(team="x")))
        assert [(j.due, j.load) for j in urgent] == sorted((j.due, j.load) for j in jobs if j.state != "done")
        owned = list(db.query(Job.ByOwner(owner="b#b")))
        assert [j.cost for j in owned] == sorted(
            j.cost for j in jobs if j.owner == "b#b" and j.cost is not None
        )
        assert [j.load for j in db.query(Job.ByLoad(team="x"))] == sorted(j.load for j in jobs)


@given(_ONE | _UPDATES, _ONE | _UPDATES, st.booleans(), st.booleans())
@example((Job.load.set(Job.spare),), (Job.spare.set(7),), False, True)
def test_an_index_equals_its_rebuild_whoever_comes_between(
    mine: Any, theirs: Any, absent: bool, there: bool
) -> None:
    """A writer between the read and the write of an update leaves no key behind, whatever both change."""
    with connect("memory:") as db:
        db.create_tables(Works)
        if there:
            db.put(Job(team="x", number=1))
            if absent:
                bare(db, 1)
            db.update(Job.Key(team="x", number=1), Job.spare.set(5))
        key = Job.Key(team="x", number=1)
        between(db, lambda other: other.update(key, *theirs, *besides(theirs), create=True))
        with suppress(ValidationFault):  # a sum with what is absent, which is refused whole
            db.update(key, *mine, *besides(mine), create=True)

        assert stale(db) == []


def besides(changes: Sequence[Change[Job]]) -> tuple[Change[Job], ...]:
    """Return what an update that may make a job sets besides, so that sums have something to go by."""
    named = {change.field for change in changes}
    return () if named & {"load", "spare"} else FIRST


def between(db: Connection, act: Callable[[Connection], object]) -> None:
    """Let another writer act before the next write of a connection goes out."""
    backend: Any = db.backend
    call = backend.call

    def overtaken(operation: str, request: dict[str, Any]) -> Any:
        if operation in ("UpdateItem", "PutItem"):
            backend.call = call
            with suppress(ValidationFault):
                act(Connection(backend))
        return call(operation, request)

    backend.call = overtaken


def test_a_field_that_a_change_is_taken_from_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison finds an update that guards only the fields it writes: the planted fault."""
    monkeypatch.setattr(updates, "attributes_read_by", lambda changes, fields: frozenset())
    with connect("memory:") as db:
        db.create_tables(Works)
        db.put(Job(team="x", number=1, spare=1))
        between(db, lambda other: other.update(Job.Key(team="x", number=1), Job.spare.set(7)))
        db.update(Job.Key(team="x", number=1), Job.load.set(Job.spare))

        assert len(stale(db)) == 1


@pytest.mark.parametrize("forgotten", ["by_owner", "urgent", "by_state"])
def test_a_forgotten_index_is_seen(monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    """The comparison with a rebuild finds an update that leaves one index alone: the planted fault."""
    made: Callable[..., None] = IndexKeyUpdate.__init__

    def forget(self: IndexKeyUpdate, *args: Any) -> None:
        made(self, *args)
        self.affected = tuple(k for k in self.affected if k.index is None or k.index.label != forgotten)

    monkeypatch.setattr(IndexKeyUpdate, "__init__", forget)
    with connect("memory:") as db:
        db.create_tables(Works)
        db.put(Job(team="x", number=1, owner="ann", cost=Decimal(1)))
        db.update(Job.Key(team="x", number=1), Job.state.set("done"), Job.owner.set("é"))

        assert len(stale(db)) == 1


def test_a_status_change_moves_the_ticket_in_its_indexes() -> None:
    """Pitfall 1: what `status` feeds is rewritten with it, also on REMOVE and ADD, in one request."""
    with connect("memory:") as db:
        db.create_tables(Works)
        db.put(Job(team="x", number=1, state="new", owner="ann", cost=Decimal("1.50")))
        with db.measure() as spent:
            db.update(
                Job.Key(team="x", number=1),
                Job.state.set("done"),
                Job.load.set(7),
                Job.due.set(START),
                when=Job.owner.eq("ann") & Job.cost.eq(Decimal("1.50")),
            )

        assert spent.operations == {"UpdateItem": 1}
        assert [j.number for j in db.query(Job.ByState(state="done"))] == [1]
        assert list(db.query(Job.ByState(state="new"))) == []
        assert list(db.query(Job.Urgent(team="x"))) == []


class Guarded(Table):
    """A table for an entity that reads nothing by itself."""

    by_state = Gsi(pk="gpk", sk="gsk")


class Strict(Entity, table=Guarded, stale="refuse"):
    """An entity whose updates must say everything."""

    name: Attr[str]
    state: Attr[str]
    rank: Attr[int]

    class Key(PrimaryKey["Strict"], pk="S#{name}", sk="S"):
        name: str

    class ByState(Query["Strict"], on=Guarded.by_state, pk="{state}", sk="{rank:04}"):
        state: str
        rank: Sort[int] = sort()


def test_an_update_that_knows_too_little_is_refused() -> None:
    """With stale="refuse" an update that would have to read says what it lacks, and writes nothing."""
    with connect("memory:") as db:
        db.create_tables(Guarded)
        db.put(Strict(name="a", state="new", rank=1))

        with pytest.raises(UpdateIncomplete) as refused:
            db.update(Strict.Key(name="a"), Strict.state.set("done"))

        assert refused.value.fields == ("rank",)
        assert db.get(Strict.Key(name="a")) == Strict(name="a", state="new", rank=1)
        assert (
            db.update(Strict.Key(name="a"), Strict.state.set("done"), when=Strict.rank.eq(1)).state == "done"
        )
        assert db.update(Strict.Key(name="a"), Strict.state.set("x"), Strict.rank.set(2)).rank == 2


def test_an_update_of_nothing_that_must_read_is_refused() -> None:
    """An update that reads first finds no item and says so."""
    with connect("memory:") as db:
        db.create_tables(Works)

        with pytest.raises(ItemMissing):
            db.update(Job.Key(team="x", number=1), Job.load.add(1))
