"""Files of an open store that another program deletes, replaces or changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tavola.engine import Engine, StoreMismatch
from tavola.engine.storage import file_watch, open_file
from tavola.protocol.faults import InternalServerFault
from tests.durability.power import checkpoint_every
from tests.durability.test_wal_binding import make, names_in, open_store, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with one item, and a backup of it beside it."""
    path = tmp_path / "store.db"
    make(path, "first")
    shutil.copy(path, tmp_path / "backup.db")
    return path


@pytest.fixture(autouse=True)
def always_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check before every commit, so that no test waits for the interval."""
    monkeypatch.setattr(open_file, "_CHECK_INTERVAL_S", 0.0)


def _delete(path: Path) -> None:
    path.unlink()


def _move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def _replace(path: Path) -> None:
    other = path.with_name("other.db")
    shutil.copy(path.with_name("backup.db"), other)
    os.replace(other, path)


def _delete_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def _replace_log(path: Path) -> None:
    log = Path(f"{path}-wal")
    other = log.with_name("other-wal")
    shutil.copy(log, other)
    os.replace(other, log)


def _overwrite(path: Path) -> None:
    shutil.copyfile(path.with_name("backup.db"), path)


def _truncate(path: Path) -> None:
    os.truncate(path, 4096)


def _truncate_log(path: Path) -> None:
    os.truncate(f"{path}-wal", 32)


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        (_delete, r"store\.db was deleted or moved away"),
        (_move, r"store\.db was deleted or moved away"),
        (_replace, r"store\.db was replaced by another file"),
        (_delete_log, r"store\.db-wal was deleted or moved away"),
        (_replace_log, r"store\.db-wal was replaced by another file"),
    ],
)
def test_writes_stop_when_a_name_leads_elsewhere(
    path: Path, damage: Callable[[Path], None], how: str
) -> None:
    """I15: every later write is refused with one sentence, and reads continue from the file that is still open."""
    with closing(open_store(path)) as engine:
        put(engine, "second")
        damage(path)

        for _ in range(3):
            with pytest.raises(InternalServerFault, match=how):
                put(engine, "third")
        assert engine.unready_reason is not None
        assert "start again" in engine.unready_reason
        found = engine.call("Scan", {"TableName": "items"})["Items"]
    assert {item["pk"]["S"] for item in found} == {"first", "second"}


def test_closing_saves_what_a_deleted_log_contained(path: Path) -> None:
    """I15: if only the log's name is gone, the file is the right one, and gets the pages of the log."""
    with closing(open_store(path)) as engine:
        put(engine, "second")
        _delete_log(path)
        with pytest.raises(InternalServerFault, match="moves what its log contains into the file"):
            put(engine, "third")

    assert names_in(path) == {"first", "second"}


def test_closing_does_not_touch_a_file_that_changed_beside_a_deleted_log(path: Path) -> None:
    """I15: the pages of the log belong to another file."""
    with closing(open_store(path)) as engine:
        put(engine, "second")
        _delete_log(path)
        _overwrite(path)

    assert path.read_bytes() == path.with_name("backup.db").read_bytes()


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        (_overwrite, r"store\.db was (truncated or )?overwritten"),
        (_truncate, r"store\.db was truncated or overwritten"),
        (_truncate_log, r"store\.db-wal was truncated"),
    ],
)
def test_reads_stop_too_when_the_content_was_changed(
    path: Path, damage: Callable[[Path], None], how: str
) -> None:
    """I15: the pages of two states could be mixed in an answer."""
    with closing(open_store(path)) as engine:
        put(engine, "second")
        damage(path)

        with pytest.raises(InternalServerFault, match=how):
            put(engine, "third")
        with pytest.raises(InternalServerFault, match=how):
            engine.call("Scan", {"TableName": "items"})


def test_a_backup_written_over_an_open_store_is_not_damaged_by_closing_it(path: Path) -> None:
    """The log stays where it is, so nothing of it gets into the backup; the next opening says what to do."""
    engine = open_store(path)
    put(engine, "second")
    _overwrite(path)
    engine.close()

    assert path.read_bytes() == path.with_name("backup.db").read_bytes()
    with pytest.raises(StoreMismatch):
        open_store(path)
    Path(f"{path}-wal").unlink()
    assert names_in(path) == {"first"}


def test_a_checkpoint_does_not_write_into_a_foreign_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I15: the files are checked before each checkpoint, also if the interval has not passed."""
    monkeypatch.setattr(open_file, "_CHECK_INTERVAL_S", 3600.0)
    with checkpoint_every(30), closing(open_store(path)) as engine:
        put(engine, "second")
        _overwrite(path)
        with pytest.raises(InternalServerFault, match="overwritten"):
            put(engine, *(f"{number}" for number in range(60)))

        assert path.read_bytes() == path.with_name("backup.db").read_bytes()


def test_putting_the_file_back_needs_a_new_start(path: Path) -> None:
    """Writes stay refused; an engine that opens the file again has all that was confirmed."""
    with closing(open_store(path)) as engine:
        put(engine, "second")
        _move(path)
        with pytest.raises(InternalServerFault):
            put(engine, "third")
        path.with_name("elsewhere.db").rename(path)

        with pytest.raises(InternalServerFault, match="moved away"):
            put(engine, "third")
    assert names_in(path) == {"first", "second"}


def test_background_work_notices_without_a_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that only answers reads becomes unready as well."""
    monkeypatch.setattr("tavola.engine.engine._FILE_CHECK_S", 0.0)
    with closing(open_store(path)) as engine:
        engine.run_background_work()
        before = engine.unready_reason
        _delete(path)
        engine.run_background_work()

        assert before is None
        assert "store.db was deleted" in str(engine.unready_reason)


def test_own_checkpoints_are_no_change(path: Path) -> None:
    """No write of the store itself is taken for damage."""
    with checkpoint_every(8), closing(open_store(path)) as engine:
        put(engine, *(f"{number}" for number in range(200)))

        assert engine.unready_reason is None
    assert len(names_in(path)) == 201


@pytest.fixture
def inspections(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The WAL pages of each inspection of the files."""
    seen: list[int] = []
    inspect = file_watch.FileWatch._inspect

    def count(watch: file_watch.FileWatch, wal_pages: int) -> object:
        seen.append(wal_pages)
        return inspect(watch, wal_pages)

    monkeypatch.setattr(file_watch.FileWatch, "_inspect", count)
    return seen


def test_commits_within_the_interval_do_not_inspect_the_files(
    path: Path, monkeypatch: pytest.MonkeyPatch, inspections: list[int]
) -> None:
    """A check costs system calls, so only the first commit of an interval pays for it."""
    monkeypatch.setattr(open_file, "_CHECK_INTERVAL_S", 3600.0)
    with closing(open_store(path)) as engine:
        put(engine, *(f"{number}" for number in range(50)))

        assert len(inspections) == 1


def test_without_the_check_a_deleted_file_is_not_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a store that does not look confirms writes that are lost."""
    monkeypatch.setattr(open_file.OpenFile, "check", lambda _: None)
    with closing(open_store(path)) as engine:
        _delete(path)
        put(engine, "second")

    assert not path.exists()


def test_an_unreadable_folder_proves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store whose folder cannot be inspected now goes on: its files are still open."""
    with closing(open_store(path)) as engine:

        def refuse(_: object) -> os.stat_result:
            raise PermissionError("planted")

        with monkeypatch.context() as blind:
            blind.setattr(os, "stat", refuse)
            put(engine, "second")
    assert names_in(path) == {"first", "second"}


def test_an_engine_in_memory_has_no_file_to_watch() -> None:
    """It is always ready."""
    with closing(Engine.open()) as engine:
        engine.run_background_work()

        assert engine.unready_reason is None
