"""IoT series: device readings, queried by year, month, day or time.

`DeviceTimeIndex` stores the parts of the time as numbers, so month 10 sorts after month 9 without padding, and months can be queried
as a range. A reading's year, month and day must be those of its timestamp in UTC; otherwise it would be found under one time and not
under the other. All four names are reserved words of DynamoDB; the client uses placeholders for them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Self

from pydantic import model_validator

import tavola as tv
from tavola.apps.gallery.demonstrations import Sample, StepResult, run_query

DEVICE = "device-07"
LOCATION = "hall-2"


class Series(tv.Table, name="gallery-series", pk="PK", sk="SK"):
    """Readings, one partition per device."""

    by_time = tv.Gsi(
        pk=("deviceId", "locationId"), sk=("year", "month", "day", "timestamp"), name="DeviceTimeIndex"
    )


class Reading(
    tv.Entity, table=Series, writes=(tv.WritePattern("A reading", "put", per_second=200, item_bytes=220),)
):
    """A measurement of a device."""

    device_id: tv.Attr[str] = tv.attr(name="deviceId")
    location_id: tv.Attr[str] = tv.attr(name="locationId")
    year: tv.Attr[int]
    month: tv.Attr[int]
    day: tv.Attr[int]
    timestamp: tv.Attr[Annotated[datetime, tv.EpochSeconds]]
    celsius: tv.Attr[Decimal]

    class Key(tv.PrimaryKey["Reading"], pk="DEVICE#{device_id}", sk="READING#{timestamp}"):
        device_id: str
        timestamp: datetime

    class Within(
        tv.Query["Reading"],
        on=Series.by_time,
        access=tv.AccessPattern(
            "A device's readings at a location, by year, month, day or time",
            per_second=10,
            items=48,
            item_bytes=220,
        ),
    ):
        device_id: str
        location_id: str
        year: tv.Sort[int] = tv.sort()
        month: tv.Sort[int] = tv.sort()
        day: tv.Sort[int] = tv.sort()
        timestamp: tv.Sort[datetime] = tv.sort()

    @model_validator(mode="after")
    def _check_date_parts(self) -> Self:
        at = self.timestamp.astimezone(UTC)
        if (self.year, self.month, self.day) != (at.year, at.month, at.day):
            raise ValueError(f"year, month and day must match the timestamp in UTC: {at:%Y-%m-%d}")
        return self


def reading(device: str, location: str, at: datetime, celsius: Decimal) -> Reading:
    """Return a reading with the date parts of its timestamp."""
    moment = at.astimezone(UTC)
    return Reading(
        device_id=device,
        location_id=location,
        year=moment.year,
        month=moment.month,
        day=moment.day,
        timestamp=moment,
        celsius=celsius,
    )


def sample_readings() -> tuple[Reading, ...]:
    """Return four readings a day for some days of two years, and some of another device."""
    days = [datetime(2025, month, day, tzinfo=UTC) for month in (2, 9, 10, 12) for day in (9, 10)]
    days += [datetime(2026, 1, day, tzinfo=UTC) for day in (5, 30)]
    readings = [
        reading(DEVICE, LOCATION, day + timedelta(hours=6 * part), Decimal(18 * 10 + day.month + part) / 10)
        for day in days
        for part in range(4)
    ]
    readings += [reading("device-08", "hall-3", day, Decimal("21.5")) for day in days]
    return tuple(readings)


SAMPLE = Sample(
    "iot-series",
    "IoT time series",
    summary="Numeric key attributes in an index, queried at each granularity of time.",
    source="Patterns and best practices: common patterns of multi-attribute keys, time series",
    tables=(Series,),
    entities=sample_readings,
)


@SAMPLE.demonstrate("granularities", "Query by year, month, day or time")
async def granularities(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query a year, a month, a day and some hours."""
    device_readings = Reading.Within(device_id=DEVICE, location_id=LOCATION)
    day = device_readings.year.eq(2025).month.eq(10).day.eq(9)
    noon = datetime(2025, 10, 9, 12, tzinfo=UTC)
    return (
        await run_query(db, "All years", device_readings),
        await run_query(db, "2025", device_readings.year.eq(2025)),
        await run_query(db, "October 2025", device_readings.year.eq(2025).month.eq(10)),
        await run_query(db, "9 October 2025", day),
        await run_query(db, "9 October 2025 from noon on", day.timestamp.gte(noon)),
    )


@SAMPLE.demonstrate("numbers", "Query ranges of numbers")
async def numbers(db: tv.AsyncConnection) -> tuple[StepResult, ...]:
    """Query ranges of numbers, which would sort differently as text."""
    year = Reading.Within(device_id=DEVICE, location_id=LOCATION).year.eq(2025)
    return (
        await run_query(db, "September to December (months 9, 10, 12)", year.month.between(9, 12)),
        await run_query(db, "October from the 10th on", year.month.eq(10).day.gte(10)),
        await run_query(
            db,
            "Latest four readings",
            Reading.Within(device_id=DEVICE, location_id=LOCATION),
            limit=4,
            newest_first=True,
        ),
    )
