"""Pages of a store's file: whether a file looks like a store, and which pages are damaged.

The bytes are read through SQLite's VFS. Opening and closing the file by other means would release the POSIX locks that
this process holds on it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Literal, TypeAlias

import apsw

_PAGE_BYTES = 4096
_CHUNK_PAGES = 256
_CIPHERS = "multipleciphers-"
_MAGIC = b"SQLite format 3\x00"
# Bytes of SQLite's header that encryption leaves in clear: the reserved bytes of each page, and constants.
_CLEAR_HEADER = slice(20, 24)
_ENCRYPTED = bytes((64, 64, 32, 32))

Form: TypeAlias = Literal["store", "encrypted", "pages", "other"]


def form_of(path: str | os.PathLike[str]) -> Form:
    """Return what a file looks like: a store, an encrypted store, whole pages of unknown content, or something else.

    Encryption leaves a few bytes of SQLite's header in clear, by which an encrypted store is recognized.
    """
    file = _open_raw(os.fspath(path))
    try:
        size = file.xFileSize()
        head = file.xRead(min(size, _CLEAR_HEADER.stop), 0)
    finally:
        file.xClose()
    if head.startswith(_MAGIC):
        return "store"
    if head[_CLEAR_HEADER] == _ENCRYPTED:
        return "encrypted"
    return "other" if size % _PAGE_BYTES else "pages"


def has_checksums(connection: apsw.Connection) -> bool:
    """Return whether the file's pages have checksums; an encrypted file needs none."""
    return bool(connection.open_vfs == "cksmvfs")


def find_damaged_pages(connection: apsw.Connection, most: int) -> list[tuple[int, str | None]]:
    """Return the pages of an unencrypted file whose checksums are wrong, each with its table or index.

    The pages are read past SQLite's pager, which would stop at the first damaged one.
    """
    file = _open_raw(connection.filename)
    damaged: list[int] = []
    try:
        size = file.xFileSize()
        for start in range(0, size, _CHUNK_PAGES * _PAGE_BYTES):
            chunk = file.xRead(min(_CHUNK_PAGES * _PAGE_BYTES, size - start), start)
            for at in range(0, len(chunk), _PAGE_BYTES):
                page = chunk[at : at + _PAGE_BYTES]
                if connection.execute("SELECT verify_checksum(?)", (page,)).get != 1:
                    damaged.append((start + at) // _PAGE_BYTES + 1)
            if len(damaged) >= most:
                break
    finally:
        file.xClose()
    owners = _owners(connection, damaged)
    return [(page, owners.get(page)) for page in damaged[:most]]


def find_damaged_trees(connection: apsw.Connection) -> list[str]:
    """Return the names of the SQLite tables and indexes that cannot be read to their ends."""
    try:
        names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE rootpage")]
    except apsw.Error:
        return ["sqlite_schema"]
    damaged: list[str] = []
    for name in names:
        try:
            connection.execute("SELECT count(*) FROM dbstat WHERE name = ?", (name,)).fetchall()
        except apsw.Error:
            damaged.append(name)
    return damaged


def _open_raw(path: str) -> apsw.VFSFile:
    """Open a file read-only through the VFS of the platform, without checksums or decryption."""
    machine = next(name for name in apsw.vfs_names() if name.startswith(_CIPHERS)).removeprefix(_CIPHERS)
    path = os.path.abspath(path)
    return apsw.VFSFile(machine, path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])


def _owners(connection: apsw.Connection, pages: list[int]) -> dict[int, str]:
    """Return the table or index that each page belongs to, as far as the pages that lead to it can be read."""
    owners: dict[int, str] = {}
    damaged = set(pages)
    connection.pragma("checksum_verification", "OFF")
    try:
        with suppress(apsw.Error):
            for name, page in connection.execute("SELECT name, pageno FROM dbstat"):
                if page in damaged and isinstance(page, int):
                    owners[page] = str(name)
    finally:
        connection.pragma("checksum_verification", "ON")
    return owners
