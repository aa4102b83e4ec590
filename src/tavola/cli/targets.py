"""Targets: the DynamoDB that a command works on, a database file or an endpoint, and values parsed for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click
from click.core import ParameterSource

from tavola.cli.errors import CommandError
from tavola.cli.files import check_writable
from tavola.cli.keys import StoreKeyOptions
from tavola.cli.output import bar
from tavola.cli.parameters import Option
from tavola.cli.settings import KEY_FILE, option
from tavola.errors import ErrorKind, TavolaError

if TYPE_CHECKING:  # a command loads what it works on when it runs
    from tavola.client.connection import Connection
    from tavola.engine import Engine

DEFAULT_ENDPOINT = "http://127.0.0.1:8000"

RegionOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--region",
        metavar="REGION",
        envvar=["AWS_DEFAULT_REGION", "AWS_REGION"],
        show_envvar=False,
        help="Region of the tables. Default: AWS_DEFAULT_REGION, AWS_REGION, or us-east-1.",
    ),
]
AccountOption: TypeAlias = Annotated[
    str | None, Option("--account", metavar="ID", help="AWS account of the tables.")
]
EndpointOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--endpoint",
        aliases=("--endpoint-url",),
        metavar="URL|aws:REGION",
        envvar="TAVOLA_ENDPOINT",
        show_envvar=False,
        help=f"Server to connect to. Default: TAVOLA_ENDPOINT or {DEFAULT_ENDPOINT}.",
    ),
]
KEY_SPEC = Option(
    "--key", metavar="KEY", help="Key of the item: NAME=VALUE for each key attribute, or DynamoDB JSON."
)
TIME_FORMS_HELP = "a time (2026-11-16T10:00:00Z) or an age (10m, 2h, 1d)"

_POLL_S = 0.2
_SLICE_MS = 50.0
_TABLES_NAMED = 5
_Opened: TypeAlias = "tuple[Target, str | None, str | None]"  # with the region and account it is in
_AGE = re.compile(r"([0-9]+)\s*([smhd])(?:\s+ago)?")
_TYPES = ("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS")
_ACCOUNT = re.compile(r"[0-9]{12}")
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Target:
    """An open connection, and how to wait for background work."""

    connection: Connection
    engine: Engine | None  # if this process has the database file open

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Return the response to an operation; parameters that are None are left out."""
        parameters = {name: value for name, value in request.items() if value is not None}
        response: dict[str, Any] = self.connection.call(operation, parameters)
        return response

    def follow(self, what: str, total: int, done: Callable[[], int | None]) -> None:
        """Show progress until `done` returns None; run the background work here if this process has the file open."""
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
class TargetOptions(StoreKeyOptions):
    """The options that name the DynamoDB a command works on: a database file, or an endpoint."""

    store: Annotated[
        Path | None,
        Option("--store", metavar="FILE", help="Database file; no other process may have it open."),
    ] = None
    endpoint: EndpointOption = None
    region: RegionOption = None
    account: AccountOption = None
    key_file: Annotated[
        Path | None, option(KEY_FILE, help_="File with the encryption key of the database, on one line.")
    ] = None

    def __str__(self) -> str:
        return str(self.store) if self.store is not None else self.endpoint or DEFAULT_ENDPOINT

    @contextmanager
    def open(self, *, buckets: Any = None, new: bool = False) -> Iterator[Target]:
        """Open the target for as long as the command runs.

        `buckets` stands in for S3: a folder, or `tavola.engine.Buckets`. With `new`, a missing database file is created.
        """
        check_not_combined(self.store)
        if self.account is not None and not _ACCOUNT.fullmatch(self.account):
            raise CommandError(f"--account {self.account} is not valid.", "Use the 12 digits of an account.")
        opening = self._open_endpoint() if self.store is None else self._open_store(self.store, buckets, new)
        with opening as (target, region, account):
            try:
                yield target
            except TavolaError as error:
                _note_where_searched(error, target, region, account)
                raise

    @contextmanager
    def _open_endpoint(self) -> Iterator[_Opened]:
        from tavola.connections import connect, likely_target

        endpoint, region = self.endpoint or DEFAULT_ENDPOINT, self.region
        if not endpoint.startswith(("http://", "https://", "aws:")):
            likely = likely_target(endpoint) or ""
            raise CommandError(
                f"{endpoint!r} is not an endpoint"
                + (f"; did you mean {likely}?" if likely.startswith("http") else "."),
                "Use http://HOST:PORT, https://HOST or aws:REGION, or a database file with --store.",
            )
        if endpoint.startswith("aws:"):  # it may name its region itself; the environment's is the default
            endpoint, region = f"aws:{endpoint.removeprefix('aws:') or region or ''}", None
        with connect(endpoint, region=region, account=self.account) as connection:
            target = Target(connection, None)
            try:
                yield target, getattr(connection.backend, "region", None), self.account
            except KeyError:  # a member is missing from a response, unless it is a bug
                check_is_dynamodb(target, endpoint)
                raise

    @contextmanager
    def _open_store(self, store: Path, buckets: Any, new: bool) -> Iterator[_Opened]:
        from tavola.backends.embedded import EmbeddedBackend
        from tavola.client.connection import Connection
        from tavola.engine import Engine
        from tavola.protocol.arns import DEFAULT_SCOPE, Scope

        if store.is_dir() or not (store.is_file() or new):
            raise missing_file(store, "--store")
        scope = Scope(self.account or DEFAULT_SCOPE.account, self.region or DEFAULT_SCOPE.region)
        engine = Engine.open(store, key=self.read_key(), buckets=buckets)
        with Connection(EmbeddedBackend(engine, scope), f"file:{store}") as connection:
            engine.run_background_work(0)  # long work waits for `follow`, which shows its progress
            yield Target(connection, engine), scope.region, scope.account
            while engine.run_background_work(_SLICE_MS):
                pass


@dataclass(frozen=True, slots=True)
class NewTargetOptions(TargetOptions):
    """The same options, of commands that create a missing database file."""

    key_file: Annotated[Path | None, option(KEY_FILE)] = None


def check_not_combined(store: Path | str | None) -> None:
    """Raise if the command line names both a database file and an endpoint; TAVOLA_ENDPOINT is only a default."""
    context = click.get_current_context(silent=True)
    if store is None or context is None:
        return
    if context.get_parameter_source("endpoint") is ParameterSource.COMMANDLINE:
        raise CommandError("--store and --endpoint cannot be combined.", "Use one of them.")


def check_is_dynamodb(target: Target, endpoint: str) -> None:
    """Raise if an endpoint accepts requests but its responses are not DynamoDB's."""
    from tavola.backends.errors import ResponseUnreadable

    if "TableNames" not in target.call("ListTables", Limit=1):
        raise ResponseUnreadable(endpoint, HTTPStatus.OK)


def missing_file(file: Path, option: str | None = None) -> CommandError:
    """Return the error for a path that is not a database file."""
    cause = f"{file} is a folder." if file.is_dir() else f"{file} does not exist."
    remedy = "Name a database file." if option is None else f"Name a database file with {option}."
    return CommandError(cause, remedy, ErrorKind.NOT_FOUND)


def _note_where_searched(error: TavolaError, target: Target, region: str | None, account: str | None) -> None:
    """Add to a "table not found" where it was searched, and which tables exist there."""
    from tavola.protocol.faults import ResourceNotFoundFault, TableNotFoundFault

    if isinstance(error, ResourceNotFoundFault | TableNotFoundFault):
        owner = "" if account is None else f" of account {account}"
        error.add_note(f"searched region {region}{owner}, which {_describe_tables(target)}")


def _describe_tables(target: Target) -> str:
    try:
        names = target.call("ListTables", Limit=_TABLES_NAMED + 1)["TableNames"]
    except TavolaError:
        return "does not allow its tables to be listed"
    if not names:
        return "has no tables"
    ending = " and more" if len(names) > _TABLES_NAMED else ""
    return f"has the tables {', '.join(names[:_TABLES_NAMED])}{ending}"


def parse_moment(text: str) -> int:
    """Return a time of the command line in microseconds: a date and time, or an age such as `10m`."""
    from tavola.clock import SYSTEM_CLOCK
    from tavola.protocol.faults import ValidationFault
    from tavola.protocol.instants import TIME_FORMS, parse_instant

    age = _AGE.fullmatch(text.strip())
    if age is not None:
        return int((SYSTEM_CLOCK.now() - int(age[1]) * _UNITS_S[age[2]]) * 1_000_000)
    try:
        return parse_instant(text)
    except ValidationFault as fault:
        raise CommandError(
            f"{text!r} is not a time.",
            f"Use an age (30s, 10m, 2h, 1d) or a time such as {TIME_FORMS}; without a zone it is UTC.",
        ) from fault


def parse_item_key(target: Target, table: str, options: list[str]) -> dict[str, Any]:
    """Return the key that `--key` options give, with the attribute types of the table."""
    if len(options) == 1 and options[0].lstrip().startswith("{"):
        return parse_attribute_values("--key", options[0])
    from tavola.protocol.faults import AccessDeniedFault

    try:
        described = target.call("DescribeTable", TableName=table)["Table"]
    except AccessDeniedFault as denied:
        denied.add_note('--key in DynamoDB JSON, such as {"pk": {"S": "a"}}, does not need DescribeTable')
        raise
    types = {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in described["AttributeDefinitions"]
    }
    names = [element["AttributeName"] for element in described["KeySchema"]]
    key: dict[str, Any] = {}
    for text in options:
        name, equals, value = text.partition("=")
        usage = " ".join(f"--key {each}=VALUE" for each in names)
        if not equals:
            raise CommandError(f"--key {text} has no value.", f"Use {usage}.")
        if name not in names:
            cause = f"{name} is not a key attribute of {table}; its key is {' and '.join(names)}."
            raise CommandError(cause, f"Use {usage}.")
        key[name] = {types[name]: value}
    missing = [name for name in names if name not in key]
    if missing:
        usage = " ".join(f"--key {name}=…" for name in missing)
        raise CommandError(f"The key of {table} is {' and '.join(names)}.", f"Add {usage}.")
    return key


def parse_json_object(option: str, text: str, example: str = '{"pk": {"S": "a"}}') -> dict[str, Any]:
    """Return the JSON object that an option holds; the remedy of an error shows the example."""
    remedy = f"Give a JSON object, such as {example}."
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise CommandError(f"{option} is not valid JSON ({where}: {error.msg}).", remedy) from error
    if not isinstance(value, Mapping):
        raise CommandError(f"{option} is {text}, which is not a JSON object.", remedy)
    return dict(value)


def parse_attribute_values(option: str, text: str, example: str = '{"pk": {"S": "a"}}') -> dict[str, Any]:
    """Return the attribute values that an option holds as DynamoDB JSON."""
    values = parse_json_object(option, text, example)
    for name, value in values.items():
        if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in _TYPES:
            raise CommandError(
                f"{name} in {option} is {json.dumps(value)}, which has no DynamoDB type.",
                f"Write each value with its type ({', '.join(_TYPES)}), as in {example}.",
            )
    return values


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """The options of commands that read or rewrite a whole table."""

    segments: Annotated[
        int, Option("--segments", min=1, max=64, help="Number of segments to scan in parallel.")
    ] = 1
    units_per_second: Annotated[
        float | None,
        Option(
            "--units-per-second", min=0.1, metavar="UNITS",
            help="Limit of write units per second, for the table and its indexes together.",
        ),
    ] = None  # fmt: skip
    checkpoint: Annotated[
        Path | None,
        Option(
            "--checkpoint", metavar="FILE", help="Save progress here, so that an interrupted run can resume."
        ),
    ] = None

    def check(self) -> None:
        """Raise if the checkpoint cannot be written."""
        if self.checkpoint is not None:
            check_writable(self.checkpoint, "--checkpoint")

    def as_arguments(self, show: Callable[[int], None]) -> dict[str, Any]:
        """Return the options as keyword arguments of the client's methods; `show` receives the items done."""
        return {
            "segments": self.segments, "units_per_second": self.units_per_second, "checkpoint": self.checkpoint,
            "progress": lambda progress: show(progress.done),
        }  # fmt: skip
