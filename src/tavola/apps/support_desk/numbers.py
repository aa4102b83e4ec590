"""Numbers: what the dashboard shows, kept by the stream and exact however often a record comes.

All numbers stand in one partition. Their parts are `day/2026-11-18/opened` and `total/status/NEW`, in this order: one query, from a day
on, gives the days since then and the totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from tavola import AsyncConnection, Connection
from tavola.apps.support_desk.domain import RATING_MAX, RATING_MIN, Dashboard, Day, Priority, Status, Tally
from tavola.apps.support_desk.model import Counted, Feedback, Number, Ticket, Tickets
from tavola.patterns import Projector, Share
from tavola.triggers import REPORT_FAILURES
from tavola.triggers import Mapping as TriggerMapping

DESK = "desk"  # the name of all of them
MAPPING = TriggerMapping(
    batch_size=100,
    maximum_batching_window_in_seconds=5,
    bisect_batch_on_function_error=True,
    maximum_retry_attempts=3,
    function_response_types=(REPORT_FAILURES,),
)

DeskProjector: TypeAlias = Projector[AsyncConnection, Number, Counted]


def shares_of_ticket(ticket: Ticket) -> Iterator[Share]:
    """Say what a ticket adds to the numbers as it is now."""
    yield Share(DESK, f"total/status/{ticket.status}")
    yield Share(DESK, f"total/priority/{ticket.priority}")
    yield Share(DESK, f"day/{_day(ticket.created_at)}/opened")
    if ticket.completed_at is not None:
        seconds = _seconds(ticket.completed_at - ticket.created_at)
        yield Share(DESK, "total/resolution", value=seconds)
        yield Share(DESK, f"day/{_day(ticket.completed_at)}/resolution", value=seconds)


def shares_of_feedback(feedback: Feedback) -> Iterator[Share]:
    """Say what feedback adds to the numbers."""
    yield Share(DESK, "total/satisfaction", value=feedback.rating)
    yield Share(DESK, f"total/rating/{feedback.rating}")
    yield Share(DESK, f"day/{_day(feedback.submitted_at)}/satisfaction", value=feedback.rating)


def projector_of(db: AsyncConnection) -> DeskProjector:
    """Return the projector of the desk's numbers, on a connection of an event loop."""
    projector = Projector(db, Tickets, Number, Counted)
    projector.of(Ticket)(shares_of_ticket)
    projector.of(Feedback)(shares_of_feedback)
    return projector


def handler_of(db: Connection) -> Callable[[Mapping[str, Any], object], dict[str, Any] | None]:
    """Return the same as a Lambda function: an event in, the records that failed out; to be mapped by `MAPPING`."""
    projector = Projector(db, Tickets, Number, Counted)
    projector.of(Ticket)(shares_of_ticket)
    projector.of(Feedback)(shares_of_feedback)
    return projector.handler


async def dashboard(db: AsyncConnection, today: date, days: int) -> Dashboard:
    """Return the numbers of the last days and of all time, with one query."""
    first = today - timedelta(days=days - 1)
    page = await db.query(Number.Of(name=DESK).part.gte(f"day/{first.isoformat()}"))
    found = {number.part: Tally(number.count, number.total) async for number in page}
    return dashboard_of(found, [first + timedelta(days=n) for n in range(days)])


def dashboard_of(found: Mapping[str, Tally], days: Iterable[date]) -> Dashboard:
    """Return numbers as a dashboard: whatever is missing is 0."""
    none = Tally()
    return Dashboard(
        by_status={each: found.get(f"total/status/{each}", none).count for each in Status},
        by_priority={each: found.get(f"total/priority/{each}", none).count for each in Priority},
        resolution_s=found.get("total/resolution", none),
        satisfaction=found.get("total/satisfaction", none),
        ratings={n: found.get(f"total/rating/{n}", none).count for n in range(RATING_MIN, RATING_MAX + 1)},
        days=tuple(
            Day(
                day,
                opened=found.get(f"day/{day}/opened", none).count,
                resolved=found.get(f"day/{day}/resolution", none).count,
                resolution_s=found.get(f"day/{day}/resolution", none),
                satisfaction=found.get(f"day/{day}/satisfaction", none),
            )
            for day in days
        ),
    )


def _day(moment: datetime) -> str:
    return moment.date().isoformat()  # moments come out of the table in UTC


def _seconds(lasted: timedelta) -> Decimal:
    """Return how long something lasted, exactly; a float would lose microseconds after some years."""
    return Decimal(lasted.days * 86_400 + lasted.seconds) + Decimal(lasted.microseconds).scaleb(-6)
