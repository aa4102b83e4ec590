"""Targets: which DynamoDB a command asks: a store's file that nobody has open, or an endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TypeAlias

import typer

from tavola.cli.keys import key_from
from tavola.cli.output import bar
from tavola.cli.settings import KEY
from tavola.errors import TavolaError

DEFAULT_ENDPOINT = "http://127.0.0.1:8000"

Store: TypeAlias = Annotated[
    Path | None, typer.Option("--store", help="The store's file; no process may have it open.")
]
EndpointUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        envvar="TAVOLA_ENDPOINT",
        help=f"The server to ask, unless --store is given; or TAVOLA_ENDPOINT.  [default: {DEFAULT_ENDPOINT}]",
    ),
]
Region: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--region",
        envvar=["AWS_DEFAULT_REGION", "AWS_REGION"],
        show_envvar=False,
        help="Whose region is meant; or AWS_DEFAULT_REGION, AWS_REGION.",
    ),
]
Account: TypeAlias = Annotated[str | None, typer.Option("--account", help="Whose account is meant.")]
StoreKey: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store-key", envvar=KEY.variable, help=KEY.sentence, show_envvar=False, show_default=False
    ),
]
Keys: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--key", help="The item's key: NAME=VALUE for each attribute, or DynamoDB JSON once."),
]

_POLL_S = 0.2
_SLICE_MS = 50.0
_TABLES_NAMED = 5
_AGO = re.compile(r"([0-9]+)\s*([smhd])(?:\s+ago)?")
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class TargetRefused(TavolaError):
    """A command line that names no target, or an item in no way that can be understood."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a command asks, and how it waits for what takes longer than an answer."""

    connection: Any  # a tavola.Connection; the room is entered when a command runs
    engine: Any | None  # the engine of a store that this process has open

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Return the answer to an operation, leaving members out that nobody gave."""
        given = {name: value for name, value in request.items() if value is not None}
        answer: dict[str, Any] = self.connection.call(operation, given)
        return answer

    def follow(self, what: str, total: int, done: Callable[[], int | None]) -> None:
        """Show how far something has come until `done` says None; do the work, if this process has the store."""
        waiting = Event()
        with bar(what, total) as show:
            while True:
                if self.engine is None:
                    waiting.wait(_POLL_S)
                else:
                    self.engine.tend(_SLICE_MS)
                count = done()
                if count is None:
                    show(total)
                    return
                show(count)


@contextmanager
def opened(
    store: Path | None,
    endpoint: str | None,
    region: str | None = None,
    account: str | None = None,
    keys: tuple[Path | None, str | None, str | None] = (None, None, None),
    *,
    buckets: Any = None,
    new: bool = False,
) -> Iterator[Target]:
    """Give the target that the options name; a store is opened for as long as the command runs.

    `buckets` stands for S3 meanwhile, a folder or `tavola.engine.Buckets`; a store that is `new` may be made.
    """
    from tavola.backends import EmbeddedBackend
    from tavola.connections import Connection, connect
    from tavola.engine import Engine
    from tavola.protocol.accounts import DEFAULT_SCOPE
    from tavola.protocol.arns import Scope

    if store is None:
        asked = endpoint or DEFAULT_ENDPOINT
        if asked.startswith("aws:"):  # names its region itself; that of the environment stands in
            asked, region = f"aws:{asked.removeprefix('aws:') or region or ''}", None
        with connect(asked, region=region, account=account) as connection:
            target = Target(connection, None)
            with _located(target, getattr(connection.backend, "region", None), account):
                yield target
        return
    if store.is_dir():
        raise TargetRefused(f"{store} is a folder; name the file of a store with --store")
    if not store.is_file() and not new:
        raise TargetRefused(f"{store} is not there; name the file of a store with --store")
    scope = Scope(account or DEFAULT_SCOPE.account, region or DEFAULT_SCOPE.region)
    engine = Engine.open(store, key=key_from(*keys), buckets=buckets)
    with Connection(EmbeddedBackend(engine, scope), f"file:{store}") as connection:
        engine.run_background_work(0)  # long work waits for `follow`, which shows it
        target = Target(connection, engine)
        with _located(target, scope.region, scope.account):
            yield target
        while engine.run_background_work(_SLICE_MS):
            pass


@contextmanager
def _located(target: Target, region: str | None, account: str | None) -> Iterator[None]:
    """Let whoever misses a table know where it was looked for, and what is there."""
    from tavola.protocol.faults import ResourceNotFoundFault, TableNotFoundFault

    try:
        yield
    except (ResourceNotFoundFault, TableNotFoundFault) as fault:
        whose = "" if account is None else f" of account {account}"
        fault.add_note(f"looked in {region}{whose}, where {_tables_of(target)}")
        raise


def _tables_of(target: Target) -> str:
    """Return in words which tables there are."""
    try:
        names = target.call("ListTables", Limit=_TABLES_NAMED + 1)["TableNames"]
    except TavolaError:
        return "nobody may list the tables"
    if not names:
        return "there is no table"
    more = " and more" if len(names) > _TABLES_NAMED else ""
    return f"the tables are {', '.join(names[:_TABLES_NAMED])}{more}"


def moment(text: str) -> int:
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


def key_of(target: Target, table: str, given: list[str]) -> dict[str, Any]:
    """Return the key that the options name, with the types that the table gives to its attributes."""
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        return json_of("--key", given[0])
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


def json_of(option: str, text: str) -> dict[str, Any]:
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
