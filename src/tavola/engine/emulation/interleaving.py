"""Interleaving: stream records reordered across items, while the records of each item keep their order.

A stream guarantees order for one item, and nothing between two. Time is divided into windows. The records of a shard
within one window are reordered across items, the same way whenever they are read, and become visible when the window is
over and its content is known. Sequence numbers still ascend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

from tavola.engine.emulation.chance import share_of
from tavola.engine.storage import ChangeLog, ChangeLogRow
from tavola.engine.streams import StreamShard

_BLOCK_ROWS = 256  # records of a busy window are reordered within blocks of this size
_CHUNK_ROWS = 1024


def interleave(rows: Sequence[ChangeLogRow], seed: str) -> list[ChangeLogRow]:
    """Return the changes of one window reordered: ids still ascend, and each key keeps its order."""
    queues: dict[bytes, list[ChangeLogRow]] = {}
    for row in rows:
        queues.setdefault(row.key, []).append(row)
    shuffled = sorted(rows, key=lambda row: (share_of(seed, f"{row.id}".encode()), row.id))
    next_of_key = dict.fromkeys(queues, 0)
    reordered: list[ChangeLogRow] = []
    for position, row in zip(rows, shuffled, strict=True):
        # The next key is random; the next change of that key follows its order.
        change = queues[row.key][next_of_key[row.key]]
        next_of_key[row.key] += 1
        reordered.append(change._replace(id=position.id))
    return reordered


def window_start_us(at_us: int, window_s: float) -> int:
    """Return the start of the window that contains a time."""
    window_us = max(1, round(window_s * 1_000_000))
    return at_us // window_us * window_us


def read_interleaved(
    log: ChangeLog, shard: StreamShard, after: int, limit: int, now_us: int, window_s: float, seed: str
) -> tuple[list[ChangeLogRow], int]:
    """Return up to `limit` changes of a shard after an id, reordered, and the id to continue after.

    A window is always read from its beginning, so a reader that continues in the middle finds the same order.
    """
    window_us = max(1, round(window_s * 1_000_000))
    last = log.id_at(window_start_us(now_us, window_s) - 1)  # the last change of past windows
    upto = last if shard.last is None else min(shard.last, last)
    first = log.read(after, upto, 1, shard.hashes)
    if not first:
        return [], max(after, upto)
    begin = max(log.id_at(window_start_us(first[0].at_us, window_s) - 1), shard.first - 1)
    reordered: list[ChangeLogRow] = []
    for block in _blocks(_rows(log, shard.hashes, begin, upto), window_us):
        if block[-1].id > after:
            reordered.extend(row for row in interleave(block, seed) if row.id > after)
        if len(reordered) >= limit:
            return reordered[:limit], reordered[limit - 1].id
    return reordered, max(after, upto)


def _rows(log: ChangeLog, hashes: tuple[int, int] | None, after: int, upto: int) -> Iterator[ChangeLogRow]:
    while True:
        rows = log.read(after, upto, _CHUNK_ROWS, hashes)
        yield from rows
        if len(rows) < _CHUNK_ROWS:
            return
        after = rows[-1].id


def _blocks(rows: Iterator[ChangeLogRow], window_us: int) -> Iterator[list[ChangeLogRow]]:
    """Yield the changes of each window, in blocks that fit in memory."""
    for _, window in groupby(rows, key=lambda row: row.at_us // window_us):
        while block := list(islice(window, _BLOCK_ROWS)):
            yield block
