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
from tests.apps.gallery.conftest import Shown, load


def test_p05_tournaments_at_each_level(shown: Shown) -> None:
    """Matches are asked with the whole partition, and then from the left, stopping anywhere."""
    told = shown("tournaments", "levels")

    assert [len(step.found) for step in told] == [14, 4, 2, 1, 1]
    assert {match.region for match in told[0].found} == {"NA-EAST"}
    assert {match.tournament_id for match in told[0].found} == {"WINTER2026"}
    order = [(match.round, match.bracket, match.match_id) for match in told[0].found]
    assert order == sorted(order)
    assert told[3].found == told[4].found
    assert told[3].found[0].match_id == "match-005"
    assert all(step.scanned == len(step.found) for step in told[:4])  # nothing is read in vain


def test_p05_tournaments_by_ranges(shown: Shown) -> None:
    """A range may be on any part, and is the last: from a round on, or between two brackets of one round."""
    from_quarters, lower, begun = shown("tournaments", "ranges")

    assert {match.round for match in from_quarters.found} == {"QUARTERFINALS", "SEMIFINALS"}
    assert {(match.round, match.bracket) for match in lower.found} == {("SEMIFINALS", "LOWER")}
    assert {match.round for match in begun.found} == {"SEMIFINALS"}


def test_p05_every_invalid_question_is_refused(shown: Shown, target: Target) -> None:
    """Half a partition, a gap, a condition after a range, a range on the partition: each is refused, and says why."""
    told = {step.what: step.refused for step in shown("tournaments", "refusals")}

    assert all(told.values())
    assert told["Half of the partition"].endswith("region must be given as well")
    assert "round is fixed" in told["The bracket without the round"]
    assert "a range or a filter ends the question" in told["The bracket after a range of rounds"]
    if target.kind != "local":  # DynamoDB Local has words of its own
        assert told["A range on the partition, sent"].startswith(
            "HASH key attributes region must have equality"
        )
        assert told["The bracket after a range, sent"].startswith(
            "RANGE key attributes round must have equality"
        )


def test_wrong_15_reserved_words_get_placeholders(shown: Shown) -> None:
    """Pitfall 15: region, year, month, day and timestamp are reserved, and every question with them is answered."""
    sent = {step.what: step.refused for step in shown("tournaments", "refusals")}
    matches = shown("tournaments", "levels")[0]
    readings = shown("iot-series", "granularities")[4]

    assert "reserved" in sent["A reserved word without a placeholder, sent"]
    assert "region = " not in matches.request
    assert {"year = ", "month = ", "day = ", "timestamp >= "}.isdisjoint(readings.request.split("  "))
    assert len(matches.found) == 14
    assert len(readings.found) == 2


def test_p05_series_at_each_granularity(shown: Shown) -> None:
    """One index answers for all years, a year, a month, a day, and moments of a day."""
    told = shown("iot-series", "granularities")

    assert [len(step.found) for step in told] == [40, 32, 8, 4, 2]
    assert [reading.timestamp.hour for reading in told[4].found] == [12, 18]
    times = [reading.timestamp for reading in told[0].found]
    assert times == sorted(times)


def test_p05_series_numbers_sort_as_numbers(shown: Shown) -> None:
    """Month 10 comes after month 9, and a range of months holds the months in it."""
    months, days, latest = shown("iot-series", "numbers")

    assert list(dict.fromkeys(reading.month for reading in months.found)) == [9, 10, 12]
    assert {(reading.month, reading.day) for reading in days.found} == {(10, 10)}
    assert latest.found[0].timestamp == datetime(2026, 1, 30, 18, tzinfo=UTC)


def test_p05_series_keeps_its_parts_in_step() -> None:
    """A reading whose day is not that of its moment is refused: it would be found under one time and not the other."""
    at = datetime(2026, 1, 30, 23, 30, tzinfo=UTC)

    with pytest.raises(ValidationError, match="2026-01-30"):
        Reading(device_id="d", location_id="l", year=2026, month=1, day=31, timestamp=at, celsius=Decimal(20))


def test_p05_tenants_are_asked_apart(shown: Shown) -> None:
    """Resources are asked with tenant and customer, and of no tenant at all they cannot be."""
    everything, databases, one, same = shown("tenancy", "drill-down")
    other, nobody, anybody = shown("tenancy", "apart")

    assert [len(step.found) for step in (everything, databases, one)] == [6, 2, 1]
    assert same.found == one.found
    assert {each.tenant_id for each in everything.found} == {"tenant-a"}
    assert {each.tenant_id for each in other.found} == {"tenant-b"}
    assert not nobody.found
    assert "tenant_id must be given" in anybody.refused


def test_p05_seller_orders_by_day_and_category(shown: Shown) -> None:
    """A quarter, a day, and a category of a day are one query each; a category of all days is refused."""
    quarter, day, toys, one, skipped = shown("seller-orders", "by-day")

    assert quarter.found
    assert all(date(2026, 4, 1) <= order.order_date <= date(2026, 6, 30) for order in quarter.found)
    assert {order.order_date for order in day.found} == {date(2026, 3, 22)}
    assert [(order.category, order.region) for order in toys.found] == [("toys", "eu")]
    assert one.found == toys.found
    assert "order_date is fixed" in skipped.refused


def test_wrong_13_turnover_is_exact(shown: Shown) -> None:
    """Pitfall 13: totals are decimals, and their sum has lost no digit."""
    sold, total = shown("seller-orders", "turnover")

    assert total.found == (sum((order.total for order in sold.found), Decimal(0)),)
    assert total.found == (Decimal("453.92"),)


def test_p05_a_split_profile_counts_at_a_tenth(shown: Shown) -> None:
    """A view in an item of its own takes one write unit, in a profile of 10 KB ten; both are read with one query."""
    whole, apart, times, both = shown("profiles", "views")

    assert (whole.writes, apart.writes) == (10, 1)
    assert times.found == (10.0, 10.0)
    assert [type(part).__name__ for part in both.found] == ["Profile", "Stats"]
    assert both.found[1].views == 1


def test_p05_the_index_is_keyed_by_the_matches_own_attributes(db: AsyncConnection, run: Run[Any]) -> None:
    """No attribute is made for the index: its key is tournamentId, region, round, bracket and matchId as they are."""
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
