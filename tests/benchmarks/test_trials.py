"""The typed client and its peers: ratios round by round, tables, bars, and a section that is measured alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import entity_plot
from benchmarks.bars import verdicts
from benchmarks.libraries import IMPORTS, IN_PROCESS, OVER_HTTP, TITLES
from benchmarks.report import markdown, summary
from benchmarks.results import Failure, Results, Trial
from benchmarks.trials import (
    BARE,
    COMMANDS,
    DECLARED,
    FIRST,
    HTTP,
    IN,
    MARSHAL,
    NAMES,
    OPERATIONS,
    START,
    cheaper,
    faster,
    noise,
    put_into,
    tables,
)


def trial(section: str, library: str, operation: str, *took_us: float) -> Trial:
    return Trial(section, library, operation, took_us, tuple(took / 2 for took in took_us), (0.1,))


TRIALS = (
    *(
        trial(IN, library.name, operation, 50.0 if library.ours else 2000.0)
        for library in IN_PROCESS
        for operation in OPERATIONS
    ),
    *(
        trial(HTTP, library.name, operation, 200.0 if library.ours else 2200.0)
        for library in OVER_HTTP
        for operation in OPERATIONS
    ),
    trial(MARSHAL, "tavola", "both_ways", 40.0),
    trial(MARSHAL, "pynamodb", "both_ways", 160.0),
    trial(START, "tavola", BARE, 12_000.0),
    *(trial(START, "tavola", command, 100_000.0) for command in COMMANDS),
    *(
        trial(START, name, operation, 90_000.0 if name == "tavola" else 120_000.0)
        for name in IMPORTS
        for operation in (NAMES, DECLARED, FIRST)
    ),
)
RESULTS = Results(trials=TRIALS)


def test_a_ratio_is_of_the_same_round() -> None:
    """What slowed a whole round slowed both sides, so rounds are compared one by one."""
    mine, its = trial(IN, "a", "put", 10.0, 100.0, 10.0), trial(IN, "b", "put", 200.0, 2000.0, 10.0)

    assert faster(mine, its) == 20.0
    assert cheaper(mine, its) == pytest.approx(0.05)
    assert mine.rate == 100_000.0


def test_every_library_has_its_row() -> None:
    """Five tables: in process, over HTTP, marshalling, start and commands; Tavola is not compared with itself."""
    made = list(tables(TRIALS).values())

    assert [len(rows) for _, rows in made] == [
        len(IN_PROCESS),
        len(OVER_HTTP),
        2,
        len(IMPORTS) + 1,
        len(COMMANDS),
    ]
    assert all(len(row) == len(header) for header, rows in made for row in rows)
    (first, *_), (_, *http), (ours, pynamodb), _, commands = (rows for _, rows in made)
    assert first == ["Tavola in memory", "20,000", "20,000", "", "", "25", "25"]
    assert ["boto3, resource", "1,100", "1,100", "0.09×", "0.09×", "455", "455"] in http
    assert (ours, pynamodb) == (["Tavola", "20.0", ""], ["PynamoDB", "80.0", "0.25×"])
    assert commands[0] == ["`tavola --version`", "100"]


def test_the_bars_are_judged() -> None:
    """Twenty times the peers in process, no more processor time than they over HTTP, marshalling, import."""
    found = {(verdict.subject, verdict.bar): verdict for verdict in verdicts(RESULTS)}

    assert all(verdict.met for verdict in found.values())
    assert len(found) == 2 * 2 + 3 * 2 + 2 + 2 + len(COMMANDS)
    assert found["put of an entity, in process", "≥ 20× PynamoDB with moto"].measured.startswith("40.0×")
    slow = replace(TRIALS[0], took_us=(150.0,))
    assert verdicts(Results(trials=(slow, *TRIALS[1:])))[0].met is False


def test_a_slow_import_and_a_slow_command_miss_their_bars() -> None:
    """The import is judged beside boto3's, by processor time, and a command by what its user waits."""
    slow = [
        replace(each, took_us=(600_000.0,), cpu_us=(90_000.0,)) for each in TRIALS if each.section == START
    ]
    beside = [each for each in TRIALS if each.section == START and each.library == "boto3-resource"]
    ours = [each for each in slow if each.library == "tavola"]

    missed = {verdict.subject for verdict in verdicts(Results(trials=(*ours, *beside))) if not verdict.met}

    assert missed == {
        "`import tavola`",
        "`from tavola import Entity, connect`",
        *(f"`{each}`" for each in COMMANDS),
    }


def test_a_peer_over_http_that_is_cheaper_is_told() -> None:
    """The bar holds of boto3, PynamoDB and pydynantic alike; pydynox is only told."""
    dear = [
        replace(each, cpu_us=(50.0,)) if (each.section, each.library) == (HTTP, "pydynantic") else each
        for each in TRIALS
    ]
    judged = [verdict for verdict in verdicts(Results(trials=tuple(dear))) if "over HTTP" in verdict.subject]

    assert all(verdict.met is False for verdict in judged)
    assert "2.00× pydynantic" in judged[0].measured
    assert "0.09× pydynox" in judged[0].measured


def test_what_was_not_measured_is_not_met_and_not_missed() -> None:
    """Without a peer there is no verdict on it."""
    alone = tuple(each for each in TRIALS if each.library.startswith("tavola"))

    judged = [verdict for verdict in verdicts(Results(trials=alone)) if "entity" in verdict.subject]
    assert {verdict.met for verdict in judged if "to an item" not in verdict.subject} == {None}
    assert len(tables(alone)) == 5


def test_trials_are_kept_and_reported() -> None:
    """A run is read back as it was, an older file has none, and the page has the section with its picture."""
    assert Results.from_json(RESULTS.to_json()) == RESULTS
    old = RESULTS.to_json().replace('"trials"', '"something else"')
    assert Results.from_json(old).trials == ()
    text = markdown(RESULTS)
    assert "## The typed client and its peers" in text
    assert "entities.svg" in text
    assert "entities.svg" not in markdown(Results())
    assert "median 0.10 cores" in summary(RESULTS)
    assert noise(()) == "not measured"


def test_the_section_measured_alone_takes_its_own_place(tmp_path: Path) -> None:
    """Earlier trials and their failures go, others stay, and the report tells when it was, and where."""
    path = tmp_path / "results.json"
    other, earlier = Failure("moto", "disk", 0, "", "no"), Failure("pydynox", HTTP, 0, "", "not to be had")
    Results(failures=(other, earlier), trials=TRIALS[:1], versions={"tavola": "0.1.0"}).save(path)

    put_into(path, TRIALS, [replace(earlier, reason="still not")], {"boto3": "1.44.0"}, "two cores")

    found = Results.from_json(path.read_text())
    assert found.trials == TRIALS
    assert found.failures == (other, replace(earlier, reason="still not"))
    assert found.versions == {"tavola": "0.1.0", "boto3": "1.44.0"}
    assert ["two cores" in told for told in found.about.values()] == [True]


def test_the_picture_shows_every_library(tmp_path: Path) -> None:
    """The same numbers give the same bytes; without numbers there is no picture."""
    first, again, none = (tmp_path / name for name in ("a.svg", "b.svg", "c.svg"))
    entity_plot.draw(RESULTS, first)
    entity_plot.draw(RESULTS, again)
    entity_plot.draw(Results(), none)

    assert first.read_bytes() == again.read_bytes()
    assert not none.exists()
    assert len(TITLES) == len(IN_PROCESS) + len(OVER_HTTP)
