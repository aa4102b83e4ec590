"""Heat map: a place's keys over time, drawn: how hot each stretch was, and where it was refused.

One scale for all: light is idle, dark is what one partition can do, so it can be read in grey. What was refused is
marked by dots, sized by the share; lines are the edges of partitions, which begin where one was split.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tavola.design.charts import load_matplotlib, save_figure
from tavola.design.simulation.errors import SimulationRefused
from tavola.design.simulation.results import HeatMap, Simulation
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S

_COLOURS = ("#f7f5ef", "#f6dfb3", "#efb372", "#dc7a4a", "#b23f42", "#6f1f4a", "#2a0f3a")
_INK = "#22222a"
_MARKED = 0.005  # of the units that were asked
_PANELS_MAX = 3
_LABELS = 6
_BOUNDS_SHOWN = 80
_HOURS = (
    1 / 3600,
    1 / 1800,
    1 / 720,
    1 / 360,
    1 / 120,
    1 / 60,
    1 / 12,
    1 / 6,
    0.25,
    0.5,
    1,
    2,
    3,
    6,
    12,
    24,
    48,
    96,
)


def chart(found: Simulation, form: str, place: str | None = None) -> bytes:
    """Return the heat maps of the worst places, or of one, as SVG or PNG; the same for the same simulation."""
    load_matplotlib().use("Agg")
    from matplotlib import collections  # noqa: PLC0415 - an extra
    from matplotlib import pyplot as plt  # noqa: PLC0415 - an extra

    shown = _chosen(found, place)
    with plt.rc_context(
        {"svg.hashsalt": "tavola", "font.family": "DejaVu Sans", "font.size": 9, "text.color": _INK}
    ):
        figure, axes = plt.subplots(
            2 * len(shown),
            1,
            figsize=(10.5, 4.4 * len(shown) + 0.5),
            squeeze=False,
            height_ratios=[3.6, 1.0] * len(shown),
            layout="constrained",
        )
        figure.patch.set_facecolor("white")
        for number, heat_map in enumerate(shown):
            _draw(figure, axes[2 * number][0], axes[2 * number + 1][0], heat_map, found, plt, collections)
        drawn = save_figure(figure, form)
        plt.close(figure)
    return drawn


def _chosen(found: Simulation, place: str | None) -> list[HeatMap]:
    if place is not None:
        told = [each for each in found.heat_maps if place in (each.name, f"{each.name} {each.access}s")]
        if not told:
            names = ", ".join(f"{each.name} {each.access}s" for each in found.heat_maps)
            raise SimulationRefused(f"nothing is asked of {place}; there are {names}")
        return told
    worst = {(each.name, each.access): each.throttled for each in found.places}
    heats = {(each.name, each.access): each.peak / _limit(each.access) for each in found.places}
    order = sorted(
        found.heat_maps,
        key=lambda each: (
            -worst[each.name, each.access],
            -heats[each.name, each.access],
            each.name,
            each.access,
        ),
    )
    bad = [each for each in order if worst[each.name, each.access] > _MARKED]
    return (bad or order)[: _PANELS_MAX if bad else 1]


def _limit(access: str) -> float:
    return float(PARTITION_READS_PER_S if access == "read" else PARTITION_WRITES_PER_S)


def _draw(
    figure: Any, axis: Any, below: Any, told: HeatMap, found: Simulation, plt: Any, collections: Any
) -> None:
    import numpy as np  # noqa: PLC0415
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    limit = _limit(told.access)
    heat, refused = np.array(told.heat), np.array(told.throttled)
    rows, columns = heat.shape
    hours = found.seconds / 3600
    colours = LinearSegmentedColormap.from_list("heat", _COLOURS)
    image = axis.imshow(
        heat,
        aspect="auto",
        origin="lower",
        extent=(0.0, columns * told.column_s / 3600, 0.0, 1.0),  # the last may go past the end
        cmap=colours,
        vmin=0.0,
        vmax=limit,
        interpolation="nearest",
    )
    bar = figure.colorbar(image, ax=axis, pad=0.01, fraction=0.03, extend="max")
    bar.set_label(f"{told.access} units/s in a stretch of keys")
    bar.set_ticks([0, limit / 2, limit], labels=["0", f"{limit / 2:,.0f}", f"{limit:,.0f}, a partition"])
    _bounds(axis, told, hours, collections)
    _marks(axis, refused, columns * told.column_s / 3600, np)
    axis.set_yticks([])
    axis.set_ylabel(f"keys by their hash, {rows} stretches")
    _keys(axis, told)
    _times(axis, told, hours)
    worst = next(each for each in found.places if (each.name, each.access) == (told.name, told.access))
    axis.set_title(
        f"{told.name}, {told.access}s: {worst.throttled:.1%} throttled",
        loc="left",
        fontweight="bold",
        fontsize=11,
    )
    asked = heat.sum(axis=0)
    times = np.minimum(np.arange(columns + 1) * told.column_s / 3600, hours)
    lost = (heat * refused).sum(axis=0)
    lost, asked = np.append(lost, lost[-1]), np.append(asked, asked[-1])
    steps = {"linewidth": 0, "step": "post"}
    below.fill_between(times, 0, asked - lost, color="#8fa9b8", label="served", **steps)
    below.fill_between(times, asked - lost, asked, color="#6f1f4a", label="throttled", **steps)
    below.set_xlim(0, hours)
    below.set_ylim(0, max(1.0, float(asked.max()) * 1.4))
    below.set_ylabel("units/s")
    below.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    below.legend(loc="upper left", ncols=2, frameon=False, fontsize=8)
    _times(below, told, hours)
    below.set_xlabel(
        f"Each column is the mean of {told.column_s:,} s. Dots: throttled, larger where more is. Lines: edges of "
        "partitions; arrows: split for heat; dashes: grown.",
        fontsize=8,
        loc="left",
        color="#55555d",
    )
    for side in ("top", "right"):
        below.spines[side].set_visible(False)


def _bounds(axis: Any, told: HeatMap, hours: float, collections: Any) -> None:
    """Draw the edges of partitions: those of the beginning all the way, later ones from when they were made."""
    if len(told.bounds) + len(told.cuts) > _BOUNDS_SHOWN:
        note = f"{len(told.bounds)} partitions at first, {len(told.bounds) + len(told.cuts)} at the end; too many to draw"
        axis.text(
            1.0, 1.01, note, transform=axis.transAxes, fontsize=7.5, ha="right", va="bottom", color="#66666e"
        )
        return
    lines = [((0.0, each), (hours, each)) for each in told.bounds if each > 0]
    axis.add_collection(collections.LineCollection(lines, colors="#55606a", linewidths=0.7))
    heat = [(at_s / 3600, place) for at_s, place, reason in told.cuts if reason == "heat"]
    grown = [(at_s / 3600, place) for at_s, place, reason in told.cuts if reason == "growth"]
    for cuts, style in ((heat, "-"), (grown, (0, (4, 3)))):
        lines = [((at, place), (hours, place)) for at, place in cuts]
        axis.add_collection(
            collections.LineCollection(lines, colors="#1d5f8a", linewidths=1.0, linestyles=[style])
        )
    if heat:
        axis.plot(
            *zip(*heat, strict=True), linestyle="", marker="<", markersize=5, color="#1d5f8a", clip_on=False
        )


def _marks(axis: Any, refused: Any, hours: float, np: Any) -> None:
    """Put a dot on what was refused, thinned so that dots do not run together."""
    rows, columns = refused.shape
    step = max(1, columns // 60)
    at_rows, at_columns = np.nonzero(refused > _MARKED)
    kept = at_columns % step == 0
    at_rows, at_columns = at_rows[kept], at_columns[kept]
    if not at_rows.size:
        return
    shares = refused[at_rows, at_columns]
    axis.scatter(
        (at_columns + 0.5) / columns * hours,
        (at_rows + 0.5) / rows,
        s=4 + 26 * shares,
        c="white",
        edgecolors=_INK,
        linewidths=0.7,
        zorder=3,
    )


def _keys(axis: Any, told: HeatMap) -> None:
    """Name the busiest keys at their places, on the left, kept apart."""
    limit = _limit(told.access)
    named = [key for key in told.keys if key.peak > 0.02 * limit][:_LABELS]
    placed: list[float] = []
    for key in sorted(named, key=lambda each: each.position):
        at = key.position
        if placed and at - placed[-1] < 0.055:
            at = placed[-1] + 0.055
        placed.append(at)
        text = key.name if len(key.name) <= 34 else f"{key.name[:33]}…"
        axis.annotate(
            f"{text}  {key.peak:,.0f}/s",
            xy=(0.0, key.position),
            xytext=(-18, (at - key.position) * 250),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "#66666e", "relpos": (1.0, 0.5)},
            annotation_clip=False,
        )
    if named:
        axis.set_ylabel("")


def _times(axis: Any, told: HeatMap, hours: float) -> None:
    step = next((each for each in _HOURS if hours / each <= 12), _HOURS[-1])
    begin = told.begins_at_s / 3600
    first = -(-begin // step) * step - begin
    ticks: list[float] = []
    while first <= hours + 1e-9:
        ticks.append(first)
        first += step
    axis.set_xticks(ticks, labels=_clock(begin, ticks))
    axis.set_xlim(0, hours)


def _clock(begin: float, ticks: Sequence[float]) -> list[str]:
    """Return the times of ticks in hours: of a day, or with the date where they are of a recorded one (UTC)."""
    seconds = [round((begin + tick) * 3600) for tick in ticks]
    fine = any(each % 60 for each in seconds)
    told = [
        f"{each // 3600 % 24:02}:{each // 60 % 60:02}" + (f":{each % 60:02}" if fine else "")
        for each in seconds
    ]
    if begin < 24:  # a day that might be any
        return told
    days = [datetime.fromtimestamp(each, UTC).strftime("%d %b") for each in seconds]
    shown: list[str] = []
    for at, (day, time) in enumerate(zip(days, told, strict=True)):
        shown.append(
            f"{time}\n{day}" + (" UTC" if at == 0 else "") if at == 0 or day != days[at - 1] else time
        )
    return shown
