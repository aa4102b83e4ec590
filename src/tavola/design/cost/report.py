"""Report: a costing as text for a terminal, as a document for programs, and as rows for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

from tavola.design.cost.cost_report import Costing
from tavola.design.cost.month import Bill, Line, Month
from tavola.design.cost.payment_options import money
from tavola.design.text import format_units, truncate

WIDTH = 110

_SAVINGS = 10  # that a page shows
_WORTH = Decimal("0.01")  # of the month, below which a page leaves a saving out
_TITLE = 66  # characters of a title in a table


def heading(month: Month) -> str:
    """Return what every sum is said with: the book's region and date, and the length of the month."""
    return f"a month of {month.hours} hours, prices of {month.book}, in {month.currency}"


def as_text(costing: Costing) -> str:
    """Return a costing as a page of plain text."""
    month = costing.month
    told = [*wrap(f"{', '.join(costing.tables)}: {heading(month)}", WIDTH), ""]
    told += [*wrap(f"{money(month.total, month)} a month. {costing.recommendation}", WIDTH), ""]
    told += laid_out(("line", "quantity", "unit", "a month"), _line_rows(month), "lrlr")
    told += [
        "",
        *laid_out(("access pattern", "a second", "units each", "a month"), _bill_rows(month), "lrrr"),
    ]
    told += ["", *laid_out(("way of paying", "a month"), _way_rows(costing), "lr")]
    told += listed(_unknown_ways(costing))
    if costing.break_evens:
        told += ["", "break-even"]
        told += listed(each.sentence for each in costing.break_evens)
    told += _savings_told(costing)
    if costing.notes:
        told += ["", "taken for this"]
        told += listed(costing.notes)
    return "\n".join(told)


def _savings_told(costing: Costing) -> list[str]:
    month = costing.month
    told: list[str] = []
    if not any(bill.per_second for bill in month.bills):
        return told
    least = month.total * _WORTH
    shown = [each for each in costing.savings if each.amount >= least][:_SAVINGS]
    told += ["", "what would change it, each by itself"]
    if shown:
        rows = [(money(each.amount, month), each.change, each.place) for each in shown]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        for row, saving in zip(rows, shown, strict=True):
            head = f"  {row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  "
            told += wrap(
                f"{row[2]}: {saving.sentence}", WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
            )
    more = len(costing.savings) - len(shown)
    if more and shown:
        told.append(f"  and {more} smaller {'one' if more == 1 else 'ones'}, which --json has")
    elif more:
        told.append(f"  nothing by a hundredth or more; --json has {more} below")
    told += listed(("other keys, and several changes at once, are weighed by `tavola solve`",))
    return told


def as_document(costing: Costing) -> dict[str, Any]:
    """Return a costing as JSON has it; money is text, exact to a ten-thousand-millionth."""
    month = costing.month
    return {
        "tables": list(costing.tables),
        "book": {"title": month.book, "region": month.region, "date": month.date.isoformat()},
        "currency": month.currency,
        "hours": month.hours,
        "total": exact(month.total),
        "lines": [
            {
                "table": line.table,
                "index": line.index,
                "what": line.what,
                "quantity": exact(line.quantity),
                "unit": line.unit,
                "price": line.price,
                "amount": exact(line.amount),
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
                "amount": exact(bill.amount),
                "parts": {what: exact(amount) for what, amount in bill.parts},
            }
            for bill in month.bills
        ],
        "ways": [
            {
                "name": way.name,
                "mode": way.mode,
                "table_class": way.table_class,
                "reserved": way.reserved,
                "total": None if way.total is None else exact(way.total),
                "reason": way.reason,
            }
            for way in costing.ways
        ],
        "break_even": [
            {
                "name": each.name,
                "share": exact(each.share),
                "stands": None if each.stands is None else exact(each.stands),
                "sentence": each.sentence,
            }
            for each in costing.break_evens
        ],
        "savings": [
            {
                "change": each.change,
                "place": each.place,
                "sentence": each.sentence,
                "amount": exact(each.amount),
            }
            for each in costing.savings
        ],
        "recommendation": costing.recommendation,
        "notes": list(costing.notes),
        "unrated": list(month.unrated),
    }


def as_csv(costing: Costing) -> str:
    """Return the lines and the bills of the access patterns as rows, told apart by their first column."""
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
            ("line", line.table, line.index or "", line.what, "", "", "", exact(line.quantity), line.unit, exact(line.amount), *common)
        )  # fmt: skip
    for bill in month.bills:
        rate = "" if bill.per_second is None else bill.per_second
        writer.writerow(
            ("access pattern", "", "", bill.kind, f"{bill.place}: {bill.title}", rate, bill.units, "", "", exact(bill.amount), *common)
        )  # fmt: skip
    writer.writerow(("total", *[""] * 8, exact(month.total), *common))
    return file.getvalue()


def _line_rows(month: Month) -> Iterator[tuple[str, ...]]:
    table = None
    for line in sorted(month.lines, key=lambda line: line.table == ""):
        if line.table != table:
            table = line.table
            yield (table or "everything", "", "", "")
        yield (
            f"  {_where(line)}",
            f"{line.quantity:,.{_digits(line)}f}",
            line.unit,
            money(line.amount, month),
        )
    yield ("total", "", "", money(month.total, month))


def _where(line: Line) -> str:
    return line.what if line.index is None else f"{line.index}: {line.what}"


def _digits(line: Line) -> int:
    return 2 if line.unit.startswith("GB") else 0


def _bill_rows(month: Month) -> Iterator[tuple[str, ...]]:
    for bill in sorted(month.bills, key=lambda bill: -bill.amount):
        rate = "-" if bill.per_second is None else f"{bill.per_second:,g}"
        yield (
            _titled(bill),
            rate,
            format_units(bill.units) if bill.units else "-",
            money(bill.amount, month),
        )
    yield ("all requests", "", "", money(month.requests, month))


def _titled(bill: Bill) -> str:
    named = not bill.place or bill.place == bill.title or bill.place.endswith(f".{bill.title}")
    return truncate((bill.place or bill.title) if named else f"{bill.place}: {bill.title}", _TITLE)


def _way_rows(costing: Costing) -> Iterator[tuple[str, ...]]:
    month = costing.month
    yield ("the lines above", money(month.total, month))
    for way in costing.ways:
        yield (way.name, "not known" if way.total is None else money(way.total, month))


def _unknown_ways(costing: Costing) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for way in costing.ways:
        if way.total is None:
            reasons.setdefault(way.reason, []).append(way.name)
    for reason, names in reasons.items():
        yield f"not known of {'; '.join(names)}: {reason}"


def laid_out(heads: Sequence[str], rows: Iterable[tuple[str, ...]], sides: str) -> list[str]:
    """Return rows under their heads, each column as wide as it must be; `sides` has an l or an r for each."""
    told = [tuple(heads), *rows]
    widths = [max(len(row[column]) for row in told) for column in range(len(heads))]

    def laid(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ]
        return "  ".join(cells).rstrip()

    return [laid(told[0]), *(laid(row) for row in told[1:])]


def listed(sentences: Iterable[str]) -> list[str]:
    """Return sentences as the lines of a list."""
    told: list[str] = []
    for sentence in sentences:
        told += wrap(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return told


def exact(number: Decimal) -> str:
    """Return a number without an exponent, and without zeros that say nothing."""
    told = f"{number:f}"
    return told.rstrip("0").rstrip(".") if "." in told else told
