"""Samples: create the demo's file with a month of generated data, completely or not at all.

The data is written to a temporary file in the same folder, synced, and then renamed. The next
start deletes the leftovers of an interrupted one, which it recognises by their suffix.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tavola.cli.applications import (
    APPLICATIONS,
    SERVICE_DESK,
    SUPPORT_DESK,
    TERRAFORM_REVIEW,
    create,
    state_folder_beside,
)
from tavola.cli.output import stages
from tavola.cli.sample_generation import GenerationJob, generate
from tavola.clock import SYSTEM_CLOCK
from tavola.errors import ErrorKind, TavolaError
from tavola.folders import sync_folder
from tavola.protocol.arns import DEFAULT_SCOPE, Scope

if TYPE_CHECKING:
    from tavola.apps.shell import AppSettings
    from tavola.engine import Engine

MARKER = "demo.json"  # in the state folder: marks the file as created by a demo
SCHEMA = "tavola.demo/1"
SERVICE_DESK_TICKETS_MAX = 320

_NEW_SUFFIX = ".new"  # being created
_OLD_SUFFIX = ".old"  # being replaced
_SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
_STATE_FILES = frozenset({"secret", "checkpoints", "blobs", MARKER})


class NotADemoFile(TavolaError):
    """A file that no demo created, and that is therefore not replaced."""

    kind = ErrorKind.CONFLICT


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How much to generate, and from which seed."""

    tickets: int = 20_000
    reviews: int = 2_000
    seed: int = 7


@dataclass(frozen=True, slots=True)
class DemoMarker:
    """The settings that a demo's file was created with."""

    region: str
    tickets: int
    reviews: int
    seed: int
    made_at: str


def read_marker(file: Path) -> DemoMarker | None:
    """Return how a file was created; None if no demo created it."""
    try:
        document = json.loads((state_folder_beside(file) / MARKER).read_text("utf-8"))
        if document["schema"] != SCHEMA:
            return None
        return DemoMarker(**{name: document[name] for name in DemoMarker.__slots__})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def create_file(file: Path, region: str, size: SampleSize | None) -> None:
    """Create a demo's file with generated data, or empty if `size` is None; replace an earlier demo's file."""
    from tavola.apps.shell import AppSettings
    from tavola.engine import Engine

    new, old = _temporary_files(file)
    _check_replaceable(file)
    _delete_leftovers(old)
    _delete_leftovers(new)
    now = datetime.fromtimestamp(SYSTEM_CLOCK.now(), UTC)
    generated = size or SampleSize(0, 0, 0)
    marker = DemoMarker(region, generated.tickets, generated.reviews, generated.seed, now.isoformat())
    try:
        with closing(Engine.open(new, sync="off")) as engine:
            state_folder_beside(new).mkdir()
            settings = AppSettings(target=engine, region=region, state=state_folder_beside(new))
            asyncio.run(_start_apps(settings))
            if size is not None:
                _generate(settings, engine, size, now)
        (state_folder_beside(new) / MARKER).write_text(
            json.dumps({"schema": SCHEMA, **asdict(marker)}) + "\n", "utf-8"
        )
        _sync(new)
    except BaseException:  # also an interrupt: nothing is left behind
        _delete(new)
        raise
    if file.exists():
        file.rename(old)
        state_folder_beside(file).rename(state_folder_beside(old))
    state_folder_beside(new).rename(state_folder_beside(file))
    new.rename(file)  # from here on the file exists
    sync_folder(file.parent)
    _delete(old)


async def _start_apps(settings: AppSettings) -> None:
    """Start every application once, which creates its tables, its secret and its own records."""
    from tavola.apps.shell import shell_of

    for application in APPLICATIONS:
        asgi_app = create(application, settings)
        async with asgi_app.router.lifespan_context(asgi_app):
            for follower in shell_of(asgi_app).followers:
                await follower.catch_up(fail_fast=True)


def _generate(settings: AppSettings, engine: Engine, size: SampleSize, now: datetime) -> None:
    assert settings.region is not None
    scope = Scope(DEFAULT_SCOPE.account, settings.region)
    jobs = [
        GenerationJob(application, label, count, size.seed, now, state_folder_of(settings))
        for application, label, count in (
            (SUPPORT_DESK, "Support desk tickets", size.tickets),
            (TERRAFORM_REVIEW, "Terraform reviews", size.reviews),
            (SERVICE_DESK, "Service desk tickets", min(SERVICE_DESK_TICKETS_MAX, size.tickets)),
        )
    ]
    with stages() as show:
        streams = _stop_streams(engine, scope)
        generate(jobs, engine, scope, show)
        _start_streams(engine, scope, streams)
        asyncio.run(_skip_streams(settings))
        asyncio.run(_start_apps(settings))


def state_folder_of(settings: AppSettings) -> Path:
    """Return the state folder of settings that have one."""
    assert settings.state is not None
    return Path(settings.state)


async def _skip_streams(settings: AppSettings) -> None:
    """Move the stream followers to the end: the generator has counted everything up to here."""
    from tavola.apps.shell import Follower, opened_store
    from tavola.apps.support_desk.model import Tickets
    from tavola.apps.support_desk.web import support_store
    from tavola.apps.terraform_review.model import Reviews
    from tavola.apps.terraform_review.web import review_store

    async with opened_store(settings) as opened:
        await Follower(support_store(opened).projector, Tickets, opened.db).skip_to_end()
        await Follower(review_store(opened).projector, Reviews, opened.db).skip_to_end()


def _stop_streams(engine: Engine, scope: Scope) -> dict[str, Any]:
    """Turn streams off while data is generated: no consumer needs these records, and they would be kept for a day."""
    streams = {}
    for name in engine.call("ListTables", {}, scope)["TableNames"]:
        stream = engine.call("DescribeTable", {"TableName": name}, scope)["Table"].get("StreamSpecification")
        if stream is not None and stream["StreamEnabled"]:
            streams[name] = stream
            disabled = {"TableName": name, "StreamSpecification": {"StreamEnabled": False}}
            engine.call("UpdateTable", disabled, scope)
    return streams


def _start_streams(engine: Engine, scope: Scope, streams: dict[str, Any]) -> None:
    for name, stream in streams.items():
        engine.call("UpdateTable", {"TableName": name, "StreamSpecification": stream}, scope)


def _check_replaceable(file: Path) -> None:
    """Raise if a file was not created by a demo or is in use, or if its state folder exists without it.

    Such a folder may hold the secret and the blobs of a file that was moved. The exception is a start that was interrupted
    between renaming the file and its folder: the folder it left is deleted.
    """
    from tavola.engine import Engine

    folder = state_folder_beside(file)
    is_demo = read_marker(file) is not None
    if file.exists():
        if not is_demo:
            raise NotADemoFile(f"{file} exists and was not created by a demo; name another file")
        _check_state_folder(folder)
        Engine.open(file).close()  # raises if another process has it open
    elif is_demo and any(
        temporary.exists() and not state_folder_beside(temporary).exists()
        for temporary in _temporary_files(file)
    ):
        _delete_state_folder(folder)
    elif folder.exists():
        raise NotADemoFile(
            f"{file} does not exist, but {folder} does, with the secret and blobs of the missing file; put the file back, or "
            "move the folder away"
        )


def _temporary_files(file: Path) -> tuple[Path, Path]:
    return _with_suffix(file, _NEW_SUFFIX), _with_suffix(file, _OLD_SUFFIX)


def _with_suffix(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)


def _delete_leftovers(file: Path) -> None:
    """Delete the leftovers of an interrupted start; raise if that start is still running."""
    from tavola.engine import Engine, StoreError, StoreInUse

    if file.exists():
        try:
            Engine.open(file).close()
        except StoreInUse:
            raise
        except StoreError:
            pass  # incomplete
    _delete(file)


def _delete(file: Path) -> None:
    for path in (file, *(_with_suffix(file, suffix) for suffix in _SQLITE_SUFFIXES)):
        path.unlink(missing_ok=True)
    _delete_state_folder(state_folder_beside(file))


def _delete_state_folder(folder: Path) -> None:
    _check_state_folder(folder)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _check_state_folder(folder: Path) -> None:
    """Raise if a folder holds files that a demo does not create."""
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    # secret.* is a secret that was being written
    foreign = sorted(name for name in names - _STATE_FILES if not name.startswith("secret."))
    if foreign:
        raise NotADemoFile(f"{folder} contains {foreign[0]}, which no demo creates; move it away")


def _sync(file: Path) -> None:
    for path in (file, state_folder_beside(file) / MARKER):
        with open(path, "rb") as opened:
            os.fsync(opened.fileno())
    sync_folder(state_folder_beside(file))
