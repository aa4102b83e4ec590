"""The engine in its own process: the same operations through `Engine.execute`, with no socket.

Run as a program of its own, so that the harness's memory and threads do not weigh on it; prints JSON.
Bodies are made ahead of each slice of calls: only the calls are timed.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import workload
from benchmarks.workload import BATCH_ITEMS, BY_NAME, Operation
from tavola.engine import Engine

_SLICE: Final = 200  # calls timed together
_OPENINGS: Final = 50


def empty_engine_ms() -> float:
    """The median time to open an empty engine in memory and close it again."""
    took: list[float] = []
    for _ in range(_OPENINGS):
        began = time.perf_counter()
        Engine.open().close()
        took.append(time.perf_counter() - began)
    return median(took) * 1e3


def rates(path: Path | None, items: int, operations: list[Operation], seconds: float) -> dict[str, float]:
    """Calls a second of each operation on an engine filled with so many items."""
    engine = Engine.open(path)
    try:
        engine.execute("CreateTable", json.dumps(workload.create_table_request()).encode())
        body, draw = workload.seed_body(), workload.seed_draw(items)
        for numbers in draw.in_order(BATCH_ITEMS):
            engine.execute("BatchWriteItem", body.render(draw, numbers).encode())
        return {operation.name: _rate(engine, operation, items, seconds) for operation in operations}
    finally:
        engine.close()


def _rate(engine: Engine, operation: Operation, items: int, seconds: float) -> float:
    draw = operation.draw(items, first_sequence=10**7)
    stream = draw.numbers()
    slice_calls = _SLICE // operation.items if operation.name != "scan" else 10
    calls, spent_s = 0, 0.0
    execute, target = engine.execute, operation.target
    while spent_s < seconds:
        drawn = [next(stream) for _ in range(slice_calls)]
        bodies = [operation.body.render(draw, numbers).encode() for numbers in drawn]
        began = time.perf_counter()
        for body in bodies:
            execute(target, body)
        spent_s += time.perf_counter() - began
        calls += len(bodies)
        if operation.name == "put-new":
            _delete(engine, range(drawn[0].sequence, drawn[-1].sequence + 1))
    return calls / spent_s


def _delete(engine: Engine, sequences: range) -> None:
    for start in range(0, len(sequences), BATCH_ITEMS):
        request: dict[str, Any] = workload.delete_request(sequences[start : start + BATCH_ITEMS])
        engine.execute("BatchWriteItem", json.dumps(request).encode())


def main() -> None:
    """Measure what the arguments ask for, and print it as one JSON document."""
    parser = argparse.ArgumentParser(prog="benchmarks.inprocess", description=__doc__)
    parser.add_argument("--items", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--operations", required=True, help="names, with commas")
    parser.add_argument("--storages", default="memory,disk", help="memory, disk or both, with a comma")
    parser.add_argument("--folder", type=Path, required=True, help="where a store on disk may lie")
    options = parser.parse_args()
    operations = [BY_NAME[name] for name in options.operations.split(",")]
    found: dict[str, Any] = {"empty_engine_ms": empty_engine_ms(), "rates": {}}
    for storage in options.storages.split(","):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder) / "tickets.tavola" if storage == "disk" else None
            found["rates"][storage] = rates(path, options.items, operations, options.seconds)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
