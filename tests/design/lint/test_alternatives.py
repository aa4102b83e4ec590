"""A field in a key or a filter by it: both sides are told, and no remedy makes another rule fail."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tavola.design.cost import Assumptions, estimate_month, savings
from tavola.design.findings import Finding
from tavola.design.lint import lint
from tavola.design.lint.monthly_costs import index_key_monthly_cost
from tavola.design.text import format_money
from tavola.model.document import Design
from tavola.prices import load_book
from tests.design.builders import choice, design, entity, gsi, key, moment, put, query, table, text, update

BOOK = load_book("us-east-1")
STATES = ("placed", "paid", "shipped", "delivered")


def orders(*, keyed: bool, asked: float | None = 10, moved: float = 90) -> Design:
    """Orders of a shop in a state, the state in the key of their index or filtered by after the read."""
    index = gsi("of_shop", "g1pk", "g1sk")
    if keyed:
        pattern = query(
            "OfShop", index, ("shop", "state"), "at", per_second=asked, items=20, item_bytes=1_200
        )
    else:
        pattern = query(
            "OfShop", index, "shop", "at", per_second=asked, items=80, returned=20, filters=("state",), item_bytes=1_200
        )  # fmt: skip
    return design(
        table(
            entity(
                "Order", text("order_id"), text("shop"), choice("state", *STATES), moment("at"), text("note"),
                pk="ORDER#{order_id}",
                keys=[key(index, "SHOP#{shop}#{state}" if keyed else "SHOP#{shop}", "{at}")],
                patterns=[pattern],
                writes=[put(per_second=30, item_bytes=1_200), update("state", per_second=moved, item_bytes=1_200)],
            ),
            indexes=[index],
        )
    )  # fmt: skip


def found(told: Design, rule: str) -> Finding:
    """Return what a rule finds, once."""
    [finding] = lint(told, select=[rule]).findings
    return finding


def test_a_changing_key_attribute_is_reported_with_its_extra_cost() -> None:
    """The sum is the bill's own line of key changes: what is paid anyway is not counted."""
    told = orders(keyed=True)
    month = estimate_month(told, Assumptions(), BOOK)
    billed = sum((line.amount for line in month.lines if line.what == "key changes"), Decimal(0))

    more, _ = index_key_monthly_cost(
        told.tables[0], told.tables[0].entities[0], told.tables[0].indexes[0], ["state"]
    )
    finding = found(told, "mutable-index-key")

    assert round(more, 2) == round(billed, 2) == Decimal("295.65")
    assert "4 write units instead of 2" in finding.message
    assert "$295.65 per month" in finding.message
    assert "would read 4 times as many items and filter them, $29.56 per month" in finding.remedy


def test_the_cheaper_filter_is_advice() -> None:
    """What the other rule advises is not failed: it tells both sides."""
    finding = found(orders(keyed=False), "inefficient-filter")

    assert finding.severity == "advice"
    assert "$295.65 per month more, while the filter costs $29.56 per month" in finding.remedy


@pytest.mark.parametrize("asked", [None, 1_000])
def test_a_filter_that_is_not_known_to_be_cheaper_is_a_warning(asked: float | None) -> None:
    """Without a rate, or where the reads cost more than the moves."""
    assert found(orders(keyed=False, asked=asked), "inefficient-filter").severity == "warning"


def test_a_key_that_is_cheaper_than_a_filter_is_kept() -> None:
    """Where the filter would cost more, the advice is to make the moves smaller."""
    remedy = found(orders(keyed=True, asked=1_000), "mutable-index-key").remedy

    assert remedy.startswith("Keep the key: without state in it, ")
    assert "project fewer attributes and fetch the rest" in remedy


@pytest.mark.parametrize("asked", [0.1, 10, 100, 1_000])
def test_the_two_rules_never_contradict_each_other(asked: float) -> None:
    """Where one says to leave the field out of the key, the other does not fail the filter; and the reverse."""
    leave = found(orders(keyed=True, asked=asked), "mutable-index-key").remedy.startswith(
        "Remove state from the key:"
    )

    assert (found(orders(keyed=False, asked=asked), "inefficient-filter").severity == "advice") is leave


def test_keys_alone_are_among_what_would_change_the_bill() -> None:
    """An index that is written often and asked seldom is cheaper with keys alone, its items fetched."""
    [saving] = [
        each
        for each in savings(orders(keyed=True), Assumptions(), BOOK)
        if each.change == "KEYS_ONLY projection"
    ]

    assert saving.place == "shop/of_shop"
    assert "hydrate=True" in saving.sentence
    assert saving.amount > 200
    assert not [
        each
        for each in savings(orders(keyed=True, asked=5_000), Assumptions(), BOOK)
        if each.change == "KEYS_ONLY projection"
    ]


@pytest.mark.parametrize("item_bytes", [None, 212, 5_000])
def test_unneeded_shards_cost_in_lint_what_removing_them_saves_in_cost(item_bytes: int | None) -> None:
    """Both count a query over shards with the same units, whether its items are declared or estimated."""
    index = gsi("by_state", "g1pk", "g1sk")
    sharded = design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("state", *STATES), moment("at"),
                pk="TICKET#{ticket_id}",
                keys=[key(index, "STATE#{state}", "{at}", shards=8)],
                patterns=[query("ByState", index, "state", "at", per_second=10, items=20, item_bytes=item_bytes)],
                writes=[put(per_second=5, item_bytes=item_bytes)],
            ),
            indexes=[index],
        )
    )  # fmt: skip
    [saving] = [each for each in savings(sharded, Assumptions(), BOOK) if each.change == "fewer shards"]

    message = found(sharded, "too-many-shards").message

    assert "10 queries per second read 8 shards each." in message
    assert "1 shard is enough. The other 7 cost " in message
    assert f"{format_money(saving.amount)} per month" in message


@pytest.mark.parametrize("projection", ["ALL", "KEYS_ONLY"])
def test_the_only_partition_attribute_is_never_removed(projection: str) -> None:
    """Without it every item would be in one partition, whatever the reads would cost."""
    index = gsi("by_state", "g1pk", "g1sk", projection=projection)
    one = design(
        table(
            entity(
                "Order", text("order_id"), choice("state", *STATES), moment("at"),
                pk="ORDER#{order_id}",
                keys=[key(index, "STATE#{state}", "{at}")],
                patterns=[query("OfState", index, "state", "at", per_second=0.01, items=20, item_bytes=900)],
                writes=[update("state", per_second=500, item_bytes=900)],
            ),
            indexes=[index],
        )
    )  # fmt: skip

    remedy = found(one, "mutable-index-key").remedy

    assert remedy.startswith("state is the partition key of by_state, so it cannot simply be removed. ")
    assert ("project fewer attributes" in remedy) is (projection == "ALL")
