"""Capacity units for bytes read and written.

Reads are counted in steps of 4 KB and writes in steps of 1 KB, each rounded up and at least one. An eventually consistent read
counts half, so units are whole or half numbers, which a float holds exactly. A transaction counts twice on the table
and once on its indexes. The engine bills by these functions and the client estimates with them.
"""

from __future__ import annotations

from tavola.limits import READ_UNIT_BYTES, TRANSACTION_UNITS_FACTOR, WRITE_UNIT_BYTES


def read_units(bytes_: int, *, consistent: bool) -> float:
    """Return the units of reading so many bytes at once; nothing there costs as much as the least."""
    units = max(1, -(-bytes_ // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def transact_read_units(bytes_: int) -> float:
    """Return the units of reading one item of so many bytes in a transaction."""
    return TRANSACTION_UNITS_FACTOR * read_units(bytes_, consistent=True)


def write_units(old_bytes: int, new_bytes: int) -> float:
    """Return the units of writing over one size with another; 0 is no item."""
    return float(max(1, -(-max(old_bytes, new_bytes) // WRITE_UNIT_BYTES)))


def transact_write_units(old_bytes: int, new_bytes: int) -> float:
    """Return the units, on the table alone, of a write in a transaction, or of a check of one item."""
    return TRANSACTION_UNITS_FACTOR * write_units(old_bytes, new_bytes)


def index_units(before: int | None, after: int | None, *, moved: bool = False, same: bool = False) -> float:
    """Return the units of a write on one index, from the bytes of its entry before and after; None is no entry.

    An entry whose index key changes is `moved`: deleted at one place and put at the other, each paid. One
    that stays the `same` in all that is projected costs nothing.
    """
    removed = 0.0 if before is None else write_units(before, 0)
    added = 0.0 if after is None else write_units(0, after)
    if before is None or after is None or moved:
        return removed + added
    return 0.0 if same else max(removed, added)
