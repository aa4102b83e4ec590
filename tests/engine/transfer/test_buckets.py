"""Buckets: folders that no one climbs out of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tavola.engine.transfer.buckets import Buckets
from tavola.engine.transfer.errors import BucketMissing, PlaceRefused

OUTSIDE = ["..", ".", "a/b", "/etc", "a\0b", "", "-x", "x", "a\\b", "~root", "..%2f"]
CLIMBING = ["../x", "a/../../x", "/etc/passwd", "a/./b", "a\0b", "..", "a\\..\\b", "a/..", "x" * 300]


@pytest.fixture
def buckets(tmp_path: Path) -> Buckets:
    """A folder with one bucket, and a secret beside it."""
    (tmp_path / "root" / "bucket").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    return Buckets(tmp_path / "root")


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_bucket_is_outside(buckets: Buckets, name: str) -> None:
    """What is no plain name is no bucket."""
    with pytest.raises(PlaceRefused):
        buckets.place(name, "key")
    with pytest.raises(PlaceRefused):
        buckets.has(name)


@pytest.mark.parametrize("key", CLIMBING)
def test_no_key_leads_out_of_its_bucket(buckets: Buckets, key: str) -> None:
    """Neither to read nor to write, nor to list."""
    with pytest.raises(PlaceRefused):
        buckets.place("bucket", key)


@pytest.mark.parametrize("prefix", ["../", "/etc/", "a/../../", "\0/"])
def test_no_prefix_lists_what_is_outside(buckets: Buckets, prefix: str) -> None:
    """A prefix is held to the same rule."""
    with pytest.raises(PlaceRefused):
        buckets.objects("bucket", prefix)


def test_a_link_is_not_followed_out(buckets: Buckets, tmp_path: Path) -> None:
    """Neither a bucket, nor a folder, nor a file that is a link to the outside."""
    root = tmp_path / "root"
    (root / "linked").symlink_to(tmp_path)
    (root / "bucket" / "out").symlink_to(tmp_path)
    (root / "bucket" / "file").symlink_to(tmp_path / "secret")

    with pytest.raises(PlaceRefused):
        buckets.place("linked", "secret")
    with pytest.raises(PlaceRefused):
        buckets.place("bucket", "out/secret")
    assert buckets.objects("bucket", "") == []


def test_a_bucket_that_is_not_there_is_reported(buckets: Buckets) -> None:
    """No one makes one in passing; the sentence says what to do."""
    with pytest.raises(BucketMissing, match="create the folder nowhere"):
        buckets.place("nowhere", "key")
    assert not buckets.has("nowhere")
    assert buckets.has("bucket")


def test_a_prefix_is_a_beginning_of_keys(buckets: Buckets, tmp_path: Path) -> None:
    """As in S3: `data` is also before `data2/x` and `data.bak`; growing files are not there yet."""
    folder = tmp_path / "root" / "bucket"
    for name in ("data/1.json", "data/é/2.json", "data2/x", "data.bak", "other", "data/3.json.part"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)

    def keys(prefix: str) -> list[str]:
        return [each.key for each in buckets.objects("bucket", prefix)]

    assert keys("data") == ["data.bak", "data/1.json", "data/é/2.json", "data2/x"]
    assert keys("data/") == ["data/1.json", "data/é/2.json"]
    assert keys("data/1.json") == ["data/1.json"]
    assert keys("nothing/here") == []
    assert buckets.objects("bucket", "oth")[0].bytes == 5
