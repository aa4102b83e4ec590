"""Stale index keys: made by writing past the library, found, and put right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola import (
    Attr,
    CheckpointRefused,
    Connection,
    Entity,
    Gsi,
    KeyReport,
    ModelError,
    PrimaryKey,
    Progress,
    Query,
    Shards,
    Sort,
    Table,
    attr,
    connect,
    sort,
)

State = Literal["new", "open", "done"]


class Yard(Table, ttl="ends"):
    """A table with keys of every kind that can be stale."""

    by_state = Gsi(pk="g1pk", sk="g1sk")
    by_owner = Gsi(pk="g2pk", sk="g2sk")
    pending = Gsi(pk="g3pk", sk="g3sk")
    by_kind = Gsi(pk="g4pk")


class Job(Entity, table=Yard):
    """A job in four indexes: sharded by hash, sparse, by membership, sharded at random."""

    job_id: Attr[str]
    state: Attr[State] = attr(default="new")
    owner: Attr[str | None] = attr(default=None)
    load: Attr[int] = attr(default=0)
    ends: Attr[int | None] = attr(default=None)

    class Key(PrimaryKey["Job"], pk="JOB#{job_id}", sk="JOB"):
        job_id: str

    class ByState(Query["Job"], on=Yard.by_state, pk="STATE#{state}", sk="{load:04}", shards=4):
        state: State
        load: Sort[int] = sort()

    class ByOwner(Query["Job"], on=Yard.by_owner, pk="OWNER#{owner}", sk="{state}", sparse=True):
        owner: str
        state: Sort[State] = sort()

    class Pending(
        Query["Job"],
        on=Yard.pending,
        pk="PENDING",
        sk="{load:04}#{job_id}",
        members={"state": ("new", "open")},
    ):
        load: Sort[int] = sort()
        job_id: Sort[str] = sort()

    class ByKind(Query["Job"], on=Yard.by_kind, pk="KIND#{state}", shards=Shards(3, "random", reading=5)):
        state: State


class Note(Entity, table=Yard):
    """An entity of the table that is in no index."""

    note_id: Attr[str]
    text: Attr[str]

    class Key(PrimaryKey["Note"], pk="NOTE#{note_id}", sk="NOTE"):
        note_id: str


KEYS = ("g1pk", "g1sk", "g2pk", "g2sk", "g3pk", "g3sk", "g4pk")


def job(number: int, **more: Any) -> Job:
    """Return a job."""
    return Job(job_id=f"j{number}", load=number, **more)


@pytest.fixture
def yard(opened: Callable[..., Connection]) -> Any:
    """A connection with the table and six jobs, all right."""
    db = opened()
    db.create_tables(Yard)
    db.put_many(
        [*(job(n, owner="ann" if n % 2 else None) for n in range(6)), Note(note_id="n1", text="hello")]
    )
    return db


def name_of(db: Any) -> str:
    """Return what the table is called here."""
    names: list[str] = db.call("ListTables")["TableNames"]
    return next(name for name in names if name.endswith("Yard"))


def raw(db: Any, number: int, expression: str, **values: Any) -> None:
    """Change a job past the library."""
    request: dict[str, Any] = {
        "TableName": name_of(db), "Key": {"pk": {"S": f"JOB#j{number}"}, "sk": {"S": "JOB"}},
        "UpdateExpression": expression,
    }  # fmt: skip
    used = {f"#{name}": name for name in ("state", "owner", "load") if f"#{name}" in expression}
    if used:
        request["ExpressionAttributeNames"] = used
    if values:
        request["ExpressionAttributeValues"] = {f":{n}": v for n, v in values.items()}
    db.call("UpdateItem", request)


def summarize(report: KeyReport) -> set[tuple[str, str | None, str]]:
    """Return the faults of a report as short tuples."""
    return {(fault.key["pk"]["S"], fault.index, fault.kind) for fault in report.problems}


def test_the_client_writes_correct_keys(yard: Any) -> None:
    """A table written only by the client has no fault, after any updates."""
    yard.update(Job.Key(job_id="j1"), Job.state.set("done"))
    yard.update(Job.Key(job_id="j2"), Job.load.add(7), Job.owner.set("bob"))
    yard.update(Job.Key(job_id="j3"), Job.owner.remove())
    yard.update(Job.Key(job_id="j9"), Job.load.set(3), create=True)

    report = yard.verify_keys(Yard)

    assert report.sound, report.problems
    assert (report.items, dict(report.by_entity)) == (8, {"Job": 7, "Note": 1})


def test_every_planted_fault_is_found_and_no_other(yard: Any) -> None:
    """Stale, missing and superfluous keys are reported with the item, the index, the stored and the correct key."""
    raw(yard, 0, "SET g1sk = :v", v={"S": "0009"})
    raw(yard, 1, "REMOVE g2pk, g2sk")
    raw(yard, 2, "SET g2pk = :v, g2sk = :w", v={"S": "OWNER#eve"}, w={"S": "new"})
    raw(yard, 3, "SET #state = :v", v={"S": "done"})
    raw(yard, 4, "SET g4pk = :v", v={"S": "KIND#new#0009"})

    report = yard.verify_keys(Yard)

    assert summarize(report) == {
        ("JOB#j0", "by_state", "stale"),
        ("JOB#j1", "by_owner", "missing"),
        ("JOB#j2", "by_owner", "superfluous"),
        ("JOB#j3", "by_state", "stale"),
        ("JOB#j3", "by_owner", "stale"),
        ("JOB#j3", "pending", "superfluous"),
        ("JOB#j3", "by_kind", "stale"),
        ("JOB#j4", "by_kind", "stale"),
    }
    assert report.counts["stale"] == 5
    fault = next(each for each in report.problems if each.key["pk"]["S"] == "JOB#j0")
    assert fault.stored["g1sk"] == {"S": "0009"}
    assert fault.right["g1sk"] == {"S": "0000"}
    assert "JOB#j0" in str(fault)
    assert report.repaired == 0


def test_a_repair_leaves_no_fault(yard: Any) -> None:
    """After a repair the check finds no fault, and queries find every item."""
    for number in range(6):
        raw(yard, number, "SET #state = :v REMOVE g2sk, g4pk", v={"S": "open"})

    report = yard.verify_keys(Yard, repair=True, segments=3)

    assert report.repaired == 6
    assert yard.verify_keys(Yard).sound
    assert [each.job_id for each in yard.query(Job.ByState(state="open"))] == [f"j{n}" for n in range(6)]
    assert {each.job_id for each in yard.query(Job.ByOwner(owner="ann"))} == {"j1", "j3", "j5"}
    assert len(list(yard.query(Job.ByKind(state="open")))) == 6


def test_any_shard_that_is_read_is_right(yard: Any) -> None:
    """A random shard is correct in any shard that readers use: here five, though three are written."""
    for shard in range(5):
        raw(yard, shard, "SET g4pk = :v", v={"S": f"KIND#new#{shard:04}"})
    assert yard.verify_keys(Yard).sound

    raw(yard, 5, "SET g4pk = :v", v={"S": "KIND#new#0005"})

    assert summarize(yard.verify_keys(Yard)) == {("JOB#j5", "by_kind", "stale")}


def test_attributes_of_an_index_that_an_entity_is_not_in_are_superfluous(yard: Any) -> None:
    """A note that a script added to an index is found and removed from it."""
    key = {"pk": {"S": "NOTE#n1"}, "sk": {"S": "NOTE"}}
    yard.call(
        "UpdateItem",
        {
            "TableName": name_of(yard), "Key": key, "UpdateExpression": "SET g2pk = :v, g2sk = :v",
            "ExpressionAttributeValues": {":v": {"S": "x"}},
        },
    )  # fmt: skip

    assert summarize(yard.verify_keys(Yard, repair=True)) == {("NOTE#n1", "by_owner", "superfluous")}
    assert yard.verify_keys(Yard).sound
    assert yard.get(Note.Key(note_id="n1")) == Note(note_id="n1", text="hello")


def test_unknown_and_unreadable_items_are_reported(yard: Any) -> None:
    """Items outside the design and unreadable items are reported and not changed."""
    table = name_of(yard)
    yard.call("PutItem", {"TableName": table, "Item": {"pk": {"S": "X"}, "sk": {"S": "Y"}}})
    raw(yard, 1, "SET #state = :v", v={"S": "lost"})

    report = yard.verify_keys(Yard, repair=True)

    assert report.unknown == ({"pk": {"S": "X"}, "sk": {"S": "Y"}},)
    assert [(each.key["pk"]["S"], each.entity) for each in report.unreadable] == [("JOB#j1", "Job")]
    assert "state" in report.unreadable[0].reason
    assert not report.sound
    assert report.repaired == 0


def test_a_table_key_that_contradicts_its_fields_is_reported(yard: Any) -> None:
    """An item whose key contradicts its fields is misplaced, which a write in place cannot repair."""
    raw(yard, 2, "SET job_id = :v", v={"S": "j77"})

    report = yard.verify_keys(Yard, repair=True)

    assert ("JOB#j2", None, "misplaced") in summarize(report)


def test_expired_items_are_skipped(yard: Any, clock: Any) -> None:
    """Expired items are neither checked nor written."""
    yard.put(job(8, ends=int(clock.now()) + 10))
    raw(yard, 8, "REMOVE g1pk")
    clock.advance(60)

    report = yard.verify_keys(Yard)

    assert report.sound
    assert report.items == 7 + report.counts["expired"]  # an engine on the same clock has deleted it by then


def test_progress_and_segments(yard: Any) -> None:
    """A check in segments reads every item once and reports its progress."""
    heard: list[Progress] = []

    report = yard.verify_keys(Yard, segments=4, progress=heard.append)

    assert report.items == 7
    assert heard[-1].done == heard[-1].total == 7


@pytest.mark.parametrize("setting", [{"segments": 0}, {"segments": 1000}, {"units_per_second": 0}])
def test_a_pace_that_is_none_is_refused(setting: dict[str, Any]) -> None:
    """No segment, too many, and no speed at all are refused before anything is read."""
    with connect("memory:") as db, pytest.raises(ModelError):
        db.verify_keys(Yard, **setting)


def test_a_repair_never_undoes_a_change_made_meanwhile() -> None:
    """An item that changes between the scan and its repair is checked again: the newer write wins."""
    with connect("memory:") as db:
        db.create_tables(Yard)
        db.put(job(1, owner="ann"))
        raw(db, 1, "SET g1sk = :v", v={"S": "0099"})
        call = db.backend.call
        seen: list[str] = []

        def interfering(operation: str, request: Any) -> Any:
            if operation == "UpdateItem" and not seen:
                seen.append(operation)
                raw_state(call, "done")
            return call(operation, request)

        db.backend.call = interfering  # type: ignore[method-assign]

        db.verify_keys(Yard, repair=True)

        assert db.verify_keys(Yard).sound
        found = db.get(Job.Key(job_id="j1"))
        assert found is not None
        assert found.state == "done"


def raw_state(call: Callable[..., Any], state: str) -> None:
    """Set the state of the first job, past the library."""
    call(
        "UpdateItem",
        {
            "TableName": "Yard", "Key": {"pk": {"S": "JOB#j1"}, "sk": {"S": "JOB"}},
            "UpdateExpression": "SET #s = :s", "ExpressionAttributeNames": {"#s": "state"},
            "ExpressionAttributeValues": {":s": {"S": state}},
        },
    )  # fmt: skip


_RAW = st.one_of(
    st.tuples(st.just("SET #state = :v"), st.sampled_from(["new", "open", "done"])),
    st.tuples(st.just("SET #owner = :v"), st.sampled_from(["ann", "b#b", "é"])),
    st.tuples(st.just("REMOVE #owner"), st.none()),
    st.tuples(
        st.sampled_from(KEYS).map("SET {} = :v".format), st.sampled_from(["x", "STATE#new#0001", "0003"])
    ),
    st.tuples(st.sampled_from(KEYS).map("REMOVE {}".format), st.none()),
    st.tuples(st.sampled_from(["REMOVE #state", "REMOVE #load"]), st.none()),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), _RAW), max_size=15))
def test_raw_writes_and_a_repair_come_to_a_rebuild(writes: list[tuple[int, tuple[str, str | None]]]) -> None:
    """After any writes past the library, a repaired table is one whose entities were all put again."""
    with connect("memory:") as db:
        db.create_tables(Yard)
        db.put_many(job(n, owner="ann" if n % 2 else None) for n in range(5))
        for number, (expression, value) in writes:
            raw(db, number, expression, **({} if value is None else {"v": {"S": value}}))

        faulty = {fault.key["pk"]["S"] for fault in db.verify_keys(Yard).problems}
        report = db.verify_keys(Yard, repair=True)

        assert report.repaired == len(faulty)
        assert db.verify_keys(Yard).sound
        repaired = keys_of(db)
        for entity in list(db.scan(Job)):
            db.put(entity)
        assert repaired == keys_of(db)


def keys_of(db: Connection) -> dict[str, dict[str, Any]]:
    """Return the index keys of every item, without the shards that are drawn."""
    found = {}
    for item in db.call("Scan", {"TableName": "Yard"})["Items"]:
        keys = {name: item[name]["S"] for name in KEYS if name in item}
        found[item["pk"]["S"]] = keys | {"g4pk": keys["g4pk"].rpartition("#")[0]}
    return found


class StoppingCheckpoint:
    """A checkpoint in memory that interrupts the work after `stop_after` saves."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.held: Any = None
        self.stop_after = stop_after

    def load(self) -> Any:
        """Return the saved checkpoint."""
        return self.held

    def save(self, checkpoint: Any) -> None:
        """Save, and stop when it is time."""
        self.held = checkpoint
        if self.stop_after is not None:
            self.stop_after -= 1
            if self.stop_after == 0:
                raise KeyboardInterrupt

    def clear(self) -> None:
        """Forget."""
        self.held = None


@pytest.fixture
def many() -> Iterator[Connection]:
    """A table of several pages, every tenth item stale."""
    with connect("memory:") as db:
        db.create_tables(Yard)
        db.put_many(job(n) for n in range(900))
        for number in range(0, 900, 10):
            raw(db, number, "REMOVE g1sk")
        yield db


def test_a_stopped_repair_goes_on_where_it_was(many: Connection) -> None:
    """With a checkpoint, work that was killed is taken up, counts and all, and ends as if it had not been."""
    checkpoint = StoppingCheckpoint(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        many.verify_keys(Yard, repair=True, checkpoint=checkpoint)
    checkpoint.stop_after = None

    report = many.verify_keys(Yard, repair=True, checkpoint=checkpoint)

    assert report.resumed
    assert (report.items, report.repaired, report.counts["stale"]) == (900, 90, 90)
    assert checkpoint.held is None, "done work leaves no checkpoint"
    assert many.verify_keys(Yard).sound


def test_a_checkpoint_of_other_work_is_refused(many: Connection) -> None:
    """A checkpoint of a verification does not serve a repair."""
    checkpoint = StoppingCheckpoint(stop_after=1)
    with pytest.raises(KeyboardInterrupt):
        many.verify_keys(Yard, checkpoint=checkpoint)
    checkpoint.stop_after = None

    with pytest.raises(CheckpointRefused, match="verification of Yard"):
        many.verify_keys(Yard, repair=True, checkpoint=checkpoint)
