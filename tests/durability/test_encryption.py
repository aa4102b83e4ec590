"""An encrypted store: nothing readable on the disk, no way in without the key, no damage unseen."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tavola.engine import Engine, StoreDamaged, StoreError, StoreInUse, StoreLocked, change_key
from tavola.engine.storage import files
from tavola.protocol.faults import InternalServerFault

KEY = "correct horse battery staple"
CANARY = "canary-8f2b5c"
ROWS = 300


def fill(path: Path, key: str | None) -> None:
    with closing(Engine.open(path, key=key, sync="off")) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "Vault",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            },
        )
        for number in range(ROWS):
            item = {"pk": {"S": f"{CANARY}-{number:04}"}, "v": {"S": CANARY * 20}}
            engine.call("PutItem", {"TableName": "Vault", "Item": item})


def rows(path: Path, key: str | None) -> list[dict[str, Any]]:
    with closing(Engine.open(path, key=key, sync="off")) as engine:
        found: list[dict[str, Any]] = engine.call("Scan", {"TableName": "Vault"})["Items"]
        return found


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was filled and closed, to be copied and not changed."""
    path = tmp_path_factory.mktemp("vault") / "vault.db"
    fill(path, KEY)
    return path


@pytest.fixture
def copied(vault: Path, tmp_path: Path) -> Path:
    path = tmp_path / "copy.db"
    path.write_bytes(vault.read_bytes())
    return path


def test_with_its_key_it_opens(copied: Path) -> None:
    """What was written is read back, and goes on being written."""
    assert len(rows(copied, KEY)) == ROWS


def test_nothing_of_it_can_be_read_on_the_disk(tmp_path: Path) -> None:
    """Neither the file nor its log holds a name, a key or a value in clear, also while it is open."""
    path = tmp_path / "open.db"
    with closing(Engine.open(path, key=KEY, sync="off")) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "Vault",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        engine.call("PutItem", {"TableName": "Vault", "Item": {"pk": {"S": CANARY}, "v": {"S": CANARY}}})
        files = [found for found in tmp_path.iterdir() if found.is_file()]
        seen = {found.name: found.read_bytes() for found in files}

    assert len(seen) > 1, "there is a log beside the file"
    for name, content in seen.items():
        for clear in (CANARY.encode(), b"Vault", b"SQLite format", KEY.encode(), b"CREATE TABLE"):
            assert clear not in content, f"{clear!r} can be read in {name}"


def test_the_same_search_finds_what_is_not_encrypted(tmp_path: Path) -> None:
    """The search above is not blind: a plain store shows all of it."""
    path = tmp_path / "plain.db"
    fill(path, None)

    content = path.read_bytes()

    assert CANARY.encode() in content
    assert b"SQLite format" in content


@pytest.mark.parametrize("key", ["wrong", KEY + " ", KEY.upper(), None])
def test_no_other_key_opens_it_and_nothing_is_changed(copied: Path, key: str | None) -> None:
    """The refusal says that it is the key, or that there is none, and the file stays as it was."""
    before = copied.read_bytes()

    with pytest.raises(StoreError, match="key") as refused:
        Engine.open(copied, key=key)

    assert isinstance(refused.value, StoreLocked if key else StoreDamaged)
    assert copied.read_bytes() == before
    assert len(rows(copied, KEY)) == ROWS


def test_a_key_for_a_plain_store_is_refused(tmp_path: Path) -> None:
    """A store that is not encrypted says so, rather than seeming damaged."""
    path = tmp_path / "plain.db"
    fill(path, None)

    with pytest.raises(StoreLocked, match="not encrypted"):
        Engine.open(path, key=KEY)

    assert len(rows(path, None)) == ROWS


def test_a_store_in_memory_takes_no_key() -> None:
    """There is nothing to encrypt, and an empty key is none."""
    with pytest.raises(ValueError, match="not encrypted"):
        Engine.open(key=KEY)


def test_one_engine_at_a_time(copied: Path) -> None:
    """The lock holds as it does for a plain file, also against someone with the right key."""
    with closing(Engine.open(copied, key=KEY)):
        with pytest.raises(StoreInUse):
            Engine.open(copied, key=KEY)


def test_every_damage_is_seen(vault: Path, tmp_path: Path) -> None:
    """A flipped bit, a page from elsewhere, an older page: each is refused, and none is served."""
    content = vault.read_bytes()
    pages = len(content) // 4096
    random = Random(20261116)
    unseen = []
    for trial in range(60):
        spoilt = bytearray(content)
        kind = random.choice(["flip", "swap", "zero", "repeat"])
        first, second = random.sample(range(1, pages), 2)
        here, there = slice(first * 4096, (first + 1) * 4096), slice(second * 4096, (second + 1) * 4096)
        if kind == "flip":
            spoilt[random.randrange(len(spoilt))] ^= 1 << random.randrange(8)
        elif kind == "swap":
            spoilt[here], spoilt[there] = spoilt[there], spoilt[here]
        elif kind == "zero":
            spoilt[here] = bytes(4096)
        else:
            spoilt[here] = spoilt[there]
        path = tmp_path / f"{trial}.db"
        path.write_bytes(spoilt)
        try:
            found = rows(path, KEY)
        except (StoreError, InternalServerFault):
            continue
        if len(found) != ROWS or any(item["v"]["S"] != CANARY * 20 for item in found):
            unseen.append((trial, kind))

    assert unseen == []


def test_the_key_can_be_changed(copied: Path) -> None:
    """Under a new key, under none, and under one again: the data stays, the old key goes."""
    change_key(str(copied), KEY, "second")
    with pytest.raises(StoreLocked):
        Engine.open(copied, key=KEY)
    assert len(rows(copied, "second")) == ROWS

    change_key(str(copied), "second", None)
    assert len(rows(copied, None)) == ROWS

    change_key(str(copied), None, KEY)
    assert len(rows(copied, KEY)) == ROWS
    assert CANARY.encode() not in copied.read_bytes()


def test_a_file_that_exceeds_the_cache_can_be_decrypted(tmp_path: Path) -> None:
    """SQLite then writes pages before the first one, from which on there are checksums; each page has one at the end."""
    path = tmp_path / "large.db"
    fill(path, KEY)
    with closing(Engine.open(path, key=KEY, sync="off")) as engine:
        for number in range(ROWS):
            item = {"pk": {"S": f"{CANARY}-{number:04}"}, "v": {"S": CANARY * 600}}
            engine.call("PutItem", {"TableName": "Vault", "Item": item})
    assert path.stat().st_size > 4_000_000

    change_key(str(path), KEY, None)

    with closing(Engine.open(path, sync="off")) as engine:
        for number in range(ROWS):
            key = {"pk": {"S": f"{CANARY}-{number:04}"}}
            assert (
                engine.call("GetItem", {"TableName": "Vault", "Key": key})["Item"]["v"]["S"] == CANARY * 600
            )


def test_a_wrong_key_changes_no_key(copied: Path) -> None:
    """Who does not have the key cannot give the file another."""
    before = copied.read_bytes()

    with pytest.raises(StoreLocked):
        change_key(str(copied), "wrong", "mine")

    assert copied.read_bytes() == before


def test_a_rekey_that_fails_leaves_the_file_as_it_was(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the new file is whole and looked through, the old one stands under its old key."""

    def fails(path: str, key: str | None, new: str | None) -> None:
        raise OSError("planted")

    monkeypatch.setattr(files, "_rekey", fails)
    with pytest.raises(StoreError, match="unchanged"):
        change_key(str(copied), KEY, None)

    assert len(rows(copied, KEY)) == ROWS
    assert CANARY.encode() not in copied.read_bytes()
    assert [found.name for found in copied.parent.iterdir() if "rekeyed" in found.name] == []


def test_a_store_that_is_open_is_not_rekeyed(copied: Path) -> None:
    """Anyone who has the file keeps it, and keeps it locked."""
    with closing(Engine.open(copied, key=KEY)):
        with pytest.raises(StoreInUse):
            change_key(str(copied), KEY, None)
        with pytest.raises(StoreInUse):
            Engine.open(copied, key=KEY)
