"""Whose file it is: one engine at a time, and only a Tavola store."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from tavola.engine import Engine, StoreDamaged, StoreError, StoreInUse
from tavola.engine.storage import StoreForeign

ROOT = Path(__file__).parents[2]

HOLDER = """
import sys
from tavola.engine import Engine
engine = Engine.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def test_a_file_that_another_process_has_open_is_refused(tmp_path: Path) -> None:
    """A second process is reported so in a sentence, and may have the file once the first is gone."""
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT / "src")}
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"

        with pytest.raises(StoreInUse, match=r"store\.db is already open, here or in another process"):
            Engine.open(path)
        holder.kill()
    Engine.open(path).close()


def test_a_file_that_this_process_has_open_is_refused(tmp_path: Path) -> None:
    """Two engines of one process cannot own one file either, also when opened by two threads at once."""
    path = tmp_path / "store.db"
    opened: list[Engine] = []
    refused: list[StoreError] = []

    def open_it() -> None:
        try:
            opened.append(Engine.open(path))
        except StoreInUse as error:
            refused.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(opened), len(refused)) == (1, 3)
    opened[0].close()
    Engine.open(path).close()


def test_a_refused_opening_gives_the_file_to_no_one(tmp_path: Path) -> None:
    """A second opening in this process leaves the first one's lock in place against other processes.

    The locks of a file belong to the process, and end when it closes any handle of that file.
    """
    path = tmp_path / "store.db"
    with Engine.open(path):
        with pytest.raises(StoreInUse):
            Engine.open(path)
        command = [sys.executable, "-c", HOLDER, str(path)]
        other = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={"PYTHONPATH": str(ROOT / "src")},
            check=False,
        )

        assert b"StoreInUse" in other.stderr
        assert other.stdout == b""


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"not a database, but long enough to be read as one" * 100, StoreForeign),
        (b"\x00" * 8192, StoreError),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, kind: type[StoreError]
) -> None:
    """A file that is something else is distinguished, and not a byte of it is changed."""
    path = tmp_path / "other.db"
    path.write_bytes(content)

    with pytest.raises(kind, match=r"."):
        Engine.open(path)
    assert path.read_bytes() == content


def test_someone_elses_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An SQLite database of another program is not turned into a store."""
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text); PRAGMA user_version = 3")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match="not a Tavola database file"):
        Engine.open(path)
    assert path.read_bytes() == before


def test_an_unversioned_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A database with tables but no version, as most programs leave it, is not taken for an empty store."""
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match="not a Tavola database file"):
        Engine.open(path)
    assert path.read_bytes() == before


def test_every_page_of_a_store_has_room_for_its_checksum(tmp_path: Path) -> None:
    """Byte 20 of the header says how much of a page is set apart; without 8 nothing is verified."""
    path = tmp_path / "store.db"
    Engine.open(path).close()
    data = bytearray(path.read_bytes())

    assert data[20] == 8
    data[20] = 0
    path.write_bytes(data)
    with pytest.raises(StoreDamaged):
        Engine.open(path)


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """The sentence says what to check."""
    with pytest.raises(StoreError, match="check that its folder exists"):
        Engine.open(tmp_path / "nowhere" / "store.db")


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """The sentence says what to check: permissions, or a mount that is read-only."""
    path = tmp_path / "store.db"
    Engine.open(path).close()
    mount = f'mount --bind -o ro "{tmp_path}" "{tmp_path}" && mount -o remount,bind,ro "{tmp_path}" || exit 77; exec "$@"'
    program = "import sys; from tavola.engine import Engine; Engine.open(sys.argv[1])"
    try:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", mount, "sh", sys.executable, "-c", program, str(path)],
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("nothing can be mounted here")

    assert (
        "store.db cannot be written; check its permissions, and that its file system is not mounted"
        in done.stderr
    )
