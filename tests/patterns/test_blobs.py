"""Blobs: every value comes back whole, no item points to nothing, and no blob is left for ever."""

from __future__ import annotations

import io
import os
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tavola import Attr, Connection, Entity, ManualClock, PrimaryKey, Table, attr, connect
from tavola.patterns import (
    Blob,
    BlobDamaged,
    BlobMissing,
    Blobs,
    FolderBlobs,
    ItemTooLarge,
    RecipeRefused,
    S3Blobs,
)
from tests.patterns.interleaving import Running


class Desk(Table):
    """The one table."""


class Document(Entity, table=Desk):
    """Something long."""

    document_id: Attr[str]
    body: Attr[Blob | None] = attr(default=None)
    pages: Attr[list[Blob]] = attr(default_factory=list)
    text: Attr[str] = attr(default="")

    class Key(PrimaryKey["Document"], pk="DOCUMENT#{document_id}", sk="DOCUMENT"):
        document_id: str


class FakeS3:
    """The four calls of an S3 client that a store makes, answered from a dict."""

    class Absent(Exception):
        """What botocore raises."""

        response = {"Error": {"Code": "NoSuchKey"}}  # noqa: RUF012 - botocore's own name

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, datetime]] = {}
        self.broken = False

    def put_object(self, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803 - boto3's
        """Write."""
        if self.broken:
            raise ConnectionError("no bucket today")
        self.objects[Key] = (Body, datetime.now(UTC))

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's
        """Read."""
        if Key not in self.objects:
            raise self.Absent
        return {"Body": io.BytesIO(self.objects[Key][0])}

    def delete_object(self, Bucket: str, Key: str) -> None:  # noqa: N803 - boto3's
        """Delete."""
        self.objects.pop(Key, None)

    def list_objects_v2(self, Bucket: str, Prefix: str, ContinuationToken: str = "") -> dict[str, Any]:  # noqa: N803 - boto3's
        """List, two at a time."""
        names = sorted(name for name in self.objects if name.startswith(Prefix) and name > ContinuationToken)
        page = names[:2]
        return {
            "Contents": [
                {"Key": n, "Size": len(self.objects[n][0]), "LastModified": self.objects[n][1]} for n in page
            ],
            "IsTruncated": len(names) > 2,
            **({"NextContinuationToken": page[-1]} if len(names) > 2 else {}),
        }


class Shelf:
    """A store under test, with a hand that ages and damages its blobs."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.s3 = FakeS3() if kind == "s3" else None
        self.folder = folder
        self.store: Any = FolderBlobs(folder) if self.s3 is None else S3Blobs(self.s3, "bucket")

    def age(self, name: str, by: timedelta, now_s: float | None = None) -> None:
        """Make a blob older."""
        then = (datetime.now(UTC) if now_s is None else datetime.fromtimestamp(now_s, UTC)) - by
        if self.s3 is None:
            os.utime(self.folder / name[:2] / name, (then.timestamp(), then.timestamp()))
        else:
            self.s3.objects[f"blobs/{name}"] = (self.s3.objects[f"blobs/{name}"][0], then)

    def damage(self, name: str) -> None:
        """Change one byte."""
        found = bytearray(self.store.get(name))
        found[len(found) // 2] ^= 1
        self.store.put(name, bytes(found))

    @property
    def names(self) -> list[str]:
        """What is there."""
        return [blob.name for blob in self.store.list()]


@pytest.fixture(params=["folder", "s3"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    """Each kind of store."""
    return Shelf(request.param, tmp_path / "blobs")


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Desk)
    return found


NOISE = os.urandom(300_000)
NONE = timedelta(0)
EVER = timedelta(days=1)  # taken away from now: so that nothing is too young


@pytest.mark.parametrize("data", [b"", b"short", b"long and dull " * 100_000, NOISE, NOISE * 3])
def test_a_value_comes_back_whole(
    db: Connection, made: Callable[..., Any], shelf: Shelf, data: bytes
) -> None:
    """Whatever its size, a value is read as it was written, through the item that holds it or says where it is."""
    blobs = made(Blobs, db, shelf.store, inline=10_000)
    db.put(Document(document_id="d1", body=blobs.keep(data)))

    found = db.get(Document.Key(document_id="d1"))

    assert found is not None
    assert found.body is not None
    assert found.body.size == len(data)
    assert blobs.read(found.body) == data
    assert (found.body.place is None) == (len(shelf.names) == 0)


def test_what_is_short_once_compressed_stays_in_the_item(shelf: Shelf) -> None:
    """A long dull value is compressed into the item; noise goes to the store as it is."""
    with connect("memory:") as db:
        blobs = Blobs(db, shelf.store)
        dull, noise = blobs.keep(b"dull " * 100_000), blobs.keep(NOISE)

        assert (dull.encoding, dull.place) == ("zlib", None)
        assert noise.encoding == "plain"
        assert shelf.names == [noise.place]


def test_equal_values_are_blobs_of_their_own(shelf: Shelf) -> None:
    """A blob is written once and never again, so that one which is being deleted is not the one that is kept."""
    with connect("memory:") as db:
        blobs = Blobs(db, shelf.store)
        one, other = blobs.keep(NOISE), blobs.keep(NOISE)

        assert one.sha256 == other.sha256
        assert sorted(shelf.names) == sorted([one.place or "", other.place or ""])


def test_damage_and_loss_are_found(shelf: Shelf) -> None:
    """A byte that changed and a blob that is gone are errors, and never an answer."""
    with connect("memory:") as db:
        blobs = Blobs(db, shelf.store, inline=0)
        noise, dull = blobs.keep(NOISE), blobs.keep(b"dull " * 1000)
        for blob in (noise, dull):
            shelf.damage(blob.place or "")
            with pytest.raises(BlobDamaged, match="was written; restore it"):
                blobs.read(blob)
        shelf.store.delete(noise.place)

        with pytest.raises(BlobMissing, match="300,000 bytes"):
            blobs.read(noise)


def test_a_failed_write_leaves_no_item_without_its_blob() -> None:
    """Where the store fails nothing is written; where the item fails, the blob is an orphan that a sweep takes."""
    shelf = Shelf("s3", Path())
    assert shelf.s3 is not None
    with connect("memory:") as db:
        db.create_tables(Desk)
        blobs = Blobs(db, shelf.store, inline=0)
        shelf.s3.broken = True
        with pytest.raises(ConnectionError):
            db.put(Document(document_id="d1", body=blobs.keep(NOISE)))
        assert db.get(Document.Key(document_id="d1")) is None

        shelf.s3.broken = False
        orphan = blobs.keep(NOISE)  # and its put never comes
        shelf.age(orphan.place or "", timedelta(days=2))

        assert [found.name for found in blobs.sweep(Desk, older=NONE).noted] == [orphan.place]
        assert [found.name for found in blobs.sweep(Desk, older=NONE).orphans] == [orphan.place]
        assert shelf.names == []


def test_a_sweep_takes_orphans_alone(
    db: Connection, made: Callable[..., Any], shelf: Shelf, clock: ManualClock
) -> None:
    """What an item points to, deep in a list too, and what is too young to judge stay; the rest is noted, and goes later."""
    now = clock.now()
    blobs = made(Blobs, db, shelf.store, inline=0)
    body, page, orphan, young = (blobs.keep(bytes([n]) * 50) for n in range(4))
    db.put(Document(document_id="d1", body=body))
    db.put(Document(document_id="d2", pages=[page]))
    for blob in (body, page, orphan):
        shelf.age(blob.place, timedelta(days=2), now)
    shelf.age(young.place, timedelta(0), now)

    assert blobs.sweep(Desk, delete=False).noted == blobs.sweep(Desk).noted  # only the second notes it
    clock.set(now + 86_000)
    assert blobs.sweep(Desk).orphans == ()  # it was noted less than a day ago
    clock.set(now + 86_401)
    shelf.age(young.place, timedelta(0), clock.now())
    told = blobs.sweep(Desk, delete=False)
    assert [blob.name for blob in told.orphans] == [orphan.place]
    assert len(shelf.names) == 4
    swept = blobs.sweep(Desk)

    assert (swept.kept, swept.young, swept.noted, swept.bytes) == (2, 1, (), told.orphans[0].size)
    assert sorted(shelf.names) == sorted(blob.place for blob in (body, page, young))


def test_a_sweep_looks_at_items_that_it_does_not_know(
    db: Connection, made: Callable[..., Any], shelf: Shelf
) -> None:
    """Blobs of entities that the sweeping program has not imported, and those in JSON, are found in the items themselves."""
    blobs = made(Blobs, db, shelf.store, inline=0)
    known, text, raw, map_, name = (blobs.keep(bytes([n]) * 50) for n in range(5))
    db.put(Document(document_id="d1", body=known))
    db.put(Document(document_id="d2", text=text.model_dump_json()))
    strange = {
        "pk": {"S": "STRANGE"}, "sk": {"S": "1"}, "_entity": {"S": "NobodyKnows"}, "B": {"S": "no base64"},
        "raw": {"B": b64encode(raw.model_dump_json().encode()).decode()},
        "deep": {"L": [{"M": {"blob": {"M": {"place": {"S": map_.place}}}}}]},
        "names": {"M": {name.place: {"NULL": True}}}, "many": {"BS": [b64encode(b"x").decode()]},
    }  # fmt: skip
    db.call("PutItem", {"TableName": db.context.name_of(Desk), "Item": strange})

    for _ in range(3):
        swept = blobs.sweep(Elsewhere, older=-EVER)
        assert (swept.orphans, swept.noted, swept.kept) == ((), (), 5)
    assert blobs.read(known) == bytes(50)


class Elsewhere(Table, name="Desk"):
    """The same table, in a program that knows none of its entities."""


def test_an_item_that_moves_while_it_is_sought_keeps_its_blob(shelf: Shelf) -> None:
    """An item that goes from a place not yet read to one that was is missed by that sweep, and found by the next."""
    with connect("memory:") as db:
        db.create_tables(Desk)
        blobs = Blobs(db, shelf.store, inline=0)
        blob = blobs.keep(NOISE)
        db.put(Document(document_id="d1", body=blob))
        sweep: Any = Blobs.sweep
        running = Running(sweep.steps(blobs, Desk, older=-EVER))
        running.step(db)  # the blobs are listed
        found = db.delete(Document.Key(document_id="d1"))
        assert found is not None
        running.step(db)  # the table is read
        db.put(found.model_copy(update={"document_id": "d2"}))
        while not running.done:
            running.step(db)

        assert [told.name for told in running.outcome.noted] == [blob.place]
        assert blobs.sweep(Desk, older=-EVER).orphans == ()
        assert blobs.sweep(Desk, older=-EVER).kept == 1
        assert blobs.read(blob) == NOISE


def test_a_value_that_is_wanted_again_is_not_swept(shelf: Shelf) -> None:
    """A value that is kept anew at any moment of a sweep that deletes its old blob is there afterwards."""
    for moment in range(8):
        with connect("memory:") as db:
            db.create_tables(Desk)
            blobs = Blobs(db, shelf.store, inline=0)
            blobs.keep(NOISE)
            blobs.sweep(Desk, older=-EVER)
            sweep: Any = Blobs.sweep
            running = Running(sweep.steps(blobs, Desk, older=-EVER))
            for step in range(8):
                if step == moment:
                    db.put(Document(document_id="d1", body=blobs.keep(NOISE)))
                if not running.done:
                    running.step(db)
            assert len(running.outcome.orphans) == 1
            found = db.get(Document.Key(document_id="d1"))
            assert found is not None
            assert found.body is not None
            assert blobs.read(found.body) == NOISE
            shelf.store.delete(found.body.place)


def test_what_else_is_there_is_left_alone(shelf: Shelf) -> None:
    """Files and objects that are no blobs are neither listed nor deleted, however old."""
    shelf.store.put("0" * 64, b"a checksum, perhaps")
    shelf.store.put("README", b"mine")
    with connect("memory:") as db:
        db.create_tables(Desk)
        for _ in range(2):
            assert Blobs(db, shelf.store).sweep(Desk, older=-EVER).orphans == ()

    assert shelf.names == []
    assert shelf.store.get("README") == b"mine"


def test_new_folders_are_safe_before_their_blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder that is made has its entry above it on the disk when put returns, the store's own included."""
    opened: dict[int, str] = {}
    synced: list[str] = []
    open_, fsync = os.open, os.fsync

    def opening(path: Any, *more: Any, **options: Any) -> int:
        handle = open_(path, *more, **options)
        opened[handle] = str(path)
        return handle

    def syncing(handle: int) -> None:
        synced.append(opened.get(handle, "?"))
        fsync(handle)

    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(os, "fsync", syncing)
    store = FolderBlobs(tmp_path / "one" / "blobs")
    store.put("ab12", b"x")
    store.put("ab13", b"x")

    folders = [str(tmp_path / place) for place in ("", "one", "one/blobs", "one/blobs/ab")]
    assert [path for path in synced if path in folders] == [*folders, folders[-1]]


def test_a_blob_that_goes_while_it_is_listed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another sweep deletes between its name and its size is left out."""
    store = FolderBlobs(tmp_path)
    for first in "ab":
        store.put(first * 80, b"x")
    listing = store.list()
    assert next(listing).name == "a" * 80
    store.delete("b" * 80)

    assert list(listing) == []


def test_a_half_written_file_is_no_blob(tmp_path: Path) -> None:
    """What a writer that died left beside a file's place is neither listed nor read."""
    store = FolderBlobs(tmp_path)
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / ".new-xyz").write_bytes(b"half")

    assert list(store.list()) == []
    store.tidy(datetime.now(UTC) - timedelta(days=1))
    assert (tmp_path / "ab" / ".new-xyz").exists()  # it may still be written
    store.tidy(datetime.now(UTC) + timedelta(days=1))
    assert not (tmp_path / "ab" / ".new-xyz").exists()
    with pytest.raises(RecipeRefused, match="not a valid blob name"):
        store.get("../secret")


def test_four_hundred_kilobytes_are_explained(
    db: Connection, made: Callable[..., Any], tmp_path: Path
) -> None:
    """An entity that no item can hold is refused with what is large in it and what to do."""
    blobs = made(Blobs, db, FolderBlobs(tmp_path))
    with pytest.raises(ItemTooLarge, match=r"400 KB.*text 500,0.*Make the first a Blob") as refused:
        blobs.put(Document(document_id="d1", text="x" * 500_000))

    assert refused.value.fields[0][0] == "text"
    with connect("memory:") as other, pytest.raises(RecipeRefused, match="does not fit"):
        Blobs(other, FolderBlobs(tmp_path), inline=500_000)
