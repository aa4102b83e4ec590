"""Backups of a file: consistent while it is written, verified, and complete or not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from stat import S_IMODE

import pytest

from tavola.engine import (
    Engine,
    FileBackupExists,
    FileBackupFailed,
    StoreDamaged,
    StoreError,
    StoreInUse,
    StoreLocked,
    StoreMismatch,
    back_up_file,
)
from tavola.engine.storage import file_backups, open_file, wal_binding
from tests.durability.power import checkpoint_every
from tests.durability.test_wal_binding import KEY, kill, make, names_in, open_store, put

ROOT = Path(__file__).parents[2]
SLOW = 1.0  # bytes per second: every chunk pauses


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy a page at a time, so that a test can do something between two pages."""
    monkeypatch.setattr(file_backups, "_CHUNK_BYTES", 4096)


@pytest.fixture(params=[None, KEY], ids=["plain", "encrypted"])
def key(request: pytest.FixtureRequest) -> str | None:
    value: str | None = request.param
    return value


class Writer:
    """Puts an item in each pause of a copy, and remembers their names in order."""

    def __init__(self, engine: Engine, pauses: int | None = None) -> None:
        self.engine = engine
        self.names: list[str] = []
        self.pauses = pauses  # after which it stops writing

    def __call__(self, _: float) -> None:
        if self.pauses is None or len(self.names) < self.pauses:
            name = f"during-{len(self.names)}"
            put(self.engine, name)
            self.names.append(name)


def test_a_closed_file_is_copied(tmp_path: Path, key: str | None) -> None:
    """The copy opens with the same key and has the same content; nothing else is left beside it."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, "one", "two", key=key)
    before = path.read_bytes()

    size = back_up_file(str(path), str(copy), key)

    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "store.db"]
    assert size == copy.stat().st_size
    assert S_IMODE(copy.stat().st_mode) == 0o600
    assert names_in(copy, key) == {"one", "two"}


def test_a_file_that_is_written_meanwhile_is_copied_as_of_one_moment(tmp_path: Path, key: str | None) -> None:
    """I18: every write from before is in it, and of those during the copy all up to one; the writer's checkpoints wait."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)), key=key)
    with checkpoint_every(8), closing(open_store(path, key)) as engine:
        put(engine, "before")
        writer = Writer(engine)

        back_up_file(str(path), str(copy), key, bytes_per_s=SLOW, pause=writer)

        assert len(writer.names) > 20
        put(engine, "after")
    found = names_in(copy, key)
    assert found == {*(f"{number}" for number in range(40)), "before", *writer.names}
    assert names_in(path, key) == {*found, "after"}


def test_checkpoints_go_on_when_the_backup_has_ended(tmp_path: Path) -> None:
    """The log starts over with the next commit."""
    path = tmp_path / "store.db"
    make(path, "first")
    with checkpoint_every(8), closing(open_store(path)) as engine:
        back_up_file(str(path), str(tmp_path / "copy.db"), bytes_per_s=SLOW, pause=Writer(engine))
        held = wal_binding.read_wal_header(f"{path}-wal")
        put(engine, "one", "two")

        assert wal_binding.read_wal_header(f"{path}-wal") != held


def _ignore_backups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_file, "is_being_backed_up", lambda _: False)


def test_a_checkpoint_during_the_copy_makes_it_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that does not wait, as an earlier version, is noticed, and the copy is right once it pauses."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)))
    _ignore_backups(monkeypatch)
    with checkpoint_every(8), closing(open_store(path)) as engine:
        put(engine, "before")
        writer = Writer(engine, pauses=3)

        back_up_file(str(path), str(copy), bytes_per_s=SLOW, pause=writer)

        assert names_in(copy) == {*(f"{number}" for number in range(40)), "before", *writer.names}


def test_a_writer_that_never_waits_makes_the_backup_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal says why, and leaves nothing."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)))
    _ignore_backups(monkeypatch)
    with checkpoint_every(8), closing(open_store(path)) as engine:
        with pytest.raises(FileBackupFailed, match="written so fast"):
            back_up_file(str(path), str(copy), bytes_per_s=SLOW, pause=Writer(engine))

    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def test_without_the_comparison_of_the_log_the_copy_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted fault: a copy that goes on after a checkpoint is refused at its end, or lacks writes."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)))
    _ignore_backups(monkeypatch)
    state = file_backups._WalState
    with checkpoint_every(8), closing(open_store(path)) as engine:
        put(engine, "before")
        fixed = state.read(f"{path}-wal")
        monkeypatch.setattr(state, "read", lambda _: fixed)
        writer = Writer(engine, pauses=20)
        try:
            back_up_file(str(path), str(copy), bytes_per_s=SLOW, pause=writer)
        except (StoreMismatch, StoreDamaged):
            return
        assert names_in(copy) != {*(f"{number}" for number in range(40)), "before", *writer.names}


def test_a_log_that_grows_too_long_ends_the_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints cannot wait for ever, since each takes the longer the later it comes."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)))
    monkeypatch.setattr(open_file, "HELD_WAL_BYTES_MAX", 16 * 4096)
    with checkpoint_every(8), closing(open_store(path)) as engine:
        with pytest.raises(FileBackupFailed):
            back_up_file(str(path), str(copy), bytes_per_s=SLOW, pause=Writer(engine))


@pytest.mark.parametrize("then", ["close", "reopen"])
def test_a_file_that_is_closed_meanwhile_is_copied_again(tmp_path: Path, then: str) -> None:
    """Closing deletes the log, and opening begins another one."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)))
    engines = [open_store(path)]
    put(engines[0], "second")

    def restart(_: float) -> None:
        if len(engines) == 1:
            engines[0].close()
            engines.append(engines[0] if then == "close" else open_store(path))
            if then == "reopen":
                put(engines[1], "third")

    back_up_file(str(path), str(copy), bytes_per_s=SLOW, pause=restart)
    engines[1].close()

    expected = {*(f"{number}" for number in range(40)), "second"}
    assert names_in(copy) == (expected | {"third"} if then == "reopen" else expected)


def test_a_program_that_comes_and_goes_during_the_copy_is_noticed(tmp_path: Path) -> None:
    """Before and after it there is no log, but the file has changed in between."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)))
    visits: list[str] = []

    def visit(_: float) -> None:
        if not visits:
            visits.append("visit")
            with closing(open_store(path)) as engine:
                put(engine, *visits)

    back_up_file(str(path), str(copy), bytes_per_s=SLOW, pause=visit)

    assert names_in(copy) == {*(f"{number}" for number in range(40)), "visit"}


def test_an_existing_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    """A replaced file keeps its mode; a file is never backed up over itself."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, "one")
    copy.write_bytes(b"precious")
    copy.chmod(0o640)

    with pytest.raises(FileBackupExists):
        back_up_file(str(path), str(copy))
    with pytest.raises(FileBackupExists, match="the file itself"):
        back_up_file(str(path), str(path), replace=True)
    assert copy.read_bytes() == b"precious"

    back_up_file(str(path), str(copy), replace=True)
    assert S_IMODE(copy.stat().st_mode) == 0o640
    assert names_in(copy) == {"one"}


def test_a_damaged_file_is_not_backed_up(tmp_path: Path) -> None:
    """I18: the page is found while there is still a good backup to keep."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, *(f"{number}" for number in range(40)))
    content = bytearray(path.read_bytes())
    content[-2000] ^= 1
    path.write_bytes(content)

    with pytest.raises(StoreDamaged):
        back_up_file(str(path), str(copy))
    assert not copy.exists()


def test_an_encrypted_file_needs_its_key(tmp_path: Path) -> None:
    """A copy that cannot be verified is not a backup."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, "one", key=KEY)

    with pytest.raises(StoreLocked):
        back_up_file(str(path), str(copy), "wrong")
    with pytest.raises(StoreDamaged, match="pass its key"):
        back_up_file(str(path), str(copy))
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def test_the_log_of_the_original_is_not_replayed_over_a_backup(tmp_path: Path) -> None:
    """Also right after the backup, when the log would still fit: the backup is the earlier state on purpose."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, "one")
    with closing(open_store(path)) as engine:
        put(engine, "two")
        back_up_file(str(path), str(copy))
        put(engine, "three")
        killed = kill(path, tmp_path / "killed")
    shutil.copy(copy, killed)

    with pytest.raises(StoreMismatch):
        open_store(killed)


def test_one_backup_of_a_file_at_a_time(tmp_path: Path) -> None:
    """A second one is refused; the lock of one that was killed holds no checkpoint back."""
    path = tmp_path / "store.db"
    make(path, "one")
    lock = Path(f"{path}-backup")
    refused: list[str] = []

    def begin_another(_: float) -> None:
        with pytest.raises(StoreInUse) as error:
            back_up_file(str(path), str(tmp_path / "other.db"))
        refused.append(str(error.value))
        assert file_backups.is_being_backed_up(str(path))

    back_up_file(str(path), str(tmp_path / "copy.db"), bytes_per_s=SLOW, pause=begin_another)

    assert "another backup" in refused[0]
    assert not lock.exists()
    lock.touch()
    assert not file_backups.is_being_backed_up(str(path))


def test_a_backup_within_the_process_keeps_its_locks(tmp_path: Path) -> None:
    """Reading the file by other means would let another process open it."""
    path = tmp_path / "store.db"
    make(path, "one")
    with closing(open_store(path)):
        back_up_file(str(path), str(tmp_path / "copy.db"))
        program = "import sys; from tavola.engine import Engine; Engine.open(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env={"PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert "StoreInUse" in other.stderr


def test_the_copy_keeps_to_its_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause is as long as a chunk should take, and a long log ends the pauses."""
    path = tmp_path / "store.db"
    make(path, *(f"{number}" for number in range(40)))
    pages = path.stat().st_size // 4096
    pauses: list[float] = []
    monkeypatch.setattr(file_backups, "monotonic", lambda: 0.0)

    back_up_file(str(path), str(tmp_path / "copy.db"), bytes_per_s=4096.0, pause=pauses.append)

    assert pauses == [float(number) for number in range(1, pages + 1)]
    with closing(open_store(path)) as engine:
        put(engine, "more")
        monkeypatch.setattr(file_backups, "HURRY_WAL_BYTES", 4096)
        pauses.clear()
        back_up_file(str(path), str(tmp_path / "other.db"), bytes_per_s=4096.0, pause=pauses.append)
    assert pauses == []


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    """The message names the file that cannot be written."""
    path = tmp_path / "store.db"
    make(path, "one")

    with pytest.raises(FileBackupFailed, match=r"cannot be copied to .*nowhere.copy\.db: No such file"):
        back_up_file(str(path), str(tmp_path / "nowhere" / "copy.db"))


def test_a_log_that_an_earlier_attempt_copied_is_not_replayed(tmp_path: Path, key: str | None) -> None:
    """I18: the store is closed while its log is copied, so the next attempt copies a file without a log."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, "one", key=key)
    engine = open_store(path, key)
    put(engine, "two")

    def close_while_the_log_is_copied(_done: int, _total: int) -> None:
        if Path(f"{copy}.part-wal").exists() and not engine.closed:
            put(engine, "three")
            engine.close()

    back_up_file(str(path), str(copy), key, progress=close_while_the_log_is_copied)

    assert engine.closed
    assert names_in(copy, key) == {"one", "two", "three"}


def test_what_a_killed_backup_left_is_not_replayed(tmp_path: Path, key: str | None) -> None:
    """I18: an old log beside the new copy is removed before the copy is opened."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, "one", key=key)
    with closing(open_store(path, key)) as engine:
        put(engine, "two")
        shutil.copy(f"{path}-wal", f"{copy}.part-wal")
        put(engine, "three")

    back_up_file(str(path), str(copy), key)

    assert names_in(copy, key) == {"one", "two", "three"}


@pytest.mark.parametrize("damage", ["delete the log", "replace the file and its log", "empty the log"])
def test_what_a_process_no_longer_owns_is_not_backed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """I18: the backup waits until the process that has the file open has looked at it, and a good backup stays."""
    monkeypatch.setattr("tavola.engine.engine._FILE_CHECK_S", 0.0)
    path, copy, other = tmp_path / "store.db", tmp_path / "copy.db", tmp_path / "other.db"
    make(path, "one")
    make(other, "foreign")
    back_up_file(str(path), str(copy))
    good = copy.read_bytes()
    with closing(open_store(path)) as engine:
        put(engine, "two")
        log = Path(f"{path}-wal")
        if damage == "empty the log":
            os.truncate(log, 0)
        else:
            log.unlink()
        if damage == "replace the file and its log":
            os.replace(other, path)

        def look(_: float) -> None:
            engine.run_background_work()

        if damage == "replace the file and its log":
            look(0.0)  # the other file is not in use
        with pytest.raises(StoreError, match="no backup was written"):
            back_up_file(str(path), str(copy), replace=True, pause=look)

    assert copy.read_bytes() == good
    assert not Path(f"{path}-failed").exists()


def test_the_mark_of_a_killed_process_is_ignored(tmp_path: Path) -> None:
    """Its lock has ended with it."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    make(path, "one")
    Path(f"{path}-failed").write_text("store.db was replaced")

    back_up_file(str(path), str(copy))

    assert names_in(copy) == {"one"}
