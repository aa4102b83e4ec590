"""The command line: what is compared, how long, and where the results go."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from benchmarks import entities, entity_plot, history, load, machine, plot, report, security
from benchmarks.applications import __main__ as applications
from benchmarks.measure import Rules, StageRun
from benchmarks.peers import ENGINES, PEERS, Engine, Installed, Unobtainable
from benchmarks.plan import Settings, stages
from benchmarks.results import OURS, Direct, Failure, Results
from benchmarks.servers import ServerFailed
from benchmarks.workload import BATCH_ITEMS, BY_NAME, OPERATIONS

_HERE: Final = Path(__file__).resolve().parent
_RAW: Final = _HERE / "raw"
_FULL: Final = Settings()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or with --render only report again; 0 when there is something to show."""
    options = _parse(arguments)
    if options.render is not None:
        results = Results.from_json(options.render.read_text())
        _publish(results, options.output or options.render.parent)
        sys.stdout.write(report.summary(results))
        return 0
    signal.signal(signal.SIGTERM, _interrupted)
    settings = _settings(options)
    output: Path = options.output or (_HERE if settings == _FULL else _RAW / "last")
    output.mkdir(parents=True, exist_ok=True)
    results = _run(settings, output)
    _publish(results, output)
    sys.stdout.write(report.summary(results))
    _tell(f"written: {output / 'results.md'}")
    if settings == _FULL:
        applications.main(("--output", str(output)))
    return 0 if results.samples else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Tavola beside every local DynamoDB that the registries offer. With no filter the whole "
        "programme is run and benchmarks/results.md written; any other run goes to benchmarks/raw/last/.",
    )
    full = _FULL
    parser.add_argument("--short", action="store_true", help="10,000 items, 16 connections, one round of 1 s")
    parser.add_argument("--engines", help=_names([engine.name for engine in ENGINES]))
    parser.add_argument("--storages", help="memory,disk")
    parser.add_argument("--operations", help=_names([operation.name for operation in OPERATIONS]))
    parser.add_argument("--items", help=f"table sizes (default {_join(full.items)})")
    parser.add_argument("--connections", help=f"(default {_join(full.connections)})")
    parser.add_argument("--rounds", type=int, help=f"the median of these counts (default {full.rounds})")
    parser.add_argument("--seconds", type=int, help=f"of each timed run (default {full.seconds})")
    parser.add_argument("--warm", type=int, help=f"seconds of untimed load first (default {full.warm_s})")
    parser.add_argument("--starts", type=int, help=f"timed starts of each server (default {full.starts})")
    parser.add_argument(
        "--repeats", type=int, help=f"of a run disturbed by other work (default {full.repeats})"
    )
    parser.add_argument(
        "--fill-seconds", type=int, help=f"a peer fills its table in (default {full.fill_s_max})"
    )
    parser.add_argument("--minutes", type=int, help=f"the whole run ends after (default {full.minutes})")
    parser.add_argument("--output", type=Path, help="folder for results.md, results.json and results.svg")
    parser.add_argument("--render", type=Path, help="a results.json: report it again, measure nothing")
    return parser.parse_args(arguments)


def _names(names: Sequence[str]) -> str:
    return "with commas, of: " + ", ".join(names)


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _settings(options: argparse.Namespace) -> Settings:
    settings = Settings.short() if options.short else _FULL
    if options.engines:
        settings = replace(settings, engines=_chosen(options.engines, [e.name for e in ENGINES], "engine"))
    if options.storages:
        settings = replace(settings, storages=_chosen(options.storages, ["memory", "disk"], "storage"))
    if options.operations:
        settings = replace(settings, operations=_chosen(options.operations, list(BY_NAME), "operation"))
    if options.items:
        settings = replace(settings, items=tuple(sorted(map(int, options.items.split(",")))))
    if options.connections:
        settings = replace(settings, connections=tuple(sorted(map(int, options.connections.split(",")))))
    given = {
        "rounds": options.rounds,
        "seconds": options.seconds,
        "warm_s": options.warm,
        "starts": options.starts,
        "repeats": options.repeats,
        "fill_s_max": options.fill_seconds,
        "minutes": options.minutes,
    }
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    if any(count % (4 * BATCH_ITEMS) or count < 2000 for count in settings.items):
        _refuse(f"--items must be multiples of {4 * BATCH_ITEMS}, and 2,000 at least")
    if min(settings.rounds, settings.seconds, settings.starts, *settings.connections) < 1:
        _refuse("--rounds, --seconds, --starts and --connections must be 1 at least")
    return settings


def _chosen(text: str, known: Sequence[str], noun: str) -> tuple[str, ...]:
    asked = text.split(",")
    unknown = [name for name in asked if name not in known]
    if unknown:
        _refuse(f"no such {noun}: {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(name for name in known if name in asked)


def _refuse(words: str) -> NoReturn:
    sys.stderr.write(words + "\n")
    sys.exit(2)


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)  # unwinds, so that every server is ended


def _tell(words: str) -> None:
    sys.stderr.write(f"[{datetime.now(UTC):%H:%M:%S}] {words}\n")
    sys.stderr.flush()


def _run(settings: Settings, output: Path) -> Results:
    deadline = time.monotonic() + 60 * settings.minutes
    wrk, loader = load.find_wrk()
    drive = load.wrk_driver(wrk) if wrk else load.own_driver
    engines, failures = _obtain(settings)
    scratch = _RAW / f"run-{os.getpid()}"
    scratch.mkdir(parents=True, exist_ok=True)
    results = Results(
        about={
            "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "machine": machine.describe(),
            "disk": f"fdatasync after 4 KB takes {machine.sync_us(scratch):.0f} µs (median) before the run",
            "load": loader,
            "rounds": f"{settings.rounds} of {settings.seconds} s each, after {settings.warm_s} s untimed",
        },
        versions={name: installed.version for name, (_, installed) in engines.items()},
        failures=tuple(failures),
    )
    rules = Rules(
        operations=tuple(BY_NAME[name] for name in settings.operations),
        rounds=settings.rounds,
        seconds=settings.seconds,
        warm_s=settings.warm_s,
        starts=settings.starts,
        repeats=settings.repeats,
        fill_s_max=float(settings.fill_s_max),
        deadline=deadline,
    )
    try:
        for stage in stages(settings, [engine for engine, _ in engines.values()]):
            if time.monotonic() > deadline:
                _tell(f"out of time: {stage.name} with {stage.contenders[0].items:,} items is left out")
                results.about["left out"] = f"what the {settings.minutes} minutes of the run did not reach"
                break
            found = StageRun(stage, engines, rules, drive, scratch, _tell).run()
            results = replace(
                results,
                samples=results.samples + found.samples,
                failures=results.failures + found.failures,
                footprints=results.footprints + found.footprints,
            )
            results.save(output / "results.json")
        if OURS in engines:
            results = _direct(results, settings, scratch)
            results = _security(results, settings, scratch, deadline)
            results = _history(results, settings, scratch, deadline)
            results = _entities(results, settings, scratch, deadline)
        results.about["disk"] += f", {machine.sync_us(scratch):.0f} µs after it"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return results


def _obtain(settings: Settings) -> tuple[dict[str, tuple[Engine, Installed]], list[Failure]]:
    """The engines asked for that are to be had, and why the others are not."""
    engines: dict[str, tuple[Engine, Installed]] = {}
    failures: list[Failure] = []
    for engine in ENGINES:
        if engine.name not in settings.engines:
            continue
        if engine.disk is None and "disk" in settings.storages:
            failures.append(Failure(engine.name, "disk", 0, "", engine.no_disk))
        try:
            engines[engine.name] = (engine, engine.obtain(PEERS))
        except Unobtainable as error:
            _tell(f"{engine.title}: {error}")
            failures.append(Failure(engine.name, "any", 0, "", str(error)))
    return engines, failures


def _direct(results: Results, settings: Settings, scratch: Path) -> Results:
    """The run with the engine's own rates, without a socket, added."""
    items = min(settings.items)
    _tell(f"in process, {items:,} items")
    command = (
        *(sys.executable, "-m", "benchmarks.inprocess", "--folder", str(scratch)),
        *("--items", str(items), "--seconds", str(settings.seconds)),
        *("--operations", ",".join(settings.operations), "--storages", ",".join(settings.storages)),
    )
    paths = [str(_HERE.parent / "src"), str(_HERE.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=600, check=False
        )
    except subprocess.TimeoutExpired:
        return _without_direct(results, items, "it did not finish in 10 minutes")
    if done.returncode:
        return _without_direct(results, items, (done.stderr.strip().splitlines() or ["no reason given"])[-1])
    found = json.loads(done.stdout)
    rates: Mapping[str, Mapping[str, float]] = found["rates"]
    direct = tuple(
        Direct(storage, items, operation, rate)
        for storage, by_operation in rates.items()
        for operation, rate in by_operation.items()
    )
    return replace(results, direct=direct, empty_engine_ms=found["empty_engine_ms"])


def _security(results: Results, settings: Settings, scratch: Path, deadline: float) -> Results:
    """The run with what the safeguards cost added, on the operations of that section that are timed."""
    operations = [name for name in security.OPERATIONS if name in settings.operations]
    if not operations or "memory" not in settings.storages or time.monotonic() > deadline:
        return results
    _tell("what security costs")
    try:
        costs = security.measure(
            security.MODES, operations, settings.rounds, settings.seconds, scratch / "security", _tell
        )
    except (load.LoadFailed, ServerFailed, OSError, HTTPException, subprocess.SubprocessError) as error:
        failure = Failure(OURS, "memory", security.ITEMS, "", f"what security costs: {error}")
        return replace(results, failures=(*results.failures, failure))
    return replace(results, costs=results.costs + tuple(costs))


def _history(results: Results, settings: Settings, scratch: Path, deadline: float) -> Results:
    """The run with what looking back and encryption cost added, and a restore of the largest table."""
    operations = [name for name in history.OPERATIONS if name in settings.operations]
    if not operations or set(settings.storages) != {"memory", "disk"} or time.monotonic() > deadline:
        return results
    _tell("cost of recovery and streams")
    try:
        costs = history.measure(operations, settings.rounds, settings.seconds, scratch / "history", _tell)
        costs += history.restore(max(settings.items), scratch / "restored", _tell)
    except (load.LoadFailed, ServerFailed, OSError, HTTPException, subprocess.SubprocessError) as error:
        failure = Failure(OURS, "any", history.ITEMS, "", f"cost of recovery and streams: {error}")
        return replace(results, failures=(*results.failures, failure))
    return replace(results, costs=results.costs + tuple(costs))


def _entities(results: Results, settings: Settings, scratch: Path, deadline: float) -> Results:
    """The run with the typed client beside its peers added."""
    if not {"get", "put"} & set(settings.operations) or time.monotonic() > deadline:
        return results
    _tell("the typed client beside its peers")
    try:
        found = entities.measure(settings.rounds, settings.seconds, PEERS, scratch / "entities", _tell)
    except (Unobtainable, ServerFailed, OSError, HTTPException, subprocess.SubprocessError) as error:
        failure = Failure(OURS, "any", 0, "", f"the typed client beside its peers: {error}")
        return replace(results, failures=(*results.failures, failure))
    return replace(
        results,
        trials=tuple(found.trials),
        failures=(*results.failures, *found.failures),
        versions={**results.versions, **found.versions},
    )


def _without_direct(results: Results, items: int, reason: str) -> Results:
    failure = Failure(OURS, "in process", items, "", reason)
    return replace(results, failures=(*results.failures, failure))


def _publish(results: Results, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    results.save(output / "results.json")
    (output / "results.md").write_text(report.markdown(results))
    plot.draw(results, output / "results.svg")
    entity_plot.draw(results, output / "entities.svg")
