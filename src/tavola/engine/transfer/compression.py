"""Compression of import files: none, gzip or Zstandard, behind one reader.

Gzip is part of Python. Zstandard is part of Python from 3.14 on; for earlier versions, the extra `tavola[zstd]` installs
a backport of the same module.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from tavola.engine.transfer.errors import CodecMissing, TextMalformed

Compression: TypeAlias = Literal["ZSTD", "NONE", "GZIP"]
_LEVEL = 4  # half the time of the default 6, a few percent larger


def compress(data: bytes) -> bytes:
    """Return data as one gzip member; concatenated members form a valid file."""
    return gzip.compress(data, compresslevel=_LEVEL, mtime=0)


class CompressedFile:
    """A compressed file, read as its uncompressed content."""

    __slots__ = ("_damage", "_file", "_raw")

    def __init__(self, path: Path, compression: str) -> None:
        self._raw = path.open("rb")
        self._damage: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile)
        self._file: IO[bytes] | gzip.GzipFile | Any = self._raw
        try:
            if compression == "GZIP":
                self._file = gzip.GzipFile(fileobj=self._raw)
            elif compression == "ZSTD":
                zstd = load_zstd()
                self._file = zstd.ZstdFile(self._raw)
                self._damage = (EOFError, zstd.ZstdError)
        except BaseException:
            self._raw.close()
            raise

    def read(self, size: int) -> bytes:
        """Return the next bytes, empty at the end."""
        try:
            data: bytes = self._file.read(size)
        except self._damage as error:
            raise TextMalformed(f"The file does not have the stated compression: {error}") from error
        return data

    @property
    def file_bytes(self) -> int:
        """The number of compressed bytes read."""
        return self._raw.tell()

    def close(self) -> None:
        """Close the file."""
        if self._file is not self._raw:
            self._file.close()
        self._raw.close()


def load_zstd() -> Any:
    """Return the Zstandard module; if it is missing, name the extra that installs it."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415 - loaded when needed
        else:
            from backports import zstd  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise CodecMissing("Zstandard needs a package: pip install 'tavola[zstd]'") from error
    return zstd
