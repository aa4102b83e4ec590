"""The patterns of the document on common patterns: rows C1 to C5, and the organisation of row P1."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tavola import AsyncConnection, Attr, Entity, ModelError, PrimaryKey, design_of, key_uses, to_item
from tavola.apps.gallery import SAMPLES, catalogue
from tavola.apps.gallery.catalogue import Catalogue, Product
from tavola.apps.gallery.customer_orders import CustomerOrder
from tavola.apps.gallery.metrics import METRIC, POINTS, START, Point
from tavola.apps.gallery.social import Follow, Social, follows
from tests.apps.conftest import Run
from tests.apps.gallery.conftest import RunDemonstration


def test_p01_a_company_with_its_users_is_one_query(run_demonstration: RunDemonstration) -> None:
    """One request returns the company and all its users, in the order of the collection."""
    small, large = run_demonstration("organisation", "together")

    assert [type(each).__name__ for each in small.items] == ["Org", "OrgUser", "OrgUser"]
    assert len(large.items) == 61
    assert large.request.count("Query on ") == 1


def test_p01_the_filter_trap_shows_its_cost(run_demonstration: RunDemonstration) -> None:
    """With a filter, sixty items are read and paid for to return six; by key, only six are read."""
    trap, design = run_demonstration("organisation", "filter-trap")

    assert {user.user_id for user in trap.items} == {user.user_id for user in design.items}
    assert (trap.scanned, design.scanned) == (60, 6)
    assert trap.reads >= 8 * design.reads
    assert trap.usd_per_million is not None
    assert design.usd_per_million is not None
    assert trap.usd_per_million > design.usd_per_million


def test_a_status_change_moves_a_user_in_the_index(run_demonstration: RunDemonstration) -> None:
    """The index follows the status in the same write, and the demonstration restores the item."""
    before, _, after = run_demonstration("organisation", "leaves")

    assert len(before.items) == len(after.items) + 1
    assert run_demonstration("organisation", "leaves")[0].items == before.items


def test_c01_follows_and_followers(run_demonstration: RunDemonstration) -> None:
    """Follows and followers of a user are one query each, in pages."""
    user, out, first, rest = run_demonstration("social", "both-sides")

    assert [each.user_id for each in user.items] == ["user-02"]
    assert [edge.followed for edge in out.items] == ["user-04", "user-06", "user-08"]
    assert [edge.follower for edge in (*first.items, *rest.items)] == ["user-01", "user-02", "user-04"]
    assert first.cursor is not None
    assert rest.cursor is None


def test_wrong_18_both_directions_agree(run_demonstration: RunDemonstration) -> None:
    """Pitfall 18: after a follow and after an unfollow, both directions return the same pairs."""
    there, torn, gone, torn_then = run_demonstration("social", "agreement")

    assert there.items == (13, 13)
    assert gone.items == (12, 12)
    assert torn.items == torn_then.items == ()


def test_wrong_18_any_writer_of_an_edge_keeps_both_sides(db: AsyncConnection, run: Run[Any]) -> None:
    """Pitfall 18: an edge written without the pattern is also found by the followed user, because it is one item."""
    run(db.create_tables(Social))
    edge = Follow(follower="user-90", followed="user-91", since=date(2026, 1, 1))
    run(db.put(edge))

    assert run(follows(db).into("user-91")).items == (edge,)
    run(db.delete(edge))
    assert run(follows(db).into("user-91")).items == ()


def test_c01_an_organisation_chart_is_walked_and_read(run_demonstration: RunDemonstration) -> None:
    """Edges are traversed down and up; a hierarchy returns a branch with one query, and a branch can be moved."""
    below, above, two = run_demonstration("org-chart", "walks")
    europe, italy, children, way = run_demonstration("org-chart", "branches")
    moved, asia, back = run_demonstration("org-chart", "move")

    assert below.items == ((1, "lead-11"), (1, "lead-12"), (2, "eng-111"), (2, "eng-112"))
    assert above.items == ((1, "lead-11"), (2, "head-01"), (3, "head-00"))
    assert {depth for depth, _ in two.items} == {1, 2}
    assert len(europe.items) == 4
    assert [unit.path for unit in italy.items] == ["europe/italy/milan", "europe/italy/rome"]
    assert [unit.path for unit in children.items] == ["europe/italy", "europe/italy-north"]
    assert [unit.path for unit in way.items] == ["europe", "europe/italy"]
    assert moved.items[0].nodes == 3
    assert [unit.path for unit in asia.items][:3] == ["asia/italy", "asia/italy/milan", "asia/italy/rome"]
    assert [unit.path for unit in back.items] == ["asia/japan"]


def test_c01_a_bill_of_materials(run_demonstration: RunDemonstration) -> None:
    """Quantities multiply along each path and add up over all paths; uses are found upwards; a cycle is reported."""
    one, ten, _ = run_demonstration("bill-of-materials", "explosion")
    bolts, spokes = run_demonstration("bill-of-materials", "where-used")
    [cycle] = run_demonstration("bill-of-materials", "cycle")

    assert dict(one.items) == {
        "wheel": 2, "frame": 1, "bolt": 8, "spoke": 64, "tube": 3, "glue-litre": Decimal("0.05"),
    }  # fmt: skip
    assert dict(ten.items)["glue-litre"] == Decimal("0.5")
    assert [edge.whole for edge in bolts.items] == ["bicycle", "wheel"]
    assert spokes.items == ((1, "wheel"), (2, "bicycle"), (2, "tricycle"))
    assert "bicycle → frame → tube → bicycle" in cycle.error


def test_c02_a_composite_sort_key_at_each_level(run_demonstration: RunDemonstration) -> None:
    """All orders, those of a day, and those of a day and a status are one query each that reads nothing else."""
    everything, day, shipped, january, one, skipped = run_demonstration("customer-orders", "levels")

    assert [len(step.items) for step in (everything, day, shipped, january)] == [6, 4, 3, 5]
    assert all(step.scanned == len(step.items) for step in (everything, day, shipped, january))
    assert {order.status for order in shipped.items} == {"shipped"}
    assert [order.order_id for order in one.items] == ["order-456"]
    assert "placed_on must be fixed" in skipped.error


def test_c02_a_changed_status_changes_the_level(run_demonstration: RunDemonstration) -> None:
    """A shipped order is no longer among the pending orders of its day."""
    pending, shipped = run_demonstration("customer-orders", "status")

    assert not pending.items
    assert "order-789" in {order.order_id for order in shipped.items}
    assert len(run_demonstration("customer-orders", "levels")[2].items) == 3  # put back


def test_wrong_19_a_delimiter_never_merges_keys(run_demonstration: RunDemonstration) -> None:
    """Pitfall 19: "on#hold" with "1" and "on" with "hold#1" are different keys, and each status finds its own order."""
    keys, both, on, on_hold = run_demonstration("customer-orders", "delimiters")

    assert len(set(keys.items)) == 2
    assert len(both.items) == 2
    assert [order.order_id for order in on.items] == ["hold#1"]
    assert [order.order_id for order in on_hold.items] == ["1"]


@pytest.mark.parametrize(
    "pair", [(("a#b", "c"), ("a", "b#c")), (("a#", "b"), ("a", "#b")), (("#", "##"), ("##", "#"))]
)
def test_wrong_19_no_two_pairs_share_a_key(pair: tuple[tuple[str, str], tuple[str, str]]) -> None:
    """Pitfall 19: two different pairs always have different keys."""
    keys = {
        to_item(
            CustomerOrder(
                customer_id="c", order_id=order, placed_on=date(2026, 1, 1), status=status, total=Decimal(1)
            )
        )["GSI1SK"]["S"]
        for status, order in pair
    }

    assert len(keys) == 2


def test_wrong_13_totals_are_exact(run_demonstration: RunDemonstration) -> None:
    """Pitfall 13: 0.10 plus 0.20 is 0.30, and a total of 37 digits is stored exactly."""
    _, total, _, large = run_demonstration("customer-orders", "sums")

    assert total.items == (Decimal("100.29"),)
    assert large.items == (Decimal("12345678901234567890123456789012345.67"),)


def test_wrong_13_a_float_field_is_refused() -> None:
    """Pitfall 13: a design that stores a total as a float is refused at its declaration."""
    with pytest.raises(ModelError, match="float"):

        class Loose(Entity, table=Catalogue):
            loose_id: Attr[str]
            total: Attr[float]

            class Key(PrimaryKey["Loose"], pk="LOOSE#{loose_id}", sk="LOOSE"):
                loose_id: str


def test_c03_one_index_serves_three_entities(run_demonstration: RunDemonstration) -> None:
    """A user by email, orders of a status and products of a category come from one index and never mix."""
    user, pending, products = run_demonstration("catalogue", "overloading")

    assert [type(each).__name__ for each in user.items] == ["Buyer"]
    assert {type(each).__name__ for each in pending.items} == {"Purchase"}
    assert {type(each).__name__ for each in products.items} == {"Product"}
    days = [order.placed_on for order in pending.items]
    assert days == sorted(days, reverse=True)
    assert all("IndexName: GSI1" in step.request for step in (user, pending, products))


def test_c03_the_overview_lists_each_entity_of_the_index() -> None:
    """The overview of the design has a row for each entity of the overloaded index, with its templates."""
    table = design_of(catalogue).tables[0]

    assert [(use.entity, use.partition, use.title) for use in key_uses(table, "GSI1")] == [
        ("Buyer", ("EMAIL#{email}",), "A user by email"),
        ("Purchase", ("STATUS#{status}#{shard}",), "Orders of a status by day"),
        ("Product", ("CATEGORY#{category}",), "Products of a category"),
    ]
    assert [use.included for use in key_uses(table, "GSI2")] == ["featured is True"]


def test_c04_every_sharding_returns_the_same_points(run_demonstration: RunDemonstration) -> None:
    """By hash, random, by time and combined: the same points, in order, once each."""
    steps = run_demonstration("metrics", "scatter-gather")
    answers = [[point.point_id for point in step.items] for step in steps]

    assert answers[0] == [f"p{number:04}" for number in range(20, 29)]
    assert answers[1] == answers[2] == answers[3] == answers[0]
    asks = [step.request.count("more concurrently") for step in steps]
    assert asks[0] == asks[1] == 1
    assert asks[2] == 0  # one day, one partition: no other is queried


def test_c04_pages_run_over_all_shards(run_demonstration: RunDemonstration) -> None:
    """One cursor pages through all shards, newest first, without gaps or duplicates."""
    newest = [f"p{number:04}" for number in reversed(range(POINTS))]

    for step in run_demonstration("metrics", "paging"):
        assert list(step.items) == newest, step.title


def test_c04_shards_are_even_and_counted(run_demonstration: RunDemonstration) -> None:
    """Hash and random sharding use all eight shards; time shards require a range with both ends."""
    hashed, drawn, advice, endless = run_demonstration("metrics", "balance")

    assert sum(hashed.items) == sum(drawn.items) == POINTS
    assert len(hashed.items) == len(drawn.items) == 8
    assert min(hashed.items) > 0
    assert advice.items[0] == 6
    assert "at.between(start, end)" in endless.error


def test_c04_points_of_one_moment_are_separate(db: AsyncConnection, run: Run[Any]) -> None:
    """Two points of the same microsecond are both stored, whatever their shards."""
    run(SAMPLES["metrics"].load(db))
    at = datetime(2026, 1, 20, 12, tzinfo=UTC)
    twins = [
        Point(point_id=f"twin-{n}", metric=METRIC, day=at.date(), at=at, value=Decimal(n)) for n in range(5)
    ]
    run(db.put_many(twins))

    async def found() -> list[list[str]]:
        late = START + timedelta(days=4)
        questions = (
            Point.ByHash(metric=METRIC).at.gte(late),
            Point.ByChance(metric=METRIC).at.gte(late),
            Point.ByTime(metric=METRIC).at.between(late, late + timedelta(days=3)),
        )
        return [[point.point_id async for point in await db.query(each)] for each in questions]

    assert run(found()) == [[twin.point_id for twin in twins]] * 3


def test_c05_products_enter_and_leave_the_sparse_index(run_demonstration: RunDemonstration) -> None:
    """A product is in the index from the write that features it until the write that does not."""
    before, during, after = run_demonstration("catalogue", "featured")

    assert "product-101" not in {product.product_id for product in before.items}
    assert {product.product_id for product in during.items} - {
        product.product_id for product in before.items
    } == {"product-101"}
    assert after.items == before.items


def test_c05_an_unfeatured_product_has_no_index_key() -> None:
    """An item outside the index has no attributes of its key, so it costs nothing there."""
    plain = Product(product_id="p", category="toys", price=Decimal(1))

    assert "GSI2PK" not in to_item(plain)
    assert to_item(plain.model_copy(update={"featured": True}))["GSI2PK"] == {"S": "FEATURED"}
