"""The cost report as text for a terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.cost.cost_report import CostReport
from tavola.design.cost.month import AccessBill, BillLine, MonthlyBill
from tavola.design.cost.payment_options import format_money
from tavola.design.text import format_units, truncate

WIDTH = 110

_SAVINGS = 10  # that a page shows
_WORTH = Decimal("0.01")  # of the month, below which a page leaves a saving out
_TITLE = 66  # characters of a title in a table


def describe_prices(month: MonthlyBill) -> str:
    """Return the price book, currency and length of the month, which belong to every amount."""
    return f"a month of {month.hours} hours, prices of {month.book}, in {month.currency}"


def render_text(costing: CostReport) -> str:
    """Return a cost report as plain text."""
    month = costing.month
    lines = [*wrap(f"{', '.join(costing.tables)}: {describe_prices(month)}", WIDTH), ""]
    lines += [*wrap(f"{format_money(month.total, month)} a month. {costing.recommendation}", WIDTH), ""]
    lines += layout_table(("line", "quantity", "unit", "a month"), _line_rows(month), "lrlr")
    lines += [
        "",
        *layout_table(("access pattern", "a second", "units each", "a month"), _bill_rows(month), "lrrr"),
    ]
    lines += ["", *layout_table(("way of paying", "a month"), _way_rows(costing), "lr")]
    lines += bullet_list(_unknown_ways(costing))
    if costing.break_evens:
        lines += ["", "break-even"]
        lines += bullet_list(each.sentence for each in costing.break_evens)
    lines += _savings_lines(costing)
    if costing.notes:
        lines += ["", "taken for this"]
        lines += bullet_list(costing.notes)
    return "\n".join(lines)


def _savings_lines(costing: CostReport) -> list[str]:
    month = costing.month
    lines: list[str] = []
    if not any(bill.per_second for bill in month.bills):
        return lines
    least = month.total * _WORTH
    shown = [each for each in costing.savings if each.amount >= least][:_SAVINGS]
    lines += ["", "what would change it, each by itself"]
    if shown:
        rows = [(format_money(each.amount, month), each.change, each.place) for each in shown]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for row, saving in zip(rows, shown, strict=True):
            head = f"  {row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  "
            lines += wrap(
                f"{row[2]}: {saving.sentence}", WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
            )
    more = len(costing.savings) - len(shown)
    if more and shown:
        lines.append(f"  and {more} smaller {'one' if more == 1 else 'ones'}, which --json has")
    elif more:
        lines.append(f"  nothing by a hundredth or more; --json has {more} below")
    lines += bullet_list(("other keys, and several changes at once, are weighed by `tavola solve`",))
    return lines


def render_document(costing: CostReport) -> dict[str, Any]:
    """Return a cost report as JSON. Amounts are exact decimal texts."""
    month = costing.month
    return {
        "tables": list(costing.tables),
        "book": {"title": month.book, "region": month.region, "date": month.date.isoformat()},
        "currency": month.currency,
        "hours": month.hours,
        "total": format_exact(month.total),
        "lines": [
            {
                "table": line.table,
                "index": line.index,
                "what": line.what,
                "quantity": format_exact(line.quantity),
                "unit": line.unit,
                "price": line.price,
                "amount": format_exact(line.amount),
            }
            for line in month.lines
        ],
        "access_patterns": [
            {
                "kind": bill.kind,
                "place": bill.place,
                "title": bill.title,
                "per_second": bill.per_second,
                "units": bill.units,
                "amount": format_exact(bill.amount),
                "parts": {what: format_exact(amount) for what, amount in bill.parts},
            }
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
            for way in costing.ways
        ],
        "break_even": [
            {
                "name": each.name,
                "share": format_exact(each.share),
                "stands": None if each.stands is None else format_exact(each.stands),
                "sentence": each.sentence,
            }
            for each in costing.break_evens
        ],
        "savings": [
            {
                "change": each.change,
                "place": each.place,
                "sentence": each.sentence,
                "amount": format_exact(each.amount),
            }
            for each in costing.savings
        ],
        "recommendation": costing.recommendation,
        "notes": list(costing.notes),
        "unrated": list(month.unrated),
    }


def render_csv(costing: CostReport) -> str:
    """Return the lines and access pattern bills as CSV; the first column says which."""
    month = costing.month
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
            yield (table or "everything", "", "", "")
        yield (
            f"  {_line_label(line)}",
            f"{line.quantity:,.{_digits(line)}f}",
            line.unit,
            format_money(line.amount, month),
        )
    yield ("total", "", "", format_money(month.total, month))


def _line_label(line: BillLine) -> str:
    return line.what if line.index is None else f"{line.index}: {line.what}"


def _digits(line: BillLine) -> int:
    return 2 if line.unit.startswith("GB") else 0


def _bill_rows(month: MonthlyBill) -> Iterator[tuple[str, ...]]:
    for bill in sorted(month.bills, key=lambda bill: -bill.amount):
        rate = "-" if bill.per_second is None else f"{bill.per_second:,g}"
        yield (
            _bill_title(bill),
            rate,
            format_units(bill.units) if bill.units else "-",
            format_money(bill.amount, month),
        )
    yield ("all requests", "", "", format_money(month.requests, month))


def _bill_title(bill: AccessBill) -> str:
    named = not bill.place or bill.place == bill.title or bill.place.endswith(f".{bill.title}")
    return truncate((bill.place or bill.title) if named else f"{bill.place}: {bill.title}", _TITLE)


def _way_rows(costing: CostReport) -> Iterator[tuple[str, ...]]:
    month = costing.month
    yield ("the lines above", format_money(month.total, month))
    for way in costing.ways:
        yield (way.name, "not known" if way.total is None else format_money(way.total, month))


def _unknown_ways(costing: CostReport) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for way in costing.ways:
        if way.total is None:
            reasons.setdefault(way.reason, []).append(way.name)
    for reason, names in reasons.items():
        yield f"not known of {'; '.join(names)}: {reason}"


def layout_table(heads: Sequence[str], rows: Iterable[tuple[str, ...]], sides: str) -> list[str]:
    """Return rows in aligned columns under their heads; `sides` has `l` or `r` for each column."""
    table = [tuple(heads), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]

    def laid(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ]
        return "  ".join(cells).rstrip()

    return [laid(table[0]), *(laid(row) for row in table[1:])]


def bullet_list(sentences: Iterable[str]) -> list[str]:
    """Return sentences as the lines of a bullet list."""
    lines: list[str] = []
    for sentence in sentences:
        lines += wrap(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return lines


def format_exact(number: Decimal) -> str:
    """Return a number without exponent and trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
