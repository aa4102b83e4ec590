"""The step to format 3: keys begin with AWS's hash of their partition, and entries of global indexes end with a tie.

Until format 2 a key began with the CRC-32 of its partition, so a scan had an order of its own. What has to change is in
three places:

    rows of tables and backups    key:                CRC-32 │ partition │ range   →   position │ partition │ range
    entries of local indexes      column of the row:  the same
    entries of global indexes     column of the row:  CRC-32 │ partition │ range   →   position │ partition │ range, end │ tie
    change logs                   key:                as in the rows

All of it follows from the bytes of the keys and the types of the key attributes; the items are not read. SQLite's indexes over keys and
entries are rewritten with the rows. Meanwhile rows in the old and the new order are side by side in one index, which is
harmless: nothing reads before the end, and two keys are never equal, because what follows the first four bytes already
differs.

A job that copies or exports a table stores the last key that it has read. What it has read so far is no prefix of the new
order, so it starts again. The log of a deleted table is left as it is: it is only read in the order of its changes.

Cost: every row is rewritten with its item, about 18 µs of CPU time each; a million items with one index and a stream
took 35 seconds of it. Between two checkpoints the WAL grows by up to eight slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import apsw
import msgspec

from tavola.engine.storage.errors import damage_error
from tavola.keys import LENGTH_BYTES, POSITION_BYTES, hashed_form, position_of

_SLICE_ROWS = 4_000
_SLICE_BYTES = 16 * 1024 * 1024  # of items, which are written again with their rows
_LOG_BYTES = "ifnull(length(old), 0) + ifnull(length(new), 0)"
_END = b"\x00\x00"

_Rewrite: TypeAlias = Callable[[bytes, bytes], bytes]
"""Returns the new form of a value of a row, from the old one and the row's old key."""


class _Rewriting(NamedTuple):
    """A table of SQLite, and how its columns are rewritten."""

    name: str
    size: str  # the SQL expression for the bytes of a row
    columns: dict[str, _Rewrite]


def order_rows_by_position(
    cursor: apsw.Cursor, state: dict[str, Any] | None
) -> Iterator[tuple[dict[str, Any], float]]:
    """Rewrite all keys and entries, a slice of rows at a time."""
    try:
        if state is None:
            _restart_jobs(cursor)
        work = _find_work(cursor)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise damage_error(
            f"the definition of a table or the state of a job cannot be read: {error}"
        ) from error
    last_rows = [int(_value(cursor, f"SELECT max(id) FROM {each.name}") or 0) for each in work]
    total = sum(last_rows)
    started = ("", 0) if state is None else (state["table"], state["row"])
    done = 0
    for each, last_row in zip(work, last_rows, strict=True):
        row = started[1] if each.name == started[0] else 0
        while each.name >= started[0] and row < last_row:
            row = _rewrite_slice(cursor, each, row)
            yield {"table": each.name, "row": row}, (done + min(row, last_row)) / total
        done += last_row


def _rewrite_slice(cursor: apsw.Cursor, work: _Rewriting, after: int) -> int:
    """Rewrite the next rows and return the id of the last one."""
    rewrites = tuple(work.columns.values())
    rows: Any = cursor.execute(
        f"SELECT id, {work.size}, key, {', '.join(work.columns)} FROM {work.name} WHERE id > ? ORDER BY id LIMIT ?",
        (after, _SLICE_ROWS),
    )
    changed: list[tuple[Any, ...]] = []
    total = 0
    for row, size, key, *values in rows:
        changed.append(
            (*[_rewrite(rewrite, value, key) for rewrite, value in zip(rewrites, values, strict=True)], row)
        )
        total += size
        if total >= _SLICE_BYTES:
            break
    sets = ", ".join(f"{column} = ?" for column in work.columns)
    cursor.executemany(f"UPDATE {work.name} SET {sets} WHERE id = ?", changed)
    return int(changed[-1][-1])


def _rewrite(rewrite: _Rewrite, value: Any, key: Any) -> Any:
    """Return the new form of a value; one that is absent or damaged stays, and `verify` finds the damage."""
    if not isinstance(value, bytes) or not isinstance(key, bytes):
        return value
    try:
        return rewrite(value, key)
    except (IndexError, ValueError):
        return value


# What there is to rewrite


def _find_work(cursor: apsw.Cursor) -> list[_Rewriting]:
    """Return the tables with rows and logs whose definitions are known, ordered by name."""
    existing = {
        str(name) for (name,) in cursor.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    }
    work: dict[str, _Rewriting] = {}
    for number, definition in _definitions(cursor):
        types = [definition["types"][name] for name in _names(definition["hash"])]
        log = f"log{number}"
        if log in existing:
            work[log] = _Rewriting(log, _LOG_BYTES, {"key": _move_by(types)})
        name = f"rack{number}"
        if name not in existing or name in work:
            continue
        columns = {str(row[0]) for row in cursor.execute(f"SELECT name FROM pragma_table_info('{name}')")}
        rewrites = {"key": _move_by(types)}
        for index in definition.get("indexes", ()):
            if f"x{index['slot']}" in columns:
                rewrites[f"x{index['slot']}"] = _rewrite_of_entry(definition, index)
        work[name] = _Rewriting(name, "size", rewrites)
    return [work[name] for name in sorted(work)]


def _definitions(cursor: apsw.Cursor) -> list[tuple[int, dict[str, Any]]]:
    """Return the number and definition of each table, also of deleted ones whose rows are kept, and of each backup."""
    found: list[tuple[int, dict[str, Any]]] = []
    for kind in ("table", "kept-log", "backup"):
        for data in _records(cursor, kind).values():
            definition = data["definition"] if kind == "backup" else data
            found.append((data["number"], definition))
    return found


def _records(cursor: apsw.Cursor, kind: str) -> dict[str, Any]:
    rows: list[Any] = cursor.execute("SELECT name, data FROM record WHERE kind = ?", (kind,)).fetchall()
    return {name: msgspec.json.decode(data) for name, data in rows}


def _names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def _value(cursor: apsw.Cursor, statement: str) -> Any:
    return cursor.execute(statement).get


# Keys and entries


def _move_by(types: Sequence[str]) -> _Rewrite:
    """Return what puts a key, or an entry of a local index, at the position of its partition."""
    return lambda key, _: _move(key, types)


def _move(key: bytes, types: Sequence[str]) -> bytes:
    end = _end_of_partition(key, len(types))
    return _position(key[POSITION_BYTES:end], tuple(types)) + key[POSITION_BYTES:]


def _end_of_partition(key: bytes, count: int) -> int:
    end = POSITION_BYTES
    for _ in range(count):
        end += LENGTH_BYTES + int.from_bytes(key[end : end + LENGTH_BYTES], "big")
    return end


@lru_cache(maxsize=1024)
def _position(partition: bytes, types: tuple[str, ...]) -> bytes:
    hashed, at = b"", 0
    for type_ in types:
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(partition[at:start], "big")
        hashed += hashed_form(type_, partition[start:at])
    return position_of(hashed)


def _rewrite_of_entry(definition: dict[str, Any], index: dict[str, Any]) -> _Rewrite:
    """Return what rewrites an entry of an index: of a global one also its end."""
    types = definition["types"]
    hash_types = [types[name] for name in _names(index["hash"])]
    if index["kind"] != "global":
        return _move_by(hash_types)
    range_types = [types[name] for name in _names(index["range"])]
    table_types = [types[definition["hash"]], *[types[name] for name in _names(definition["range"])]]

    def rewrite(entry: bytes, key: bytes) -> bytes:
        entry = _move(entry, hash_types)
        if range_types and range_types[-1] != "N":
            at = _end_of_partition(entry, len(hash_types))
            for type_ in range_types[:-1]:
                at = _end_of_part(entry, at, type_)
            entry = entry[:at] + entry[at:].replace(b"\x00", b"\x00\xff") + _END
        return entry + _tie(key, table_types)

    return rewrite


def _end_of_part(entry: bytes, offset: int, type_: str) -> int:
    """Return where a terminated range value ends."""
    if type_ == "N":
        return (
            offset + 1
            if entry[offset] == 0x80
            else entry.index(b"\x00" if entry[offset] == 0x81 else b"\xff", offset + 2) + 1
        )
    return entry.index(_END, offset) + len(_END)


def _tie(key: bytes, types: Sequence[str]) -> bytes:
    """Return the tie of a row from its key: the position of its hash and range values together."""
    end = _end_of_partition(key, 1)
    hashed = hashed_form(types[0], key[POSITION_BYTES + LENGTH_BYTES : end])
    return position_of(hashed + (hashed_form(types[1], key[end:]) if len(types) > 1 else b""))


# Jobs


def _restart_jobs(cursor: apsw.Cursor) -> None:
    """Let the jobs that read a table in the order of its keys begin again, without what they have copied."""
    counts = msgspec.json.encode((0, 0, {}, {}))
    for name, job in _records(cursor, "job").items():
        state = job["state"]
        if "place" in state:
            state["place"] = {"after": "", "rows": 64}
        if job["kind"] == "restore":
            cursor.execute(f"DELETE FROM rack{state['target']:d}")
            record = ("counts", f"{state['target']:010d}", counts)
            cursor.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, NULL)", record)
        elif job["kind"] == "backup":
            _empty_backup(cursor, state)
        elif job["kind"] == "export" and not state["progress"].get("read"):
            state["progress"] = {"started": True}
        _save(cursor, "job", name, job)


def _empty_backup(cursor: apsw.Cursor, state: dict[str, Any]) -> None:
    name = f"{state['account']}/{state['region']}/{state['table']}/{state['backup']}"
    backup = _records(cursor, "backup").get(name)
    if backup is not None:
        cursor.execute(f"DELETE FROM rack{backup['number']:d}")
        _save(cursor, "backup", name, backup | {"items": 0, "bytes": 0})


def _save(cursor: apsw.Cursor, kind: str, name: str, record: dict[str, Any]) -> None:
    cursor.execute(
        "UPDATE record SET data = ? WHERE kind = ? AND name = ?", (msgspec.json.encode(record), kind, name)
    )
