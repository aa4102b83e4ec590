"""Shards needed: enough for the whole place, and the fewest, whatever else holds up the same writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tavola.design.simulation import Burst, PlaceResult, Scenario, Simulation, simulate
from tavola.model.document import Design
from tests.design.builders import choice, design, entity, gsi, key, moment, put, table, text
from tests.design.simulation.designs import by_status

SCENARIO = Scenario(hours=0.2, seed=4, warm=True)
FIRST, SECOND = gsi("by_status", "GSI1PK", "GSI1SK"), gsi("by_prio", "GSI2PK", "GSI2SK")


def _two(first: int, second: int, per_second: float) -> Design:
    ticket = entity(
        "Ticket",
        text("ticket_id"),
        choice("status", "A", "B"),
        choice("prio", "X", "Y"),
        moment("created_at"),
        pk="T#{ticket_id}",
        keys=[
            key(FIRST, "STATUS#{status}", "{created_at}", shards=first),
            key(SECOND, "PRIO#{prio}", "{created_at}", shards=second),
        ],
        writes=[put(per_second=per_second, peak_per_second=per_second, item_bytes=500, skew=2.0)],
        items=10**7,
    )
    return design(table(ticket, indexes=[FIRST, SECOND]))


def _written(found: Simulation, name: str) -> PlaceResult:
    return next(each for each in found.places if each.name == name and each.access == "write")


@pytest.mark.parametrize("per_second", [3_000, pytest.param(6_000, marks=pytest.mark.slow)])
def test_shards_are_enough_where_two_indexes_hold_up_the_same_writes(per_second: float) -> None:
    """What each index is told is enough once the other one lets everything through, and one less is not."""
    found = simulate(_two(1, 1, per_second), SCENARIO)
    first, second = (_written(found, f"shop/{name}").shards[0].needed for name in ("by_status", "by_prio"))
    assert first is not None
    assert second is not None
    quiet = replace(SCENARIO, shards=False)
    enough = simulate(_two(first, second, per_second), quiet)
    less = simulate(_two(first - 1, second, per_second), quiet)

    assert enough.throttled < 0.001
    assert _written(less, "shop/by_status").throttled > 0.001


@pytest.mark.parametrize("burst", [Burst(10, 10, 2), Burst(20, 60, 10)])
@pytest.mark.slow
def test_shards_are_the_fewest_where_traffic_comes_in_bursts(burst: Burst) -> None:
    """The number is of the bursts too, and no larger than they ask for."""
    scenario = Scenario(hours=1, seed=4, bursts=(burst,), warm=True)
    told = _written(simulate(by_status(300, skew=None), scenario), "shop/by_status").shards[0].needed
    assert told is not None
    shares = [
        _written(
            simulate(by_status(300, skew=None, shards=count), replace(scenario, shards=False)),
            "shop/by_status",
        ).by_partitions
        for count in (told - 1, told)
    ]

    assert shares[1] < 0.001 <= shares[0]


@pytest.mark.slow
def test_a_number_that_cannot_be_reached_is_said_without_trying_them_all() -> None:
    """A key that asks for more than all shards have is told so at once."""
    index = _written(
        simulate(by_status(3e6, skew=None), replace(SCENARIO, hours=0.05, quota=1e8)), "shop/by_status"
    )

    assert [each.needed for each in index.shards] == [None]
    assert "Even 1,024 shards of STATUS#{status} are not enough" in index.diagnosis
