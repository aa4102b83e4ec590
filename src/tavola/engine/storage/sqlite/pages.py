"""Pages: which pages of a store's file are not as they were written, and whose they are."""

from __future__ import annotations

import apsw

_PAGE_BYTES = 4096
_CHUNK_PAGES = 256
_CIPHERS = "multipleciphers-"


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


def spoilt_pages(connection: apsw.Connection, most: int) -> list[int]:
    """Return the numbers of pages in a file, not encrypted, whose checksums do not fit them, up to so many.

    They are read past SQLite's pager, which would stop at the first, and yet through SQLite: closing a file that
    was opened by other means would take the lock along.
    """
    machine = next(name for name in apsw.vfs_names() if name.startswith(_CIPHERS)).removeprefix(_CIPHERS)
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
    spoilt: list[int] = []
    file = apsw.VFSFile(machine, apsw.URIFilename | connection.filename, [flags, 0])  # placeholder
    return spoilt
