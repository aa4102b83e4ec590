"""The format of a store: its number, and the steps that bring an older file to the present one.

The number is the lower part of SQLite's `user_version` (see `wal_binding` for the upper one). A store of a newer format is
refused; one of an older format is upgraded when it is opened, one step after the other. To change the format, write a function
that yields after each slice of its work, and append it to `FORMAT_STEPS` with the next number; a change that needs no
rewriting has a function that does nothing.

A step may rewrite gigabytes and be killed in the middle. Its slices are therefore transactions of their own, and each
stores how far the step has come, in the same transaction as what it has rewritten:

    user_version   2          3             3             3          3
    record         -      {"row": 0}  {"row": 1000}  {"row": 2000}   -
                   ├─ slice ─┼── slice ──┼── slice ──┼── slice ──┤
                          killed here: the next opening continues with {"row": 1000}

The number rises with the first slice, not with the last one: an earlier version must not write to a file half of which it does
not understand. A step meets only what the steps before it left, so it must not use code that a later format may change.

`upgrade_format` can also run inside one transaction that is rolled back, so that `verify` can check an older file without changing it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import apsw
import msgspec

from tavola.engine.storage.errors import StoreError
from tavola.engine.storage.scan_order import order_rows_by_position
from tavola.engine.storage.wal_binding import move_wal, read_format, write_format

_log = logging.getLogger("tavola.engine")
_CHECKPOINT_SLICES = 8
_QUIET_SLICES = 5  # take about a second and are not worth a line in the log
_KIND = "upgrade"  # of the record of an unfinished step

StepState: TypeAlias = dict[str, Any]
"""How far a step has come, as JSON."""

StepFunction: TypeAlias = Callable[[apsw.Cursor, StepState | None], Iterator[tuple[StepState, float]]]
"""Does one slice at a time and yields the state to continue from and the part that is done, from 0 to 1.

It starts with None, or continues after a state that it has yielded.
"""


class FormatStep(NamedTuple):
    """A step to a format, from the one before it."""

    format: int
    change: str  # a clause for the log
    run: StepFunction


def _rewrite_nothing(_: apsw.Cursor, __: StepState | None) -> Iterator[tuple[StepState, float]]:
    return iter(())


FORMAT_STEPS: tuple[FormatStep, ...] = (
    # A version that knows no change logs would write without logging, so it must not open the store any more.
    FormatStep(2, "its tables may have change logs", _rewrite_nothing),
    FormatStep(3, "its rows are put in the order in which AWS scans", order_rows_by_position),
)

FORMAT = FORMAT_STEPS[-1].format


def check_format(connection: apsw.Connection) -> None:
    """Raise StoreError if a store has a newer format than this version reads."""
    version = read_format(connection)
    if version > FORMAT:
        raise StoreError(
            f"the store has format {version}, which a newer Tavola wrote; this version reads formats up to {FORMAT}. "
            "Nothing was changed: open it with that version or a later one"
        )


def needs_upgrade(connection: apsw.Connection) -> bool:
    """Return whether a store has an older format, or one whose last step is unfinished."""
    return read_format(connection) < FORMAT or _read_state(connection, FORMAT_STEPS[-1]) is not None


def upgrade_format(
    connection: apsw.Connection, *, commits: bool = True, steps: tuple[FormatStep, ...] = FORMAT_STEPS
) -> None:
    """Bring a store of an older format to the present one.

    Without `commits`, all of it happens in the caller's open transaction, for the caller to roll back.
    """
    version = read_format(connection)
    for step in steps:
        state = _read_state(connection, step)
        if step.format > version or state is not None:
            _run_step(connection, step, state, commits)


def _run_step(connection: apsw.Connection, step: FormatStep, state: StepState | None, commits: bool) -> None:
    """Do the slices of a step, each in a transaction, and store the format with the first of them."""
    cursor = connection.cursor()
    name = str(step.format)
    slices = step.run(connection.cursor(), state)
    tenths = 0
    for number in count(1):
        if commits:
            cursor.execute("BEGIN IMMEDIATE")
        try:
            write_format(connection, step.format)
            done = next(slices, None)
            if done is None:
                cursor.execute("DELETE FROM record WHERE kind = ? AND name = ?", (_KIND, name))
            else:
                data = msgspec.json.encode(done[0])
                cursor.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, NULL)", (_KIND, name, data))
            if commits:
                cursor.execute("COMMIT")
                if number % _CHECKPOINT_SLICES == 0:
                    move_wal(connection)
        except BaseException:
            if commits and connection.in_transaction:
                cursor.execute("ROLLBACK")
            raise
        if done is None:
            return
        if number > _QUIET_SLICES and tenths < int(done[1] * 10) < 10:
            tenths = int(done[1] * 10)
            _log.warning(
                "Upgrading the store to format %d (%s): %d %% done; it may be interrupted",
                step.format,
                step.change,
                tenths * 10,
            )


def _read_state(connection: apsw.Connection, step: FormatStep) -> StepState | None:
    data: Any = connection.execute(
        "SELECT data FROM record WHERE kind = ? AND name = ?", (_KIND, str(step.format))
    ).get
    return None if data is None else msgspec.json.decode(data, type=dict[str, Any])
