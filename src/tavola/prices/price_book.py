"""PriceBook: the prices of one region on one date.

Money is always `Decimal`, from the file to the sum: a price such as 0.00013 has no exact float.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from tavola.prices.errors import UnknownPrice

CONFIDENCES = ("high", "medium", "low")  # from a price list; by analogy or several sources; from memory

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a number of units, and its source."""

    name: str
    amount: Decimal
    per: int  # units for the amount: 1,000,000 for request units, 1 for most others
    unit: str
    currency: str
    source: str
    confidence: str  # one of CONFIDENCES
    free: Decimal | None = None  # free units per account and month

    def of(self, units: Decimal | int | float) -> Decimal:
        """Return the exact cost of a number of units; the caller subtracts free units.

        Floats are converted exactly: units are whole or half numbers.
        """
        return Decimal(units) * self.amount / self.per

    def __str__(self) -> str:
        many = f"{self.per:,} {self.unit}s" if self.per > 1 else self.unit
        return f"{self.amount} {self.currency} per {many}"


@dataclass(frozen=True, slots=True)
class Discount:
    """The maximum discount in percent, and its terms."""

    name: str
    percent_max: Decimal
    terms: str
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class PriceBook:
    """The prices of one region on one date; a labelled book has the prices that a document states."""

    region: str
    date: datetime.date
    source: str
    prices: Mapping[str, Price]
    label: str | None = None
    discounts: Mapping[str, Discount] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The display name, shown with every amount."""
        title = f"{self.region}, {self.date.isoformat()}"
        return title if self.label is None else f"{title}, as in {self.label}"

    def price(self, name: str) -> Price:
        """Return a price by name; `UnknownPrice` lists the available names."""
        price = self.prices.get(name)
        if price is None:
            known = tuple(self.prices)
            raise UnknownPrice(
                f"the price book of {self.title} has no price {name!r}; it has {', '.join(known)}",
                name=name,
                book=self.title,
                known=known,
            )
        return price

    def usd_per_million(self, units: Decimal | int | float, kind: str) -> Decimal:
        """Return the cost in dollars of a million requests with this number of units each.

        `kind` is the name of a price: `read_request_unit` or `write_request_unit` for on-demand tables.
        """
        price = self.price(kind)
        if price.currency != "USD":
            raise UnknownPrice(
                f"the price book of {self.title} has {kind!r} in {price.currency}, not in dollars",
                name=kind,
                book=self.title,
                known=tuple(name for name, price in self.prices.items() if price.currency == "USD"),
            )
        return price.of(Decimal(units) * _MILLION)
