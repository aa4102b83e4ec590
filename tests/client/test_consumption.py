"""Consumption: units out of DynamoDB's answers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tavola.client.consumption import CapacityOwner, Units, merge_units, parse_consumption
from tavola.prices import load_book


def test_a_response_without_consumed_capacity_has_no_units() -> None:
    """Without ReturnConsumedCapacity, the units are unknown."""
    assert parse_consumption("GetItem", {}) == {}


def test_a_total_counts_for_the_table() -> None:
    """TOTAL does not distinguish indexes."""
    answer = {"ConsumedCapacity": {"TableName": "t", "CapacityUnits": 2.5}}

    assert parse_consumption("Query", answer) == {("t", None): Units(reads=2.5)}
    assert parse_consumption("PutItem", answer) == {("t", None): Units(writes=2.5)}


def test_an_index_is_counted_apart_from_its_table() -> None:
    """A query of an index consumes no units of its table."""
    answer = {
        "ConsumedCapacity": {
            "TableName": "t",
            "CapacityUnits": 3.0,
            "Table": {"CapacityUnits": 0.0},
            "GlobalSecondaryIndexes": {"g": {"CapacityUnits": 2.0}},
            "LocalSecondaryIndexes": {"l": {"CapacityUnits": 1.0}},
        }
    }

    assert parse_consumption("Query", answer) == {("t", "g"): Units(reads=2.0), ("t", "l"): Units(reads=1.0)}


def test_a_repeated_transaction_is_billed_as_reads() -> None:
    """If a response separates reads from writes, the operation's name does not decide."""
    answer = {
        "ConsumedCapacity": [
            {"TableName": "t", "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0},
            {"TableName": "u", "CapacityUnits": 2.0, "WriteCapacityUnits": 2.0},
        ]
    }

    assert parse_consumption("TransactWriteItems", answer) == {
        ("t", None): Units(reads=4.0),
        ("u", None): Units(writes=2.0),
    }


def test_sums_are_in_order() -> None:
    """A table comes before its indexes, and those by name."""
    parts: list[dict[CapacityOwner, Units]] = [
        {("t", "b"): Units(1.0)},
        {("t", None): Units(1.0), ("a", None): Units(1.0)},
        {("t", "b"): Units(2.0)},
    ]

    assert list(merge_units(parts).items()) == [
        (("a", None), Units(1.0)),
        (("t", None), Units(1.0)),
        (("t", "b"), Units(3.0)),
    ]


@pytest.mark.parametrize(
    ("units", "text"),
    [
        (Units(), "0 units"),
        (Units(writes=1.0), "1 write unit"),
        (Units(reads=0.5), "0.5 read units"),
        (Units(2.0, 3.0), "2 read and 3 write units"),
        (Units(reads=12_500.0), "12,500 read units"),
    ],
)
def test_units_read_as_words(units: Units, text: str) -> None:
    """The text names the units read and the units written."""
    assert str(units) == text


def test_money_is_exact() -> None:
    """Half units cost half."""
    assert Units(0.5, 2.0).usd_per_million(load_book("us-east-1")) == Decimal("1.3125")
