"""The campaign: every crash test for as long as one likes, reported with its seed.

`python -m tests.durability.campaign --seconds 300 --seed 1` goes through all sections; `--only power` does one,
`--trials` ends one after this many, `--plant` plants a defect that the section must find. The suite runs each section
shortly, in a process of its own, because the failing disk must be there before the first store is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.durability import damage, kills, nth
from tests.durability.clients import create, final_lists, run_clients, stale, torn
from tests.durability.disk import Disk, install
from tests.durability.history import open_store
from tests.durability.power import planted_in_store, scratch, trial_run
from tests.durability.serial import Transaction, lost, violations
from tests.durability.serving import Ask, serving

Trials = Iterator[list[str]]  # what was wrong with each trial

IMAGES_PER_HISTORY = 25
DAMAGES_PER_STORE = 4  # of each kind
KILLS_PER_STORE = 10


@dataclass(slots=True)
class Result:
    """What a section came to."""

    section: str
    seed: int
    plant: str | None
    trials: int = 0
    failed: int = 0
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)


def power(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """Power cuts at random moments of random histories."""
    while True:
        yield from trial_run(disk, seed, IMAGES_PER_HISTORY, plant)
        seed += 1


def nth_call(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """The n-th call of a kind fails, for every n; a seed below 10 takes only every n-th that is so far off."""
    with planted_in_store(plant):
        scenarios = nth.scenarios()
        first = seed % len(scenarios)  # so that short campaigns do not always begin with the same
        for scenario in scenarios[first:] + scenarios[:first]:
            for outcome in nth.run_all(disk, scenario, stride=seed if seed < 10 else 1):
                tally[f"{scenario.name}, {outcome.plan.kind}"] += 1
                yield list(outcome.faults)


def killed(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """A writer in another process is killed; several times on one file."""
    random = Random(seed)
    while True:
        with scratch() as folder:
            ledger: dict[int, int] = {}
            for _ in range(KILLS_PER_STORE):
                kills.kill_once(folder / "store.db", ledger, random, seed, early=plant == "early-answer")
                yield kills.faults_after_kill(folder / "store.db", ledger, seed)


def server_killed(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """The server is killed while clients write to it over HTTP."""
    random = Random(seed)
    while True:
        with scratch() as folder:
            ledger: dict[int, int] = {}
            for _ in range(KILLS_PER_STORE):
                kills.kill_server(folder / "store.db", ledger, random, seed)
                yield kills.faults_after_kill(folder / "store.db", ledger, seed)


def damaged(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """Bytes of a store are changed behind its back; `plant` may name one kind of damage."""
    random = Random(seed)
    kinds = [("file", kind) for kind in damage.FILE_KINDS]
    kinds += [("large", kind) for kind in damage.LARGE_KINDS] + [("log", kind) for kind in damage.LOG_KINDS]
    if plant and plant != "no-checksums":
        kinds = [each for each in kinds if "-".join((each[0], *each[1].split())) == plant]
        assert kinds, f"no such damage: {plant}"
    while True:
        with scratch() as folder:
            history = damage.make_store(folder, random)
            (folder / "trial").mkdir()
            for target, kind in kinds * (DAMAGES_PER_STORE if len(kinds) > 1 else 40):
                suffix, source = ("-wal", "open") if target == "log" else ("", "closed")
                large = damage.as_if_large() if target == "large" else nullcontext()
                with planted_in_store(plant), large:
                    result = damage.trial(folder / "trial", folder / source, history, suffix, kind, random)
                tally[f"{target}, {kind}: {result.partition(':')[0]}"] += 1
                yield [f"{target} {kind}: {result}"] if result.startswith("wrong") else []


def concurrent(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """Eight threads on one engine; what they saw must be strictly serializable."""
    while True:
        with open_store(None) as engine:
            ask = {"torn": torn(engine), "stale": stale(engine)}.get(plant or "", engine.call)
            yield _history_faults(ask, seed, tally)
        seed += 1


def served(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """Eight clients of one server on a file, whose writes commit together."""
    while True:
        with scratch() as folder, serving(str(folder / "store.db")) as ask:
            yield _history_faults(ask, seed, tally)
        seed += 1


def _history_faults(ask: Ask, seed: int, tally: Counter[str]) -> list[str]:
    create(ask)
    history = run_clients(ask, 8, 60, seed)
    last = final_lists(ask)
    whole = Transaction(0, reads=last, asked=1 << 60, answered=1 << 61)
    tally["transactions"] += len(history)
    return violations([*history, whole]) + lost(history, last)


def full_disk(disk: Disk, seed: int, plant: str | None, tally: Counter[str]) -> Trials:
    """A disk of 3 MB is filled and freed, where one can be mounted; a file is kept from growing."""
    while True:
        for kind in ("tmpfs", "limit"):
            with scratch() as folder:
                answer = fill(kind, folder)
                if answer is None:
                    tally["no small disk can be mounted here"] += 1
                else:
                    tally[kind] += 1
                    yield answer


def refuse(folder: Path) -> list[str]:
    """Run the child whose disk refuses writes for one reason after another."""
    child = [sys.executable, "-m", "tests.durability.refused", str(folder)]
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, check=False)
    wrong = done.stdout.splitlines()
    return wrong if done.returncode == 0 else [*wrong, done.stderr[-500:]]


def fill(kind: str, folder: Path, module: str = "full") -> list[str] | None:
    """Run one of the full-disk children; None where the machine does not let us mount."""
    child = [sys.executable, "-m", f"tests.durability.{module}", kind, str(folder)]
    if kind == "tmpfs":
        mount = f'mount -t tmpfs -o size=3m none "{folder}" || exit 77; exec "$@"'
        child = ["unshare", "-m", "sh", "-c", mount, "sh", *child]
    try:
        done = subprocess.run(child, capture_output=True, text=True, timeout=120, check=False)
    except FileNotFoundError:
        return None
    if done.returncode == 77 or "unshare failed" in done.stderr:
        return None
    wrong = done.stdout.splitlines()
    return wrong if done.returncode == 0 else [*wrong, done.stderr[-500:]]


SECTIONS: dict[str, Callable[[Disk, int, str | None, Counter[str]], Trials]] = {
    "power": power,
    "nth": nth_call,
    "kills": killed,
    "server": server_killed,
    "damage": damaged,
    "concurrency": concurrent,
    "served": served,
    "full": full_disk,
}
# How a campaign's time is shared out; what is left of one section's time goes to the next.
SHARES = {
    "power": 0.3,
    "nth": 0.25,
    "kills": 0.12,
    "server": 0.12,
    "damage": 0.1,
    "concurrency": 0.05,
    "served": 0.03,
    "full": 0.03,
}


def run_section(
    disk: Disk, section: str, seed: int, *, seconds: float, trials: int | None, plant: str | None = None
) -> Result:
    """Run one section until its time or its trials are over."""
    result = Result(section, seed, plant)
    began = time.monotonic()
    for faults in SECTIONS[section](disk, seed, plant, result.tally):
        result.trials += 1
        if faults:
            result.failed += 1
            result.examples += faults[: max(0, 5 - len(result.examples))]
        over = time.monotonic() - began > seconds
        if over or (trials is not None and result.trials >= trials):
            break
    result.seconds = time.monotonic() - began
    return result


def main(arguments: list[str]) -> int:
    """Run what the arguments ask for, print it, and return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.durability.campaign", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--plant")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    disk = install()
    results: list[Result] = []
    left, shares = given.seconds, 1.0
    for section in [given.only] if given.only else SECTIONS:
        share = 1.0 if given.only else SHARES[section] / shares
        result = run_section(
            disk, section, given.seed, seconds=left * share, trials=given.trials, plant=given.plant
        )
        left -= result.seconds
        shares -= SHARES[section]
        results.append(result)
        _print(result, as_json=given.json)
    failed = sum(result.failed for result in results)
    if not given.json:
        sys.stdout.write(f"seed {given.seed}: {sum(r.trials for r in results)} trials, {failed} failures\n")
    return int(failed > 0)


def _print(result: Result, *, as_json: bool) -> None:
    if as_json:
        output = {
            "section": result.section,
            "trials": result.trials,
            "failed": result.failed,
            "examples": result.examples,
            "tally": dict(result.tally),
        }
        sys.stdout.write(json.dumps(output) + "\n")
    else:
        sys.stdout.write(
            f"{result.section:12} seed {result.seed:<8} {result.trials:>8} trials {result.failed:>6} failures"
            f" {result.seconds:7.1f} s\n"
        )
        for name, count in sorted(result.tally.items()):
            sys.stdout.write(f"{'':14}{count:>8}  {name}\n")
        for example in result.examples:
            sys.stdout.write(f"{'':14}{example}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
