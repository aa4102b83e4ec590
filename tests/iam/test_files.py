"""The directory's file: written whole, for its owner alone, and read anew when it changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tavola.clock import ManualClock
from tavola.iam import (
    Account,
    Directory,
    DirectoryFile,
    DirectoryFileError,
    InvalidDirectory,
    User,
    load_directory,
    save_directory,
    web_identity,
)
from tests.iam.tables import ACCOUNT, OTHER

ONE = Directory({ACCOUNT: Account(users={"alice": User()})})
TWO = Directory({OTHER: Account()})


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It holds secrets: nobody else may read it, also where it takes the place of one that everybody could."""
    path = tmp_path / "iam.json"
    path.write_text("old")
    path.chmod(0o644)

    save_directory(path, ONE)

    assert path.stat().st_mode & 0o777 == 0o600
    assert load_directory(path).accounts == ONE.accounts
    assert os.listdir(tmp_path) == ["iam.json"]


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one takes the old one's place when it is whole, or never."""
    path = tmp_path / "iam.json"
    save_directory(path, ONE)

    def fail(handle: int) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(DirectoryFileError, match="no room"):
        save_directory(path, TWO)
    assert load_directory(path).accounts == ONE.accounts


def test_a_change_is_seen_within_a_second(tmp_path: Path) -> None:
    """The same directory is given while the file stays, and another soon after it changes."""
    clock = ManualClock()
    path = tmp_path / "iam.json"
    save_directory(path, ONE)
    watched = DirectoryFile(path, clock)
    first = watched.current()

    save_directory(path, TWO)
    at_once = watched.current()
    clock.advance(1.0)
    then = watched.current()

    assert at_once is first
    assert then.accounts == TWO.accounts
    assert watched.current() is then


def test_a_broken_change_leaves_the_last_good_one(tmp_path: Path) -> None:
    """A file that cannot be read any more neither opens nor closes anything; it says so, until it is mended."""
    clock = ManualClock()
    path = tmp_path / "iam.json"
    save_directory(path, ONE)
    watched = DirectoryFile(path, clock)

    path.write_text("{")
    clock.advance(1.0)
    broken = watched.current()
    trouble = watched.trouble
    path.unlink()
    clock.advance(1.0)
    gone = watched.current()
    save_directory(path, TWO)
    clock.advance(1.0)

    assert broken.accounts == gone.accounts == ONE.accounts
    assert trouble is not None
    assert "not valid JSON" in trouble
    assert watched.current().accounts == TWO.accounts
    assert watched.trouble is None


def test_a_provider_without_its_package_leaves_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running server without joserfc keeps its directory when a provider of web identities is added."""
    clock = ManualClock()
    path = tmp_path / "iam.json"
    save_directory(path, ONE)
    watched = DirectoryFile(path, clock)
    provider = {"https://login.example.com": {"audiences": ["a"], "keys": ["-----BEGIN PUBLIC KEY-----"]}}
    document = {"tavola_iam": 1, "accounts": {ACCOUNT: {"oidc_providers": provider}}}
    path.write_text(json.dumps(document))

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(web_identity, "import_module", missing)
    clock.advance(1.0)

    assert watched.current().accounts == ONE.accounts
    assert watched.trouble is not None
    assert "joserfc" in watched.trouble


def test_a_file_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path) -> None:
    """Nobody serves by a directory that is not there."""
    with pytest.raises(DirectoryFileError):
        DirectoryFile(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InvalidDirectory):
        DirectoryFile(tmp_path / "bad.json")


def test_a_file_that_is_refused_is_named(tmp_path: Path) -> None:
    """Whoever has several knows which to mend."""
    path = tmp_path / "broken.json"
    path.write_text("{")

    with pytest.raises(InvalidDirectory, match=r"broken\.json: not valid JSON \(line 1"):
        load_directory(path)
