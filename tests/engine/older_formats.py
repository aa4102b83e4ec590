"""Stores of older formats, written by SQL: what an earlier version would have left of the same items.

Keys and entries are made from the items, not from the keys that replace them, so that the upgrade is compared with an
independent account of the old format.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw
import msgspec

from tavola.engine.storage.files import connect_file
from tavola.engine.storage.wal_binding import read_format
from tavola.keys.schema import number_bytes

Definition = dict[str, Any]


def write_format_2(path: Path, key: str | None = None) -> None:
    """Turn a store of the present format, which is closed, into one of format 2."""
    connection = connect_file(str(path), key)
    connection.execute("BEGIN IMMEDIATE")
    names = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    numbers: set[int] = set()
    for number, definition in _definitions(connection):
        if number in numbers or f"rack{number}" not in names:
            continue
        numbers.add(number)
        _write_rows(connection, number, definition)
        if f"log{number}" in names:
            _write_log(connection, number)
    connection.pragma("user_version", 2)
    connection.execute("COMMIT")
    connection.close()


def format_of(path: Path, key: str | None = None) -> tuple[int, list[Any]]:
    """Return the format of a closed store and the states of its unfinished upgrades."""
    connection = connect_file(str(path), key)
    version = read_format(connection)
    states = connection.execute("SELECT data FROM record WHERE kind = 'upgrade'").fetchall()
    connection.close()
    return version, [msgspec.json.decode(data) for (data,) in states]  # type: ignore[arg-type]  # a BLOB


def old_key(definition: Definition, item: Any, hash_: Sequence[str], range_: Sequence[str]) -> bytes:
    """Return the key of an item as it was before format 3."""

    def part(name: str) -> bytes:
        type_, content = definition["types"][name], item[name][definition["types"][name]]
        if type_ == "N":
            return number_bytes(content)
        return content.encode() if type_ == "S" else b64decode(content)

    body = b"".join(len(part(name)).to_bytes(2, "big") + part(name) for name in hash_)
    key = crc32(body).to_bytes(4, "big") + body
    for name in range_[:-1]:
        numeric = definition["types"][name] == "N"
        key += part(name) if numeric else part(name).replace(b"\x00", b"\x00\xff") + b"\x00\x00"
    return key + (part(range_[-1]) if range_ else b"")


def _definitions(connection: apsw.Connection) -> list[tuple[int, Definition]]:
    found: list[tuple[int, Definition]] = []
    rows: Any = connection.execute(
        "SELECT kind, data FROM record WHERE kind IN ('table', 'backup', 'kept-log')"
    ).fetchall()
    for kind, data in rows:
        record = msgspec.json.decode(data)
        found.append((record["number"], record["definition"] if kind == "backup" else record))
    return found


def _table_key(definition: Definition, item: Any) -> bytes:
    range_ = definition["range"]
    return old_key(definition, item, [definition["hash"]], [range_] if range_ else [])


def _write_rows(connection: apsw.Connection, number: int, definition: Definition) -> None:
    indexes = definition.get("indexes", [])
    columns = [f"x{index['slot']}" for index in indexes]
    listed = "".join(f", {column}" for column in columns)
    rows: Any = connection.execute(f"SELECT id, item{listed} FROM rack{number}").fetchall()
    for row, data, *entries in rows:
        item = msgspec.json.decode(data)
        old = [
            None if entry is None else old_key(definition, item, index["hash"], index["range"])
            for index, entry in zip(indexes, entries, strict=True)
        ]
        sets = "".join(f", {column} = ?" for column in columns)
        connection.execute(
            f"UPDATE rack{number} SET key = ?{sets} WHERE id = ?", (_table_key(definition, item), *old, row)
        )


def _write_log(connection: apsw.Connection, number: int) -> None:
    """Only the hash differs; an insertion may have no image to make its key from."""
    rows: Any = connection.execute(f"SELECT id, key FROM log{number}").fetchall()
    for row, key in rows:
        body = key[4 : 6 + int.from_bytes(key[4:6], "big")]
        old = crc32(body).to_bytes(4, "big") + key[4:]
        connection.execute(f"UPDATE log{number} SET key = ? WHERE id = ?", (old, row))
