"""Cost of security: requests that are truly signed, and shares that are told rightly."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.bars import verdicts
from benchmarks.costs import is_met, share
from benchmarks.report import markdown
from benchmarks.results import Cost, Results
from benchmarks.security import KEY_ID, MODES, signed, write_directory
from tavola.clock import ManualClock
from tavola.iam import load_directory
from tavola.server.sigv4 import Verifier

NOW = datetime(2026, 11, 1, 9, 30, tzinfo=UTC)


def test_the_load_is_signed_as_the_server_wants_it(tmp_path: Path) -> None:
    """What is sent in strict mode proves the user that the directory has, who may do what is timed."""
    write_directory(tmp_path / "iam.json")
    directory = load_directory(tmp_path / "iam.json")
    head, _, body = signed("GetItem", b"{}", 8000, NOW).partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    fields = dict(line.split(b": ", 1) for line in lines)
    claim = Verifier(directory, ManualClock(NOW.timestamp())).verify(first.split()[1], fields, body)

    assert claim.key_id == KEY_ID
    assert claim.credential.principal.name == "loader"


def _cost(mode: str, *rates: float, share_max: float | None = None, errors: int = 0) -> Cost:
    return Cost("Cost of security", mode, "get", rates, (20.0,) * len(rates), errors, share_max)


def test_a_share_is_told_round_by_round() -> None:
    """What slows a whole round slows both sides, and so does not count."""
    base = _cost("open", 100.0, 50.0, 100.0)
    log = _cost("log", 91.0, 45.5, 20.0, share_max=0.10)

    assert share(log, base) == pytest.approx(0.91)
    assert is_met(log, base) is True
    assert is_met(_cost("log", 80.0, 40.0, 80.0, share_max=0.10), base) is False
    assert is_met(_cost("log", 91.0, 45.5, 91.0, share_max=0.10, errors=1), base) is None
    assert is_met(_cost("tls", 10.0, 10.0, 10.0), base) is None


def test_costs_are_reported_and_judged() -> None:
    """The section is in the page, its bars among the others, and a run is read back as it was."""
    costs = (_cost("open", 30_000.0), _cost("strict", 15_000.0, share_max=0.40))
    results = Results.from_json(Results(costs=costs).to_json())

    assert results.costs == costs
    assert "| GetItem | strict | 15,000 | 50% | 40% | 20.0 | no |" in markdown(results)
    (verdict,) = verdicts(results)
    assert (verdict.subject, verdict.measured, verdict.met) == ("GetItem, strict", "50%", False)


def test_the_first_mode_is_what_others_are_measured_by() -> None:
    """The open server comes first, and adds nothing."""
    assert MODES[0].options == ()
    assert len({mode.name for mode in MODES}) == len(MODES)
