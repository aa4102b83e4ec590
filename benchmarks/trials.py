"""Trials: what the typed client and its peers take for an entity, side by side, as tables for people."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.libraries import IMPORTS, IN_PROCESS, OVER_HTTP, TITLES
from benchmarks.results import OURS, Failure, Results, Trial

TITLE: Final = "The typed client and its peers"
IN: Final = "in process"
HTTP: Final = "over HTTP"
MARSHAL: Final = "marshalling"
START: Final = "start"
OPERATIONS: Final = ("put", "get")
IN_MEMORY: Final = "tavola-memory"
BARE: Final = "import tavola"
NAMES: Final = "names imported"
DECLARED: Final = "entity declared"
FIRST: Final = "first answer"
COMMANDS: Final = {  # a command line, and the milliseconds it may take from process start to exit
    "tavola --version": 120,
    "tavola env": 120,
    "tavola lint first.py": 500,
}

Table = tuple[Sequence[str], list[list[str]]]

METHOD: Final = """\
Entities of about 1 KB (eight strings, three numbers, two times, a list, a map) in a table with one index: 50 of \
them, written and read repeatedly, each write with a new number. A put builds the entity and \
stores it; a get builds the key and returns the entity. Each library runs in its own process, which is started \
once and checked to return what it stored. The libraries take turns within a round, the order rotates, and the median of \
the rounds counts; ratios are computed per round. boto3 has no entities: keys and times are built by hand, \
and times stay strings when read. CPU time is that of the library's process, all threads. Calls with 50 in flight \
are compared with Tavola's calls with 50 in flight."""


def one(trials: Sequence[Trial], section: str, library: str, operation: str) -> Trial | None:
    """A trial by its names."""
    wanted = (section, library, operation)
    return next((each for each in trials if (each.section, each.library, each.operation) == wanted), None)


def faster(mine: Trial, its: Trial) -> float:
    """How many times the rate of another, the median of the rounds: what slowed a round slowed both."""
    return median(b / a for a, b in zip(mine.took_us, its.took_us, strict=True))


def cheaper(mine: Trial, its: Trial) -> float:
    """How much of another's processor time, the median of the rounds."""
    return median(a / b for a, b in zip(mine.cpu_us, its.cpu_us, strict=True))


def tables(trials: Sequence[Trial]) -> dict[str, Table]:
    """The tables that have a row, by what stands above them."""
    made = {
        "In process: calls per second": _in_process(trials),
        "Over HTTP, the same endpoint: client CPU time": _over_http(trials),
        "Marshalling, an entity to an item and back": _marshalling(trials),
        f"Start, ms: the median of {_starts(trials)} fresh processes": _start(trials),
        "Commands, ms: process start to exit": _commands(trials),
    }
    return {title: table for title, table in made.items() if table[1]}


def _in_process(trials: Sequence[Trial]) -> Table:
    header = ("library", "put/s", "get/s", "put, ours / it", "get, ours / it", "put µs", "get µs")
    rows = []
    for library in IN_PROCESS:
        put, get = (one(trials, IN, library.name, operation) for operation in OPERATIONS)
        if put is not None and get is not None:
            rates = [f"{each.rate:,.0f}" for each in (put, get)]
            ours = [None if library.ours else one(trials, IN, IN_MEMORY, each) for each in OPERATIONS]
            ratios = [
                f"{faster(mine, its):.1f}×" if mine else ""
                for mine, its in zip(ours, (put, get), strict=True)
            ]
            rows.append([library.title, *rates, *ratios, *map(_us, (put, get))])
    return header, rows


def _over_http(trials: Sequence[Trial]) -> Table:
    header = ("library", "put µs", "get µs", "put, ours / it", "get, ours / it", "put/s", "get/s")
    rows = []
    for library in OVER_HTTP:
        put, get = (one(trials, HTTP, library.name, operation) for operation in OPERATIONS)
        if put is not None and get is not None:
            rates = [f"{each.rate:,.0f}" for each in (put, get)]
            ours = [None if library.ours else one(trials, HTTP, library.beside, each) for each in OPERATIONS]
            ratios = [
                f"{cheaper(mine, its):.2f}×" if mine else ""
                for mine, its in zip(ours, (put, get), strict=True)
            ]
            rows.append([library.title, *map(_us, (put, get)), *ratios, *rates])
    return header, rows


def _us(trial: Trial) -> str:
    return f"{median(trial.cpu_us):,.0f}"


def _marshalling(trials: Sequence[Trial]) -> Table:
    rows = []
    ours = one(trials, MARSHAL, OURS, "both_ways")
    for library in OVER_HTTP:
        found = one(trials, MARSHAL, library.name, "both_ways")
        if found is not None:
            ratio = "" if library.ours or ours is None else f"{cheaper(ours, found):.2f}×"
            rows.append([library.title, f"{median(found.cpu_us):.1f}", ratio])
    return ("library", "µs", "ours / it"), rows


def _start(trials: Sequence[Trial]) -> Table:
    header = ("library", "what is imported", NAMES, DECLARED, f"process start to {FIRST}")
    rows = []
    bare = one(trials, START, OURS, BARE)
    if bare is not None:
        rows.append([TITLES[OURS], f"`{BARE}`", _ms(bare), "", ""])
    for library in OVER_HTTP:
        found = [one(trials, START, library.name, operation) for operation in (NAMES, DECLARED, FIRST)]
        if any(found):
            rows.append([library.title, f"`{IMPORTS[library.name]}`", *map(_ms, found)])
    return header, rows


def _commands(trials: Sequence[Trial]) -> Table:
    found = {command: one(trials, START, OURS, command) for command in COMMANDS}
    return ("command", "ms"), [[f"`{command}`", _ms(trial)] for command, trial in found.items() if trial]


def _ms(trial: Trial | None) -> str:
    return "–" if trial is None else f"{median(trial.took_us) / 1000:.0f}"


def _starts(trials: Sequence[Trial]) -> int:
    return max((len(trial.took_us) for trial in trials if trial.section == START), default=0)


def noise(trials: Sequence[Trial]) -> str:
    """How much of the machine something else took while the libraries took turns."""
    taken = sorted(cores for trial in trials for cores in trial.foreign_cores)
    if not taken:
        return "not measured"
    worst = taken[int(0.95 * (len(taken) - 1))]
    return f"median {median(taken):.2f} cores, 95th percentile {worst:.2f}"


def put_into(
    path: Path, trials: Sequence[Trial], failures: Sequence[Failure], versions: dict[str, str], about: str
) -> None:
    """Put this section, measured alone, in the place of its earlier one in a file of results."""
    results = Results.from_json(path.read_text())
    sections = {IN, HTTP, MARSHAL, START}
    kept = tuple(failure for failure in results.failures if failure.storage not in sections)
    told = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {about}; background load: {noise(trials)}"
    replace(
        results,
        about={**results.about, f"measured alone: {TITLE}": told},
        versions={**results.versions, **versions},
        failures=(*kept, *failures),
        trials=tuple(trials),
    ).save(path)
