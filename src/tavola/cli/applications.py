"""The applications, the options for where they store their records, and opening that store.

The web stack of the applications is the `apps` extra, so everything here imports it when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias
from urllib.parse import urlsplit

from tavola.cli.errors import CommandError, renaming_option, reporting_errors
from tavola.cli.files import check_parent_exists
from tavola.cli.keys import StoreKeyOptions
from tavola.cli.output import warn
from tavola.cli.parameters import Option
from tavola.cli.settings import (
    ALLOW_HOST,
    APPS_PORT,
    BLOBS,
    ENVIRONMENT,
    HOST,
    SECRET_FILE,
    STATE,
    TABLE_PREFIX,
    option,
    split_names,
)
from tavola.cli.targets import RegionOption
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tavola.apps.shell import AppSettings
    from tavola.engine import Engine

HostOption: TypeAlias = Annotated[str, option(HOST)]
AllowHostOption: TypeAlias = Annotated[str, option(ALLOW_HOST)]
EnvironmentOption: TypeAlias = Annotated[str, option(ENVIRONMENT)]

STATE_SUFFIX = ".apps"  # appended to a file's name
DEFAULT_STATE_FOLDER = Path(".tavola")
MEMORY = "memory:"

# Host suffixes of AWS endpoints, in every partition
_AWS_SUFFIXES = (
    *(".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws"),
    *(".api.amazonwebservices.com.cn", ".api.amazonwebservices.eu"),
    *(".c2s.ic.gov", ".api.aws.ic.gov", ".sc2s.sgov.gov", ".api.aws.scloud"),
    *(".cloud.adc-e.uk", ".api.cloud-aws.adc-e.uk", ".csp.hci.ic.gov", ".api.aws.hci.ic.gov"),
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SECRET_BYTES_MIN = 16


@dataclass(frozen=True, slots=True)
class Application:
    """One application: its name on the command line and in the demo's URLs, its title and a summary."""

    name: str
    title: str
    summary: str

    @property
    def package(self) -> str:
        """The package of its code."""
        return f"tavola.apps.{self.name.replace('-', '_')}"


SUPPORT_DESK = Application(
    "support-desk",
    "Support desk",
    "Tickets with timeline, feedback and escalations, an agent's queue, and a dashboard that never scans.",
)
SERVICE_DESK = Application(
    "service-desk",
    "Service desk",
    "Four operations for helpline callers: open, show and comment on a ticket, and list a caller's tickets.",
)
TERRAFORM_REVIEW = Application(
    "terraform-review",
    "Terraform review",
    "Immutable versions of infrastructure code reviews: risk over time, recurring issues and an audit trail.",
)
GALLERY = Application(
    "gallery",
    "Gallery",
    "Small designs, one for each pattern, with sample data and the cost of every query.",
)
APPLICATIONS = (SUPPORT_DESK, SERVICE_DESK, TERRAFORM_REVIEW, GALLERY)


def create(application: Application, settings: AppSettings) -> FastAPI:
    """Return an application as an ASGI app; it opens nothing until it is started."""
    if application is SUPPORT_DESK:
        from tavola.apps.support_desk import web as support_desk

        return support_desk.create(settings)
    if application is SERVICE_DESK:
        from tavola.apps.service_desk import web as service_desk

        return service_desk.create(settings)
    if application is TERRAFORM_REVIEW:
        from tavola.apps.terraform_review import web as terraform_review

        return terraform_review.create(settings)
    from tavola.apps.gallery import web as gallery

    return gallery.create(settings)


def designs_of(applications: Iterable[Application]) -> tuple[str, ...]:
    """Return the modules that declare the tables of applications; the gallery has one for each sample."""
    modules: list[str] = []
    for application in applications:
        if application is GALLERY:
            from tavola.apps.gallery.samples import SAMPLES

            modules += [table.__module__ for sample in SAMPLES.values() for table in sample.tables]
        else:
            modules.append(f"{application.package}.model")
    return tuple(dict.fromkeys(modules))


@contextmanager
def reporting_app_errors(what: str) -> Iterator[None]:
    """Report errors in the terms of an application's options."""
    with reporting_errors(what, extra="apps"), renaming_option("--endpoint", "--store"):
        yield


@dataclass(frozen=True, slots=True)
class StorageOptions(StoreKeyOptions):
    """The options of an application that say where its records, blobs and secrets are."""

    store: Annotated[
        str,
        Option(
            "--store",
            metavar="LOCATION",
            help="Where the records are: a file, memory:, http://HOST:PORT or aws:REGION.",
        ),
    ] = MEMORY
    blobs: Annotated[str | None, option(BLOBS)] = None
    state: Annotated[Path | None, option(STATE)] = None
    region: RegionOption = None
    table_prefix: Annotated[str, option(TABLE_PREFIX)] = ""
    secret_file: Annotated[Path | None, option(SECRET_FILE)] = None
    live: Annotated[
        bool, Option("--live", help="Allow AWS as the location; tables are created and requests are billed.")
    ] = False

    @contextmanager
    def open(self) -> Iterator[AppStorage]:
        """Open the store for as long as the block runs."""
        location = self.store
        if location.startswith("aws:"):  # it may name its region itself; the environment's is the default
            location = f"aws:{location.removeprefix('aws:') or self.region or ''}"
        with open_app_store(location, self.state, key=self.read_key(), live=self.live) as storage:
            yield storage

    def settings(self, storage: AppStorage, hosts: str = "") -> AppSettings:
        """Return the settings of an application on an open store."""
        from tavola.apps.shell import AppSettings

        return AppSettings(
            target=storage.target,
            region=None if self.store.startswith("aws:") else self.region,
            table_prefix=self.table_prefix,
            blobs=self.blobs,
            state=storage.state,
            secret=read_secret(self.secret_file),
            hosts=split_names(hosts),
        )


@dataclass(frozen=True, slots=True)
class AppServerOptions(StorageOptions):
    """The options of a command that serves an application."""

    host: HostOption = "127.0.0.1"
    port: Annotated[int, option(APPS_PORT, "--port")] = int(APPS_PORT.default)
    allow_host: AllowHostOption = ""
    as_json: Annotated[bool, Option("--json", help="Print the address as JSON.")] = False


@dataclass(frozen=True, slots=True)
class AppStorage:
    """An open store: what to connect to, and the folder of the application's state."""

    target: str | Engine  # a target for connect(), or an engine that is open in this process
    description: str  # as shown to the user
    state: Path | None  # None: nothing outlives the process
    engine: Engine | None = None
    file: Path | None = None


@contextmanager
def open_app_store(
    location: str, state: Path | None, *, key: str | None = None, live: bool = False
) -> Iterator[AppStorage]:
    """Open the store at a location, for as long as the block runs; AWS only with `live`."""
    from tavola.connections import FORMS
    from tavola.engine import Engine, StoreInUse

    path = file_of(location)
    if path is not None:
        check_parent_exists(path)
        try:
            engine = Engine.open(path, key=key)
        except StoreInUse as error:
            # An application needs its state folder too, so the endpoint alone is not enough.
            error.remedy = (
                "Stop the other process, or work through its endpoint with the folder beside the file: "
                "--store http://localhost:8000 --state FILE.apps"
            )
            raise
        with closing(engine):
            yield AppStorage(engine, str(path.absolute()), state or state_folder_beside(path), engine, path)
        return
    if location == MEMORY:
        with closing(Engine.open()) as engine:
            yield AppStorage(engine, "in memory, lost when the process ends", state, engine)
        return
    if not location.startswith(("http://", "https://", "aws:")):
        raise CommandError(f"{location!r} is not a location.", f"Use {FORMS}, or a file.")
    check_live(location, live=live)
    yield AppStorage(location, location, state or DEFAULT_STATE_FOLDER / _folder_name(location))


def file_of(location: str) -> Path | None:
    """Return the file that a location means, `desk.db` or `file:desk.db`; None if it is not a file."""
    if location.startswith("file:"):
        rest = location.removeprefix("file:")
        return Path(rest.removeprefix("//") if rest.startswith("///") else rest).expanduser()
    if _SCHEME.match(location) and not Path(location).exists():
        return None
    return Path(location).expanduser()


def state_folder_beside(path: Path) -> Path:
    """Return the folder beside a database file that holds the application's state."""
    return path.with_name(path.name + STATE_SUFFIX)


def read_secret(path: Path | None) -> bytes | None:
    """Return the secret in a file, without the line end."""
    if path is None:
        return None
    try:
        secret = path.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        cause = f"The secret file {path} cannot be read: {error.strerror}."
        raise CommandError(cause, "Name a readable file with --secret-file.", ErrorKind.NOT_FOUND) from error
    if len(secret) < _SECRET_BYTES_MIN:
        raise CommandError(
            f"The secret in {path} has fewer than {_SECRET_BYTES_MIN} bytes.", "Use 32 random bytes."
        )
    return secret


def check_live(location: str, *, live: bool) -> None:
    """Refuse to work on AWS without `--live`; with it, print a warning that names the account."""
    if not is_live(location):
        return
    account = _describe_account(location)
    if not live:
        raise CommandError(
            f"{location} is AWS ({account}): tables would be created there and requests billed.",
            "Add --live to allow it; a file or memory: costs nothing.",
        )
    warn(f"this works on AWS, {account}; its tables are created there and not removed.")


def is_live(location: str) -> bool:
    """Return whether a location is AWS, also by the address of one of its endpoints."""
    host = (urlsplit(location).hostname or "").rstrip(".")  # a host name may end in a dot
    return location.startswith("aws:") or host.endswith(_AWS_SUFFIXES)


def _describe_account(location: str) -> str:
    """Describe the account and region behind a location, from the ARN of one of its tables."""
    from tavola.connections import connect
    from tavola.protocol.faults import Fault

    with connect(location) as connection:
        region = getattr(connection.backend, "region", None)
        where = "" if region is None else f" in {region}"
        try:
            names = connection.call("ListTables", {"Limit": 1})["TableNames"]
            if not names:
                return f"an account without tables{where}"
            arn = connection.call("DescribeTable", {"TableName": names[0]})["Table"]["TableArn"]
            return f"account {arn.split(':')[4]}{where}"
        except (Fault, IndexError):
            return f"an account that does not allow its tables to be listed{where}"


def warn_if_public(host: str) -> None:
    """Warn if other machines can reach an application, which does not authenticate callers."""
    from tavola.host_names import is_loopback

    if not is_loopback(host):
        warn(
            f"other machines can reach {host}, and anyone who connects can read and change all data. Put an authenticating "
            "proxy in front of it."
        )


def _folder_name(location: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", location).strip("-")
