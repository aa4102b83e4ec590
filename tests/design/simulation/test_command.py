"""`tavola simulate`: the page, JSON, the picture, exit codes, and what is said of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tavola.cli.main import app
from tavola.design.simulation import Scenario, chart, simulate
from tavola.model.document import write_document
from tests.design.builders import design, entity, put, table, text
from tests.design.simulation.designs import by_status

SHORT = ("--hours", "0.05", "--seed", "4")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents' flaw as a file."""
    path = tmp_path_factory.mktemp("designs") / "tickets.json"
    path.write_text(json.dumps(write_document(by_status(skew=None))))
    return path


def _ask(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def test_the_page_and_the_exit_code(document: Path) -> None:
    """Findings of a simulation are no failure, unless a bound was given that they exceed."""
    found = _ask(document, *SHORT, "--fail-above", "90")
    over = _ask(document, *SHORT, "--fail-above", "10")

    assert found.exit_code == 0
    assert "shop/by_status" in found.stdout
    assert "Use at least 4 shards for STATUS#{status}" in " ".join(found.stdout.split())
    assert over.exit_code == 1
    assert "more than 10%" in over.stderr


def test_less_than_a_day_begins_with_the_partitions_of_the_day_before(tmp_path: Path) -> None:
    """What an even load throttles on a new table only is not held against a window in the middle of a day."""
    told = entity(
        "Ticket", text("id"), pk="T#{id}", writes=[put(per_second=8_000, item_bytes=900)], items=10**6
    )
    path = tmp_path / "even.json"
    path.write_text(json.dumps(write_document(design(table(told)))))
    bounds = (path, *SHORT, "--skew", "0", "--fail-above", "1")
    settled, cold = _ask(*bounds), _ask(*bounds, "--cold")

    assert (settled.exit_code, cold.exit_code) == (0, 1)
    assert "partitions after one day of this traffic" in settled.stdout
    assert "Starts cold" in cold.stdout
    assert "--warm" in cold.stdout
    assert "throttled." not in settled.stdout.split("Table or index", 1)[1]  # no diagnosis where nothing is


def test_json_is_one_document_and_the_same_every_time(document: Path) -> None:
    """The same command prints the same bytes."""
    first, again = _ask(document, *SHORT, "--json"), _ask(document, *SHORT, "--json")

    assert first.stdout == again.stdout
    assert json.loads(first.stdout)["schema"] == "tavola.simulation/1"
    assert json.loads(first.stdout)["heat_maps"][0]["heat"]


@pytest.mark.slow
def test_pictures_are_drawn_the_same_every_time(document: Path, tmp_path: Path) -> None:
    """A chart is SVG or PNG by its name, and the same for the same run."""
    found = simulate(by_status(skew=None), Scenario(hours=0.05, seed=4, shards=False))
    drawn = [chart(found, form) for form in ("svg", "svg", "png")]
    asked = _ask(document, *SHORT, "--chart", tmp_path / "heat.svg")

    assert drawn[0] == drawn[1]
    assert b"<svg" in drawn[0]
    assert drawn[2].startswith(b"\x89PNG")
    assert asked.exit_code == 0
    assert [each.name for each in tmp_path.iterdir()] == ["heat.svg"]


@pytest.mark.slow
def test_a_chart_of_one_column_has_times_and_one_of_many_partitions_its_note() -> None:
    """Ten seconds have ticks of their own; what is too much to draw is said beside the title."""
    short = simulate(by_status(), Scenario(hours=0.003, seed=4, shards=False))
    many = simulate(by_status(120_000), Scenario(hours=0.02, seed=4, shards=False, warm=True, quota=1e6))

    assert b"14:59:58" in chart(short, "svg")
    assert b"bounds not drawn" in chart(many, "svg", "shop writes")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--chart", "heat.pdf"), ".svg or .png"),
        pytest.param(("--chart", "no/such/folder/heat.svg"), "cannot be written", marks=pytest.mark.slow),
        (("--chart-table", "nowhere", "--chart", "heat.svg"), "nowhere has no traffic. Fix: Choose one of"),
        (("--hours", "0"), "hours must be"),
        (("--rate-factor", "0"), "rate factor must be"),
        (("--chart-table", "shop"), "--chart"),
        (("--fail-above", "nan"), "must be a number, not 'nan'"),
        (("--fail-above", "-5"), "--fail-above is -5"),
        (("--trace", "none.log"), "--hours cannot be combined with --trace"),
        (("--skew", "-1"), "skew"),
        (("--burst", "loud"), "5x60s"),
        (("--warm", "--cold"), "--warm and --cold cannot be combined"),
        (("--mode", "free"), "not one of 'on-demand', 'provisioned'"),
        (("--mode", "on-demand", "--read-units", "5"), "provisioned tables"),
    ],
)
def test_a_bad_option_is_told_in_a_sentence(
    document: Path, arguments: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback, nothing written half, and what to give instead."""
    monkeypatch.chdir(tmp_path)
    refused = _ask(document, "--hours", "0.01", *arguments)

    assert refused.exit_code == 2
    assert sentence in " ".join(refused.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_design_without_rates_names_the_patterns(tmp_path: Path) -> None:
    """What lacks a rate is named."""
    path = tmp_path / "quiet.json"
    told = design(table(entity("Ticket", text("id"), pk="T#{id}", writes=[put("open it")])))
    path.write_text(json.dumps(write_document(told)))
    refused = _ask(path)

    assert refused.exit_code == 2
    assert "set per_second for" in refused.stderr
    assert "Ticket: open it" in refused.stderr
