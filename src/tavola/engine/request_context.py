"""Visits: who comes with a request, what they may do, and what is noted of it.

Nobody has to bring a visit: without one everybody may do everything and nothing is noted. The server brings
one where it knows its caller or keeps a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tavola.protocol.resources import TableFacts


class GuardResources(Protocol):
    """What a guard may ask the engine."""

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return what is known of the table that a request names; None if there is none."""
        ...

    def iterator_stream(self, iterator: str) -> str | None:
        """Return the ARN of the stream that a shard iterator reads; None if it is no iterator."""
        ...


class AccessGuard(Protocol):
    """Decides whether a caller may do what a request asks."""

    def check(self, operation: str, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless all that the parsed request touches is allowed."""
        ...

    def check_statement(self, operation: str, place: int, request: Any, resources: GuardResources) -> None:
        """Raise AccessDeniedFault unless one statement of a batch is allowed; each is told by itself."""
        ...


class ItemAccess(NamedTuple):
    """What a call consumed on one table or index, and of which item."""

    table: str  # the ARN
    index_name: str | None
    key: bytes | None  # the item's ordered key; of a query, the partition's; None for a scan
    reads: float
    writes: float
    entry: bytes | None = (
        None  # of a write on an index, the entry's own ordered key; told where it is asked for
    )


@dataclass(slots=True)
class RequestContext:
    """One request's caller and circumstances."""

    guard: AccessGuard | None = None  # None: everybody may
    as_of_us: int | None = None  # reads see the state of then, and writes are refused
    touches: list[ItemAccess] | None = None  # a list to note in what was touched; None: nothing is noted
    entries: bool = False  # whether the keys of index entries are noted too
    denied: int = 0  # statements of batches that were denied one by one, since somebody last looked
