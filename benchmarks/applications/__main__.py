"""`python -m benchmarks.applications`: the support desk's routes under wrk, ours and the one written by hand.

Each route is driven twice: as fast as the desk answers, and paced, where each of the 16 connections rests between an
answer and its next request, as callers do; the 99th centile of the paced run is what a caller waits.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import load, machine
from benchmarks.applications import report
from benchmarks.applications.desks import BASELINE, OURS, Desk, baseline, ours
from benchmarks.applications.report import Reading, Run
from benchmarks.applications.routes import CONNECTIONS, ROUTES, Route, script
from benchmarks.peers import PEERS, Unobtainable
from benchmarks.servers import ServerFailed

_HERE: Final = Path(__file__).resolve().parents[1]
_TIMEOUT_S: Final = 30


def drive(wrk: str, desk: Desk, route: Route, seconds: int, round_: int, *, paced: bool) -> Reading:
    """Drive one route once."""
    mark = f"{desk.name}-{desk.tickets}-{round_}-{int(paced)}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "route.lua"
        path.write_text(script(route, desk.ids, desk.customers, mark, 1000 + round_, paced=paced))
        busy, own, began = machine.busy_s(), desk.cpu_s(), time.perf_counter()
        done = subprocess.run(
            (wrk, "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", f"--timeout={_TIMEOUT_S}s", "-s", str(path),
             f"http://127.0.0.1:{desk.port}/"),
            capture_output=True, text=True, timeout=seconds + 2 * _TIMEOUT_S, check=False,
        )  # fmt: skip
        lasted = time.perf_counter() - began
    seen = load.read_wrk(done.stdout, done.stderr)
    cpu_s = desk.cpu_s() - own
    foreign = max(0.0, machine.busy_s() - busy - cpu_s) / lasted
    return Reading(
        desk=desk.name, tickets=desk.tickets, route=route.name, paced=paced, round=round_,
        rate=seen.requests / seen.seconds, p50_ms=seen.p50_ms, p99_ms=seen.p99_ms, errors=seen.errors,
        cpu_us=cpu_s / max(1, seen.requests) * 1e6, other_cores=foreign,
    )  # fmt: skip


def measure_desk(
    wrk: str, desk: Desk, rounds: int, seconds: int, tell: Callable[[str], None]
) -> list[Reading]:
    """Drive every route of a desk, reads first; the first round of all is not counted."""
    readings: list[Reading] = []
    for round_ in range(rounds + 1):
        for route in ROUTES:
            for paced in (False, True):
                reading = drive(wrk, desk, route, seconds if round_ else 1, round_, paced=paced)
                if round_:
                    readings.append(reading)
                    tell(
                        f"{desk.name} {desk.tickets:,}, {route.title}{', paced' if paced else ''}: "
                        f"{reading.rate:,.0f}/s, p99 {reading.p99_ms:.1f} ms, {reading.errors} errors"
                    )
    return readings


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write applications.md, .json and .svg."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.applications", description=__doc__)
    parser.add_argument("--tickets", default="100000,1000000", help="sizes of our desk (default %(default)s)")
    parser.add_argument("--baseline", type=int, default=100_000, help="tickets of the baseline, 0: none")
    parser.add_argument(
        "--folder", type=Path, help="keep our desks' files there, and take those that are there"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=_HERE)
    parser.add_argument("--render", type=Path, help="an applications.json: report it again, measure nothing")
    options = parser.parse_args(arguments)
    if options.render is not None:
        run = Run.from_json(options.render.read_text())
    else:
        run = _measured(options)
        (options.output / "applications.json").write_text(json.dumps(asdict(run), indent=1) + "\n")
    (options.output / "applications.md").write_text(report.markdown(run))
    report.draw(run, options.output / "applications.svg")
    sys.stdout.write(report.markdown(run))
    return 0 if run.readings else 1


def _measured(options: argparse.Namespace) -> Run:
    def tell(words: str) -> None:
        sys.stderr.write(f"[{datetime.now(UTC):%H:%M:%S}] {words}\n")

    wrk, about = load.find_wrk()
    if wrk is None:
        sys.exit("This section needs wrk (Debian: wrk).")
    readings: list[Reading] = []
    fills: dict[str, float] = {}
    failures: list[str] = []
    began = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="tavola-applications-") as name:
        folder = Path(name)
        sync_us = machine.sync_us(folder)
        for tickets in map(int, options.tickets.split(",")):
            with ours((options.folder or folder) / f"ours-{tickets}", tickets, tell) as desk:
                fills[f"{OURS} {tickets}"] = desk.fill_s
                readings += measure_desk(wrk, desk, options.rounds, options.seconds, tell)
        if options.baseline:
            try:
                with baseline(folder / "baseline", options.baseline, PEERS, tell) as desk:
                    fills[f"{BASELINE} {options.baseline}"] = desk.fill_s
                    readings += measure_desk(wrk, desk, options.rounds, options.seconds, tell)
            except (Unobtainable, ServerFailed) as error:
                failures.append(f"the baseline: {error}")
    return Run(
        date=f"{began:%Y-%m-%d %H:%M} UTC", machine=machine.describe(), sync_us=sync_us, load=about,
        rounds=options.rounds, seconds=options.seconds, fills=fills, failures=failures, readings=readings,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
