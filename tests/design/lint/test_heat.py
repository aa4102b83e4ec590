"""Heat against numbers that were worked out by hand, and against the simulator."""

from __future__ import annotations

from math import ceil

import pytest

from tavola.design.lint import lint
from tavola.design.lint.heat import PartitionHeat, partition_heat
from tavola.design.lint.rates import busiest_share
from tavola.design.lint.rule import LintContext
from tavola.design.simulation import Scenario, simulate
from tavola.model.document import Design, Given, Need, Route, Shards
from tests.design.builders import (
    access,
    choice,
    collection,
    design,
    entity,
    gsi,
    key,
    lsi,
    moment,
    number,
    put,
    query,
    table,
    text,
    update,
)

BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")
HOT = ["hot-partition", "constant-partition-key", "too-few-shards", "time-based-partition-key"]


def _heat(made: Design, name: str, index: str | None = None) -> PartitionHeat:
    subject = LintContext(made)
    home, found = subject.entities_by_name[name]
    its = found.key_on(index)
    assert its is not None
    told = partition_heat(subject, home, found, its)
    assert told is not None
    return told


def _by_status(
    opened: float, asked: float, shards: int | None = None, sorts: str | tuple[str, ...] = "at"
) -> Design:
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW", "OPEN", "WAITING", "DONE", "GONE"), moment("at"), pk="T#{ticket_id}",
                keys=[key(BY_STATUS, "STATUS#{status}", "{at}", shards=shards)],
                patterns=[query("ByStatus", BY_STATUS, "status", sorts, per_second=asked, items=20, item_bytes=900)],
                writes=[
                    put("open", per_second=opened, item_bytes=900),
                    update("status", title="go on", per_second=opened / 10, item_bytes=900),
                ],
                primary={"per_second": 100, "items": 1, "item_bytes": 900},
                items=10_000_000,
            ),
            indexes=[BY_STATUS],
        )
    )  # fmt: skip


def test_new_items_are_in_one_state_and_changes_in_all() -> None:
    """3,000 opened a second are 3,000 units at NEW; 300 changes are two units each, a fifth of them there: 120."""
    told = _heat(_by_status(3_000, 10), "Ticket", "by_status")

    assert told.writes == pytest.approx(3_000 + 300 * 2 / 5)
    assert told.shards_needed("write") == ceil(3_120 / 700)


def test_reads_of_every_shard_are_not_divided() -> None:
    """20 of 900 bytes are 2.5 units; in order, each of five shards is asked for 20: 10,000 questions are 5,000 units at each."""
    for shards in (None, 5):
        told = _heat(_by_status(1, 10_000, shards), "Ticket", "by_status")

        assert told.reads == pytest.approx(10_000 / 5 * 2.5)
        assert told.shards_needed("read") is None
        assert "Shards do not help" in told.describe_remedy("key by more")
        assert "cache" in told.describe_remedy("key by more")


def test_reads_without_an_order_are_shared_down_to_the_least() -> None:
    """Without an order shards share the 20 items: 2,000 questions at one status take 2.5 units of one shard, 1 of five (4 items)."""
    plain = _heat(_by_status(1, 10_000, None, sorts=()), "Ticket", "by_status")
    five = _heat(_by_status(1, 10_000, 5, sorts=()), "Ticket", "by_status")

    assert plain.reads == pytest.approx(5_000)
    assert five.reads == pytest.approx(2_000 * 0.5)
    wanted = plain.shards_needed("read")
    assert wanted is not None
    assert plain.units_per_second("read", wanted) <= 2_100 < plain.units_per_second("read", wanted - 1)


def test_who_knows_the_shard_asks_one() -> None:
    """Where the shard is taken from what is asked by, 10,000 gets of half a unit over 5 shards are 1,000 each."""
    made = design(
        table(
            entity(
                "Page", text("name"), pk="PAGES", sk="{name}", shards=Shards(5, of=("name",)),
                primary={"per_second": 10_000, "items": 1, "item_bytes": 900},
            )
        )
    )  # fmt: skip

    assert _heat(made, "Page").reads == pytest.approx(1_000)


def test_everything_that_reaches_a_partition_is_added_up() -> None:
    """Settings: 100 gets of 0.5, 200 collections of 1.5 (50 of 200 bytes), 300 needs of 2.5 (100), 400 hydrated (10 of 0.5 each)."""
    by_kind = gsi("by_kind", "GSI1PK", "GSI1SK", projection="KEYS_ONLY")
    made = design(
        table(
            entity(
                "Setting", text("name"), text("kind", distinct=3), pk="CONFIG", sk="S#{name}",
                keys=[key(by_kind, "KIND#{kind}", "{name}")],
                patterns=[query("OfKind", by_kind, "kind", "name", per_second=400, items=10, item_bytes=200, hydrate=True)],
                primary={"per_second": 100, "items": 1, "item_bytes": 200},
            ),
            indexes=[by_kind],
            collections=[collection("All", "CONFIG", "Setting", per_second=200, items=50, item_bytes=200)],
            foreign=True,
        ),
        needs=[
            Need("many", "Setting", (), (), access("many", per_second=300, items=100, item_bytes=200),
                 route=Route("query", None, (Given("pk"),))),
            Need("again", "Setting", (), (), access("All", per_second=300, items=100), route=Route("query", None, (Given("pk"),))),
            Need("all of it", "Setting", (), (), access("all of it", per_second=300, items=100), route=Route("scan")),
        ],
    )  # fmt: skip

    assert _heat(made, "Setting").reads == pytest.approx(100 * 0.5 + 200 * 1.5 + 300 * 2.5 + 400 * 10 * 0.5)


def test_entities_of_one_partition_are_told_once_by_the_busiest() -> None:
    """Three kinds of 400, 800 and 300 writes a second in one partition are 1,500, which one finding says, with three shards."""
    made = design(
        table(
            *(
                entity(name, text("id"), pk="EVENTS", sk=f"{name}#{{id}}", writes=[put(f"log {name}", per_second=rate, item_bytes=200)])
                for name, rate in (("A", 400), ("B", 800), ("C", 300))
            )
        )
    )  # fmt: skip

    [found] = lint(made, select=HOT).findings

    assert str(found.place) == "B.Key"
    assert "1,500 write units" in found.message
    assert "A and C" in found.message
    assert found.remedy.startswith(f"Shard the key (shards={ceil(1_500 / 700)})")


def test_other_values_are_other_partitions() -> None:
    """Keys of one outline whose values cannot be the same are not added up, nor are needs that each ask for another value."""
    made = design(
        table(
            *(
                entity(name, text("id"), choice("state", *states), pk="S#{state}", sk=f"{name}#{{id}}",
                       writes=[put(per_second=900, item_bytes=200)])
                for name, states in (("A", ["on"]), ("B", ["off"]))
            ),
            foreign=True,
        ),
        needs=[
            Need(f"those of {name}", name, (), (), access(f"those of {name}", per_second=2_000, items=1, item_bytes=4_096, consistent=True),
                 route=Route("query", None, (Given("pk", "=", {"S": f"S#{state}"}),)))
            for name, state in (("A", "on"), ("B", "off"))
        ],
    )  # fmt: skip

    assert _heat(made, "A").writes == pytest.approx(900)
    assert _heat(made, "A").reads == pytest.approx(2_000)
    assert lint(made, select=HOT).findings == ()


def test_a_local_index_is_in_the_partitions_of_its_table() -> None:
    """600 puts a second of one unit are written to the table and its local index: 1,200 at the one partition."""
    by_time = lsi("by_time", "LSI1SK")
    made = design(
        table(
            entity(
                "Event", text("id"), moment("at"), pk="EVENTS", sk="{id}", keys=[key(by_time, "EVENTS", "{at}")],
                writes=[put(per_second=600, item_bytes=200)],
            ),
            indexes=[by_time],
        )
    )  # fmt: skip

    assert _heat(made, "Event").writes == pytest.approx(1_200)
    assert [str(each.place) for each in lint(made, select=HOT).findings] == ["Event.Key"]


def test_a_skew_makes_the_busiest_busier_in_an_index_too() -> None:
    """Of 100 shops by Zipf's law with exponent 1 the first has its share of 10,000 updates, two units each."""
    by_shop = gsi("by_shop", "GSI1PK", "GSI1SK")
    made = design(
        table(
            entity(
                "Order", text("order_id"), text("shop", distinct=100), number("total"), pk="O#{order_id}",
                keys=[key(by_shop, "SHOP#{shop}", "{total}")],
                writes=[update("total", per_second=10_000, item_bytes=200, skew=1.0)],
            ),
            indexes=[by_shop],
        )
    )  # fmt: skip

    assert _heat(made, "Order", "by_shop").writes == pytest.approx(20_000 * busiest_share(100, 1.0))


@pytest.mark.parametrize("shards", [None, 2])
def test_the_simulator_sees_the_same_heat(shards: int | None) -> None:
    """The busiest key of the index takes in a simulation what was added up here, and throttles; with what is advised it does not."""
    even = Scenario(hours=0.5, skew=0.0, peak=1.0, warm=True, shards=False)
    made = _by_status(3_000, 10, shards)
    told = _heat(made, "Ticket", "by_status")
    wanted = told.shards_needed("write")
    assert wanted is not None

    for design_, hot in ((made, True), (_by_status(3_000, 10, wanted), False)):
        place = next(
            each
            for each in simulate(design_, even).places
            if each.index == "by_status" and each.access == "write"
        )
        count = (shards or 1) if hot else wanted
        assert place.busiest[0].mean == pytest.approx(told.units_per_second("write", count), rel=0.02)
        assert (place.by_partitions > 0.05) is hot
        assert bool(lint(design_, select=HOT).findings) is hot
