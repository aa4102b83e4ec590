"""Break-even points between payment options, by a book's prices."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tavola.design.cost.month import REQUESTS, MonthlyBill
from tavola.prices import PriceBook

_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The share from which a payment option is cheaper, and the share of this design."""

    name: str
    share: Decimal  # 0 to 1, or above where the other way never wins
    stands: Decimal | None  # the design's own share; None: it has none
    sentence: str


def break_evens(book: PriceBook, standard: MonthlyBill, provisioned: MonthlyBill) -> tuple[BreakEven, ...]:
    """Return the break-even points for which a book has prices.

    `standard` is the bill in the Standard table class, `provisioned` the bill with units that follow the traffic.
    """
    points = [
        _utilisation(book, provisioned, kind, word) for kind, word in (("read", "reads"), ("write", "writes"))
    ]
    points += [_storage_class(book, standard)]
    points += [
        _reserved(book, provisioned, term, word)
        for term, word in (("one_year", "one year"), ("three_years", "three years"))
    ]
    return tuple(each for each in points if each is not None)


def utilisation_share(book: PriceBook, kind: str) -> Decimal | None:
    """Return the utilisation from which a provisioned unit is cheaper than requests; None if prices are missing."""
    request, hour = book.prices.get(f"{kind}_request_unit"), book.prices.get(f"{kind}_capacity_unit_hour")
    if request is None or hour is None or not request.amount:
        return None
    return hour.of(1) / request.of(_HOUR_S)


def storage_share(book: PriceBook, month: MonthlyBill) -> Decimal | None:
    """Return how large storage cost must be, relative to request cost, for Standard-IA to be cheaper.

    For the mix of reads and writes in a bill of Standard tables.
    """
    standard, rare = book.prices.get("storage_gb_month"), book.prices.get("ia_storage_gb_month")
    if standard is None or rare is None or rare.amount >= standard.amount or not month.requests:
        return None
    dearer = Decimal(0)
    for line in month.lines:
        if line.what in REQUESTS:
            other = book.prices.get(f"ia_{line.price.removeprefix('replicated_')}")
            if other is None:
                return None
            dearer += other.of(line.quantity) - line.amount
    cheaper = 1 - rare.amount / standard.amount
    return dearer / month.requests / cheaper


def _utilisation(book: PriceBook, month: MonthlyBill, kind: str, word: str) -> BreakEven | None:
    share = utilisation_share(book, kind)
    if share is None:
        return None
    own = [each for each in month.capacities if each.kind == kind]
    units = sum(each.units for each in own)
    stands = Decimal(str(sum(each.used for each in own) / units)) if units else None
    here = "" if stands is None else f"; scaled to this traffic they would be {stands:.0%} used"
    return BreakEven(
        f"provisioned {word}",
        share,
        stands,
        f"Provisioned units for {word} are cheaper than requests where they are more than {share:.1%} used{here}.",
    )


def _storage_class(book: PriceBook, month: MonthlyBill) -> BreakEven | None:
    share = storage_share(book, month)
    if share is None:
        return None
    stands = month.of("storage") / month.requests
    return BreakEven(
        "Standard-IA",
        share,
        stands,
        f"Standard-IA is cheaper where storage costs more than {share:.0%} of what requests do; here it is {stands:.0%}.",
    )


def _reserved(book: PriceBook, month: MonthlyBill, term: str, word: str) -> BreakEven | None:
    discount = book.discounts.get(f"reserved_{term}")
    if discount is None:
        return None
    share = 1 - discount.percent_max / 100
    own = [each for each in month.capacities if each.reservable]
    units = sum(each.units for each in own)
    most = sum(max(each.hourly) for each in own) * 24
    stands = Decimal(units) / most if most else None
    return BreakEven(
        f"reserved for {word}",
        share,
        stands,
        f"A unit reserved for {word} pays where it is provisioned for more than {share:.0%} of the hours (the book's "
        f"discount is up to {discount.percent_max} %, in blocks of 100 units).",
    )
