"""A WAL is replayed only over the database file that it was written for."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from tavola.engine import Engine, StoreError, StoreMismatch, change_key
from tavola.engine.storage import files, open_file, wal_binding
from tests.durability.power import checkpoint_every

KEY = "correct horse"
TABLE = {
    "TableName": "items",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def open_store(path: Path, key: str | None = None) -> Engine:
    return Engine.open(path, sync="off", key=key)


def put(engine: Engine, *names: str) -> None:
    for name in names:
        engine.call("PutItem", {"TableName": "items", "Item": {"pk": {"S": name}, "v": {"S": name * 2000}}})


def names_in(path: Path, key: str | None = None) -> set[str]:
    with closing(open_store(path, key)) as engine:
        return {item["pk"]["S"] for item in engine.call("Scan", {"TableName": "items"})["Items"]}


def make(path: Path, *names: str, key: str | None = None) -> None:
    """Leave a closed store with these items."""
    with closing(open_store(path, key)) as engine:
        engine.call("CreateTable", TABLE)
        put(engine, *names)


def kill(path: Path, to: Path) -> Path:
    """Copy the files of an open store as a killed process would leave them."""
    to.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, to)
    return to / path.name


@pytest.fixture(params=[None, KEY], ids=["plain", "encrypted"])
def key(request: pytest.FixtureRequest) -> str | None:
    value: str | None = request.param
    return value


def test_a_killed_store_opens_with_all_that_was_written(tmp_path: Path, key: str | None) -> None:
    """I16: the file and its own WAL belong together, before and after checkpoints, and after several crashes."""
    path = tmp_path / "store.db"
    make(path, "first", key=key)
    expected = {"first"}
    with checkpoint_every(8):
        for round_ in range(4):
            with closing(open_store(path, key)) as engine:
                for number in range(12):
                    put(engine, f"{round_}-{number}")
                    expected.add(f"{round_}-{number}")
                    copied = kill(path, tmp_path / f"{round_}-{number}")
                    if number % 3 == 0:
                        assert names_in(copied, key) == expected
            path = kill(copied, tmp_path / f"next-{round_}")


def test_a_backup_copied_over_a_store_with_its_log_is_refused(tmp_path: Path, key: str | None) -> None:
    """I16: the refusal is a sentence, and neither file is changed; without the log, the backup opens as it was."""
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"
    make(path, "friday", key=key)
    shutil.copy(path, backup)
    with closing(open_store(path, key)) as engine:
        put(engine, "monday")
        killed = kill(path, tmp_path / "killed")
    shutil.copy(backup, killed)
    before = {file.name: file.read_bytes() for file in killed.parent.iterdir()}

    with pytest.raises(
        StoreMismatch, match=r"store\.db-wal belongs to another state of .*store\.db: .*replaced"
    ) as refused:
        open_store(killed, key)
    with pytest.raises(StoreError):
        change_key(str(killed), key, "another")

    assert "nothing was changed" in str(refused.value)
    assert {file.name: file.read_bytes() for file in killed.parent.iterdir()} == before
    Path(f"{killed}-wal").unlink()
    assert names_in(killed, key) == {"friday"}


def test_without_the_check_the_mixed_files_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted fault: the refused pair is one that SQLite would open, and the backup would be lost in it."""
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"
    make(path, "friday")
    shutil.copy(path, backup)
    with closing(open_store(path)) as engine:
        put(engine, "monday")
        killed = kill(path, tmp_path / "killed")
    shutil.copy(backup, killed)
    monkeypatch.setattr(files, "check_wal", lambda *_: None)

    assert names_in(killed) != {"friday"}


def test_a_checkpoint_of_the_same_session_is_another_state(tmp_path: Path) -> None:
    """I16: a copy of the file from before later checkpoints is refused as well, although the process was the same."""
    path = tmp_path / "store.db"
    make(path, "first")
    with checkpoint_every(8), closing(open_store(path)) as engine:
        early = tmp_path / "early.db"
        shutil.copy(path, early)
        put(engine, *(f"{number}" for number in range(60)))
        killed = kill(path, tmp_path / "killed")
    shutil.copy(early, killed)

    with pytest.raises(StoreMismatch):
        open_store(killed)


def test_the_log_of_another_store_is_refused(tmp_path: Path) -> None:
    """I16: a store does not take over the writes of a log that merely has its name."""
    mine, other = tmp_path / "mine.db", tmp_path / "other.db"
    make(mine, "mine")
    make(other, "other")
    with closing(open_store(other)) as engine:
        put(engine, "more")
        shutil.copy(f"{other}-wal", f"{mine}-wal")

    with pytest.raises(StoreMismatch):
        open_store(mine)


def test_a_log_without_its_file_is_not_deleted(tmp_path: Path) -> None:
    """SQLite deletes a log whose file is missing; the writes in it would be lost."""
    path = tmp_path / "store.db"
    make(path, "first")
    with closing(open_store(path)) as engine:
        put(engine, "second")
        killed = kill(path, tmp_path / "killed")
    content = killed.read_bytes()
    killed.unlink()

    with pytest.raises(StoreMismatch, match="missing or empty"):
        open_store(killed)

    killed.write_bytes(content)
    assert names_in(killed) == {"first", "second"}


def test_the_file_of_a_live_store_alone_opens_at_its_last_checkpoint(tmp_path: Path) -> None:
    """A copy without the log is complete in itself and lacks the writes that were in the log."""
    path, copied = tmp_path / "store.db", tmp_path / "copied.db"
    make(path, "first")
    with closing(open_store(path)) as engine:
        put(engine, "second")
        shutil.copy(path, copied)

    assert names_in(copied) == {"first"}


def test_a_log_of_an_earlier_version_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a number proves nothing, so its log is trusted, as it was by the version that wrote it."""
    path = tmp_path / "store.db"
    with monkeypatch.context() as earlier:
        earlier.setattr(open_file, "begin_wal", lambda _: None)
        earlier.setattr(wal_binding, "_bind_wal", lambda _: None)
        earlier.setattr(open_file, "end_wal", lambda _: None)
        make(path, "first")
        with checkpoint_every(8), closing(open_store(path)) as engine:
            put(engine, *(f"{number}" for number in range(20)))
            killed = kill(path, tmp_path / "killed")

    assert names_in(killed) == {"first", *(f"{number}" for number in range(20))}
    assert names_in(killed) == {"first", *(f"{number}" for number in range(20))}


def test_a_numbered_log_beside_a_file_of_an_earlier_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old backup without a number is recognized where the log changed the first page."""
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"
    with monkeypatch.context() as earlier:
        earlier.setattr(open_file, "begin_wal", lambda _: None)
        earlier.setattr(open_file, "end_wal", lambda _: None)
        make(path, "friday")
    shutil.copy(path, backup)
    with closing(open_store(path)) as engine:
        put(engine, *(f"{number}" for number in range(9)))
        killed = kill(path, tmp_path / "killed")
    shutil.copy(backup, killed)

    with pytest.raises(StoreMismatch):
        open_store(killed)


def test_a_checkpoint_without_its_number_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted fault: a store that forgets to write the number cannot be opened after a kill, and this suite sees it."""
    path = tmp_path / "store.db"
    make(path, "first")
    monkeypatch.setattr(wal_binding, "_bind_wal", lambda _: None)
    with checkpoint_every(8), closing(open_store(path)) as engine:
        put(engine, *(f"{number}" for number in range(60)))
        killed = kill(path, tmp_path / "killed")

    with pytest.raises(StoreMismatch):
        open_store(killed)


@pytest.mark.parametrize(
    "content", [b"", b"\x37" * 32, b"\x00" * 9000, None], ids=["empty", "torn", "zeros", "header"]
)
def test_a_log_without_a_commit_is_ignored_and_bound_anew(tmp_path: Path, content: bytes | None) -> None:
    """What a power cut leaves of a log that was begun again; a later kill leaves files that open."""
    path = tmp_path / "store.db"
    make(path, "first")
    with closing(open_store(path)) as engine:
        put(engine, "lost")
        header = Path(f"{path}-wal").read_bytes()[:32]
    Path(f"{path}-wal").write_bytes(header if content is None else content)
    with checkpoint_every(8), closing(open_store(path)) as engine:
        put(engine, *(f"{number}" for number in range(20)))
        killed = kill(path, tmp_path / "killed")

    assert names_in(killed) == {"first", "lost", *(f"{number}" for number in range(20))}


@pytest.mark.parametrize("salt", [0, 1, 0xFFFFFF, 0x1000000, 0xFFFFFFFF])
def test_the_number_wraps_around(tmp_path: Path, salt: int) -> None:
    """Every salt leaves the format readable and matches its own number."""
    path = tmp_path / "store.db"
    make(path, "first")
    connection = files.connect_file(str(path), None)
    wal_binding.write_binding(connection, salt)

    assert wal_binding.read_binding(connection) == salt & 0xFFFFFF
    connection.close()
    assert names_in(path) == {"first"}


def test_nothing_else_checkpoints_or_sets_the_version() -> None:
    """A checkpoint without the number makes a later crash look like mixed files; a bare version would erase the number."""
    folder = Path(wal_binding.__file__).parents[1]
    elsewhere = [
        file.name
        for file in folder.rglob("*.py")
        if file.name != "wal_binding.py"
        if "wal_checkpoint(" in file.read_text() or '"user_version"' in file.read_text()
    ]

    assert elsewhere == []


def test_an_older_copy_of_a_log_does_not_fit_the_closed_file(tmp_path: Path, key: str | None) -> None:
    """I16: a log that was copied while the store was open is refused beside a copy of the file after it was closed."""
    path = tmp_path / "store.db"
    make(path, "monday", key=key)
    with closing(open_store(path, key)) as engine:
        put(engine, "tuesday")
        copied = kill(path, tmp_path / "copied")
        put(engine, "wednesday")
    shutil.copy(path, copied)

    with pytest.raises(StoreMismatch, match="belongs to another state"):
        open_store(copied, key)
    Path(f"{copied}-wal").unlink()
    assert names_in(copied, key) == {"monday", "tuesday", "wednesday"}
