"""WAL binding: a WAL is replayed only over the database file that it was written for.

The problem. SQLite replays a WAL (write-ahead log) over whatever file it lies beside. If a process is killed, its WAL
stays; if a backup is then copied over the database file, the next opening would write pages of the later state into the
earlier one. Neither file says that they do not belong together.

The idea. The header of a WAL contains a number, its first salt. It is random in a new WAL and rises by one each time SQLite
starts the WAL over, which it does after a checkpoint has moved all of its pages into the file. So before each checkpoint we
write the WAL's salt into the database file, as the upper 24 bits of `user_version`, whose lower 8 bits are the format:

    WAL salt 70   ... commits ..., commit "70", checkpoint      file: 69 while it runs, then 70
    WAL salt 71   ... commits ...                               file: 70
    WAL salt 71   ..., commit "71", checkpoint, killed          file: 70 or 71

The field is on the first page, which a checkpoint writes whole, like any other page. Hence a WAL with salt n belongs to a
file with n or n - 1, and to no other: a file that was copied at another time, or from another store, has another number.
Both states of the field are correct for the WAL, so a crash at any moment leaves a pair that opens.

A process that starts a new WAL binds it and empties it before its first transaction: an emptied WAL counts on, so what is
written later has the next salt. One commit that changes nothing determines the first salt. A crash during that leaves a
WAL in its first round, which holds nothing of a caller and is accepted. The WAL that a crash left stays as it is: it is bound,
and emptying it could fail on a full disk.

Closing a store does the same: it empties the WAL, and commits the next number to it, which SQLite moves to the file before it deletes the WAL.
So an earlier copy of that WAL does not fit the closed file.

A WAL is accepted without proof if it is in its first round, if its file has no number (an earlier version wrote it), or if the first page of the file
cannot be read (a power cut while a checkpoint wrote it, which the WAL repairs). A WAL without a complete commit is ignored by
SQLite, and here.

The cost: two small commits and a checkpoint before the first write of a process, one small commit per checkpoint, every 16 MB, and one when the
store is closed. Not detected: a WAL beside a copy of its file that was made during the same round, between the same two checkpoints. Such a
copy is the file itself; but if the WAL is an older copy too, later writes of that round are missing. Two states agree by chance once in eight million.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

import apsw

from tavola.engine.storage.errors import StoreMismatch

_FORMAT_BITS = 8
_SALT_MASK = 0xFFFFFF
_WAL_HEADER = struct.Struct(">8I")  # magic, version, page size, number of restarts, two salts, two checksums


class WalHeader(NamedTuple):
    """What identifies one round of a WAL."""

    restarts: int
    salt: int


def read_wal_header(path: str) -> WalHeader | None:
    """Return the header of a WAL; None if there is none yet. The file has no locks that reading could release."""
    try:
        with open(path, "rb") as file:
            content = file.read(_WAL_HEADER.size)
    except FileNotFoundError:
        return None
    if len(content) < _WAL_HEADER.size:
        return None
    fields = _WAL_HEADER.unpack(content)
    return WalHeader(fields[3], fields[4])


def read_format(connection: apsw.Connection) -> int:
    """Return the version of the file's format; 0 for an empty file."""
    return _read_version(connection) & ((1 << _FORMAT_BITS) - 1)


def write_format(connection: apsw.Connection, version: int) -> None:
    """Set the version of the file's format, which leaves the binding as it is."""
    _write_version(connection, _read_version(connection) >> _FORMAT_BITS, version)


def read_binding(connection: apsw.Connection) -> int:
    """Return the number by which a file knows its WAL; 0 if it has none."""
    return _read_version(connection) >> _FORMAT_BITS


def write_binding(connection: apsw.Connection, number: int) -> None:
    """Set the number by which a file knows its WAL."""
    _write_version(connection, number & _SALT_MASK, read_format(connection))


def begin_wal(connection: apsw.Connection) -> None:
    """Bind a new WAL, and empty it; a WAL that has commits and was bound before stays as it is."""
    header = read_wal_header(connection.filename_wal)
    has_frames = count_frames(connection) > 0
    if has_frames and header is not None and header.restarts:
        return
    if not has_frames:  # what is in the file may be the rest of a torn header: have SQLite write one
        _write_version(connection, read_binding(connection), read_format(connection))
    move_wal(connection, apsw.SQLITE_CHECKPOINT_TRUNCATE)


def end_wal(connection: apsw.Connection) -> None:
    """Give the file the number after its WAL's, before the connection is closed and the WAL deleted.

    An older copy of that WAL, put beside the closed file, is then recognized.
    """
    if count_frames(connection) > 0:
        move_wal(connection, apsw.SQLITE_CHECKPOINT_TRUNCATE)
    write_binding(connection, read_binding(connection) + 1)


def move_wal(connection: apsw.Connection, mode: int = apsw.SQLITE_CHECKPOINT_PASSIVE) -> None:
    """Move a WAL that has commits into the database file, with its salt; the only checkpoint of an open store.

    Closing a connection checkpoints as well, see `end_wal`.
    """
    _bind_wal(connection)  # without it, the WAL must not start over
    connection.wal_checkpoint(mode=mode)


def _bind_wal(connection: apsw.Connection) -> None:
    """Write the salt of a WAL that has commits into the database; the checkpoint that follows moves it to the file."""
    header = read_wal_header(connection.filename_wal)
    assert header is not None, "the first commit writes the header"
    if read_binding(connection) != header.salt & _SALT_MASK:
        write_binding(connection, header.salt)


def count_frames(connection: apsw.Connection) -> int:
    """Return the number of pages in the WAL's complete commits."""
    return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]


def check_not_orphaned(path: str) -> None:
    """Raise StoreMismatch if a WAL has content and its database file is missing or empty; SQLite would delete the WAL."""
    if read_wal_header(f"{path}-wal") is not None and not (os.path.exists(path) and os.path.getsize(path)):
        raise StoreMismatch(
            f"{path} is missing or empty, but its log {path}-wal is there; nothing was changed",
            f"Put back the file that the log belongs to, or move {path}-wal away to start with an empty file.",
        )


def check_wal(connection: apsw.Connection, checkpointed: int | None) -> None:
    """Raise StoreMismatch if the WAL was written for another file than the one beside it.

    `checkpointed` is the binding in the file without its WAL; None if its first page cannot be read. The connection owns
    the file and has read the WAL, but has changed neither.
    """
    header = read_wal_header(connection.filename_wal)
    if header is None or checkpointed is None:
        return
    salt = header.salt & _SALT_MASK
    if (
        not header.restarts
        or checkpointed in (salt, (salt - 1) & _SALT_MASK)
        or count_frames(connection) <= 0
    ):
        return
    if not checkpointed and not read_binding(connection):
        return  # of an earlier version
    path = connection.filename
    raise StoreMismatch(
        f"the log {path}-wal belongs to another state of {path}: the file was replaced, for example by a backup, while its "
        f"log was left behind; nothing was changed",
        f"To open the file as it is, without the writes in that log, move {path}-wal away. To keep them, put back the file "
        "that was there.",
    )


def _read_version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version")) & 0xFFFFFFFF


def _write_version(connection: apsw.Connection, binding: int, version: int) -> None:
    value = binding << _FORMAT_BITS | version
    connection.pragma("user_version", value - (1 << 32) if value >= 1 << 31 else value)
