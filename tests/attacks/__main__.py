"""Run attacks against a real server and measure how long another client waits.

    python -m tests.attacks                      every attack, five seconds each
    python -m tests.attacks --only scan --seconds 2

A good client sends small GetItem and PutItem requests, 100 per second. Its latency is measured alone (the baseline) and during each
attack, which another process sends over some connections as fast as it is answered. All of them share this machine's cores, so the
first row is a control: its attackers send cheap requests and burn as much CPU as they get.

The last columns do not depend on the machine's other work: the CPU time of the server's turns, see `probe`. `turn p99` is that of the
turn in which the unluckiest hundredth of all requests arrive.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

from tests.attacks.attacks import LARGE, Attack, attacks, prepare, prepare_buckets
from tests.attacks.probe import UNSLICED, TurnCounts
from tests.attacks.wire import Connection

P99_FACTOR_MAX = 2.0
WORST_MS_MAX = 100.0
_PER_SECOND = 100
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of a good client, in milliseconds."""

    median_ms: float
    p99_ms: float
    worst_ms: float


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The latency of a good client during an attack, beside its baseline."""

    name: str
    answered: int  # requests of the attackers
    baseline: Latency
    attacked: Latency
    turn_p99_ms: float  # CPU time of the server between two looks at its sockets
    turn_worst_ms: float

    @property
    def holds(self) -> bool:
        """Whether the good client was served as promised."""
        return (
            self.attacked.p99_ms <= P99_FACTOR_MAX * self.baseline.p99_ms
            and self.attacked.worst_ms <= WORST_MS_MAX
        )


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A running server and the counts of its turns."""

    url: str
    turns: TurnCounts


def run(attack: Attack, server: MeasuredServer, seconds: float) -> AttackResult:
    """Measure a good client before and during an attack; on a strict server, requests that it refuses."""
    url = server.url
    baseline = measure(url, seconds, strict=attack.strict)
    stop, answered = multiprocessing.Event(), multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=_send_attack, args=(attack, url, stop, answered), daemon=True)
    process.start()
    try:
        give_up_s = time.monotonic() + 60
        while not answered.value and time.monotonic() < give_up_s:  # the body was made, and sent once
            time.sleep(0.01)
        before = answered.value
        server.turns.clear()
        attacked = measure(url, seconds, strict=attack.strict)
        return AttackResult(
            attack.name,
            answered.value - before,
            baseline,
            attacked,
            server.turns.longest_ms(0.99),
            server.turns.longest_ms(),
        )
    finally:
        stop.set()
        process.join(2)
        process.kill()
        process.join()


def measure(url: str, seconds: float, *, strict: bool = False) -> Latency:
    """Return the latency of a client that reads and writes a small item at a steady rate."""
    key = {"pk": {"S": "good"}, "sk": {"N": "1"}}
    put = json.dumps({"TableName": LARGE, "Item": key | {"n": {"N": "1"}}}).encode()
    get = json.dumps({"TableName": LARGE, "Key": key}).encode()
    connection = Connection(url)
    took_ms = []
    began_s = time.perf_counter()
    for number in range(int(seconds * _PER_SECOND)):
        time.sleep(max(0.0, began_s + number / _PER_SECOND - time.perf_counter()))
        sent_s = time.perf_counter()
        status, body = connection.send(*(("GetItem", get) if number % 2 else ("PutItem", put)))
        took_ms.append(1000 * (time.perf_counter() - sent_s))
        assert status == (400 if strict else 200), body[:500]
        if sent_s - began_s > 4 * seconds:
            break  # the server is so slow that the planned number of requests would take minutes
    connection.close()
    took_ms.sort()
    return Latency(took_ms[len(took_ms) // 2], took_ms[int(len(took_ms) * 0.99) - 1], took_ms[-1])


def _send_attack(attack: Attack, url: str, stop: Event, answered: Synchronized[int]) -> None:
    body = attack.body()
    if attack.burns_cpu:
        threading.Thread(target=_burn_cpu, args=(stop,), daemon=True).start()

    def send() -> None:
        while not stop.is_set():
            connection = Connection(url)
            with suppress(OSError):
                while not stop.is_set():
                    connection.send(attack.operation, body)
                    with answered.get_lock():
                        answered.value += 1
            connection.close()

    threads = [threading.Thread(target=send, daemon=True) for _ in range(attack.connections)]
    for thread in threads:
        thread.start()
    stop.wait()


def _burn_cpu(stop: Event) -> None:
    while not stop.is_set():
        sum(range(10_000))


@contextmanager
def served(folder: Path, *options: str, sliced: bool = True) -> Iterator[MeasuredServer]:
    """Yield `tavola serve` on a file, in a process of its own; without slices it has a planted fault."""
    counts = TurnCounts(folder / "turns")
    command = [sys.executable, "-m", "tests.attacks.probe", str(folder / "turns")]
    command += [] if sliced else [UNSLICED]
    command += ["serve", str(folder / "store.db"), "--port", "0", *options]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                address = re.search(r"http://[0-9.]+:\d+", line)
                if address:
                    break
            else:
                raise RuntimeError(process.stderr.read() if process.stderr else "the server did not start")
            yield MeasuredServer(address[0], counts)
        finally:
            process.terminate()


@contextmanager
def servers(folder: Path) -> Iterator[dict[bool, MeasuredServer]]:
    """Yield an open server with the attacks' tables (False) and a strict one (True)."""
    strict = folder / "strict"
    strict.mkdir()
    buckets = folder / "buckets"
    prepare_buckets(buckets)
    iam = str(strict / "iam.json")
    subprocess.run(
        [sys.executable, "-m", "tavola", "iam", "init", iam], check=True, capture_output=True, cwd=_ROOT
    )
    with (
        served(folder, "--sync", "off", "--buckets", str(buckets)) as open_server,
        served(strict, "--auth", "strict", "--iam", iam) as strict_server,
    ):
        connection = Connection(open_server.url)
        prepare(connection)
        connection.close()
        yield {False: open_server, True: strict_server}


def main(words: list[str]) -> int:
    """Run the attacks that the command line names, print a table, and return 1 if the promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (default 5)")
    parser.add_argument("--only", default="", help="run attacks whose name contains this text")
    options = parser.parse_args(words)
    chosen = [attack for attack in attacks() if options.only in attack.name]
    results = []
    _say(
        "| attack | attacks/s | p50 ms | p99 ms | worst ms | p99 alone | holds | turn p99 ms | turn worst ms |"
    )
    _say("|---|---:|---:|---:|---:|---:|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder)) as running:
        for attack in chosen:
            result = run(attack, running[attack.strict], options.seconds)
            results.append(result)
            base, now = result.baseline, result.attacked
            _say(
                f"| {result.name} | {result.answered / options.seconds:.1f} | {now.median_ms:.2f} | {now.p99_ms:.1f} "
                f"| {now.worst_ms:.1f} | {base.p99_ms:.1f} | {'yes' if result.holds else 'no'} "
                f"| {result.turn_p99_ms:.2f} | {result.turn_worst_ms:.2f} |",
            )
    _say(f"{sum(result.holds for result in results)} of {len(results)} attacks held")
    return 0 if all(result.holds for result in results) else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
