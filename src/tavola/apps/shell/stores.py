"""Stores: where an application keeps its records, and what lies beside them.

`Settings` is what a person chooses. `opened_store` makes of it a connection, a place for blobs, the secrets and a folder
for checkpoints. Beside a file store all of it lies in one folder; in memory it is gone with the process.
"""

from __future__ import annotations

import hmac
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tavola import (
    AccessDeniedFault,
    AsyncConnection,
    Clock,
    Engine,
    Entropy,
    ResourceNotFoundFault,
    Table,
    TavolaError,
    connect_async,
)
from tavola.clock import SYSTEM_CLOCK
from tavola.entropy import SYSTEM_ENTROPY
from tavola.folders import sync_folder
from tavola.patterns import BlobStore, FolderBlobs, S3Blobs

SECRET_BYTES = 32
SECRET_FILE = "secret"
BESIDE = ".apps"  # what the folder beside a file store is called after the file's name

_log = logging.getLogger("tavola.apps")


class SettingsRefused(TavolaError):
    """A setting that an application cannot be started with."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"{name}: {reason}")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an application is started with; every one has a default that works for a trial in memory."""

    target: str | Engine = "memory:"  # a target of connect(), or an engine that others use too
    region: str | None = None
    table_prefix: str = ""
    table_names: Mapping[type[Table], str] = field(
        default_factory=dict
    )  # those called otherwise than in the model
    blobs: str | os.PathLike[str] | None = None  # a folder or s3://bucket/prefix; None: in the state folder
    state: str | os.PathLike[str] | None = (
        None  # the folder of secret, checkpoints, blobs; None: beside a file store
    )
    # What cursors are signed and callers hidden with; None: kept in the state folder. Reprs end in logs.
    secret: bytes | None = field(default=None, repr=False)
    base_path: str = ""  # under which a proxy has the application: "/desk"
    hosts: tuple[str, ...] = ()  # names that it answers to beside this machine's
    clock: Clock = SYSTEM_CLOCK
    entropy: Entropy = SYSTEM_ENTROPY
    poll_s: float = 0.5  # how often a follower looks for changes

    def __post_init__(self) -> None:
        if not isinstance(self.target, str | Engine):
            raise SettingsRefused("target", "it is a text such as memory: or file:desk.db, or an open Engine")
        if self.secret is not None and len(self.secret) < 16:
            raise SettingsRefused("secret", "it has fewer than 16 bytes; give 32 of chance")
        if self.base_path and not (self.base_path.startswith("/") and not self.base_path.endswith("/")):
            raise SettingsRefused("base_path", 'it begins with a "/" and ends without one, such as /desk')
        if self.poll_s <= 0:
            raise SettingsRefused("poll_s", "it is how many seconds pass between two looks; give more than 0")

    @property
    def place(self) -> Path | None:
        """The folder that outlives the process, None where there is none."""
        if self.state is not None:
            return Path(self.state).expanduser()
        if isinstance(self.target, str) and self.target.startswith("file:"):
            told = self.target.removeprefix("file:")
            path = Path(told.removeprefix("//") if told.startswith("///") else told).expanduser()
            return path.with_name(path.name + BESIDE)
        return None

    @property
    def fleeting(self) -> bool:
        """Whether the records are gone with the process."""
        return self.target == "memory:"


@dataclass(frozen=True, slots=True)
class Secrets:
    """One secret, and others made of it, each for one purpose; who has one of these has none of the others."""

    root: bytes

    def derive(self, purpose: str) -> bytes:
        """Return the secret for a purpose: 32 bytes, the same each time."""
        return hmac.new(self.root, b"tavola.apps/1:" + purpose.encode(), sha256).digest()

    def __repr__(self) -> str:
        return "Secrets(…)"  # reprs end in logs


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """What an application works with while it runs."""

    settings: Settings
    db: AsyncConnection
    blobs: FolderBlobs | S3Blobs
    secrets: Secrets
    folder: Path | None  # of what outlives the process; None: nothing does

    @property
    def clock(self) -> Clock:
        """The clock of the settings."""
        return self.settings.clock

    @property
    def entropy(self) -> Entropy:
        """The chance of the settings."""
        return self.settings.entropy

    def blobs_of(self, table: type[Table]) -> BlobStore:
        """Return the place of a table's blobs alone: a sweep takes what no item of its table points to, so others' must not be there."""
        name = self.db.context.name_of(table)
        if isinstance(self.blobs, S3Blobs):
            return S3Blobs(self.blobs.client, self.blobs.bucket, f"{self.blobs.prefix}{name}/")
        return FolderBlobs(self.blobs.folder / name)

    def checkpoint(self, name: str) -> Path | None:
        """Return the file for how far a follower has read, where the store cannot keep that; None: there is no folder for it."""
        if self.folder is None:
            return None
        return self.folder / "checkpoints" / f"{self.settings.table_prefix}{name}.json"


@asynccontextmanager
async def opened_store(settings: Settings, *tables: type[Table]) -> AsyncIterator[OpenedStore]:
    """Open what the settings name, make the tables that are missing, and close it all in the end."""
    async with AsyncExitStack() as stack:
        folder = settings.place
        secrets = Secrets(secret_of(settings))
        db = _connected(settings, secrets)
        stack.push_async_callback(db.close)
        blobs = _blobs(settings, folder, stack)
        await ready_tables(db, *tables)
        yield OpenedStore(settings, db, blobs, secrets, folder)


async def ready_tables(db: AsyncConnection, *tables: type[Table]) -> None:
    """Make the tables that are missing; where that is somebody else's right, take those that are there as they are.

    A table that is missing and may not be made is the denial. One that may not even be looked at is taken to be there.
    """
    for table in tables:
        try:
            await db.create_tables(table)
        except AccessDeniedFault as denied:
            name = db.context.name_of(table)
            try:
                await db.call("DescribeTable", {"TableName": name})
            except ResourceNotFoundFault:
                denied.add_note(f"The table {name} is missing, and must be made by somebody who may")
                raise denied from None
            except AccessDeniedFault:
                _log.warning("Not allowed to make or look at the table %s; it is taken as it is", name)


def _connected(settings: Settings, secrets: Secrets) -> AsyncConnection:
    told: dict[str, Any] = {
        "cursor_secret": secrets.derive("cursor"),
        "table_prefix": settings.table_prefix,
        "table_names": settings.table_names,
    }
    if settings.clock is not SYSTEM_CLOCK:
        told["clock"] = settings.clock
    if settings.entropy is not SYSTEM_ENTROPY:
        told["entropy"] = settings.entropy
    target: Any = settings.target
    region = settings.region
    return connect_async(target, region=region, **told)


def secret_of(settings: Settings) -> bytes:
    """Return the secret: the one given, the one kept in the state folder, or for a trial in memory a new one."""
    if settings.secret is not None:
        return settings.secret
    folder = settings.place
    if folder is not None:
        return kept_secret(folder, settings.entropy, above=settings.state is not None)
    if settings.fleeting or isinstance(settings.target, Engine):
        return settings.entropy.bytes(SECRET_BYTES)
    raise SettingsRefused(
        "secret",
        f"{settings.target} has no folder beside it to keep one in, and cursors and hidden callers must hold in the next process "
        "too; give a state folder (--state FOLDER) or a secret",
    )


def kept_secret(folder: Path, entropy: Entropy, *, above: bool = True) -> bytes:
    """Return the secret in a folder's file, which only its owner may read; make it where there is none.

    The folders above are made too, unless it lies beside a store: that one would be refused for its missing folder. The file is there
    whole or not at all, and of two who make it at once, both have the first one's.
    """
    path = folder / SECRET_FILE
    try:
        folder.mkdir(parents=above, exist_ok=True)
        try:
            text = path.read_text("ascii").strip()
            if not text:  # cut off before it was used for anything
                path.unlink()
        except FileNotFoundError:
            text = ""
        if not text:
            _place(path, entropy.bytes(SECRET_BYTES).hex() + "\n")
            text = path.read_text("ascii").strip()
        found = bytes.fromhex(text)
    except (OSError, ValueError) as error:
        raise SettingsRefused("state", f"the secret in {path} cannot be read or made ({error})") from error
    if len(found) < SECRET_BYTES:
        raise SettingsRefused(
            "state",
            f"the secret in {path} is cut; restore it, or remove it and lose the cursors given so far, the hidden callers of the "
            "service desk, who are not found by their numbers any more, and the seals of audit trails",
        )
    return found


def _place(path: Path, text: str) -> None:
    """Put a file in its place, whole and on the disk; one that is there already stays."""
    handle, beside = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)  # only its owner may read it
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                os.replace(beside, path)
        with suppress(
            PermissionError
        ):  # where folders cannot be opened, as on Windows, there is no such need
            sync_folder(path.parent)
    finally:
        Path(beside).unlink(missing_ok=True)


def _blobs(settings: Settings, folder: Path | None, stack: AsyncExitStack) -> FolderBlobs | S3Blobs:
    told = settings.blobs
    if isinstance(told, str) and told.startswith("s3://"):
        return _bucket(told, settings)
    if told is not None:
        return _folder(Path(told).expanduser(), "blobs")
    if folder is not None:
        return _folder(folder / "blobs", "state")
    return FolderBlobs(stack.enter_context(tempfile.TemporaryDirectory(prefix="tavola-blobs-")))


def _folder(path: Path, setting: str) -> FolderBlobs:
    """Return the blobs of a folder; one that cannot be written is refused now, and not when the first blob is lost."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
    except OSError as error:
        raise SettingsRefused(
            setting, f"blobs cannot be kept in {path} ({error.strerror or error})"
        ) from error
    return FolderBlobs(path)


def _bucket(told: str, settings: Settings) -> S3Blobs:
    bucket, _, prefix = told.removeprefix("s3://").partition("/")
    if not bucket:
        raise SettingsRefused("blobs", f"{told} names no bucket; give s3://bucket/prefix")
    try:
        import boto3  # noqa: PLC0415 - who keeps blobs in S3 has it; nobody else needs it
    except ModuleNotFoundError as error:
        raise SettingsRefused("blobs", f"{told} needs boto3: pip install boto3") from error
    return S3Blobs(boto3.client("s3", region_name=settings.region), bucket, prefix or "blobs/")
