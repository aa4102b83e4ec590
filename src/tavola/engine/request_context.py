"""RequestContext: the caller's permissions for one request, what is recorded about it, and who is notified.

It is optional: without one, everything is allowed and nothing is recorded. The server passes one if it verifies callers
or keeps an access log.

An engine has at most one observer. It is notified of each call once, when the response can be sent; for a collected write,
that is after the commit, so the reported time is what the caller waited. An observer that raises is logged once and
removed, and the call continues as if it had not been observed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tavola.clock import monotonic
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault, InternalServerFault
from tavola.protocol.resources import GuardResources

_log = logging.getLogger("tavola.engine")


class AccessGuard(Protocol):
    """Decides whether a caller is allowed to make a request."""

    def check(self, operation: str, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless everything that the parsed request accesses is allowed."""
        ...

    def check_statement(self, operation: str, position: int, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless one statement of a batch is allowed; statements are decided one by one."""
        ...


class ItemAccess(NamedTuple):
    """The capacity that a call consumed on one table or index, and for which item."""

    table: str  # the ARN
    index_name: str | None
    key: bytes | None  # the item's ordered key; for a query, that of the partition; None for a scan
    reads: float
    writes: float
    entry: bytes | None = None  # the ordered key of a written index entry, if the context asks for it


@dataclass(slots=True)
class RequestContext:
    """The caller and the options of one request."""

    guard: AccessGuard | None = None  # None: everything is allowed
    as_of_us: int | None = None  # reads see the tables as of this time, and writes are refused
    accesses: list[ItemAccess] | None = None  # filled with the accesses of the call; None: not recorded
    entries: bool = False  # record the keys of index entries too
    address: str | None = None  # at which the caller reaches this engine, if over HTTP
    denied: int = 0  # denied statements of batches, counted until the reader resets it


class Observer(Protocol):
    """Is notified of every call, under the engine's lock: it must be fast and must not call the engine."""

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Record a call: its time in epoch seconds, its duration, what it consumed, and the fault if it was refused.

        A refused call reports what it consumed, too. An access that was throttled is reported without units; one that
        was served has some. `body` is the request as received; it may not be valid JSON.
        """
        ...


@dataclass(slots=True)
class ObservedContext(RequestContext):
    """The context of an observed call, in place of the caller's own."""

    @classmethod
    def of(cls, context: RequestContext | None) -> ObservedContext:
        """Return a context of the same caller with its own list of accesses."""
        return (
            cls(None, None, [], True) if context is None else cls(context.guard, context.as_of_us, [], True)
        )

    def copy_to(self, context: RequestContext) -> None:
        """Add to the caller's own context what it would have recorded without an observer."""
        context.denied += self.denied
        if context.accesses is not None and self.accesses:
            context.accesses += self.accesses


CallNote = tuple[str, Scope, float, float, Sequence[ItemAccess], Fault | None, bytes]
"""The arguments of `Observer.note`, with the monotonic start time in place of the duration."""


class ObserverNotifier:
    """An observer, and the calls that it is notified of when their writes are durable."""

    __slots__ = ("_notes", "observer")

    def __init__(self, observer: Observer) -> None:
        self.observer: Observer | None = observer  # None after it failed
        self._notes: list[tuple[Context, CallNote]] = []  # each with the contextvars context of its caller

    def report_after_commit(self, note: CallNote) -> None:
        """Report a call when the commit group is durable."""
        self._notes.append((copy_context(), note))

    def report_durable(self) -> None:
        """Report the waiting calls: their writes are durable."""
        if self._notes:
            notes, self._notes = self._notes, []
            for context, note in notes:
                context.run(self.report, note)

    def report_undone(self, why: str) -> None:
        """Report the waiting calls as failed: their writes were rolled back."""
        notes, self._notes = self._notes, []
        for context, note in notes:
            context.run(self.report, (*note[:5], InternalServerFault(why), note[6]))

    def report(self, note: CallNote) -> None:
        """Report a call now."""
        if self.observer is None:
            return
        operation, scope, began_s, began, accesses, fault, body = note
        try:
            self.observer.note(operation, scope, began_s, monotonic() - began, accesses, fault, body)
        except Exception:  # noqa: BLE001 - an observer's error must not reach the caller
            self.observer = None
            _log.exception("The observer failed and was removed; calls continue without it.")
