"""`tavola rekey` is killed with SIGKILL between any two of its steps, and while it rewrites the copy.

The process counts the calls that the storage layer makes to C (SQLite and the operating system) and kills itself before
the n-th. The longest of them rewrites the pages; in the middle of that one, when its journal exists, the test kills.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tavola.engine import Engine, StoreDamaged, StoreError, StoreLocked

FIRST, SECOND = "correct horse", "battery staple"
MOMENTS = 8  # of each kind of change, spread evenly over its calls
ROWS = 300
DONE, KILLED = 0, -signal.SIGKILL
PROGRAM = """
import os, signal, sys
from tavola.cli.main import app
from tavola.engine.storage import files
count, last = 0, int(sys.argv[1])
if sys.argv[2] == "in place":
    def overwrite(copy, path):
        content = open(copy, "rb").read()
        with open(path, "r+b", buffering=0) as target:
            target.write(content[:len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
    os.replace = overwrite
def kill(frame, event, called):
    global count
    if event == "c_call" and frame.f_code.co_filename == files.__file__:
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(kill)
try:
    app.main(["rekey", *sys.argv[3:]])
finally:
    sys.setprofile(None)
    print(count, file=sys.stderr)
"""
CHANGES = {"encrypt": (None, FIRST), "change": (FIRST, SECOND), "decrypt": (FIRST, None)}


@pytest.fixture(scope="module", params=CHANGES)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str | None, str | None]:
    """A store to be copied, its key and the new one."""
    old, new = CHANGES[request.param]
    path = tmp_path_factory.mktemp("rekey") / "store.db"
    with closing(Engine.open(path, key=old, sync="off")) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "Vault",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    put(path, old, range(ROWS))
    return path, old, new


def put(path: Path, key: str | None, numbers: range) -> None:
    with closing(Engine.open(path, key=key, sync="off")) as engine:
        for number in numbers:
            item = {"pk": {"S": f"{number:04}"}, "v": {"S": str(number) * 2000}}
            engine.call("PutItem", {"TableName": "Vault", "Item": item})


def count_rows(path: Path, key: str | None) -> int:
    """Return how many whole items a store has; every item and index is read."""
    count, start = 0, dict[str, Any]()
    with closing(Engine.open(path, key=key, sync="off")) as engine:
        while True:
            page = engine.call("Scan", {"TableName": "Vault", **start})
            count += len(
                [None for item in page["Items"] if item["v"]["S"] == str(int(item["pk"]["S"])) * 2000]
            )
            if "LastEvaluatedKey" not in page:
                return count
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def start_rekey(
    path: Path, old: str | None, new: str | None, call: int = 0, plant: str = ""
) -> subprocess.Popen[str]:
    """Start the command; it kills itself before its n-th call, or never for 0."""
    words = [str(path)] + (["--decrypt"] if new is None else [])
    for option, key in (("--key-file", old), ("--new-key-file", new)):
        if key is not None:
            (path.parent / option.strip("-")).write_text(key)
            words += [option, str(path.parent / option.strip("-"))]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(call), plant, *words], stderr=subprocess.PIPE, text=True
    )


def rekey(path: Path, old: str | None, new: str | None, call: int = 0, plant: str = "") -> tuple[int, str]:
    """Run the command; return its exit code and what it wrote to standard error."""
    with start_rekey(path, old, new, call, plant) as process:
        errors = process.communicate(timeout=50)[1]
    return process.returncode, errors


def kill_in_the_middle(path: Path, old: str | None, new: str | None) -> int:
    """Kill the command as soon as the journal of the copy has pages; return its exit code."""
    journal = Path(f"{path}.rekeyed-journal")
    with start_rekey(path, old, new) as process:
        while process.poll() is None:
            if journal.is_file() and journal.stat().st_size > 64 * 1024:
                process.kill()
                break
    return process.returncode


def keys_that_open(path: Path, *keys: str | None) -> Iterator[str | None]:
    """Yield each key under which the store opens with all of its items."""
    for key in keys:
        try:
            assert count_rows(path, key) == ROWS, "items are lost"
        except (StoreLocked, StoreDamaged):
            continue
        yield key


def check_after_kill(path: Path, old: str | None, new: str | None) -> bool:
    """Check the store and complete the command; return whether the kill came before the new key."""
    keys = list(keys_that_open(path, old, new))
    assert keys in ([old], [new])
    if keys == [new]:
        return False
    put(path, old, range(ROWS, ROWS + 20))  # the store is used meanwhile
    put(path, old, range(20))
    code, errors = rekey(path, old, new)
    assert code == DONE, errors
    assert count_rows(path, new) == ROWS + 20
    assert [each.name for each in path.parent.glob(f"{path.name}.rekeyed*")] == []
    return True


@pytest.mark.slow
def test_a_killed_rekey_leaves_the_old_or_the_new_key(
    case: tuple[Path, str | None, str | None], tmp_path: Path
) -> None:
    """I19: whichever call is the last one, every item is there under one key, and the command can be repeated."""
    source, old, new = case
    path = tmp_path / "whole.db"
    shutil.copy(source, path)
    code, errors = rekey(path, old, new)
    assert code == DONE, errors
    calls = int(errors.split()[-1])

    outcomes = set()
    for moment in range(MOMENTS + 1):
        path = tmp_path / f"{moment}.db"
        shutil.copy(source, path)
        assert rekey(path, old, new, 1 + (calls - 1) * moment // MOMENTS)[0] == KILLED
        outcomes.add(check_after_kill(path, old, new))

    assert outcomes == {True, False}, "killed before and after the change"


@pytest.mark.slow
def test_a_rekey_killed_while_it_rewrites_pages_leaves_the_old_key(
    case: tuple[Path, str | None, str | None], tmp_path: Path
) -> None:
    """I19: the unfinished copy and its journal have no effect on the store or on the next attempt."""
    source, old, new = case
    path = tmp_path / "store.db"
    shutil.copy(source, path)

    assert kill_in_the_middle(path, old, new) == KILLED
    assert Path(f"{path}.rekeyed-journal").stat().st_size
    assert check_after_kill(path, old, new)


@pytest.mark.slow
def test_a_rekey_that_overwrites_the_file_is_found(
    case: tuple[Path, str | None, str | None], tmp_path: Path
) -> None:
    """A planted fault: a command that copies the new pages into the file leaves pages of both keys."""
    source, old, new = case
    path = tmp_path / "store.db"
    shutil.copy(source, path)

    assert rekey(path, old, new, plant="in place")[0] == KILLED
    with pytest.raises((AssertionError, StoreError)):
        check_after_kill(path, old, new)
