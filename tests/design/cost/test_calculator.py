"""The capacity calculator, and the document whose figures it gives again."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tavola.design.cost import (
    DOCUMENT,
    EXAMPLE,
    Assumptions,
    CostError,
    TableDemand,
    calculate,
    calculation_document,
    calculation_text,
    compare_with_document,
)
from tavola.design.cost.calculator import document_figures
from tavola.prices import labelled_book, load_book

SEED = labelled_book(DOCUMENT)
TODAY = load_book("us-east-1")


@pytest.mark.parametrize(
    ("kb", "eventual", "strong", "write"),
    [
        (0.9, 0.5, 1, 1),
        (1, 0.5, 1, 1),
        (1.1, 0.5, 1, 2),
        (1.9, 0.5, 1, 2),
        (3.9, 0.5, 1, 4),
        (4, 0.5, 1, 4),
        (4.1, 1, 2, 5),
        (4.5, 1, 2, 5),
        (8.1, 1.5, 3, 9),
        (400, 50, 100, 400),
    ],
)
def test_units_are_rounded_up(kb: float, eventual: float, strong: float, write: float) -> None:
    """Pitfall 11: a read pays for each 4 KB begun and a write for each 1 KB begun; eventual reads keep their halves."""
    told = calculate(TableDemand(1, 1, kb), TODAY)
    half = calculate(TableDemand(1, 1, kb, consistent=False), TODAY)

    assert (told.read_units, told.write_units) == (strong, write)
    assert half.read_units == eventual


def test_half_units_are_not_lost() -> None:
    """Pitfall 11: three eventual reads a second need two units, and cost one and a half on demand."""
    told = calculate(TableDemand(3, 0, 1, consistent=False), TODAY)

    assert told.read_capacity == 2
    assert told.on_demand.reads == Decimal("1.5") * 730 * 3_600 * Decimal("0.125") / 1_000_000


def test_the_document_counts_wrongly_where_we_do_not() -> None:
    """Pitfall 11: the document takes one unit for 4.5 KB read and for 1.9 KB written; each is two."""
    read, write = TableDemand(100, 0, 4.5), TableDemand(0, 100, 1.9)

    assert calculate(read, SEED).fixed.reads == 2 * document_figures(read, SEED)[1].reads
    assert calculate(write, SEED).fixed.writes == 2 * document_figures(write, SEED)[1].writes


def test_the_documents_own_example_gives_its_figures() -> None:
    """100 reads and 20 writes a second of 3 KB, 50 GB, half the day, at its prices: each figure that it prints."""
    on_demand, provisioned = document_figures(EXAMPLE, SEED)

    assert (provisioned.reads, provisioned.writes, provisioned.total) == (
        Decimal("47.45"),
        Decimal("28.47"),
        Decimal("88.42"),
    )
    assert (on_demand.reads, on_demand.writes, on_demand.total) == (
        Decimal("162.00"),
        Decimal("32.40"),
        Decimal("206.90"),
    )
    assert on_demand.total - provisioned.total == Decimal("118.48")


def test_the_example_counted_right() -> None:
    """The same demand as DynamoDB bills it: the document's units were right, its requests were not."""
    at_its_prices, today = calculate(EXAMPLE, SEED), calculate(EXAMPLE, TODAY)

    assert at_its_prices.fixed.total == Decimal("88.42")
    assert at_its_prices.on_demand.total == Decimal("275.30")
    assert (today.fixed.total, today.on_demand.total) == (Decimal("50.46"), Decimal("78.20"))
    assert today.recommended_mode == "provisioned"


def test_each_step_says_what_differs() -> None:
    """From the document's figures to today's in steps, each with its reason and both sums."""
    told = compare_with_document(EXAMPLE, SEED, TODAY)

    assert [round(each.on_demand, 2) for each in told] == [
        Decimal("206.90"),
        Decimal("209.60"),
        Decimal("275.30"),
        Decimal("78.20"),
    ]
    assert "162.00" in told[0].sentence
    assert "730 hours" in told[1].sentence
    assert "a write consumes 3 units" in told[2].sentence
    assert "$0.125 per million read request units instead of $1.25" in told[3].sentence
    assert "2026-08-01" in told[3].sentence


def test_little_traffic_is_paid_by_the_request() -> None:
    """An hour a day of traffic is cheaper on demand than units that stand all day."""
    told = calculate(TableDemand(100, 100, 1, hours_per_day=1), TODAY, Assumptions(target=70))

    assert told.on_demand.total < told.fixed.total
    assert calculate(TableDemand(1, 0, 1, hours_per_day=1), TODAY).recommended_mode == "on-demand"


@pytest.mark.parametrize(
    "wrong",
    [(-1, 0, 1), (float("nan"), 0, 1), (0, float("inf"), 1), (1, 1, 0), (1, 1, 401), (1e30, 0, 1)],
)
def test_numbers_that_cannot_be_are_refused(wrong: tuple[float, float, float]) -> None:
    """A rate below zero or without end, and an item of no size or over 400 KB, are told."""
    with pytest.raises(CostError, match="must be"):
        TableDemand(*wrong)


def test_backups_and_what_is_free_are_in_the_sums() -> None:
    """Backups are paid, and what an account has free is taken off, in every way of paying."""
    demand = TableDemand(1, 1, 1, 50)
    plain, more, less = (
        calculate(demand, TODAY, Assumptions(**told)) for told in ({}, {"backups": 5}, {"free_tier": True})
    )

    for way in ("on_demand", "fixed", "scaled"):
        before = getattr(plain, way).total
        assert getattr(more, way).total - before == 5 * 50 * Decimal("0.10")
        assert before - getattr(less, way).total >= 25 * Decimal("0.25")


def test_a_sum_without_a_price_is_not_known() -> None:
    """Where the book lacks a price, no sum is told as if the thing cost nothing, and nothing is recommended."""
    told = calculate(TableDemand(1, 1, 1, 50), load_book("ap-northeast-2"))

    assert "storage_gb_month" in told.missing_prices
    assert told.recommended_mode is None
    text = " ".join(calculation_text(told, (), ()).split())
    assert "unknown" in text
    assert "has no price for storage_gb_month" in text
    document = calculation_document(told, (), ())
    assert [way["total"] for way in document["ways"]] == [None, None, None]
    assert document["saving"] is None


def test_fixed_units_are_said_to_have_no_room() -> None:
    """Units fixed at the need throttle at the first moment of more: that is said, with what scaling costs."""
    told = calculation_text(calculate(TableDemand(100, 100, 1), TODAY), (), ())

    assert "requests above them are throttled" in " ".join(told.split())
