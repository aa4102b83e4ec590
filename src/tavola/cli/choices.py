"""Choices: the options that say what an application works on, and the settings that they come to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from tavola.cli.applications import shell
from tavola.cli.keeping import Keeping, secret_in
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

AppStore: TypeAlias = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="FILE|memory:|http://HOST:PORT|aws:REGION",
        help="Where the records are: a file, this process alone, an endpoint, or AWS.",
    ),
]
Port: TypeAlias = Annotated[
    int, typer.Option("--port", envvar=APPS_PORT.variable, help=APPS_PORT.sentence, min=0, max=65535)
]
Host: TypeAlias = Annotated[str, option(HOST)]
AllowHost: TypeAlias = Annotated[str, option(ALLOW_HOST)]
BlobPlace: TypeAlias = Annotated[str | None, option(BLOBS)]
StateFolder: TypeAlias = Annotated[Path | None, option(STATE)]
SecretFile: TypeAlias = Annotated[Path | None, option(SECRET_FILE)]
Prefix: TypeAlias = Annotated[str, option(TABLE_PREFIX)]
Environment: TypeAlias = Annotated[str, option(ENVIRONMENT)]
CallerHeader: TypeAlias = Annotated[str | None, option(CALLER_HEADER)]
KeepTickets: TypeAlias = Annotated[int, option(KEEP_TICKETS)]
KeepEvents: TypeAlias = Annotated[int, option(KEEP_EVENTS)]
AllowLive: TypeAlias = Annotated[
    bool, typer.Option("--live", help="Work on AWS itself, where tables are made and requests are paid for.")
]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the options of an application say."""

    store: str
    state: Path | None = None
    blobs: str | None = None
    region: str | None = None
    prefix: str = ""
    secret_file: Path | None = None
    hosts: str = ""

    @property
    def place(self) -> str:
        """The target; one on AWS names its region itself, and that of the environment stands in."""
        if self.store.startswith("aws:"):
            return f"aws:{self.store.removeprefix('aws:') or self.region or ''}"
        return self.store

    def settings(self, keeping: Keeping) -> Any:
        """Return it as the applications take it."""
        return shell().Settings(
            target=keeping.target,
            region=None if self.store.startswith("aws:") else self.region,
            table_prefix=self.prefix,
            blobs=self.blobs,
            state=keeping.state,
            secret=secret_in(self.secret_file),
            hosts=tuple(name.strip() for name in self.hosts.split(",") if name.strip()),
        )
