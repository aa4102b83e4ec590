"""The result of the calculator as text, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.cost.calculator import Calculation, ComparisonStep, CostBreakdown
from tavola.design.cost.payment_options import format_money
from tavola.design.cost.report import WIDTH, bullet_list, describe_prices, format_exact, layout_table


def calculation_text(calculation: Calculation, steps: Sequence[ComparisonStep], notes: Sequence[str]) -> str:
    """Return a calculation as plain text; `steps` explain the difference from a document."""
    month, demand = calculation.month, calculation.demand
    consistency = "strongly" if demand.consistent else "eventually"
    hours = "" if demand.hours_per_day == 24 else f", {demand.hours_per_day} hours a day"
    if demand.indexes:
        hours = f", {demand.indexes} index{'' if demand.indexes == 1 else 'es'} of whole items{hours}"
    asked = (
        f"{demand.reads_per_second:g} reads a second ({consistency} consistent), {demand.writes_per_second:g} writes a "
        f"second, items of {demand.item_kb:g} KB, {demand.storage_gb:g} GB{hours}: {describe_prices(month)}"
    )
    units = (
        f"A read takes {_units(calculation.read_units)} and a write {_units(calculation.write_units)}: {calculation.read_capacity:,} read and "
        f"{calculation.write_capacity:,} write units a second while there is traffic."
    )
    lines = [*wrap(asked, WIDTH), "", *wrap(units, WIDTH), ""]
    more = any(sums.other for _, sums in _options(calculation))
    rows = [
        (
            name,
            *(format_money(amount, month) for amount in (sums.reads, sums.writes, sums.storage)),
            *((format_money(sums.other, month),) if more else ()),
            "not known" if sums.unpriced else format_money(sums.total, month),
        )
        for name, sums in _options(calculation)
    ]
    heads = ("way of paying", "reads", "writes", "storage", *(("other",) if more else ()), "a month")
    lines += layout_table(heads, rows, "l" + "r" * (len(heads) - 1))
    lines += ["", *wrap(describe_recommendation(calculation), WIDTH)]
    if steps:
        lines += ["", "what differs from the document, and why"]
        shown = [
            (format_money(each.on_demand, month), format_money(each.provisioned, month), each.sentence)
            for each in steps
        ]
        widths = [
            max(len(heading_), *(len(row[at]) for row in shown))
            for at, heading_ in enumerate(("on demand", "provisioned"))
        ]
        lines.append(f"  {'on demand':>{widths[0]}}  {'provisioned':>{widths[1]}}")
        for row in shown:
            head = f"  {row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  "
            lines += wrap(row[2], WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    notes = (*_missing_prices(calculation), *notes)
    if notes:
        lines += ["", "taken for this", *bullet_list(notes)]
    return "\n".join(lines)


def describe_recommendation(calculation: Calculation) -> str:
    """Return a sentence that recommends a payment option, and why."""
    month = calculation.month
    if calculation.recommended is None:
        return f"The price book of {month.book} has too few prices to compare ways of paying."
    if not calculation.on_demand.total and calculation.on_demand.other:
        return "All of it is within what an account has free each month, paid on demand."
    if not calculation.on_demand.total:
        return "There is no traffic and nothing stored, so there is nothing to pay; give --reads, --writes or --storage-gb."
    kind = (
        "fixed at the need" if calculation.provisioned == calculation.fixed else "that scale with the traffic"
    )
    if calculation.recommended == "on demand":
        return (
            f"Pay on demand: {format_money(calculation.saving, month)} a month less than provisioned units {kind}, which would stand idle "
            "too much of the time."
        )
    used = Decimal(calculation.demand.hours_per_day) / 24
    return (
        f"Pay for provisioned units {kind}: {format_money(calculation.saving, month)} a month less than on demand. Fixed units would be "
        f"used {used:.0%} of the time here, and have no room: what comes beyond them in a second is throttled, so take more "
        f"of them, or units that scale, for {format_money(calculation.scaled.total, month)}."
    )


def _missing_prices(calculation: Calculation) -> tuple[str, ...]:
    if not calculation.unpriced:
        return ()
    sentence = (
        f"the price book of {calculation.month.book} has no price for {', '.join(calculation.unpriced)}: that is not in any figure; give "
        "another book with --prices"
    )
    return (sentence,)


def calculation_document(
    calculation: Calculation, steps: Sequence[ComparisonStep], notes: Sequence[str]
) -> dict[str, Any]:
    """Return a calculation as JSON."""
    month, demand = calculation.month, calculation.demand
    return {
        "demand": {
            "reads_per_second": demand.reads_per_second,
            "writes_per_second": demand.writes_per_second,
            "item_kb": demand.item_kb,
            "storage_gb": demand.storage_gb,
            "hours_per_day": demand.hours_per_day,
            "consistent": demand.consistent,
            "indexes": demand.indexes,
        },
        "book": {"title": month.book, "region": month.region, "date": month.date.isoformat()},
        "currency": month.currency,
        "hours": month.hours,
        "units": {
            "read": calculation.read_units,
            "write": calculation.write_units,
            "read_capacity": calculation.read_capacity,
            "write_capacity": calculation.write_capacity,
        },
        "ways": [
            {
                "name": name,
                "reads": format_exact(sums.reads),
                "writes": format_exact(sums.writes),
                "storage": format_exact(sums.storage),
                "other": format_exact(sums.other),
                "total": None if sums.unpriced else format_exact(sums.total),
            }
            for name, sums in _options(calculation)
        ],
        "recommended": calculation.recommended,
        "saving": None if calculation.unpriced else format_exact(calculation.saving),
        "recommendation": describe_recommendation(calculation),
        "differences": [
            {
                "sentence": each.sentence,
                "on_demand": format_exact(each.on_demand),
                "provisioned": format_exact(each.provisioned),
            }
            for each in steps
        ],
        "notes": [*_missing_prices(calculation), *notes],
    }


def calculation_csv(calculation: Calculation) -> str:
    """Return a calculation as CSV, one row for each payment option."""
    month = calculation.month
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        ("way", "reads", "writes", "storage", "other", "total", "currency", "region", "date", "hours")
    )
    for name, sums in _options(calculation):
        amounts = (format_exact(amount) for amount in (sums.reads, sums.writes, sums.storage, sums.other))
        total = "" if sums.unpriced else format_exact(sums.total)
        writer.writerow(
            (name, *amounts, total, month.currency, month.region, month.date.isoformat(), month.hours)
        )
    return file.getvalue()


def _options(calculation: Calculation) -> tuple[tuple[str, CostBreakdown], ...]:
    return (
        ("on demand", calculation.on_demand),
        ("provisioned, fixed at the need", calculation.fixed),
        ("provisioned, scaled", calculation.scaled),
    )


def _units(units: float) -> str:
    return f"{units:g} unit{'' if units == 1 else 's'}"
