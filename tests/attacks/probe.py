"""A server that measures its own turns: how much CPU time it spends between two looks at its sockets.

    python -m tests.attacks.probe FILE serve store.db --port 0

The latency of a client also contains what other processes on the machine take. The CPU time of a turn of the event loop does
not: it is how long the server made everyone wait. It is measured by a callback that the loop calls once in each turn while the
server is busy, and a thousand times per second while it is not. FILE is shared memory with the counts, see `TurnCounts`.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path
from typing import Any

from tavola.server import dispatch
from tavola.server.listener import Server

UNSLICED = "--unsliced"  # process each request in one piece: a fault for the tests of the measurement
_BUCKET_MS = 0.25
_BUCKETS = 4_000
_BUSY_S = 0.0003
_COUNT = struct.Struct("<d")


class TurnCounts:
    """The CPU time spent in turns of each length, in a file that two processes share."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it."""
        size = _COUNT.size * _BUCKETS
        if not path.exists():
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), size)

    def add(self, took_ms: float) -> None:
        """Count a turn."""
        at = _COUNT.size * min(int(took_ms / _BUCKET_MS), _BUCKETS - 1)
        (spent_ms,) = _COUNT.unpack_from(self._memory, at)
        _COUNT.pack_into(self._memory, at, spent_ms + took_ms)

    def clear(self) -> None:
        """Forget all turns."""
        self._memory[:] = bytes(len(self._memory))

    def longest_ms(self, share: float = 1.0) -> float:
        """Return the length of the turn in which a request arrives that waits longer than `share` of all.

        A request is more likely to arrive in a long turn, so turns count by their length.
        """
        spent = [spent_ms for (spent_ms,) in _COUNT.iter_unpack(self._memory)]
        left = share * sum(spent)
        for bucket, spent_ms in enumerate(spent):
            left -= spent_ms
            if left <= 1e-9:
                return (bucket + 1) * _BUCKET_MS
        return 0.0


def measure_turns(counts: TurnCounts) -> None:
    """Make every server of this process count its turns."""
    start = Server.start

    async def start_measured(self: Server) -> None:
        await start(self)
        loop = self._service.loop
        before_s = time.thread_time()

        def note_turn(*_: Any) -> None:
            nonlocal before_s
            now_s = time.thread_time()
            took_s, before_s = now_s - before_s, now_s
            counts.add(1000 * took_s)
            if took_s > _BUSY_S:
                loop.call_soon(note_turn)
            else:
                loop.call_later(0.001, note_turn)

        loop.call_soon(note_turn)

    Server.start = start_measured  # type: ignore[method-assign]  # in this process only


def main(words: list[str]) -> None:
    """Run the command line with measured servers."""
    from tavola.cli import run

    measure_turns(TurnCounts(Path(words[0])))
    if words[1] == UNSLICED:
        dispatch.SLICE_S = 3600.0
    sys.argv[1:] = words[2:] if words[1] == UNSLICED else words[1:]
    run()


if __name__ == "__main__":
    main(sys.argv[1:])
