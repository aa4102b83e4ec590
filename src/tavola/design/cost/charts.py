"""The cost chart: stacked bars for each access pattern, and beside them for each table and index."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tavola.design.charts import load_matplotlib, save_figure
from tavola.design.cost.cost_report import CostReport
from tavola.design.cost.month import MonthlyBill
from tavola.design.cost.payment_options import format_money
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
_Row = tuple[str, dict[str, Decimal]]  # a label, and what stands beside it
_PATTERNS = 14  # bars of access patterns; the rest are one
_LABEL = 48  # characters beside a bar
_GREY = "#555555"


def draw_chart(costing: CostReport, form: str) -> bytes:
    """Return a costing's chart as a picture: `svg` or `png`."""
    mpl = load_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    month = costing.month
    bills = _largest(month)
    places = _places(month)
    rows = max(len(bills), len(places), 3)
    with mpl.rc_context({"svg.hashsalt": "tavola", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(15, 1.9 + 0.34 * rows), dpi=120, layout="constrained")
        figure.suptitle(
            f"{', '.join(costing.tables)}: {format_money(month.total, month)}\n{describe_prices(month)}",
            fontsize=11,
            color="#222222",
        )
        left, right = figure.subplots(1, 2)
        _stacks(left, month, "requests, by access pattern", bills, legend=False)
        _stacks(right, month, "everything, by table and index", places, legend=True)
        return save_figure(figure, form)


def _largest(month: MonthlyBill) -> list[_Row]:
    """Return the dearest access patterns, and the rest as one, the dearest last: bars grow upwards."""
    bills = sorted((bill for bill in month.bills if bill.amount), key=lambda bill: -bill.amount)
    shown: list[_Row] = [
        (f"{bill.place}: {bill.title}" if bill.place else bill.title, dict(bill.parts)) for bill in bills
    ]
    if len(shown) > _PATTERNS:
        rest = shown[_PATTERNS - 1 :]
        others: dict[str, Decimal] = {}
        for _, parts in rest:
            for what, amount in parts.items():
                others[what] = others.get(what, Decimal(0)) + amount
        shown = [*shown[: _PATTERNS - 1], (f"{len(rest)} others", others)]
    return shown[::-1]


def _places(month: MonthlyBill) -> list[_Row]:
    parts_by_place: dict[str, dict[str, Decimal]] = {}
    alone = len({line.table for line in month.lines}) == 1
    for line in month.lines:
        if line.amount > 0:
            place = (
                line.table if line.index is None else line.index if alone else f"{line.table}/{line.index}"
            )
            parts = parts_by_place.setdefault(place, {})
            parts[line.what] = parts.get(line.what, Decimal(0)) + line.amount
    return sorted(parts_by_place.items(), key=lambda each: sum(each[1].values()))


def _stacks(axes: Any, month: MonthlyBill, title: str, rows: list[_Row], *, legend: bool) -> None:
    axes.set_title(title, loc="left", color=_GREY)
    reached = [0.0] * len(rows)
    for what, colour in _COLOURS.items():
        parts = [float(held.get(what, Decimal(0))) for _, held in rows]
        if any(parts):
            axes.barh(range(len(rows)), parts, left=reached, color=colour, height=0.68, label=what)
            reached = [before + part for before, part in zip(reached, parts, strict=True)]
    for row, (_, held) in enumerate(rows):
        amount = format_money(sum(held.values(), Decimal(0)), month)
        axes.annotate(
            amount, (reached[row], row), (4, 0), textcoords="offset points", va="center", color=_GREY
        )
    if rows and legend:
        axes.legend(loc="lower right", frameon=False)
    axes.set_xlim(0, max(reached, default=1.0) * 1.18 or 1.0)
    _dress(axes, month, [truncate(label, _LABEL) for label, _ in rows])


def _dress(axes: Any, month: MonthlyBill, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel(f"{month.currency} a month", color=_GREY)
    axes.tick_params(colors=_GREY, length=0)
    axes.grid(axis="x", color="#e6e6e6")
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#cccccc")
    if not labels:
        axes.text(0.5, 0.5, "nothing to pay for", transform=axes.transAxes, ha="center", color=_GREY)
