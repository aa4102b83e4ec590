"""Measuring: contenders that stand side by side and take turns, operation by operation, round by round."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import load, machine, workload
from benchmarks.peers import Engine, Installed
from benchmarks.results import OURS, Contender, Failure, Footprint, Sample
from benchmarks.servers import Server, ServerFailed, free_port
from benchmarks.template import Template
from benchmarks.wire import Answer, http_template
from benchmarks.workload import Operation

_SEQUENCES_PER_RUN: Final = 10**7  # so that no two runs on a server share a number
_SETTLE_S: Final = 30.0
_PATIENCE_S: Final = 20.0  # of one connection for one answer; an operation beyond it is not put under load
_FOREIGN_CORES_MAX: Final = 0.25  # a run beside more other work than this is repeated
_WARM_ALONE_S: Final = 0.1  # an operation slower than this is not warmed up
_CLEAN_S: Final = 60.0
_ACTIVE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Servers that are up together and measured in turn."""

    name: str
    contenders: tuple[Contender, ...]
    connections: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """How long and how often."""

    operations: tuple[Operation, ...]
    rounds: int
    seconds: int
    warm_s: int
    starts: int
    repeats: int  # of a run while something else kept the machine busy; the calmest counts
    fill_s_max: float  # a peer that fills its table slower than this is left out
    deadline: float  # of the whole run, on the monotonic clock


@dataclass(frozen=True, slots=True)
class _Timed:
    """A drive, the server's processor time for it, and the cores that others took meanwhile."""

    drive: load.Drive
    cpu_s: float
    foreign_cores: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a stage found."""

    samples: tuple[Sample, ...]
    failures: tuple[Failure, ...]
    footprints: tuple[Footprint, ...]


class _Standing:
    """A contender whose server is up and filled."""

    def __init__(self, contender: Contender, server: Server) -> None:
        self.contender = contender
        self.server = server
        self.runs = 0
        self.alone_s: dict[str, float] = {}  # operation → what one request takes by itself
        self.once: set[tuple[str, int]] = (
            set()
        )  # operation and connections timed, and too slow for another round
        self.out: dict[str, str] = {}  # operation → why it is no longer asked for
        self.start_s: list[float] = []
        self.idle_mb = self.loaded_mb = self.fill_s = 0.0

    def call(self, target: str, request: Mapping[str, Any]) -> Answer:
        return self.server.client.call(target, request)

    def next_sequence(self) -> int:
        self.runs += 1
        return self.runs * _SEQUENCES_PER_RUN


class StageRun:
    """One stage under way; `run` gives what it found and leaves no process behind."""

    def __init__(
        self,
        stage: Stage,
        engines: Mapping[str, tuple[Engine, Installed]],
        rules: Rules,
        drive: load.Driver,
        scratch: Path,
        tell: Callable[[str], None],
    ) -> None:
        self._stage = stage
        self._engines = engines
        self._rules = rules
        self._drive = drive
        self._scratch = scratch
        self._tell = tell
        self._standing: list[_Standing] = []
        self._samples: list[Sample] = []
        self._failures: list[Failure] = []

    def run(self) -> Found:
        """Start, fill, time and end every server of the stage."""
        try:
            for contender in self._stage.contenders:
                self._stand_up(contender)
            for standing in self._standing:
                for operation in self._rules.operations:
                    self._judge(standing, operation)
            self._warm()
            for number in range(self._rules.rounds):
                self._round(number)
            for standing in self._standing:
                self._judge_again(standing)
            footprints = tuple(self._footprint(standing) for standing in self._standing)
        finally:
            for standing in self._standing:
                standing.server.stop()
        for standing in self._standing:
            self._failures += [
                _failure(standing.contender, name, reason) for name, reason in standing.out.items()
            ]
        return Found(tuple(self._samples), tuple(self._failures), footprints)

    def _open(self, contender: Contender) -> Server:
        _, installed = self._engines[contender.engine]
        label = f"{contender.engine}-{contender.storage}-{contender.items}"
        data = self._scratch / "data" / f"{label}-{time.monotonic_ns()}"
        data.mkdir(parents=True)
        logs = self._scratch.parent / "logs"  # kept: where a server says why it failed
        logs.mkdir(exist_ok=True)
        port = free_port()
        launch = installed.launch(contender.storage, data, port)
        return Server(launch, port, data, logs / f"{label}.log")

    def _stand_up(self, contender: Contender) -> None:
        """A server for the contender, started as often as starts are timed, and filled."""
        start_s_max = self._engines[contender.engine][0].start_s_max
        start_s: list[float] = []
        server: Server | None = None
        try:
            for attempt in range(self._rules.starts):
                server = self._open(contender)
                start_s.append(server.await_answer(start_s_max))
                if attempt + 1 < self._rules.starts:
                    server.stop()
            assert server is not None, "at least one start"
            standing = _Standing(contender, server)
            standing.start_s = start_s
            server.settle(_SETTLE_S)
            standing.idle_mb = server.resident_mb()
            _create_table(server)
            draw = workload.seed_draw(contender.items)
            request = http_template("BatchWriteItem", workload.seed_body(), server.port)
            # Ours has no bound of this kind: a million items are what it is asked for.
            limit_s = self._rules.fill_s_max if contender.engine != OURS else 1200.0
            standing.fill_s = load.fill(request, draw, workload.BATCH_ITEMS, server.port, limit_s)
            server.settle(_SETTLE_S)
            standing.loaded_mb = server.resident_mb()
        except (ServerFailed, load.LoadFailed, OSError, HTTPException) as error:
            self._failures.append(_failure(contender, "", f"{error}"))
            self._tell(f"{contender}: {error}")
            if server is not None:
                server.stop()
            return
        except BaseException:  # an interrupt leaves no process behind either
            if server is not None:
                server.stop()
            raise
        self._standing.append(standing)
        self._tell(
            f"{contender}: up in {median(start_s):.2f} s, {standing.idle_mb:.0f} MB, "
            f"filled in {standing.fill_s:.1f} s, {standing.loaded_mb:.0f} MB"
        )

    def _judge(self, standing: _Standing, operation: Operation) -> None:
        """Take the operation out of the contender's programme if its answer is wrong."""
        if operation.name in standing.out:
            return
        draw = operation.draw(standing.contender.items, first_sequence=standing.next_sequence())
        numbers = next(draw.numbers())
        request = _decode(operation.body.render(draw, numbers))
        try:
            answer = standing.call(operation.target, request)
            complaint = None if answer.status == 200 else answer.refusal
            if complaint is None:
                complaint = operation.check(standing.call, request, answer)
            standing.alone_s[operation.name] = min(self._alone_s(standing, operation, request) for _ in "12")
            if operation.name == "put-new":
                only = range(numbers.sequence, numbers.sequence + 1)
                standing.call("BatchWriteItem", workload.delete_request(only))
        except (OSError, HTTPException, KeyError, TypeError, ValueError) as error:
            complaint = f"{type(error).__name__} {error}".strip()
        if complaint is not None:
            standing.out[operation.name] = complaint
            self._tell(f"{standing.contender}: {operation.name}: {complaint}")

    def _alone_s(self, standing: _Standing, operation: Operation, request: Mapping[str, Any]) -> float:
        began = time.monotonic()
        standing.call(operation.target, request)
        return time.monotonic() - began

    def _judge_again(self, standing: _Standing) -> None:
        """After the rounds: an answer that is wrong now voids the rates of its operation."""
        for operation in self._rules.operations:
            if operation.name in standing.out:
                continue
            self._judge(standing, operation)
            if operation.name in standing.out:
                ours = (standing.contender, operation.name)
                self._samples = [s for s in self._samples if (s.contender, s.operation) != ours]

    def _warm(self) -> None:
        """Let just-in-time compilers and caches reach their pace; nothing of it is counted."""
        if not self._rules.warm_s:
            return
        for operation in self._rules.operations:
            for standing in self._standing:
                if operation.name not in standing.out and standing.alone_s[operation.name] < _WARM_ALONE_S:
                    self._time(standing, operation, max(self._stage.connections), self._rules.warm_s)

    def _round(self, number: int) -> None:
        for connections in self._stage.connections:
            for operation in self._rules.operations:
                turn = number % max(1, len(self._standing))
                order = self._standing[turn:] + self._standing[:turn]
                rates = [self._sample(number, connections, operation, standing) for standing in order]
                shown = ", ".join(rate for rate in rates if rate)
                self._tell(
                    f"{self._stage.name} round {number + 1}/{self._rules.rounds}, "
                    f"{connections} connections, {operation.name}: {shown}"
                )

    def _sample(self, number: int, connections: int, operation: Operation, standing: _Standing) -> str:
        """Time one run and keep it; how it went, in a word."""
        if operation.name in standing.out:
            return ""
        if time.monotonic() > self._rules.deadline:
            return ""
        contender = standing.contender
        timed = self._time(standing, operation, connections, self._rules.seconds)
        for _ in range(self._rules.repeats):
            if timed is None or timed.foreign_cores < _FOREIGN_CORES_MAX:
                break
            again = self._time(standing, operation, connections, self._rules.seconds)
            if again is not None and again.foreign_cores < timed.foreign_cores:
                timed = again
        if timed is None:
            return f"{contender} failed" if operation.name in standing.out else ""
        drive = timed.drive
        sample = Sample(
            stage=self._stage.name,
            engine=contender.engine,
            storage=contender.storage,
            items=contender.items,
            operation=operation.name,
            connections=connections,
            round=number,
            requests=drive.requests,
            seconds=drive.seconds,
            errors=drive.errors,
            cpu_us=timed.cpu_s / drive.requests * 1e6 if drive.requests else 0.0,
            p50_ms=drive.p50_ms,
            p99_ms=drive.p99_ms,
            foreign_cores=timed.foreign_cores,
        )
        self._samples.append(sample)
        return f"{contender} {sample.rate:,.0f}/s" + (f" ({drive.errors} errors)" if drive.errors else "")

    def _time(
        self, standing: _Standing, operation: Operation, connections: int, seconds: int
    ) -> _Timed | None:
        """Drive the server; what was seen and the processor time it took. None: it fell out, or need not."""
        if (operation.name, connections) in standing.once:
            return None
        alone_s = standing.alone_s[operation.name]
        if alone_s * connections > _PATIENCE_S:
            standing.out[operation.name] = f"one request alone takes {alone_s:.1f} s; not put under load"
            return None
        try:
            timed = None
            if not load.too_few(seconds / alone_s, connections):
                timed = self._drive_once(self._drive, standing, operation, connections, seconds)
            if timed is None or (load.too_few(timed.drive.requests, connections) and not timed.drive.errors):
                timed = self._drive_once(load.own_driver, standing, operation, connections, seconds)
                standing.alone_s[operation.name] = timed.drive.seconds / max(1, timed.drive.requests)
        except load.LoadFailed as error:
            timed = None
            standing.out[operation.name] = str(error)
        self._look_after(standing)
        if timed is None:
            return None
        if not timed.drive.requests:
            standing.out[operation.name] = f"no answer under load: {timed.drive.first_error}"
            return None
        if timed.drive.seconds > 3 * seconds + 2:
            standing.once.add((operation.name, connections))
        return timed

    def _look_after(self, standing: _Standing) -> None:
        """End a server that fell over, or that works on although nobody waits: it would slow the others."""
        reason = ""
        if not standing.server.alive:
            reason = f"the server ended: {standing.server.last_words()}"
        elif not standing.server.settle(_SETTLE_S):
            reason = f"ended because it was still busy {_SETTLE_S:.0f} s after a load"
            standing.server.stop()
        if reason:
            self._tell(f"{standing.contender}: {reason}")
            for operation in self._rules.operations:
                standing.out.setdefault(operation.name, reason)

    def _drive_once(
        self, drive: load.Driver, standing: _Standing, operation: Operation, connections: int, seconds: int
    ) -> _Timed:
        server = standing.server
        first = standing.next_sequence()
        draw = operation.draw(standing.contender.items, first_sequence=first, seed=standing.runs)
        request = http_template(operation.target, operation.body, server.port)
        began, before, busy_s = time.monotonic(), server.cpu_s(), machine.busy_s() - machine.own_s()
        seen = drive(request, draw, server.port, connections, seconds)
        server.settle(_SETTLE_S)
        cpu_s = server.cpu_s() - before
        foreign_s = machine.busy_s() - machine.own_s() - busy_s - cpu_s
        timed = _Timed(seen, cpu_s, max(0.0, foreign_s / (time.monotonic() - began)))
        if operation.name == "put-new":
            self._clean(server, range(first, first + seen.requests + seen.errors + connections + 1))
        return timed

    def _clean(self, server: Server, sequences: range) -> None:
        """Take the new items away again: the table keeps the size that it is measured at."""
        size = workload.BATCH_ITEMS
        parts = [sequences[i : i + size] for i in range(0, len(sequences), size)]
        requests = (_http(server.port, workload.delete_request(part)) for part in parts)
        load.send_all(requests, len(parts), server.port, _CLEAN_S)
        server.settle(_SETTLE_S)

    def _footprint(self, standing: _Standing) -> Footprint:
        contender, server = standing.contender, standing.server
        return Footprint(
            stage=self._stage.name,
            engine=contender.engine,
            storage=contender.storage,
            items=contender.items,
            start_s=tuple(standing.start_s),
            idle_mb=standing.idle_mb,
            loaded_mb=standing.loaded_mb,
            worked_mb=server.resident_mb(),
            fill_s=standing.fill_s,
            disk_mb=server.disk_mb() if contender.storage == "disk" else 0.0,
        )


def _decode(text: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(text)
    return decoded


def _http(port: int, request: Mapping[str, Any]) -> bytes:
    body = Template((json.dumps(request),), ())
    return http_template("BatchWriteItem", body, port).texts[0].encode()


def _create_table(server: Server) -> None:
    answer = server.client.call("CreateTable", workload.create_table_request())
    if answer.status != 200:
        raise ServerFailed(f"CreateTable: {answer.refusal}")
    give_up = time.monotonic() + _ACTIVE_S
    while time.monotonic() < give_up:
        table = server.client.call("DescribeTable", {"TableName": workload.TABLE}).body.get("Table", {})
        indexes: Sequence[Mapping[str, Any]] = table.get("GlobalSecondaryIndexes", [])
        states = {table.get("TableStatus"), *(index.get("IndexStatus", "ACTIVE") for index in indexes)}
        if states == {"ACTIVE"}:
            return
        time.sleep(0.02)
    raise ServerFailed(f"the table was not ACTIVE within {_ACTIVE_S:.0f} s")


def _failure(contender: Contender, operation: str, reason: str) -> Failure:
    return Failure(contender.engine, contender.storage, contender.items, operation, reason)
