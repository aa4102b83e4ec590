"""Telling: numbers, names and keys as findings say them."""

from __future__ import annotations

import pytest

from tavola.design.lint.dollars import month, per_million, spelled
from tavola.design.lint.telling import counted, joined, quoted, rate, size, units, wanted_key
from tavola.model.document import Given, Need
from tavola.prices import load_book


@pytest.mark.parametrize(
    ("need", "key"),
    [
        (Need("n", "T", ("a", "b"), "c"), "an index with partition key a and b and sort key c"),
        (Need("n", "T", (Given("c", ">="),), "c"), "an index with one constant partition key in shards and sort key c"),
        (Need("n", "T", ("a", Given("c", "<"), Given("d", "<"))), "an index with partition key a and a band of d and sort key c"),
        (
            Need("n", "T", ("a", Given("c", "<")), "d"),
            "an index with partition key a and sort key c, and sort the answer by d yourself",
        ),
        (Need("n", "T", Given("tags", "contains")), "an item for each value in tags, keyed by it"),
    ],
)  # fmt: skip
def test_the_key_that_would_serve_a_need(need: Need, key: str) -> None:
    """What is equal is the partition, an order or one stretch the sort key; no key has two stretches, or two orders."""
    assert wanted_key(need) == key


def test_numbers_are_short() -> None:
    """A finding names numbers as people say them."""
    assert [rate(0.125), rate(3), rate(1_500)] == ["0.125", "3", "1,500"]
    assert [size(900), size(2_048), size(3.5 * (1 << 30))] == ["900 B", "2 KB", "3.5 GB"]
    assert [units(2), units(12.5)] == ["2", "12.5"]
    assert [joined(["a"]), joined(["a", "b", "a"]), joined(["a", "b", "c"], "or"), joined([])] == [
        "a",
        "a and b",
        "a, b or c",
        "",
    ]
    assert quoted(["open it"]) == "“open it”"
    assert [counted(1, "item"), counted(2_000, "item"), counted(2, "entry", "entries")] == [
        "1 item",
        "2,000 items",
        "2 entries",
    ]


def test_money_is_of_the_newest_book() -> None:
    """Sums are on-demand prices of one region, for a million requests or a month of 730 hours."""
    assert per_million(2, "write") == "$1.25 a million"
    title = load_book("us-east-1").title
    assert (
        spelled(month(writes=20)) == f"$33 a month ({title}, on demand)"
    )  # 52.56 million units at 0.625 a million
    assert spelled(month(reads=1)) == f"$0.33 a month ({title}, on demand)"
