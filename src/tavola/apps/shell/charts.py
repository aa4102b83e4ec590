"""Charts as inline SVG: pages load no script for them, and screen readers can use them.

Each chart has a title, a description and a table of the same numbers below it; the stylesheet sets the colours. None is an
unknown number: no bar, a gap in the line, a dash in the table. All labels are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import TypeAlias

from markupsafe import Markup

Value: TypeAlias = int | float | Decimal | None
Series: TypeAlias = Sequence[tuple[str, Sequence[Value]]]

WIDTH = 560  # in SVG units, which are pixels at the width of a column
HEIGHT = 220
BASE = HEIGHT - 32  # y of the axis; its labels are below
TICKS = 4
COLOURS = 6
LABELLED_MAX = 8  # up to this many bars, all are labelled
HORIZONTAL_MAX = 12
_LETTER = 6.6  # approximate width of a label's character
_LETTER_WIDE = 10.0  # the same on a narrow screen
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps numbers to positions on an axis."""

    ticks: tuple[float, ...]
    start: float  # position of the first tick
    end: float

    def at(self, value: float) -> float:
        """Return the position of a number."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def bars(
    title: str,
    data: Sequence[tuple[str, Value]],
    *,
    unit: str = "",
    description: str = "",
    tones: Mapping[str, str] = _NONE,
    maximum: float | None = None,
) -> Markup:
    """Return a bar chart with one number per label; the bars are horizontal if the labels are long.

    Up to eight bars are all labelled, even on a narrow screen, where letters are larger.
    """
    labels = [label for label, _ in data]
    values = [_plain(value) for _, value in data]
    colours = [f"series-{tones[label]}" if label in tones else "series-1" for label in labels]
    horizontal = False
    if data and len(data) <= HORIZONTAL_MAX:
        letter, gap = (_LETTER_WIDE, 12) if len(data) <= LABELLED_MAX else (_LETTER, 6)
        horizontal = max(map(len, labels)) * letter > (WIDTH - 60) / len(data) - gap
    drawn = _horizontal_bars(labels, values, colours, unit, maximum) if horizontal else None
    if drawn is None:
        drawn = _columns(labels, [("", values)], [colours], unit, maximum), HEIGHT
    return _figure(title, description, drawn, labels, [(title, values)], unit)


def stacked_bars(
    title: str,
    labels: Sequence[str],
    series: Series,
    *,
    unit: str = "",
    description: str = "",
    tones: Mapping[str, str] = _NONE,
) -> Markup:
    """Return a bar chart with several numbers per label, stacked."""
    plain = [(name, [_plain(value) for value in values]) for name, values in series]
    colours = _colours(plain, tones)
    drawn = _columns(labels, plain, [[colour] * len(labels) for colour in colours], unit, None)
    return _figure(title, description, (drawn, HEIGHT), labels, plain, unit, key=colours)


def lines(
    title: str,
    labels: Sequence[str],
    series: Series,
    *,
    unit: str = "",
    description: str = "",
    tones: Mapping[str, str] = _NONE,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Markup:
    """Return a line chart with one line per series; None is a gap."""
    plain = [(name, [_plain(value) for value in values]) for name, values in series]
    colours = _colours(plain, tones)
    known = _known_values(plain)
    drawn: Markup | None = None
    if known:
        low = min(known) if minimum is None else minimum
        high = max(known) if maximum is None else maximum
        from_zero = minimum is None and 0 <= low < high / 2
        whole = maximum is None and _are_whole(known)
        scale = _scale(0.0 if from_zero else low, high, BASE, 12, whole=whole)
        left = _margin(scale)
        places = _middles(len(labels), left)
        marks = [
            _line(name, values, labels, places, scale, colour, unit)
            for (name, values), colour in zip(plain, colours, strict=True)
        ]
        drawn = _join([_grid(scale, left), _below(labels, places), *marks])
    return _figure(title, description, (drawn, HEIGHT), labels, plain, unit, key=colours)


def sparkline(title: str, values: Sequence[Value], *, tone: str = "info") -> Markup:
    """Return a small line without axes, for a tile or a row."""
    plain = [_plain(value) for value in values]
    known = [value for value in plain if value is not None]
    if not known:
        return Markup('<span class="quiet">No data</span>')
    low, high = min(known), max(known)
    scale = Scale((low, high) if high > low else (low - 1, low + 1), 25, 3)
    step = 116 / max(1, len(plain) - 1)
    places = [2 + step * number for number in range(len(plain))]
    drawn = _join(
        Markup('<path class="chart-line series-{}" d="{}"></path>').format(tone, _svg_path(run))
        for run in _runs(plain, places, scale)
    )
    summary = f"{title}: first {_format(known[0])}, last {_format(known[-1])}, maximum {_format(max(known))}"
    return Markup(
        '<svg class="sparkline" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(summary, summary, drawn)


# Parts of a drawing


def _columns(
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[float | None]]],
    colours: Sequence[Sequence[str]],
    unit: str,
    maximum: float | None,
) -> Markup | None:
    """Return vertical bars; those of several series are stacked."""
    heights = [
        sum(value for _, values in series if (value := values[place]) is not None)
        for place in range(len(labels))
    ]
    if not _known_values(series):
        return None
    whole = maximum is None and _are_whole(heights)
    scale = _scale(min(0.0, *heights), max(heights) if maximum is None else maximum, BASE, 18, whole=whole)
    left = _margin(scale)
    places = _middles(len(labels), left)
    slot = (WIDTH - left - 8) / len(labels)
    width = min(slot * 0.72, 56)
    marks: list[Markup] = []
    for number, (label, middle) in enumerate(zip(labels, places, strict=True)):
        base = 0.0
        for (name, values), shades in zip(series, colours, strict=True):
            value = values[number]
            if value is None:
                continue
            top, bottom = scale.at(base + value), scale.at(base)
            tooltip = f"{label}{', ' + name if name else ''}: {_format(value, unit)}"
            marks.append(
                Markup(
                    '<rect class="chart-bar {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{}">'
                    "<title>{}</title></rect>"
                ).format(
                    shades[number],
                    middle - width / 2,
                    min(top, bottom),
                    width,
                    max(abs(bottom - top), 0.5 if value else 0.0),
                    1 if name else 2,
                    tooltip,
                )
            )
            base += value
        if len(labels) <= 14 and len(series) == 1 and series[0][1][number] is not None:
            marks.append(_text("chart-value", middle, scale.at(max(base, 0)) - 5, _short(base), "middle"))
    return _join([_grid(scale, left), _below(labels, places), *marks])


def _horizontal_bars(
    labels: Sequence[str],
    values: Sequence[float | None],
    colours: Sequence[str],
    unit: str,
    maximum: float | None,
) -> tuple[Markup | None, int]:
    """Return horizontal bars, each beside its label, and the height of the drawing."""
    known = [value for value in values if value is not None]
    row = 28
    if not known:
        return None, HEIGHT
    left = min(max(map(len, labels)) * 8.4 + 10, WIDTH * 0.42)
    low, high = min(0.0, *known), max(known) if maximum is None else maximum
    scale = Scale((low, high if high > low else low + 1), left, WIDTH - 60)
    marks: list[Markup] = []
    for number, (label, value, colour) in enumerate(zip(labels, values, colours, strict=True)):
        y = 6 + number * row
        marks.append(_text("chart-text", left - 8, y + row / 2 + 2, _cut(label, left), "end"))
        if value is None:
            marks.append(_text("chart-text", left + 6, y + row / 2 + 2, "—", "start"))
            continue
        start, end = sorted((scale.at(0), scale.at(value)))
        marks.append(
            Markup(
                '<g class="chart-mark"><title>{}</title><rect class="chart-bar {}" x="{:.1f}" y="{:.1f}" '
                'width="{:.1f}" height="{:.1f}" rx="2"></rect></g>'
            ).format(
                f"{label}: {_format(value, unit)}", colour, start, y + 4, max(end - start, 1.0), row - 10
            )
        )
        marks.append(_text("chart-value", end + 6, y + row / 2 + 2, _format(value), "start"))
    zero = scale.at(0)
    base = Markup('<line class="chart-base" x1="{0:.1f}" x2="{0:.1f}" y1="4" y2="{1}"></line>').format(
        zero, len(labels) * row + 6
    )
    return _join([*marks, base]), len(labels) * row + 12


def _line(
    name: str,
    values: Sequence[float | None],
    labels: Sequence[str],
    places: Sequence[float],
    scale: Scale,
    colour: str,
    unit: str,
) -> Markup:
    parts = [
        Markup('<path class="chart-line {}" d="{}"></path>').format(colour, _svg_path(run))
        for run in _runs(values, places, scale)
        if len(run) > 1
    ]
    single_points = {run[0][0] for run in _runs(values, places, scale) if len(run) == 1}
    for label, value, x in zip(labels, values, places, strict=True):
        if value is None:
            continue
        y = scale.at(value)
        dot = Markup("")
        if len(labels) <= 16 or x in single_points:
            dot = Markup('<circle class="chart-dot {}" cx="{:.1f}" cy="{:.1f}" r="3"></circle>').format(
                colour, x, y
            )
        tooltip = f"{label}, {name}: {_format(value, unit)}"
        parts.append(
            Markup(
                '<g class="chart-mark"><title>{}</title>{}<circle class="chart-hit" cx="{:.1f}" cy="{:.1f}" r="8"></circle></g>'
            ).format(tooltip, dot, x, y)
        )
    return _join(parts)


def _runs(
    values: Sequence[float | None], places: Sequence[float], scale: Scale
) -> Iterator[list[tuple[float, float]]]:
    """Generate the points of a line in runs without a gap."""
    run: list[tuple[float, float]] = []
    for value, x in zip(values, places, strict=True):
        if value is not None:
            run.append((x, scale.at(value)))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _svg_path(run: Sequence[tuple[float, float]]) -> str:
    points = [f"{x:.1f} {y:.1f}" for x, y in run]
    return f"M{points[0]}" + ("".join(f"L{point}" for point in points[1:]) or f"L{points[0]}")


def _grid(scale: Scale, left: float) -> Markup:
    parts: list[Markup] = []
    is_integer = all(tick == int(tick) for tick in scale.ticks)
    for tick in scale.ticks:
        y = scale.at(tick)
        kind = "chart-base" if tick == 0 else "chart-grid"
        parts.append(
            Markup('<line class="{}" x1="{:.1f}" x2="{}" y1="{:.1f}" y2="{:.1f}"></line>').format(
                kind, left, WIDTH - 8, y, y
            )
        )
        parts.append(_text("chart-text", left - 7, y + 4, _short(tick, whole=is_integer), "end"))
    return _join(parts)


def _below(labels: Sequence[str], places: Sequence[float]) -> Markup:
    """Return the labels under the axis: as many as fit, always including the last."""
    longest = max(map(len, labels))
    fitting = (WIDTH - 40) / (longest * _LETTER_WIDE + 12)
    step = max(1, math.ceil(len(labels) / max(1.0, fitting)))
    shown = range((len(labels) - 1) % step, len(labels), step)
    last = len(labels) - 1
    parts = []
    for number in shown:
        crowded = step > 1 or longest * 8 > (WIDTH - 40) / len(labels)
        anchor = "end" if number == last and crowded else "middle"
        x = min(places[number] + 14, WIDTH - 4) if anchor == "end" else places[number]
        parts.append(_text("chart-text", x, HEIGHT - 6, labels[number], anchor))
    return _join(parts)


def _text(kind: str, x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        kind, x, y, anchor, text
    )


def _margin(scale: Scale) -> float:
    is_integer = all(tick == int(tick) for tick in scale.ticks)
    return max(len(_short(tick, whole=is_integer)) for tick in scale.ticks) * 8.2 + 10


def _middles(count: int, left: float) -> list[float]:
    slot = (WIDTH - left - 8) / max(1, count)
    return [left + slot * (number + 0.5) for number in range(count)]


_LEAST = 1e-300  # smaller floats have no usable logarithm


def _scale(low: float, high: float, start: float, end: float, *, whole: bool = False) -> Scale:
    """Return a scale with ticks at round numbers that covers a range; `whole` numbers have no ticks between them."""
    if high - low < _LEAST:
        high = low + (abs(low) if abs(low) >= _LEAST else 1.0)
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    if step < 1 and (whole or (low == int(low) and high == int(high) and high - low >= TICKS)):
        step = 1.0
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return Scale(tuple(float(f"{number * step:.12g}") for number in range(first, last + 1)), start, end)


# The figure around a drawing


def _figure(
    title: str,
    description: str,
    drawn: tuple[Markup | None, int],
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[float | None]]],
    unit: str,
    *,
    key: Sequence[str] = (),
) -> Markup:
    inside, height = drawn
    summary = description or _summary(labels, series, unit)
    mark = "chart-" + sha256(repr((title, labels, series)).encode("utf-8", "replace")).hexdigest()[:10]
    if inside is None:
        height = 96
        inside = _text("chart-none", WIDTH / 2, height / 2, "No data yet", "middle")
    shown = Markup("")
    if len(series) > 1:
        entries = _join(
            Markup(
                '<li><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="chart-bar {}" width="12" height="12" rx="2">'
                "</rect></svg>{}</li>"
            ).format(colour, name)
            for colour, (name, _) in zip(key, series, strict=True)
        )
        shown = Markup('<ul class="chart-key">{}</ul>').format(entries)
    heading = f"{title} ({unit})" if unit else title
    return Markup(
        '<figure class="chart"><figcaption class="chart-title">{heading}</figcaption>{key}'
        '<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="{mark}-title {mark}-desc">'
        '<title id="{mark}-title">{title}</title><desc id="{mark}-desc">{summary}</desc>{inside}</svg>{table}</figure>'
    ).format(
        heading=heading,
        key=shown,
        width=WIDTH,
        height=height,
        mark=mark,
        title=title,
        summary=summary,
        inside=inside,
        table=_table(title, labels, series, unit),
    )


def _table(
    title: str, labels: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], unit: str
) -> Markup:
    if not labels:
        return Markup("")
    heads = _join(Markup('<th scope="col" class="number">{}</th>').format(name) for name, _ in series)
    digits = [0 if _are_whole(_known_values([each])) else 2 for each in series]  # the same in a whole column
    rows = _join(
        Markup('<tr><th scope="row" data-label="">{}</th>{}</tr>').format(
            label,
            _join(
                Markup('<td class="number" data-label="{}">{}</td>').format(
                    name, _format(values[number], unit, digits=places)
                )
                for (name, values), places in zip(series, digits, strict=True)
            ),
        )
        for number, label in enumerate(labels)
    )
    return Markup(
        '<details><summary>Show data<span class="visually-hidden"> of {}</span></summary>'
        '<div class="table-frame" role="region" aria-label="{}" tabindex="0"><table class="table">'
        '<caption class="visually-hidden">{}</caption>'
        '<thead><tr><th scope="col"><span class="visually-hidden">Label</span></th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div></details>"
    ).format(title, f"Data of {title}", title, heads, rows)


def _summary(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], unit: str) -> str:
    """Return the ranges of the series as a sentence, for screen readers."""
    if not labels or not _known_values(series):
        return "No data yet."
    ranges: list[str] = []
    for name, values in series:
        known = [(value, label) for value, label in zip(values, labels, strict=True) if value is not None]
        if known:
            low, high = min(known, key=lambda point: point[0]), max(known, key=lambda point: point[0])
            ranges.append(
                f"{name}: from {_format(low[0], unit)} ({low[1]}) to {_format(high[0], unit)} ({high[1]})"
            )
    return f"{len(labels)} values from {labels[0]} to {labels[-1]}. " + "; ".join(ranges) + "."


def _colours(series: Sequence[tuple[str, object]], tones: Mapping[str, str]) -> list[str]:
    return [
        f"series-{tones[name]}" if name in tones else f"series-{number % COLOURS + 1}"
        for number, (name, _) in enumerate(series)
    ]


def _plain(value: Value) -> float | None:
    """Return a number as a float; None if it is unknown or not finite."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _are_whole(values: Sequence[float]) -> bool:
    return all(value == int(value) for value in values)


def _known_values(series: Sequence[tuple[str, Sequence[float | None]]]) -> list[float]:
    return [value for _, values in series for value in values if value is not None]


def _format(value: float | None, unit: str = "", *, digits: int | None = None) -> str:
    """Return a number with as many decimals as it needs, or with `digits`."""
    if value is None:
        return "—"
    if digits is not None:
        text = f"{value:,.{digits}f}"
        return f"{text} {unit}" if unit else text
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{text} {unit}" if unit else text


def _short(value: float, *, whole: bool = True) -> str:
    """Return a number for an axis: 12k, 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            unit = 1e3 if letter == "k" else size
            return f"{value / unit:.1f}".rstrip("0").rstrip(".") + letter
    if value == int(value) and whole:
        return f"{value:,.0f}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _cut(label: str, width: float) -> str:
    characters_max = int(width / 7)
    return label if len(label) <= characters_max else label[: characters_max - 1] + "…"


def _join(parts: Sequence[Markup] | Iterator[Markup]) -> Markup:
    return Markup("").join(parts)
