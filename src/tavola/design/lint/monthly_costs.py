"""Rough costs for messages: dollars for units and bytes, so that readers see whether a finding matters.

Always on demand, in us-east-1, from the newest price book. `tavola cost` computes the bill for a region and a payment option.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache

from tavola.design.cost.assumptions import HOURS_PER_MONTH
from tavola.prices import PriceBook, load_book

REGION = "us-east-1"
MONTH_S = HOURS_PER_MONTH * 3_600
_GB = 1024**3


def monthly_cost(*, reads: float = 0.0, writes: float = 0.0, stored_bytes: float = 0.0) -> Decimal:
    """Return the dollars of a month for request units per second and stored bytes."""
    book = _book()
    parts = (
        book.price("read_request_unit").of(_whole(reads * MONTH_S)),
        book.price("write_request_unit").of(_whole(writes * MONTH_S)),
        book.price("storage_gb_month").of(Decimal(_whole(stored_bytes)) / _GB),
    )
    return sum(parts, Decimal(0))


def format_monthly(dollars: Decimal) -> str:
    """Return a monthly amount, for use beside one that names its price book."""
    return f"${dollars:,.0f} a month" if dollars >= 10 else f"${dollars:,.2f} a month"


def format_monthly_with_book(dollars: Decimal) -> str:
    """Return a monthly amount with the price book that it comes from."""
    return f"{format_monthly(dollars)} ({_book().title}, on demand)"


def format_per_million(amount: float, kind: str) -> str:
    """Return the price of a million requests with `amount` units each; `kind` is read or write."""
    dollars = _book().usd_per_million(Decimal(str(amount)), f"{kind}_request_unit")
    return f"${dollars:,.2f} a million"


def _whole(amount: float) -> int:
    return int(min(amount, 1e30))  # absurd rates would overflow


@cache
def _book() -> PriceBook:
    return load_book(REGION)
