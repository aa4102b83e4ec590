"""The line of switches: what it may say, and what is reported to anyone who says something else."""

from __future__ import annotations

import pytest

from tavola.engine import Engine
from tavola.engine.emulation import SWITCHES, EmulationRefused, Switches, parse_switches


def test_a_line_names_switches_with_values() -> None:
    """Each switch of a line is on, with its time in seconds; those that are not named are off."""
    found = parse_switches(
        "throughput, gsi-lag=200ms,stale-reads=1.5s,conflicts=2m,unprocessed=0.1,interleave,ttl-delay=1h,seed=7"
    )

    assert found.throughput
    assert (found.gsi_lag_s, found.stale_reads_s, found.conflicts_s) == (0.2, 1.5, 120.0)
    assert (found.unprocessed, found.interleave_s, found.ttl_delay_s, found.seed) == (0.1, 0.1, 3600.0, 7)


def test_nothing_is_on_by_default() -> None:
    """Without a switch nothing is emulated, and a seed alone switches nothing on."""
    assert not Switches().any
    assert not parse_switches("seed=3").any


@pytest.mark.parametrize("switch", [switch for switch in SWITCHES if switch.name != "seed"])
def test_each_switch_can_have_a_seed_of_its_own(switch: object) -> None:
    """`name@N` seeds one switch; the others keep the seed of all; no two switches share a sequence."""
    example = getattr(switch, "example", "")
    name = getattr(switch, "name", "")
    line = example if name != "split-after" else f"throughput,{example}"
    found = parse_switches(f"{line}@9,seed=4")

    assert found.seed_of(name) == f"{name}:9"
    assert found.seed_of("another") == "another:4"


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("", "has an empty switch; valid switches: throughput, split-after=5m, gsi-lag=200ms"),
        ("gsi-lag=200ms,", "has an empty switch"),
        ("chaos", "'chaos' is not a switch; valid switches: throughput"),
        ("throughput=9", "throughput takes no value; write throughput"),
        (
            "gsi-lag",
            "gsi-lag needs a time in ms, s, m or h, above 0 and up to 30m; write for example gsi-lag=200ms",
        ),
        ("gsi-lag=200", "gsi-lag needs a time"),
        ("gsi-lag=0ms", "gsi-lag needs a time"),
        ("gsi-lag=31m", "gsi-lag needs a time"),
        ("ttl-delay=169h", "ttl-delay needs a time in ms, s, m or h, above 0 and up to 10080m"),
        ("unprocessed", "unprocessed needs a number above 0 and up to 1"),
        ("unprocessed=1.5", "unprocessed needs a number"),
        ("unprocessed=nan", "unprocessed needs a number"),
        ("seed=x", "the seed must be a whole number, 0 or more, not 'x'"),
        ("seed=-1", "the seed must be a whole number"),
        ("conflicts=1s@", "the seed of conflicts must be a whole number"),
        ("conflicts=1s,conflicts=2s", "conflicts occurs twice; write it once"),
        ("split-after=1m", "split-after requires throughput; write both"),
    ],
)
def test_a_line_that_cannot_be_is_refused_with_what_there_is(line: str, result: str) -> None:
    """A refusal names the switch, what is wrong with it, and what may be written."""
    with pytest.raises(EmulationRefused) as refused:
        parse_switches(line)

    assert result in str(refused.value)


def test_an_engine_refuses_the_line_before_it_opens_a_file(tmp_path: object) -> None:
    """A line that cannot be leaves no file behind."""
    path = f"{tmp_path}/never.db"
    with pytest.raises(EmulationRefused):
        Engine.open(path, emulate="nonsense")

    with Engine.open(path):  # a file of this name is free to be made
        pass
