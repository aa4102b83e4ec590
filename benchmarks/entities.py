"""The typed client and its peers: entities put and got, in process and over HTTP; marshalling; imports.

`python -m benchmarks.entities --seconds 1` runs this section alone. Every library runs in a process of its own,
started once and checked; then they take turns, so that all see the same noise.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final

from benchmarks import entity_plot, machine, report
from benchmarks.clients.timing import create_table_request
from benchmarks.libraries import IMPORTS, IN_PROCESS, LOCAL, OVER_HTTP, Library, Shelf, surroundings
from benchmarks.peers import ENGINES, PEERS, Unobtainable
from benchmarks.results import OURS, Failure, Results, Trial
from benchmarks.servers import Server, ServerFailed, free_port
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
    put_into,
)

Tell = Callable[[str], None]

STARTS: Final = 10  # fresh processes of each import, the median of which counts
_FOREIGN_CORES_MAX: Final = 0.25  # a turn beside more other work than this is taken once more
_PATIENCE_S: Final = 60.0
_README: Final = Path(__file__).parents[1] / "README.md"
_IMPORT: Final = """\
{before}
import time
began, began_cpu = time.perf_counter(), time.process_time()
{statement}
took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
print(f'{{{{"took_us": {{took * 1e6}}, "cpu_us": {{cpu * 1e6}}}}}}')
"""


class LibraryFailed(Exception):
    """A library that did not start, or did not do what it was asked; str() says what was seen."""


@dataclass(slots=True)
class Found:
    """What was measured, and what could not be."""

    trials: list[Trial] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def missing(self, library: Library, section: str, reason: str) -> None:
        """Note why a library has no number."""
        self.failures.append(Failure(library.title, section, 0, "", reason))


class Worker:
    """A library in a process of its own, waiting for its turn."""

    def __init__(self, library: Library, command: Sequence[str], log: Path, server: Server | None) -> None:
        self.library = library
        self._server = server
        self._log = log
        self._log_file = log.open("wb")
        self._process = subprocess.Popen(
            (*command, "--turns"),
            env=surroundings(library),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log_file,
            text=True,
        )
        try:
            self.operations: list[str] = self._answer()
        except BaseException:
            self.close()
            raise

    def turn(self, operation: str, seconds: float) -> tuple[float, float, float]:
        """Microseconds a call by the clock and of its processor time, and the cores that others took."""
        busy, own, began = machine.busy_s(), self._served_s(), time.perf_counter()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{operation} {seconds}\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise LibraryFailed(self._last_words()) from error
        told = self._answer()
        lasted = time.perf_counter() - began
        taken = told["cpu_us"] * told["calls"] / 1e6 + self._served_s() - own
        foreign = max(0.0, machine.busy_s() - busy - taken) / lasted
        return told["took_us"], told["cpu_us"], foreign

    def close(self) -> None:
        """Let it end, and end it if it does not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10.0)
        self._process.stdout.close()
        self._log_file.close()

    def _served_s(self) -> float:
        return 0.0 if self._server is None else self._server.cpu_s()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LibraryFailed(self._last_words())
        return json.loads(line)

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it ended without a word"


def measure(rounds: int, seconds: float, peers: Path, folder: Path, tell: Tell) -> Found:
    """Measure every section; what cannot be had is among the failures."""
    found = Found()
    shelf = Shelf(peers, tell)
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as standing:
        local: Server | None = None
        try:
            local = standing.enter_context(_server("dynamodb-local", peers, folder))
        except (Unobtainable, ServerFailed) as error:
            found.failures.append(Failure("DynamoDB Local", IN, 0, "", str(error)))
        contenders = [library for library in IN_PROCESS if local is not None or library.name != LOCAL]
        options = {"folder": str(folder), "local": f"http://127.0.0.1:{local.port}" if local else ""}
        workers = _workers(IN, contenders, options, local, shelf, found, standing, tell)
        _turns({IN: OPERATIONS}, workers, rounds, seconds, found, tell)
    with ExitStack() as standing:
        server = standing.enter_context(_server(OURS, peers, folder))
        server.client.call("CreateTable", create_table_request())
        endpoint = ("--endpoint", f"http://127.0.0.1:{server.port}")
        contenders = [
            replace(library, options=(*library.options, *endpoint, "--mark", mark))
            for library, mark in zip(OVER_HTTP, ascii_lowercase, strict=False)
        ]
        workers = _workers(HTTP, contenders, {"folder": str(folder)}, server, shelf, found, standing, tell)
        _turns({HTTP: OPERATIONS, MARSHAL: ("both_ways",)}, workers, rounds, seconds, found, tell)
        _starts([worker.library for worker in workers], shelf, found, tell)
    found.versions |= shelf.versions
    return found


@contextmanager
def _server(engine: str, peers: Path, folder: Path) -> Iterator[Server]:
    """A server in memory, up; ended by its own process id."""
    chosen = next(each for each in ENGINES if each.name == engine)
    data = folder / engine
    data.mkdir()
    port = free_port()
    server = Server(chosen.obtain(peers).launch("memory", data, port), port, data, folder / f"{engine}.log")
    try:
        server.await_answer(chosen.start_s_max)
        yield server
    finally:
        server.stop()


def _workers(
    section: str,
    libraries: Sequence[Library],
    options: Mapping[str, str],
    server: Server | None,
    shelf: Shelf,
    found: Found,
    standing: ExitStack,
    tell: Tell,
) -> list[Worker]:
    """Start every library that can be had, each checked to give back what it stores."""
    workers: list[Worker] = []
    for library in libraries:
        try:
            command = (*shelf.command(library), *(option.format(**options) for option in library.options))
            log = Path(options["folder"]) / f"{library.name}.log"
            worker = Worker(library, command, log, server)
        except (Unobtainable, LibraryFailed) as error:
            tell(f"{library.title}: {error}")
            found.missing(library, section, str(error))
        else:
            standing.callback(worker.close)
            workers.append(worker)
    return workers


def _turns(
    sections: Mapping[str, Sequence[str]],
    workers: Sequence[Worker],
    rounds: int,
    seconds: float,
    found: Found,
    tell: Tell,
) -> None:
    """Let the workers take turns, the first of a round another each time; one that fails has no number."""
    taken: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
    asked = [(section, operation) for section, operations in sections.items() for operation in operations]
    failed: set[str] = set()
    for turn in range(-1, rounds):  # the first of all is not counted: a JVM compiles what it does often
        for section, operation in asked:
            able = [
                each for each in workers if operation in each.operations and each.library.name not in failed
            ]
            shift = max(0, turn) % max(1, len(able))
            for worker in able[shift:] + able[:shift]:
                library = worker.library
                try:
                    seen = _calmest(worker, operation, seconds)
                except LibraryFailed as error:
                    failed.add(library.name)
                    found.missing(library, section, f"{operation}: {error}")
                    tell(f"{library.title}, {operation}: {error}")
                    continue
                if turn < 0:
                    continue
                taken.setdefault((section, library.name, operation), []).append(seen)
                tell(
                    f"round {turn + 1}/{rounds}, {section}, {operation}, {library.title}: "
                    f"{1e6 / seen[0]:,.0f}/s, {seen[1]:.1f} µs"
                )
    for (section, name, operation), turns in taken.items():
        if name not in failed:
            took, cpu, foreign = zip(*turns, strict=True)
            found.trials.append(Trial(section, name, operation, took, cpu, foreign))


def _calmest(worker: Worker, operation: str, seconds: float) -> tuple[float, float, float]:
    """A turn, or the calmer of two where something else was busy."""
    seen = worker.turn(operation, seconds)
    if seen[2] <= _FOREIGN_CORES_MAX:
        return seen
    return min(seen, worker.turn(operation, seconds), key=lambda each: each[2])


def _starts(libraries: Sequence[Library], shelf: Shelf, found: Found, tell: Tell) -> None:
    """Time what a program waits for before its first call, and up to its answer, in fresh processes."""
    asked: list[tuple[Library, str, Callable[[], tuple[float, float]]]] = []
    for library in libraries:
        if library.name == OURS:
            asked.append((library, BARE, partial(_imported, library, shelf, BARE)))
            asked += [(library, command, partial(_run_command, command)) for command in COMMANDS]
        if library.name in IMPORTS:
            declaring = f"import benchmarks.clients.{library.module}"
            asked += [
                (library, NAMES, partial(_imported, library, shelf, IMPORTS[library.name])),
                (library, DECLARED, partial(_imported, library, shelf, declaring)),
                (library, FIRST, partial(_answered, library, shelf)),
            ]
    tell(f"{STARTS} starts of {len(asked)} kinds")
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for turn in range(STARTS + 1):
        for library, operation, ask in asked:
            try:
                seen = ask()
            except LibraryFailed as error:
                if turn == 0:
                    found.missing(library, START, f"{operation}: {error}")
                continue
            if turn:  # the first compiles what the others load
                taken.setdefault((library.name, operation), []).append(seen)
    for (name, operation), starts in taken.items():
        took, cpu = zip(*starts, strict=True)
        found.trials.append(Trial(START, name, operation, took, cpu))


def _imported(library: Library, shelf: Shelf, statement: str) -> tuple[float, float]:
    """Microseconds that a statement takes, timed inside the process."""
    before = "import benchmarks.clients.timing" if "benchmarks" in statement else ""
    code = _IMPORT.format(before=before, statement=statement)
    told = json.loads(_ran(library, (str(shelf.python(library)), "-c", code))[0])
    return told["took_us"], told["cpu_us"]


def _run_command(command: str) -> tuple[float, float]:
    """Microseconds, elapsed and of the processor, from the start of a command to its exit.

    `first.py` is the first example of the README, so that users can repeat the measurement.
    """
    with tempfile.TemporaryDirectory() as folder:
        example = re.search(r"```python runnable\n(.*?)```", _README.read_text(), re.DOTALL)
        assert example is not None
        Path(folder, "first.py").write_text(example[1])
        program = Path(sys.executable).with_name("tavola")
        before_s = _children_cpu_s()
        began = time.perf_counter()
        ended = subprocess.run(
            [program, *command.split()[1:]],
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
        )
        took_s = time.perf_counter() - began
    if ended.returncode not in (0, 1):  # lint exits with 1 where it has findings
        raise LibraryFailed(f"{command} exited with {ended.returncode}: {ended.stderr.strip()}")
    return took_s * 1e6, (_children_cpu_s() - before_s) * 1e6


def _answered(library: Library, shelf: Shelf) -> tuple[float, float]:
    """Microseconds from the start of a process to the answer to its first get."""
    _, took_s, cpu_s = _ran(library, (*shelf.command(library), "--first"))
    return took_s * 1e6, cpu_s * 1e6


def _ran(library: Library, command: Sequence[str]) -> tuple[str, float, float]:
    """The first line of a process, the seconds until it came, and its processor time in all."""
    before_s = _children_cpu_s()
    began = time.perf_counter()
    with subprocess.Popen(
        (*command, *library.options),
        env=surroundings(library),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        took_s = time.perf_counter() - began
        _, errors = process.communicate(timeout=_PATIENCE_S)
    if process.returncode or not line:
        raise LibraryFailed((errors.strip().splitlines() or ["it ended without a word"])[-1])
    return line, took_s, _children_cpu_s() - before_s


def _children_cpu_s() -> float:
    """Processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the section alone and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entities", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn (default 1)")
    parser.add_argument("--rounds", type=int, default=5, help="the median of these counts (default 5)")
    parser.add_argument("--into", type=Path, help="a results.json to put this section into")
    parser.add_argument("--chart", type=Path, help="an .svg or .png for the chart alone")
    options = parser.parse_args(arguments)

    def tell(words: str) -> None:
        sys.stderr.write(f"[{datetime.now(UTC):%H:%M:%S}] {words}\n")

    with tempfile.TemporaryDirectory(prefix="tavola-entities-") as folder:
        found = measure(options.rounds, options.seconds, PEERS, Path(folder), tell)
    results = Results(
        trials=tuple(found.trials), failures=tuple(found.failures), versions=dict(found.versions)
    )
    sys.stdout.write(report.summary(results))
    if options.into is not None:
        about = f"{options.rounds} rounds of {options.seconds:g} s, {machine.describe()}"
        put_into(options.into, found.trials, found.failures, found.versions, about)
    if options.chart is not None:
        entity_plot.draw(results, options.chart)
    return 0 if found.trials else 1


if __name__ == "__main__":
    sys.exit(main())
