"""Studio options: build the studio from the options of `tavola studio`, `tavola api` and `tavola serve --studio`.

The tables are in a store that this process opens, or at an endpoint. What the studio package may not import is passed in here: the
reader of an access log, the directory of users and roles, the prices.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tavola.cli.app_storage import is_live
from tavola.cli.applications import remedy_of_address
from tavola.cli.design_files import read_design_files
from tavola.cli.designs import DesignRefused, is_file, load_design, load_tables
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.keys import read_store_key
from tavola.cli.output import complain, note
from tavola.cli.price_books import load_chosen_book
from tavola.cli.targets import DEFAULT_ENDPOINT, TargetRefused
from tavola.errors import ErrorKind, TavolaError

if TYPE_CHECKING:
    from tavola.engine import Engine

MEMORY = "memory:"

_EXTRA = frozenset({"starlette", "uvicorn"})
_START = (
    "Start a server with `tavola serve`, name another with --endpoint, or the file of a store with --store; "
    "`tavola demo` has tables, data and the studio at once."
)


class StudioMissing(TavolaError):
    """The web stack of the studio is not installed."""

    kind = ErrorKind.NOT_INSTALLED

    def __init__(self, module: str) -> None:
        self.module = module
        super().__init__(f"The studio needs {module}, which is not installed: pip install 'tavola[studio]'")


@dataclass(frozen=True, slots=True)
class StudioOptions:
    """The options of a studio."""

    designs: tuple[str, ...] = ()
    store: Path | None = None
    endpoint: str | None = None
    region: str | None = None
    account: str | None = None
    keys: tuple[Path | None, str | None, str | None] = (None, None, None)
    read_only: bool = False
    live: bool = False
    access_log: Path | None = None
    iam: Path | None = None


@dataclass(frozen=True, slots=True)
class StudioTarget:
    """Where the tables are, and everything the options say about them; a store is open."""

    target: Any  # an engine, or the text of an endpoint
    where: Any
    region: str | None  # as it was given, for an endpoint
    account: str | None
    read_only: bool
    declared: tuple[Any, ...] = ()
    design: Any | None = None  # all of them in one
    log: Any | None = None
    directory: Any | None = None

    @property
    def designs(self) -> tuple[str, ...]:
        """What the designs are called."""
        return tuple(each.name for each in self.declared)

    @property
    def engine(self) -> Any | None:
        """The engine in this process, if the tables are in it."""
        return None if isinstance(self.target, str) else self.target


@contextmanager
def reporting_studio_errors(what: str, port_option: str = "--port") -> Iterator[None]:
    """Turn errors into three lines and an exit code; say which extra is missing if that is why."""
    with reporting_errors(what):
        try:
            yield
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in _EXTRA:
                raise
            raise StudioMissing(missing) from error
        except TavolaError as error:
            found = remedy_of_address(error, port_option)
            if found is None:
                raise
            complain(what, str(error), found[0])
            raise click.exceptions.Exit(found[1]) from error


@contextmanager
def open_studio_target(options: StudioOptions) -> Iterator[StudioTarget]:
    """Open the target that the options name, for as long as the block runs."""
    declared = load_declared_designs(options.designs)
    known: dict[str, Any] = {
        "declared": declared,
        "design": merge_designs(declared),
        "log": None if options.access_log is None else access_log_reader(options.access_log),
        "directory": None if options.iam is None else directory_reader(options.iam),
    }
    if options.store is None:
        yield _endpoint_target(options, known)
        return
    from tavola.engine import Engine
    from tavola.protocol.accounts import DEFAULT_SCOPE
    from tavola.studio import TablesLocation

    if options.endpoint is not None:
        raise TargetRefused("--store and --endpoint cannot both be followed; give one of them")
    region = options.region or DEFAULT_SCOPE.region
    account = options.account or DEFAULT_SCOPE.account
    if str(options.store) == MEMORY:
        file, where = None, TablesLocation("memory", "in memory, gone when this ends", region, account)
    else:
        file = options.store
        if not file.is_file():
            kind = "is a folder" if file.is_dir() else "is not there"
            raise TargetRefused(f"{file} {kind}; name the file of a store with --store")
        where = TablesLocation("file", str(file.absolute()), region, account)
    key = None if file is None else read_store_key(*options.keys)
    with closing(Engine.open(file, key=key)) as engine:
        if file is None:
            _make_tables(engine, options.designs, region, account)
        yield StudioTarget(engine, where, region, account, options.read_only, **known)


def _make_tables(engine: Engine, designs: Sequence[str], region: str, account: str) -> None:
    """Create the tables that modules declare, in an engine in memory."""
    from tavola.connections import connect

    tables = [table for text in designs if not is_file(text) for table in load_tables(text)]
    with connect(engine, region=region, account=account) as db:
        db.create_tables(*tables)


def _endpoint_target(options: StudioOptions, known: Mapping[str, Any]) -> StudioTarget:
    """Return the target at an endpoint; on AWS it is read-only unless `--live` is given."""
    from tavola.studio import TablesLocation

    endpoint = options.endpoint or DEFAULT_ENDPOINT
    region = options.region
    if endpoint.startswith("aws:"):  # names its region itself; that of the environment stands in
        endpoint, region = f"aws:{endpoint.removeprefix('aws:') or region or ''}", None
    aws = is_live(endpoint)
    seen = _identify_endpoint(endpoint, region, options.account)
    if seen.trouble is not None and options.endpoint is None:
        complain("There is nothing to show.", seen.trouble, _START)
        raise click.exceptions.Exit(Exit.UNREACHABLE)
    if seen.trouble is not None:
        note(f"Warning: {seen.trouble}. The pages say so too, until it answers.")
    account = options.account or seen.account
    where = TablesLocation(
        "aws" if aws else "http", endpoint, seen.region or "", account if aws else options.account
    )
    read_only = options.read_only or (aws and not options.live)
    if aws:
        whose = f"account {account or 'unknown'}{f' in {seen.region}' if seen.region else ''}"
        if read_only:
            note(f"This is AWS itself, {whose}: nothing is changed there; --live lets changes through.")
        else:
            note(f"Warning: this changes tables on AWS, {whose}, and requests are paid for.")
    return StudioTarget(endpoint, where, region, options.account, read_only, **known)


@dataclass(frozen=True, slots=True)
class _EndpointIdentity:
    """The region and account of an endpoint, or `trouble`: why they are unknown."""

    region: str | None = None
    account: str | None = None
    trouble: str | None = None


def _identify_endpoint(endpoint: str, region: str | None, account: str | None) -> _EndpointIdentity:
    """Find out an endpoint's region and account from the ARN of one of its tables."""
    from tavola.backends.errors import BackendError
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
            return _EndpointIdentity(known)  # who may do little can still see what they may


def allowed_host_names(host: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the names that the studio answers to beside addresses and localhost: this machine's own, and those allowed.

    Another site's page can point its own name at this machine's address (DNS rebinding), but not these names.
    """
    own = socket.gethostname()
    return tuple(
        dict.fromkeys(name for name in (*allowed, host, own, f"{own.partition('.')[0]}.local") if name)
    )


@asynccontextmanager
async def open_studio(target: StudioTarget) -> AsyncIterator[Any]:
    """Open the studio on the running loop. A watch observes the engine, or else the studio's own calls."""
    from tavola.clock import SYSTEM_CLOCK
    from tavola.connections import connect_async
    from tavola.handles import AsyncConnection
    from tavola.protocol.accounts import DEFAULT_SCOPE
    from tavola.protocol.arns import Scope
    from tavola.studio import Monitor, ObservedBackend, Studio

    watch = Monitor(SYSTEM_CLOCK)
    db = connect_async(target.target, region=target.region, account=target.account)
    if target.engine is None:
        scope = Scope(
            target.where.account or DEFAULT_SCOPE.account, target.where.region or DEFAULT_SCOPE.region
        )
        db = AsyncConnection(ObservedBackend(db.backend, watch, scope), db.target)
    else:
        target.engine.observe(watch)
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
            monitor=watch,
            log=target.log,
            directory=target.directory,
            book=lambda region: load_chosen_book(region, None, None),
        )
        yield studio
    finally:
        if studio is not None:
            await studio.close()
        if target.engine is not None:
            target.engine.observe(None)
        await db.close()


def load_declared_designs(texts: Sequence[str]) -> tuple[Any, ...]:
    """Return the designs that texts name, each as `tavola lint` judges it: with its ignores and its files."""
    from tavola.model.document import with_ignores
    from tavola.studio import DeclaredDesign

    found = []
    for text in texts:
        sources = read_design_files(text)
        comments = [(source.file, source.text) for source in sources if source.file.endswith(".py")]
        design = with_ignores(load_design(text, unkeyed=True), comments)
        found.append(DeclaredDesign(text, design, sources))
    return tuple(found)


def merge_designs(declared: Sequence[Any]) -> Any | None:
    """Return several designs as one; refuse a table that two of them have. None: there is none."""
    from tavola.model.document import Design

    if not declared:
        return None
    owners: dict[str, str] = {}
    for each in declared:
        for table in each.design.tables:
            if table.name in owners:
                raise DesignRefused(
                    each.name,
                    f"its table {table.name} is in {owners[table.name]} already",
                    "Name one of the two designs, or one table of a module, as shop.model:Shop.",
                )
            owners[table.name] = each.name

    def every(member: str) -> tuple[Any, ...]:
        return tuple(found for each in declared for found in getattr(each.design, member))

    views = {view.name: view for view in reversed(every("views"))}  # of one name the first
    return Design(
        every("tables"),
        tuple(view for view in every("views") if views[view.name] is view),
        every("needs"),
        every("policies"),
        every("ignores"),
    )


def access_log_reader(path: Path) -> Callable[[Any], Iterator[Mapping[str, Any]]]:
    """Return the reader of an access log as the studio asks it: the newest records first."""
    from tavola.server.log_queries import AccessLogQuery, log_key, read_records

    def records(question: Any) -> Iterator[Mapping[str, Any]]:
        query = AccessLogQuery(
            user=question.caller,
            operation=question.operation,
            table=question.table,
            index=question.index,
            error=question.fault,
            decision=question.decision,
            key=question.key if question.item is None else log_key(path, question.item),
            since_s=question.since_s,
            until_s=question.until_s,
        )
        found = deque((record for _, record in read_records(path, query)), maxlen=question.limit)
        return reversed(found)

    return records


def directory_reader(path: Path) -> Callable[[], Any]:
    """Return what gives the directory of users and roles as its file has it at the moment."""
    from tavola.iam import DirectoryFile

    return DirectoryFile(path).current
