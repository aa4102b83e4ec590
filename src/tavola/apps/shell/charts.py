"""Charts: numbers as SVG inside a page, drawn here so that nothing is loaded and a reader without eyes is served too.

Each is an image with a title and a description, coloured by classes of the stylesheet, and below it a table of the same
numbers. A number that is not known is None: it has no bar, a gap in its line, and a dash in the table. Everything that
comes from outside is escaped.
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

WIDTH = 560  # in the drawing's own units, which are pixels at the width of a column
HEIGHT = 220
BASE = HEIGHT - 32  # where the axis is; its labels are below
TICKS = 4
COLOURS = 6
LABELLED = 8  # so many bars all have their label
LYING_MAX = 12
_LETTER = 6.6  # how wide a character of the labels is, about
_LETTER_WIDE = 10.0  # the same on a narrow screen
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers to places along an axis."""

    ticks: tuple[float, ...]
    start: float  # where the first tick is drawn
    end: float

    def at(self, value: float) -> float:
        """Return where a number is drawn."""
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
    """Return a chart of one number for each label; it lies on its side where the labels need the room.

    Up to eight bars all have their label, on a narrow screen too, where letters are larger.
    """
    labels = [label for label, _ in data]
    values = [_plain(value) for _, value in data]
    colours = [f"series-{tones[label]}" if label in tones else "series-1" for label in labels]
    lying = False
    if data and len(data) <= LYING_MAX:
        letter, apart = (_LETTER_WIDE, 12) if len(data) <= LABELLED else (_LETTER, 6)
        lying = max(map(len, labels)) * letter > (WIDTH - 60) / len(data) - apart
    drawn = _lying(labels, values, colours, unit, maximum) if lying else None
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
    """Return a chart of several numbers for each label, one on top of another."""
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
    """Return a chart of one line for each series; where a number is None, the line has a gap."""
    plain = [(name, [_plain(value) for value in values]) for name, values in series]
    colours = _colours(plain, tones)
    known = _known(plain)
    drawn: Markup | None = None
    if known:
        low = min(known) if minimum is None else minimum
        high = max(known) if maximum is None else maximum
        scale = _scale(0.0 if 0 <= low < high / 2 else low, high, BASE, 12)
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
        Markup('<path class="chart-line series-{}" d="{}"></path>').format(tone, _path(run))
        for run in _runs(plain, places, scale)
    )
    told = f"{title}: {_told(known[0])} at first, {_told(known[-1])} at last, at most {_told(max(known))}"
    return Markup(
        '<svg class="sparkline" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(told, told, drawn)


# Parts of a drawing.


def _columns(
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[float | None]]],
    colours: Sequence[Sequence[str]],
    unit: str,
    maximum: float | None,
) -> Markup | None:
    """Return upright bars; those of several series stand on one another."""
    heights = [
        sum(value for _, values in series if (value := values[place]) is not None)
        for place in range(len(labels))
    ]
    if not _known(series):
        return None
    scale = _scale(min(0.0, *heights), max(heights) if maximum is None else maximum, BASE, 18)
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
            told = f"{label}{', ' + name if name else ''}: {_told(value, unit)}"
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
                    told,
                )
            )
            base += value
        if len(labels) <= 14 and len(series) == 1 and series[0][1][number] is not None:
            marks.append(_text("chart-value", middle, scale.at(max(base, 0)) - 5, _short(base), "middle"))
    return _join([_grid(scale, left), _below(labels, places), *marks])


def _lying(
    labels: Sequence[str],
    values: Sequence[float | None],
    colours: Sequence[str],
    unit: str,
    maximum: float | None,
) -> tuple[Markup | None, int]:
    """Return bars that lie on their side, each beside its label, and the height of the drawing."""
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
            ).format(f"{label}: {_told(value, unit)}", colour, start, y + 4, max(end - start, 1.0), row - 10)
        )
        marks.append(_text("chart-value", end + 6, y + row / 2 + 2, _told(value), "start"))
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
        Markup('<path class="chart-line {}" d="{}"></path>').format(colour, _path(run))
        for run in _runs(values, places, scale)
        if len(run) > 1
    ]
    alone = {run[0][0] for run in _runs(values, places, scale) if len(run) == 1}
    for label, value, x in zip(labels, values, places, strict=True):
        if value is None:
            continue
        y = scale.at(value)
        dot = Markup("")
        if len(labels) <= 16 or x in alone:
            dot = Markup('<circle class="chart-dot {}" cx="{:.1f}" cy="{:.1f}" r="3"></circle>').format(
                colour, x, y
            )
        told = f"{label}, {name}: {_told(value, unit)}"
        parts.append(
            Markup(
                '<g class="chart-mark"><title>{}</title>{}<circle class="chart-hit" cx="{:.1f}" cy="{:.1f}" r="8"></circle></g>'
            ).format(told, dot, x, y)
        )
    return _join(parts)


def _runs(
    values: Sequence[float | None], places: Sequence[float], scale: Scale
) -> Iterator[list[tuple[float, float]]]:
    """Give the points of a line in runs without a gap."""
    run: list[tuple[float, float]] = []
    for value, x in zip(values, places, strict=True):
        if value is not None:
            run.append((x, scale.at(value)))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _path(run: Sequence[tuple[float, float]]) -> str:
    points = [f"{x:.1f} {y:.1f}" for x, y in run]
    return f"M{points[0]}" + ("".join(f"L{point}" for point in points[1:]) or f"L{points[0]}")


def _grid(scale: Scale, left: float) -> Markup:
    parts: list[Markup] = []
    whole = all(tick == int(tick) for tick in scale.ticks)
    for tick in scale.ticks:
        y = scale.at(tick)
        kind = "chart-base" if tick == 0 else "chart-grid"
        parts.append(
            Markup('<line class="{}" x1="{:.1f}" x2="{}" y1="{:.1f}" y2="{:.1f}"></line>').format(
                kind, left, WIDTH - 8, y, y
            )
        )
        parts.append(_text("chart-text", left - 7, y + 4, _short(tick, whole=whole), "end"))
    return _join(parts)


def _below(labels: Sequence[str], places: Sequence[float]) -> Markup:
    """Return the labels under the axis: as many as there is room for, the last one always."""
    longest = max(map(len, labels))
    room = (WIDTH - 40) / (longest * _LETTER_WIDE + 12)
    step = max(1, math.ceil(len(labels) / max(1.0, room)))
    shown = range((len(labels) - 1) % step, len(labels), step)
    last = len(labels) - 1
    parts = []
    for number in shown:
        crowded = step > 1 or longest * 8 > (WIDTH - 40) / len(labels)
        anchor = "end" if number == last and crowded else "middle"
        x = min(places[number] + 14, WIDTH - 4) if anchor == "end" else places[number]
        parts.append(_text("chart-text", x, HEIGHT - 6, labels[number], anchor))
    return _join(parts)


def _text(kind: str, x: float, y: float, told: str, anchor: str) -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        kind, x, y, anchor, told
    )


def _margin(scale: Scale) -> float:
    whole = all(tick == int(tick) for tick in scale.ticks)
    return max(len(_short(tick, whole=whole)) for tick in scale.ticks) * 8.2 + 10


def _middles(count: int, left: float) -> list[float]:
    slot = (WIDTH - left - 8) / max(1, count)
    return [left + slot * (number + 0.5) for number in range(count)]


_LEAST = 1e-300  # below it a float has no logarithm left to take


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    """Return a scale with ticks at round numbers that hold what is between two."""
    if high - low < _LEAST:
        high = low + (abs(low) if abs(low) >= _LEAST else 1.0)
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    if step < 1 and low == int(low) and high == int(high) and high - low >= TICKS:
        step = 1.0
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return Scale(tuple(float(f"{number * step:.12g}") for number in range(first, last + 1)), start, end)


# The figure around it.


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
    told = description or _summary(labels, series, unit)
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
        '<title id="{mark}-title">{title}</title><desc id="{mark}-desc">{told}</desc>{inside}</svg>{table}</figure>'
    ).format(
        heading=heading,
        key=shown,
        width=WIDTH,
        height=height,
        mark=mark,
        title=title,
        told=told,
        inside=inside,
        table=_table(title, labels, series, unit),
    )


def _table(
    title: str, labels: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], unit: str
) -> Markup:
    if not labels:
        return Markup("")
    heads = _join(Markup('<th scope="col" class="number">{}</th>').format(name) for name, _ in series)
    rows = _join(
        Markup('<tr><th scope="row" data-label="">{}</th>{}</tr>').format(
            label,
            _join(
                Markup('<td class="number" data-label="{}">{}</td>').format(
                    name, "—" if values[number] is None else _told(values[number], unit)
                )
                for name, values in series
            ),
        )
        for number, label in enumerate(labels)
    )
    return Markup(
        '<details><summary>Show the numbers<span class="visually-hidden"> of {}</span></summary>'
        '<div class="table-frame" role="region" aria-label="{}" tabindex="0"><table class="table">'
        '<caption class="visually-hidden">{}</caption>'
        '<thead><tr><th scope="col"><span class="visually-hidden">Label</span></th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div></details>"
    ).format(title, f"Numbers of {title}", title, heads, rows)


def _summary(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], unit: str) -> str:
    """Return in a sentence what the eye would take from the drawing."""
    if not labels or not _known(series):
        return "There is no data yet."
    told: list[str] = []
    for name, values in series:
        known = [(value, label) for value, label in zip(values, labels, strict=True) if value is not None]
        if known:
            low, high = min(known, key=lambda each: each[0]), max(known, key=lambda each: each[0])
            told.append(
                f"{name}: from {_told(low[0], unit)} ({low[1]}) to {_told(high[0], unit)} ({high[1]})"
            )
    return f"{len(labels)} values from {labels[0]} to {labels[-1]}. " + "; ".join(told) + "."


def _colours(series: Sequence[tuple[str, object]], tones: Mapping[str, str]) -> list[str]:
    return [
        f"series-{tones[name]}" if name in tones else f"series-{number % COLOURS + 1}"
        for number, (name, _) in enumerate(series)
    ]


def _plain(value: Value) -> float | None:
    """Return a number as one that can be drawn; what is none is not known."""
    if value is None:
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def _known(series: Sequence[tuple[str, Sequence[float | None]]]) -> list[float]:
    return [value for _, values in series for value in values if value is not None]


def _told(value: float | None, unit: str = "") -> str:
    if value is None:
        return "—"
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


def _cut(label: str, room: float) -> str:
    most = int(room / 7)
    return label if len(label) <= most else label[: most - 1] + "…"


def _join(parts: Sequence[Markup] | Iterator[Markup]) -> Markup:
    return Markup("").join(parts)
