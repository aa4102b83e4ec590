"""What the pages are made of: code compared line by line, days put together, places named for people."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from tavola.apps.terraform_review import code_diff
from tavola.apps.terraform_review.code_diff import diff_lines, render_diff
from tavola.apps.terraform_review.model import DayRisk
from tavola.apps.terraform_review.pages import describe_differences
from tavola.apps.terraform_review.risk_trend import build_trend, format_score
from tavola.apps.terraform_review.schemas import to_json_value
from tavola.patterns import Difference


def numbered(count: int, **changed: str) -> str:
    """Return so many lines, some of them changed: `_5="five"`."""
    return "\n".join(changed.get(f"_{n}", f"line {n}") for n in range(1, count + 1))


def applied(before: str, diff: str) -> str:
    """Return what a unified diff makes of a text."""
    old, made, at = before.splitlines(), [], 0
    for line in diff.splitlines():
        if line.startswith("@@"):
            start, count = line.split()[1].lstrip("-").split(",")
            position = int(start) - (1 if int(count) else 0)
            made += old[at:position]
            at = position
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert old[at] == line[1:]
            at += 1
            made += [line[1:]] if line.startswith(" ") else []
    return "\n".join([*made, *old[at:]])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (numbered(100), numbered(100, _50="fifty")),
        (numbered(100), numbered(100, _1="one", _99="end")),
        (numbered(5), ""),
        ("", numbered(5)),
        (numbered(30), numbered(60)),
        (numbered(60), numbered(30)),
        ("a\nb\nc", "c\nb\na"),
        (numbered(20), numbered(20)),
    ],
)
def test_a_difference_makes_one_text_of_the_other(before: str, after: str) -> None:
    """Applied to the first text, the difference gives the second; lines far from a change are not in it."""
    lines = diff_lines(before, after)

    assert lines is not None
    assert applied(before, render_diff(lines)) == after
    assert len(lines) <= 2 + 3 * 6 + len(before.splitlines()) + len(after.splitlines())
    assert (lines == []) == (before == after)


def test_what_is_common_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small change in a long text is compared; two long texts without anything in common are not."""
    monkeypatch.setattr(code_diff, "LINES_MAX", 10)

    assert diff_lines(numbered(5_000), numbered(5_000, _2500="x")) is not None
    assert diff_lines(numbered(11), "\n".join(f"other {n}" for n in range(11))) is None


def days(count: int) -> list[DayRisk]:
    """Return so many days, each with one review of risk 0.5 and one that failed."""
    first = date(2026, 1, 1)
    return [
        DayRisk(
            day=first + timedelta(days=n),
            reviews=2,
            assessed=1,
            risk_sum=Decimal("0.5"),
            found_sum=Decimal("0.75"),
            medium=1,
            failed=1,
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "unit", "steps"), [(1, "day", 1), (92, "day", 92), (93, "week", 14), (700, "month", 24)]
)
def test_many_days_are_put_together(count: int, unit: str, steps: int) -> None:
    """Days up to three months, then weeks, then months; what they add up to is the same."""
    found = days(count)
    trend = build_trend(found, found[0].day, found[-1].day)

    assert (trend.unit, len(trend.buckets)) == (unit, steps)
    assert (trend.total.reviews, trend.total.average, trend.total.average_found) == (2 * count, 0.5, 0.75)
    assert sum(bucket.reviews for bucket in trend.buckets) == 2 * count
    assert sum(value or 0 for value in trend.bands[3][1]) == count
    assert len(set(trend.labels)) == len(trend.labels)


def test_days_without_reviews_have_a_place() -> None:
    """A gap in the days is a gap in the line, not a line across."""
    found = days(1)

    trend = build_trend(found, found[0].day - timedelta(days=2), found[0].day)

    assert trend.averages[1][1] == [None, None, 0.5]
    assert format_score(None) == "—"


def test_differences_are_told_for_people() -> None:
    """Places have names, findings their titles; what every version changes is left out."""
    ref = {"issue_hash": "h", "title": "Bucket is public", "severity": "high", "category": "security"}
    differences = describe_differences(
        [
            Difference(
                path="overall_risk_score", kind="changed", before=Decimal("0.72"), after=Decimal("0.1")
            ),
            Difference(path="cost_findings.high", kind="changed", before=1, after=0),
            Difference(path='findings["a-1.2"]', kind="removed", before=ref),
            Difference(path="findings.f1", kind="added", after=ref),
            Difference(path="fix_applied", kind="changed", before=False, after=True),
            Difference(path="ai_review_result.text", kind="changed", omitted=True),
            Difference(path="changed_at", kind="changed", before="a", after="b"),
            Difference(path="code.sha256", kind="changed", before="a", after="b"),
        ]
    )

    assert differences == [
        ("Risk", "0.72", "0.10"),
        ("Cost findings: high", "1", "0"),
        ("Finding a-1.2", "Bucket is public (high, security)", None),
        ("Finding f1", None, "Bucket is public (high, security)"),
        ("Fix applied", "no", "yes"),
        ("AI review result: text", "(too long to show)", "(too long to show)"),
    ]


def test_stored_values_are_told_as_json_can() -> None:
    """Numbers keep their digits as text, sets have an order, bytes are counted."""
    value = {"n": Decimal("1.230"), "s": {"b", "a"}, "x": b"abc", "l": [None, True, 1]}

    assert to_json_value(value) == {"n": "1.230", "s": ["a", "b"], "x": "3 bytes", "l": [None, True, "1"]}
