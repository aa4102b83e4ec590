"""Races between two editors and a program: an acknowledged change is stored, and a refused one is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tavola import Attr, Entity, Gsi, PrimaryKey, Query, Sort, Table, attr, connect, sort
from tavola.client.connection import AsyncConnection
from tavola.model.document import design_of
from tavola.protocol.faults import InternalServerFault
from tavola.studio.api.items import EditItemRequest, RemoveItemRequest, WriteOutcome, delete_item, put_item
from tavola.studio.edits import writes
from tavola.studio.problems import RequestRefused
from tests.studio.edited import Stage, club, key_of, plain_table

NAMES = ("a", "b", "c", "d", "e")
ids = count()


class Turns:
    """A connection that lets others go first, a given number of times."""

    def __init__(self, db: Any, pauses: Iterator[int]) -> None:
        self.db = db
        self.pauses = pauses

    async def close(self) -> None:
        """Leave open what it calls through: that is another's."""

    async def call(self, operation: str, request: Any) -> Any:
        for _ in range(next(self.pauses, 0)):
            await asyncio.sleep(0)
        return await self.db.call(operation, request)


@dataclass(frozen=True)
class Act:
    """One concurrent action: set own attributes, remove some, delete the item or move it."""

    kind: str
    set_: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def made_of(self, item: dict[str, Any], mark: str) -> dict[str, Any]:
        made = {name: value for name, value in item.items() if name not in self.removed}
        made |= {name: {"S": f"{mark}-{name}"} for name in self.set_}
        return made | ({"n": {"N": mark}} if self.kind == "move" else {})


subsets = st.sets(st.sampled_from(NAMES), max_size=5).map(lambda names: tuple(sorted(names)))
acts = st.builds(Act, st.sampled_from(["edit", "edit", "edit", "delete", "move"]), subsets, subsets)
pauses = st.lists(st.integers(0, 5), max_size=12)


async def _act(
    stage: Stage, act: Act, before: dict[str, Any], mark: str, waits: list[int]
) -> WriteOutcome | None:
    """Return the outcome; None if the write was refused."""
    studio = replace(stage.studio, db=AsyncConnection(Turns(stage.studio.db, iter(waits))))
    try:
        if act.kind == "delete":
            return await delete_item(studio, RemoveItemRequest("plain", before))
        return await put_item(studio, EditItemRequest("plain", act.made_of(before, mark), before))
    except RequestRefused as refused:
        if refused.problem.code not in ("partly-written", "deleted-with-more"):
            raise
        return None


async def _program(stage: Stage, key: dict[str, Any], steps: list[tuple[str, int]]) -> dict[str, str]:
    """Set attributes one after the other without conditions; return the last value of each."""
    values: dict[str, str] = {}
    for number, (name, wait) in enumerate(steps):
        for _ in range(wait):
            await asyncio.sleep(0)
        values[name] = f"program-{number}"
        request = {
            "TableName": "plain", "Key": key, "UpdateExpression": "SET #n = :v",
            "ExpressionAttributeNames": {"#n": name}, "ExpressionAttributeValues": {":v": {"S": values[name]}},
        }  # fmt: skip
        stage.engine.call("UpdateItem", request)
    return values


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with club(design=None, members=0) as made:
        plain_table(made)
        yield made


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=acts,
    second=acts,
    program=st.lists(st.tuples(st.sampled_from((*NAMES, "added")), st.integers(0, 6)), max_size=4),
    waits=st.tuples(pauses, pauses),
    in_parts=st.booleans(),
)
def test_no_acknowledged_change_is_lost(
    stage: Stage,
    first: Act,
    second: Act,
    program: list[tuple[str, int]],
    waits: tuple[list[int], list[int]],
    in_parts: bool,
) -> None:
    """In every order, acknowledged writes of the program and of editors are stored, and refused ones are not."""
    if "move" in (first.kind, second.kind):  # the gap that is owned: a name that nobody could ask about
        program = [step for step in program if step[0] != "added"]
    key = {"id": {"S": f"i{next(ids)}"}, "n": {"N": "1"}}
    before = {**key, **{name: {"S": "old"} for name in NAMES}}
    stage.put(before, "plain")

    async def race() -> tuple[WriteOutcome | None, WriteOutcome | None, dict[str, str]]:
        return await asyncio.gather(
            _act(stage, first, before, "11", waits[0]),
            _act(stage, second, before, "22", waits[1]),
            _program(stage, key, program),
        )

    with pytest.MonkeyPatch.context() as patch:
        if in_parts:
            patch.setattr(writes, "ATTRIBUTES_MAX", 2)
        one, two, given_ = asyncio.run(race())

    current = stage.item(key, "plain")
    everywhere = [item for item in stage.items("plain") if item["id"] == key["id"]]
    if one is not None and two is not None:  # otherwise somebody was told that it is neither so nor so
        for name, value in given_.items():
            assert current is not None
            assert current[name] == {"S": value}, "the program's write is lost"
    for act, done, mark in ((first, one, "11"), (second, two, "22")):
        if done is None:
            continue
        mine = {name: f"{mark}-{name}" for name in act.set_} if act.kind != "delete" else {}
        if done.outcome in ("conflict", "exists"):
            texts = {value.get("S") for item in everywhere for value in item.values()}
            assert texts.isdisjoint(mine.values()), "what was refused is written"
            assert all(item["n"]["N"] != mark for item in everywhere), "it moved, and was told not to have"
        elif done.outcome == "written" and act.kind != "delete":
            place = {**key, "n": {"N": mark}} if act.kind == "move" else key
            item = stage.item(place, "plain")
            assert item is not None, "what was written is gone"
            for name, value in mine.items():
                assert name in given_ or item[name] == {"S": value}, "an acknowledged change is lost"
            for name in set(act.removed) - set(act.set_):
                assert name in given_ or name not in item, "an acknowledged removal is lost"


class Pond(Table, name="studio-pond", pk="PK", sk="SK"):
    """Boats without a lock."""

    afloat = Gsi(pk="GSI1PK", sk="GSI1SK", name="afloat")


class Boat(Entity, table=Pond):
    """A boat, found by its berth while it is afloat."""

    boat_id: Attr[str]
    state: Attr[str]
    berth: Attr[str | None] = attr(default=None)
    length: Attr[int | None] = attr(default=None)

    class Key(PrimaryKey["Boat"], pk="BOAT#{boat_id}", sk="BOAT"):
        boat_id: str

    class ByBerth(
        Query["Boat"],
        on=Pond.afloat,
        pk="BERTH#{berth}",
        sk="{length:06}",
        sparse=True,
        members={"state": "afloat"},
    ):
        berth: str
        length: Sort[int] = sort()


fields = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["afloat", "ashore"]).map(lambda text: {"S": text}),
        "berth": st.none() | st.sampled_from(["A", "B"]).map(lambda text: {"S": text}),
        "length": st.none() | st.integers(1, 3).map(lambda number: {"N": str(number)}),
    },
)


@settings(max_examples=80, deadline=None)
@given(begun=fields, edits=st.tuples(fields, fields), waits=st.tuples(pauses, pauses))
def test_no_key_is_made_of_what_is_no_longer_so(
    begun: dict[str, Any], edits: tuple[dict[str, Any], dict[str, Any]], waits: tuple[list[int], list[int]]
) -> None:
    """Two edits of different fields of one index key never leave it stale, although they write different attributes."""
    with club(design=design_of(Pond, Boat), members=0) as stage:
        with connect(stage.engine) as db:
            db.create_tables(Pond)
        item = {"boat_id": {"S": "b"}, "state": {"S": "ashore"}, **begun}
        given_ = {name: value for name, value in item.items() if value is not None}
        made = stage.call(put_item, EditItemRequest("studio-pond", given_, entity="Boat"))
        assert made.current is not None
        before = dict(made.current)

        async def edit(change: dict[str, Any], pause: list[int]) -> WriteOutcome:
            studio = replace(stage.studio, db=AsyncConnection(Turns(stage.studio.db, iter(pause))))
            after = {name: value for name, value in {**before, **change}.items() if value is not None}
            return await put_item(studio, EditItemRequest("studio-pond", after, before))

        async def both() -> list[WriteOutcome]:
            return await asyncio.gather(*(edit(*each) for each in zip(edits, waits, strict=True)))

        outcomes = {done.outcome for done in asyncio.run(both())}

        assert outcomes <= {"written", "unchanged", "conflict"}
        with connect(stage.engine) as db:
            report = db.verify_keys(Pond)
        assert not any(report.counts[kind] for kind in ("stale", "missing", "superfluous", "misplaced"))


class Failing:
    """A connection whose calls from a number on, up to another, fail."""

    def __init__(self, db: Any, first: int, last: int) -> None:
        self.db, self.first, self.last, self.updates = db, first, last, 0

    async def close(self) -> None:
        """Leave open what it calls through: that is another's."""

    async def call(self, operation: str, request: Any) -> Any:
        if operation == "UpdateItem":
            self.updates += 1
            if self.first <= self.updates <= self.last:
                raise InternalServerFault("Lost")
        return await self.db.call(operation, request)


@pytest.mark.parametrize(("last", "told", "taken_back"), [(2, "Lost", True), (9, "Only part", False)])
def test_an_edit_that_fails_half_way_is_rolled_back_or_reported(
    stage: Stage, last: int, told: str, taken_back: bool
) -> None:
    """An error in the second of several steps takes the first one back; where that fails too, it is said."""
    key = {"id": {"S": f"i{next(ids)}"}, "n": {"N": "1"}}
    before = {**key, **{f"x{number:03}": {"N": "0"} for number in range(300)}}
    after = {**key, **{f"x{number:03}": {"N": "1"} for number in range(300)}}
    stage.put(before, "plain")
    studio = replace(stage.studio, db=AsyncConnection(Failing(stage.studio.db, 2, last)))

    with pytest.raises((InternalServerFault, RequestRefused), match=told):
        asyncio.run(put_item(studio, EditItemRequest("plain", after, before)))

    assert (stage.item(key, "plain") == before) is taken_back


@pytest.mark.parametrize("attributes", [1, 119, 120, 121, 140, 400])
def test_as_many_attributes_as_one_likes_are_added_and_removed(stage: Stage, attributes: int) -> None:
    """Neither the text nor the operators of a condition set a bound to an edit."""
    key = {"id": {"S": f"i{next(ids)}"}, "n": {"N": "1"}}
    more = {**key, **{f"x{number:03}": {"N": "1"} for number in range(attributes)}}
    stage.put(key, "plain")

    assert stage.call(put_item, EditItemRequest("plain", more, key)).outcome == "written"
    assert stage.item(key, "plain") == more
    assert stage.call(put_item, EditItemRequest("plain", key, more)).outcome == "written"
    assert stage.item(key, "plain") == key


def test_no_step_of_an_edit_is_larger_than_its_ends(stage: Stage) -> None:
    """Room is made before it is taken, so an item near 400 KB can be turned over whole."""
    key = {"id": {"S": f"i{next(ids)}"}, "n": {"N": "1"}}
    before = {**key, **{f"a{number:03}": {"S": ""} for number in range(200)}, "z": {"S": "x" * 400_000}}
    after = {**key, **{f"a{number:03}": {"S": "y" * 1_900} for number in range(200)}, "z": {"S": ""}}
    stage.put(before, "plain")

    assert stage.call(put_item, EditItemRequest("plain", after, before)).outcome == "written"
    assert stage.item(key, "plain") == after


def test_a_move_takes_nothing_along_that_was_not_seen() -> None:
    """Moving an item that changed in the meantime is refused with the change."""
    with club() as stage:
        before = stage.item(key_of(1))
        assert before is not None
        stage.put({**before, "note": {"S": "theirs"}})

        done = stage.call(
            put_item, EditItemRequest("studio-club", {**before, "member_id": {"S": "m77"}}, before)
        )

        assert done.outcome == "conflict"
        assert [each.path for each in done.theirs] == ["note"]
        assert stage.item(key_of(77)) is None


def test_a_value_that_is_kept_for_another_is_left_to_him() -> None:
    """An item whose value is kept for another by mistake can be edited and deleted; the other keeps the value."""
    with club() as stage:
        before = stage.item(key_of(1))
        assert before is not None
        guard = next(item for item in stage.items("studio-club") if "m1@club" in item["PK"]["S"])
        other = {**guard, "_owner": {"M": {"PK": {"S": "MEMBER#m2"}, "SK": {"S": "MEMBER"}}}}
        stage.put(other)

        edited = stage.call(
            put_item, EditItemRequest("studio-club", {**before, "email": {"S": "new@club.example"}}, before)
        )
        assert edited.current is not None
        gone = stage.call(delete_item, RemoveItemRequest("studio-club", edited.current))

        assert (edited.outcome, gone.outcome) == ("written", "written")
        assert stage.item({name: guard[name] for name in ("PK", "SK")}) == other


def test_an_item_that_becomes_another_kind_gives_its_values_back() -> None:
    """A changed tag makes another entity of an item; the values that it kept unique are free then."""
    with club() as stage:
        before = stage.item(key_of(1))
        assert before is not None
        after = {**before, "_entity": {"S": "Something"}}

        assert (
            stage.call(put_item, EditItemRequest("studio-club", after, before, keys="given")).outcome
            == "written"
        )
        assert not [item for item in stage.items("studio-club") if "m1@club" in item["PK"]["S"]]
