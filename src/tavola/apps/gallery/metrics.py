"""Metrics: data points of a busy metric, sharded for writing and read back as one series.

A partition accepts 1,000 writes per second. The same points are in four indexes: sharded by a hash of their key, randomly, by day, and
by day and randomly. Each returns what a single partition would: ordered, without duplicates, with one cursor over all shards. They
differ in the shards that a query reads: all of them, or only the days of the range.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import tavola as tv
from tavola.apps.gallery.demonstrations import (
    Sample,
    StepResult,
    expect_async_refusal,
    run_measured,
    run_query,
)
from tavola.patterns import ShardBalance, shards_for

METRIC = "api.latency"
START = datetime(2026, 1, 15, tzinfo=UTC)
POINTS = 120  # one every half hour: two and a half days


class MetricPoints(tv.Table, name="gallery-metrics", pk="PK", sk="SK"):
    """Data points of all metrics."""

    hashed = tv.Gsi(pk="GSI1PK", sk="GSI1SK")
    drawn = tv.Gsi(pk="GSI2PK", sk="GSI2SK")
    daily = tv.Gsi(pk="GSI3PK", sk="GSI3SK")
    daily_drawn = tv.Gsi(pk="GSI4PK", sk="GSI4SK")


class Point(
    tv.Entity,
    table=MetricPoints,
    writes=(tv.WritePattern("A point", "put", per_second=3_000, item_bytes=350),),
):
    """The value of a metric at a time."""

    point_id: tv.Attr[str]
    metric: tv.Attr[str]
    day: tv.Attr[date]
    at: tv.Attr[datetime]
    value: tv.Attr[Decimal]

    class Key(tv.PrimaryKey["Point"], pk="POINT#{point_id}", sk="POINT"):
        point_id: str

    class ByHash(
        tv.Query["Point"],
        on=MetricPoints.hashed,
        pk="METRIC#{metric}",
        sk="TS#{at}#{point_id}",
        shards=8,
        access=tv.AccessPattern(
            "A metric's points, sharded by hash", per_second=1, items=100, item_bytes=350
        ),
    ):
        metric: str
        at: tv.Sort[datetime] = tv.sort()

    class ByChance(
        tv.Query["Point"],
        on=MetricPoints.drawn,
        pk="METRIC#{metric}",
        sk="TS#{at}#{point_id}",
        shards=tv.Shards(8, by="random"),
        access=tv.AccessPattern(
            "A metric's points, sharded randomly", per_second=1, items=100, item_bytes=350
        ),
    ):
        metric: str
        at: tv.Sort[datetime] = tv.sort()

    class ByTime(
        tv.Query["Point"],
        on=MetricPoints.daily,
        pk="METRIC#{metric}",
        sk="TS#{at}#{point_id}",
        shards=tv.Shards.by_time("at", "day"),
        access=tv.AccessPattern("A metric's points of some days", per_second=1, items=100, item_bytes=350),
    ):
        metric: str
        at: tv.Sort[datetime] = tv.sort()

    class OfDay(
        tv.Query["Point"],
        on=MetricPoints.daily_drawn,
        pk="METRIC#{metric}#{day}",
        sk="TS#{at}#{point_id}",
        shards=tv.Shards(4, by="random"),
        access=tv.AccessPattern("A metric's points of one day", per_second=1, items=48, item_bytes=350),
    ):
        metric: str
        day: date
        at: tv.Sort[datetime] = tv.sort()


def points() -> tuple[Point, ...]:
    """Return a point every half hour for two and a half days."""
    moments = [START + timedelta(minutes=30 * number) for number in range(POINTS)]
    return tuple(
        Point(
            point_id=f"p{number:04}",
            metric=METRIC,
            day=moment.date(),
            at=moment,
            value=Decimal(120 + (number * 37) % 80) / 10,
        )
        for number, moment in enumerate(moments)
    )


SAMPLE = Sample(
    "metrics",
    "Metrics",
    summary="Write sharding by hash, randomly and by time, with ordered and paginated reads over all shards.",
    source="Common patterns: write sharding",
    tables=(MetricPoints,),
    entities=points,
)


@SAMPLE.demonstrate("scatter-gather", "Query one range in four indexes")
async def scatter_gather(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query the same hours in each index: the points and their order are the same."""
    start, end = START + timedelta(hours=10), START + timedelta(hours=14)
    return (
        await run_query(
            db, "By hash: eight shards merged", Point.ByHash(metric=METRIC).at.between(start, end)
        ),
        await run_query(
            db, "Random: eight shards merged", Point.ByChance(metric=METRIC).at.between(start, end)
        ),
        await run_query(
            db, "By time: only the day of the range", Point.ByTime(metric=METRIC).at.between(start, end)
        ),
        await run_query(
            db,
            "By day and random: four shards merged",
            Point.OfDay(metric=METRIC, day=START.date()).at.between(start, end),
        ),
    )


@SAMPLE.demonstrate("paging", "Paginate over all shards")
async def paging(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Read pages of ten, newest first, with one cursor over all shards."""
    return (
        await _pages(db, "By hash", Point.ByHash(metric=METRIC)),
        await _pages(db, "Random", Point.ByChance(metric=METRIC)),
        await _pages(
            db,
            "By time, three days",
            Point.ByTime(metric=METRIC).at.between(START, START + timedelta(days=3)),
        ),
    )


async def _pages(db: tv.AsyncConnection, what: str, selection: tv.Selection[Point]) -> StepResult:
    async def read() -> list[str]:
        point_ids: list[str] = []
        pages, cursor = 0, None
        while pages == 0 or cursor is not None:
            page = await db.query(selection, limit=10, newest_first=True, cursor=cursor)
            point_ids += [point.point_id for point in page.items]
            pages, cursor = pages + 1, page.cursor
        return point_ids

    return await run_measured(db, f"{what}: pages of ten, newest first", read())


@SAMPLE.demonstrate("balance", "Check the shard balance")
async def balance(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Show how evenly the shards are filled, how many are needed, and that time shards need a bounded range."""
    look = ShardBalance(db)
    advice = shards_for(writes_per_second=3_000, item_bytes=350)
    endless = Point.ByTime(metric=METRIC).at.gte(START)
    return (
        await run_measured(db, "Points per shard, by hash", _counts(look, Point.ByHash(metric=METRIC))),
        await run_measured(db, "Points per shard, random", _counts(look, Point.ByChance(metric=METRIC))),
        StepResult("Shards for 3,000 points per second", (advice.count, advice.why)),
        await expect_async_refusal("Time shards without an end of the range", db.query(endless)),
    )


async def _counts(look: ShardBalance[tv.AsyncConnection], selection: tv.Selection[Point]) -> tuple[int, ...]:
    return (await look.of(selection)).counts
