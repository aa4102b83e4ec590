"""The plot: every engine's rate for every operation, on one scale, with the bar to reach."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from benchmarks.bars import DISK_RATIO_MIN, MEMORY_RATIO_MIN, compare
from benchmarks.peers import ENGINES, TITLES
from benchmarks.results import OURS, Cell, Contender, Place, Results, cells
from benchmarks.workload import OPERATIONS, Operation

# Colours that differ in lightness too, and marks that differ in shape: readable in grey.
_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    OURS: ("#c0392b", "o"),
    "dynamodb-local": ("#e08e0b", "s"),
    "dynoxide": ("#1f6f8b", "^"),
    "dynalite": ("#2e8b57", "D"),
    "ministack": ("#7d5ba6", "v"),
    "moto": ("#8c8c8c", "X"),
}


def draw(results: Results, path: Path) -> None:
    """Write the plot to `path`; its suffix chooses the format."""
    table = {place: cell for place, cell in cells(results).items() if place.stage == "peers" and cell.sound}
    if not table:
        return
    items = min(place.contender.items for place in table)
    connections = max(place.connections for place in table)
    panels = [
        ("memory", MEMORY_RATIO_MIN, [op for op in OPERATIONS if _seen(table, op, "memory")]),
        ("disk", DISK_RATIO_MIN, [op for op in OPERATIONS if op.writes and _seen(table, op, "disk")]),
    ]
    shown = [panel for panel in panels if panel[2]]
    rows = [len(operations) for _, _, operations in shown]
    figure = Figure(figsize=(10, 1.6 + 0.46 * (sum(rows) + 2 * len(rows))), layout="constrained")
    FigureCanvasAgg(figure)
    ratios = [count + 1 for count in rows]
    axes = figure.subplots(len(shown), 1, squeeze=False, sharex=True, height_ratios=ratios)
    handles: dict[str, Any] = {}
    for (storage, least, operations), axis in zip(shown, axes[:, 0], strict=True):
        where = "In memory" if storage == "memory" else "Writes on disk, ours synced before the answer"
        axis.set_title(f"{where}: {items:,} items, {connections} connections", loc="left", fontsize=11)
        _panel(axis, table, storage, least, operations, (items, connections), handles)
    axes[-1, 0].set_xlabel("requests a second (logarithmic)")
    order = sorted(handles, key=lambda title: ([*TITLES.values(), title]).index(title))
    figure.legend(
        [handles[title] for title in order], order, loc="outside upper center", ncols=4, frameon=False
    )
    # No date and no random ids in the file: the same numbers give the same bytes.
    with rc_context({"svg.hashsalt": "tavola"}):
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def _seen(table: Mapping[Place, Cell], operation: Operation, storage: str) -> bool:
    return any(p.operation == operation.name and p.contender.storage == storage for p in table)


def _panel(
    axis: Any,
    table: Mapping[Place, Cell],
    storage: str,
    least: float,
    operations: list[Operation],
    setting: tuple[int, int],
    handles: dict[str, Any],
) -> None:
    items, connections = setting
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.tick_params(axis="x", labelbottom=True)  # under each panel, although they share the scale
    axis.grid(axis="x", which="major", color="#dddddd", zorder=0)
    axis.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    for row, operation in enumerate(operations):
        axis.axhline(row, color="#eeeeee", linewidth=1, zorder=0)
        for engine in reversed(ENGINES):  # ours is drawn last, on top
            place = Place("peers", Contender(engine.name, storage, items), operation.name, connections)
            cell = table.get(place)
            if cell is None:
                continue
            colour, mark = _MARKS[engine.name]
            size = 90 if engine.name == OURS else 45
            axis.plot([cell.rate_low, cell.rate_high], [row, row], color=colour, linewidth=1.5, zorder=2)
            handles[engine.title] = axis.scatter(
                [cell.rate],
                [row],
                color=colour,
                marker=mark,
                s=size,
                zorder=3,
                edgecolors="white",
                linewidths=0.6,
            )
        comparison = compare(table, storage, items, operation.name, connections)
        if comparison.best is not None:
            bar = axis.scatter(
                [comparison.best.rate * least],
                [row],
                marker="|",
                s=260,
                color="#333333",
                linewidths=1.6,
                zorder=2,
            )
            handles[f"to reach: {MEMORY_RATIO_MIN:g}× the best peer (disk {DISK_RATIO_MIN:g}×)"] = bar
        if comparison.ratio is not None:
            axis.annotate(
                f"{comparison.ratio:.1f}×",
                (1.01, row),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=10,
                fontweight="bold",
                color=_MARKS[OURS][0],
            )
    axis.set_yticks(range(len(operations)), [operation.title for operation in operations])
    axis.set_ylim(len(operations) - 0.4, -0.6)
