"""The dashboard's numbers, maintained from the stream, exactly, even if records repeat.

All numbers are in one partition. Their sort keys are `day/2026-11-18/opened` and `total/status/NEW`, in this order, so that one
query from a day on returns the days since then and the totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from tavola import AsyncConnection, Connection
from tavola.apps.support_desk.domain import (
    RATING_MAX,
    RATING_MIN,
    Dashboard,
    DayNumbers,
    Priority,
    RunningAverage,
    TicketStatus,
)
from tavola.apps.support_desk.model import NUMBERS, DeskMetric, Feedback, MetricMark, Ticket, Tickets
from tavola.patterns import Projector, Share
from tavola.triggers import EventSourceMapping

DESK = "desk"  # the partition of all numbers
MAPPING = EventSourceMapping.from_consumer(NUMBERS)

DeskProjector: TypeAlias = Projector[AsyncConnection, DeskMetric, MetricMark]


def ticket_shares(ticket: Ticket) -> Iterator[Share]:
    """Generate what a ticket contributes to the numbers."""
    yield Share(DESK, f"total/status/{ticket.status}")
    yield Share(DESK, f"total/priority/{ticket.priority}")
    yield Share(DESK, f"day/{_day(ticket.created_at)}/opened")
    if ticket.completed_at is not None:
        seconds = _seconds(ticket.completed_at - ticket.created_at)
        yield Share(DESK, "total/resolution", value=seconds)
        yield Share(DESK, f"day/{_day(ticket.completed_at)}/resolution", value=seconds)


def feedback_shares(feedback: Feedback) -> Iterator[Share]:
    """Generate what feedback contributes to the numbers."""
    yield Share(DESK, "total/satisfaction", value=feedback.rating)
    yield Share(DESK, f"total/rating/{feedback.rating}")
    yield Share(DESK, f"day/{_day(feedback.submitted_at)}/satisfaction", value=feedback.rating)


def create_projector(db: AsyncConnection) -> DeskProjector:
    """Return the projector of the desk's numbers on an asynchronous connection."""
    projector = Projector(db, Tickets, DeskMetric, MetricMark)
    projector.of(Ticket)(ticket_shares)
    projector.of(Feedback)(feedback_shares)
    return projector


def create_handler(db: Connection) -> Callable[[Mapping[str, Any], object], dict[str, Any] | None]:
    """Return the projector as a Lambda function for `MAPPING`: it takes an event and returns the failed records."""
    projector = Projector(
        db,
        Tickets,
        DeskMetric,
        MetricMark,
        report_batch_item_failures=NUMBERS.report_batch_item_failures,
    )
    projector.of(Ticket)(ticket_shares)
    projector.of(Feedback)(feedback_shares)
    return projector.handler


async def read_dashboard(db: AsyncConnection, today: date, days: int) -> Dashboard:
    """Return the numbers of the last days and of all time, with one query."""
    first = today - timedelta(days=days - 1)
    page = await db.query(DeskMetric.ByName(name=DESK).part.gte(f"day/{first.isoformat()}"))
    numbers = {number.part: RunningAverage(number.count, number.total) async for number in page}
    return build_dashboard(numbers, [first + timedelta(days=n) for n in range(days)])


def build_dashboard(numbers: Mapping[str, RunningAverage], days: Iterable[date]) -> Dashboard:
    """Return numbers as a dashboard; missing ones are 0."""
    zero = RunningAverage()
    return Dashboard(
        by_status={status: numbers.get(f"total/status/{status}", zero).count for status in TicketStatus},
        by_priority={
            priority: numbers.get(f"total/priority/{priority}", zero).count for priority in Priority
        },
        resolution_s=numbers.get("total/resolution", zero),
        satisfaction=numbers.get("total/satisfaction", zero),
        ratings={n: numbers.get(f"total/rating/{n}", zero).count for n in range(RATING_MIN, RATING_MAX + 1)},
        days=tuple(
            DayNumbers(
                day,
                opened=numbers.get(f"day/{day}/opened", zero).count,
                resolved=numbers.get(f"day/{day}/resolution", zero).count,
                resolution_s=numbers.get(f"day/{day}/resolution", zero),
                satisfaction=numbers.get(f"day/{day}/satisfaction", zero),
            )
            for day in days
        ),
    )


def _day(moment: datetime) -> str:
    return moment.date().isoformat()  # stored times are in UTC


def _seconds(duration: timedelta) -> Decimal:
    """Return a duration in seconds, exactly; a float would lose microseconds after some years."""
    return Decimal(duration.days * 86_400 + duration.seconds) + Decimal(duration.microseconds).scaleb(-6)
