"""How busy the busiest is: between an even share and everything, and more the more uneven it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.design.lint.rates import busiest_item_rate, busiest_share, count_items, count_key_values
from tests.design.builders import choice, entity, text, update

COUNTS = st.integers(1, 10**18)
SKEWS = st.floats(0, 5)


@given(COUNTS, SKEWS)
def test_the_busiest_has_its_even_share_at_least(count: int, skew: float) -> None:
    """Nobody has more than everything, and the first no less than the mean."""
    assert min(1 / count, 1 - 1e-9) * (1 - 1e-6) <= busiest_share(count, skew) <= 1


@given(COUNTS, SKEWS, SKEWS)
def test_more_uneven_is_busier(count: int, one: float, other: float) -> None:
    """The share of the first grows with the exponent."""
    low, high = sorted((one, other))

    assert busiest_share(count, low) <= busiest_share(count, high) * (1 + 1e-9)


@given(st.integers(1_001, 20_000), st.floats(0.1, 3))
def test_the_integral_stands_for_the_sum(count: int, skew: float) -> None:
    """Of many items, the share is what adding all of them up gives, to a thousandth."""
    exact = 1 / sum(rank**-skew for rank in range(1, count + 1))

    assert busiest_share(count, skew) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(
    ("items", "distinct", "expected"), [(None, None, None), (500, None, 500), (None, 20, 20), (7, 20, 7)]
)
def test_items_are_counted_as_declared_or_as_the_key_allows(
    items: int | None, distinct: int | None, expected: int | None
) -> None:
    """What an entity says of its number counts first, then the values of its key; else nobody knows."""
    found = entity("Page", text("page", distinct=distinct), pk="PAGE#{page}", items=items)

    assert count_items(found) == expected


def test_a_key_without_fields_is_one() -> None:
    """Everything under a constant key is one partition, and a choice has as many as it has values."""
    one = entity("Stats", text("page"), pk="STATS")
    many = entity(
        "Ticket", choice("status", "a", "b", "c"), text("ticket_id"), pk="S#{status}", sk="{ticket_id}"
    )

    assert one.key is not None
    assert many.key is not None
    assert count_key_values(one, one.key) == 1
    assert count_key_values(many, many.key, partition=True) == 3
    assert count_key_values(many, many.key) is None


def test_a_request_writes_an_item_once() -> None:
    """One that writes many items at once writes each of them no more often than it is made."""
    write = update(adds=("views",), per_second=10, items=50)

    assert busiest_item_rate(
        entity("Page", text("page"), pk="PAGE#{page}", items=100), write
    ) == pytest.approx(5)
    assert busiest_item_rate(
        entity("Page", text("page"), pk="PAGE#{page}", items=20), write
    ) == pytest.approx(10)
