"""Targets: the DynamoDB that a command works on: a store's file that no other process has open, or an endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from tavola.cli.keys import KeyCommand, KeyFile, read_store_key
from tavola.cli.output import bar
from tavola.cli.parameters import Option
from tavola.cli.settings import KEY
from tavola.errors import TavolaError

if TYPE_CHECKING:  # a command loads what it works on when it runs
    from tavola.engine import Engine
    from tavola.handles import Connection

DEFAULT_ENDPOINT = "http://127.0.0.1:8000"

Region: TypeAlias = Annotated[
    str | None,
    Option(
        "--region",
        envvar=["AWS_DEFAULT_REGION", "AWS_REGION"],
        show_envvar=False,
        help="Whose region is meant; or AWS_DEFAULT_REGION, AWS_REGION.",
    ),
]
Account: TypeAlias = Annotated[str | None, Option("--account", help="Whose account is meant.")]
StoreKey: TypeAlias = Annotated[
    str | None,
    Option("--store-key", envvar=KEY.variable, help=KEY.sentence, show_envvar=False, show_default=False),
]
Keys: TypeAlias = Annotated[
    list[str] | None,
    Option("--key", help="The item's key: NAME=VALUE for each attribute, or DynamoDB JSON once."),
]

_POLL_S = 0.2
_SLICE_MS = 50.0
_TABLES_NAMED = 5
_Opened: TypeAlias = "tuple[Target, str | None, str | None]"  # with the region and account it is in
_AGO = re.compile(r"([0-9]+)\s*([smhd])(?:\s+ago)?")
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class TargetRefused(TavolaError):
    """A command line whose target, key or time cannot be understood."""


@dataclass(frozen=True, slots=True)
class Target:
    """An open connection, and how to wait for background work."""

    connection: Connection
    engine: Engine | None  # the engine of a store that this process has open

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Return the response to an operation; parameters that are None are left out."""
        given = {name: value for name, value in request.items() if value is not None}
        answer: dict[str, Any] = self.connection.call(operation, given)
        return answer

    def follow(self, what: str, total: int, done: Callable[[], int | None]) -> None:
        """Show progress until `done` returns None; run the background work here if this process has the store open."""
        waiting = Event()
        with bar(what, total) as show:
            while True:
                if self.engine is None:
                    waiting.wait(_POLL_S)
                else:
                    self.engine.run_background_work(_SLICE_MS)
                count = done()
                if count is None:
                    show(total)
                    return
                show(count)


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The options that name the DynamoDB a command works on: a store's file, or an endpoint."""

    store: Annotated[
        Path | None, Option("--store", help="The store's file; no process may have it open.")
    ] = None
    endpoint: Annotated[
        str | None,
        Option(
            "--endpoint",
            envvar="TAVOLA_ENDPOINT",
            show_envvar=False,
            help=f"The server to ask, unless --store is given; or TAVOLA_ENDPOINT.  [default: {DEFAULT_ENDPOINT}]",
        ),
    ] = None
    region: Region = None
    account: Account = None
    key_file: KeyFile = None
    key_command: KeyCommand = None
    store_key: StoreKey = None

    def __str__(self) -> str:
        return str(self.store) if self.store is not None else self.endpoint or DEFAULT_ENDPOINT

    @contextmanager
    def open(self, *, buckets: Any = None, new: bool = False) -> Iterator[Target]:
        """Open the target for as long as the command runs.

        `buckets` replaces S3 meanwhile: a folder, or `tavola.engine.Buckets`. With `new`, a missing store file is created.
        """
        opening = self._open_endpoint() if self.store is None else self._open_store(self.store, buckets, new)
        with opening as (target, region, account):
            try:
                yield target
            except TavolaError as error:
                _note_where_searched(error, target, region, account)
                raise

    @contextmanager
    def _open_endpoint(self) -> Iterator[_Opened]:
        from tavola.connections import connect

        endpoint, region = self.endpoint or DEFAULT_ENDPOINT, self.region
        if endpoint.startswith("aws:"):  # it may name its region itself; the environment's is the default
            endpoint, region = f"aws:{endpoint.removeprefix('aws:') or region or ''}", None
        with connect(endpoint, region=region, account=self.account) as connection:
            yield Target(connection, None), getattr(connection.backend, "region", None), self.account

    @contextmanager
    def _open_store(self, store: Path, buckets: Any, new: bool) -> Iterator[_Opened]:
        from tavola.backends.embedded import EmbeddedBackend
        from tavola.engine import Engine
        from tavola.handles import Connection
        from tavola.protocol.accounts import DEFAULT_SCOPE
        from tavola.protocol.arns import Scope

        if store.is_dir():
            raise TargetRefused(f"{store} is a folder; name the file of a store with --store")
        if not store.is_file() and not new:
            raise TargetRefused(f"{store} is not there; name the file of a store with --store")
        scope = Scope(self.account or DEFAULT_SCOPE.account, self.region or DEFAULT_SCOPE.region)
        key = read_store_key(self.key_file, self.key_command, self.store_key)
        engine = Engine.open(store, key=key, buckets=buckets)
        with Connection(EmbeddedBackend(engine, scope), f"file:{store}") as connection:
            engine.run_background_work(0)  # long work waits for `follow`, which shows its progress
            yield Target(connection, engine), scope.region, scope.account
            while engine.run_background_work(_SLICE_MS):
                pass


def _note_where_searched(error: TavolaError, target: Target, region: str | None, account: str | None) -> None:
    """Add to a "table not found" where it was searched, and which tables are there."""
    from tavola.protocol.faults import ResourceNotFoundFault, TableNotFoundFault

    if isinstance(error, ResourceNotFoundFault | TableNotFoundFault):
        whose = "" if account is None else f" of account {account}"
        error.add_note(f"looked in {region}{whose}, where {_describe_tables(target)}")


def _describe_tables(target: Target) -> str:
    """Describe the tables of a target for an error message."""
    try:
        names = target.call("ListTables", Limit=_TABLES_NAMED + 1)["TableNames"]
    except TavolaError:
        return "nobody may list the tables"
    if not names:
        return "there is no table"
    more = " and more" if len(names) > _TABLES_NAMED else ""
    return f"the tables are {', '.join(names[:_TABLES_NAMED])}{more}"


def parse_moment(text: str) -> int:
    """Return the microseconds of a moment on the command line: a time, or how long ago it was, as in `10m`."""
    from tavola.clock import SYSTEM_CLOCK
    from tavola.protocol.faults import ValidationFault
    from tavola.protocol.instants import TIME_FORMS, parse_instant

    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return int((SYSTEM_CLOCK.now() - int(ago[1]) * _UNITS_S[ago[2]]) * 1_000_000)
    try:
        return parse_instant(text)
    except ValidationFault as fault:
        raise TargetRefused(
            f"{text!r} is no time; give how long ago it was, as 30s, 10m, 2h or 1d, or a time such as "
            f"{TIME_FORMS}; a time without a zone is UTC"
        ) from fault


def parse_item_key(target: Target, table: str, given: list[str]) -> dict[str, Any]:
    """Return the key that the options name, with the types that the table gives to its attributes."""
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        return parse_json_object("--key", given[0])
    from tavola.protocol.faults import AccessDeniedFault

    try:
        described = target.call("DescribeTable", TableName=table)["Table"]
    except AccessDeniedFault as denied:
        denied.add_note(
            '--key with DynamoDB JSON, such as {"pk": {"S": "a"}}, needs no description of the table'
        )
        raise
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
    names = [each["AttributeName"] for each in described["KeySchema"]]
    key: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            wanted = " ".join(f"--key {each}=…" for each in names)
            raise TargetRefused(f"{text!r} is no part of the key of {table}; give {wanted}")
        key[name] = {types[name]: value}
    return key


def parse_json_object(option: str, text: str) -> dict[str, Any]:
    """Return the JSON object that an option holds."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise TargetRefused(
            f'{option} is no JSON ({error}); give an object such as {{"pk": {{"S": "a"}}}}'
        ) from error
    if not isinstance(found, Mapping):
        raise TargetRefused(f"{option} is {text}; give a JSON object")
    return dict(found)
