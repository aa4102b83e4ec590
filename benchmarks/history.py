"""What looking back costs: streams, recovery and encryption, each beside the same server without it.

`python -m benchmarks.history --seconds 2` runs this section alone; `--restore 1000000` times a restore too. The
servers take turns within a round, so that all see the same noise.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks import load, workload
from benchmarks.costs import HEADER, put_into, sections
from benchmarks.report import text_table
from benchmarks.results import Cost
from benchmarks.servers import Launch, Server, ServerFailed, free_port
from benchmarks.wire import http_template

ITEMS: Final = 10_000
CONNECTIONS: Final = 16
OPERATIONS: Final = ("put", "put-new", "update")
RESTORE: Final = "Duration of a restore"
_RESTORED: Final = "Restored"
_SEQUENCES_PER_RUN: Final = 10**7
_RESTORE_S_MAX: Final = 1200.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to keep a table: what its creation, the server or a call after it adds."""

    title: str
    table: Mapping[str, Any] = field(default_factory=dict)
    recovery: bool = False
    encrypted: bool = False
    share_max: float | None = None  # of a write's rate that it may cost


def _stream(view: str) -> dict[str, Any]:
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": view}}


_MODES: Final = (
    Mode("neither"),
    Mode("stream of keys", _stream("KEYS_ONLY"), share_max=0.20),
    Mode("stream of both images", _stream("NEW_AND_OLD_IMAGES"), share_max=0.20),
    Mode("recovery", recovery=True, share_max=0.30),
    Mode("stream of both images and recovery", _stream("NEW_AND_OLD_IMAGES"), recovery=True),
)
SECTIONS: Final[dict[str, tuple[Mode, ...]]] = {
    "Cost of recovery and streams in memory": _MODES,
    "Cost of recovery and encryption on disk": (*_MODES, Mode("encrypted", encrypted=True)),
}


def measure(operations: Sequence[str], rounds: int, seconds: int, folder: Path, tell: Tell) -> list[Cost]:
    """Start a server for each mode, fill them alike, and let them take turns, section by section."""
    wrk, _ = load.find_wrk()
    drive = load.wrk_driver(wrk) if wrk else load.own_driver
    costs: list[Cost] = []
    for number, (section, modes) in enumerate(SECTIONS.items()):
        standing: list[tuple[Mode, Server]] = []
        taken: dict[tuple[str, str], list[tuple[load.Drive, float]]] = {}
        try:
            for mode in modes:
                place = folder / f"{number}-{len(standing)}"
                standing.append((mode, _stand_up(mode, place, "disk" in section, ITEMS)))
            for turn in range(rounds + 1):  # the first is not counted
                for operation in operations:
                    shift = turn % len(standing)
                    for mode, server in standing[shift:] + standing[:shift]:
                        seen, cpu_us = _time(drive, server, operation, turn, seconds if turn else 1)
                        if turn:
                            taken.setdefault((mode.title, operation), []).append((seen, cpu_us))
                            rate = seen.requests / seen.seconds
                            tell(
                                f"{section}, round {turn}/{rounds}, {operation}, {mode.title}: {rate:,.0f}/s"
                            )
        finally:
            for _, server in standing:
                server.stop()
        costs += [
            Cost(
                section,
                mode.title,
                operation,
                tuple(seen.requests / seen.seconds for seen, _ in taken[mode.title, operation]),
                tuple(cpu_us for _, cpu_us in taken[mode.title, operation]),
                sum(seen.errors for seen, _ in taken[mode.title, operation]),
                mode.share_max,
            )
            for operation in operations
            for mode in modes
        ]
    return costs


def restore(items: int, folder: Path, tell: Tell) -> list[Cost]:
    """Load a table by BatchWriteItem, then restore it to a moment before some of it changed; items a second."""
    wrk, _ = load.find_wrk()
    drive = load.wrk_driver(wrk) if wrk else load.own_driver
    began = time.monotonic()
    server = _stand_up(Mode("recovery", recovery=True), folder / "restore", True, items)
    try:
        # What fills the table is written in Python and may be slower than the server, so the server's own
        # processor time counts: that is what it would take if nobody kept it waiting.
        loaded = items / server.cpu_s()
        tell(f"{items:,} items are loaded, in {time.monotonic() - began:.0f} s, {loaded:,.0f} a busy second")
        moment = time.time()
        _time(drive, server, "put", 2, 5)
        began = time.monotonic()
        answer = server.client.call(
            "RestoreTableToPointInTime",
            {"SourceTableName": workload.TABLE, "TargetTableName": _RESTORED, "RestoreDateTime": moment},
        )
        if answer.status != 200:
            raise ServerFailed(f"RestoreTableToPointInTime: {answer.refusal}")
        table = _await_restored(server, began, items, tell)
        took_s = time.monotonic() - began
        if table["ItemCount"] != items:
            raise ServerFailed(f"{table['ItemCount']:,} items were restored, not {items:,}")
    finally:
        server.stop()
    title = f"{items:,} items on disk"
    return [
        Cost(
            RESTORE,
            "load by BatchWriteItem over HTTP, items a busy second",
            title,
            (loaded,),
            (1e6 / loaded,),
            0,
        ),
        Cost(
            RESTORE,
            "RestoreTableToPointInTime, items/s",
            title,
            (items / took_s,),
            (took_s / items * 1e6,),
            0,
            share_max=0.0,
        ),
    ]


def _await_restored(server: Server, began: float, items: int, tell: Tell) -> dict[str, Any]:
    told = 0.0
    while time.monotonic() < began + _RESTORE_S_MAX:
        table: dict[str, Any] = server.client.call("DescribeTable", {"TableName": _RESTORED}).body["Table"]
        if table["TableStatus"] == "ACTIVE":
            return table
        if time.monotonic() > told + 2:
            told = time.monotonic()
            tell(f"restoring: {table['ItemCount']:,} of {items:,}")
        time.sleep(0.1)
    raise ServerFailed(f"the restore did not end within {_RESTORE_S_MAX:.0f} s")


def _stand_up(mode: Mode, folder: Path, on_disk: bool, items: int) -> Server:
    folder.mkdir(parents=True)
    port = free_port()
    command = [sys.executable, "-m", "tavola", "serve", "--port", str(port)]
    if on_disk:
        command.insert(4, str(folder / "store.db"))
    if mode.encrypted:
        (folder / "key").write_text("a key for the benchmark\n")
        command += ["--key-file", str(folder / "key")]
    source = str(Path(__file__).resolve().parents[1] / "src")
    server = Server(Launch(tuple(command), {"PYTHONPATH": source}), port, folder, folder.with_suffix(".txt"))
    try:
        server.await_answer(15.0)
        _call(server, "CreateTable", {**workload.create_table_request(), **mode.table})
        request = http_template("BatchWriteItem", workload.seed_body(), port)
        load.fill(request, workload.seed_draw(items), workload.BATCH_ITEMS, port, 1200.0)
        if mode.recovery:
            enabled = {"PointInTimeRecoveryEnabled": True}
            _call(
                server,
                "UpdateContinuousBackups",
                {"TableName": workload.TABLE, "PointInTimeRecoverySpecification": enabled},
            )
        server.settle(30.0)
    except BaseException:
        server.stop()
        raise
    return server


def _call(server: Server, target: str, request: Mapping[str, Any]) -> None:
    answer = server.client.call(target, request)
    if answer.status != 200:
        raise ServerFailed(f"{target}: {answer.refusal}")


def _time(
    drive: load.Driver, server: Server, operation: str, turn: int, seconds: int
) -> tuple[load.Drive, float]:
    timed = workload.BY_NAME[operation]
    place = list(workload.BY_NAME).index(operation)
    draw = timed.draw(ITEMS, first_sequence=(turn * len(workload.BY_NAME) + place + 1) * _SEQUENCES_PER_RUN)
    request = http_template(timed.target, timed.body, server.port)
    before = server.cpu_s()
    seen = drive(request, draw, server.port, CONNECTIONS, seconds)
    server.settle(10.0)
    return seen, (server.cpu_s() - before) / max(1, seen.requests) * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections alone and print them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--seconds", type=int, default=2, help="of each timed run (default 2)")
    parser.add_argument("--rounds", type=int, default=3, help="the median of these counts (default 3)")
    parser.add_argument("--operations", default=",".join(OPERATIONS), help="with commas")
    parser.add_argument(
        "--restore", type=int, default=0, help="time a restore of so many items, and nothing else"
    )
    parser.add_argument("--into", type=Path, help="a results.json to put this section into")
    options = parser.parse_args(arguments)

    def tell(words: str) -> None:
        sys.stderr.write(f"[{datetime.now(UTC):%H:%M:%S}] {words}\n")

    with tempfile.TemporaryDirectory(prefix="tavola-history-", dir=Path(__file__).parent / "raw") as folder:
        costs = (
            restore(options.restore, Path(folder), tell)
            if options.restore
            else measure(options.operations.split(","), options.rounds, options.seconds, Path(folder), tell)
        )
    for title, rows in sections(costs).items():
        sys.stdout.write(f"{title}\n{text_table(HEADER, rows)}\n")
    if options.into is not None:
        put_into(options.into, costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
