"""Interleaving: stream records of different items that change places, while each item keeps its order.

A stream promises order for one item and nothing between two. Time is cut in windows; the records of a shard
within one window change places across items, the same way whenever they are read, and are shown when the
window is over, since only then it is known what is in it. Places keep their sequence numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

from tavola.engine.emulation.chance import share_of
from tavola.engine.storage import ChangeLog, ChangeLogRow
from tavola.engine.streams import StreamShard
from tavola.keys import Bounds

_BLOCK_ROWS = 256  # that change places with each other at most
_CHUNK_ROWS = 1024


def interleave(rows: Sequence[ChangeLogRow], seed: str) -> list[ChangeLogRow]:
    """Return the changes of one window with their places mixed: ids as they rose, each key's in its order."""
    queues: dict[bytes, list[ChangeLogRow]] = {}
    for row in rows:
        queues.setdefault(row.key, []).append(row)
    drawn = sorted(rows, key=lambda row: (share_of(seed, f"{row.id}".encode()), row.id))
    taken = dict.fromkeys(queues, 0)
    mixed: list[ChangeLogRow] = []
    for place, row in zip(rows, drawn, strict=True):
        # Which key goes next is by chance; which change of that key is by its order.
        nth = taken[row.key]
        taken[row.key] += 1
        mixed.append(queues[row.key][nth]._replace(id=place.id))
    return mixed


def window_start_us(at_us: int, window_s: float) -> int:
    """Return when the window of a time began."""
    window_us = max(1, round(window_s * 1_000_000))
    return at_us // window_us * window_us


def read_interleaved(
    log: ChangeLog, shard: StreamShard, after: int, limit: int, now_s: float, window_s: float, seed: str
) -> tuple[list[ChangeLogRow], int]:
    """Return up to `limit` changes of a shard past an id, mixed, and the id to go on after.

    What is in a window is read from the window's beginning each time, so that a reader who comes back to the
    middle of one finds the same order as before.
    """
    window_us = max(1, round(window_s * 1_000_000))
    over = log.id_at(window_start_us(int(now_s * 1_000_000), window_s) - 1)  # the last in a past window
    upto = over if shard.last is None else min(shard.last, over)
    first = log.read(after, upto, shard.bounds, 1)
    if not first:
        return [], max(after, upto)
    begin = max(log.id_at(window_start_us(first[0].at_us, window_s) - 1), shard.first - 1)
    found: list[ChangeLogRow] = []
    for block in _blocks(_rows(log, shard.bounds, begin, upto), window_us):
        if block[-1].id > after:
            found.extend(row for row in interleave(block, seed) if row.id > after)
        if len(found) >= limit:
            return found[:limit], found[limit - 1].id
    return found, max(after, upto)


def _rows(log: ChangeLog, bounds: Bounds, after: int, upto: int) -> Iterator[ChangeLogRow]:
    while True:
        rows = log.read(after, upto, bounds, _CHUNK_ROWS)
        yield from rows
        if len(rows) < _CHUNK_ROWS:
            return
        after = rows[-1].id


def _blocks(rows: Iterator[ChangeLogRow], window_us: int) -> Iterator[list[ChangeLogRow]]:
    """Yield the changes of each window, in blocks that are small enough to hold."""
    for _, window in groupby(rows, key=lambda row: row.at_us // window_us):
        while block := list(islice(window, _BLOCK_ROWS)):
            yield block
