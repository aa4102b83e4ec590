"""ServerLimits: what one client may take of the server, in bytes and in seconds.

DynamoDB's own limits are in `tavola.limits`; these keep a slow, greedy or broken client from taking what
belongs to the others. Every deadline is absolute: a byte now and then does not prolong it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tavola.limits import REQUEST_BYTES_MAX


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Bounds on one connection and on all of them; the defaults suit a laptop and a build machine."""

    connections_max: int = 1024
    head_bytes_max: int = 16 * 1024  # request line and headers (AWS: 400 above it)
    body_bytes_max: int = REQUEST_BYTES_MAX
    waiting_bytes_max: int = 256 * 1024 * 1024  # of bodies on their way, all connections together
    head_s: float = 10.0  # from the first byte of a request to the end of its headers
    body_s: float = 30.0  # from the end of the headers to the end of the body
    idle_s: float = 300.0  # between two requests, or before the first one
    answer_s: float = 60.0  # for a client to take an answer that waits for it
    linger_s: float = 2.0  # for a refused client to read why, before the connection is cut
    stop_s: float = 3.0  # for requests under way when the server stops
    turn_requests_max: int = 32  # of one connection, before the others have their turn
    turn_answer_bytes_max: int = 1024 * 1024  # likewise; the answer that passes it is the last of the turn
    idle_evictable_s: float = 5.0  # idle for longer, a connection makes way for a new one when all are taken

    @property
    def sweep_s(self) -> float:
        """How often deadlines are looked at: often enough to keep the shortest, at most once a second."""
        shortest = min(self.head_s, self.body_s, self.idle_s, self.answer_s, self.linger_s)
        return min(1.0, max(0.01, shortest / 4))
