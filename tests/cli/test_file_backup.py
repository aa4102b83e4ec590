"""`tavola backup FILE TO`: a database file is copied whether or not it is in use."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tavola.cli.errors import Exit
from tavola.engine import Engine
from tests.command_line import invoked, printed_json
from tests.durability.serving import serving
from tests.durability.test_wal_binding import KEY, TABLE, make, names_in, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database file that no one has open."""
    path = tmp_path / "shop.db"
    make(path, "one")
    return path


def test_a_closed_file_is_backed_up(path: Path, tmp_path: Path) -> None:
    """The result names both files and the size; standard error is quiet without a terminal."""
    copy = tmp_path / "copy.db"

    result = invoked("backup", str(path), str(copy))

    assert (result.exit_code, result.stderr) == (Exit.OK, "")
    assert result.stdout == f"Backed up {path} to {copy}: {copy.stat().st_size // 1024} KB, verified.\n"
    assert names_in(copy) == {"one"}


def test_the_result_as_json(path: Path, tmp_path: Path) -> None:
    """The long form is the same command."""
    copy = tmp_path / "copy.db"

    printed = printed_json("backup", "file", str(path), str(copy))

    assert printed == {
        "schema": "tavola.file-backup/1",
        "file": str(path),
        "backup": str(copy),
        "bytes": copy.stat().st_size,
    }


def test_a_file_that_this_process_uses_is_backed_up(path: Path, tmp_path: Path) -> None:
    """What was confirmed before the command is in the copy, though it is only in the log."""
    with closing(Engine.open(path)) as engine:
        put(engine, "two")

        assert invoked("backup", str(path), str(tmp_path / "copy.db")).exit_code == Exit.OK
    assert names_in(tmp_path / "copy.db") == {"one", "two"}


@pytest.mark.slow
def test_a_file_that_is_served_is_backed_up(tmp_path: Path) -> None:
    """I18 over HTTP: the server goes on; an acknowledged write from before the command is in the copy."""
    path, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    with serving(str(path)) as ask:
        ask("CreateTable", TABLE)
        ask("PutItem", {"TableName": "items", "Item": {"pk": {"S": "before"}}})

        assert invoked("backup", str(path), str(copy)).exit_code == Exit.OK
        ask("PutItem", {"TableName": "items", "Item": {"pk": {"S": "after"}}})
    assert names_in(copy) == {"before"}
    assert names_in(path) == {"before", "after"}


def test_an_encrypted_file_stays_encrypted(tmp_path: Path) -> None:
    """Its key is needed, because the copy is verified."""
    path, copy, key_file = tmp_path / "shop.db", tmp_path / "copy.db", tmp_path / "key"
    make(path, "one", key=KEY)
    key_file.write_text(KEY)

    refused = invoked("backup", str(path), str(copy))
    result = invoked("backup", str(path), str(copy), "--key-file", str(key_file))

    assert refused.exit_code == Exit.FAILED
    assert "key" in refused.stderr
    assert result.exit_code == Exit.OK
    assert names_in(copy, KEY) == {"one"}


def test_an_existing_file_is_replaced_only_with_force(path: Path, tmp_path: Path) -> None:
    """The refusal names the option."""
    copy = tmp_path / "copy.db"
    copy.write_text("precious")

    refused = invoked("backup", str(path), str(copy))

    assert refused.exit_code == Exit.CONFLICT
    assert "--force" in refused.stderr
    assert copy.read_text() == "precious"
    assert invoked("backup", str(path), str(copy), "--force").exit_code == Exit.OK
    assert names_in(copy) == {"one"}


def test_what_cannot_be_backed_up_is_said(path: Path, tmp_path: Path) -> None:
    """A file or a folder that does not exist, and a folder instead of a file."""
    assert invoked("backup", str(tmp_path / "nope.db"), "x.db").exit_code == Exit.NOT_FOUND
    assert invoked("backup", str(path), str(tmp_path / "nowhere" / "x.db")).exit_code == Exit.NOT_FOUND
    into_folder = invoked("backup", str(path), str(tmp_path))
    assert into_folder.exit_code == Exit.USAGE
    assert str(tmp_path / "shop.db") in into_folder.stderr


def test_a_word_is_a_command_unless_there_is_such_a_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typing error is still answered with the right name, and a file may have a short name."""
    monkeypatch.chdir(tmp_path)
    path.rename(tmp_path / "shop")

    assert "Did you mean 'create'" in invoked("backup", "crate", "copy.db").stderr
    assert invoked("backup", "shop", "copy.db").exit_code == Exit.OK


def test_a_mixed_file_and_log_is_refused_with_a_sentence(path: Path) -> None:
    """`tavola verify` and every other command say what to do."""
    other = path.with_name("other.db")
    make(other, "other")
    with closing(Engine.open(other)) as engine:
        put(engine, "more")
        Path(f"{path}-wal").write_bytes(Path(f"{other}-wal").read_bytes())

    result = invoked("verify", str(path))

    assert result.exit_code == Exit.FAILED
    assert "belongs to another state" in result.stderr
    assert f"move {path}-wal away" in result.stderr
