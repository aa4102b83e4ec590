"""The state shared by all endpoints: connection, designs, monitor, access log and user directory.

Created and closed by the command that starts the studio. Dependencies on other packages (access log, directory of users and
roles) are passed in as functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncBackend, AsyncRemembering
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.design.lint import SourceFile
from tavola.engine import Engine
from tavola.handles import AsyncConnection
from tavola.iam import Directory
from tavola.model.document import Design, TableDesign
from tavola.prices import BookUnknown, PriceBook, load_book
from tavola.studio.monitoring import Monitor, mark_connection
from tavola.studio.monitoring.request_shapes import is_read
from tavola.studio.problems import RequestRefused

DESCRIBE_OPERATIONS = frozenset(
    {
        *(
            "DescribeBackup",
            "DescribeBulkOperation",
            "DescribeContinuousBackups",
            "DescribeContributorInsights",
        ),
        *("DescribeEndpoints", "DescribeExport", "DescribeGlobalTable", "DescribeGlobalTableSettings"),
        *("DescribeImport", "DescribeKinesisStreamingDestination", "DescribeLimits", "DescribeStream"),
        *("DescribeTable", "DescribeTableReplicaAutoScaling", "DescribeTimeToLive", "GetRecords"),
        *("GetResourcePolicy", "GetShardIterator", "ListBackups", "ListBulkOperations"),
        *("ListContributorInsights", "ListExports", "ListGlobalTables", "ListImports", "ListStreams"),
        *("ListTables", "ListTagsOfResource"),
    }
)
"""Operations that tell of tables and their streams, and change nothing."""


def read_only_connection(connection: AsyncConnection) -> AsyncConnection:
    """Return a connection to the same tables through which nothing can be changed."""
    return AsyncConnection(ReadOnlyBackend(connection.backend), connection.target)


class ReadOnlyBackend:
    """Passes on what reads, and refuses the rest before it is sent."""

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers to a read."""
        if operation not in DESCRIBE_OPERATIONS and not is_read(operation, request):
            raise RequestRefused(
                "read-only",
                "Nothing may be changed here",
                f"The studio was started read-only, and {operation} may change what stands.",
                "Start it without --read-only (and with --live for AWS) to change something.",
                status=403,
            )
        return await self.backend.call(operation, request)

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as they were."""
        if not isinstance(self.backend, AsyncRemembering):
            raise PastUnavailable("The endpoint")
        return ReadOnlyBackend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the backend behind."""
        await self.backend.close()


P = ParamSpec("P")
R = TypeVar("R")

_PASTS_MAX = 8

Kind = Literal["memory", "file", "http", "aws"]


@dataclass(frozen=True, slots=True)
class TablesLocation:
    """Where the tables are, as a person is told."""

    kind: Kind
    text: str  # a file's name or a URL
    region: str
    account: str | None = None
    endpoint: str | None = None  # at which other programs reach them, while this process has them open


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Filters of access log records; a record must match all that are not None."""

    since_s: float | None = None
    until_s: float | None = None
    operation: str | None = None
    table: str | None = None
    index: str | None = None
    caller: str | None = None
    decision: str | None = None  # open, allowed, denied, unauthenticated, refused
    fault: str | None = None  # a code; `any`: calls that failed; `none`: calls that did not
    key: str | None = None  # the hash of a key, as in the records
    item: str | None = None  # instead of `key`: a key in DynamoDB JSON, partition key first
    limit: int = 200


@dataclass(frozen=True, slots=True)
class DeclaredDesign:
    """One of the designs that the studio was started with, as `tavola lint` would judge it: with its ignores and its files."""

    name: str  # as it was named on the command line
    design: Design
    sources: tuple[SourceFile, ...] = ()  # none: findings are told without a line


LogReader = Callable[[LogQuery], Iterator[Mapping[str, Any]]]
"""Gives the records that answer a question, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """The tables and all that the studio knows of them."""

    db: AsyncConnection
    where: TablesLocation
    design: Design | None = None
    designs: tuple[str, ...] = ()  # as they were named on the command line
    declared: tuple[DeclaredDesign, ...] = ()  # each of them by itself; none: the one design is all there is
    read_only: bool = False
    clock: Clock = SYSTEM_CLOCK
    engine: Engine | None = None  # when it is in this process
    monitor: Monitor | None = None  # what was asked of it, or else what the studio itself asked
    log: LogReader | None = None
    directory: Callable[[], Directory] | None = None  # read anew each time
    book: Callable[[str | None], PriceBook] = field(default=lambda region: load_book(region or "us-east-1"))

    cache: dict[object, Any] = field(
        default_factory=dict, init=False, repr=False
    )  # what was computed of designs
    _past_connections: dict[str, AsyncConnection] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Take the tables for reading alone, where nothing may be changed: then no mistake of an endpoint can.

        Calls of an engine that is watched are marked as the studio's; elsewhere they are all that is seen, and count.
        """
        if self.engine is not None:
            object.__setattr__(self, "db", mark_connection(self.db))
        if self.read_only:
            object.__setattr__(self, "db", read_only_connection(self.db))

    async def connection_at(self, as_of: str | None) -> AsyncConnection:
        """Return the tables as they are, or as they were at a moment; the last few moments stay at hand."""
        if not as_of:
            return self.db
        connection = self._past_connections.pop(as_of, None) or await self.db.as_of(as_of)
        self._past_connections[as_of] = connection
        while len(self._past_connections) > _PASTS_MAX:
            oldest = next(iter(self._past_connections))
            await self._past_connections.pop(oldest).close()
        return connection

    async def close(self) -> None:
        """Let go of the moments that are at hand; the tables themselves are theirs who opened them."""
        while self._past_connections:
            await self._past_connections.popitem()[1].close()

    def table_design(self, name: str) -> TableDesign | None:
        """Return what the design says of a table; None if it says nothing."""
        tables = () if self.design is None else self.design.tables
        return next((table for table in tables if table.name == name), None)

    def require_design(self) -> Design:
        """Return the design, for a question that cannot be answered without one."""
        if self.design is None:
            raise RequestRefused(
                "design-missing",
                "There is no design",
                "The studio was started without a design, so it knows tables but no entities and access patterns.",
                "Start it with the module that declares them: tavola studio shop.model",
                status=409,
            )
        return self.design

    def local_prices(self) -> PriceBook:
        """Return the prices of where the tables are; of the region that always has some, where nobody wrote those down.

        Who shows a sum says the book's region beside it.
        """
        try:
            return self.book(self.where.region)
        except BookUnknown:
            return self.book(None)

    async def run_in_thread(self, function: Callable[P, R], /, *given: P.args, **more: P.kwargs) -> R:
        """Return what a long computation gives; the loop, which serves others too, goes on meanwhile."""
        return await asyncio.to_thread(function, *given, **more)
