"""Full: what a process sees whose disk has no more room, or whose files may not grow; run in a child.

`python -m tests.durability.full tmpfs FOLDER` expects a small file system at FOLDER. `… limit FOLDER` lowers
the size a file may have. Prints each thing that is wrong, one a line.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from tavola.engine import Engine, StoreError
from tavola.protocol.faults import InternalServerFault
from tests.durability import history as work
from tests.durability.history import open_store
from tests.durability.state import faults_in, scan, settle

_REASONS = ("the disk is full", "raise the limit on the size of files")


def fill(engine: Engine, acknowledged: dict[str, str], most: int = 5000) -> str:
    """Put items until the engine refuses, or this many; return what it said."""
    random = Random(3)
    for number in range(len(acknowledged), len(acknowledged) + most):
        item = {"pk": {"S": f"p{number}"}, "sk": {"N": "0"}, "state": {"S": "a"}, "score": {"N": str(number)}}
        item["note"] = {"S": str(random.random()) * 200}
        try:
            engine.call("PutItem", {"TableName": work.TABLE, "Item": item})
        except InternalServerFault as fault:
            return str(fault)
        acknowledged[item["pk"]["S"]] = item["note"]["S"]
    return ""


def faults(engine: Engine, acknowledged: dict[str, str], when: str) -> list[str]:
    """Return what is wrong with what the engine holds."""
    found = {item["pk"]["S"]: item["note"]["S"] for item in scan(engine, work.TABLE)}
    wrong = [f"{when}: {fault}" for fault in faults_in(engine)]
    if found != acknowledged:
        wrong.append(f"{when}: {len(found)} items are there, {len(acknowledged)} were acknowledged")
    return wrong


def run(folder: Path, free: Callable[[], None]) -> list[str]:
    """Fill a store to the brim, free some room, and go on without opening it again."""
    path = folder / "store.db"
    acknowledged: dict[str, str] = {}
    engine = open_store(path)
    engine.call(*work.create_table())
    result = fill(engine, acknowledged)
    wrong = [] if result else ["the disk never became full"]
    if not any(reason in result for reason in _REASONS):
        wrong.append(f"a full disk is reported as: {result}")
    wrong += faults(engine, acknowledged, "full")
    if engine.write_failure is not None:
        wrong.append(f"a full disk is taken for a broken one: {engine.write_failure}")
    if engine.unready_reason != result:
        wrong.append(
            f"the engine is unready because of {engine.unready_reason}, but refused because of {result}"
        )
    again = fill(engine, acknowledged)
    wrong += faults(engine, acknowledged, "still full")
    free()
    before = len(acknowledged)
    after = fill(engine, acknowledged, 50)
    if len(acknowledged) == before:
        wrong.append(f"with room again, nothing can be written: {after} (before: {again})")
    wrong += faults(engine, acknowledged, "with room again")
    try:
        engine.close()
    except StoreError:
        pass
    free()
    engine = open_store(path)
    settle(engine)
    wrong += faults(engine, acknowledged, "opened again")
    before = len(acknowledged)
    fill(engine, acknowledged, 50)
    if len(acknowledged) == before:
        wrong.append("nothing can be written after opening again")
    engine.close()
    return wrong


def on_small_disk(folder: Path) -> list[str]:
    """Fill a small file system; room comes from a ballast that is taken away."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(1 << 20))

    def free() -> None:
        size = ballast.stat().st_size if ballast.exists() else 0
        if size:
            with ballast.open("r+b") as file:
                file.truncate(max(0, size - (1 << 19)))

    return run(folder, free)


def under_a_limit(folder: Path) -> list[str]:
    """Let no file grow past a limit, which the system reports with another error than a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, hard))

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, hard))

    return run(folder, free)


if __name__ == "__main__":
    found = {"tmpfs": on_small_disk, "limit": under_a_limit}[sys.argv[1]](Path(sys.argv[2]))
    sys.stdout.write("".join(f"{each}\n" for each in found))
