"""Shards: how a hot partition is spread and read back whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from tavola import (
    AccessPattern,
    Attr,
    Connection,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    QueryRefused,
    Shards,
    Sort,
    Table,
    attr,
    connect,
    sort,
)

AT = datetime(2026, 9, 1, tzinfo=UTC)


class Level(Enum):
    """How bad it is; in the order of the declaration."""

    LOW = "low"
    MIDDLE = "middle"
    HIGH = "high"


class Metrics(Table):
    """Readings that come fast."""

    by_level = Gsi(pk="g1pk", sk="g1sk")
    by_day = Gsi(pk="g2pk", sk="g2sk")
    at_random = Gsi(pk="g3pk", sk="g3sk")


class Reading(Entity, table=Metrics):
    """One reading; the table's own partition is sharded too."""

    sensor: Attr[str]
    at: Attr[datetime]
    level: Attr[Level]
    shard: Attr[str] = attr(default="a field may be called so")

    class Key(PrimaryKey["Reading"], pk="SENSOR#{sensor}", sk="{at}", shards=4):
        sensor: str
        at: datetime

    class Of(Query["Reading"], on=Key):
        sensor: str
        at: Sort[datetime] = sort()

    class ByLevel(
        Query["Reading"],
        on=Metrics.by_level,
        pk="LEVEL#{level:rank}",
        sk="{at}",
        shards=Shards(3, of=("sensor",)),
    ):
        level: Level
        at: Sort[datetime] = sort()

    class ByDay(
        Query["Reading"], on=Metrics.by_day, pk="DAY", sk="{at}#{sensor}", shards=Shards.by_time("at", "day")
    ):
        at: Sort[datetime] = sort()
        sensor: Sort[str] = sort()

    class Random(
        Query["Reading"], on=Metrics.at_random, pk="ALL", sk="{at}#{sensor}", shards=Shards(5, "random")
    ):
        at: Sort[datetime] = sort()
        sensor: Sort[str] = sort()


@pytest.fixture
def metrics(opened: Callable[..., Connection]) -> Connection:
    """Forty readings of two sensors, one every three hours."""
    db = opened()
    db.create_tables(Metrics)
    for n in range(40):
        level = list(Level)[n % 3]
        db.put(Reading(sensor=f"s{n % 2}", at=AT + timedelta(hours=3 * n), level=level))
    return db


def partitions(db: Connection, attribute: str) -> set[str]:
    """Return the partition keys of the items in an index."""
    name = next(n for n in db.call("ListTables")["TableNames"] if n.endswith("Metrics"))
    return {item[attribute]["S"] for item in db.call("Scan", {"TableName": name})["Items"]}


def test_a_sharded_table_is_read_by_key_and_whole(metrics: Connection) -> None:
    """A key determines its shard, in any time zone; a query merges all shards in order."""
    abroad = (AT + timedelta(hours=6)).astimezone(timezone(timedelta(hours=9)))

    assert metrics.get(Reading.Key(sensor="s0", at=abroad)) is not None
    found = [r.at for r in metrics.query(Reading.Of(sensor="s0"))]
    assert found == [AT + timedelta(hours=6 * n) for n in range(20)]
    assert len(partitions(metrics, "pk")) > 2


def test_sharding_by_a_field_groups_its_items(metrics: Connection) -> None:
    """Sharding by a field puts the items of one value in one shard; partitions sort by rank."""
    found = list(metrics.query(Reading.ByLevel(level=Level.HIGH), newest_first=True))

    assert [r.level for r in found] == [Level.HIGH] * 13
    assert [r.at for r in found] == sorted((r.at for r in found), reverse=True)
    assert partitions(metrics, "g1pk") <= {f"LEVEL#{r}#{s:04}" for r in range(3) for s in range(3)}


def test_shards_of_time_read_only_the_days_of_the_range(metrics: Connection) -> None:
    """Day shards are read one after another, only those in the range;

    without a range the query is refused.
    """
    selection = Reading.ByDay().at.between(AT + timedelta(hours=20), AT + timedelta(hours=50))

    page = metrics.query(selection, newest_first=True)
    assert [r.at for r in page] == [AT + timedelta(hours=3 * n) for n in range(16, 6, -1)]
    assert metrics.count(selection) == 10
    with pytest.raises(QueryRefused, match="between"):
        metrics.query(Reading.ByDay())


def test_random_shards_stay_right_through_updates(metrics: Connection) -> None:
    """A random shard is chosen again when its key is rewritten, and the item is found once."""
    metrics.update(Reading.Key(sensor="s0", at=AT), Reading.level.set(Level.HIGH))

    assert len(list(metrics.query(Reading.Random()))) == 40
    assert len(partitions(metrics, "g3pk")) == 5


def gauges(shards: Shards) -> Any:
    """Return a design whose index is sharded by a field that queries may include."""

    class Plant(Table, name="plant"):
        """A table with two indexes."""

        by_state = Gsi(pk="g1pk", sk="g1sk")
        by_day = Gsi(pk="g2pk", sk="g2sk")

    class Gauge(Entity, table=Plant):
        """A gauge at a site."""

        gauge_id: Attr[int]
        site: Attr[int]
        state: Attr[str] = attr(default="on")
        at: Attr[datetime] = attr(default=AT)

        class Key(PrimaryKey["Gauge"], pk="GAUGE#{gauge_id}", sk="GAUGE"):
            gauge_id: int

        class ByState(
            Query["Gauge"],
            on=Plant.by_state,
            pk="STATE#{state}",
            sk="{site}#{gauge_id}",
            shards=shards,
            access=AccessPattern("gauges", items=60, item_bytes=4096),
        ):
            state: str
            site: Sort[int] = sort()
            gauge_id: Sort[int] = sort()

        class ByDay(
            Query["Gauge"],
            on=Plant.by_day,
            pk="STATE#{state}",
            sk="{at:day}#{gauge_id}",
            shards=Shards(4, of=("at",)),
        ):
            state: str
            at: Sort[datetime] = sort()
            gauge_id: Sort[int] = sort()

    return SimpleNamespace(Plant=Plant, Gauge=Gauge)


def count_requests(db: Connection, selection: Any) -> tuple[int, int]:
    """Return the number of items of a query, and its number of requests."""
    with db.measure() as spent:
        found = len(list(db.query(selection)))
    return found, spent.calls


def test_a_query_that_determines_the_shard_reads_one() -> None:
    """If a query has all fields that determine the shard, only that shard is read."""
    plant = gauges(Shards(6, of=("site",)))
    with connect("memory:") as db:
        db.create_tables(plant.Plant)
        db.put_many(plant.Gauge(gauge_id=n, site=n % 5, at=AT + timedelta(hours=n % 24)) for n in range(60))

        assert [count_requests(db, plant.Gauge.ByState(state="on").site.eq(n)) for n in range(5)] == [
            (12, 1)
        ] * 5
        assert count_requests(db, plant.Gauge.ByState(state="on")) == (60, 6)
        assert count_requests(db, plant.Gauge.ByState(state="on").site.gte(0)) == (60, 6)
        assert db.count(plant.Gauge.ByState(state="on").site.eq(3)) == 12
        assert count_requests(db, plant.Gauge.ByDay(state="on").at.eq(AT)) == (3, 4), (
            "the key holds the day alone"
        )
        one = db.explain.query(plant.Gauge.ByState(state="on").site.eq(3)).estimated
        every = db.explain.query(plant.Gauge.ByState(state="on")).estimated
        assert one == every, "what the pattern says of its items holds of all that are found"


def test_all_shards_are_read_while_their_number_changes() -> None:
    """Items may be in the shards of the older number until they are rewritten."""
    was, during, final = (
        gauges(Shards(count, of=("site",), reading=reading))
        for count, reading in ((3, None), (6, 6), (6, None))
    )
    with connect("memory:") as db:
        db.create_tables(was.Plant)
        db.put_many(was.Gauge(gauge_id=n, site=n % 5) for n in range(60))

        assert [count_requests(db, during.Gauge.ByState(state="on").site.eq(n)) for n in range(5)] == [
            (12, 6)
        ] * 5
        db.backfill(during.Plant)
        assert [count_requests(db, final.Gauge.ByState(state="on").site.eq(n)) for n in range(5)] == [
            (12, 1)
        ] * 5


def test_shards_of_time_are_explained() -> None:
    """A pattern's declared items are spread over the days of the query; the estimate covers the first."""

    class Diary(Table):
        """A table by days."""

        by_day = Gsi(pk="g1pk", sk="g1sk")

    class Entry(Entity, table=Diary):
        """An entry."""

        entry_id: Attr[str]
        at: Attr[datetime]

        class Key(PrimaryKey["Entry"], pk="ENTRY#{entry_id}", sk="ENTRY"):
            entry_id: str

        class ByDay(
            Query["Entry"],
            on=Diary.by_day,
            pk="DAY",
            sk="{at}",
            shards=Shards.by_time("at", "day"),
            access=AccessPattern("entries", items=10, item_bytes=4096),
        ):
            at: Sort[datetime] = sort()

    with connect("memory:") as db:
        db.create_tables(Diary)
        explanation = db.explain.query(Entry.ByDay().at.between(AT, AT + timedelta(days=1)))

    assert explanation.estimated is not None
    assert explanation.estimated.reads == 2.5
