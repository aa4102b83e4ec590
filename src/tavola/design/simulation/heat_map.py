"""Heat map: the keys of a place over time, with the heat of each key range and what was refused.

One colour scale for all places: light is idle, dark is the limit of a partition, so it can be read in grey. Dots mark refused
requests, sized by their share; lines are partition bounds, which begin where a partition was split.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tavola.design.charts import load_matplotlib, save_figure
from tavola.design.errors import SimulationError
from tavola.design.simulation.results import HeatMap, Simulation
from tavola.design.simulation.workload import PARTITION_LIMITS

_COLOURS = ("#f7f5ef", "#f6dfb3", "#efb372", "#dc7a4a", "#b23f42", "#6f1f4a", "#2a0f3a")
_INK = "#22222a"
_MARKED_SHARE = 0.005  # of the requested units, above which refusals are marked
_PANELS_MAX = 3
_LABELS = 6
_BOUNDS_MAX = 80
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


def chart(simulation: Simulation, form: str, place: str | None = None) -> bytes:
    """Return the heat maps of the worst places, or of one, as SVG or PNG; equal simulations give equal charts."""
    load_matplotlib().use("Agg")
    from matplotlib import collections  # noqa: PLC0415 - an extra
    from matplotlib import pyplot as plt  # noqa: PLC0415 - an extra

    heat_maps = _select_heat_maps(simulation, place)
    with plt.rc_context(
        {"svg.hashsalt": "tavola", "font.family": "DejaVu Sans", "font.size": 9, "text.color": _INK}
    ):
        figure, axes = plt.subplots(
            2 * len(heat_maps),
            1,
            figsize=(10.5, 4.4 * len(heat_maps) + 0.5),
            squeeze=False,
            height_ratios=[3.6, 1.0] * len(heat_maps),
            layout="constrained",
        )
        figure.patch.set_facecolor("white")
        for number, heat_map in enumerate(heat_maps):
            _draw(
                figure, axes[2 * number][0], axes[2 * number + 1][0], heat_map, simulation, plt, collections
            )
        picture = save_figure(figure, form)
        plt.close(figure)
    return picture


def _select_heat_maps(simulation: Simulation, place: str | None) -> list[HeatMap]:
    if place is not None:
        selected = [
            each for each in simulation.heat_maps if place in (each.name, f"{each.name} {each.access}s")
        ]
        if not selected:
            names = ", ".join(f"{each.name} {each.access}s" for each in simulation.heat_maps)
            raise SimulationError(f"{place} has no traffic; choose one of {names}")
        return selected
    worst = {(each.name, each.access): each.throttled for each in simulation.places}
    heats = {
        (each.name, each.access): each.peak / PARTITION_LIMITS[each.access] for each in simulation.places
    }
    order = sorted(
        simulation.heat_maps,
        key=lambda each: (
            -worst[each.name, each.access],
            -heats[each.name, each.access],
            each.name,
            each.access,
        ),
    )
    throttled = [each for each in order if worst[each.name, each.access] > _MARKED_SHARE]
    return (throttled or order)[: _PANELS_MAX if throttled else 1]


def _draw(
    figure: Any, axis: Any, below: Any, heat_map: HeatMap, simulation: Simulation, plt: Any, collections: Any
) -> None:
    import numpy as np  # noqa: PLC0415
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    limit = PARTITION_LIMITS[heat_map.access]
    heat, refused = np.array(heat_map.heat), np.array(heat_map.throttled)
    rows, columns = heat.shape
    hours = simulation.seconds / 3600
    colours = LinearSegmentedColormap.from_list("heat", _COLOURS)
    image = axis.imshow(
        heat,
        aspect="auto",
        origin="lower",
        extent=(0.0, columns * heat_map.column_s / 3600, 0.0, 1.0),  # the last column may extend past the end
        cmap=colours,
        vmin=0.0,
        vmax=limit,
        interpolation="nearest",
    )
    bar = figure.colorbar(image, ax=axis, pad=0.01, fraction=0.03, extend="max")
    bar.set_label(f"{heat_map.access} units/s per key range")
    bar.set_ticks([0, limit / 2, limit], labels=["0", f"{limit / 2:,.0f}", f"{limit:,.0f} (partition limit)"])
    _draw_bounds(axis, heat_map, hours, collections)
    _mark_refused(axis, refused, columns * heat_map.column_s / 3600, np)
    axis.set_yticks([])
    axis.set_ylabel(f"partition keys by hash, {rows} ranges")
    _label_keys(axis, heat_map)
    _set_time_axis(axis, heat_map, hours)
    worst = next(
        each for each in simulation.places if (each.name, each.access) == (heat_map.name, heat_map.access)
    )
    axis.set_title(
        f"{heat_map.name}, {heat_map.access}s: {worst.throttled:.1%} throttled",
        loc="left",
        fontweight="bold",
        fontsize=11,
    )
    requested = heat.sum(axis=0)
    times = np.minimum(np.arange(columns + 1) * heat_map.column_s / 3600, hours)
    refused_units = (heat * refused).sum(axis=0)
    refused_units, requested = (
        np.append(refused_units, refused_units[-1]),
        np.append(requested, requested[-1]),
    )
    steps = {"linewidth": 0, "step": "post"}
    below.fill_between(times, 0, requested - refused_units, color="#8fa9b8", label="served", **steps)
    below.fill_between(
        times, requested - refused_units, requested, color="#6f1f4a", label="throttled", **steps
    )
    below.set_xlim(0, hours)
    below.set_ylim(0, max(1.0, float(requested.max()) * 1.4))
    below.set_ylabel("units/s")
    below.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    below.legend(loc="upper left", ncols=2, frameon=False, fontsize=8)
    _set_time_axis(below, heat_map, hours)
    below.set_xlabel(
        f"Each column is the mean of {heat_map.column_s:,} s. Dots: throttled requests, by share. Lines: partition bounds; "
        "arrows: splits for heat; dashes: growth.",
        fontsize=8,
        loc="left",
        color="#55555d",
    )
    for side in ("top", "right"):
        below.spines[side].set_visible(False)


def _draw_bounds(axis: Any, heat_map: HeatMap, hours: float, collections: Any) -> None:
    """Draw partition bounds: initial ones over the whole width, later ones from the time of the split."""
    if len(heat_map.bounds) + len(heat_map.cuts) > _BOUNDS_MAX:
        note = f"{len(heat_map.bounds)} partitions at first, {len(heat_map.bounds) + len(heat_map.cuts)} at the end (bounds not drawn)"
        axis.text(
            1.0, 1.01, note, transform=axis.transAxes, fontsize=7.5, ha="right", va="bottom", color="#66666e"
        )
        return
    lines = [((0.0, each), (hours, each)) for each in heat_map.bounds if each > 0]
    axis.add_collection(collections.LineCollection(lines, colors="#55606a", linewidths=0.7))
    heat = [(at_s / 3600, place) for at_s, place, reason in heat_map.cuts if reason == "heat"]
    grown = [(at_s / 3600, place) for at_s, place, reason in heat_map.cuts if reason == "growth"]
    for cuts, style in ((heat, "-"), (grown, (0, (4, 3)))):
        lines = [((at, place), (hours, place)) for at, place in cuts]
        axis.add_collection(
            collections.LineCollection(lines, colors="#1d5f8a", linewidths=1.0, linestyles=[style])
        )
    if heat:
        axis.plot(
            *zip(*heat, strict=True), linestyle="", marker="<", markersize=5, color="#1d5f8a", clip_on=False
        )


def _mark_refused(axis: Any, refused: Any, hours: float, np: Any) -> None:
    """Draw a dot where requests were refused, thinned out so that dots do not overlap."""
    rows, columns = refused.shape
    step = max(1, columns // 60)
    at_rows, at_columns = np.nonzero(refused > _MARKED_SHARE)
    thinned = at_columns % step == 0
    at_rows, at_columns = at_rows[thinned], at_columns[thinned]
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


def _label_keys(axis: Any, heat_map: HeatMap) -> None:
    """Label the busiest keys at their positions, on the left, without overlap."""
    limit = PARTITION_LIMITS[heat_map.access]
    named = [key for key in heat_map.keys if key.peak > 0.02 * limit][:_LABELS]
    label_positions: list[float] = []
    for key in sorted(named, key=lambda each: each.position):
        at = key.position
        if label_positions and at - label_positions[-1] < 0.055:
            at = label_positions[-1] + 0.055
        label_positions.append(at)
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


def _set_time_axis(axis: Any, heat_map: HeatMap, hours: float) -> None:
    step = next((each for each in _HOURS if hours / each <= 12), _HOURS[-1])
    begin = heat_map.begins_at_s / 3600
    first = -(-begin // step) * step - begin
    ticks: list[float] = []
    while first <= hours + 1e-9:
        ticks.append(first)
        first += step
    axis.set_xticks(ticks, labels=_time_labels(begin, ticks))
    axis.set_xlim(0, hours)


def _time_labels(begin: float, ticks: Sequence[float]) -> list[str]:
    """Return the labels of ticks in hours: times of day, and for recorded traffic (UTC) with the date."""
    seconds = [round((begin + tick) * 3600) for tick in ticks]
    with_seconds = any(each % 60 for each in seconds)
    times = [
        f"{each // 3600 % 24:02}:{each // 60 % 60:02}" + (f":{each % 60:02}" if with_seconds else "")
        for each in seconds
    ]
    if begin < 24:  # a declared day has no date
        return times
    days = [datetime.fromtimestamp(each, UTC).strftime("%d %b") for each in seconds]
    labels: list[str] = []
    for at, (day, time) in enumerate(zip(days, times, strict=True)):
        labels.append(
            f"{time}\n{day}" + (" UTC" if at == 0 else "") if at == 0 or day != days[at - 1] else time
        )
    return labels
