"""The cost report as text for a terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.cost.cost_report import CostReport
from tavola.design.cost.month import AccessBill, BillLine, MonthlyBill
from tavola.design.cost.payments import format_bill
from tavola.design.text import format_units, truncate

WIDTH = 110

_TITLE = 66  # characters of a title in a table
_CHARGES = {
    "key changes": "index key changes",
    "recovery": "point-in-time recovery",
    "streams": "stream reads",
    "reserved": "reserved capacity",
}


def describe_prices(month: MonthlyBill) -> str:
    """Return the price book, currency and length of the month, which belong to every amount."""
    return f"{month.hours} hours per month, prices of {month.book}, in {month.currency}"


def render_text(report: CostReport) -> str:
    """Return a cost report as plain text."""
    month = report.month
    lines = [*wrap(f"{', '.join(report.tables)}: {describe_prices(month)}", WIDTH), ""]
    if _is_unknown(month):
        return "\n".join((*lines, *_unknown_lines(report)))
    lines += [*wrap(f"{format_bill(month.total, month)} per month. {report.recommendation}", WIDTH), ""]
    lines += layout_table(("Charge", "Quantity", "Unit", "Per month"), _line_rows(month), "lrlr")
    lines += [
        "",
        *layout_table(("Access pattern", "Per second", "Units each", "Per month"), _bill_rows(month), "lrrr"),
    ]
    lines += ["", *layout_table(("Capacity mode", "Per month"), _way_rows(report), "lr")]
    lines += bullet_list(_unknown_ways(report))
    if report.break_evens:
        lines += ["", "Break-even points"]
        lines += bullet_list(each.sentence for each in report.break_evens)
    lines += _savings_lines(report)
    if report.notes:
        lines += ["", "Assumptions"]
        lines += bullet_list(report.notes)
    return "\n".join(lines)


def _is_unknown(month: MonthlyBill) -> bool:
    """Return whether nothing in the design says what it costs: no rate, no size and no provisioned capacity."""
    has_rate = any(bill.per_second is not None for bill in month.bills)
    return not (has_rate or month.unpriced or any(line.quantity for line in month.lines))


def _unknown_lines(report: CostReport) -> list[str]:
    """Return what is missing for an estimate, and how to declare it."""
    queries = (name.partition(": ")[0] for name in report.month.unrated)
    example = next((name for name in queries if "." in name), None)
    named = "" if example is None else f", such as {example}"
    return [
        "The cost is unknown, because no rates are declared.",
        "",
        "Declare",
        *bullet_list(
            (
                f'the rate of each query{named}: access=AccessPattern("…", per_second=…)',
                'the rate of each write: writes=(WritePattern("…", per_second=…),)',
                "the number of items of each entity, for the storage: items=…",
                "the size of an item, if the estimate from the field types is wrong: item_bytes=…",
            )
        ),
    ]


def _savings_lines(report: CostReport) -> list[str]:
    month = report.month
    lines: list[str] = []
    if not any(bill.per_second for bill in month.bills):
        return lines
    shown = report.savings
    lines += ["", "Possible savings, each on its own"]
    if shown:
        rows = [(format_bill(each.amount, month), each.change, each.place) for each in shown]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for row, saving in zip(rows, shown, strict=True):
            head = f"  {row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  "
            where = "" if saving.change == "capacity mode" else f"{row[2]}: "
            lines += wrap(
                f"{where}{saving.sentence}", WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
            )
    lines += bullet_list(("`tavola solve` compares other keys and combinations of changes",))
    return lines


def render_document(report: CostReport) -> dict[str, Any]:
    """Return a cost report as JSON. Amounts are exact decimal texts."""
    month = report.month
    return {
        "tables": list(report.tables),
        "book": {"title": month.book, "region": month.region, "date": month.date.isoformat()},
        "currency": month.currency,
        "hours": month.hours,
        "total": format_exact(month.total),
        "lines": [plain(line) for line in month.lines],
        "access_patterns": [
            plain(bill) | {"parts": {what: format_exact(amount) for what, amount in bill.parts}}
            for bill in month.bills
        ],
        "ways": [
            {
                "name": way.name,
                "mode": way.mode,
                "table_class": way.table_class,
                "reserved": way.reserved,
                "total": None if way.total is None else format_exact(way.total),
                "reason": way.reason,
            }
            for way in report.ways
        ],
        "break_even": [
            {
                "name": each.name,
                "share": format_exact(each.share),
                "stands": None if each.design_share is None else format_exact(each.design_share),
                "sentence": each.sentence,
            }
            for each in report.break_evens
        ],
        "savings": [plain(each) for each in report.savings],
        "recommendation": report.recommendation,
        "notes": list(report.notes),
        "unrated": list(month.unrated),
    }


def render_csv(report: CostReport) -> str:
    """Return the lines and access pattern bills as CSV; the first column says which."""
    month = report.month
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        (
            "row", "table", "index", "what", "title", "per_second", "units_each", "quantity", "unit", "amount", "currency",
            "region", "date", "hours",
        )
    )  # fmt: skip
    common = (month.currency, month.region, month.date.isoformat(), month.hours)
    for line in month.lines:
        writer.writerow(
            ("line", line.table, line.index or "", line.what, "", "", "", format_exact(line.quantity), line.unit, format_exact(line.amount), *common)
        )  # fmt: skip
    for bill in month.bills:
        rate = "" if bill.per_second is None else bill.per_second
        writer.writerow(
            ("access pattern", "", "", bill.kind, f"{bill.place}: {bill.title}", rate, bill.units, "", "", format_exact(bill.amount), *common)
        )  # fmt: skip
    writer.writerow(("total", *[""] * 8, format_exact(month.total), *common))
    return file.getvalue()


def _line_rows(month: MonthlyBill) -> Iterator[tuple[str, ...]]:
    table = None
    for line in sorted(month.lines, key=lambda line: line.table == ""):
        if line.table != table:
            table = line.table
            yield (table or "All tables", "", "", "")
        yield (
            f"  {_line_label(line)}",
            f"{line.quantity:,.{2 if line.unit.startswith('GB') else 0}f}",
            line.unit,
            format_bill(line.amount, month),
        )
    yield ("Total", "", "", format_bill(month.total, month))


def _line_label(line: BillLine) -> str:
    what = _CHARGES.get(line.what, line.what)
    return what if line.index is None else f"{line.index}: {what}"


def _bill_rows(month: MonthlyBill) -> Iterator[tuple[str, ...]]:
    for bill in sorted(month.bills, key=lambda bill: -bill.amount):
        rate = "-" if bill.per_second is None else f"{bill.per_second:,g}"
        yield (
            _bill_title(bill),
            rate,
            format_units(bill.units) if bill.units else "-",
            format_bill(bill.amount, month),
        )
    yield ("All requests", "", "", format_bill(month.requests, month))


def _bill_title(bill: AccessBill) -> str:
    named = not bill.place or bill.place == bill.title or bill.place.endswith(f".{bill.title}")
    return truncate((bill.place or bill.title) if named else f"{bill.place}: {bill.title}", _TITLE)


def _way_rows(report: CostReport) -> Iterator[tuple[str, ...]]:
    month = report.month
    yield ("As declared", format_bill(month.total, month))
    for way in report.ways:
        yield (way.name, "unknown" if way.total is None else format_bill(way.total, month))


def _unknown_ways(report: CostReport) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for way in report.ways:
        if way.total is None:
            reasons.setdefault(way.reason, []).append(way.name)
    for reason, names in reasons.items():
        yield f"{'; '.join(names)}: unknown, {reason}"


def layout_table(heads: Sequence[str], rows: Iterable[tuple[str, ...]], sides: str) -> list[str]:
    """Return rows in aligned columns under their heads; `sides` has `l` or `r` for each column."""
    table = [tuple(heads), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]

    def layout_row(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ]
        return "  ".join(cells).rstrip()

    return [layout_row(row) for row in table]


def bullet_list(sentences: Iterable[str]) -> list[str]:
    """Return sentences as the lines of a bullet list."""
    lines: list[str] = []
    for sentence in sentences:
        lines += wrap(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return lines


def plain(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass for JSON, with exact amounts."""
    return {
        name: format_exact(value) if isinstance(value, Decimal) else value
        for name, value in asdict(record).items()
    }


def format_exact(number: Decimal) -> str:
    """Return a number without exponent and trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
