"""The cost chart: stacked bars by access pattern on the left, by table and index on the right."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tavola.design.charts import load_matplotlib, save_figure
from tavola.design.cost.cost_report import CostReport
from tavola.design.cost.month import MonthlyBill
from tavola.design.cost.payments import format_bill
from tavola.design.cost.report import describe_prices
from tavola.design.text import truncate

_COLOURS = {
    "reads": "#3b6fb6",
    "writes": "#d9822b",
    "transactions": "#f0b775",
    "key changes": "#b5513c",
    "replicated writes": "#8a5aa8",
    "storage": "#5f7f5f",
    "recovery": "#8fae8f",
    "backups": "#b9ccb9",
    "streams": "#4aa3a3",
}
_Row = tuple[str, dict[str, Decimal]]  # a label, and the amounts by kind of charge
_PATTERN_BARS_MAX = 14  # the last bar sums all further access patterns
_LABEL_CHARACTERS_MAX = 48
_GREY = "#555555"


def draw_chart(report: CostReport, form: str) -> bytes:
    """Return the chart of a cost report as an image: `svg` or `png`."""
    mpl = load_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    month = report.month
    bills = _pattern_rows(month)
    places = _place_rows(month)
    rows = max(len(bills), len(places), 3)
    with mpl.rc_context({"svg.hashsalt": "tavola", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(15, 1.9 + 0.34 * rows), dpi=120, layout="constrained")
        figure.suptitle(
            f"{', '.join(report.tables)}: {format_bill(month.total, month)}\n{describe_prices(month)}",
            fontsize=11,
            color="#222222",
        )
        left, right = figure.subplots(1, 2)
        _draw_stacks(left, month, "Requests by access pattern", bills, legend=False)
        _draw_stacks(right, month, "Total by table and index", places, legend=True)
        return save_figure(figure, form)


def _pattern_rows(month: MonthlyBill) -> list[_Row]:
    """Return a row for each of the most expensive access patterns, and one that sums the others.

    The most expensive comes last, because matplotlib draws rows from the bottom up.
    """
    bills = sorted((bill for bill in month.bills if bill.amount), key=lambda bill: -bill.amount)
    shown: list[_Row] = [
        (f"{bill.place}: {bill.title}" if bill.place else bill.title, dict(bill.parts)) for bill in bills
    ]
    if len(shown) > _PATTERN_BARS_MAX:
        rest = shown[_PATTERN_BARS_MAX - 1 :]
        other_amounts: dict[str, Decimal] = {}
        for _, parts in rest:
            for kind, amount in parts.items():
                other_amounts[kind] = other_amounts.get(kind, Decimal(0)) + amount
        shown = [*shown[: _PATTERN_BARS_MAX - 1], (f"{len(rest)} others", other_amounts)]
    return shown[::-1]


def _place_rows(month: MonthlyBill) -> list[_Row]:
    parts_by_place: dict[str, dict[str, Decimal]] = {}
    single_table = len({line.table for line in month.lines}) == 1
    for line in month.lines:
        if line.amount > 0:
            place = (
                line.table
                if line.index is None
                else line.index
                if single_table
                else f"{line.table}/{line.index}"
            )
            parts = parts_by_place.setdefault(place, {})
            parts[line.what] = parts.get(line.what, Decimal(0)) + line.amount
    return sorted(parts_by_place.items(), key=lambda row: sum(row[1].values()))


def _draw_stacks(axes: Any, month: MonthlyBill, title: str, rows: list[_Row], *, legend: bool) -> None:
    axes.set_title(title, loc="left", color=_GREY)
    ends = [0.0] * len(rows)
    for kind, colour in _COLOURS.items():
        parts = [float(amounts.get(kind, Decimal(0))) for _, amounts in rows]
        if any(parts):
            axes.barh(range(len(rows)), parts, left=ends, color=colour, height=0.68, label=kind)
            ends = [before + part for before, part in zip(ends, parts, strict=True)]
    for row, (_, amounts) in enumerate(rows):
        amount = format_bill(sum(amounts.values(), Decimal(0)), month)
        axes.annotate(amount, (ends[row], row), (4, 0), textcoords="offset points", va="center", color=_GREY)
    if rows and legend:
        axes.legend(loc="lower right", frameon=False)
    axes.set_xlim(0, max(ends, default=1.0) * 1.18 or 1.0)
    _style_axes(axes, month, [truncate(label, _LABEL_CHARACTERS_MAX) for label, _ in rows])


def _style_axes(axes: Any, month: MonthlyBill, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel(f"{month.currency} per month", color=_GREY)
    axes.tick_params(colors=_GREY, length=0)
    axes.grid(axis="x", color="#e6e6e6")
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#cccccc")
    if not labels:
        axes.text(0.5, 0.5, "No charges", transform=axes.transAxes, ha="center", color=_GREY)
