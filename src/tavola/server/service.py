"""Service: what the connections of a server share, and which of them makes way when a place or memory is needed.

A new connection always finds a place within seconds, even if `connections_max` others are open and busy. A place is taken
from the connection that has waited longest for its client: for its next request (at least `idle_evictable_s`), or, with a
request incomplete or a response unread, for `pressed_s`. A request that arrives and is read in a shorter time is never cut
off. Clients that send a byte or a request every few seconds therefore lose their places to new ones, one by one.

Memory is taken in the same way from the connections that hold much of it; see `memory`.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from dataclasses import dataclass, field
from typing import Protocol

from tavola.server.dispatch import Dispatch
from tavola.server.memory import COUNTED_BYTES_MIN, MemoryBudget
from tavola.server.responses import PendingWork, ResponseEncoder, ResponseQueue
from tavola.server.safeguards import ServerLimits
from tavola.server.stages import RequestStages
from tavola.server.turns import TurnQueue

# All connections are compared at most this often, and this many are selected at once, so that many refused connections
# cost little.
_SELECTION_INTERVAL_S = 0.05
_SELECTED_MAX = 64


class OpenConnection(Protocol):
    """A connection, as the server and the other connections see it."""

    @property
    def held_bytes(self) -> int:
        """What it holds of the memory for all clients."""
        ...

    @property
    def stalled_since_s(self) -> float:
        """Since when the client has been sending a request, or not reading its responses; 0 if neither."""
        ...

    def waits_since(self, now_s: float) -> float:
        """Return since when it waits for its client, if it may make way for another one; otherwise 0."""
        ...

    def make_way(self, sentence: str) -> None:
        """Close the connection because its place or memory is needed."""
        ...

    def sweep(self, now_s: float) -> None:
        """Close the connection, or refuse the request, if a deadline has passed."""
        ...

    def close_when_idle(self) -> None:
        """Close an idle connection; one with a request in progress closes after it."""
        ...

    def abort(self) -> None:
        """Close immediately."""
        ...


@dataclass(slots=True)
class Service:
    """The state that all connections of a server share."""

    loop: AbstractEventLoop
    encoder: ResponseEncoder
    dispatch: Dispatch
    responses: ResponseQueue
    work: PendingWork
    turns: TurnQueue
    limits: ServerLimits
    connections: set[OpenConnection] = field(default_factory=set)
    stopping: bool = False
    budget: MemoryBudget = field(init=False)
    stages: RequestStages = field(init=False)
    _selected: list[OpenConnection] = field(
        default_factory=list
    )  # the next to make way, the longest waiting last
    _selected_at_s: float = -1.0

    def __post_init__(self) -> None:
        """Let the memory budget close stalled connections."""
        self.budget = self.responses.budget
        self.budget.evict = self.evict_stalled
        self.stages = RequestStages(self.dispatch, self.encoder, self.budget, self.limits.pressed_s)

    def admit_connection(self) -> bool:
        """Return whether a new connection fits; at the limit, close the one that has waited longest."""
        if len(self.connections) < self.limits.connections_max:
            return True
        now_s = self.loop.time()
        if not self._selected and now_s - self._selected_at_s >= _SELECTION_INTERVAL_S:
            self._selected_at_s = now_s
            self._select(now_s)
        while self._selected:
            connection = self._selected.pop()
            if connection in self.connections and connection.waits_since(now_s):  # still
                connection.make_way("Too many connections; try again later.")
                return True
        return False

    def evict_stalled(self, stalled_s: float) -> bool:
        """Free the memory of the connection that has been stalled longest, if it is for `stalled_s`; return if so."""
        until_s = self.loop.time() - stalled_s
        longest: tuple[float, OpenConnection] | None = None
        for connection in self.connections:
            if connection.held_bytes >= COUNTED_BYTES_MIN:
                since_s = connection.stalled_since_s
                if 0.0 < since_s <= until_s and (longest is None or since_s < longest[0]):
                    longest = since_s, connection
        if longest is None:
            return False
        longest[1].make_way(self.budget.sentence)
        return True

    def _select(self, now_s: float) -> None:
        waiting = [
            (since_s, connection)
            for connection in self.connections
            if (since_s := connection.waits_since(now_s))
        ]
        waiting.sort(key=lambda pair: pair[0])
        self._selected = [connection for _, connection in reversed(waiting[:_SELECTED_MAX])]
