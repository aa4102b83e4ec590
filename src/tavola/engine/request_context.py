"""RequestContext: the caller's permissions for one request, and what is recorded about it.

It is optional: without one, everything is allowed and nothing is recorded. The server passes one if it verifies callers
or keeps an access log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tavola.protocol.resources import GuardResources


class AccessGuard(Protocol):
    """Decides whether a caller is allowed to make a request."""

    def check(self, operation: str, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless everything that the parsed request accesses is allowed."""
        ...

    def check_statement(self, operation: str, place: int, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless one statement of a batch is allowed; statements are decided one by one."""
        ...


class ItemAccess(NamedTuple):
    """The capacity that a call consumed on one table or index, and for which item."""

    table: str  # the ARN
    index_name: str | None
    key: bytes | None  # the item's ordered key; for a query, that of the partition; None for a scan
    reads: float
    writes: float
    entry: bytes | None = (
        None  # of a write on an index, the entry's own ordered key; told where it is asked for
    )


@dataclass(slots=True)
class RequestContext:
    """The caller and the options of one request."""

    guard: AccessGuard | None = None  # None: everything is allowed
    as_of_us: int | None = None  # reads see the tables as of this time, and writes are refused
    accesses: list[ItemAccess] | None = None  # filled with the accesses of the call; None: not recorded
    entries: bool = False  # record the keys of index entries too
    denied: int = 0  # denied statements of batches, counted until the reader resets it
