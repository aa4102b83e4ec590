"""Numbers, names, money and keys in messages."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tavola.design.lint.monthly_costs import format_monthly_with_book, format_per_million, monthly_cost
from tavola.design.text import (
    describe_key_for,
    format_count,
    format_money,
    format_price,
    format_rate,
    format_size,
    format_units,
    join_names,
    join_titles,
)
from tavola.model.document import Given, Need
from tavola.prices import load_book


@pytest.mark.parametrize(
    ("need", "key"),
    [
        (Need("n", "T", ("a", "b"), "c"), "an index with partition key a and b and sort key c"),
        (Need("n", "T", (Given("c", ">="),), "c"), "an index with a constant, sharded partition key and sort key c"),
        (Need("n", "T", ("a", Given("c", "<"), Given("d", "<"))), "an index with partition key a and a bucket of d and sort key c"),
        (
            Need("n", "T", ("a", Given("c", "<")), "d"),
            "an index with partition key a and sort key c, and sort the result by d in the application",
        ),
        (Need("n", "T", Given("tags", "contains")), "one item per value of tags, with that value as partition key"),
    ],
)  # fmt: skip
def test_the_key_that_would_serve_a_need(need: Need, key: str) -> None:
    """What is equal is the partition, an order or one stretch the sort key; no key has two stretches, or two orders."""
    assert describe_key_for(need) == key


def test_numbers_are_short() -> None:
    """A finding names numbers as people say them."""
    assert [format_rate(0.125), format_rate(3), format_rate(1_500)] == ["0.125", "3", "1,500"]
    assert [format_size(900), format_size(2_048), format_size(3.5 * (1 << 30))] == ["900 B", "2 KB", "3.5 GB"]
    assert [format_units(2), format_units(12.5)] == ["2", "12.5"]
    assert [
        join_names(["a"]),
        join_names(["a", "b", "a"]),
        join_names(["a", "b", "c"], "or"),
        join_names([]),
    ] == [
        "a",
        "a and b",
        "a, b or c",
        "",
    ]
    assert join_titles(["open it"]) == "“open it”"
    assert [format_count(1, "item"), format_count(2_000, "item"), format_count(2, "entry", "entries")] == [
        "1 item",
        "2,000 items",
        "2 entries",
    ]


def test_money_is_of_the_newest_book() -> None:
    """Sums are on-demand prices of one region, for a million requests or a month of 730 hours."""
    assert format_per_million(2, "write") == "$1.25 per million writes"
    date = load_book("us-east-1").date
    assert (
        format_monthly_with_book(monthly_cost(writes=20))
        == f"$32.85 per month (on-demand, us-east-1 prices of {date})"
    )  # 52.56 million units at 0.625 a million
    assert (
        format_monthly_with_book(monthly_cost(reads=1))
        == f"$0.33 per month (on-demand, us-east-1 prices of {date})"
    )


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("1234.5", "USD", "$1,234.50"),
        ("0", "USD", "$0.00"),
        ("0.000338125", "USD", "< $0.01"),
        ("-12.346", "USD", "-$12.35"),
        ("-0.001", "USD", "$0.00"),
        ("12", "EUR", "12.00 EUR"),
    ],
)
def test_money_has_cents_and_no_more(amount: str, currency: str, text: str) -> None:
    """An amount is printed to the cent; less than a cent is said to be less, never written with many digits."""
    assert format_money(Decimal(amount), currency) == text


def test_unit_prices_have_a_tenth_of_a_cent() -> None:
    """Prices look as AWS publishes them."""
    assert [format_price(Decimal(each)) for each in ("0.125", "1.25", "0.00065")] == [
        "$0.125",
        "$1.25",
        "< $0.01",
    ]
