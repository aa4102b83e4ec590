"""Open the studio that the options of `tavola studio`, `tavola api` and `tavola serve --studio` describe.

The tables are in a database file that this process opens, or at an endpoint. This module passes in what the
studio package may not import: the reader of an access log, the directory of users and roles, the prices.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tavola.cli.applications import MEMORY, is_live
from tavola.cli.designs import DesignLoadError, is_file, load_annotated_design, load_tables
from tavola.cli.errors import CommandError
from tavola.cli.keys import StoreKeyOptions
from tavola.cli.output import note, warn
from tavola.cli.parameters import Option
from tavola.cli.price_books import PriceOptions
from tavola.cli.settings import IAM, option
from tavola.cli.targets import (
    DEFAULT_ENDPOINT,
    AccountOption,
    EndpointOption,
    RegionOption,
    check_not_combined,
    missing_file,
)
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.engine import Engine
    from tavola.iam.directory import Directory
    from tavola.model.document import Design
    from tavola.prices import PriceBook
    from tavola.studio import DeclaredDesign, LogQuery, LogReader, Studio, TablesLocation


@dataclass(frozen=True, slots=True)
class StudioOptions(StoreKeyOptions):
    """The options that name the tables of a studio."""

    store: Annotated[
        Path | None,
        Option(
            "--store",
            metavar="FILE|memory:",
            help="Database file that no other process has open, or memory:.",
        ),
    ] = None
    endpoint: EndpointOption = None
    read_only: Annotated[bool, Option("--read-only", help="Do not allow changes.")] = False
    live: Annotated[
        bool, Option("--live", help="Allow changes to tables on AWS; without it they are read-only.")
    ] = False
    access_log: Annotated[
        Path | None,
        Option("--access-log", metavar="FILE", help="Access log of the server, to show its calls."),
    ] = None
    iam: Annotated[Path | None, option(IAM)] = None
    region: RegionOption = None
    account: AccountOption = None


@dataclass(frozen=True, slots=True)
class StudioTarget:
    """The open tables of a studio, with their designs, access log and users."""

    target: str | Engine  # the text is an endpoint
    where: TablesLocation
    region: str | None  # as given on the command line
    account: str | None
    read_only: bool = False
    declared: tuple[DeclaredDesign, ...] = ()
    design: Design | None = None  # all declared designs merged
    log: LogReader | None = None
    directory: Callable[[], Directory] | None = None

    @property
    def designs(self) -> tuple[str, ...]:
        """The names of the designs."""
        return tuple(declared_design.name for declared_design in self.declared)

    @property
    def engine(self) -> Engine | None:
        """The engine in this process, if the tables are in it."""
        return None if isinstance(self.target, str) else self.target


@contextmanager
def open_studio_target(options: StudioOptions, designs: Sequence[str]) -> Iterator[StudioTarget]:
    """Open the tables that the options name, for as long as the block runs."""
    declared = load_declared_designs(designs)
    details: dict[str, Any] = {
        "declared": declared,
        "design": merge_designs(declared),
        "log": None if options.access_log is None else access_log_reader(options.access_log),
        "directory": None if options.iam is None else directory_reader(options.iam),
    }
    if options.store is None:
        yield _endpoint_target(options, details)
        return
    from tavola.engine import Engine
    from tavola.protocol.arns import DEFAULT_SCOPE
    from tavola.studio import TablesLocation

    check_not_combined(options.store)
    region = options.region or DEFAULT_SCOPE.region
    account = options.account or DEFAULT_SCOPE.account
    if str(options.store) == MEMORY:
        file, key = None, None
        where = TablesLocation("memory", "in memory, lost when the process ends", region, account)
    else:
        file, key = options.store, options.read_key()
        if not file.is_file():
            raise missing_file(file, "--store")
        where = TablesLocation("file", str(file.absolute()), region, account)
    with closing(Engine.open(file, key=key)) as engine:
        if file is None:
            _create_tables(engine, designs, region, account)
        yield StudioTarget(engine, where, region, account, options.read_only, **details)


def _create_tables(engine: Engine, designs: Sequence[str], region: str, account: str) -> None:
    """Create the tables that modules declare in an in-memory engine."""
    from tavola.connections import connect

    tables = [table for text in designs if not is_file(text) for table in load_tables(text)]
    with connect(engine, region=region, account=account) as db:
        db.create_tables(*tables)


def _endpoint_target(options: StudioOptions, details: Mapping[str, Any]) -> StudioTarget:
    """Return the target at an endpoint; on AWS it is read-only unless `--live` is given."""
    from tavola.studio import TablesLocation

    endpoint = options.endpoint or DEFAULT_ENDPOINT
    region = options.region
    if endpoint.startswith("aws:"):  # it may include its region; the default is the environment's
        endpoint, region = f"aws:{endpoint.removeprefix('aws:') or region or ''}", None
    is_aws = is_live(endpoint)
    identity = _identify_endpoint(endpoint, region, options.account)
    if identity.problem is not None and options.endpoint is None:
        raise CommandError(
            f"{identity.problem}.",
            "Start a server with `tavola serve`, name another with --endpoint, or a database file with --store; "
            "`tavola demo` starts the studio with tables and data.",
            ErrorKind.UNAVAILABLE,
        )
    if identity.problem is not None:
        warn(f"{identity.problem}. The studio works once the endpoint answers.")
    account = options.account or identity.account
    where = TablesLocation(
        "aws" if is_aws else "http", endpoint, identity.region or "", account if is_aws else options.account
    )
    read_only = options.read_only or (is_aws and not options.live)
    if is_aws:
        owner = f"account {account or 'unknown'}{f' in {identity.region}' if identity.region else ''}"
        if read_only:
            note(f"This is AWS, {owner}: read-only. Add --live to allow changes.")
        else:
            warn(f"this changes tables on AWS, {owner}, and requests are billed.")
    return StudioTarget(endpoint, where, region, options.account, read_only, **details)


@dataclass(frozen=True, slots=True)
class _EndpointIdentity:
    """The region and account of an endpoint, as far as known, and why it cannot be reached."""

    region: str | None = None
    account: str | None = None
    problem: str | None = None


def _identify_endpoint(endpoint: str, region: str | None, account: str | None) -> _EndpointIdentity:
    """Return an endpoint's region and account, the latter from the ARN of one of its tables."""
    from tavola.client.backend import BackendError
    from tavola.connections import connect
    from tavola.protocol.faults import Fault

    with connect(endpoint, region=region, account=account) as connection:
        known = getattr(connection.backend, "region", None)
        try:
            names = connection.call("ListTables", {"Limit": 1})["TableNames"]
            if not names:
                return _EndpointIdentity(known)
            arn = connection.call("DescribeTable", {"TableName": names[0]})["Table"]["TableArn"]
            return _EndpointIdentity(known, arn.split(":")[4])
        except BackendError as error:
            return _EndpointIdentity(known, None, str(error).rstrip("."))
        except (Fault, IndexError, KeyError):
            return _EndpointIdentity(known)  # the caller may be allowed to use tables but not to list them


def allowed_host_names(host: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the host names that the studio accepts besides addresses and localhost: this machine's own and the allowed ones.

    Another site's page can point its own name at this machine's address (DNS rebinding), but not these names.
    """
    host_name = socket.gethostname()
    return tuple(
        dict.fromkeys(
            name for name in (*allowed, host, host_name, f"{host_name.partition('.')[0]}.local") if name
        )
    )


@asynccontextmanager
async def open_studio(target: StudioTarget) -> AsyncIterator[Studio]:
    """Open the studio on the running loop. Its monitor observes the engine, or else the studio's own calls."""
    from tavola.client.connection import AsyncConnection
    from tavola.clock import SYSTEM_CLOCK
    from tavola.connections import connect_async
    from tavola.protocol.arns import DEFAULT_SCOPE, Scope
    from tavola.studio import Monitor, ObservedBackend, Studio

    monitor = Monitor(SYSTEM_CLOCK)
    db = connect_async(target.target, region=target.region, account=target.account)
    if target.engine is None:
        scope = Scope(
            target.where.account or DEFAULT_SCOPE.account, target.where.region or DEFAULT_SCOPE.region
        )
        db = AsyncConnection(ObservedBackend(db.backend, monitor, scope), db.target)
    else:
        target.engine.observe(monitor)
    studio = None
    try:
        studio = Studio(
            db=db,
            where=target.where,
            design=target.design,
            designs=target.designs,
            declared=target.declared,
            read_only=target.read_only,
            engine=target.engine,
            monitor=monitor,
            log=target.log,
            directory=target.directory,
            book=price_book,
        )
        yield studio
    finally:
        if studio is not None:
            await studio.close()
        if target.engine is not None:
            target.engine.observe(None)
        await db.close()


def price_book(region: str | None) -> PriceBook:
    """Return the prices of a region."""
    return PriceOptions(region=region).load_book()


def load_declared_designs(names: Sequence[str]) -> tuple[DeclaredDesign, ...]:
    """Return the named designs, each as `tavola lint` checks it: with its ignore comments and source files."""
    from tavola.studio import DeclaredDesign

    return tuple(DeclaredDesign(name, *load_annotated_design(name)) for name in names)


def merge_designs(declared: Sequence[DeclaredDesign]) -> Design | None:
    """Merge designs into one (None if `declared` is empty); raise DesignLoadError if two have the same table."""
    from tavola.model.document import Design

    if not declared:
        return None
    owners: dict[str, str] = {}
    for declared_design in declared:
        for table in declared_design.design.tables:
            if table.name in owners:
                raise DesignLoadError(
                    declared_design.name,
                    f"The table {table.name} of {declared_design.name} is also in {owners[table.name]}",
                    "Name one of the two designs, or one table of a module, such as shop.model:Shop.",
                )
            owners[table.name] = declared_design.name

    def merge(member: str) -> tuple[Any, ...]:
        return tuple(
            value for declared_design in declared for value in getattr(declared_design.design, member)
        )

    first_views = {view.name: view for view in reversed(merge("views"))}  # the first of each name
    return Design(
        merge("tables"),
        tuple(view for view in merge("views") if first_views[view.name] is view),
        merge("needs"),
        merge("policies"),
        merge("ignores"),
    )


def access_log_reader(path: Path) -> LogReader:
    """Return the studio's reader of an access log: the newest records first."""
    from tavola.server.log_queries import AccessLogQuery, log_key, read_records

    def read(query: LogQuery) -> Iterator[Mapping[str, Any]]:
        server_query = AccessLogQuery(
            user=query.caller,
            operation=query.operation,
            table=query.table,
            index=query.index,
            error=query.fault,
            decision=query.decision,
            account=query.account,
            key=query.key if query.item is None else log_key(path, query.item),
            since_s=query.since_s,
            until_s=query.until_s,
        )
        newest = deque((record for _, record in read_records(path, server_query)), maxlen=query.limit)
        return reversed(newest)

    return read


def directory_reader(path: Path) -> Callable[[], Directory]:
    """Return a function that returns the current users and roles in a file."""
    from tavola.iam import DirectoryFile

    return DirectoryFile(path).current
