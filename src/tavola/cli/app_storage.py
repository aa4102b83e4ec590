"""App storage: the store that `--store` names for an application, and the folder of secrets, checkpoints and blobs beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from tavola.cli.exits import Exit
from tavola.cli.output import complain, note
from tavola.errors import TavolaError

if TYPE_CHECKING:
    from tavola.engine import Engine

STATE_SUFFIX = ".apps"  # appended to a file's name
DEFAULT_STATE_FOLDER = Path(".tavola")

_AWS = (
    *(".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws"),
    *(".api.amazonwebservices.com.cn", ".api.amazonwebservices.eu"),
    *(".c2s.ic.gov", ".api.aws.ic.gov", ".sc2s.sgov.gov", ".api.aws.scloud"),
    *(".cloud.adc-e.uk", ".api.cloud-aws.adc-e.uk", ".csp.hci.ic.gov", ".api.aws.hci.ic.gov"),
)  # host suffixes of AWS endpoints, in every partition
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SECRET_BYTES_LEAST = 16


class SecretUnusable(TavolaError):
    """A secret file that cannot be read, or is too short."""


@dataclass(frozen=True, slots=True)
class AppStorage:
    """An open store: what to connect to, and the folder of the application's state."""

    target: Any  # a target for connect(), or an engine that is open in this process
    description: str  # as shown to the user
    state: Path | None  # None: nothing outlives the process
    engine: Engine | None = None
    file: Path | None = None


@contextmanager
def open_app_store(
    store: str, state: Path | None, *, key: str | None = None, sync: str = "full", live: bool = False
) -> Iterator[AppStorage]:
    """Open the store that `--store` names, for as long as the block runs; AWS only with `live`."""
    from tavola.connections import FORMS, ConnectionRefused
    from tavola.engine import Engine

    path = file_of(store)
    if path is not None:
        check_folder(path)
        with closing(Engine.open(path, key=key, sync=sync)) as engine:
            yield AppStorage(engine, str(path.absolute()), state or state_folder_beside(path), engine, path)
        return
    if store == "memory:":
        with closing(Engine.open()) as engine:
            yield AppStorage(engine, "in memory, gone when this ends", state, engine)
        return
    if not store.startswith(("http://", "https://", "aws:")):
        raise ConnectionRefused(f"{store!r} is no target; give {FORMS}, or a file")
    check_live(store, live=live)
    yield AppStorage(store, store, state or DEFAULT_STATE_FOLDER / _folder_name(store))


def file_of(store: str) -> Path | None:
    """Return the file that a store name means, `desk.db` or `file:desk.db`; None if it is not a file."""
    if store.startswith("file:"):
        rest = store.removeprefix("file:")
        return Path(rest.removeprefix("//") if rest.startswith("///") else rest).expanduser()
    if _SCHEME.match(store) and not Path(store).exists():
        return None
    return Path(store).expanduser()


def state_folder_beside(path: Path) -> Path:
    """Return the folder beside a store's file that holds the application's state."""
    return path.with_name(path.name + STATE_SUFFIX)


def check_folder(path: Path) -> None:
    """Exit with an error if the folder of a file does not exist."""
    if not path.parent.is_dir():
        complain(
            f"Cannot keep anything in {path}.",
            f"The folder {path.parent} is not there.",
            "Make the folder, or name a file in another one.",
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND)


def make_folder(path: Path) -> None:
    """Create the folder of the default file, or report why that is not possible."""
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        complain(
            f"Cannot keep anything in {path}.",
            f"The folder {path.parent} cannot be made here: {error.strerror}.",
            "Go to a folder that may be written, or name a file in one.",
        )
        raise click.exceptions.Exit(Exit.FAILED) from error


def read_secret(path: Path | None) -> bytes | None:
    """Return the secret in a file, without the line end."""
    if path is None:
        return None
    try:
        found = path.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise SecretUnusable(f"The secret in {path} cannot be read: {error.strerror}") from error
    if len(found) < _SECRET_BYTES_LEAST:
        raise SecretUnusable(
            f"The secret in {path} has fewer than {_SECRET_BYTES_LEAST} bytes; give 32 of chance"
        )
    return found


def check_live(store: str, *, live: bool) -> None:
    """Refuse to work on AWS without `--live`; with it, print a warning that names the account."""
    if not is_live(store):
        return
    whose = _describe_account(store)
    if not live:
        complain(
            f"Not started on {store}.",
            f"That is AWS itself, {whose}: tables would be made there, and requests paid for.",
            "Add --live if that is what you want; a file or memory: costs nothing.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    note(f"Warning: this works on AWS, {whose}; its tables are made there and are not removed.")


def is_live(store: str) -> bool:
    """Return whether a target is AWS, also by the address of one of its endpoints."""
    host = (urlsplit(store).hostname or "").rstrip(".")  # a host name may end in a dot
    return store.startswith("aws:") or host.endswith(_AWS)


def _describe_account(store: str) -> str:
    """Describe the account and region behind a target, from the ARN of one of its tables."""
    from tavola.connections import connect
    from tavola.protocol.faults import Fault

    with connect(store) as connection:
        region = getattr(connection.backend, "region", None)
        where = "" if region is None else f" in {region}"
        try:
            names = connection.call("ListTables", {"Limit": 1})["TableNames"]
            if not names:
                return f"an account without tables{where}"
            arn = connection.call("DescribeTable", {"TableName": names[0]})["Table"]["TableArn"]
            return f"account {arn.split(':')[4]}{where}"
        except (Fault, IndexError):
            return f"an account that does not let its tables be listed{where}"


def _folder_name(store: str) -> str:
    """Return a folder name derived from a target."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", store).strip("-")
