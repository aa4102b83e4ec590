"""Metrics: points of a busy metric spread over shards, and read back as one series.

One partition takes 1,000 writes a second. Here the same points are in four indexes: spread by a hash of their key, at random, by the day they are of, and
by day and at random at once, as the document has it. Whatever the way, the answer is that of one partition: in order, once each, with one
cursor over all shards. What differs is who is asked: all shards, or only the days of the range.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Selection,
    Shards,
    Sort,
    Table,
    WritePattern,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked, measured, refused_later
from tavola.patterns import ShardBalance, shards_for

METRIC = "api.latency"
START = datetime(2026, 1, 15, tzinfo=UTC)
POINTS = 120  # one every half hour: two and a half days


class Metrics(Table, name="gallery-metrics", pk="PK", sk="SK"):
    """Points of all metrics."""

    hashed = Gsi(pk="GSI1PK", sk="GSI1SK")
    drawn = Gsi(pk="GSI2PK", sk="GSI2SK")
    daily = Gsi(pk="GSI3PK", sk="GSI3SK")
    daily_drawn = Gsi(pk="GSI4PK", sk="GSI4SK")


class Point(
    Entity,
    table=Metrics,
    writes=(WritePattern("A point", "put", per_second=3_000, item_bytes=350),),
):
    """What a metric was at a moment."""

    point_id: Attr[str]
    metric: Attr[str]
    day: Attr[date]
    at: Attr[datetime]
    value: Attr[Decimal]

    class Key(PrimaryKey["Point"], pk="POINT#{point_id}", sk="POINT"):
        point_id: str

    class ByHash(
        Query["Point"],
        on=Metrics.hashed,
        pk="METRIC#{metric}",
        sk="TS#{at}#{point_id}",
        shards=8,
        access=AccessPattern("A metric's points, spread by hash", per_second=1, items=100, item_bytes=350),
    ):
        metric: str
        at: Sort[datetime] = sort()

    class ByChance(
        Query["Point"],
        on=Metrics.drawn,
        pk="METRIC#{metric}",
        sk="TS#{at}#{point_id}",
        shards=Shards(8, by="random"),
        access=AccessPattern("A metric's points, spread at random", per_second=1, items=100, item_bytes=350),
    ):
        metric: str
        at: Sort[datetime] = sort()

    class ByTime(
        Query["Point"],
        on=Metrics.daily,
        pk="METRIC#{metric}",
        sk="TS#{at}#{point_id}",
        shards=Shards.by_time("at", "day"),
        access=AccessPattern("A metric's points of some days", per_second=1, items=100, item_bytes=350),
    ):
        metric: str
        at: Sort[datetime] = sort()

    class OfDay(
        Query["Point"],
        on=Metrics.daily_drawn,
        pk="METRIC#{metric}#{day}",
        sk="TS#{at}#{point_id}",
        shards=Shards(4, by="random"),
        access=AccessPattern("A metric's points of one day", per_second=1, items=48, item_bytes=350),
    ):
        metric: str
        day: date
        at: Sort[datetime] = sort()


def points() -> tuple[Point, ...]:
    """Return a point every half hour for two and a half days."""
    moments = [START + timedelta(minutes=30 * number) for number in range(POINTS)]
    return tuple(
        Point(
            point_id=f"p{number:04}",
            metric=METRIC,
            day=at.date(),
            at=at,
            value=Decimal(120 + (number * 37) % 80) / 10,
        )
        for number, at in enumerate(moments)
    )


async def scatter_gather(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask the same hours of each index: the same points, in the same order."""
    start, end = START + timedelta(hours=10), START + timedelta(hours=14)
    return (
        await asked(db, "By hash: eight shards, merged", Point.ByHash(metric=METRIC).at.between(start, end)),
        await asked(
            db, "At random: eight shards, merged", Point.ByChance(metric=METRIC).at.between(start, end)
        ),
        await asked(
            db, "By time: the day of the range alone", Point.ByTime(metric=METRIC).at.between(start, end)
        ),
        await asked(
            db,
            "By day, and at random within it: four shards, merged",
            Point.OfDay(metric=METRIC, day=START.date()).at.between(start, end),
        ),
    )


async def paging(db: AsyncConnection) -> tuple[Told, ...]:
    """Read pages of ten, newest first, with one cursor over all shards."""
    return (
        await _pages(db, "By hash", Point.ByHash(metric=METRIC)),
        await _pages(db, "At random", Point.ByChance(metric=METRIC)),
        await _pages(
            db,
            "By time, three days",
            Point.ByTime(metric=METRIC).at.between(START, START + timedelta(days=3)),
        ),
    )


async def _pages(db: AsyncConnection, what: str, question: Selection[Point]) -> Told:
    async def read() -> list[str]:
        found: list[str] = []
        pages, cursor = 0, None
        while pages == 0 or cursor is not None:
            page = await db.query(question, limit=10, newest_first=True, cursor=cursor)
            found += [point.point_id for point in page.items]
            pages, cursor = pages + 1, page.cursor
        return found

    return await measured(db, f"{what}: pages of ten, newest first", read())


async def balance(db: AsyncConnection) -> tuple[Told, ...]:
    """Look how evenly the shards are filled, how many there should be, and what shards of time are not asked."""
    look = ShardBalance(db)
    advice = shards_for(writes_per_second=3_000, item_bytes=350)
    endless = Point.ByTime(metric=METRIC).at.gte(START)
    return (
        await measured(db, "Points in each shard, by hash", _counts(look, Point.ByHash(metric=METRIC))),
        await measured(db, "Points in each shard, at random", _counts(look, Point.ByChance(metric=METRIC))),
        Told("Shards for 3,000 points a second", (advice.count, advice.why)),
        await refused_later("Shards of time without an end", db.query(endless)),
    )


async def _counts(look: ShardBalance[AsyncConnection], question: Selection[Point]) -> tuple[int, ...]:
    return (await look.of(question)).counts


SAMPLE = Sample(
    name="metrics",
    title="Metrics",
    shows="Write sharding by hash, at random and by time, and the read that merges in order and pages.",
    source="Common patterns: write sharding",
    tables=(Metrics,),
    entities=points,
    demonstrations=(
        Demonstration("scatter-gather", "One range, four ways", scatter_gather),
        Demonstration("paging", "Pages over all shards", paging),
        Demonstration("balance", "How even, and how many", balance),
    ),
)
