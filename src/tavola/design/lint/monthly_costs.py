"""Dollars: what units and bytes come to, for messages; the whole bill is the cost planner's.

On demand, whatever the table pays by, in us-east-1 and at the newest prices there are: an order of size, so that a reader knows
whether it matters. `tavola cost` tells it for a region and a way of paying.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache

from tavola.prices import PriceBook, load_book

REGION = "us-east-1"
MONTH_S = 730 * 3_600  # of 730 hours, as AWS estimates
_GB = 1024**3


def monthly_cost(*, reads: float = 0.0, writes: float = 0.0, stored_bytes: float = 0.0) -> Decimal:
    """Return the dollars of a month for so many units a second, and for bytes that are stored."""
    book = _book()
    parts = (
        book.price("read_request_unit").of(_whole(reads * MONTH_S)),
        book.price("write_request_unit").of(_whole(writes * MONTH_S)),
        book.price("storage_gb_month").of(Decimal(_whole(stored_bytes)) / _GB),
    )
    return sum(parts, Decimal(0))


def format_monthly(dollars: Decimal) -> str:
    """Return an amount as a person says it, beside another that is `spelled` out."""
    return f"${dollars:,.0f} a month" if dollars >= 10 else f"${dollars:,.2f} a month"


def format_monthly_with_book(dollars: Decimal) -> str:
    """Return an amount as a person says it, with the book it was made with."""
    return f"{format_monthly(dollars)} ({_book().title}, on demand)"


def format_per_million(amount: float, kind: str) -> str:
    """Return what a million requests of so many units cost; `kind` is read or write."""
    dollars = _book().usd_per_million(Decimal(str(amount)), f"{kind}_request_unit")
    return f"${dollars:,.2f} a million"


def _whole(amount: float) -> int:
    return int(min(amount, 1e30))  # what nobody could pay is as good as any


@cache
def _book() -> PriceBook:
    return load_book(REGION)
