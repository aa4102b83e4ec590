"""Charts: images with a description and a table of their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tavola.apps.shell import charts

Values = st.lists(st.one_of(st.none(), st.floats(-1e9, 1e12), st.integers(0, 10**9)), min_size=1, max_size=40)


def svg(found: str) -> ElementTree.Element:
    """Return the drawing of a chart, parsed, so that it is known to be well-formed."""
    tree = ElementTree.fromstring(f"<div>{found}</div>")
    drawn = tree.find(".//figure/svg")
    assert drawn is not None
    return drawn


def paths(found: str) -> list[str]:
    """Return the lines of a chart."""
    return [each.attrib["d"] for each in svg(found).iter("path")]


@pytest.mark.parametrize(
    "found",
    [
        charts.bars("Tickets", [("open", 3), ("closed", 4)]),
        charts.stacked_bars("Tickets", ["mon", "tue"], [("open", [1, 2]), ("closed", [3, None])]),
        charts.lines("Tickets", ["mon", "tue"], [("open", [1, 2])]),
    ],
)
def test_a_chart_is_an_accessible_image(found: str) -> None:
    """A chart has a role, a title, a description, a table of its numbers, and the number on each mark."""
    drawn = svg(found)
    ids = {each.attrib.get("id"): each.text for each in drawn if each.tag in ("title", "desc")}

    assert drawn.attrib["role"] == "img"
    assert set(drawn.attrib["aria-labelledby"].split()) == set(ids)
    assert all(ids.values())
    assert "<details>" in found
    assert '<th scope="row"' in found
    assert len(list(drawn.iter("title"))) > 2
    assert "style=" not in found


@pytest.mark.parametrize("values", [[], [("a", None)]])
def test_a_chart_without_data_says_so(values: Any) -> None:
    """A chart without numbers says so."""
    assert "No data yet" in charts.bars("Tickets", values)
    assert "No data yet" in charts.lines("x", [label for label, _ in values], [("s", [None] * len(values))])
    assert "No data" in charts.sparkline("Tickets", [None])


def test_an_unknown_value_is_a_gap() -> None:
    """A line breaks where a value is None; a single value is a dot."""
    found = charts.lines("Risk", list("abcdef"), [("s", [1, 2, None, 3, 4, None])])
    alone = charts.lines("Risk", list("abc"), [("s", [None, 2, None])])

    assert len(paths(found)) == 2
    assert paths(alone) == []
    assert 'class="chart-dot' in alone
    assert ">—</td>" in found


def test_nan_is_an_unknown_value() -> None:
    """NaN and infinity are left out."""
    assert len(paths(charts.lines("x", list("abc"), [("s", [1, float("nan"), 2])]))) == 0
    assert "No data yet" in charts.bars("x", [("a", float("inf"))])


def test_an_unknown_bar_is_not_a_bar_of_zero() -> None:
    """None has no bar; 0 has its number."""
    found = charts.bars("x", [("a", None), ("b", 0), ("c", 5)])

    assert len(list(svg(found).iter("rect"))) == 2
    assert ">0</text>" in found


def test_labels_are_escaped() -> None:
    """A label is text, whatever it contains."""
    bad = '"><script>x</script>&'
    for found in (
        charts.bars(bad, [(bad, 1)], unit=bad),
        charts.bars(bad, [(bad * 3, 1), (bad, 2)]),
        charts.stacked_bars(bad, [bad], [(bad, [1]), (bad + "2", [2])]),
        charts.lines(bad, [bad], [(bad, [1])], description=bad),
        charts.sparkline(bad, [1, 2]),
    ):
        assert "<script" not in found
        ElementTree.fromstring(f"<div>{found}</div>")


@given(st.lists(st.text("abcdefghij", min_size=1, max_size=24), min_size=1, max_size=8, unique=True))
@example(["Open", "Processing", "Resolved", "Escalated", "Closed", "Failed"])
def test_a_few_bars_all_have_their_label(labels: list[str]) -> None:
    """Charts of up to eight bars label every bar."""
    drawn = svg(charts.bars("Tickets by status", [(label, 3) for label in labels]))
    texts = [each.text for each in drawn.iter("text") if each.attrib["class"] == "chart-text"]

    assert [label for label in labels if label not in texts] == []


def test_tones_set_colours() -> None:
    """A status has the same tone in every chart; a series without a tone gets the next colour."""
    found = charts.stacked_bars("x", ["a"], [("low", [1]), ("high", [2])], tones={"high": "bad"})

    assert re.findall(r'class="chart-bar (series-\w+)" x', found) == ["series-1", "series-bad"]


def test_stacked_bars_are_stacked() -> None:
    """The second bar begins where the first ends."""
    first, second = [
        (float(each.attrib["y"]), float(each.attrib["height"]))
        for each in svg(charts.stacked_bars("x", ["a"], [("low", [3]), ("high", [4])])).iter("rect")
    ]

    assert second[0] + second[1] == pytest.approx(first[0], abs=0.2)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([3], ["0", "1", "2", "3"]),
        ([85, 40], ["0", "25", "50", "75", "100"]),
        ([15_320], ["0", "5,000", "10k", "15k", "20k"]),
        ([0.6], ["0", "0.2", "0.4", "0.6"]),
        ([2_500_000], ["0", "1M", "2M", "3M"]),
    ],
)
def test_ticks_are_round_numbers(values: Sequence[float], ticks: list[str]) -> None:
    """An axis has a few round numbers that cover all values, whole ones for counts."""
    found = charts.bars("x", [(str(number), value) for number, value in enumerate(values)])

    assert re.findall(r'<text class="chart-text"[^>]*text-anchor="end">([^<]*)<', found) == ticks


@given(Values)
def test_every_series_can_be_drawn(values: list[Any]) -> None:
    """For any numbers, the drawing is well-formed and everything lies inside it."""
    labels = [f"{number} Oct" for number in range(len(values))]
    for found in (
        charts.bars("x", list(zip(labels, values, strict=True))),
        charts.lines("x", labels, [("s", values)]),
        charts.stacked_bars("x", labels, [("s", values), ("t", values)]),
        charts.sparkline("x", values),
    ):
        tree = ElementTree.fromstring(f"<div>{found}</div>")
        for each in tree.iter():
            for name in ("x", "y", "cx", "cy"):
                assert -1 <= float(each.attrib.get(name, 0)) <= 600


def test_the_smallest_number_can_be_drawn() -> None:
    """A number close to zero has the same scale as zero."""
    assert "<svg" in charts.bars("x", [("a", 5e-324), ("b", 0.0)])


def test_a_column_of_numbers_has_one_number_of_decimals() -> None:
    """The table of a chart shows a column's numbers alike: all whole, or all with two decimals."""
    table = charts.lines("Hours", ["mon", "tue", "wed"], [("mean", [6.7, 4, None]), ("tickets", [3, 12, 4])])
    cells = re.findall(r'<td class="number" data-label="(\w+)">([^<]*)</td>', table)

    assert [text for name, text in cells if name == "mean"] == ["6.70", "4.00", "—"]
    assert [text for name, text in cells if name == "tickets"] == ["3", "12", "4"]
