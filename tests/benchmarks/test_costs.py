"""What a way to serve costs: shares round by round, and sections that are measured alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.costs import is_met, put_into, sections, share
from benchmarks.results import Cost, Results

BASE = Cost("What it costs", "without", "put", (100.0, 50.0, 200.0), (10.0, 20.0, 5.0), 0)
MODE = replace(BASE, mode="with", rates=(90.0, 45.0, 100.0), share_max=0.2)


def test_a_share_is_of_the_same_round() -> None:
    """What slowed a whole round slowed both sides, so rounds are compared one by one."""
    assert share(MODE, BASE) == 0.9


def test_a_bar_is_met_or_not_or_unknown() -> None:
    """A cost within what is allowed is met; answers that failed say nothing."""
    assert is_met(MODE, BASE) is True
    assert is_met(replace(MODE, share_max=0.05), BASE) is False
    assert is_met(replace(MODE, errors=1), BASE) is None
    assert is_met(BASE, BASE) is None


def test_a_section_measured_alone_takes_its_own_place(tmp_path: Path) -> None:
    """Other sections stay, the earlier one of this name goes, and the report tells when it was."""
    path = tmp_path / "results.json"
    other = replace(BASE, section="Another")
    Results(about={}, versions={}, costs=(other, replace(BASE, rates=(1.0, 1.0, 1.0)))).save(path)

    put_into(path, [BASE, MODE])

    found = Results.from_json(path.read_text())
    assert found.costs == (other, BASE, MODE)
    assert any("What it costs" in name for name in found.about)
    assert list(sections(found.costs)) == ["Another", "What it costs"]
