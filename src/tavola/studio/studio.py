"""The state shared by all endpoints: connection, designs, monitor, access log and user directory.

Created and closed by the command that starts the studio. Dependencies on other packages (access log, directory of users and
roles) are passed in as functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, ParamSpec, TypeVar

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.design.lint import SourceFile
from tavola.engine import Engine
from tavola.handles import AsyncConnection
from tavola.iam import Directory
from tavola.model.document import Design, TableDesign
from tavola.prices import BookUnknown, PriceBook, load_book
from tavola.studio.monitoring import Monitor, mark_connection
from tavola.studio.problems import RequestRefused
from tavola.studio.read_only import read_only_connection

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
    """Which records of the access log are wanted; all that is given must hold."""

    since_s: float | None = None
    until_s: float | None = None
    operation: str | None = None
    table: str | None = None
    index: str | None = None  # that was read
    caller: str | None = None
    decision: str | None = None  # open, allowed, denied, unauthenticated, refused
    fault: str | None = None
    key: str | None = None  # a key's hash, as records have it
    item: str | None = None  # a key in DynamoDB JSON, in the place of its hash
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
        found = self._past_connections.pop(as_of, None) or await self.db.as_of(as_of)
        self._past_connections[as_of] = found
        while len(self._past_connections) > _PASTS_MAX:
            oldest = next(iter(self._past_connections))
            await self._past_connections.pop(oldest).close()
        return found

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
