"""Choices: the options that say what an application works on, and the settings that they come to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from tavola.cli.app_storage import AppStorage, open_app_store, read_secret
from tavola.cli.applications import shell
from tavola.cli.keys import Key, KeyCommand, KeyFile, read_store_key
from tavola.cli.parameters import Option
from tavola.cli.settings import (
    ALLOW_HOST,
    APPS_PORT,
    BLOBS,
    CALLER_HEADER,
    ENVIRONMENT,
    HOST,
    KEEP_EVENTS,
    KEEP_TICKETS,
    SECRET_FILE,
    STATE,
    TABLE_PREFIX,
    option,
)
from tavola.cli.targets import Region

AppStoreOption: TypeAlias = Annotated[
    str,
    Option(
        "--store",
        metavar="FILE|memory:|http://HOST:PORT|aws:REGION",
        help="Where the records are: a file, this process alone, an endpoint, or AWS.",
    ),
]
Port: TypeAlias = Annotated[
    int, Option("--port", envvar=APPS_PORT.variable, help=APPS_PORT.sentence, min=0, max=65535)
]
Host: TypeAlias = Annotated[str, option(HOST)]
AllowHost: TypeAlias = Annotated[str, option(ALLOW_HOST)]
Environment: TypeAlias = Annotated[str, option(ENVIRONMENT)]
CallerHeader: TypeAlias = Annotated[str | None, option(CALLER_HEADER)]
KeepTickets: TypeAlias = Annotated[int, option(KEEP_TICKETS)]
KeepEvents: TypeAlias = Annotated[int, option(KEEP_EVENTS)]


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """The options of an application that say where its records, blobs and secrets are, beside --store."""

    blobs: Annotated[str | None, option(BLOBS)] = None
    state: Annotated[Path | None, option(STATE)] = None
    region: Region = None
    table_prefix: Annotated[str, option(TABLE_PREFIX)] = ""
    secret_file: Annotated[Path | None, option(SECRET_FILE)] = None
    live: Annotated[
        bool, Option("--live", help="Work on AWS itself, where tables are made and requests are paid for.")
    ] = False
    key_file: KeyFile = None
    key_command: KeyCommand = None
    key: Key = None

    @contextmanager
    def open(self, store: str) -> Iterator[AppStorage]:
        """Open the store that --store names; a file stays open while the block runs."""
        if store.startswith("aws:"):  # it may name its region itself; the environment's is the default
            store = f"aws:{store.removeprefix('aws:') or self.region or ''}"
        key = read_store_key(self.key_file, self.key_command, self.key)
        with open_app_store(store, self.state, key=key, live=self.live) as keeping:
            yield keeping

    def settings(self, store: str, keeping: AppStorage, hosts: str = "") -> Any:
        """Return the settings of an application on an open store."""
        return shell().Settings(
            target=keeping.target,
            region=None if store.startswith("aws:") else self.region,
            table_prefix=self.table_prefix,
            blobs=self.blobs,
            state=keeping.state,
            secret=read_secret(self.secret_file),
            hosts=tuple(name.strip() for name in hosts.split(",") if name.strip()),
        )
