"""Heat: keys are spread exactly where a partition would get more than it takes, and the simulation bears it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tavola.design.simulation import Scenario, simulate
from tavola.design.solver import SolvedDesign, Style, solve
from tavola.model.document import AccessPattern, EntityDesign, Given, Need, Shards, TableDesign
from tests.design.builders import choice, date, design, moment, text
from tests.design.solver.test_questions import asked, kept, put
from tests.design.solver.test_solving import given

CALM = Scenario(
    hours=1, skew=0.0, peak=1.0, shards=False
)  # all values alike, and rates that are peaks already


def reading(rate: float, sensors: int | None = 10) -> EntityDesign:
    """Readings of so many sensors, so many a second."""
    sensor = replace(text("sensor_id"), distinct=sensors)
    return kept("Reading", sensor, moment("at"), text("value"), writes=[put(rate)], items=100_000_000)


ONE = Need("reading", "Reading", ("sensor_id", "at"), single=True)


def stretch(rate: float = 100) -> Need:
    """A stretch of a sensor's readings."""
    return asked("stretch", "Reading", ("sensor_id", Given("at", "between")), items=500, per_second=rate)


def shards(found: SolvedDesign, name: str = "Reading", index: str | None = None) -> int:
    """Over how many shards an entity is spread, in its table or an index."""
    (entity,) = [e for table in found.design.tables for e in table.entities if e.name == name]
    key = entity.key_on(index)
    assert key is not None
    return 1 if key.shards is None else key.shards.count


def refused(found: SolvedDesign) -> float:
    """The share of requests that the simulation refuses, once partitions that can be split have been."""
    result = simulate(found.design, CALM)
    half = len(result.requested) // 2
    return sum(result.refused[half:]) / sum(result.requested[half:])


@pytest.mark.parametrize("style", ["auto", "native", "overloaded"])
def test_a_table_that_is_written_too_fast_is_spread_whatever_the_reads_cost(style: Style) -> None:
    """2,000 writes a second for each sensor: what throttles is no candidate, however much cheaper it is."""
    found = solve(design(views=[reading(20_000)], needs=[ONE, stretch()]), style=style)

    assert shards(found) == 3
    assert found.choices[0].pattern == "Composite Key + Sharding"
    assert refused(found) < 0.001


@pytest.mark.parametrize(("rate", "count"), [(9_900, 1), (10_100, 2), (40_000, 6)])
def test_shards_begin_where_a_partition_ends(rate: float, count: int) -> None:
    """1,000 writes a second and partition: at the bound there are none, above it as many as leave some room."""
    found = solve(design(views=[reading(rate)], needs=[ONE, stretch(1)]))

    assert shards(found) == count
    assert refused(found) < 0.001


def test_the_same_without_shards_throttles() -> None:
    """Planted: the design that was chosen once, with the shards taken off, is refused by the simulation."""
    found = solve(design(views=[reading(20_000)], needs=[ONE, stretch()]))
    (table,) = found.design.tables
    hot = replace(found, design=replace(found.design, tables=(unsharded(table),)))

    assert refused(hot) > 0.2


def unsharded(table: TableDesign) -> TableDesign:
    """The table with one partition for each sensor."""
    told = solve(design(views=[reading(1)], needs=[ONE, stretch()]), style="overloaded").design.tables[0]
    (entity,) = table.entities
    return replace(told, entities=(replace(told.entities[0], writes=entity.writes),))


def test_a_key_that_tells_one_item_is_never_spread() -> None:
    """Each reading has a partition of its own, in the table and in an index by another identity."""
    alone = solve(
        design(views=[reading(20_000)], needs=[asked("one", "Reading", ("sensor_id", "at"), single=True)])
    )
    order = kept(
        "Order",
        replace(text("order_id"), distinct=50),
        replace(text("code"), distinct=50),
        writes=[put(90_000)],
    )
    needs = [asked("order", "Order", "order_id", single=True), asked("by code", "Order", "code", single=True)]
    both = solve(design(views=[order], needs=needs))

    assert shards(alone) == 1
    assert shards(both, "Order") == 1
    assert shards(both, "Order", "by_code") == 1


def test_a_moment_has_many_values_and_a_day_one_at_a_time() -> None:
    """An index by a time is written all over; one by a day where the day is."""
    point = kept("Point", text("pid"), moment("at"), date("day"), writes=[put(6_000)])
    needs = [
        asked("point", "Point", "pid", single=True),
        asked("of a moment", "Point", "at"),
        asked("of a day", "Point", "day", "at", items=20),
    ]
    found = solve(design(views=[point], needs=needs))

    assert shards(found, "Point", "of_a_moment") == 1
    assert shards(found, "Point", "of_a_day") == 9


def test_large_answers_are_spread_and_small_ones_are_not_cured_by_it() -> None:
    """Each of many shards reads its part of a large answer; of a small one each reads as much as one would."""
    thing = kept("Thing", text("tid"), choice("status", "A", "B"), text("body"), writes=[put(1)])
    one = asked("thing", "Thing", "tid", single=True)
    large = solve(
        design(
            views=[thing],
            needs=[one, asked("some", "Thing", "status", items=400, per_second=400)],
        )
    )
    small = solve(
        design(views=[thing], needs=[one, asked("few", "Thing", "status", items=1, per_second=20_000)])
    )

    assert shards(large, "Thing", "some") > 1
    assert shards(small, "Thing", "few") == 1
    assert any(finding.rule == "hot-partition" for finding in small.findings)


def test_what_is_fetched_together_cannot_be_spread_and_that_is_said() -> None:
    """A collection is one partition; the note names it and what to do."""
    room = kept("Room", replace(text("room_id"), distinct=5), writes=[put(1)])
    message = kept("Message", replace(text("room_id"), distinct=5), moment("at"), writes=[put(20_000)])
    needs = [
        asked("room", "Room", "room_id", single=True),
        asked("message", "Message", ("room_id", "at"), single=True),
        asked("page", ("Room", "Message"), "room_id", items=20),
    ]
    found = solve(design(views=[room, message], needs=needs))

    assert any("Message needs" in note and "read them separately" in note for note in found.notes)


def test_shards_in_a_table_of_several_entities_have_a_reason_of_their_own() -> None:
    """The table's choice says why the entities are together, and another one why a key is spread."""
    room = kept("Room", replace(text("room_id"), distinct=5), writes=[put(1)])
    message = kept("Message", replace(text("room_id"), distinct=5), moment("at"), writes=[put(20_000)])
    needs = [
        asked("room", "Room", "room_id", single=True),
        asked("message", "Message", ("room_id", "at"), single=True),
        asked("list", "Message", "room_id", "at", items=20),
    ]
    found = solve(design(views=[room, message], needs=needs))

    assert shards(found, "Message") == 6
    assert [choice.pattern for choice in found.choices] == ["Shared Table", "Composite Key + Sharding"]
    assert "room_id of Message" in found.choices[1].sentence
    assert refused(found) < 0.001


def test_heat_of_the_table_itself_is_said_where_nobody_knows_how_many_values_there_are() -> None:
    """As of an index: no shards are guessed, and the note says what to declare."""
    found = solve(design(views=[reading(20_000, None)], needs=[ONE, stretch()]))

    assert shards(found) == 1
    assert any(
        "Readings receives 20,000 write units per second" in note and "distinct=" in note
        for note in found.notes
    )


def test_shards_that_somebody_declared_stay_where_their_heat_is_not_told() -> None:
    """The gallery's metrics say no number of metrics; their eight shards are no saving to be made."""
    found = solve(given("metrics"))
    (entity,) = found.design.tables[0].entities
    counts = [key.shards for key in entity.keys]

    assert Shards(8) in counts
    assert any("was partitioned by the day of at" in note for note in found.notes)


def test_a_local_index_and_shards_do_not_go_together() -> None:
    """A question that must see every write, of a partition that must be spread: refused in a sentence."""
    by_value: Any = asked("by value", "Reading", "sensor_id", "value", consistent=True)
    with pytest.raises(Exception, match="receive so many writes that they must be sharded"):
        solve(design(views=[reading(20_000)], needs=[ONE, stretch(), by_value]))


def test_the_peak_decides() -> None:
    """A mean that a partition bears, and a peak that it does not."""
    calm = reading(5_000)
    writes = tuple(replace(write, peak_per_second=20_000) for write in calm.writes)
    found = solve(design(views=[replace(calm, writes=writes)], needs=[ONE, stretch(1)]))

    assert shards(found) == 3
    assert AccessPattern("stretch", per_second=1).peak_per_second is None
