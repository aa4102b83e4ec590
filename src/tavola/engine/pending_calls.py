"""PendingCall: a call that pauses, and goes on when its caller resumes it."""

from __future__ import annotations

from collections.abc import Callable

from tavola.clock import monotonic
from tavola.protocol.faults import Fault
from tavola.values import Steps


class PendingCall:
    """A call that has begun and not ended; `Engine.resume` continues it, `end` ends it."""

    __slots__ = ("_report", "_steps", "participant")

    def __init__(self, steps: Steps[bytes], participant: object = None) -> None:
        self._steps = steps
        self._report: Callable[[Fault | None], None] | None = None
        self.participant = participant  # of the commit group

    def report_end(self, report: Callable[[Fault | None], None]) -> None:
        """Call `report` once, when the call ends: with the fault if it failed."""
        self._report = report

    def run(self, slice_s: float) -> bytes | None:
        """Run steps until the slice or the call ends; the engine's lock is held."""
        until_s = monotonic() + slice_s
        try:
            while True:
                next(self._steps)
                if monotonic() >= until_s:
                    return None
        except StopIteration as stop:
            response: bytes = stop.value
            return response

    def end(self, fault: Fault | None = None) -> None:
        """Report the end of the call, and drop what is left of it: it is complete, has failed or is not needed any more."""
        self._steps.close()
        report, self._report = self._report, None
        if report is not None:
            report(fault)
