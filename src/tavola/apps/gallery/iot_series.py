"""IoT series: readings of devices, asked by year, month, day or moment.

`DeviceTimeIndex` holds the parts of the time as numbers, so that month 10 comes after month 9 without padding, and a range of months is a range.
A reading's year, month and day are those of its moment, in UTC: one that says otherwise is refused, for it would be found under one time
and not under the other. All four names are reserved words of DynamoDB; the client gives them placeholders.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Self

from pydantic import model_validator

from tavola import (
    AccessPattern,
    AsyncConnection,
    Attr,
    Entity,
    EpochSeconds,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    sort,
)
from tavola.apps.gallery.showing import Demonstration, Sample, Told, asked

DEVICE = "device-07"
PLACE = "hall-2"


class Series(Table, name="gallery-series", pk="PK", sk="SK"):
    """Readings, each device's in a partition of its own."""

    by_time = Gsi(
        pk=("deviceId", "locationId"), sk=("year", "month", "day", "timestamp"), name="DeviceTimeIndex"
    )


class Reading(
    Entity, table=Series, writes=(WritePattern("A reading", "put", per_second=200, item_bytes=220),)
):
    """What a device measured at a moment."""

    device_id: Attr[str] = attr(name="deviceId")
    location_id: Attr[str] = attr(name="locationId")
    year: Attr[int]
    month: Attr[int]
    day: Attr[int]
    timestamp: Attr[Annotated[datetime, EpochSeconds]]
    celsius: Attr[Decimal]

    class Key(PrimaryKey["Reading"], pk="DEVICE#{device_id}", sk="READING#{timestamp}"):
        device_id: str
        timestamp: datetime

    class Within(
        Query["Reading"],
        on=Series.by_time,
        access=AccessPattern(
            "A device's readings at a place: of a year, a month, a day or a moment",
            per_second=10,
            items=48,
            item_bytes=220,
        ),
    ):
        device_id: str
        location_id: str
        year: Sort[int] = sort()
        month: Sort[int] = sort()
        day: Sort[int] = sort()
        timestamp: Sort[datetime] = sort()

    @model_validator(mode="after")
    def _of_one_time(self) -> Self:
        at = self.timestamp.astimezone(UTC)
        if (self.year, self.month, self.day) != (at.year, at.month, at.day):
            raise ValueError(f"year, month and day are those of the timestamp, in UTC: {at:%Y-%m-%d}")
        return self


def reading(device: str, place: str, at: datetime, celsius: Decimal) -> Reading:
    """Return a reading whose parts of the time are those of its moment."""
    moment = at.astimezone(UTC)
    return Reading(
        device_id=device,
        location_id=place,
        year=moment.year,
        month=moment.month,
        day=moment.day,
        timestamp=moment,
        celsius=celsius,
    )


def readings() -> tuple[Reading, ...]:
    """Return four readings a day of days in two years, and some of a device elsewhere."""
    days = [datetime(2025, month, day, tzinfo=UTC) for month in (2, 9, 10, 12) for day in (9, 10)]
    days += [datetime(2026, 1, day, tzinfo=UTC) for day in (5, 30)]
    made = [
        reading(DEVICE, PLACE, day + timedelta(hours=6 * part), Decimal(18 * 10 + day.month + part) / 10)
        for day in days
        for part in range(4)
    ]
    made += [reading("device-08", "hall-3", day, Decimal("21.5")) for day in days]
    return tuple(made)


async def granularities(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask for a year, a month, a day and an hour or two."""
    mine = Reading.Within(device_id=DEVICE, location_id=PLACE)
    day = mine.year.eq(2025).month.eq(10).day.eq(9)
    noon = datetime(2025, 10, 9, 12, tzinfo=UTC)
    return (
        await asked(db, "All years", mine),
        await asked(db, "2025", mine.year.eq(2025)),
        await asked(db, "October 2025", mine.year.eq(2025).month.eq(10)),
        await asked(db, "9 October 2025", day),
        await asked(db, "9 October 2025 from noon on", day.timestamp.gte(noon)),
    )


async def numbers(db: AsyncConnection) -> tuple[Told, ...]:
    """Ask for ranges of numbers, which as text would come out otherwise."""
    year = Reading.Within(device_id=DEVICE, location_id=PLACE).year.eq(2025)
    return (
        await asked(db, "September to December: 9, 10, 12 in this order", year.month.between(9, 12)),
        await asked(db, "October from the 10th on", year.month.eq(10).day.gte(10)),
        await asked(
            db,
            "The latest four",
            Reading.Within(device_id=DEVICE, location_id=PLACE),
            limit=4,
            newest_first=True,
        ),
    )


SAMPLE = Sample(
    name="iot-series",
    title="IoT time series",
    shows="Numbers that sort as numbers in an index, asked at each granularity of time.",
    source="Patterns and best practices: common patterns of multi-attribute keys, time series",
    tables=(Series,),
    entities=readings,
    demonstrations=(
        Demonstration("granularities", "Year, month, day, moment", granularities),
        Demonstration("numbers", "Ranges of numbers", numbers),
    ),
)
