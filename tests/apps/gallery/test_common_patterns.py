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
from tests.apps.gallery.conftest import Shown


def test_p01_a_company_with_its_users_is_one_query(shown: Shown) -> None:
    """The company and all its users come with one request, in the order of the collection."""
    small, large = shown("organisation", "together")

    assert [type(each).__name__ for each in small.found] == ["Org", "OrgUser", "OrgUser"]
    assert len(large.found) == 61
    assert large.request.count("Query on ") == 1


def test_p01_the_filter_trap_shows_its_cost(shown: Shown) -> None:
    """With a filter sixty items are read and paid to return six; by the key, six are."""
    trap, design = shown("organisation", "filter-trap")

    assert {user.user_id for user in trap.found} == {user.user_id for user in design.found}
    assert (trap.scanned, design.scanned) == (60, 6)
    assert trap.reads >= 8 * design.reads
    assert trap.usd_per_million is not None
    assert design.usd_per_million is not None
    assert trap.usd_per_million > design.usd_per_million


def test_a_status_change_moves_a_user_in_the_index(shown: Shown) -> None:
    """The index follows the status in the same write, and the demonstration leaves things as they were."""
    before, _, after = shown("organisation", "leaves")

    assert len(before.found) == len(after.found) + 1
    assert shown("organisation", "leaves")[0].found == before.found


def test_c01_follows_and_followers(shown: Shown) -> None:
    """Whom a user follows and who follows a user are one query each, in pages."""
    user, out, first, rest = shown("social", "both-sides")

    assert [each.user_id for each in user.found] == ["user-02"]
    assert [edge.followed for edge in out.found] == ["user-04", "user-06", "user-08"]
    assert [edge.follower for edge in (*first.found, *rest.found)] == ["user-01", "user-02", "user-04"]
    assert first.cursor is not None
    assert rest.cursor is None


def test_wrong_18_both_directions_agree(shown: Shown) -> None:
    """Pitfall 18: after a follow and after it is taken back, both sides tell the same pairs."""
    there, torn, gone, torn_then = shown("social", "agreement")

    assert there.found == (13, 13)
    assert gone.found == (12, 12)
    assert torn.found == torn_then.found == ()


def test_wrong_18_any_writer_of_an_edge_keeps_both_sides(db: AsyncConnection, run: Run[Any]) -> None:
    """Pitfall 18: also an edge that is put past the pattern is found by the followed, for it is one item."""
    run(db.create_tables(Social))
    edge = Follow(follower="user-90", followed="user-91", since=date(2026, 1, 1))
    run(db.put(edge))

    assert run(follows(db).into("user-91")).items == (edge,)
    run(db.delete(edge))
    assert run(follows(db).into("user-91")).items == ()


def test_c01_an_organisation_chart_is_walked_and_read(shown: Shown) -> None:
    """Edges are walked down and up; a hierarchy gives a branch with one query, and a branch can be moved."""
    below, above, two = shown("org-chart", "walks")
    europe, italy, children, way = shown("org-chart", "branches")
    moved, asia, back = shown("org-chart", "move")

    assert below.found == ((1, "lead-11"), (1, "lead-12"), (2, "eng-111"), (2, "eng-112"))
    assert above.found == ((1, "lead-11"), (2, "head-01"), (3, "head-00"))
    assert {depth for depth, _ in two.found} == {1, 2}
    assert len(europe.found) == 4
    assert [unit.path for unit in italy.found] == ["europe/italy/milan", "europe/italy/rome"]
    assert [unit.path for unit in children.found] == ["europe/italy", "europe/italy-north"]
    assert [unit.path for unit in way.found] == ["europe", "europe/italy"]
    assert moved.found[0].nodes == 3
    assert [unit.path for unit in asia.found][:3] == ["asia/italy", "asia/italy/milan", "asia/italy/rome"]
    assert [unit.path for unit in back.found] == ["asia/japan"]


def test_c01_a_bill_of_materials(shown: Shown) -> None:
    """Quantities multiply along each way and add up; where a part is used is asked upwards; a cycle is named."""
    one, ten, _ = shown("bill-of-materials", "explosion")
    bolts, spokes = shown("bill-of-materials", "where-used")
    [cycle] = shown("bill-of-materials", "cycle")

    assert dict(one.found) == {
        "wheel": 2, "frame": 1, "bolt": 8, "spoke": 64, "tube": 3, "glue-litre": Decimal("0.05"),
    }  # fmt: skip
    assert dict(ten.found)["glue-litre"] == Decimal("0.5")
    assert [edge.whole for edge in bolts.found] == ["bicycle", "wheel"]
    assert spokes.found == ((1, "wheel"), (2, "bicycle"), (2, "tricycle"))
    assert "bicycle → frame → tube → bicycle" in cycle.refused


def test_c02_a_composite_sort_key_at_each_level(shown: Shown) -> None:
    """All orders, those of a day, and those of a day and a status are one query each, and read nothing else."""
    everything, day, shipped, january, one, skipped = shown("customer-orders", "levels")

    assert [len(step.found) for step in (everything, day, shipped, january)] == [6, 4, 3, 5]
    assert all(step.scanned == len(step.found) for step in (everything, day, shipped, january))
    assert {order.status for order in shipped.found} == {"shipped"}
    assert [order.order_id for order in one.found] == ["order-456"]
    assert "placed_on is fixed" in skipped.refused


def test_c02_a_changed_status_changes_the_level(shown: Shown) -> None:
    """An order that is shipped is no longer among the pending ones of its day."""
    pending, shipped = shown("customer-orders", "status")

    assert not pending.found
    assert "order-789" in {order.order_id for order in shipped.found}
    assert len(shown("customer-orders", "levels")[2].found) == 3  # put back


def test_wrong_19_a_delimiter_never_merges_keys(shown: Shown) -> None:
    """Pitfall 19: "on#hold" with "1" and "on" with "hold#1" are two keys, and each status finds its own order."""
    keys, both, on, on_hold = shown("customer-orders", "delimiters")

    assert len(set(keys.found)) == 2
    assert len(both.found) == 2
    assert [order.order_id for order in on.found] == ["hold#1"]
    assert [order.order_id for order in on_hold.found] == ["1"]


@pytest.mark.parametrize(
    "pair", [(("a#b", "c"), ("a", "b#c")), (("a#", "b"), ("a", "#b")), (("#", "##"), ("##", "#"))]
)
def test_wrong_19_no_two_pairs_share_a_key(pair: tuple[tuple[str, str], tuple[str, str]]) -> None:
    """Pitfall 19: whatever the parts are, two different pairs are two different keys."""
    keys = {
        to_item(
            CustomerOrder(
                customer_id="c", order_id=order, placed_on=date(2026, 1, 1), status=status, total=Decimal(1)
            )
        )["GSI1SK"]["S"]
        for status, order in pair
    }

    assert len(keys) == 2


def test_wrong_13_totals_are_exact(shown: Shown) -> None:
    """Pitfall 13: 0.10 and 0.20 are 0.30, and a total of 37 digits comes back as it was."""
    _, total, _, large = shown("customer-orders", "sums")

    assert total.found == (Decimal("100.29"),)
    assert large.found == (Decimal("12345678901234567890123456789012345.67"),)


def test_wrong_13_a_float_field_is_refused() -> None:
    """Pitfall 13: a design that stores a total as a float is refused where it is declared."""
    with pytest.raises(ModelError, match="float"):

        class Loose(Entity, table=Catalogue):
            loose_id: Attr[str]
            total: Attr[float]

            class Key(PrimaryKey["Loose"], pk="LOOSE#{loose_id}", sk="LOOSE"):
                loose_id: str


def test_c03_one_index_answers_for_three_entities(shown: Shown) -> None:
    """A user by email, orders of a status and products of a category come from one index, and never mix."""
    user, pending, products = shown("catalogue", "overloading")

    assert [type(each).__name__ for each in user.found] == ["Buyer"]
    assert {type(each).__name__ for each in pending.found} == {"Purchase"}
    assert {type(each).__name__ for each in products.found} == {"Product"}
    days = [order.placed_on for order in pending.found]
    assert days == sorted(days, reverse=True)
    assert all("IndexName: GSI1" in step.request for step in (user, pending, products))


def test_c03_a_page_says_which_entity_uses_the_index_how() -> None:
    """The overview of the design has a row for each entity of the overloaded index, with its templates."""
    table = design_of(catalogue).tables[0]

    assert [(use.entity, use.partition, use.title) for use in key_uses(table, "GSI1")] == [
        ("Buyer", ("EMAIL#{email}",), "A user by email"),
        ("Purchase", ("STATUS#{status}#{shard}",), "Orders of a status by day"),
        ("Product", ("CATEGORY#{category}",), "Products of a category"),
    ]
    assert [use.members for use in key_uses(table, "GSI2")] == ["featured is True"]


def test_c04_every_way_of_sharding_gives_one_answer(shown: Shown) -> None:
    """By hash, at random, by time and by both: the same points, in order, once each."""
    told = shown("metrics", "scatter-gather")
    answers = [[point.point_id for point in step.found] for step in told]

    assert answers[0] == [f"p{number:04}" for number in range(20, 29)]
    assert answers[1] == answers[2] == answers[3] == answers[0]
    asks = [step.request.count("more at once") for step in told]
    assert asks[0] == asks[1] == 1
    assert asks[2] == 0  # one day, one partition: nobody else is asked


def test_c04_pages_run_over_all_shards(shown: Shown) -> None:
    """One cursor leads through all shards, newest first, without a gap and without a double."""
    newest = [f"p{number:04}" for number in reversed(range(POINTS))]

    for step in shown("metrics", "paging"):
        assert list(step.found) == newest, step.what


def test_c04_shards_are_even_and_counted(shown: Shown) -> None:
    """Both ways of spreading use all eight shards; shards of time are asked with both ends only."""
    hashed, drawn, advice, endless = shown("metrics", "balance")

    assert sum(hashed.found) == sum(drawn.found) == POINTS
    assert len(hashed.found) == len(drawn.found) == 8
    assert min(hashed.found) > 0
    assert advice.found[0] == 6
    assert "at.between(start, end)" in endless.refused


def test_c04_points_of_one_moment_keep_apart(db: AsyncConnection, run: Run[Any]) -> None:
    """Two points of the same microsecond, in whatever shards, are both there."""
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


def test_c05_products_enter_and_leave_the_sparse_index(shown: Shown) -> None:
    """A product is in the index from the write that features it to the write that does not."""
    before, during, after = shown("catalogue", "featured")

    assert "product-101" not in {product.product_id for product in before.found}
    assert {product.product_id for product in during.found} - {
        product.product_id for product in before.found
    } == {"product-101"}
    assert after.found == before.found


def test_c05_what_is_not_featured_has_no_key_in_the_index() -> None:
    """An item that is not in the index pays nothing for it: it has no attribute of its key."""
    plain = Product(product_id="p", category="toys", price=Decimal(1))

    assert "GSI2PK" not in to_item(plain)
    assert to_item(plain.model_copy(update={"featured": True}))["GSI2PK"] == {"S": "FEATURED"}
