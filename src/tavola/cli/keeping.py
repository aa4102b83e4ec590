"""Keeping: where an application keeps its records, as `--store` names it, and what lies beside them."""

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

BESIDE = ".apps"  # what the folder beside a file is called after the file's name
HERE = Path(".tavola")

_AWS = (
    *(".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".api.aws"),
    *(".api.amazonwebservices.com.cn", ".api.amazonwebservices.eu"),
    *(".c2s.ic.gov", ".api.aws.ic.gov", ".sc2s.sgov.gov", ".api.aws.scloud"),
    *(".cloud.adc-e.uk", ".api.cloud-aws.adc-e.uk", ".csp.hci.ic.gov", ".api.aws.hci.ic.gov"),
)  # what the names of AWS's endpoints end in, in every partition
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SECRET_BYTES_LEAST = 16


class SecretUnusable(TavolaError):
    """A secret that cannot be read, or is none."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where records are kept."""

    target: Any  # a text for connect(), or an engine that this process has open
    told: str  # for a person
    state: Path | None  # None: gone with the process
    engine: Engine | None = None
    file: Path | None = None


@contextmanager
def kept(
    store: str, state: Path | None, *, key: str | None = None, sync: str = "full", live: bool = False
) -> Iterator[Keeping]:
    """Give the place that `--store` names; a file is open while the block runs, and AWS only if it is meant."""
    from tavola.connections import FORMS, ConnectionRefused
    from tavola.engine import Engine

    path = file_of(store)
    if path is not None:
        check_folder(path)
        with closing(Engine.open(path, key=key, sync=sync)) as engine:
            yield Keeping(engine, str(path.absolute()), state or beside(path), engine, path)
        return
    if store == "memory:":
        with closing(Engine.open()) as engine:
            yield Keeping(engine, "in memory, gone when this ends", state, engine)
        return
    if not store.startswith(("http://", "https://", "aws:")):
        raise ConnectionRefused(f"{store!r} is no target; give {FORMS}, or a file")
    check_live(store, live=live)
    yield Keeping(store, store, state or HERE / _plain(store))


def file_of(store: str) -> Path | None:
    """Return the file that a text names, as `desk.db` or `file:desk.db`; None: it names none."""
    if store.startswith("file:"):
        rest = store.removeprefix("file:")
        return Path(rest.removeprefix("//") if rest.startswith("///") else rest).expanduser()
    if _SCHEME.match(store) and not Path(store).exists():
        return None
    return Path(store).expanduser()


def beside(path: Path) -> Path:
    """Return the folder of what belongs to a file's records and is not in it."""
    return path.with_name(path.name + BESIDE)


def check_folder(path: Path) -> None:
    """Refuse a file whose folder is not there."""
    if not path.parent.is_dir():
        complain(
            f"Cannot keep anything in {path}.",
            f"The folder {path.parent} is not there.",
            "Make the folder, or name a file in another one.",
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND)


def make_folder(path: Path) -> None:
    """Make the folder of a file that nobody named; say so where that cannot be."""
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        complain(
            f"Cannot keep anything in {path}.",
            f"The folder {path.parent} cannot be made here: {error.strerror}.",
            "Go to a folder that may be written, or name a file in one.",
        )
        raise click.exceptions.Exit(Exit.FAILED) from error


def secret_in(path: Path | None) -> bytes | None:
    """Return the secret in a file; the end of its line is not part of it."""
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
    """Let nobody make tables on AWS who did not say so; tell whose account it is."""
    if not is_live(store):
        return
    whose = _whose(store)
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
    host = (urlsplit(store).hostname or "").rstrip(".")  # a name may end in the root's own dot
    return store.startswith("aws:") or host.endswith(_AWS)


def _whose(store: str) -> str:
    """Return in words whose account and region it is, from the name of a table there; nothing is written."""
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


def _plain(store: str) -> str:
    """Return a target as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", store).strip("-")
