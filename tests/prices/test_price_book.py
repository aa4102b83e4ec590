"""PriceBook: exact money, and a book that names itself."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from tavola.prices import Price, PriceBook, UnknownPrice, labelled_book, load_book

_TODAY = load_book("us-east-1", datetime.date(2026, 8, 1))


@pytest.mark.parametrize(
    ("units", "kind", "dollars"),
    [
        (1, "read_request_unit", "0.125"),
        (0.5, "read_request_unit", "0.0625"),
        (2.5, "write_request_unit", "1.5625"),
        (Decimal("1.5"), "ia_read_request_unit", "0.2325"),
        (0, "write_request_unit", "0"),
    ],
)
def test_a_million_requests_cost_exactly(units: float | Decimal, kind: str, dollars: str) -> None:
    """Units of one request and a kind of price give the dollars of a million, to the last digit."""
    assert _TODAY.usd_per_million(units, kind) == Decimal(dollars)


def test_an_unknown_price_is_refused_with_those_that_there_are() -> None:
    """The book that lacks it is named, and what it has."""
    with pytest.raises(UnknownPrice, match="us-east-1, 2026-08-01 has no price 'reads'") as raised:
        _TODAY.usd_per_million(1, "reads")

    assert raised.value.name == "reads"
    assert "read_request_unit" in raised.value.known


def test_another_currency_is_not_taken_for_dollars() -> None:
    """A line in yuan has no price in dollars."""
    yuan = Price("read_request_unit", Decimal("0.9"), 1_000_000, "unit", "CNY", "a list", "low")
    book = PriceBook("cn-north-1", datetime.date(2026, 1, 1), "a list", {"read_request_unit": yuan})

    with pytest.raises(UnknownPrice, match="in CNY, not in dollars"):
        book.usd_per_million(1, "read_request_unit")
    assert book.price("read_request_unit").of(2_000_000) == Decimal("1.8")


def test_a_price_reads_as_a_sentence() -> None:
    """A person sees the amount, the currency and of how many."""
    assert str(_TODAY.price("read_request_unit")) == "0.125 USD per 1,000,000 read request units"
    assert str(_TODAY.price("storage_gb_month")) == "0.25 USD per GB-month"


def test_the_support_desks_example_can_be_computed_again() -> None:
    """Pitfall 11: its own book gives the document's own sums: 100 reads and 20 writes of three units a second."""
    book, hours = labelled_book("support-desk"), 730
    month_of_half_days = 60 * 60 * 12 * 30

    reads = book.price("read_capacity_unit_hour").of(100 * hours)
    writes = book.price("write_capacity_unit_hour").of(60 * hours)
    storage = book.price("storage_gb_month").of(50)
    assert (reads, writes, reads + writes + storage) == (Decimal("47.45"), Decimal("28.47"), Decimal("88.42"))
    on_demand = [
        book.price(name).of(rate * month_of_half_days)
        for name, rate in (("read_request_unit", 100), ("write_request_unit", 20))
    ]
    assert on_demand == [Decimal("162"), Decimal("32.4")]
    assert sum(on_demand) + storage == Decimal("206.9")


def test_discounts_say_their_terms() -> None:
    """Reserved capacity is cheaper for provisioned tables, and says that it is for those alone."""
    assert _TODAY.discounts["reserved_three_years"].percent_max == 77
    assert "not on-demand" in _TODAY.discounts["reserved_one_year"].terms
