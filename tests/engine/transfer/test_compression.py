"""Compression: three ways in, one way out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tavola.engine.transfer import compression
from tavola.engine.transfer.compression import CompressedFile, compress, load_zstd
from tavola.engine.transfer.errors import CodecMissing, TextMalformed

TEXT = b"one line\n" * 1000


def _written(folder: Path, kind: str) -> Path:
    path = folder / "file"
    match kind:
        case "NONE":
            path.write_bytes(TEXT)
        case "GZIP":
            path.write_bytes(compress(TEXT[:100]) + compress(TEXT[100:]))
        case _:
            path.write_bytes(load_zstd().compress(TEXT))
    return path


@pytest.mark.parametrize("kind", ["NONE", "GZIP", "ZSTD"])
def test_what_went_in_comes_out(tmp_path: Path, kind: str) -> None:
    """In pieces of any size; several members of gzip are one file."""
    packed = CompressedFile(_written(tmp_path, kind), kind)
    found = b"".join(iter(lambda: packed.read(777), b""))
    taken = packed.file_bytes
    packed.close()

    assert found == TEXT
    assert taken == (tmp_path / "file").stat().st_size


@pytest.mark.parametrize("kind", ["GZIP", "ZSTD"])
def test_a_file_that_is_not_compressed_so_is_malformed(tmp_path: Path, kind: str) -> None:
    """Plain text, and a file that was cut short."""
    whole = _written(tmp_path, kind).read_bytes()
    for data in (b'{"Item":{}}\n' * 10, whole[: len(whole) // 2]):
        (tmp_path / "bad").write_bytes(data)
        packed = CompressedFile(tmp_path / "bad", kind)
        with pytest.raises(TextMalformed):
            list(iter(lambda packed=packed: packed.read(100), b""))  # type: ignore[misc]  # bound now
        packed.close()


def test_an_export_is_the_same_whenever_it_is_written() -> None:
    """No time is in it: what is written again after a crash has the same sums."""
    assert compress(TEXT) == compress(TEXT)
    assert gzip.decompress(compress(TEXT)) == TEXT


def test_without_its_package_zstandard_says_which_extra_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who asks for it needs it."""
    path = _written(tmp_path, "ZSTD")
    monkeypatch.setitem(__import__("sys").modules, "backports", None)
    monkeypatch.setitem(__import__("sys").modules, "compression", None)

    with pytest.raises(CodecMissing, match=r"tavola\[zstd\]"):
        compression.CompressedFile(path, "ZSTD")
