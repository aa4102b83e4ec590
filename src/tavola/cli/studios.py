"""Studios: what the studio and `tavola api` work with, made of what a command line says.

The tables are in a store that this process opens, or at an endpoint. What the studio's room may not know itself is handed in
here: the reader of an access log, the directory of users and roles, the prices.
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

from tavola.cli.applications import remedy_of_address
from tavola.cli.books import book_of
from tavola.cli.designs import DesignRefused, is_file, load_design, load_tables
from tavola.cli.exits import Exit
from tavola.cli.failures import told
from tavola.cli.keeping import is_live
from tavola.cli.keys import read_store_key
from tavola.cli.output import complain, note
from tavola.cli.sources import sources_of
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
class Asked:
    """What the options say of a studio."""

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
class Kept:
    """Where the tables are, with all that is told of them; a store is open."""

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
def told_of_studio(what: str, port_option: str = "--port") -> Iterator[None]:
    """Turn errors into three lines and an exit code; say which extra is missing if that is why."""
    with told(what):
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
def kept_for(asked: Asked) -> Iterator[Kept]:
    """Give what the options name; a store is open while the block runs."""
    declared = declared_by(asked.designs)
    known: dict[str, Any] = {
        "declared": declared,
        "design": merged(declared),
        "log": None if asked.access_log is None else log_port(asked.access_log),
        "directory": None if asked.iam is None else directory_port(asked.iam),
    }
    if asked.store is None:
        yield _elsewhere(asked, known)
        return
    from tavola.engine import Engine
    from tavola.protocol.accounts import DEFAULT_SCOPE
    from tavola.studio import Where

    if asked.endpoint is not None:
        raise TargetRefused("--store and --endpoint cannot both be followed; give one of them")
    region = asked.region or DEFAULT_SCOPE.region
    account = asked.account or DEFAULT_SCOPE.account
    if str(asked.store) == MEMORY:
        file, where = None, Where("memory", "in memory, gone when this ends", region, account)
    else:
        file = asked.store
        if not file.is_file():
            kind = "is a folder" if file.is_dir() else "is not there"
            raise TargetRefused(f"{file} {kind}; name the file of a store with --store")
        where = Where("file", str(file.absolute()), region, account)
    key = None if file is None else read_store_key(*asked.keys)
    with closing(Engine.open(file, key=key)) as engine:
        if file is None:
            _make_tables(engine, asked.designs, region, account)
        yield Kept(engine, where, region, account, asked.read_only, **known)


def _make_tables(engine: Engine, designs: Sequence[str], region: str, account: str) -> None:
    """Make the tables that modules declare, in memory, where nobody else can have made them."""
    from tavola.connections import connect

    tables = [table for text in designs if not is_file(text) for table in load_tables(text)]
    with connect(engine, region=region, account=account) as db:
        db.create_tables(*tables)


def _elsewhere(asked: Asked, known: Mapping[str, Any]) -> Kept:
    """Return the tables at an endpoint: on AWS to be read only, unless somebody says otherwise."""
    from tavola.studio import Where

    endpoint = asked.endpoint or DEFAULT_ENDPOINT
    region = asked.region
    if endpoint.startswith("aws:"):  # names its region itself; that of the environment stands in
        endpoint, region = f"aws:{endpoint.removeprefix('aws:') or region or ''}", None
    aws = is_live(endpoint)
    seen = _seen(endpoint, region, asked.account)
    if seen.trouble is not None and asked.endpoint is None:
        complain("There is nothing to show.", seen.trouble, _START)
        raise click.exceptions.Exit(Exit.UNREACHABLE)
    if seen.trouble is not None:
        note(f"Warning: {seen.trouble}. The pages say so too, until it answers.")
    account = asked.account or seen.account
    where = Where("aws" if aws else "http", endpoint, seen.region or "", account if aws else asked.account)
    read_only = asked.read_only or (aws and not asked.live)
    if aws:
        whose = f"account {account or 'unknown'}{f' in {seen.region}' if seen.region else ''}"
        if read_only:
            note(f"This is AWS itself, {whose}: nothing is changed there; --live lets changes through.")
        else:
            note(f"Warning: this changes tables on AWS, {whose}, and requests are paid for.")
    return Kept(endpoint, where, region, asked.account, read_only, **known)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What an endpoint tells of itself; `trouble`: why it tells nothing."""

    region: str | None = None
    account: str | None = None
    trouble: str | None = None


def _seen(endpoint: str, region: str | None, account: str | None) -> _Seen:
    """Ask an endpoint which region and account it is, by the name of a table there; nothing is written."""
    from tavola.backends.errors import BackendError
    from tavola.connections import connect
    from tavola.protocol.faults import Fault

    with connect(endpoint, region=region, account=account) as connection:
        known = getattr(connection.backend, "region", None)
        try:
            names = connection.call("ListTables", {"Limit": 1})["TableNames"]
            if not names:
                return _Seen(known)
            arn = connection.call("DescribeTable", {"TableName": names[0]})["Table"]["TableArn"]
            return _Seen(known, arn.split(":")[4])
        except BackendError as error:
            return _Seen(known, None, str(error).rstrip("."))
        except (Fault, IndexError, KeyError):
            return _Seen(known)  # who may do little can still see what they may


def names_at(host: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the names that the studio answers to beside addresses and localhost: this machine's own, and those allowed.

    They are what nobody elsewhere can point at this machine's address, as a page of another site can its own name.
    """
    own = socket.gethostname()
    return tuple(
        dict.fromkeys(name for name in (*allowed, host, own, f"{own.partition('.')[0]}.local") if name)
    )


@asynccontextmanager
async def made(kept: Kept) -> AsyncIterator[Any]:
    """Give the studio of what is kept, on the running loop; a watch sees the engine, or else the studio's own calls."""
    from tavola.clock import SYSTEM_CLOCK
    from tavola.connections import connect_async
    from tavola.handles import AsyncConnection
    from tavola.protocol.accounts import DEFAULT_SCOPE
    from tavola.protocol.arns import Scope
    from tavola.studio import Studio, TellingBackend, Watch

    watch = Watch(SYSTEM_CLOCK)
    db = connect_async(kept.target, region=kept.region, account=kept.account)
    if kept.engine is None:
        scope = Scope(kept.where.account or DEFAULT_SCOPE.account, kept.where.region or DEFAULT_SCOPE.region)
        db = AsyncConnection(TellingBackend(db.backend, watch, scope), db.target)
    else:
        kept.engine.observe(watch)
    studio = None
    try:
        studio = Studio(
            db=db,
            where=kept.where,
            design=kept.design,
            designs=kept.designs,
            declared=kept.declared,
            read_only=kept.read_only,
            engine=kept.engine,
            watch=watch,
            log=kept.log,
            directory=kept.directory,
            book=lambda region: book_of(region, None, None),
        )
        yield studio
    finally:
        if studio is not None:
            await studio.close()
        if kept.engine is not None:
            kept.engine.observe(None)
        await db.close()


def declared_by(texts: Sequence[str]) -> tuple[Any, ...]:
    """Return the designs that texts name, each as `tavola lint` judges it: with its ignores and its files."""
    from tavola.model.document import with_ignores
    from tavola.studio import Declared

    found = []
    for text in texts:
        sources = sources_of(text)
        comments = [(source.file, source.text) for source in sources if source.file.endswith(".py")]
        design = with_ignores(load_design(text, unkeyed=True), comments)
        found.append(Declared(text, design, sources))
    return tuple(found)


def merged(declared: Sequence[Any]) -> Any | None:
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


def log_port(path: Path) -> Callable[[Any], Iterator[Mapping[str, Any]]]:
    """Return the reader of an access log as the studio asks it: the newest records first."""
    from tavola.server import LogQuery, log_key, read_records

    def records(question: Any) -> Iterator[Mapping[str, Any]]:
        query = LogQuery(
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


def directory_port(path: Path) -> Callable[[], Any]:
    """Return what gives the directory of users and roles as its file has it at the moment."""
    from tavola.iam import DirectoryFile

    return DirectoryFile(path).current
