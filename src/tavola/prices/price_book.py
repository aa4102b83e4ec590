"""PriceBook: the prices of one region, as they stood on one date.

Money is `Decimal` from the file to the sum: a price such as 0.00013 has no exact float.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from tavola.prices.errors import PriceUnknown

CONFIDENCES = ("high", "medium", "low")  # read in a price list; by analogy or many tellings; from memory

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What so many of one thing cost, and how we know."""

    name: str
    amount: Decimal
    per: int  # so many units for the amount: 1 000 000 of request units, 1 of most things
    unit: str
    currency: str
    source: str
    confidence: str  # one of CONFIDENCES
    free: Decimal | None = None  # units that cost nothing each month, in an account

    def of(self, units: Decimal | int | float) -> Decimal:
        """Return what so many units cost, exactly; what is free is left to whoever adds up a month.

        A float is taken at its face: units are whole or half numbers, which floats hold exactly.
        """
        return Decimal(units) * self.amount / self.per

    def __str__(self) -> str:
        many = f"{self.per:,} {self.unit}s" if self.per > 1 else self.unit
        return f"{self.amount} {self.currency} per {many}"


@dataclass(frozen=True, slots=True)
class Discount:
    """Up to how many per cent less is paid for what, and on which terms."""

    name: str
    percent_max: Decimal
    terms: str
    source: str
    confidence: str


@dataclass(frozen=True, slots=True)
class PriceBook:
    """The prices of one region on one date; a labelled book tells what a document says, true or not."""

    region: str
    date: datetime.date
    source: str
    prices: Mapping[str, Price]
    label: str | None = None
    discounts: Mapping[str, Discount] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The book as a person would name it, to stand beside every sum made with it."""
        title = f"{self.region}, {self.date.isoformat()}"
        return title if self.label is None else f"{title}, as in {self.label}"

    def price(self, name: str) -> Price:
        """Return the price of this name; `PriceUnknown` names those that the book has."""
        found = self.prices.get(name)
        if found is None:
            known = tuple(self.prices)
            raise PriceUnknown(
                f"the price book of {self.title} has no price {name!r}; it has {', '.join(known)}",
                name=name,
                book=self.title,
                known=known,
            )
        return found

    def usd_per_million(self, units: Decimal | int | float, kind: str) -> Decimal:
        """Return the dollars of a million requests that take so many units each of one kind of price.

        `kind` is a name of the book: `read_request_unit` or `write_request_unit` of an on-demand table.
        """
        price = self.price(kind)
        if price.currency != "USD":
            raise PriceUnknown(
                f"the price book of {self.title} has {kind!r} in {price.currency}, not in dollars",
                name=kind,
                book=self.title,
                known=tuple(name for name, each in self.prices.items() if each.currency == "USD"),
            )
        return price.of(Decimal(units) * _MILLION)
