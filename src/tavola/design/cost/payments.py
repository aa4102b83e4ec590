"""Payment options: the bill of a design under each of them, which one to choose, break-even points and cost curves.

A payment option is a capacity mode, a table class and a reservation. The bill is computed for each (`payment_options`).
Break-even points come from the prices alone. Cost curves multiply all rates by a factor and compute the bills again; on-demand
cost is linear in traffic, so two bills determine its whole curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import exp, log

from tavola.design.cost.alterations import without_fixed_units
from tavola.design.cost.assumptions import Assumptions, Class, CostError, Mode, Term
from tavola.design.cost.month import REQUESTS, MonthlyBill, estimate_month
from tavola.design.cost.traffic import HOURS, rated_accesses
from tavola.design.text import HALF_CENT, format_money
from tavola.model.document import Design
from tavola.prices import PriceBook

SAVING_SHARE_MIN = Decimal("0.02")  # of the bill; smaller savings are not worth a change
_HOUR_S = 3600
FACTORS = tuple(10 ** (step / 3) for step in range(-6, 7))  # 0.01 to 100 times, three steps per power of ten


@dataclass(frozen=True, slots=True)
class PaymentOption:
    """A capacity mode, table class and reservation, with the resulting bill."""

    name: str
    mode: Mode
    table_class: Class
    reserved: Term | None
    month: MonthlyBill | None  # None: the book lacks prices for it
    reason: str = ""  # why `month` is None

    @property
    def total(self) -> Decimal | None:
        """The monthly total, if known."""
        return None if self.month is None else self.month.total


ON_DEMAND = "On-demand"
_OPTIONS: tuple[tuple[str, Mode, Class, Term | None], ...] = (
    (ON_DEMAND, "on-demand", "STANDARD", None),
    ("On-demand, Standard-IA", "on-demand", "STANDARD_INFREQUENT_ACCESS", None),
    ("Provisioned, auto scaling", "provisioned", "STANDARD", None),
    ("Provisioned, auto scaling, Standard-IA", "provisioned", "STANDARD_INFREQUENT_ACCESS", None),
    ("Provisioned, reserved 1 year", "provisioned", "STANDARD", "one_year"),
    ("Provisioned, reserved 3 years", "provisioned", "STANDARD", "three_years"),
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

    Provisioned capacity uses auto scaling, even for tables with fixed units. `only` limits the options by name; `times` multiplies
    all rates.
    """
    scaled = without_fixed_units(design)
    return tuple(
        _payment_option(scaled, assumptions, book, *option, times)
        for option in _OPTIONS
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
    except CostError as error:
        return PaymentOption(name, mode, table_class, term, None, str(error))
    if month.unpriced:
        return PaymentOption(
            name, mode, table_class, term, None, f"the price book has no {', '.join(month.unpriced)}"
        )
    return PaymentOption(name, mode, table_class, term, month)


def recommend_payment(
    design: Design,
    assumptions: Assumptions,
    book: PriceBook,
    options: Sequence[PaymentOption] | None = None,
    month: MonthlyBill | None = None,
) -> str:
    """Return sentences that recommend a payment option and explain why. Pass `options` and `month` if already computed."""
    current = month or estimate_month(design, assumptions, book)
    accesses = rated_accesses(design)
    if not current.total:
        return _explain_zero(design, assumptions, current)
    if not any(access.rate for access in accesses):
        return (
            "No access pattern has a rate, so this is only storage and idle capacity, and no capacity mode can be recommended: "
            "declare AccessPattern(per_second=…) and WritePattern(per_second=…)."
        )
    priced = [
        option for option in options or payment_options(design, assumptions, book) if option.month is not None
    ]
    if not priced:
        return f"The price book of {book.title} has too few prices to compare capacity modes."
    unreserved = [option for option in priced if option.reserved is None]
    best = min(unreserved, key=lambda option: (option.total or Decimal(0), option.name))
    assert best.month is not None, "options without prices were removed"
    saving = current.total - best.month.total
    if saving < 0:
        sentence = "Keep the current settings: no single capacity mode for all tables is cheaper than what each table declares."
    elif not saving:
        sentence = f"Keep the current settings: no other capacity mode is cheaper, because {_explain_cheapest(best, priced, book)}."
    elif saving <= current.total * SAVING_SHARE_MIN:
        sentence = f"Keep the current settings: {best.name} would save at most {SAVING_SHARE_MIN:.0%}, although {_explain_cheapest(best, priced, book)}."
    else:
        sentence = f"{_describe_option(best)} would cost {format_bill(saving, current)} less per month ({saving / current.total:.0%}), because "
        sentence += f"{_explain_cheapest(best, priced, book)}."
    if not any(access.peak_per_second for access in accesses):
        sentence += " No access pattern declares peak_per_second, so traffic is assumed to be even; peaks make provisioned capacity more expensive."
    reserved = [option for option in priced if option.reserved is not None]
    cheapest = min(reserved, key=lambda option: option.total or Decimal(0), default=best)
    further_saving = best.month.total - (cheapest.total or Decimal(0))
    if further_saving >= HALF_CENT:
        years = "three years" if cheapest.reserved == "three_years" else "a year"
        sentence += f" If the traffic will last {years}, reserved capacity saves up to {format_bill(further_saving, current)} more."
    return sentence


def _describe_option(option: PaymentOption) -> str:
    mode = "On-demand" if option.mode == "on-demand" else "Provisioned capacity with auto scaling"
    return mode if option.table_class == "STANDARD" else f"{mode} and the table class Standard-IA"


def _explain_zero(design: Design, assumptions: Assumptions, current: MonthlyBill) -> str:
    """Explain why a month costs nothing."""
    if current.unpriced:
        return (
            f"The price book of {current.book} has none of the required prices ({', '.join(current.unpriced)}): use another with "
            "--prices."
        )
    if current.of("free tier"):
        return "The free tier covers all of it."
    has_items = any(entity.items for table in design.tables for entity in table.entities)
    if has_items or any(assumptions.storage_gb.values()) or any(bill.per_second for bill in current.bills):
        return "The cost is negligible."
    return (
        "No access pattern has a rate and no entity a number of items, so the month costs nothing: declare "
        "AccessPattern(per_second=…), WritePattern(per_second=…) and items=… of the entities."
    )


def _explain_cheapest(best: PaymentOption, options: Sequence[PaymentOption], book: PriceBook) -> str:
    """Explain why an option is the cheapest: by utilization, and by the share of storage in the bill.

    Units are weighted by price, so that being above the break-even point means being cheaper.
    """
    by_mode = {
        option.mode: option.month
        for option in options
        if option.table_class == best.table_class and option.reserved is None
    }
    reasons = []
    on_demand, provisioned = by_mode.get("on-demand"), by_mode.get("provisioned")
    if on_demand is not None and provisioned is not None and on_demand.requests and provisioned.requests:
        used_cost = _used_cost(provisioned, book)
        used, share = used_cost / provisioned.requests, used_cost / on_demand.requests
        cheaper = provisioned.total < on_demand.total
        if cheaper == (used > share):
            side = "above" if cheaper else "below"
            reasons.append(
                f"auto-scaled capacity would be {used:.0%} utilized, {side} the {share:.0%} break-even point of provisioned capacity"
            )
        else:
            reasons.append("the free tier includes provisioned capacity but no on-demand requests")
    standard = next(
        (option.month for option in options if (option.mode, option.table_class) == (best.mode, "STANDARD")),
        None,
    )
    if standard is not None and standard.requests and best.month is not None:
        threshold = storage_share(book, standard)
        design_share = standard.of("storage") / standard.requests
        is_infrequent = best.table_class != "STANDARD"
        if (
            threshold is not None
            and (design_share > threshold) is is_infrequent
            and (is_infrequent or design_share > threshold / 2)
        ):
            side = "above" if is_infrequent else "below"
            reasons.append(
                f"storage costs {design_share:.0%} of requests, {side} the {threshold:.0%} break-even point of Standard-IA"
            )
    return " and ".join(reasons) or "it has the lowest total at these prices"


def _used_cost(month: MonthlyBill, book: PriceBook) -> Decimal:
    """Return the cost of the used part of provisioned capacity."""
    return sum(
        (
            book.price(capacity.price).of(Decimal(str(capacity.used_units)) * month.hours / HOURS)
            for capacity in month.capacities
            if capacity.used_units
        ),
        Decimal(0),
    )


def format_bill(amount: Decimal, month: MonthlyBill) -> str:
    """Return an amount in the currency of a bill."""
    return format_money(amount, month.currency)


# Break-even points.


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The share above which a payment option is cheaper, and this design's share."""

    name: str
    share: Decimal  # 0 to 1; above 1 the option never pays off
    design_share: Decimal | None  # None: not applicable
    sentence: str


def break_evens(book: PriceBook, standard: MonthlyBill, provisioned: MonthlyBill) -> tuple[BreakEven, ...]:
    """Return the break-even points for which a book has prices.

    `standard` is the bill in the Standard table class, `provisioned` the bill with auto scaling.
    """
    points = [
        _utilization_point(book, provisioned, kind, word)
        for kind, word in (("read", "reads"), ("write", "writes"))
    ]
    points += [_storage_class_point(book, standard)]
    points += [
        _reservation_point(book, provisioned, term, word)
        for term, word in (("one_year", "one year"), ("three_years", "three years"))
    ]
    return tuple(point for point in points if point is not None)


def utilization_share(book: PriceBook, kind: str) -> Decimal | None:
    """Return the utilization above which a provisioned unit is cheaper than on-demand requests; None if prices are missing."""
    request, hour = book.prices.get(f"{kind}_request_unit"), book.prices.get(f"{kind}_capacity_unit_hour")
    if request is None or hour is None or not request.amount:
        return None
    return hour.of(1) / request.of(_HOUR_S)


def storage_share(book: PriceBook, month: MonthlyBill) -> Decimal | None:
    """Return the ratio of storage to request cost above which Standard-IA is cheaper.

    It depends on the mix of reads and writes, which is that of `month`, a bill for Standard tables.
    """
    standard, infrequent = book.prices.get("storage_gb_month"), book.prices.get("ia_storage_gb_month")
    if standard is None or infrequent is None or infrequent.amount >= standard.amount or not month.requests:
        return None
    extra_request_cost = Decimal(0)
    for line in month.lines:
        if line.what in REQUESTS:
            infrequent_price = book.prices.get(f"ia_{line.price.removeprefix('replicated_')}")
            if infrequent_price is None:
                return None
            extra_request_cost += infrequent_price.of(line.quantity) - line.amount
    storage_discount = 1 - infrequent.amount / standard.amount
    return extra_request_cost / month.requests / storage_discount


def _utilization_point(book: PriceBook, month: MonthlyBill, kind: str, word: str) -> BreakEven | None:
    share = utilization_share(book, kind)
    if share is None:
        return None
    capacities = [capacity for capacity in month.capacities if capacity.kind == kind]
    units = sum(capacity.units for capacity in capacities)
    design_share = (
        Decimal(str(sum(capacity.used_units for capacity in capacities) / units)) if units else None
    )
    design_note = (
        "" if design_share is None else f"; with auto scaling, this design would reach {design_share:.0%}"
    )
    return BreakEven(
        f"provisioned {word}",
        share,
        design_share,
        f"Provisioned capacity for {word} is cheaper than on-demand above {share:.1%} utilization{design_note}.",
    )


def _storage_class_point(book: PriceBook, month: MonthlyBill) -> BreakEven | None:
    share = storage_share(book, month)
    if share is None:
        return None
    design_share = month.of("storage") / month.requests
    return BreakEven(
        "Standard-IA",
        share,
        design_share,
        f"Standard-IA is cheaper if storage costs more than {share:.0%} of requests; here it is {_format_share(design_share)}.",
    )


def _format_share(share: Decimal) -> str:
    return "less than 1%" if 0 < share < Decimal("0.005") else f"{share:.0%}"


def _reservation_point(book: PriceBook, month: MonthlyBill, term: str, word: str) -> BreakEven | None:
    discount = book.discounts.get(f"reserved_{term}")
    if discount is None:
        return None
    share = 1 - discount.percent_max / 100
    capacities = [capacity for capacity in month.capacities if capacity.reservable]
    units = sum(capacity.units for capacity in capacities)
    peak_units = sum(max(capacity.hourly) for capacity in capacities) * 24
    design_share = Decimal(units) / peak_units if peak_units else None
    return BreakEven(
        f"reserved for {word}",
        share,
        design_share,
        f"Capacity reserved for {word} pays off if it is provisioned for more than {share:.0%} of the hours (discount of "
        f"up to {discount.percent_max}%, in blocks of 100 units).",
    )


# Cost curves.


@dataclass(frozen=True, slots=True)
class CostCurve:
    """The cost of one payment option at each factor."""

    name: str
    totals: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True)
class CurveCrossing:
    """The traffic at which one payment option becomes cheaper than another."""

    cheaper_below: str
    cheaper_above: str
    factor: float


@dataclass(frozen=True, slots=True)
class CostCurves:
    """The payment options over a range of traffic; factor 1 is the design itself."""

    factors: tuple[float, ...]
    per_second: float  # requests of all access patterns
    lines: tuple[CostCurve, ...]
    meetings: tuple[CurveCrossing, ...]


def compute_curves(
    design: Design, assumptions: Assumptions, book: PriceBook, factors: Sequence[float] = FACTORS
) -> CostCurves:
    """Return the cost of each payment option at multiples of the traffic; options without prices are left out."""
    scaled_design = without_fixed_units(design)  # once: caches are keyed by the identity of the design
    idle = {option.name: option for option in payment_options(scaled_design, assumptions, book, times=0.0)}
    priced = [
        option for option in payment_options(scaled_design, assumptions, book) if option.total is not None
    ]
    linear = (
        () if assumptions.free_tier else tuple(option.name for option in priced if option.mode == "on-demand")
    )
    nonlinear = [option.name for option in priced if option.name not in linear]
    scaled = [
        {
            option.name: option.total or Decimal(0)
            for option in payment_options(scaled_design, assumptions, book, only=nonlinear, times=factor)
        }
        for factor in factors
    ]
    lines = []
    for option in priced:
        if option.name in linear:
            start = idle[option.name].total or Decimal(0)
            step = (option.total or Decimal(0)) - start
            totals = tuple(start + step * Decimal(str(factor)) for factor in factors)
        else:
            totals = tuple(point[option.name] for point in scaled)
        lines.append(CostCurve(option.name, totals))
    requests = sum(access.rate for access in rated_accesses(design))
    return CostCurves(tuple(factors), requests, tuple(lines), _find_crossings(factors, lines))


def _find_crossings(factors: Sequence[float], lines: Sequence[CostCurve]) -> tuple[CurveCrossing, ...]:
    """Return where each payment option crosses on-demand, interpolated between two factors."""
    base = next((line for line in lines if line.name == ON_DEMAND), None)
    crossings: list[CurveCrossing] = []
    for line in lines:
        if base is None or line is base:
            continue
        gaps = [
            float(on_demand_total - option_total)
            for on_demand_total, option_total in zip(base.totals, line.totals, strict=True)
        ]
        for position in range(len(gaps) - 1):
            before, after = gaps[position], gaps[position + 1]
            if before * after >= 0 or before == after:
                continue
            share = before / (before - after)
            factor = exp(
                log(factors[position]) + share * (log(factors[position + 1]) - log(factors[position]))
            )
            below, above = (base.name, line.name) if before < 0 else (line.name, base.name)
            crossings.append(CurveCrossing(below, above, factor))
    return tuple(crossings)
