"""The key of a store: from a file, a command or the environment, one of them, never empty."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tavola.cli.errors import CommandError
from tavola.cli.keys import read_store_key
from tavola.cli.main import app
from tavola.engine import Engine, StoreLocked


def test_without_any_there_is_none() -> None:
    """A store is in clear unless somebody asks for more."""
    assert read_store_key(None, None, None) is None


def test_a_key_comes_from_each_place(tmp_path: Path) -> None:
    """A file's line end and a command's are not part of the key; blanks in it are."""
    kept = tmp_path / "key"
    kept.write_text(" two words \n")

    assert read_store_key(kept, None, None) == " two words "
    assert read_store_key(None, f"{sys.executable} -c 'print(\"from a command\")'", None) == "from a command"
    assert read_store_key(None, None, "from outside") == "from outside"


def test_two_keys_are_refused(tmp_path: Path) -> None:
    """Which of two is meant is not guessed."""
    with pytest.raises(CommandError, match="more than once"):
        read_store_key(tmp_path / "key", None, "another")


@pytest.mark.parametrize("command", ["false", "no-such-program-at-all", "true", "'"])
def test_a_command_that_gives_no_key_is_told(command: str) -> None:
    """A failing command, one that is not there, one that prints nothing, one that cannot be read."""
    with pytest.raises(CommandError):
        read_store_key(None, command, None)


def test_a_file_that_gives_no_key_is_told(tmp_path: Path) -> None:
    """Missing, empty or of several lines, it is named."""
    empty, long = tmp_path / "empty", tmp_path / "long"
    empty.write_text("\n")
    long.write_text("one\ntwo\n")

    for path in (tmp_path / "missing", empty, long):
        with pytest.raises(CommandError, match=path.name):
            read_store_key(path, None, None)


def test_a_store_is_encrypted_rekeyed_and_decrypted(tmp_path: Path) -> None:
    """Each step says what the file is then, and the key before it opens it no more."""
    store, first, second = tmp_path / "s.db", tmp_path / "first", tmp_path / "second"
    first.write_text("one\n")
    second.write_text("two\n")
    with closing(Engine.open(store)) as engine:
        engine.call("ListTables", {})
    run = CliRunner().invoke

    encrypted = run(app, ["rekey", str(store), "--new-key-file", str(first)])
    with pytest.raises(StoreLocked):
        Engine.open(store, key="two")
    wrong = run(app, ["rekey", str(store), "--key-file", str(second), "--decrypt"])
    changed = run(app, ["rekey", str(store), "--new-key-file", str(second)], env={"TAVOLA_KEY": "one"})
    clear = run(app, ["rekey", str(store), "--key-file", str(second), "--decrypt"])

    assert "encrypted" in encrypted.stdout
    assert wrong.exit_code == 1
    assert "key" in wrong.stderr
    assert changed.exit_code == 0
    assert "no longer encrypted" in clear.stdout
    with closing(Engine.open(store)) as engine:
        assert engine.call("ListTables", {}) == {"TableNames": []}


@pytest.mark.parametrize("step", ["encrypt", "change", "decrypt"])
def test_each_step_works_in_a_process_of_its_own(tmp_path: Path, step: str) -> None:
    """What the command needs, it sets up itself: nothing may depend on what was opened before it."""
    store, first, second = tmp_path / "s.db", tmp_path / "first", tmp_path / "second"
    first.write_text("one\n")
    second.write_text("two\n")
    with closing(Engine.open(store, key=None if step == "encrypt" else "one")) as engine:
        engine.call("ListTables", {})
    options = {
        "encrypt": ["--new-key-file", str(first)],
        "change": ["--key-file", str(first), "--new-key-file", str(second)],
        "decrypt": ["--key-file", str(first), "--decrypt"],
    }

    run = subprocess.run(
        [sys.executable, "-m", "tavola", "rekey", str(store), *options[step]],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    with closing(
        Engine.open(store, key={"encrypt": "one", "change": "two", "decrypt": None}[step])
    ) as engine:
        assert engine.call("ListTables", {}) == {"TableNames": []}
    assert {found.name for found in tmp_path.iterdir()} == {"s.db", "first", "second"}


def test_rekey_wants_to_know_what_for(tmp_path: Path) -> None:
    """Neither a new key nor --decrypt is no order; a missing file is not there."""
    store = tmp_path / "s.db"
    with closing(Engine.open(store)):
        pass

    assert CliRunner().invoke(app, ["rekey", str(store)]).exit_code == 2
    assert CliRunner().invoke(app, ["rekey", str(tmp_path / "missing"), "--decrypt"]).exit_code == 3
