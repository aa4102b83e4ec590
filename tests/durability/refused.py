"""Refused writes: the system refuses to write for one reason after another; run in a child, where the disk comes first.

`python -m tests.durability.refused FOLDER` prints each thing that is wrong, one a line.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from tavola.engine import Engine, engine
from tavola.protocol.faults import InternalServerFault
from tests.durability import disk as disks
from tests.durability.test_wal_binding import make, put

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "quota is used up",
    errno.EFBIG: "may not grow further",
    errno.EROFS: "mounted read-only",
    errno.EACCES: "may no longer write",
    errno.EPERM: "may no longer write",
}


def _refusal(opened: Engine, name: str) -> str:
    """Return what the engine says of a put; empty if it accepts it."""
    try:
        put(opened, name)
    except InternalServerFault as fault:
        return str(fault)
    return ""


def passing(disk: disks.Disk, path: Path, number: int) -> list[str]:
    """Refuse writes with an error that passes: the reason is given, and background work finds out when it is gone."""
    wrong = []
    with Engine.open(path) as opened:
        disk.arm(disks.Plan("write", 1, sticky=True, number=number))
        first, second = _refusal(opened, "first"), _refusal(opened, "second")
        opened.run_background_work()
        reason = opened.unready_reason or ""
        if not all(_REASONS[number] in text and "store.db" in text for text in (first, second, reason)):
            wrong.append(f"{errno.errorcode[number]} is reported as {[first, second, reason]}")
        if opened.write_failure is not None:
            wrong.append(f"{errno.errorcode[number]} is taken for a broken disk")
        disk.arm(None)
        opened.run_background_work()
        if opened.unready_reason is not None:
            wrong.append(f"{errno.errorcode[number]} is gone, and yet: {opened.unready_reason}")
        if _refusal(opened, "third"):
            wrong.append(f"{errno.errorcode[number]} is gone, and yet a put is refused")
        if opened.call("Scan", {"TableName": "items"})["Count"] != 2:
            wrong.append(f"{errno.errorcode[number]}: the refused writes left something")
        opened.call("DeleteItem", {"TableName": "items", "Key": {"pk": {"S": "third"}}})
    return wrong


def lasting(disk: disks.Disk, path: Path, kind: disks.Kind, number: int) -> list[str]:
    """Fail in a way that leaves the disk uncertain: no write is accepted any more, although the failure is gone."""
    with Engine.open(path) as opened:
        disk.arm(disks.Plan(kind, 1, sticky=True, number=number))
        _refusal(opened, "first")
        disk.arm(None)
        opened.run_background_work()
        if opened.write_failure is None or not _refusal(opened, "second"):
            return [f"a {kind} that failed with {errno.errorcode[number]} was forgotten"]
    return []


def main(folder: Path) -> list[str]:
    """Run every reason; return what is wrong."""
    engine._FILE_CHECK_S = 0.0
    disk = disks.install()
    path = folder / "store.db"
    make(path, "before")
    wrong = [problem for number in _REASONS for problem in passing(disk, path, number)]
    for kind, number in (("write", errno.EIO), ("sync", errno.ENOSPC), ("sync", errno.EDQUOT)):
        wrong += lasting(disk, path, kind, number)  # type: ignore[arg-type]  # a literal
    return wrong


if __name__ == "__main__":
    sys.stdout.write("".join(f"{each}\n" for each in main(Path(sys.argv[1]))))
