"""Estimates come true: with the item that stands known, what a write was said to cost is what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola import Attr, Connection, Entity, Gsi, Lsi, PrimaryKey, Query, Sort, Table, attr, connect, sort
from tavola.client.explain import estimates
from tavola.values import index_units

State = Literal["new", "open", "done"]


class Yard(Table):
    """A table with an index of every projection."""

    whole = Gsi(pk="g1pk", sk="g1sk")
    keys = Gsi(pk="g2pk", sk="g2sk", projection="KEYS_ONLY")
    some = Gsi(pk="g3pk", sk="g3sk", projection=("note",))
    native = Gsi(pk=("owner", "state"), sk=("load",))
    local = Lsi(sk="l1sk")


class Crate(Entity, table=Yard):
    """A crate whose fields feed every index."""

    crate_id: Attr[str]
    state: Attr[State] = attr(default="new")
    owner: Attr[str | None] = attr(default=None)
    load: Attr[int] = attr(default=0)
    note: Attr[str | None] = attr(default=None)
    body: Attr[str] = attr(default="")
    labels: Attr[set[str]] = attr(default_factory=set)

    class Key(PrimaryKey["Crate"], pk="CRATE#{crate_id}", sk="CRATE"):
        crate_id: str

    class ByState(Query["Crate"], on=Yard.whole, pk="STATE#{state}", sk="{load:04}"):
        state: State
        load: Sort[int] = sort()

    class ByOwner(
        Query["Crate"], on=Yard.keys, pk="OWNER#{owner}", sk="{load:04}", sparse=True, hydrate=True
    ):
        owner: str
        load: Sort[int] = sort()

    class Noted(
        Query["Crate"],
        on=Yard.some,
        pk="OWNER#{owner}",
        sk="{state}",
        members={"state": "open"},
        sparse=True,
        hydrate=True,
    ):
        owner: str
        state: Sort[State] = sort()

    class Owned(Query["Crate"], on=Yard.native, sparse=True):
        owner: str
        state: State
        load: Sort[int] = sort()

    class ByLoad(Query["Crate"], on=Yard.local, sk="{load:04}"):
        crate_id: str
        load: Sort[int] = sort()


_TEXTS = st.sampled_from(["", "x" * 50, "x" * 900, "x" * 1_100, "x" * 4_000])
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "state": st.sampled_from(["new", "open", "done"]),
    "owner": st.sampled_from([None, "ann", "bob"]),
    "load": st.integers(0, 3),
    "note": st.sampled_from([None, "n", "n" * 1_200]),
    "body": _TEXTS,
    "labels": st.sets(st.sampled_from("abc")),
}
_CHANGES = st.dictionaries(st.sampled_from(sorted(_VALUES)), st.none(), min_size=1, max_size=3).flatmap(
    lambda names: st.fixed_dictionaries({name: _VALUES[name] for name in names})
)
_WRITES: st.SearchStrategy[list[tuple[str, dict[str, Any]]]] = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.fixed_dictionaries(_VALUES)),
        st.tuples(st.just("update"), _CHANGES),
        st.tuples(st.just("delete"), st.just({})),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module")
def db() -> Iterator[Connection]:
    """One engine for all examples; each works on a crate of its own."""
    with connect("memory:") as found:
        found.create_tables(Yard)
        yield found


_NUMBERS = iter(range(10**9))


def disagreements(db: Connection, writes: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return where what was foretold of some writes is not what they came to."""
    crate_id = f"c{next(_NUMBERS)}"
    standing: Crate | None = None
    found = []
    for kind, values in writes:
        if kind == "put":
            crate = Crate(crate_id=crate_id, **values)
            told = db.explain.put(crate, current=standing)
            done: Any = db.explain.put(crate, run=True)
        elif standing is None:
            continue
        elif kind == "update":
            key = Crate.Key(crate_id=crate_id)
            changes: Any = [getattr(Crate, name).set(value) for name, value in values.items()]
            told = db.explain.update(key, *changes, current=standing)
            done = db.explain.update(key, *changes, run=True)
        else:
            told = db.explain.delete(standing)  # type: ignore[assignment]
            done = db.explain.delete(standing, run=True)
        if told.estimated_by_index != done.consumed_by_index:
            found.append(f"{kind} {values}: {told.estimated_by_index} and {done.consumed_by_index}")
        standing = db.get(Crate.Key(crate_id=crate_id), consistent=True)
    return found


@given(_WRITES)
def test_what_is_foretold_is_what_it_costs(db: Connection, writes: list[tuple[str, dict[str, Any]]]) -> None:
    """Any sequence of puts, updates and deletes costs by table and index what was said before each."""
    assert disagreements(db, writes) == []


def test_a_planted_fault_is_found(db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate that forgets that an entry which moves is paid twice is seen."""
    honest = index_units
    monkeypatch.setattr(
        estimates, "index_units", lambda *sizes, moved=False, same=False: honest(*sizes, same=same)
    )

    assert disagreements(db, [("put", {"load": 1}), ("update", {"load": 2})])
