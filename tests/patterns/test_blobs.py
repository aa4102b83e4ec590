"""Blobs: every value comes back whole, no item points to nothing, and no blob is left for ever."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
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
    StoredBlob,
)


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
    """The five calls of an S3 client that a store makes, answered from a dict."""

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

    def head_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's
        """Look."""
        if Key not in self.objects:
            raise self.Absent
        return {"LastModified": self.objects[Key][1]}

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

    def age(self, name: str, by: timedelta) -> None:
        """Make a blob older."""
        then = datetime.now(UTC) - by
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
        assert (noise.encoding, noise.place) == ("plain", noise.sha256)
        assert shelf.names == [noise.sha256]


def test_equal_values_are_one_blob(shelf: Shelf) -> None:
    """A blob is named for what it holds."""
    with connect("memory:") as db:
        blobs = Blobs(db, shelf.store)

        assert blobs.keep(NOISE) == blobs.keep(NOISE)
        assert len(shelf.names) == 1


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
        shelf.age(orphan.sha256, timedelta(days=2))

        assert [found.name for found in blobs.sweep(Desk).orphans] == [orphan.sha256]
        assert shelf.names == []


def test_a_sweep_takes_orphans_alone(
    db: Connection, made: Callable[..., Any], shelf: Shelf, clock: ManualClock
) -> None:
    """What an item points to, deep in a list too, and what is too young to judge stay; the rest goes."""
    clock.set(datetime.now(UTC).timestamp())  # files have the machine's time
    blobs = made(Blobs, db, shelf.store, inline=0)
    body, page, orphan, young = (blobs.keep(bytes([n]) * 50) for n in range(4))
    db.put(Document(document_id="d1", body=body))
    db.put(Document(document_id="d2", pages=[page]))
    for blob in (body, page, orphan):
        shelf.age(blob.sha256, timedelta(days=2))

    told = blobs.sweep(Desk, older=timedelta(days=1), delete=False)
    assert [blob.name for blob in told.orphans] == [orphan.sha256]
    assert len(shelf.names) == 4
    swept = blobs.sweep(Desk, older=timedelta(days=1))

    assert (swept.kept, swept.young, swept.bytes) == (2, 1, told.orphans[0].size)
    assert sorted(shelf.names) == sorted(blob.sha256 for blob in (body, page, young))


def test_a_value_that_is_wanted_again_is_not_swept(shelf: Shelf) -> None:
    """An old orphan whose value is kept anew, while a sweep is under way, survives it."""
    with connect("memory:") as db:
        db.create_tables(Desk)
        blobs = Blobs(db, shelf.store, inline=0)
        blob = blobs.keep(NOISE)
        shelf.age(blob.sha256, timedelta(days=2))

        class Wanting(type(shelf.store)):  # type: ignore[misc]  # whichever store it is
            """The store, in which somebody writes between the listing and the deletion."""

            def list(self) -> Iterator[StoredBlob]:
                """List, and then be written to."""
                found = list(super().list())
                blobs.keep(NOISE)
                yield from found

        shelf.store.__class__ = Wanting
        swept = blobs.sweep(Desk)

        assert swept.orphans == ()
        assert blobs.read(blob) == NOISE


def test_a_half_written_file_is_no_blob(tmp_path: Path) -> None:
    """What a writer that died left beside a file's place is neither listed nor read."""
    store = FolderBlobs(tmp_path)
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / ".new-xyz").write_bytes(b"half")

    assert list(store.list()) == []
    with pytest.raises(RecipeRefused, match="no name of a blob"):
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
