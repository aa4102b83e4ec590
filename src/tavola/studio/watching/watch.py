"""Watch: the observer that the studio sets on an engine, and what it makes of each call.

It hands every call to the measures of operations and to the heat of keys. Several threads may call the engine, so one
lock stands before both; a page that reads them takes the same one for as long as it copies. What the studio itself
asks of the engine that it watches is left out of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import Touch
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault
from tavola.studio.watching.heat import HeatRecorder
from tavola.studio.watching.measures import Measures
from tavola.studio.watching.own import is_own


class Watch:
    """Keeps what was asked of an engine since it was made; `Engine.observe` takes it."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self.lock = Lock()  # held while a call is noted, and by whoever reads what was noted
        self.began_s = clock.now()
        self.measures = Measures(clock)
        self.heat = HeatRecorder(clock)
        self.left_out = 0  # calls of the studio itself

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        touches: Sequence[Touch],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Take note of a call, unless it is the studio's own."""
        with self.lock:
            if is_own():
                self.left_out += 1
                return
            self.measures.note(operation, scope, began_s, took_s, touches, fault, body)
            self.heat.note(operation, scope, began_s, took_s, touches, fault, body)
