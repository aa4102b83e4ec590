"""Pages: a store's file as bytes: whether it has the form of one, and which pages are not as they were written.

The bytes are read through SQLite all the same: closing a file that was opened by other means would take the locks
along that this process has on it.
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
_ALIKE = slice(
    20, 24
)  # of SQLite's header: the bytes at the end of each page that are not SQLite's, and constants
_ENCRYPTED = bytes((64, 64, 32, 32))

Form: TypeAlias = Literal["store", "encrypted", "pages", "other"]


def form_of(path: str | os.PathLike[str]) -> Form:
    """Return what a file looks like: a store, one that is encrypted, mere pages as of either, or something else.

    Encryption leaves the few bytes of SQLite's header in clear that tell the form of the pages.
    """
    file = _file(os.fspath(path))
    try:
        size = file.xFileSize()
        head = file.xRead(min(size, _ALIKE.stop), 0)
    finally:
        file.xClose()
    if head.startswith(_MAGIC):
        return "store"
    if head[_ALIKE] == _ENCRYPTED:
        return "encrypted"
    return "other" if size % _PAGE_BYTES else "pages"


def has_checksums(connection: apsw.Connection) -> bool:
    """Tell whether a file's pages have checksums; one that is encrypted needs none."""
    return bool(connection.open_vfs == "cksmvfs")


def spoilt_pages(connection: apsw.Connection, most: int) -> list[tuple[int, str | None]]:
    """Return pages of a file, not encrypted, whose checksums do not fit them, each with its table or index.

    They are read past SQLite's pager, which would stop at the first.
    """
    file = _file(connection.filename)
    spoilt: list[int] = []
    try:
        size = file.xFileSize()
        for start in range(0, size, _CHUNK_PAGES * _PAGE_BYTES):
            chunk = file.xRead(min(_CHUNK_PAGES * _PAGE_BYTES, size - start), start)
            for at in range(0, len(chunk), _PAGE_BYTES):
                page = chunk[at : at + _PAGE_BYTES]
                if connection.execute("SELECT verify_checksum(?)", (page,)).get != 1:
                    spoilt.append((start + at) // _PAGE_BYTES + 1)
            if len(spoilt) >= most:
                break
    finally:
        file.xClose()
    owners = _owners(connection, spoilt)
    return [(page, owners.get(page)) for page in spoilt[:most]]


def spoilt_trees(connection: apsw.Connection) -> list[str]:
    """Return the names of the tables and indexes, as SQLite has them, that cannot be walked to their ends."""
    try:
        names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE rootpage")]
    except apsw.Error:
        return ["sqlite_schema"]
    spoilt: list[str] = []
    for name in names:
        try:
            connection.execute("SELECT count(*) FROM dbstat WHERE name = ?", (name,)).fetchall()
        except apsw.Error:
            spoilt.append(name)
    return spoilt


def _file(path: str) -> apsw.VFSFile:
    """Return a file to be read, as the machine has it."""
    machine = next(name for name in apsw.vfs_names() if name.startswith(_CIPHERS)).removeprefix(_CIPHERS)
    path = os.path.abspath(path)
    return apsw.VFSFile(machine, path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])


def _owners(connection: apsw.Connection, pages: list[int]) -> dict[int, str]:
    """Return whose pages are, as far as it can be told: by the pages that lead to them, spoilt or not."""
    found: dict[int, str] = {}
    wanted = set(pages)
    connection.pragma("checksum_verification", "OFF")
    try:
        with suppress(apsw.Error):
            for name, page in connection.execute("SELECT name, pageno FROM dbstat"):
                if page in wanted and isinstance(page, int):
                    found[page] = str(name)
    finally:
        connection.pragma("checksum_verification", "ON")
    return found
