"""Access patterns as a workload: where each request lands, and what is said where the design says nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tavola.design.cost.capacity import write_pattern_units
from tavola.design.simulation import Scenario, SimulationError, build_workload
from tavola.design.simulation.workload import RequestFlow, Workload
from tavola.model.document import Design
from tests.design.builders import choice, design, entity, gsi, key, moment, put, query, table, text, update
from tests.design.simulation.designs import BY_STATUS, by_status

SCENARIO = Scenario(hours=1.0)


def _flow(workload: Workload, pattern: str) -> RequestFlow:
    return next(flow for flow in workload.flows if flow.pattern == pattern)


def test_a_write_draws_a_key_in_the_table_and_one_in_the_index() -> None:
    """A new ticket lies in a partition of its own, and its entry in that of its status, at the end of it."""
    workload = build_workload(by_status(skew=0.5), SCENARIO)
    own, entry = _flow(workload, "Ticket: put it").draws

    assert (own.skew, own.arms[0].station, own.arms[0].access) == (0.0, 0, "write")
    assert workload.keys[own.keys].count == 10_000_000
    assert (entry.arms[0].station, entry.arms[0].spread) == (1, "rising")
    assert workload.keys[entry.keys].count == 5
    assert workload.keys[entry.keys].label(0) == "STATUS#NEW"


def test_an_entry_that_moves_is_charged_at_the_old_key_and_at_the_new() -> None:
    """A change of status takes a unit from each of two partitions of the index."""
    workload = build_workload(by_status(), SCENARIO)
    _, old, new = _flow(workload, "Ticket: change it").draws

    assert old == new
    assert old.arms[0].units == 1.0


def test_shards_multiply_keys_and_queries() -> None:
    """A sharded key has so many times the keys, and whoever reads it asks each shard."""
    workload = build_workload(by_status(shards=4), SCENARIO)
    read = _flow(workload, "Ticket.ByStatus")

    assert workload.keys[read.draws[0].keys].shards == 4
    assert read.fan == 4
    assert workload.keys[read.draws[0].keys].label(5) == "STATUS#OPEN shard 1"


def test_writes_of_one_transaction_are_one_flow() -> None:
    """What is written together passes or fails together."""
    one = entity(
        "Order",
        text("order_id"),
        pk="ORDER#{order_id}",
        writes=[put("order it", per_second=5, together="buy")],
    )
    two = entity("Line", text("order_id"), text("line"), pk="ORDER#{order_id}", sk="{line}",
                 writes=[put("add a line", per_second=5, together="buy")])  # fmt: skip
    workload = build_workload(design(table(one, two)), SCENARIO)

    assert len(workload.flows) == 1
    assert workload.flows[0].pattern == "Order: order it + Line: add a line"
    assert len(workload.flows[0].draws) == 2


def test_a_transaction_of_many_items_is_asked_as_often_as_it_is_made() -> None:
    """An order with five lines is one request of six items, and not five."""
    order = entity("Order", text("order_id"), pk="ORDER#{order_id}",
                   writes=[put("order", per_second=100, item_bytes=900, together="buy", transactional=True)])  # fmt: skip
    line = entity("Line", text("order_id"), text("line"), pk="ORDER#{order_id}", sk="{line}",
                  writes=[put("lines", per_second=100, item_bytes=900, together="buy", items=5, transactional=True)])  # fmt: skip
    workload = build_workload(design(table(order, line)), SCENARIO)
    flow = workload.flows[0]

    assert float(workload.rates.means()[0]) == pytest.approx(200, rel=0.01)  # around the peak, twice the mean
    assert sum(arm.units for draw in flow.draws for arm in draw.arms) == 12


def test_keys_of_one_template_are_the_tables_own_and_of_their_own_shards() -> None:
    """Two tables with the same template have keys of their own; so have two indexes with other shards."""
    many, few = (
        table(
            entity(name, text("id"), text("x"), pk="U#{id}", items=items, writes=[update("x", per_second=5)]),
            label=label,
        )
        for name, items, label in (("U", 10**6, "A"), ("V", 1, "B"))
    )
    counts = [
        {keys.table: keys.count for keys in build_workload(design(*order), SCENARIO).keys}
        for order in ((many, few), (few, many))
    ]

    assert counts[0] == counts[1] == {"a": 10**6, "b": 1}


def test_an_index_with_its_tables_partition_key_is_met_at_the_same_key() -> None:
    """A hot customer is hot in the table and in the index at once, by the same requests."""
    index = gsi("by_time", "customer_id", "at")
    told = entity(
        "Visit", text("customer_id", distinct=50), text("visit"), moment("at"), pk="customer_id", sk="visit",
        keys=[key(index, "customer_id", "at")], writes=[put(per_second=5)],
    )  # fmt: skip
    workload = build_workload(design(table(told, indexes=[index])), SCENARIO)

    assert [len(draw.arms) for draw in workload.flows[0].draws] == [2]


def test_what_nobody_counted_is_said_with_what_to_declare() -> None:
    """Guesses of how many values there are, of peaks and of skew are told."""
    told = entity("Visit", text("customer_id"), moment("at"), pk="CUSTOMER#{customer_id}", sk="{at}",
                  writes=[put(per_second=5)])  # fmt: skip
    sentences = " ".join(build_workload(design(table(told)), SCENARIO).assumptions)

    assert "1,000 distinct values each of customer_id in CUSTOMER#{customer_id}" in sentences
    assert "Peak traffic is 2 times the average" in sentences
    assert "exponent 0.8" in sentences


def test_patterns_without_a_rate_are_left_out_and_named() -> None:
    """What says no rate is not simulated, and listed."""
    told = by_status()
    ticket = told.tables[0].entities[0]
    quiet = replace(ticket, patterns=(query("ByStatus", BY_STATUS, "status", "created_at", items=20),))
    workload = build_workload(Design((replace(told.tables[0], entities=(quiet,)),), ()), SCENARIO)

    assert "Ticket.ByStatus" in workload.without_rates
    assert all(flow.pattern != "Ticket.ByStatus" for flow in workload.flows)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (design(), "has no table"),
        (design(table(entity("A", text("a"), pk="A#{a}"))), "per_second"),
        (
            design(table(entity("A", text("a"), pk="A#{a}", writes=[put("w")]))),
            "no access pattern has a rate.*A: w",
        ),
        (design(table(entity("A", text("a"), pk="A#{a}", writes=[put("w", per_second=0)]))), "0"),
    ],
    ids=["empty", "nothing asked", "no rates", "rates of zero"],
)
def test_a_design_without_traffic_is_refused_with_what_to_give(told: Design, sentence: str) -> None:
    """There is nothing to simulate without a rate, and the sentence names the patterns that lack one."""
    with pytest.raises(SimulationError, match=sentence):
        build_workload(told, SCENARIO)


def test_local_indexes_are_their_tables() -> None:
    """A local index has no units of its own, and keeps item collections whole."""
    from tests.design.builders import lsi

    local = lsi("by_size", "size")
    told = entity(
        "File", text("folder"), text("name"), text("size"), choice("kind", "a", "b"), pk="folder", sk="name",
        keys=[key(local, "folder", "size")], writes=[put(per_second=5, item_bytes=500), update("size", per_second=1)],
    )  # fmt: skip
    workload = build_workload(design(table(told, indexes=[local])), SCENARIO)

    assert [station.name for station in workload.stations] == ["shop"]
    assert workload.stations[0].whole_collections
    assert workload.flows[0].draws[0].arms[0].units == 2.0


def test_a_write_that_must_know_its_item_reads_it_first() -> None:
    """An update of one part of an index key reads the item, as the cost has it: a request of its own."""
    index = gsi("by_state", "GSI1PK")
    ticket = entity(
        "Ticket",
        text("id"),
        text("owner", distinct=50),
        choice("state", "NEW", "DONE"),
        pk="T#{id}",
        keys=[key(index, "{owner}#{state}")],
        writes=[update("state", per_second=90, item_bytes=5_000)],
    )
    told = design(table(ticket, indexes=[index]))
    units = write_pattern_units(told.tables[0], told.tables[0].entities[0], ticket.writes[0])[0]
    wrote, read = build_workload(told, SCENARIO).flows

    assert units.read == 2.0
    assert [(arm.access, arm.units) for draw in read.draws for arm in draw.arms] == [("read", units.read)]
    assert wrote.pattern == read.pattern
