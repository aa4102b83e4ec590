"""Break-even points: from when another way of paying is the cheaper one, by a book's own prices."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tavola.design.cost.month import REQUESTS, MonthlyBill
from tavola.prices import PriceBook

_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class BreakEven:
    """A share from which one way of paying wins, and where the design stands."""

    name: str
    share: Decimal  # 0 to 1, or above where the other way never wins
    stands: Decimal | None  # the design's own share; None: it has none
    sentence: str


def break_evens(book: PriceBook, standard: MonthlyBill, provisioned: MonthlyBill) -> tuple[BreakEven, ...]:
    """Return the break-even points that a book's prices have; what it has no price for is left out.

    `standard` is the month of Standard tables as they are paid for, `provisioned` that of units scaled to the traffic.
    """
    told = [
        _utilisation(book, provisioned, kind, word) for kind, word in (("read", "reads"), ("write", "writes"))
    ]
    told += [_storage_class(book, standard)]
    told += [
        _reserved(book, provisioned, term, word)
        for term, word in (("one_year", "one year"), ("three_years", "three years"))
    ]
    return tuple(each for each in told if each is not None)


def utilisation_share(book: PriceBook, kind: str) -> Decimal | None:
    """Return the used part of a provisioned unit from which it is cheaper than requests; None without the prices."""
    request, hour = book.prices.get(f"{kind}_request_unit"), book.prices.get(f"{kind}_capacity_unit_hour")
    if request is None or hour is None or not request.amount:
        return None
    return hour.of(1) / request.of(_HOUR_S)


def storage_share(book: PriceBook, month: MonthlyBill) -> Decimal | None:
    """Return how much storage must cost, in parts of what requests cost, for Standard-IA to be cheaper.

    Of this month's own mix of reads and writes; its lines are those of Standard tables.
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
