"""The files of a store are for their owner only; a file that exists keeps the mode that it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from stat import S_IMODE

import pytest

from tavola.engine import change_key
from tests.durability.test_wal_binding import KEY, make, open_store, put


@pytest.fixture(autouse=True)
def permissive_umask() -> Iterator[None]:
    """The mask of a process that makes its files readable for everyone."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(path: Path) -> dict[str, int]:
    return {
        file.name.removeprefix(path.name): S_IMODE(file.stat().st_mode)
        for file in path.parent.glob(f"{path.name}*")
    }


@pytest.mark.parametrize("key", [None, KEY])
def test_a_new_store_is_for_its_owner_only(tmp_path: Path, key: str | None) -> None:
    """The database file and its log, whatever the mask of the process."""
    path = tmp_path / "store.db"
    with closing(open_store(path, key)):
        assert modes(path) == {"": 0o600, "-wal": 0o600}


def test_an_existing_store_keeps_its_mode(tmp_path: Path) -> None:
    """A group that was given the file keeps it, in the log as well, and after a change of the key."""
    path = tmp_path / "store.db"
    make(path, "one")
    path.chmod(0o660)
    with closing(open_store(path)) as engine:
        put(engine, "two")
        assert modes(path) == {"": 0o660, "-wal": 0o660}

    change_key(str(path), None, KEY)
    assert modes(path) == {"": 0o660}
