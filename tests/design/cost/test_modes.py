"""Ways of paying, their break-even points, and what is recommended."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.design.cost import (
    Assumptions,
    break_evens,
    estimate_month,
    payment_options,
    recommend_payment,
    report_cost,
)
from tavola.design.cost.payments import storage_share, utilization_share
from tavola.model.document import Design
from tavola.prices import labelled_book, load_book
from tests.design.builders import design, entity, put, table, text

BOOK = load_book("us-east-1")


def shop(writes: float, items: int = 0, **more: Any) -> Design:
    """A table of items that are put."""
    write = put(per_second=writes, item_bytes=900, **more)
    return design(
        table(
            entity("Ticket", text("ticket_id"), pk="{ticket_id}", writes=[write], items=items), recovery=False
        )
    )


def test_provisioned_units_pay_from_29_per_cent() -> None:
    """By today's book a unit must be used 28.9 % of the time to be cheaper than requests."""
    assert round(utilization_share(BOOK, "write") or 0, 3) == Decimal("0.289")
    assert round(utilization_share(BOOK, "read") or 0, 3) == Decimal("0.289")


@pytest.mark.parametrize(("target", "wins"), [(28, False), (30, True)])
def test_the_break_even_point_is_where_the_sums_meet(target: int, wins: bool) -> None:
    """Even traffic at a target just below the point is cheaper on demand, and just above it provisioned."""
    told = {way.name: way.total for way in payment_options(shop(1_000), Assumptions(target=target), BOOK)}

    on_demand, provisioned = told["On-demand"], told["Provisioned, auto scaling"]
    assert on_demand is not None
    assert provisioned is not None
    assert (provisioned < on_demand) is wins


def test_standard_ia_wins_where_storage_is_enough() -> None:
    """Above its share of the requests' cost, storage makes Standard-IA the cheaper class; below it does not."""
    busy, full = shop(1_000, 1_000), shop(1, 100_000_000)

    for told, wins in ((busy, False), (full, True)):
        month = estimate_month(told, Assumptions(), BOOK)
        share = storage_share(BOOK, month)
        assert share is not None
        rare = estimate_month(told, Assumptions(table_class="STANDARD_INFREQUENT_ACCESS"), BOOK)
        assert (rare.total < month.total) is wins
        assert (month.of("storage") / month.requests > share) is wins


def test_every_point_has_a_sentence() -> None:
    """Reads, writes, the class and both terms have their points; a book without prices has fewer."""
    standard, provisioned = (
        estimate_month(shop(100, 1_000), Assumptions(mode=mode), BOOK)
        for mode in ("on-demand", "provisioned")
    )

    names = [each.name for each in break_evens(BOOK, standard, provisioned)]

    assert names == [
        "provisioned reads",
        "provisioned writes",
        "Standard-IA",
        "reserved for one year",
        "reserved for three years",
    ]
    fewer = break_evens(labelled_book("support-desk"), standard, provisioned)
    assert [each.name for each in fewer] == ["provisioned reads", "provisioned writes"]


def test_a_way_without_a_price_says_why() -> None:
    """Where a book has no price for Standard-IA, that way has no sum and a reason."""
    told = {way.name: way for way in payment_options(shop(10), Assumptions(), labelled_book("support-desk"))}

    assert told["On-demand"].total is not None
    assert told["On-demand, Standard-IA"].total is None
    assert "ia_write_request_unit" in told["On-demand, Standard-IA"].reason
    assert "no discount" in told["Provisioned, reserved 1 year"].reason


def test_a_recommendation_gives_its_reason() -> None:
    """Even traffic is to be provisioned; rare peaks are paid by the request; nothing at all wants rates."""
    even = recommend_payment(shop(100), Assumptions(), BOOK)
    peaky = recommend_payment(shop(1, peak_per_second=5_000), Assumptions(), BOOK)

    assert even.startswith("Provisioned capacity with auto scaling would cost ")
    assert "above the 29% break-even point of provisioned capacity" in even
    assert "No access pattern declares peak_per_second" in even
    assert peaky.startswith("Keep the current settings")
    assert "below the 29%" in peaky
    assert "costs nothing" in recommend_payment(shop(0), Assumptions(), BOOK)
    assert "only storage and idle capacity" in recommend_payment(
        shop(0, items=1_000_000), Assumptions(), BOOK
    )


def test_fixed_units_are_held_against_scaled_ones() -> None:
    """A table whose units are fixed far above its need is told that scaled ones cost less, and how much they are used."""
    fixed = design(
        table(
            entity("Ticket", text("ticket_id"), pk="{ticket_id}", writes=[put(per_second=7, item_bytes=900)]),
            read_units=1_000, write_units=1_000, recovery=False,
        )
    )  # fmt: skip
    free = shop(7)

    assert estimate_month(fixed, Assumptions(), BOOK).total == Decimal(730) * 1_000 * (
        Decimal("0.00013") + Decimal("0.00065")
    )
    assert [way.total for way in payment_options(fixed, Assumptions(), BOOK)] == [
        way.total for way in payment_options(free, Assumptions(), BOOK)
    ]
    assert recommend_payment(fixed, Assumptions(), BOOK).startswith(
        "Provisioned capacity with auto scaling would cost $564.56 less per month"
    )
    told = report_cost(fixed, Assumptions(), BOOK, BOOK.date)
    assert "with auto scaling, this design would reach 70%" in told.break_evens[1].sentence
    [saving] = [each for each in told.savings if each.place == "provisioned"]
    assert saving.sentence == "provisioned capacity with auto scaling instead of fixed units"


def test_reads_and_writes_are_weighed_by_what_they_cost() -> None:
    """Many even reads beside few uneven writes: the reason is on the side of the cheaper sum."""
    told = design(
        table(
            entity(
                "Ticket", text("ticket_id"), pk="{ticket_id}",
                primary={"per_second": 3_000, "consistent": True, "item_bytes": 900},
                writes=[put(per_second=100, peak_per_second=30_000, item_bytes=900)],
            ),
            recovery=False,
        )
    )  # fmt: skip

    assert "25% utilized, below the 29% break-even point of provisioned capacity" in recommend_payment(
        told, Assumptions(), BOOK
    )


@given(
    st.floats(0.01, 5_000), st.floats(1, 300), st.floats(0, 5_000), st.floats(1, 300), st.integers(0, 10**8),
    st.booleans(), st.sampled_from([(), ("eu-west-1",)]),
)  # fmt: skip
def test_a_reason_never_contradicts_its_advice(
    writes: float,
    uneven: float,
    reads: float,
    peaks: float,
    items: int,
    free: bool,
    replicas: tuple[str, ...],
) -> None:
    """What is said to be above the break-even point is provisioned, and what is below is not; so with the table class."""
    primary = {"per_second": reads, "peak_per_second": reads * peaks, "consistent": True, "item_bytes": 900}
    write = put(per_second=writes, peak_per_second=writes * uneven, item_bytes=900)
    told = design(
        table(
            entity("Ticket", text("ticket_id"), pk="{ticket_id}", primary=primary, writes=[write], items=items),
            recovery=False, replicas=replicas,
        )
    )  # fmt: skip
    assumed = Assumptions(free_tier=free)

    sentence = recommend_payment(told, assumed, BOOK)

    free_ways = [way for way in payment_options(told, assumed, BOOK) if way.reserved is None]
    best = min(free_ways, key=lambda way: (way.total or Decimal(0), way.name))
    if "from which provisioned units pay" in sentence:
        assert ("used, above" in sentence) is (best.mode == "provisioned")
    if "from which Standard-IA pays" in sentence:
        assert ("requests do, above" in sentence) is (best.table_class != "STANDARD")
    if sentence.startswith("Pay "):
        assert sentence.startswith(f"Pay {best.name}: ")


def test_a_month_without_cost_says_why() -> None:
    """A book without the prices, and what is free, are told as that, and not as rates that nobody declared."""
    barren = replace(BOOK, prices={"export_gb": BOOK.prices["export_gb"]})
    few = shop(0, 1_000, peak_per_second=0)

    told = recommend_payment(shop(10, 10), Assumptions(), barren)
    assert "has none of the required prices (write_request_unit, storage_gb_month)" in told
    assert "The free tier covers all of it" in recommend_payment(few, Assumptions(free_tier=True), BOOK)


def test_nothing_is_cheaper_by_nothing() -> None:
    """Reserved capacity that saves less than a cent is not told."""
    assert "cheaper still" not in recommend_payment(
        shop(1), Assumptions(mode="provisioned", free_tier=True), BOOK
    )
