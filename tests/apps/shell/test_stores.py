"""Settings, and the store that is opened from them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tavola import Engine, SeededEntropy
from tavola.apps.shell import AppSettings, Secrets, SettingsRefused, opened_store
from tavola.apps.shell.stores import stored_secret
from tavola.patterns import FolderBlobs
from tests.apps.conftest import Run
from tests.patterns.board import Board, Helpdesk


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"target": 3}, "target"),
        ({"secret": b"short"}, "secret"),
        ({"base_path": "desk"}, "base_path"),
        ({"base_path": "/desk/"}, "base_path"),
        ({"base_path": "/"}, "base_path"),
        ({"poll_s": 0}, "poll_s"),
    ],
)
def test_an_invalid_setting_is_named(settings: dict[str, Any], name: str) -> None:
    """An invalid setting is refused when it is set, with advice."""
    with pytest.raises(SettingsRefused, match=f"^{name}: ") as caught:
        AppSettings(**settings)

    assert caught.value.name == name


def test_state_is_stored_beside_the_file(tmp_path: Path, run: Run[Any]) -> None:
    """Secret, checkpoints and blobs are in a folder beside the store, and the next process finds them."""
    settings = AppSettings(target=f"file:{tmp_path}/desk.db")

    async def derived() -> bytes:
        async with opened_store(settings, Helpdesk, Board) as store:
            store.blobs.put("ab" * 40, b"x")
            assert store.checkpoint("desk") == tmp_path / "desk.db.apps" / "checkpoints" / "desk.json"
            return store.secrets.derive("caller")

    first = run(derived())
    path = tmp_path / "desk.db.apps" / "secret"

    assert run(derived()) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (tmp_path / "desk.db.apps" / "blobs" / "ab" / ("ab" * 40)).read_bytes() == b"x"


def test_in_memory_nothing_is_left(run: Run[Any]) -> None:
    """A store in memory has a random secret, no checkpoint, and blobs in a temporary folder."""

    async def tried() -> tuple[bytes, Path]:
        async with opened_store(AppSettings(), Helpdesk) as store:
            assert store.checkpoint("desk") is None
            assert isinstance(store.blobs, FolderBlobs)
            store.blobs.put("ab" * 40, b"x")
            return store.secrets.root, store.blobs.folder

    (first, folder), (second, _) = run(tried()), run(tried())

    assert first != second
    assert not folder.exists()


def test_an_endpoint_needs_a_state_folder_or_a_secret(tmp_path: Path, run: Run[Any]) -> None:
    """A remote store has no folder beside it: a state folder or a secret is required."""

    async def opened(**more: Any) -> bytes:
        async with opened_store(AppSettings(target="http://127.0.0.1:1", **more)) as store:
            return store.secrets.root

    with pytest.raises(SettingsRefused, match="--state FOLDER"):
        run(opened())
    assert len(run(opened(state=tmp_path / "state"))) == 32
    assert run(opened(secret=b"0" * 32)) == b"0" * 32


def test_a_damaged_secret_is_refused(tmp_path: Path, run: Run[Any]) -> None:
    """A truncated secret is not used: it would silently change cursors and caller hashes."""
    settings = AppSettings(state=tmp_path)

    async def opened() -> None:
        async with opened_store(settings):
            pass

    for text in ("abcd", "no hexadecimal"):
        (tmp_path / "secret").write_text(text)
        with pytest.raises(SettingsRefused, match="secret"):
            run(opened())


def test_a_secret_is_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing secret is created, an aborted start leaves none, and two concurrent starts use the same one."""
    (tmp_path / "secret").touch()
    found = stored_secret(tmp_path, SeededEntropy(1))
    assert stored_secret(tmp_path, SeededEntropy(2)) == found
    (tmp_path / "secret").unlink()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(SettingsRefused, match="No space left"):
            stored_secret(tmp_path, SeededEntropy(3))
    assert list(tmp_path.iterdir()) == []

    link = os.link

    def late(beside: str, path: Path) -> None:
        (tmp_path / "secret").write_text("ab" * 32)  # another process was faster
        link(beside, path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", late)
        assert stored_secret(tmp_path, SeededEntropy(4)) == b"\xab" * 32
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize(("name", "paths"), [("blobs", {"blobs": "f/x"}), ("state", {"state": "f"})])
def test_a_folder_that_cannot_be_written_is_refused_at_the_start(
    tmp_path: Path, run: Run[Any], name: str, paths: dict[str, str]
) -> None:
    """Not only when the first large value is lost."""
    (tmp_path / "f").touch()
    settings: Any = {setting: tmp_path / path for setting, path in paths.items()}

    async def opened() -> None:
        async with opened_store(AppSettings(secret=b"0" * 32, **settings)):
            pass

    with pytest.raises(SettingsRefused, match=f"^{name}: blobs cannot be stored in"):
        run(opened())


def test_each_purpose_has_its_own_secret() -> None:
    """Derived secrets reveal nothing about each other, and neither they nor the settings show the root."""
    secrets = Secrets(b"0" * 32)
    assert "000" not in repr(AppSettings(secret=b"0" * 32))

    assert secrets.derive("cursor") != secrets.derive("caller")
    assert secrets.derive("cursor") == Secrets(b"0" * 32).derive("cursor")
    assert "000" not in repr(secrets)


def test_an_engine_is_shared_and_left_open(tmp_path: Path, run: Run[Any]) -> None:
    """A shared engine is a target; closing the store leaves it open."""

    async def opened(engine: Engine) -> None:
        settings = AppSettings(target=engine, state=tmp_path, entropy=SeededEntropy(1))
        async with opened_store(settings, Helpdesk) as store:
            assert store.folder == tmp_path

    with Engine.open() as engine:
        run(opened(engine))
        run(opened(engine))


def test_blobs_go_to_the_configured_location(tmp_path: Path, run: Run[Any]) -> None:
    """A folder or a bucket; a bucket without a name is refused."""

    async def blobs(location: Any) -> Any:
        async with opened_store(AppSettings(blobs=location, region="eu-west-1")) as store:
            return store.blobs

    assert run(blobs(tmp_path)).folder == tmp_path
    bucket = run(blobs("s3://kept/desk/"))
    assert (bucket.bucket, bucket.prefix) == ("kept", "desk/")
    with pytest.raises(SettingsRefused, match="blobs: "):
        run(blobs("s3://"))


def test_no_folder_is_created_for_a_mistyped_path(tmp_path: Path, run: Run[Any]) -> None:
    """A mistyped path is refused, and nothing is created."""

    async def opened() -> None:
        async with opened_store(AppSettings(target=f"file:{tmp_path}/no/desk.db")):
            pass

    with pytest.raises(SettingsRefused, match="cannot be read or created"):
        run(opened())
    assert list(tmp_path.iterdir()) == []
