"""Memory: bounds what the requests and responses of all clients hold together.

A response of 16 MB that its client does not read stays in memory; so does an incomplete body. 150 such clients would hold
2.5 GB. All of it is therefore counted against one budget:

    incomplete bodies and heads ┐
    requests in backlogs        │ counted by each connection (`ClientConnection.count_held`)
    responses in slices         │
    unread responses            ┘
    responses that wait for the commit: counted by `ResponseQueue`

Small responses are not counted until the client stops reading: at most 64 KB for each connection.

The budget has two levels, so that many large requests never keep small ones out:

- *Large* requests and responses of reads may use 7/8. Beyond that, memory is freed by closing the connections that have been
  stalled longest: clients that have neither read their response nor completed their request for `pressed_s`. If that does
  not suffice, the request is refused with 503 and nothing is executed or changed.
- The rest is for responses of writes, which must be sent because the write is done. If all of it is in use, a request is
  executed only after memory is freed, first that of the client that has been stalled longest.

Cost: nothing for a request that is answered at once with less than 8 KB; a scan over all connections when memory is freed.
Not counted: what the engine itself uses (page cache, the result that it is building) and the buffers of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable

MEGABYTE = 1024 * 1024

COUNTED_BYTES_MIN = 64 * 1024
"""A connection that holds less is never refused for it."""


DEFAULT_BYTES_MAX = 256 * MEGABYTE


class BufferFull(Exception):
    """A request that grows does not fit into the budget any more."""


class MemoryBudget:
    """What all connections hold; `evict` closes the most stalled connection, or returns False if there is none."""

    __slots__ = ("bytes_max", "evict", "held_bytes", "large_bytes_max")

    def __init__(self, bytes_max: int = DEFAULT_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.large_bytes_max = bytes_max - bytes_max // 8
        self.held_bytes = 0
        self.evict: Callable[[float], bool] = lambda stalled_s: False  # set by the owner of the connections

    def admit_large(self, size: int, stalled_s: float) -> bool:
        """Return whether a large request or response fits, after closing connections that are stalled so long."""
        return self._free_memory(self.large_bytes_max - size, stalled_s)

    def admit_any(self) -> bool:
        """Return whether any request fits, after closing stalled connections if the budget is exhausted."""
        return self._free_memory(self.bytes_max, 0.0)

    def _free_memory(self, held_bytes_max: int, stalled_s: float) -> bool:
        while self.held_bytes > held_bytes_max:
            if not self.evict(stalled_s):
                return False
        return True

    @property
    def sentence(self) -> str:
        """Why a request is refused."""
        return (
            f"The requests and responses of all clients fill the {self.bytes_max // MEGABYTE} MB of memory for them; "
            "nothing was changed. Try again later, or start the server with a larger --buffer-mb."
        )
