"""simulate: what a design's traffic does to its partitions, told in numbers and in sentences."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.design.simulation import Burst, PlaceResult, Scenario, Simulation, SimulationError, simulate
from tavola.design.simulation.keyspace import KeySet
from tavola.design.simulation.rates import DailyRates, Rhythm
from tavola.design.simulation.report import report_lines
from tavola.design.simulation.simulator import ServiceBehaviour, Simulator
from tavola.design.simulation.workload import Arm, Draw, RequestFlow, Station, StationCapacity, Workload
from tavola.limits import PARTITION_WRITES_PER_S
from tavola.model.document import Design, Scaling, Shards, TableSettings
from tests.design.builders import (
    choice,
    date,
    design,
    entity,
    gsi,
    key,
    moment,
    put,
    query,
    table,
    text,
    update,
)
from tests.design.simulation.designs import by_status

SHORT = Scenario(hours=0.2, seed=4)


def _place(found: Simulation, name: str, access: str = "write") -> PlaceResult:
    return next(each for each in found.places if each.name == name and each.access == access)


@cache
def _flawed() -> Simulation:
    return simulate(by_status(skew=None), SHORT)


def _text(found: Simulation) -> str:
    return json.dumps(found.to_json(), sort_keys=True)


def test_a_status_as_partition_key_throttles_and_is_told_how_many_shards_it_needs() -> None:
    """Five values at 3,000 writes a second: the new ones go to one partition, which refuses two thirds of them."""
    found = _flawed()

    index = _place(found, "shop/by_status")
    assert 0.55 < index.throttled < 0.7
    assert index.busiest[0].name == "STATUS#NEW"
    assert [each.needed for each in index.shards] == [4]
    assert "Splitting the partition does not help a single key" in index.diagnosis
    assert "Use at least 4 shards for STATUS#{status}" in index.diagnosis
    assert _place(found, "shop").throttled == 0.0
    written = next(each for each in found.patterns if each.name.startswith("Ticket: put"))
    assert written.held_up_by == "shop/by_status"
    assert written.wait_p99_s > 1


def test_as_many_shards_as_were_needed_are_enough_and_one_less_is_not() -> None:
    """The number that is told is the smallest: with it less than a thousandth is throttled once partitions settled."""
    warm = replace(SHORT, warm=True)
    shares = {
        count: _place(simulate(by_status(skew=None, shards=count), warm), "shop/by_status").throttled
        for count in (3, 4)
    }

    assert shares[4] < 0.001 < shares[3]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    """A run is reproducible from its seed, to the last digit."""
    short = replace(SHORT, shards=False)
    first, again = simulate(by_status(), short), simulate(by_status(), short)
    other = simulate(by_status(), replace(short, seed=5))

    assert _text(first) == _text(again)
    assert _text(first) != _text(other)


def test_a_small_load_is_not_throttled_and_nothing_is_made_of_it() -> None:
    """What every partition can bear passes whole, without a wait."""
    found = simulate(by_status(per_second=50), SHORT)

    assert found.throttled == 0.0
    assert found.wait_p99_s == 0.0
    assert {each.diagnosis for each in found.places} == {"No throttling."}


def test_even_values_are_split_apart_and_then_served() -> None:
    """Values that share a partition are throttled until it is split for heat between them."""
    found = simulate(
        by_status(per_second=3_000, skew=0.0), replace(SHORT, hours=0.6, seed=1, skew=0.0, shards=False)
    )
    index = _place(found, "shop/by_status")

    assert index.splits > 0
    late = np.array(
        next(each for each in found.heat_maps if each.name == index.name and each.access == "write").throttled
    )
    assert late[:, -late.shape[1] // 3 :].max() < 0.01


def test_provisioned_units_and_quota_are_named_as_what_ran_out() -> None:
    """A place that is too small as a whole says so, and not that a partition is hot."""
    small = simulate(
        by_status(per_second=300), replace(SHORT, mode="provisioned", read_units=100, write_units=100)
    )
    quota = simulate(by_status(per_second=300), replace(SHORT, quota=200, warm=True))

    # The index takes a little more than the table, since an entry that moves counts twice: it is what runs out.
    assert "provisioned units" in _place(small, "shop/by_status").diagnosis
    assert _place(small, "shop/by_status").by_whole > 0.4
    assert "quota" in _place(quota, "shop/by_status").diagnosis


def test_auto_scaling_follows_the_traffic() -> None:
    """A table that may be scaled out refuses far less than one that may not."""
    fixed = by_status(per_second=400)
    still = replace(fixed.tables[0].settings, read_units=100, write_units=100)
    scaled = replace(still, scaling=Scaling(read_max=1_000, write_max=2_000, read_min=50, write_min=50))
    scenario = replace(SHORT, shards=False)

    def share(settings_of: TableSettings) -> float:
        told = Design(tables=(replace(fixed.tables[0], settings=settings_of),), views=())
        return simulate(told, scenario).throttled

    assert share(still) > 0.6
    assert share(scaled) < 0.35


def test_bursts_throttle_what_the_mean_does_not() -> None:
    """A burst beyond a partition is refused while it lasts, and the mean alone is not."""
    calm = simulate(by_status(per_second=700, skew=None), SHORT)
    loud = simulate(by_status(per_second=700, skew=None), replace(SHORT, bursts=(Burst(4, 120, 4),)))

    assert calm.throttled == 0.0
    assert loud.throttled > 0.01


def test_a_date_in_the_partition_key_is_one_hot_key_that_moves() -> None:
    """All writes of a day go to one partition key; another day has another."""
    told = design(
        table(
            entity(
                "Event", date("day"), moment("at"), pk="DAY#{day}", sk="{at}", writes=[put(per_second=2_000)]
            )
        )
    )
    found = simulate(told, replace(SHORT, shards=False))

    assert found.places[0].throttled > 0.5
    assert any("all traffic goes to the current day" in each for each in found.assumptions)


def test_a_hot_read_is_not_told_to_be_sharded() -> None:
    """Reads of one key beyond 3,000 units need copies or a cache: whoever reads shards asks all of them."""
    told = design(
        table(
            entity(
                "Page",
                text("page_id", distinct=10),
                moment("at"),
                pk="PAGE#{page_id}",
                sk="{at}",
                patterns=[
                    query("Of", None, "page_id", "at", per_second=4_000, items=40, item_bytes=400, skew=2.0)
                ],
                writes=[put(per_second=1)],
            )
        )
    )
    read = _place(simulate(told, SHORT), "shop", "read")

    assert read.throttled > 0.3
    assert read.shards == ()
    assert "Cache" in read.diagnosis


def test_the_report_says_what_matters_in_lines() -> None:
    """The page for a person names the pattern, the place, the key, the shards and what was assumed."""
    text_ = "\n".join(report_lines(_flawed()))

    for word in (
        "throttled",
        "Ticket: put it",
        "shop/by_status",
        "STATUS#NEW",
        "4 shards",
        "Assumptions",
        "attempts",
    ):
        assert word in " ".join(text_.split())
    assert max(len(line) for line in text_.splitlines()) <= 140


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hours", 0.0),
        ("hours", 1e6),
        ("skew", -1.0),
        ("rate_factor", 0.0),
        ("peak", 0.5),
        ("quota", 0.0),
        ("seed", -1),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_bounds(field: str, value: Any) -> None:
    """What is out of bounds is named with what to give."""
    with pytest.raises(SimulationError, match=f"{field.replace('_', ' ')} must be"):
        replace(SHORT, **{field: value})


def _run(rate: float, keys: int, skew: float, seed: int, provisioned: float | None) -> Simulator:
    allowance = (
        StationCapacity(40_000, 40_000, on_demand=True, partitions=4)
        if provisioned is None
        else StationCapacity(provisioned, provisioned, on_demand=False)
    )
    stations = (Station("t", None, allowance), Station("t", "i", allowance), Station("t", "j", allowance))
    draws = (
        Draw(0, 0.0, (Arm(0, "write", 1.0),)),
        Draw(1, skew, (Arm(1, "write", 2.0, "rising"),)),
        Draw(2, skew, (Arm(2, "write", 2.0, "rising"),)),
    )
    sets = (KeySet("a", 10**7), KeySet("b", keys), KeySet("c", keys))
    rates = DailyRates((Rhythm(rate, rate),), 120, seed, noise=False)
    run = Simulator(
        Workload(stations, sets, (RequestFlow("w", "w", draws),), rates),
        ServiceBehaviour(split_after_s=60),
        seed,
    )
    run.run()
    return run


LOADS = {
    "rate": st.floats(1, 20_000),
    "keys": st.integers(1, 10_000),
    "skew": st.floats(0, 2),
    "seed": st.integers(0, 100),
    "provisioned": st.none() | st.floats(10, 5_000),
}


@settings(max_examples=15, deadline=None)
@given(**LOADS)
def test_no_partition_and_no_place_gives_more_than_it_has(
    rate: float, keys: int, skew: float, seed: int, provisioned: float | None
) -> None:
    """Whatever the load, what is served fits the partitions and the units there were, and is not more than asked."""
    run = _run(rate, keys, skew, seed, provisioned)
    used, asked = run.recorder.used.sum(axis=0), run.recorder.requested.sum(axis=0)
    seconds = 120
    for station, parts in enumerate(run.parts):
        most = PARTITION_WRITES_PER_S * len(parts) * (seconds + len(parts) + 1)
        assert used[2 * station + 1] <= most * 1.001
        if provisioned is not None:
            assert used[2 * station + 1] <= provisioned * (seconds + 1) * 1.001
            # In the second in which two places run dry at once, the solver may lend up to a fortieth of a second's units.
            assert (run.whole >= -0.025 * provisioned).all(), "no more than a trace of debt"
    assert (used <= asked * 1.0001 + 1e-6).all()
    # Requests that passed took their units everywhere: what the index refuses the table does not serve.
    passed = float(run.recorder.requests.sum() - run.recorder.refused.sum())
    assert used[1] == pytest.approx(passed, rel=0.01, abs=1.0)
    assert used[3] == pytest.approx(2 * passed, rel=0.01, abs=1.0)
    assert used[5] == pytest.approx(2 * passed, rel=0.01, abs=1.0)


@settings(max_examples=10, deadline=None)
@given(**LOADS, more=st.floats(1.1, 4))
@pytest.mark.slow
def test_more_load_is_never_throttled_less(
    rate: float, keys: int, skew: float, seed: int, provisioned: float | None, more: float
) -> None:
    """The share that is refused grows with the load, as long as no partition is split meanwhile."""
    low, high = _run(rate, keys, skew, seed, provisioned), _run(rate * more, keys, skew, seed, provisioned)
    if any(parts.cuts for run in (low, high) for parts in run.parts):
        return
    shares = [float(run.recorder.refused.sum() / run.recorder.requests.sum()) for run in (low, high)]

    assert shares[1] >= shares[0] - 0.005


def test_two_hot_indexes_say_that_they_throttle() -> None:
    """Where two indexes by one field hold up the same writes, both are told to, and neither that nothing is."""
    first, second = gsi("one", "GSI1PK", "GSI1SK"), gsi("two", "GSI2PK", "GSI2SK")
    ticket = entity(
        "Ticket", text("id"), choice("status", "A", "B"), moment("at"), pk="T#{id}",
        keys=[key(first, "STATUS#{status}", "{at}"), key(second, "STATUS#{status}", "{at}")],
        writes=[put(per_second=6_000, peak_per_second=6_000, item_bytes=500, skew=0.0)], items=10**7,
    )  # fmt: skip
    found = simulate(design(table(ticket, indexes=[first, second])), replace(SHORT, warm=True, shards=False))

    for name in ("shop/one", "shop/two"):
        assert _place(found, name).throttled == pytest.approx(found.throttled, rel=0.05)


@pytest.mark.slow
def test_the_busiest_second_is_told_however_long_the_run_is() -> None:
    """A burst of ten seconds is as high in a long run as in a short one: peaks are not means of a chart's columns."""
    scenario = replace(SHORT, hours=6, shards=False, bursts=(Burst(10, 10, 2),))
    found = simulate(by_status(per_second=300, skew=None), scenario)
    written = next(each for each in found.patterns if each.name.startswith("Ticket: put"))
    index = _place(found, "shop/by_status")

    assert written.peak > 2_500
    assert index.busiest[0].peak > 2_500
    assert "STATUS#NEW alone receives" in index.diagnosis


def test_a_question_over_shards_passes_if_all_of_them_do() -> None:
    """Of eight shards each of which refuses a tenth, most questions miss one."""
    index = gsi("by_status", "GSI1PK", "GSI1SK")
    told = entity(
        "T", text("id"), choice("status", "A"), moment("at"), pk="T#{id}",
        keys=[key(index, "S#{status}", "{at}", shards=8)],
        patterns=[query("By", index, "status", "at", per_second=420, peak_per_second=420, items=64, item_bytes=1000)],
        writes=[put(per_second=1)], items=10**6,
    )  # fmt: skip
    found = simulate(
        design(table(told, indexes=[index])), Scenario(hours=0.2, seed=1, shards=False, warm=True)
    )
    asked, place = found.patterns[0], _place(found, "shop/by_status", "read")

    assert 0.05 < place.throttled < 0.2
    assert asked.throttled == pytest.approx(1 - (1 - place.throttled) ** 8, rel=0.1)


@pytest.mark.slow
def test_a_key_that_moves_is_measured_where_it_is() -> None:
    """An hour's key lies elsewhere in the next, and what is refused of it counts in all of them."""
    hourly = Shards(by="time", bucket="hour", count=1, of=("at",))
    told = entity(
        "E",
        choice("kind", "a"),
        moment("at"),
        pk="K#{kind}",
        sk="{at}",
        shards=hourly,
        writes=[put(per_second=2_000)],
    )
    place = simulate(design(table(told)), replace(SHORT, hours=2, shards=False)).places[0]

    assert place.throttled > 0.3
    assert place.busiest[0].throttled == pytest.approx(place.throttled, rel=0.05)


@pytest.mark.slow
def test_what_auto_scaling_had_given_is_told_as_it_was_then() -> None:
    """The units in the sentence are those of when it refused, and whether they could have been more is said."""
    fixed = by_status(per_second=400)
    still = replace(
        fixed.tables[0].settings,
        read_units=100,
        write_units=100,
        scaling=Scaling(read_max=1_000, write_max=150),
    )
    told = Design(tables=(replace(fixed.tables[0], settings=still),), views=())
    place = _place(simulate(told, replace(SHORT, shards=False)), "shop")

    assert 100 <= place.units <= 150
    assert (
        "reached its maximum"
        in _place(simulate(told, replace(SHORT, shards=False)), "shop/by_status").diagnosis
    )


def test_a_rate_of_zero_is_listed() -> None:
    """A pattern that is never asked is not forgotten."""
    told = design(
        table(entity("A", text("a"), pk="A#{a}", writes=[put("w", per_second=5), put("never", per_second=0)]))
    )

    assert "Not simulated, rate of 0: A: never." in "\n".join(
        report_lines(simulate(told, replace(SHORT, hours=0.05)))
    )


@pytest.mark.slow
@pytest.mark.parametrize("factor", [250, 400])
def test_a_day_of_a_million_requests_a_second_takes_less_than_a_minute(factor: float) -> None:
    """All that the command does, with a key that is hot all day and the search for its shards, in that time."""
    from time import process_time

    from benchmarks.design import tickets

    began = process_time()
    simulate(tickets(), Scenario(rate_factor=factor, quota=4e6))

    assert process_time() - began < 60


@pytest.mark.parametrize(("sort", "said"), [("", True), ("{name}", False)])
def test_no_split_helps_is_said_of_keys_that_none_helps(sort: str, said: bool) -> None:
    """A hot item cannot be split; a hot collection, whose items are written anywhere in it, can."""
    told = entity(
        "Order",
        text("customer", distinct=1),
        text("name", distinct=100_000),
        pk="U#{customer}",
        sk=sort or "ORDER",
        writes=[update("note", per_second=1_500, peak_per_second=1_500, item_bytes=900)],
    )
    found = simulate(design(table(told)), Scenario(hours=0.5, seed=1, shards=False))
    place = _place(found, "shop")

    assert place.throttled > 0.01
    assert ("Splitting the partition does not help a single key." in place.diagnosis) is said
