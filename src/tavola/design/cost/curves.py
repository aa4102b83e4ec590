"""Cost curves: the monthly cost of each payment option against traffic, and where two of them cross.

All rates are multiplied by a factor and the month is computed as usual. On-demand cost is linear in traffic, so two months
determine its whole curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import exp, log

from tavola.design.cost.alterations import without_fixed_units
from tavola.design.cost.assumptions import Assumptions
from tavola.design.cost.payment_options import payment_options
from tavola.design.cost.traffic import rated_accesses
from tavola.model.document import Design
from tavola.prices import PriceBook

FACTORS = tuple(
    10 ** (step / 3) for step in range(-6, 7)
)  # a hundredth to a hundred times, three to each ten


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
    per_second: float  # requests that the design's rates are together
    lines: tuple[CostCurve, ...]
    meetings: tuple[CurveCrossing, ...]


def compute_curves(
    design: Design, assumptions: Assumptions, book: PriceBook, factors: Sequence[float] = FACTORS
) -> CostCurves:
    """Return the cost of each payment option at multiples of the traffic; options without prices are left out."""
    free = without_fixed_units(design)  # once: what is known of a design goes by its identity
    at_rest = {way.name: way for way in payment_options(free, assumptions, book, times=0.0)}
    own = payment_options(free, assumptions, book)
    known = [way for way in own if way.total is not None]
    straight = () if assumptions.free_tier else tuple(way.name for way in known if way.mode == "on-demand")
    bent = [way.name for way in known if way.name not in straight]
    scaled = [
        {
            way.name: way.total or Decimal(0)
            for way in payment_options(free, assumptions, book, only=bent, times=factor)
        }
        for factor in factors
    ]
    lines = []
    for way in known:
        if way.name in straight:
            start = at_rest[way.name].total or Decimal(0)
            step = (way.total or Decimal(0)) - start
            totals = tuple(start + step * Decimal(str(factor)) for factor in factors)
        else:
            totals = tuple(point[way.name] for point in scaled)
        lines.append(CostCurve(way.name, totals))
    asked = sum(access.rate for access in rated_accesses(design))
    return CostCurves(tuple(factors), asked, tuple(lines), _find_crossings(factors, lines))


def _find_crossings(factors: Sequence[float], lines: Sequence[CostCurve]) -> tuple[CurveCrossing, ...]:
    """Return where each payment option crosses on-demand, interpolated between two factors."""
    base = next((line for line in lines if line.name == "on demand"), None)
    found: list[CurveCrossing] = []
    for line in lines:
        if base is None or line is base:
            continue
        gaps = [float(one - other) for one, other in zip(base.totals, line.totals, strict=True)]
        for at in range(len(gaps) - 1):
            before, after = gaps[at], gaps[at + 1]
            if before * after >= 0 or before == after:
                continue
            share = before / (before - after)
            factor = exp(log(factors[at]) + share * (log(factors[at + 1]) - log(factors[at])))
            below, above = (base.name, line.name) if before < 0 else (line.name, base.name)
            found.append(CurveCrossing(below, above, factor))
    return tuple(found)
