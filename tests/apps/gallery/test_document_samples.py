"""The five sample designs of the document on patterns: row P5."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from tavola import AsyncConnection
from tavola.apps.gallery.iot_series import Reading
from tavola.apps.gallery.tournaments import Match, Tournaments
from tests.apps.conftest import Run, Target
from tests.apps.gallery.conftest import RunDemonstration, load


def test_p05_tournaments_at_each_level(run_demonstration: RunDemonstration) -> None:
    """Matches are queried by the whole partition key, then by sort key parts from the left, stopping at any part."""
    steps = run_demonstration("tournaments", "levels")

    assert [len(step.items) for step in steps] == [14, 4, 2, 1, 1]
    assert {match.region for match in steps[0].items} == {"NA-EAST"}
    assert {match.tournament_id for match in steps[0].items} == {"WINTER2026"}
    order = [(match.round, match.bracket, match.match_id) for match in steps[0].items]
    assert order == sorted(order)
    assert steps[3].items == steps[4].items
    assert steps[3].items[0].match_id == "match-005"
    assert all(step.scanned == len(step.items) for step in steps[:4])  # nothing is read in vain


def test_p05_tournaments_by_ranges(run_demonstration: RunDemonstration) -> None:
    """A range may be on any part and must be the last: from a round on, or between two brackets of one round."""
    from_quarters, lower, begun = run_demonstration("tournaments", "ranges")

    assert {match.round for match in from_quarters.items} == {"QUARTERFINALS", "SEMIFINALS"}
    assert {(match.round, match.bracket) for match in lower.items} == {("SEMIFINALS", "LOWER")}
    assert {match.round for match in begun.items} == {"SEMIFINALS"}


def test_p05_every_invalid_query_is_refused(run_demonstration: RunDemonstration, target: Target) -> None:
    """Half a partition key, a gap, a condition after a range, a range on the partition key: each is refused with a reason."""
    errors = {step.title: step.error for step in run_demonstration("tournaments", "refusals")}

    assert all(errors.values())
    assert errors["Incomplete partition key"].endswith("region must be given as well")
    assert "round must be fixed" in errors["Bracket without round"]
    assert "cannot follow a range or a filter" in errors["Bracket after a range of rounds"]
    if target.kind != "local":  # DynamoDB Local has words of its own
        assert errors["Range on the partition key, sent"].startswith(
            "HASH key attributes region must have equality"
        )
        assert errors["Bracket after a range, sent"].startswith(
            "RANGE key attributes round must have equality"
        )


def test_wrong_15_reserved_words_get_placeholders(run_demonstration: RunDemonstration) -> None:
    """Pitfall 15: region, year, month, day and timestamp are reserved, and every query with them works."""
    sent = {step.title: step.error for step in run_demonstration("tournaments", "refusals")}
    matches = run_demonstration("tournaments", "levels")[0]
    readings = run_demonstration("iot-series", "granularities")[4]

    assert "reserved" in sent["Reserved word without a placeholder, sent"]
    assert "region = " not in matches.request
    assert {"year = ", "month = ", "day = ", "timestamp >= "}.isdisjoint(readings.request.split("  "))
    assert len(matches.items) == 14
    assert len(readings.items) == 2


def test_p05_series_at_each_granularity(run_demonstration: RunDemonstration) -> None:
    """One index serves all years, a year, a month, a day, and times of a day."""
    steps = run_demonstration("iot-series", "granularities")

    assert [len(step.items) for step in steps] == [40, 32, 8, 4, 2]
    assert [reading.timestamp.hour for reading in steps[4].items] == [12, 18]
    times = [reading.timestamp for reading in steps[0].items]
    assert times == sorted(times)


def test_p05_series_numbers_sort_as_numbers(run_demonstration: RunDemonstration) -> None:
    """Month 10 comes after month 9, and a range of months contains the months in it."""
    months, days, latest = run_demonstration("iot-series", "numbers")

    assert list(dict.fromkeys(reading.month for reading in months.items)) == [9, 10, 12]
    assert {(reading.month, reading.day) for reading in days.items} == {(10, 10)}
    assert latest.items[0].timestamp == datetime(2026, 1, 30, 18, tzinfo=UTC)


def test_p05_series_parts_must_agree() -> None:
    """A reading whose day differs from its timestamp is refused: one query would find it and another would not."""
    at = datetime(2026, 1, 30, 23, 30, tzinfo=UTC)

    with pytest.raises(ValidationError, match="2026-01-30"):
        Reading(device_id="d", location_id="l", year=2026, month=1, day=31, timestamp=at, celsius=Decimal(20))


def test_p05_queries_name_tenant_and_customer(run_demonstration: RunDemonstration) -> None:
    """Resources are queried by tenant and customer; a query without a tenant is not possible."""
    everything, databases, one, same = run_demonstration("tenancy", "drill-down")
    other, missing, any_tenant = run_demonstration("tenancy", "apart")

    assert [len(step.items) for step in (everything, databases, one)] == [6, 2, 1]
    assert same.items == one.items
    assert {each.tenant_id for each in everything.items} == {"tenant-a"}
    assert {each.tenant_id for each in other.items} == {"tenant-b"}
    assert not missing.items
    assert "tenant_id must be given" in any_tenant.error


def test_p05_seller_orders_by_day_and_category(run_demonstration: RunDemonstration) -> None:
    """A quarter, a day, and a category of a day are one query each; a category of all days is refused."""
    quarter, day, toys, one, skipped = run_demonstration("seller-orders", "by-day")

    assert quarter.items
    assert all(date(2026, 4, 1) <= order.order_date <= date(2026, 6, 30) for order in quarter.items)
    assert {order.order_date for order in day.items} == {date(2026, 3, 22)}
    assert [(order.category, order.region) for order in toys.items] == [("toys", "eu")]
    assert one.items == toys.items
    assert "order_date must be fixed" in skipped.error


def test_wrong_13_turnover_is_exact(run_demonstration: RunDemonstration) -> None:
    """Pitfall 13: totals are decimals, and their sum is exact."""
    sold, total = run_demonstration("seller-orders", "turnover")

    assert total.items == (sum((order.total for order in sold.items), Decimal(0)),)
    assert total.items == (Decimal("453.92"),)


def test_p05_a_split_profile_counts_at_a_tenth_of_the_cost(run_demonstration: RunDemonstration) -> None:
    """A view counted in its own item costs one write unit, in a profile of 10 KB ten; both are read with one query."""
    whole, apart, times, both = run_demonstration("profiles", "views")

    assert (whole.writes, apart.writes) == (10, 1)
    assert times.items == (10.0, 10.0)
    assert [type(part).__name__ for part in both.items] == ["Profile", "Stats"]
    assert both.items[1].views == 1


def test_p05_the_index_is_keyed_by_the_matches_own_attributes(db: AsyncConnection, run: Run[Any]) -> None:
    """The index key consists of the existing attributes tournamentId, region, round, bracket and matchId."""
    load(run, db, "tournaments")
    match = Match(
        match_id="m-own", tournament_id="T", region="R", round="FINALS", bracket="UPPER", home="a", away="b"
    )
    run(db.put(match))

    key = {"PK": {"S": "MATCH#m-own"}, "SK": {"S": "METADATA"}}
    stored = run(db.call("GetItem", {"TableName": db.context.name_of(Tournaments), "Key": key}))["Item"]
    assert set(stored) == {
        "PK", "SK", "_entity", "matchId", "tournamentId", "region", "round", "bracket", "home", "away",
    }  # fmt: skip
