"""Files: whole or not there."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from pathlib import Path
from zlib import crc32

from tavola.engine.transfer.files import append_at, part_of, publish, write_small


def test_a_growing_file_is_written_over_from_where_it_stood(tmp_path: Path) -> None:
    """What a slice wrote that was undone leaves no trace."""
    path = tmp_path / "deep" / "file"

    assert append_at(path, 0, b"one")
    assert append_at(path, 3, b"undone, and long")
    assert append_at(path, 3, b"two")

    assert part_of(path).read_bytes() == b"onetwo"


def test_a_file_that_became_shorter_is_noticed(tmp_path: Path) -> None:
    """A crash may take what was not synced; nothing is written past the hole."""
    path = tmp_path / "file"
    append_at(path, 0, b"one")

    assert not append_at(path, 5, b"two")
    assert part_of(path).read_bytes() == b"one"


def test_publishing_gives_the_final_name_and_the_sums(tmp_path: Path) -> None:
    """A second time says the same: the slice may have been undone after the file got its name."""
    path = tmp_path / "file"
    append_at(path, 0, b"content and what was undone")

    first = publish(path, 7, crc32(b"content"))
    second = publish(path, 7, crc32(b"content"))

    digest = hashlib.md5(b"content")
    assert first is not None
    assert first == second
    assert path.read_bytes() == b"content"
    assert (first.md5, first.etag) == (b64encode(digest.digest()).decode(), f"{digest.hexdigest()}-1")
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_whose_naming_was_undone_grows_again(tmp_path: Path) -> None:
    """It goes on from where it stood before, and is not begun again."""
    path = tmp_path / "file"
    append_at(path, 0, b"one")
    append_at(path, 3, b"two")
    publish(path, 6, crc32(b"onetwo"))

    assert append_at(path, 3, b"three")
    assert not path.exists()
    assert publish(path, 8, crc32(b"onethree")) is not None


def test_a_file_that_is_not_what_was_written_gets_no_name(tmp_path: Path) -> None:
    """Neither a damaged one, nor a short one, nor none."""
    path = tmp_path / "file"
    assert publish(path, 3, crc32(b"one")) is None
    append_at(path, 0, b"onx")

    assert publish(path, 3, crc32(b"one")) is None
    assert publish(path, 4, crc32(b"one")) is None
    assert not path.exists()


def test_a_whole_file_takes_the_place_of_another(tmp_path: Path) -> None:
    """Readers see one or the other, and no third."""
    write_small(tmp_path / "file", b"one")
    write_small(tmp_path / "file", b"two")

    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"two"]
