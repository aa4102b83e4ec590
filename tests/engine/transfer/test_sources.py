"""Sources: one object, row by row, from any place on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tavola.engine.transfer.buckets import Buckets
from tavola.engine.transfer.compression import compress
from tavola.engine.transfer.errors import TextMalformed
from tavola.engine.transfer.lines import TransferRow, read_json
from tavola.engine.transfer.sources import ObjectReader

LINES = [
    f'{{"Item":{{"id":{{"N":"{number}"}},"pad":{{"S":"{"é" * 300}"}}}}}}\n'.encode() for number in range(2000)
]


def _numbers(source: ObjectReader) -> list[str]:
    found = []
    while (row := source.row(read_json)) is not None:
        assert isinstance(row, TransferRow)
        found.append(row.item["id"]["N"])
    return found


@pytest.mark.parametrize("compression", ["NONE", "GZIP"])
def test_reading_goes_on_from_any_row(tmp_path: Path, compression: str) -> None:
    """The place of a row is enough to go on from, with another reader too."""
    path = tmp_path / "file"
    text = b"".join(LINES)
    path.write_bytes(text if compression == "NONE" else compress(text))
    first = ObjectReader(path, compression)
    for _ in range(777):
        first.row(read_json)
    place = first.position
    first.close()
    second = ObjectReader(path, compression)

    assert place == sum(map(len, LINES[:777]))
    assert second.skip_to(place)
    assert _numbers(second) == [str(number) for number in range(777, 2000)]
    second.close()


def test_a_job_keeps_its_object_open_and_opens_it_again_when_it_was_undone(tmp_path: Path) -> None:
    """A reader that is past the place that the job kept is of no use any more."""
    (tmp_path / "bucket").mkdir()
    path = tmp_path / "bucket" / "file"
    path.write_bytes(b"".join(LINES))
    buckets = Buckets(tmp_path)
    source = buckets.source("job", "bucket", "file", "NONE", 0)
    source.row(read_json)

    kept = buckets.source("job", "bucket", "file", "NONE", source.position)
    undone = buckets.source("job", "bucket", "file", "NONE", 0)

    assert kept is source
    assert undone is not source
    assert undone.position == 0
    buckets.close()


def test_an_object_that_became_shorter_is_reported(tmp_path: Path) -> None:
    """No one may change what is being imported."""
    path = tmp_path / "file"
    path.write_bytes(LINES[0])
    source = ObjectReader(path, "NONE")

    with pytest.raises(TextMalformed, match="shorter"):
        source.skip_to(len(LINES[0]) + 1)
    source.close()


def test_a_row_without_an_end_is_given_up(tmp_path: Path) -> None:
    """A line of more than a request may have is no item, and memory is not filled with it."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * (17 * 1024 * 1024))
    source = ObjectReader(path, "NONE")

    with pytest.raises(TextMalformed, match="A row has more than"):
        source.row(read_json)
    source.close()
