"""Declarations take effect in the table: index membership, expiry, and designs refused before creation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from tavola import (
    Attr,
    Entity,
    EpochSeconds,
    Gsi,
    Lsi,
    ManualClock,
    ModelError,
    PrimaryKey,
    Query,
    Sort,
    Table,
    attr,
    connect,
    sort,
)

MOMENT = datetime(2026, 9, 1, 12, 30, 15, 654321, tzinfo=UTC)


class Bench(Table, name="bench", ttl="ends"):
    """Where work lies."""

    unowned = Gsi(pk="g1pk", sk="g1sk")
    daily = Gsi(pk="g2pk", sk="g2sk", projection="KEYS_ONLY")
    by_end = Gsi(pk="kind", sk="ends")


class Work(Entity, table=Bench):
    """An item of work in a queue, possibly assigned."""

    work_id: Attr[str]
    kind: Attr[str] = attr(default="any")
    queue: Attr[str | None] = attr(default=None)
    owner: Attr[str | None] = attr(default=None)
    ends: Attr[datetime | None] = attr(default=None)

    class Key(PrimaryKey["Work"], pk="WORK#{work_id}", sk="WORK"):
        work_id: str

    class Unowned(
        Query["Work"],
        on=Bench.unowned,
        pk="QUEUE#{queue}",
        sk="{work_id}",
        sparse=True,
        members={"owner": None},
    ):
        queue: str
        work_id: Sort[str] = sort()

    class Fetched(Query["Work"], on=Bench.daily, pk="KIND#{kind}", sk="{work_id}", hydrate=True):
        kind: str
        work_id: Sort[str] = sort()


class Entry(Entity, table=Bench):
    """An entry of a diary, by day and moment."""

    at: Attr[datetime]
    text: Attr[str]
    ends: Attr[Annotated[datetime, EpochSeconds] | None] = attr(default=None)

    class Key(PrimaryKey["Entry"], pk="DAY#{at:day}", sk="{at}"):
        at: datetime


@pytest.fixture
def db(opened: Any) -> Any:
    """A connection with the bench."""
    found = opened()
    found.create_tables(Bench)
    return found


def unowned(db: Any) -> list[str]:
    """Return the unassigned work in the queue."""
    return [work.work_id for work in db.query(Work.Unowned(queue="q"))]


def test_a_sparse_index_may_require_a_field_to_be_absent(db: Any) -> None:
    """Sparseness depends on the key's fields;

    a field that members= requires to be None does not exclude an item.
    """
    db.put(Work(work_id="w1", queue="q"))
    db.put(Work(work_id="w2", queue="q", owner="ann"))
    db.put(Work(work_id="w3"))
    assert unowned(db) == ["w1"]

    db.update(Work.Key(work_id="w2"), Work.owner.remove())
    db.update(Work.Key(work_id="w1"), Work.owner.set("bob"))
    assert unowned(db) == ["w2"]

    db.update(Work.Key(work_id="w2"), Work.queue.remove(), Work.owner.set(None))
    db.update(Work.Key(work_id="w3"), Work.queue.set("q"), Work.owner.set(None))
    assert unowned(db) == ["w3"]
    assert db.verify_keys(Bench).sound


def test_the_time_to_live_is_what_was_put(db: Any) -> None:
    """A fractional time is truncated to the second when the entity is made, so it equals the value read."""
    work = Work(work_id="w1", ends=datetime.now(UTC) + timedelta(hours=1))

    assert work.ends is not None
    assert work.ends.microsecond == 0
    db.put(work)
    assert db.get(Work.Key(work_id="w1")) == work
    changed = db.update(work, Work.ends.set(MOMENT.replace(year=2096)))
    assert changed.ends == MOMENT.replace(year=2096, microsecond=0)


def test_a_time_to_live_before_1970_is_cut_downwards_too() -> None:
    """Cutting and storing agree on either side of the epoch."""
    early = datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=UTC)
    field = Work.__shape__.fields["ends"]

    assert field.encode(early) == {"N": "-2"}
    assert Work(work_id="w", ends=early).ends == early.replace(microsecond=0)


def test_a_key_may_contain_a_part_of_a_field_and_the_whole(db: Any) -> None:
    """A day in the partition key and the time in the sort key make one key for each time."""
    db.put(Entry(at=MOMENT, text="one"))
    db.put(Entry(at=MOMENT + timedelta(microseconds=1), text="two"))

    found = [db.get(Entry.Key(at=MOMENT + timedelta(microseconds=n))).text for n in range(2)]
    assert found == ["one", "two"]


def test_whole_items_may_be_fetched_by_an_index_without_the_time_to_live() -> None:
    """hydrate=True reads the items, so expired ones are left out."""
    clock = ManualClock(1_790_000_000.0)
    with connect("memory:", clock=clock, ttl_interval_s=10**9) as db:
        db.create_tables(Bench)
        soon = datetime.fromtimestamp(clock.now() + 10, UTC)
        db.put(Work(work_id="w1", ends=soon))
        db.put(Work(work_id="w2"))
        clock.advance(3_600)

        assert [work.work_id for work in db.query(Work.Fetched(kind="any"))] == ["w2"]


class Ahead(Table, name="ahead"):
    """A table with indexes that no pattern is on yet."""

    by_total = Lsi(sk="total")
    by_word = Gsi(pk="word", sk="nobody")


class Bill(Entity, table=Ahead):
    """A bill with a total, which is a number."""

    bill_id: Attr[str]
    total: Attr[int]
    word: Attr[bytes]

    class Key(PrimaryKey["Bill"], pk="BILL#{bill_id}", sk="BILL"):
        bill_id: str


def test_an_index_of_no_pattern_has_the_type_of_the_field(opened: Any) -> None:
    """A key attribute that only a field writes is defined as the field is stored, else every put would be refused."""
    db = opened()
    db.create_tables(Ahead)
    db.put(Bill(bill_id="b1", total=7, word=b"x"))

    name = next(name for name in db.call("ListTables")["TableNames"] if name.endswith("ahead"))
    definitions = db.call("DescribeTable", {"TableName": name})["Table"]["AttributeDefinitions"]
    assert {each["AttributeName"]: each["AttributeType"] for each in definitions} == {
        "pk": "S", "sk": "S", "total": "N", "word": "B", "nobody": "S",
    }  # fmt: skip


def test_a_query_of_an_undeclared_view_is_refused() -> None:
    """It is refused before the table is created."""

    class Lone(Table, name="lone"):
        by_size = Gsi(pk="g1pk", sk="g1sk", projection="KEYS_ONLY")

    class Box(Entity, table=Lone):
        box_id: Attr[str]
        size: Attr[int]

        class Key(PrimaryKey["Box"], pk="BOX#{box_id}", sk="BOX"):
            box_id: str

        class BySize(Query["BoxNowhere"], on=Lone.by_size, pk="SIZE#{size}", sk="{box_id}"):  # type: ignore[name-defined]  # so it is
            size: int

    with connect("memory:") as db:
        with pytest.raises(
            ModelError, match="it returns 'BoxNowhere', but no entity with this name is in scope; declare or"
        ):
            db.create_tables(Lone)
        assert db.call("ListTables")["TableNames"] == []


def test_an_entity_with_an_unresolved_type_is_refused() -> None:
    """The unresolved type is reported when the table is created, and the entity is not left out."""

    class Half(Table, name="half"):
        """Has an entity that is whole, and one that is not."""

    class Whole(Entity, table=Half):
        whole_id: Attr[str]

        class Key(PrimaryKey["Whole"], pk="WHOLE#{whole_id}", sk="WHOLE"):
            whole_id: str

    class Broken(Entity, table=Half):
        broken_id: Attr[Missing]  # type: ignore[name-defined]  # noqa: F821 - so it is

        class Key(PrimaryKey["Broken"], pk="BROKEN#{broken_id}", sk="BROKEN"):
            broken_id: str

    with connect("memory:") as db:
        with pytest.raises(
            ModelError, match="its type refers to Missing, which was not found; check the spelling, and that"
        ):
            db.create_tables(Half)
        with pytest.raises(
            ModelError, match="its type refers to Missing, which was not found; check the spelling, and that"
        ):
            db.get(Broken.Key(broken_id="1"))


def test_a_comparison_with_an_empty_set_tests_absence() -> None:
    """An empty set is stored as an absent attribute, so equality with one tests for absence."""

    class Tags(Table, name="tags"):
        """Has labelled things."""

    class Thing(Entity, table=Tags):
        thing_id: Attr[str]
        labels: Attr[set[str]]

        class Key(PrimaryKey["Thing"], pk="THING#{thing_id}", sk="THING"):
            thing_id: str

    with connect("memory:") as db:
        db.create_tables(Tags)
        db.put(Thing(thing_id="t1", labels=set()))
        db.put(Thing(thing_id="t2", labels={"x"}))

        found = {
            word: [thing.thing_id for thing in db.scan(Thing, where=condition)]
            for word, condition in (("eq", Thing.labels == set()), ("ne", Thing.labels != set()))
        }
    assert found == {"eq": ["t1"], "ne": ["t2"]}
