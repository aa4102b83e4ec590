"""The state shared by all endpoints: connection, designs, monitor, access log and user directory.

Created and closed by the command that starts the studio. Dependencies on other packages (access log, directory of users and
roles) are passed in as functions.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from tavola.client.backend import AsOfUnsupported, AsyncAsOfBackend, AsyncBackend
from tavola.client.connection import AsyncConnection
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.design.lint import SourceFile
from tavola.engine import Engine
from tavola.iam import Directory
from tavola.model.document import Design, TableDesign
from tavola.prices import PriceBook, UnknownPriceBook, load_book
from tavola.studio.monitoring import Monitor, mark_connection
from tavola.studio.monitoring.request_shapes import is_read
from tavola.studio.problems import RequestRefused

DESCRIBE_OPERATIONS = frozenset(
    {
        *("DescribeBackup", "DescribeBulkOperation", "DescribeContinuousBackups"),
        *("DescribeContributorInsights", "DescribeEndpoints", "DescribeExport"),
        *("DescribeGlobalTable", "DescribeGlobalTableSettings"),
        *("DescribeImport", "DescribeKinesisStreamingDestination", "DescribeLimits", "DescribeStream"),
        *("DescribeTable", "DescribeTableReplicaAutoScaling", "DescribeTimeToLive", "GetRecords"),
        *("GetResourcePolicy", "GetShardIterator", "ListBackups", "ListBulkOperations"),
        *("ListContributorInsights", "ListExports", "ListGlobalTables", "ListImports", "ListStreams"),
        *("ListTables", "ListTagsOfResource"),
    }
)
"""Operations that describe tables and streams and change nothing."""


class ReadOnlyBackend:
    """Passes reads to another backend and refuses everything else before it is sent."""

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other backend's response to a read."""
        if operation not in DESCRIBE_OPERATIONS and not is_read(operation, request):
            raise RequestRefused(
                "read-only",
                "This request only reads",
                f"{operation} may change data, and the endpoint is not declared as a write.",
                status=403,
            )
        return await self.backend.call(operation, request)

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as of a moment."""
        if not isinstance(self.backend, AsyncAsOfBackend):
            raise AsOfUnsupported("The endpoint")
        return ReadOnlyBackend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the other backend."""
        await self.backend.close()


P = ParamSpec("P")
R = TypeVar("R")

_PAST_CONNECTIONS_MAX = 8

Kind = Literal["memory", "file", "http", "aws"]


@dataclass(frozen=True, slots=True)
class TablesLocation:
    """Where the tables are, as shown to the user."""

    kind: Kind
    text: str  # a file's name or a URL
    region: str
    account: str | None = None
    endpoint: str | None = None  # where other programs reach them while this process has them open


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
    account: str | None = None  # whose calls; None: those of all accounts
    limit: int = 200


@dataclass(frozen=True, slots=True)
class DeclaredDesign:
    """One of the designs the studio was started with, including its lint ignores and source files."""

    name: str  # as given on the command line
    design: Design
    sources: tuple[SourceFile, ...] = ()  # without them, findings have no file and line


class SignedInCaller(Protocol):
    """The person of a studio beside a server that verifies its callers."""

    @property
    def arn(self) -> str:
        """The ARN of the user or role session."""
        ...

    @property
    def account(self) -> str:
        """The account whose tables the person sees."""
        ...

    @property
    def key_id(self) -> str:
        """The access key that the person signed in with."""
        ...

    def is_in_force(self) -> bool:
        """Return whether the key may still be used."""
        ...

    def require(self, action: str) -> None:
        """Raise AccessDeniedFault unless a policy of the person allows an action on everything; log the decision."""
        ...


class StudioFeatures(NamedTuple):
    """What the studio was started with."""

    monitor: bool  # of all calls to the engine, not only of the studio's own
    log: bool
    directory: bool


LogReader = Callable[[LogQuery], Iterator[Mapping[str, Any]]]
"""Yields the records that match a query, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """The state shared by all endpoints."""

    db: AsyncConnection
    where: TablesLocation
    design: Design | None = None
    designs: tuple[str, ...] = ()  # as given on the command line
    declared: tuple[
        DeclaredDesign, ...
    ] = ()  # the same designs one by one; may be empty if there is only one
    read_only: bool = False
    clock: Clock = SYSTEM_CLOCK
    engine: Engine | None = None  # if it runs in this process
    monitor: Monitor | None = None  # of the engine's calls, or else of the studio's own
    log: LogReader | None = None
    directory: Callable[[], Directory] | None = None  # loaded on each call
    caller: SignedInCaller | None = None  # whose rights `db` has; None: without sign-in
    book: Callable[[str | None], PriceBook] = field(default=lambda region: load_book(region or "us-east-1"))

    cache: dict[object, Any] = field(default_factory=dict, init=False, repr=False)  # results about designs
    features: StudioFeatures = field(init=False)
    _past_connections: dict[str, AsyncConnection] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Mark calls to a monitored engine as the studio's own.

        Without an engine in this process the studio's own calls are all there is to monitor, so they count.
        """
        features = StudioFeatures(
            self.engine is not None and self.monitor is not None,
            self.log is not None,
            self.directory is not None,
        )
        object.__setattr__(self, "features", features)
        if self.engine is not None:
            object.__setattr__(self, "db", mark_connection(self.db))

    @property
    def reads_only(self) -> Studio:
        """The same studio with a connection that only reads."""
        reader = copy.copy(self)
        connection = AsyncConnection(ReadOnlyBackend(self.db.backend), self.db.target, self.db.context)
        object.__setattr__(reader, "db", connection)
        return reader

    def permit(self, permission: str) -> Studio:
        """Return the studio for an endpoint that needs a permission besides those of its requests; "" for none.

        In a studio whose users sign in, the caller must have it. Without one an endpoint gets nothing that shows the requests
        of others or that goes around the caller's rights: no engine, monitor, access log or directory.
        """
        if self.caller is None:
            return self
        if permission:
            self.caller.require(permission)
            return self
        own = copy.copy(self)
        for name in ("engine", "monitor", "log", "directory"):
            object.__setattr__(own, name, None)
        return own

    async def connection_at(self, as_of: str | None) -> AsyncConnection:
        """Return a connection to the tables as of a moment, or as they are now; the last few are cached."""
        if not as_of:
            return self.db
        connection = self._past_connections.pop(as_of, None) or await self.db.as_of(as_of)
        self._past_connections[as_of] = connection
        while len(self._past_connections) > _PAST_CONNECTIONS_MAX:
            oldest = next(iter(self._past_connections))
            await self._past_connections.pop(oldest).close()
        return connection

    async def close(self) -> None:
        """Close the cached connections to the past; `db` belongs to the caller."""
        while self._past_connections:
            await self._past_connections.popitem()[1].close()

    def table_design(self, name: str) -> TableDesign | None:
        """Return the design of a table; None if no design declares it."""
        tables = () if self.design is None else self.design.tables
        return next((table for table in tables if table.name == name), None)

    def require_design(self) -> Design:
        """Return the design; refuse the request if there is none."""
        if self.design is None:
            raise RequestRefused(
                "design-missing",
                "No design loaded",
                "The studio was started without a design, so it knows tables but not entities and access patterns.",
                "Restart it with the module that declares them: tavola studio shop.model",
                status=409,
            )
        return self.design

    def require_log(self) -> LogReader:
        """Return the access log; refuse the request if there is none."""
        if self.log is None:
            raise RequestRefused(
                "log-missing",
                "No access log",
                "The studio was started without an access log.",
                "Record one with `tavola serve FILE --access-log access.log`, and pass it with --access-log.",
                status=409,
            )
        return self.log

    def require_monitor(self) -> Monitor:
        """Return the monitor; refuse the request if there is none."""
        if self.monitor is None:
            raise RequestRefused(
                "monitor-missing",
                "Monitoring is off",
                "The studio was started without a monitor, so it has no request data.",
                "Start tables and studio together: tavola serve --studio, or tavola studio --store FILE.",
                status=409,
            )
        return self.monitor

    def local_prices(self) -> PriceBook:
        """Return the prices of the tables' region, or those of us-east-1 if there is no price book for it.

        Callers show the book's title beside each sum.
        """
        try:
            return self.book(self.where.region)
        except UnknownPriceBook:
            return self.book(None)

    async def run_in_thread(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a long computation in a thread, so that the event loop keeps serving other requests."""
        return await asyncio.to_thread(function, *args, **kwargs)
