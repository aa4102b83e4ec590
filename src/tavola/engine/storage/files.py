"""The file of a store: opening and locking it, checksums or encryption, changing its key, and finding damaged pages.

Raw bytes are read through SQLite's VFS. Opening and closing the file by other means would release the POSIX locks that
this process holds on it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_IMODE
from typing import Literal, TypeAlias
from urllib.parse import quote

import apsw
import apsw.sqlite_extra

from tavola.engine.storage.errors import (
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreInUse,
    StoreLocked,
    damage_error,
    store_error,
)
from tavola.engine.storage.wal_binding import check_not_orphaned, check_wal, read_binding
from tavola.folders import PRIVATE_MODE

APPLICATION_ID = 0x7461766F  # "tavo", in the file's header
_CHECKSUM_VFS = "cksmvfs"
_CHECKSUM_BYTES = 8
_CIPHER = "aegis"
_COPIED_BYTES = 1024 * 1024
PAGE_BYTES = 4096
_BUSY_TIMEOUT_MS = 2000
_CHECKED_BYTES_MAX = 8 * 1024 * 1024  # smaller stores are checked in full when they are opened, about 20 ms
_CHUNK_PAGES = 256
_CIPHERS = "multipleciphers-"
_MAGIC = b"SQLite format 3\x00"
# Bytes of SQLite's header that encryption leaves in clear: the reserved bytes of each page, and constants.
_CLEAR_HEADER = slice(20, 24)
_ENCRYPTED = bytes((64, 64, 32, 32))

Form: TypeAlias = Literal["store", "encrypted", "pages", "other"]


def opening_error(path: object, error: apsw.Error | StoreError, *, encrypted: bool = False) -> StoreError:
    """Return the StoreError for a store that cannot be opened; the message says what to do."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, apsw.BusyError):
        return StoreInUse(f"{path} is already open, here or in another process")
    if isinstance(error, apsw.NotADBError):
        if not encrypted and form_of(str(path)) == "other":
            return StoreForeign(f"{path} is not a Tavola database file.")
        if not encrypted:
            return StoreDamaged(
                f"{path} is not a Tavola store, or is encrypted, or its first page is damaged; pass its key if it has "
                "one, choose another path, or restore the file"
            )
        if _is_unencrypted(str(path)):
            return StoreLocked(f"{path} is not encrypted, but a key was passed; open it without a key")
        return StoreLocked(f"{path} cannot be read with this key; nothing was changed: pass the right key")
    if isinstance(error, apsw.CantOpenError):
        if os.path.isdir(str(path)):
            return StoreError(f"{path} is a folder; choose a file in it")
        return StoreError(
            f"{path} cannot be opened; check that its folder exists and that you may write to it"
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.IOError) and not os.access(str(path), os.W_OK):
        return StoreError(
            f"{path} cannot be written; check its permissions, and that its file system is not mounted read-only"
        )
    return store_error(error)


def connect_file(path: str, key: str | None) -> apsw.Connection:
    """Return a connection that verifies each page it reads, by checksum or by authenticated encryption.

    AEGIS-256 authenticates each page together with its position, so a page that was changed or moved does not decrypt.
    On processors with AES instructions it costs no more than the checksums it replaces.

    A file that does not exist is created for its owner only, and so are its WAL and its journal, which get its mode.
    """
    is_new = not os.path.exists(path)
    connection = _connect(path, key, apsw.SQLITE_OPEN_CREATE)
    if is_new:
        # Before anything is in it. Creating it ourselves and closing it again could release a lock that another thread
        # of this process has taken meanwhile.
        os.chmod(path, PRIVATE_MODE)
    return connection


def _connect(path: str, key: str | None, flags: int) -> apsw.Connection:
    if not flags & apsw.SQLITE_OPEN_READONLY:
        flags |= apsw.SQLITE_OPEN_READWRITE
    if key is None:
        return apsw.Connection(path, flags, vfs=_checksum_vfs())
    connection = apsw.Connection(path, flags, vfs=_cipher_vfs())
    connection.pragma("cipher", _CIPHER)
    connection.pragma("key", key)
    return connection


def _uri(path: str, **parameters: str) -> str:
    """Return the URI of a file, with parameters for SQLite."""
    listed = "&".join(f"{name}={quote(value)}" for name, value in parameters.items())
    return f"file:{quote(os.path.abspath(path))}?{listed}"


def _read_checkpointed_binding(path: str, key: str | None) -> int | None:
    """Return the binding in a file without its WAL; None if its first page cannot be read."""
    try:
        connection = _connect(
            _uri(path, immutable="1"), key, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        try:
            return read_binding(connection)
        finally:
            connection.close(True)
    except apsw.Error:
        return None


def own_file(connection: apsw.Connection, key: str | None) -> int:
    """Lock a file for this connection, and return its application id.

    Raises StoreMismatch if the WAL beside it belongs to another file. Nothing is changed, except that SQLite rolls back
    what a crash left unfinished.
    """
    path = connection.filename
    check_not_orphaned(path)
    connection.pragma("locking_mode", "EXCLUSIVE")
    # Take the lock now, not at the first write: two engines must not both believe that they own the file.
    connection.execute("BEGIN IMMEDIATE")
    owner: int = connection.pragma("application_id")
    connection.execute("ROLLBACK")
    try:
        check_wal(connection, _read_checkpointed_binding(path, key))
    except StoreError:
        keep_wal(connection)
        raise
    return owner


def keep_wal(connection: apsw.Connection) -> None:
    """Let a connection leave the WAL as it is when it is closed."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def change_key(path: str, key: str | None, new: str | None) -> None:
    """Encrypt a store's file with another key, or decrypt it; the file is locked meanwhile.

    A copy is written under the new key, checked, and moved over the file at the end. Until then the file is
    unchanged, whatever happens. An attempt that was killed may leave a copy with its journal. SQLite would apply that
    journal to the next copy, so both are deleted first.
    """
    copy = f"{path}.rekeyed"
    connection = connect_file(path, key)
    try:
        if own_file(connection, key) != APPLICATION_ID:
            raise StoreForeign(f"{path} is not a Tavola database file.")
        connection.pragma("journal_mode", "DELETE")  # moves the WAL into the file and keeps the lock
        _delete_copy(copy)
        _copy(path, copy)
        _rekey(copy, key, new)
        os.replace(copy, path)
    except (apsw.Error, StoreError) as error:
        raise opening_error(path, error, encrypted=key is not None) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be rewritten ({error}); it is unchanged") from error
    finally:
        connection.close(True)
        _delete_copy(copy)


def _delete_copy(copy: str) -> None:
    for name in (copy, f"{copy}-journal"):
        with suppress(FileNotFoundError):
            os.unlink(name)


def _copy(path: str, copy: str) -> None:
    """Copy a file with its mode. It is read through SQLite, which keeps our lock on it."""
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
    source = apsw.VFSFile("unix" if os.name == "posix" else "win32", path, [flags, 0])
    try:
        with open(copy, "wb", opener=lambda name, how: os.open(name, how, PRIVATE_MODE)) as target:
            os.chmod(copy, S_IMODE(os.stat(path).st_mode))
            size, done = source.xFileSize(), 0
            while done < size:
                target.write(source.xRead(min(_COPIED_BYTES, size - done), done))
                done = min(done + _COPIED_BYTES, size)
            target.flush()
            os.fsync(target.fileno())
    finally:
        source.xClose()


def _rekey(path: str, key: str | None, new: str | None) -> None:
    """Rewrite a file under another key, with space for checksums if it has none, and check it."""
    connection = apsw.Connection(path, vfs=_cipher_vfs())
    try:
        connection.pragma("cipher", _CIPHER)
        if key is not None:
            connection.pragma("key", key)
        connection.pragma("rekey", new or "")
    finally:
        connection.close(True)
    if new is None:
        _add_checksums(path)
    connection = connect_file(path, new)  # a new one, whose cache has no page that was not read from the disk
    try:
        result = connection.execute("PRAGMA integrity_check(1)").get
        if result != "ok":
            raise damage_error(f"{path}: {str(result).splitlines()[-1]}")
    finally:
        connection.close(True)


def _add_checksums(path: str) -> None:
    """Rewrite a file twice: the first time makes space for checksums, the second time fills it.

    The checksum VFS begins to write checksums when it has written the first page of a file with space for them. If a file
    exceeds SQLite's cache, other pages are written before that one.
    """
    connection = connect_file(path, None)
    try:
        connection.reserve_bytes("main", _CHECKSUM_BYTES)
        connection.execute("VACUUM")
        connection.pragma("checksum_verification", False)
        connection.execute("VACUUM")
    finally:
        connection.close(True)


def _checksum_vfs() -> str:
    """Return the name of the checksum VFS, loading it on first use."""
    if _CHECKSUM_VFS not in apsw.vfs_names():
        # Loading makes the checksum VFS the default of every apsw connection in the process: put it back.
        default = apsw.vfs_names()[0]
        apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")
        apsw.set_default_vfs(default)
    return _CHECKSUM_VFS


def _cipher_vfs() -> str:
    """Return the name of the encrypting VFS, which wraps the default VFS of this platform."""
    return next(name for name in apsw.vfs_names() if name.startswith(_CIPHERS))


def _is_unencrypted(path: str) -> bool:
    """Return whether a file can be read without a key. Opens it through SQLite, so that no lock is lost."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.pragma("schema_version")
    except apsw.Error:
        return False
    finally:
        connection.close(True)
    return True


def set_up_file(
    connection: apsw.Connection, synchronous: str, key: str | None, *, check_pages: bool = True
) -> None:
    """Lock the file for this connection, and raise StoreError unless it is a complete Tavola store.

    With `check_pages`, a small file is checked in full; a caller that checks it anyway can turn that off.
    """
    encrypted = key is not None
    if not encrypted:
        # Has an effect on a new file only, as the page size has.
        connection.reserve_bytes("main", _CHECKSUM_BYTES)
    connection.pragma("page_size", PAGE_BYTES)
    owner = own_file(connection, key)
    # A second engine has been refused above, at once. The first one waits until the others have closed.
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    new = not os.path.getsize(connection.filename)
    if owner != APPLICATION_ID and not new:
        raise StoreForeign(f"{connection.filename} is an SQLite database, but not a Tavola database file.")
    if new:
        # Before the WAL exists, so that the file identifies itself from its first page on.
        connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", synchronous)
    _check_complete(connection, encrypted=encrypted, check_pages=check_pages)
    connection.wal_autocheckpoint(0)


def _check_complete(connection: apsw.Connection, *, encrypted: bool, check_pages: bool) -> None:
    """Raise StoreDamaged if pages are missing or, for a small file, if its pages are inconsistent.

    A page's checksum proves its content, not its position. Only a walk through all pages proves that, which takes
    time in proportion to the size. A large store is therefore checked as it is read, and by `tavola verify`.
    """
    if not encrypted and connection.reserve_bytes("main", -1) != _CHECKSUM_BYTES:
        raise damage_error(
            "its pages have no space for checksums; if decrypting it was interrupted, "
            "`tavola rekey FILE --decrypt` without a key completes it"
        )
    path, log = connection.filename, connection.filename_wal
    size = os.path.getsize(path)
    if not os.path.exists(log) or not os.path.getsize(log):
        # With a WAL, the newest pages may not be in the file yet; without one, the file must hold them all.
        pages: int = connection.pragma("page_count")
        if size < pages * PAGE_BYTES:
            raise damage_error(f"{path} is shorter than its content")
    if check_pages and size <= _CHECKED_BYTES_MAX:
        result = connection.execute("PRAGMA integrity_check(1)").get
        if result != "ok":
            raise damage_error(f"{path}: {str(result).splitlines()[-1]}")


def form_of(path: str | os.PathLike[str]) -> Form:
    """Return what a file looks like: a store, an encrypted store, whole pages of unknown content, or something else.

    Encryption leaves a few bytes of SQLite's header in clear, by which an encrypted store is recognized.
    """
    file = open_raw(os.fspath(path))
    try:
        size = file.xFileSize()
        head = file.xRead(min(size, _CLEAR_HEADER.stop), 0)
    finally:
        file.xClose()
    if head.startswith(_MAGIC):
        return "store"
    if head[_CLEAR_HEADER] == _ENCRYPTED:
        return "encrypted"
    return "other" if size % PAGE_BYTES else "pages"


def has_checksums(connection: apsw.Connection) -> bool:
    """Return whether the file's pages have checksums; an encrypted file needs none."""
    return bool(connection.open_vfs == "cksmvfs")


def find_damaged_pages(connection: apsw.Connection, count_max: int) -> list[tuple[int, str | None]]:
    """Return the pages of an unencrypted file whose checksums are wrong, each with its table or index.

    The pages are read past SQLite's pager, which would stop at the first damaged one.
    """
    file = open_raw(connection.filename)
    damaged: list[int] = []
    try:
        size = file.xFileSize()
        for start in range(0, size, _CHUNK_PAGES * PAGE_BYTES):
            chunk = file.xRead(min(_CHUNK_PAGES * PAGE_BYTES, size - start), start)
            for position in range(0, len(chunk), PAGE_BYTES):
                page = chunk[position : position + PAGE_BYTES]
                if connection.execute("SELECT verify_checksum(?)", (page,)).get != 1:
                    damaged.append((start + position) // PAGE_BYTES + 1)
            if len(damaged) >= count_max:
                break
    finally:
        file.xClose()
    owners = _page_owners(connection, damaged)
    return [(page, owners.get(page)) for page in damaged[:count_max]]


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


def open_raw(path: str) -> apsw.VFSFile:
    """Open a file read-only through the VFS of the platform, without checksums or decryption."""
    platform_vfs = next(name for name in apsw.vfs_names() if name.startswith(_CIPHERS)).removeprefix(_CIPHERS)
    path = os.path.abspath(path)
    return apsw.VFSFile(platform_vfs, path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])


def _page_owners(connection: apsw.Connection, pages: list[int]) -> dict[int, str]:
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
