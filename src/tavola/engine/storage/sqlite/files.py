"""Files: opening a store's file, its lock, its owner and its checksums."""

from __future__ import annotations

import os
from contextlib import suppress

import apsw
import apsw.sqlite_extra

from tavola.engine.storage.sqlite.errors import damaged, store_error
from tavola.engine.storage.store import StoreDamaged, StoreError, StoreInUse, StoreLocked

_APPLICATION_ID = 0x7461766F  # "tavo", in the file's header
_CHECKSUM_VFS = "cksmvfs"
_CHECKSUM_BYTES = 8
_CIPHER = "aegis"
_COPIED_BYTES = 1024 * 1024
_PAGE_BYTES = 4096
_OTHERS_LEAVE_MS = 2000
_CHECKED_BYTES_MAX = 8 * 1024 * 1024  # a store that is walked whole when it is opened, some 20 ms


def opening_error(path: object, error: apsw.Error | StoreError, *, encrypted: bool = False) -> StoreError:
    """Return why a store cannot be opened, in words that say what to do."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, apsw.BusyError):
        return StoreInUse(
            f"{path} is open already, here or in another process; close that one, or connect to its endpoint"
        )
    if isinstance(error, apsw.NotADBError):
        if not encrypted:
            return StoreDamaged(
                f"{path} is no Tavola store, or it is encrypted, or its first page is damaged; give its key if "
                "it has one, or another path, or restore it"
            )
        if _is_plain(str(path)):
            return StoreLocked(f"{path} is not encrypted, and a key was given; open it without one")
        return StoreLocked(f"{path} cannot be read with this key; nothing was changed: give the right one")
    if isinstance(error, apsw.CantOpenError):
        if os.path.isdir(str(path)):
            return StoreError(f"{path} is a folder; give a file in it")
        return StoreError(f"{path} cannot be opened; check that its folder exists and is yours")
    return store_error(error)


def connect_file(path: str, key: str | None) -> apsw.Connection:
    """Return a connection whose pages are verified as they are read: by checksums, or by their encryption.

    AEGIS-256 authenticates each page with its place, so a page that was changed or moved does not decrypt, and
    on processors with AES instructions it costs no more than the checksums that it makes needless.
    """
    if key is not None:
        connection = apsw.Connection(path, vfs=_ciphers())
        connection.pragma("cipher", _CIPHER)
        connection.pragma("key", key)
        return connection
    return apsw.Connection(path, vfs=_checksums())


def change_key(path: str, key: str | None, new: str | None) -> None:
    """Put a store's file under another key, or under none; nobody else can have it open meanwhile.

    A copy is written under the new key, looked through, and put in the file's place at the end: until then the
    file is as it was, whatever happens.
    """
    copy = f"{path}.rekeyed"
    connection = connect_file(path, key)
    try:
        connection.pragma("locking_mode", "EXCLUSIVE")
        connection.execute("BEGIN IMMEDIATE")
        owner = connection.pragma("application_id")
        connection.execute("ROLLBACK")
        if owner != _APPLICATION_ID:
            raise StoreError(f"{path} is no Tavola store; give another path")
        connection.pragma("journal_mode", "DELETE")  # all of it is in the file, and the lock stays
        _copy(path, copy)
        _rekey(copy, key, new)
        os.replace(copy, path)
    except (apsw.Error, StoreError) as error:
        raise opening_error(path, error, encrypted=key is not None) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be written anew ({error}); it is as it was") from error
    finally:
        connection.close(True)
        with suppress(FileNotFoundError):
            os.unlink(copy)


def _copy(path: str, copy: str) -> None:
    """Copy a file's bytes for its owner alone, reading them through SQLite, which keeps the lock that we hold."""
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
    source = apsw.VFSFile("unix" if os.name == "posix" else "win32", path, [flags, 0])
    try:
        with open(copy, "wb", opener=lambda name, how: os.open(name, how, 0o600)) as target:
            size, done = source.xFileSize(), 0
            while done < size:
                target.write(source.xRead(min(_COPIED_BYTES, size - done), done))
                done = min(done + _COPIED_BYTES, size)
            target.flush()
            os.fsync(target.fileno())
    finally:
        source.xClose()


def _rekey(path: str, key: str | None, new: str | None) -> None:
    """Write a file anew under another key, with room for checksums where it has none, and look through it."""
    connection = apsw.Connection(path, vfs=_ciphers())
    try:
        connection.pragma("cipher", _CIPHER)
        if key is not None:
            connection.pragma("key", key)
        connection.pragma("rekey", new or "")
    finally:
        connection.close(True)
    connection = connect_file(path, new)
    try:
        if new is None:
            connection.reserve_bytes("main", _CHECKSUM_BYTES)
            connection.execute("VACUUM")
        found = connection.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            raise damaged(f"{path}: {str(found).splitlines()[-1]}")
    finally:
        connection.close(True)


def _checksums() -> str:
    """Return the name of the VFS that keeps checksums, which is there once it was loaded."""
    if _CHECKSUM_VFS not in apsw.vfs_names():
        # Loading makes the checksum VFS the default of every apsw connection in the process: put it back.
        default = apsw.vfs_names()[0]
        apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")
        apsw.set_default_vfs(default)
    return _CHECKSUM_VFS


def _ciphers() -> str:
    """Return the name of the VFS that encrypts, which stands on the one of the machine."""
    return next(name for name in apsw.vfs_names() if name.startswith("multipleciphers-"))


def _is_plain(path: str) -> bool:
    """Tell whether a file can be read without a key; asked through SQLite, so that no lock is lost."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.pragma("schema_version")
    except apsw.Error:
        return False
    finally:
        connection.close(True)
    return True


def set_up_file(
    connection: apsw.Connection, synchronous: str, *, encrypted: bool, walked: bool = True
) -> None:
    """Take the file for this connection alone, and refuse one that is not a whole store of ours.

    A small one is `walked` through all of its pages; whoever will do that anyway may leave it out.
    """
    if not encrypted:
        # Of a file that is not there yet, as the page size is.
        connection.reserve_bytes("main", _CHECKSUM_BYTES)
    connection.pragma("page_size", _PAGE_BYTES)
    connection.pragma("locking_mode", "EXCLUSIVE")
    # Take the lock now, not at the first write: two engines must not both believe they own the file. By then
    # SQLite has also undone what a crash left half done, and so far nothing in the file was changed.
    connection.execute("BEGIN IMMEDIATE")
    owner = connection.pragma("application_id")
    connection.execute("ROLLBACK")
    # Whoever came second is refused at once above; the first waits until the others have let go.
    connection.set_busy_timeout(_OTHERS_LEAVE_MS)
    new = not os.path.getsize(connection.filename)
    if owner != _APPLICATION_ID and not new:
        raise StoreError(
            f"{connection.filename} is an SQLite database, but not a Tavola store; give another path"
        )
    if new:
        # Before there is a log, so that the file names its owner from its first page on.
        connection.pragma("application_id", _APPLICATION_ID)
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", synchronous)
    _check_whole(connection, encrypted=encrypted, walked=walked)


def _check_whole(connection: apsw.Connection, *, encrypted: bool, walked: bool) -> None:
    """Refuse a file that lacks pages, or, if it is small, one whose pages do not fit together.

    A page's checksum says that the page is as it was written, not that it is where it was written. Walking all
    pages does, and takes time with the size; a large store is checked as it is read, and by request.
    """
    if not encrypted and connection.reserve_bytes("main", -1) != _CHECKSUM_BYTES:
        raise damaged(
            "its pages have no room for their checksums; if decrypting it was cut short, "
            "`tavola rekey FILE --decrypt` without a key completes it"
        )
    path, log = connection.filename, connection.filename_wal
    size = os.path.getsize(path)
    if not os.path.exists(log) or not os.path.getsize(log):
        # With a log, pages may be there that the file has not got yet; without, it must hold them all.
        pages: int = connection.pragma("page_count")
        if size < pages * _PAGE_BYTES:
            raise damaged(f"{path} is shorter than it was written")
    if walked and size <= _CHECKED_BYTES_MAX:
        found = connection.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            raise damaged(f"{path}: {str(found).splitlines()[-1]}")
