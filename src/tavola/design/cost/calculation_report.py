"""The result of the calculator as text, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.cost.calculator import Calculation, ComparisonStep, CostBreakdown
from tavola.design.cost.payments import format_bill
from tavola.design.cost.report import WIDTH, bullet_list, describe_prices, format_exact, layout_table, plain


def calculation_text(calculation: Calculation, steps: Sequence[ComparisonStep], notes: Sequence[str]) -> str:
    """Return a calculation as plain text; `steps` explain the difference from a document."""
    month, demand = calculation.month, calculation.demand
    consistency = "strongly" if demand.consistent else "eventually"
    hours = "" if demand.hours_per_day == 24 else f", {demand.hours_per_day} hours per day"
    if demand.indexes:
        hours = f", {demand.indexes} index{'' if demand.indexes == 1 else 'es'} that project all attributes{hours}"
    summary = (
        f"{demand.reads_per_second:g} reads per second ({consistency} consistent), {demand.writes_per_second:g} writes per "
        f"second, items of {demand.item_kb:g} KB, {demand.storage_gb:g} GB{hours}: {describe_prices(month)}"
    )
    units = (
        f"A read consumes {_units(calculation.read_units)} and a write {_units(calculation.write_units)}. Required capacity: "
        f"{calculation.read_capacity:,} RCU and {calculation.write_capacity:,} WCU."
    )
    lines = [*wrap(summary, WIDTH), "", *wrap(units, WIDTH), ""]
    more = any(sums.other for _, sums in _options(calculation))
    rows = [
        (
            name,
            *(format_bill(amount, month) for amount in (sums.reads, sums.writes, sums.storage)),
            *((format_bill(sums.other, month),) if more else ()),
            "unknown" if sums.unpriced else format_bill(sums.total, month),
        )
        for name, sums in _options(calculation)
    ]
    heads = ("Capacity mode", "Reads", "Writes", "Storage", *(("Other",) if more else ()), "Per month")
    lines += layout_table(heads, rows, "l" + "r" * (len(heads) - 1))
    lines += ["", *wrap(describe_recommendation(calculation), WIDTH)]
    if steps:
        lines += ["", "Differences from the document"]
        shown = [
            (format_bill(each.on_demand, month), format_bill(each.provisioned, month), each.sentence)
            for each in steps
        ]
        widths = [
            max(len(heading), *(len(row[at]) for row in shown))
            for at, heading in enumerate(("On-demand", "Provisioned"))
        ]
        lines.append(f"  {'On-demand':>{widths[0]}}  {'Provisioned':>{widths[1]}}")
        for row in shown:
            head = f"  {row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  "
            lines += wrap(
                row[2], WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
            )
    notes = (*_missing_prices(calculation), *notes)
    if notes:
        lines += ["", "Assumptions", *bullet_list(notes)]
    return "\n".join(lines)


def describe_recommendation(calculation: Calculation) -> str:
    """Return a sentence that recommends a payment option, and why."""
    month = calculation.month
    if calculation.recommended_mode is None:
        return f"The price book of {month.book} has too few prices to compare capacity modes."
    if not calculation.on_demand.total and calculation.on_demand.other:
        return "The free tier covers all of it in on-demand mode."
    if not calculation.on_demand.total:
        return "There is no traffic and no storage, so the cost is $0; set --reads, --writes or --storage-gb."
    kind = (
        "with fixed units" if calculation.cheapest_provisioned == calculation.fixed else "with auto scaling"
    )
    if calculation.recommended_mode == "on-demand":
        return (
            f"Use on-demand capacity: {format_bill(calculation.saving, month)} per month less than provisioned capacity {kind}, "
            "which would be idle too often."
        )
    used = Decimal(calculation.demand.hours_per_day) / 24
    return (
        f"Use provisioned capacity {kind}: {format_bill(calculation.saving, month)} per month less than on-demand. Fixed units would "
        f"be used {used:.0%} of the time and leave no headroom: requests above them are throttled. Provision more units, or use "
        f"auto scaling for {format_bill(calculation.scaled.total, month)}."
    )


def _missing_prices(calculation: Calculation) -> tuple[str, ...]:
    if not calculation.missing_prices:
        return ()
    sentence = (
        f"The price book of {calculation.month.book} has no price for {', '.join(calculation.missing_prices)}, which is not included; use "
        "another book with --prices"
    )
    return (sentence,)


def calculation_document(
    calculation: Calculation, steps: Sequence[ComparisonStep], notes: Sequence[str]
) -> dict[str, Any]:
    """Return a calculation as JSON."""
    month = calculation.month
    return {
        "demand": plain(calculation.demand),
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
        "recommended": calculation.recommended_mode,
        "saving": None if calculation.missing_prices else format_exact(calculation.saving),
        "recommendation": describe_recommendation(calculation),
        "differences": [plain(each) for each in steps],
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
        ("On-demand", calculation.on_demand),
        ("Provisioned, fixed", calculation.fixed),
        ("Provisioned, auto scaling", calculation.scaled),
    )


def _units(units: float) -> str:
    return f"{units:g} unit{'' if units == 1 else 's'}"
