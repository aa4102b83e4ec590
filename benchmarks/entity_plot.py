"""The plot of the typed client: each library's processor time for an entity over HTTP, put and get, on one scale."""

from pathlib import Path
from statistics import median
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.libraries import OVER_HTTP, Library
from benchmarks.results import Results, Trial
from benchmarks.trials import HTTP, cheaper, one

# Dark and light of one colour: readable in grey.
_OURS: Final = {"put": "#c0392b", "get": "#e8a79f"}
_THEIRS: Final = {"put": "#5d6d7e", "get": "#b8c2cc"}
_HEIGHT: Final = 0.36


def draw(results: Results, path: Path) -> None:
    """Write the plot to `path`; its suffix chooses the format."""
    shown = [library for library in OVER_HTTP if one(results.trials, HTTP, library.name, "put")]
    if not shown:
        return
    figure = Figure(figsize=(10, 1.5 + 0.62 * len(shown)), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    axis.set_title(
        "Processor time of the client for an entity of 1 KB over HTTP, the same endpoint",
        loc="left",
        fontsize=11,
    )
    axis.set_xlabel("µs an operation, by the median of the rounds; the line shows the best and the worst")
    axis.grid(axis="x", color="#dddddd", zorder=0)
    axis.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    for row, library in enumerate(shown):
        for place, operation in ((row - _HEIGHT / 2, "put"), (row + _HEIGHT / 2, "get")):
            trial = one(results.trials, HTTP, library.name, operation)
            if trial is not None:
                _bar(axis, place, library, trial, one(results.trials, HTTP, library.beside, operation))
    axis.set_yticks(range(len(shown)), [library.title for library in shown])
    axis.set_ylim(len(shown) - 0.4, -0.6)
    longest = max(max(trial.cpu_us) for trial in results.trials if trial.section == HTTP)
    axis.set_xlim(0, longest * 1.25)
    # No date and no random ids in the file: the same numbers give the same bytes.
    with rc_context({"svg.hashsalt": "tavola"}):
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def _bar(axis: Any, place: float, library: Library, trial: Trial, ours: Trial | None) -> None:
    taken = median(trial.cpu_us)
    colours = _OURS if library.ours else _THEIRS
    axis.barh(place, taken, height=_HEIGHT * 0.9, color=colours[trial.operation], zorder=2)
    axis.plot([min(trial.cpu_us), max(trial.cpu_us)], [place, place], color="#222222", linewidth=1, zorder=3)
    words = f"{trial.operation} {taken:,.0f}"
    if ours is not None and not library.ours:
        words += f", {1 / cheaper(ours, trial):.1f}× ours"
    axis.annotate(
        words,
        (max(trial.cpu_us), place),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        fontweight="bold" if library.ours else "normal",
        color=_OURS["put"] if library.ours else "#333333",
    )
