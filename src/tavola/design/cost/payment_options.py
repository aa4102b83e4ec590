"""Payment options: the bill of a design under each of them, and which one to choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from tavola.design.cost.alterations import without_fixed_units
from tavola.design.cost.assumptions import Assumptions, Class, CostRefused, Mode, Term
from tavola.design.cost.break_even import storage_share
from tavola.design.cost.month import MonthlyBill, estimate_month
from tavola.design.cost.traffic import HOURS, rated_accesses
from tavola.model.document import Design
from tavola.prices import PriceBook

WORTH = Decimal("0.02")  # share of the bill below which a change is not worth it
CENT = Decimal("0.005")  # rounds to one cent


@dataclass(frozen=True, slots=True)
class PaymentOption:
    """A billing mode, table class and reservation, with the bill under it."""

    name: str
    mode: Mode
    table_class: Class
    reserved: Term | None
    month: MonthlyBill | None  # None: the book lacks prices for it
    reason: str = ""  # why there is no bill

    @property
    def total(self) -> Decimal | None:
        """The monthly total, if known."""
        return None if self.month is None else self.month.total


_WAYS: tuple[tuple[str, Mode, Class, Term | None], ...] = (
    ("on demand", "on-demand", "STANDARD", None),
    ("on demand, Standard-IA", "on-demand", "STANDARD_INFREQUENT_ACCESS", None),
    ("provisioned, scaled", "provisioned", "STANDARD", None),
    ("provisioned, scaled, Standard-IA", "provisioned", "STANDARD_INFREQUENT_ACCESS", None),
    ("provisioned, reserved 1 year", "provisioned", "STANDARD", "one_year"),
    ("provisioned, reserved 3 years", "provisioned", "STANDARD", "three_years"),
)


def payment_options(
    design: Design,
    assumptions: Assumptions,
    book: PriceBook,
    *,
    only: Sequence[str] | None = None,
    times: float = 1.0,
) -> tuple[PaymentOption, ...]:
    """Return the bill of a design under every payment option.

    Provisioned units follow the traffic, even for tables with fixed units. `only` limits the options by name; `times` multiplies
    all rates.
    """
    free = without_fixed_units(design)
    return tuple(
        _payment_option(free, assumptions, book, *option, times)
        for option in _WAYS
        if only is None or option[0] in only
    )


def _payment_option(
    design: Design,
    assumptions: Assumptions,
    book: PriceBook,
    name: str,
    mode: Mode,
    table_class: Class,
    term: Term | None,
    times: float,
) -> PaymentOption:
    assumed = replace(assumptions, mode=mode, table_class=table_class, reserved=term)
    try:
        month = estimate_month(design, assumed, book, times=times)
    except CostRefused as error:
        return PaymentOption(name, mode, table_class, term, None, str(error))
    if month.unpriced:
        return PaymentOption(
            name, mode, table_class, term, None, f"the book has no {', '.join(month.unpriced)}"
        )
    return PaymentOption(name, mode, table_class, term, month)


def recommend_payment(
    design: Design,
    assumptions: Assumptions,
    book: PriceBook,
    told: Sequence[PaymentOption] | None = None,
    month: MonthlyBill | None = None,
) -> str:
    """Return a sentence that recommends a payment option, and why. Pass the options and the bill if known."""
    now = month or estimate_month(design, assumptions, book)
    asked = rated_accesses(design)
    if not now.total:
        return _explain_zero(design, assumptions, now)
    if not any(each.rate for each in asked):
        return (
            "No access pattern has a rate, so this is only what is paid for standing there, and no way of paying can be "
            "recommended: declare AccessPattern(per_second=…) and WritePattern(per_second=…)."
        )
    told = [way for way in told or payment_options(design, assumptions, book) if way.month is not None]
    if not told:
        return f"The book of {book.title} has too few prices to compare ways of paying."
    free = [way for way in told if way.reserved is None]
    best = min(free, key=lambda way: (way.total or Decimal(0), way.name))
    assert best.month is not None, "ways without a price were left out"
    saving = now.total - best.month.total
    if saving < 0:
        sentence = (
            "Stay as it is: no one way of paying for everything is cheaper than what each table declares."
        )
    elif not saving:
        sentence = f"Stay as it is: no other way of paying saves anything, because {_explain_cheapest(best, told, book)}."
    elif saving <= now.total * WORTH:
        sentence = f"Stay as it is: {best.name} would save no more than {WORTH:.0%}, although {_explain_cheapest(best, told, book)}."
    else:
        sentence = f"Pay {best.name}: {format_money(saving, now)} a month less than now ({saving / now.total:.0%}), because "
        sentence += f"{_explain_cheapest(best, told, book)}."
    if not any(each.peak_per_second for each in asked):
        sentence += " No pattern declares peak_per_second, so its traffic is taken as even; peaks make provisioned units dearer."
    bound = [way for way in told if way.reserved is not None]
    cheapest = min(bound, key=lambda way: way.total or Decimal(0), default=best)
    less = best.month.total - (cheapest.total or Decimal(0))
    if less >= CENT:
        sentence += f" Traffic that stays for years is cheaper still {cheapest.name}: up to {format_money(less, now)} less."
    return sentence


def _explain_zero(design: Design, assumptions: Assumptions, now: MonthlyBill) -> str:
    """Return why a month costs nothing."""
    if now.unpriced:
        return (
            f"The price book of {now.book} has none of the prices that this takes ({', '.join(now.unpriced)}), so nothing "
            "could be summed up: give another with --prices."
        )
    if now.of("free tier"):
        return "All of it is within what an account has free each month."
    kept = any(entity.items for table in design.tables for entity in table.entities)
    if kept or any(assumptions.storage_gb.values()) or any(bill.per_second for bill in now.bills):
        return "It is so little that it comes to nothing."
    return (
        "No access pattern has a rate and no entity a number of items, so the month costs nothing yet: declare "
        "AccessPattern(per_second=…), WritePattern(per_second=…) and items=… of the entities."
    )


def _explain_cheapest(best: PaymentOption, options: Sequence[PaymentOption], book: PriceBook) -> str:
    """Return why the cheapest option is so: by storage in its table class, and by utilisation.

    Units are weighted by price, so that being above the break-even point means being cheaper.
    """
    alike = {
        way.mode: way.month for way in options if way.table_class == best.table_class and way.reserved is None
    }
    reasons = []
    on_demand, provisioned = alike.get("on-demand"), alike.get("provisioned")
    if on_demand is not None and provisioned is not None and on_demand.requests and provisioned.requests:
        worth = _used_cost(provisioned, book)
        used, share = worth / provisioned.requests, worth / on_demand.requests
        cheaper = provisioned.total < on_demand.total
        if cheaper == (used > share):
            side = "above" if cheaper else "below"
            reasons.append(
                f"units scaled to its traffic would be {used:.0%} used, {side} the {share:.0%} from which provisioned units pay"
            )
        else:
            reasons.append("of provisioned units an account has some free, and of requests none")
    standard = next(
        (way.month for way in options if (way.mode, way.table_class) == (best.mode, "STANDARD")), None
    )
    if standard is not None and standard.requests and best.month is not None:
        threshold = storage_share(book, standard)
        stands = standard.of("storage") / standard.requests
        rare = best.table_class != "STANDARD"
        if threshold is not None and (stands > threshold) is rare and (rare or stands > threshold / 2):
            side = "above" if rare else "below"
            reasons.append(
                f"storage costs {stands:.0%} of what requests do, {side} the {threshold:.0%} from which Standard-IA pays"
            )
    return " and ".join(reasons) or "it has the lowest sum at these prices"


def _used_cost(month: MonthlyBill, book: PriceBook) -> Decimal:
    """Return what the used part of provisioned units costs."""
    return sum(
        (
            book.price(each.price).of(Decimal(str(each.used)) * month.hours / HOURS)
            for each in month.capacities
            if each.used
        ),
        Decimal(0),
    )


def format_money(amount: Decimal, month: MonthlyBill) -> str:
    """Return an amount with its currency, to the cent."""
    digits = f"{abs(amount):,.2f}"
    sign = "-" if amount < 0 and digits.strip("0.,") else ""
    return f"{sign}${digits}" if month.currency == "USD" else f"{sign}{digits} {month.currency}"
