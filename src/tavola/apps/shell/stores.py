"""Where an application stores its data: settings, and the connection, blobs and secret opened from them.

A file store keeps blobs, the secret and checkpoints in one folder beside its file. With an in-memory store they are gone with
the process.
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
from tavola.errors import ErrorKind
from tavola.folders import sync_folder
from tavola.patterns import BlobStore, FolderBlobs, S3Blobs

SECRET_BYTES = 32
SECRET_FILE = "secret"
STATE_SUFFIX = ".apps"  # of the state folder beside a file store

_log = logging.getLogger("tavola.apps")


class SettingsRefused(TavolaError):
    """An application cannot be started with this setting."""

    kind = ErrorKind.USAGE

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"{name}: {reason}")


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The settings of an application; the defaults start it in memory."""

    target: str | Engine = "memory:"  # a target of connect(), or a shared engine
    region: str | None = None
    table_prefix: str = ""
    table_names: Mapping[type[Table], str] = field(default_factory=dict)  # other names than in the model
    blobs: str | os.PathLike[str] | None = (
        None  # a folder or s3://bucket/prefix; default: in the state folder
    )
    # The folder of secret, checkpoints and blobs; default: beside a file store.
    state: str | os.PathLike[str] | None = None
    # Signs cursors and hashes callers; default: stored in the state folder. Not in the repr, which ends up in logs.
    secret: bytes | None = field(default=None, repr=False)
    base_path: str = ""  # the path of the application behind a proxy, such as "/desk"
    hosts: tuple[str, ...] = ()  # accepted host names besides this machine's
    clock: Clock = SYSTEM_CLOCK
    entropy: Entropy = SYSTEM_ENTROPY
    poll_s: float = 0.5  # interval between two reads of a stream

    def __post_init__(self) -> None:
        if not isinstance(self.target, str | Engine):
            raise SettingsRefused("target", "use a string such as memory: or file:desk.db, or an open Engine")
        if self.secret is not None and len(self.secret) < 16:
            raise SettingsRefused("secret", "it has fewer than 16 bytes; use 32 random bytes")
        if self.base_path and not (self.base_path.startswith("/") and not self.base_path.endswith("/")):
            raise SettingsRefused("base_path", 'it must begin with "/" and not end with "/", such as /desk')
        if self.poll_s <= 0:
            raise SettingsRefused("poll_s", "it must be more than 0 seconds")

    @property
    def state_folder(self) -> Path | None:
        """The folder that outlives the process; None for an in-memory store."""
        if self.state is not None:
            return Path(self.state).expanduser()
        if isinstance(self.target, str) and self.target.startswith("file:"):
            name = self.target.removeprefix("file:")
            path = Path(name.removeprefix("//") if name.startswith("///") else name).expanduser()
            return path.with_name(path.name + STATE_SUFFIX)
        return None

    @property
    def in_memory(self) -> bool:
        """Whether the data is gone with the process."""
        return self.target == "memory:"


@dataclass(frozen=True, slots=True)
class Secrets:
    """A root secret, and secrets derived from it for one purpose each; a derived secret reveals no other."""

    root: bytes

    def derive(self, purpose: str) -> bytes:
        """Return the secret for a purpose: 32 bytes, the same each time."""
        return hmac.new(self.root, b"tavola.apps/1:" + purpose.encode(), sha256).digest()

    def __repr__(self) -> str:
        return "Secrets(…)"  # reprs end up in logs


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """The open resources of a running application."""

    settings: AppSettings
    db: AsyncConnection
    blobs: FolderBlobs | S3Blobs
    secrets: Secrets
    folder: Path | None  # the state folder; None for an in-memory store

    @property
    def clock(self) -> Clock:
        """The clock of the settings."""
        return self.settings.clock

    @property
    def entropy(self) -> Entropy:
        """The source of randomness of the settings."""
        return self.settings.entropy

    def blobs_of(self, table: type[Table]) -> BlobStore:
        """Return a blob store for one table: a sweep deletes every blob that no item of the table references."""
        name = self.db.context.name_of(table)
        if isinstance(self.blobs, S3Blobs):
            return S3Blobs(self.blobs.client, self.blobs.bucket, f"{self.blobs.prefix}{name}/")
        return FolderBlobs(self.blobs.folder / name)

    def checkpoint(self, name: str) -> Path | None:
        """Return the checkpoint file of a follower that cannot store it in the table; None without a state folder."""
        if self.folder is None:
            return None
        return self.folder / "checkpoints" / f"{self.settings.table_prefix}{name}.json"


@asynccontextmanager
async def opened_store(settings: AppSettings, *tables: type[Table]) -> AsyncIterator[OpenedStore]:
    """Open the store of the settings, create missing tables, and close everything at the end."""
    async with AsyncExitStack() as stack:
        folder = settings.state_folder
        secrets = Secrets(root_secret(settings))
        db = _connect(settings, secrets)
        stack.push_async_callback(db.close)
        blobs = _open_blobs(settings, folder, stack)
        await ensure_tables(db, *tables)
        yield OpenedStore(settings, db, blobs, secrets, folder)


async def ensure_tables(db: AsyncConnection, *tables: type[Table]) -> None:
    """Create missing tables; without the permission to create them, use the existing ones.

    Raises the denial for a table that is missing. A table that may not even be described is assumed to exist.
    """
    for table in tables:
        try:
            await db.create_tables(table)
        except AccessDeniedFault as denied:
            name = db.context.name_of(table)
            try:
                await db.call("DescribeTable", {"TableName": name})
            except ResourceNotFoundFault:
                denied.add_note(
                    f"The table {name} is missing; create it with credentials that allow CreateTable"
                )
                raise denied from None
            except AccessDeniedFault:
                _log.warning(
                    "No permission to create or describe the table %s; assuming that it exists", name
                )


def _connect(settings: AppSettings, secrets: Secrets) -> AsyncConnection:
    options: dict[str, Any] = {
        "cursor_secret": secrets.derive("cursor"),
        "table_prefix": settings.table_prefix,
        "table_names": settings.table_names,
    }
    if settings.clock is not SYSTEM_CLOCK:
        options["clock"] = settings.clock
    if settings.entropy is not SYSTEM_ENTROPY:
        options["entropy"] = settings.entropy
    target: Any = settings.target
    region = settings.region
    return connect_async(target, region=region, **options)


def root_secret(settings: AppSettings) -> bytes:
    """Return the secret of the settings or of the state folder; a new one for an in-memory store."""
    if settings.secret is not None:
        return settings.secret
    folder = settings.state_folder
    if folder is not None:
        return stored_secret(folder, settings.entropy, create_parents=settings.state is not None)
    if settings.in_memory or isinstance(settings.target, Engine):
        return settings.entropy.bytes(SECRET_BYTES)
    raise SettingsRefused(
        "secret",
        f"{settings.target} has no state folder to store one in, and cursors and hashed callers must stay valid after a restart; "
        "set a state folder (--state FOLDER) or a secret",
    )


def stored_secret(folder: Path, entropy: Entropy, *, create_parents: bool = True) -> bytes:
    """Return the secret stored in a folder, in a file that only its owner may read; create it if it is missing.

    The file is written atomically: if two processes create it at once, both use the first one's secret.
    """
    path = folder / SECRET_FILE
    try:
        folder.mkdir(parents=create_parents, exist_ok=True)
        try:
            text = path.read_text("ascii").strip()
            if not text:  # a crash left an empty file, which was never used
                path.unlink()
        except FileNotFoundError:
            text = ""
        if not text:
            _create_file(path, entropy.bytes(SECRET_BYTES).hex() + "\n")
            text = path.read_text("ascii").strip()
        secret = bytes.fromhex(text)
    except (OSError, ValueError) as error:
        raise SettingsRefused("state", f"the secret in {path} cannot be read or created ({error})") from error
    if len(secret) < SECRET_BYTES:
        raise SettingsRefused(
            "state",
            f"the secret in {path} is truncated; restore it from a backup. Without it, existing cursors are invalid, callers of the "
            "service desk are no longer found by their phone numbers, and audit trails cannot be verified",
        )
    return secret


def _create_file(path: Path, text: str) -> None:
    """Write a file atomically and durably, unless it already exists."""
    # Only its owner may read it
    handle, temporary = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not path.exists():
                os.replace(temporary, path)
        with suppress(PermissionError):  # Windows cannot open folders, and does not need to
            sync_folder(path.parent)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _open_blobs(settings: AppSettings, folder: Path | None, stack: AsyncExitStack) -> FolderBlobs | S3Blobs:
    target = settings.blobs
    if isinstance(target, str) and target.startswith("s3://"):
        return _open_bucket(target, settings)
    if target is not None:
        return _open_folder(Path(target).expanduser(), "blobs")
    if folder is not None:
        return _open_folder(folder / "blobs", "state")
    return FolderBlobs(stack.enter_context(tempfile.TemporaryDirectory(prefix="tavola-blobs-")))


def _open_folder(path: Path, setting: str) -> FolderBlobs:
    """Return the blob store in a folder; check at once that it is writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
    except OSError as error:
        raise SettingsRefused(
            setting, f"blobs cannot be stored in {path} ({error.strerror or error})"
        ) from error
    return FolderBlobs(path)


def _open_bucket(url: str, settings: AppSettings) -> S3Blobs:
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    if not bucket:
        raise SettingsRefused("blobs", f"{url} has no bucket name; use s3://bucket/prefix")
    try:
        import boto3  # noqa: PLC0415 - needed only for blobs in S3
    except ModuleNotFoundError as error:
        raise SettingsRefused("blobs", f"{url} needs boto3: pip install boto3") from error
    return S3Blobs(boto3.client("s3", region_name=settings.region), bucket, prefix or "blobs/")
