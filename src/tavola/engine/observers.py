"""Observing: what the engine tells whoever wants to see every call that it answers.

One observer, told of each call once, when it can be answered: of a write that is gathered, when it is durable, so the
time it took is what its caller waited. An observer is a guest: if it raises, that is logged once and it is told
nothing more, and the call goes on as if nobody had looked.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Protocol

from tavola.clock import monotonic
from tavola.engine.request_context import ItemAccess, RequestContext
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault, InternalServerFault

_log = logging.getLogger("tavola.engine")


class Observer(Protocol):
    """Wants to know of every call. It is told under the engine's lock, so it is quick and asks the engine nothing."""

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        touches: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Take note of a call: when it came in epoch seconds, how long it took, what it consumed, why it was refused.

        What a refused call consumed is told too. What was refused for want of throughput is told as touches without
        units: what is served takes some. `body` is the request as it came; nobody has said that it is JSON.
        """
        ...


@dataclass(slots=True)
class ObservedContext(RequestContext):
    """A visit of a call that is observed, in the place of the visit that its caller brought."""

    @classmethod
    def of(cls, visit: RequestContext | None) -> ObservedContext:
        """Return a visit of the same caller, with a list of its own for what is touched."""
        return cls(None, None, [], True) if visit is None else cls(visit.guard, visit.as_of_us, [], True)

    def copy_to(self, visit: RequestContext) -> None:
        """Tell the caller's own visit what it would have been told, had nobody else looked."""
        visit.denied += self.denied
        if visit.touches is not None and self.touches:
            visit.touches += self.touches


CallNote = tuple[str, Scope, float, float, Sequence[ItemAccess], Fault | None, bytes]
"""One call: what an observer is told, and in the place of how long it took, when it came by the clock that never goes back."""


class ObserverNotifier:
    """An observer, and the calls that it will be told of when their writes are durable."""

    __slots__ = ("_notes", "observer")

    def __init__(self, observer: Observer) -> None:
        self.observer: Observer | None = observer  # None: it failed, and is told nothing more
        self._notes: list[tuple[Context, CallNote]] = []  # each is told in the context of its caller

    def report_after_commit(self, note: CallNote) -> None:
        """Tell of a call when what was gathered is durable."""
        self._notes.append((copy_context(), note))

    def report_durable(self) -> None:
        """Tell of the calls that waited: what they were told is durable."""
        if self._notes:
            notes, self._notes = self._notes, []
            for context, note in notes:
                context.run(self.report, note)

    def report_undone(self, why: str) -> None:
        """Tell of the calls that waited and were undone: all of them failed."""
        notes, self._notes = self._notes, []
        for context, note in notes:
            context.run(self.report, (*note[:5], InternalServerFault(why), note[6]))

    def report(self, note: CallNote) -> None:
        """Tell of a call that is answered now."""
        if self.observer is None:
            return
        operation, scope, began_s, began, touches, fault, body = note
        try:
            self.observer.note(operation, scope, began_s, monotonic() - began, touches, fault, body)
        except Exception:  # noqa: BLE001 - whatever it was, it is not the caller's
            self.observer = None
            _log.exception("The observer failed and is told nothing more; calls are answered as before.")
