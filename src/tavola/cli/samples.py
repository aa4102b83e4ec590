"""Samples: a month of generated records in a new file, which is there whole or not at all.

Everything is written beside its place and moved there when it is complete and on the disk. What an interrupted start leaves
is known by its name, and goes at the next.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tavola.cli.app_storage import state_folder_beside
from tavola.cli.applications import (
    APPLICATIONS,
    SERVICE_DESK,
    SUPPORT_DESK,
    TERRAFORM_REVIEW,
    create,
    module_of,
    shell,
)
from tavola.cli.output import stages
from tavola.cli.sample_generation import Job, generate, review_store, support_store
from tavola.clock import SYSTEM_CLOCK
from tavola.errors import TavolaError
from tavola.folders import sync_folder
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope

if TYPE_CHECKING:
    from tavola.engine import Engine

MARK = "demo.json"  # in the folder beside: whose the file is, and what it was made of
SCHEMA = "tavola.demo/1"
SERVICE_DESK_TICKETS_MAX = 320

_MAKING = ".new"
_GOING = ".old"  # while the new one takes its place
_LOGS = ("-wal", "-shm", "-journal")
_OURS = frozenset({"secret", "checkpoints", "blobs", MARK})


class NotADemoFile(TavolaError):
    """A file that no demo made, and that is therefore not replaced."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much is generated, and from which seed."""

    tickets: int = 20_000
    reviews: int = 2_000
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of a demo's file."""

    region: str
    tickets: int
    reviews: int
    seed: int
    made_at: str


def mark_of(file: Path) -> Mark | None:
    """Return what a demo noted of its file; None: no demo made it."""
    try:
        found = json.loads((state_folder_beside(file) / MARK).read_text("utf-8"))
        return Mark(**{name: found[name] for name in Mark.__slots__}) if found["schema"] == SCHEMA else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make(file: Path, region: str, amounts: Amounts | None) -> None:
    """Make a demo's file with generated records, or without any; nothing of it is seen before it is complete.

    One that a demo made and that is there already is replaced then, with what is beside it.
    """
    from tavola.engine import Engine

    new, old = _halves(file)
    _check_replaceable(file)
    _clear(old)
    _clear(new)
    now = datetime.fromtimestamp(SYSTEM_CLOCK.now(), UTC)
    amounts_made = amounts or Amounts(0, 0, 0)
    mark = Mark(region, amounts_made.tickets, amounts_made.reviews, amounts_made.seed, now.isoformat())
    try:
        with closing(Engine.open(new, sync="off")) as engine:
            state_folder_beside(new).mkdir()
            settings = shell().Settings(target=engine, region=region, state=state_folder_beside(new))
            asyncio.run(_prepare(settings))
            if amounts is not None:
                _fill(settings, amounts, now)
        (state_folder_beside(new) / MARK).write_text(
            json.dumps({"schema": SCHEMA, **asdict(mark)}) + "\n", "utf-8"
        )
        _sync(new)
    except BaseException:  # also who does not want to wait: nothing is left
        _discard(new)
        raise
    if file.exists():
        file.rename(old)
        state_folder_beside(file).rename(state_folder_beside(old))
    state_folder_beside(new).rename(state_folder_beside(file))
    new.rename(file)  # from here on it is there
    sync_folder(file.parent)
    _discard(old)


async def _prepare(settings: Any) -> None:
    """Make all tables, the secret, and what the applications store themselves when they start."""
    for application in APPLICATIONS:
        face = create(application, settings)
        async with face.router.lifespan_context(face):
            for follower in shell().shell_of(face).followers:
                await follower.catch_up(fail_fast=True)


def _fill(settings: Any, amounts: Amounts, now: datetime) -> None:
    state = Path(settings.state)
    engine, scope = settings.target, Scope(DEFAULT_SCOPE.account, settings.region)
    jobs = [
        Job(application, what, count, amounts.seed, now, state)
        for application, what, count in (
            (SUPPORT_DESK, "Tickets of the support desk", amounts.tickets),
            (TERRAFORM_REVIEW, "Terraform reviews", amounts.reviews),
            (SERVICE_DESK, "Tickets of the service desk", min(SERVICE_DESK_TICKETS_MAX, amounts.tickets)),
        )
    ]
    with stages() as show:
        streaming = _stop_streams(engine, scope)
        generate(jobs, engine, scope, show)
        _start_streams(engine, scope, streaming)
        asyncio.run(_begin_following(settings))
        asyncio.run(_prepare(settings))


async def _begin_following(settings: Any) -> None:
    """Note that everything is counted up to here, so that no follower begins by counting it again."""
    async with shell().opened_store(settings) as opened:
        for application, table, store in (
            (SUPPORT_DESK, "Tickets", support_store(opened)),
            (TERRAFORM_REVIEW, "Reviews", review_store(opened)),
        ):
            followed = getattr(module_of(application, "model"), table)
            await shell().Follower(store.projector, followed, opened.db).skip_to_end()


def _stop_streams(engine: Engine, scope: Any) -> dict[str, Any]:
    """Turn streams off while data is generated: no consumer needs these records, and they would be kept for a day."""
    streaming = {}
    for name in engine.call("ListTables", {}, scope)["TableNames"]:
        stream = engine.call("DescribeTable", {"TableName": name}, scope)["Table"].get("StreamSpecification")
        if stream is not None and stream["StreamEnabled"]:
            streaming[name] = stream
            disabled = {"TableName": name, "StreamSpecification": {"StreamEnabled": False}}
            engine.call("UpdateTable", disabled, scope)
    return streaming


def _start_streams(engine: Engine, scope: Any, streaming: dict[str, Any]) -> None:
    for name, stream in streaming.items():
        engine.call("UpdateTable", {"TableName": name, "StreamSpecification": stream}, scope)


def _check_replaceable(file: Path) -> None:
    """Refuse what no demo made, what is in use, and a folder whose file is not there.

    That one has the secret and the blobs of records that somebody may have elsewhere; unless an earlier start ended between moving a file and its folder.
    """
    from tavola.engine import Engine

    folder = state_folder_beside(file)
    ours = mark_of(file) is not None
    if file.exists():
        if not ours:
            raise NotADemoFile(
                f"{file} is there and no demo made it, so it is not replaced; name another file"
            )
        _check_ours(folder)
        Engine.open(file).close()  # it is not open elsewhere
    elif ours and any(each.exists() and not state_folder_beside(each).exists() for each in _halves(file)):
        _remove_beside(folder)
    elif folder.exists():
        raise NotADemoFile(
            f"{file} is not there and {folder} is, with the secret and the blobs of what was in it; put the file back, or move "
            "the folder away"
        )


def _halves(file: Path) -> tuple[Path, Path]:
    return _with_suffix(file, _MAKING), _with_suffix(file, _GOING)


def _with_suffix(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)


def _clear(new: Path) -> None:
    """Remove what an earlier start left half done; refuse if it is still at work."""
    from tavola.engine import Engine, StoreError, StoreInUse

    if new.exists():
        try:
            Engine.open(new).close()
        except StoreInUse:
            raise
        except StoreError:
            pass  # half a file
    _discard(new)


def _discard(new: Path) -> None:
    for path in _files(new):
        path.unlink(missing_ok=True)
    _remove_beside(state_folder_beside(new))


def _remove_beside(folder: Path) -> None:
    """Remove the folder beside a file, if it is one of ours."""
    _check_ours(folder)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _check_ours(folder: Path) -> None:
    found = set(os.listdir(folder)) if folder.is_dir() else set()
    strange = sorted(
        name for name in found - _OURS if not name.startswith("secret.")
    )  # one that was being made
    if strange:
        raise NotADemoFile(
            f"{folder} holds {strange[0]}, which no demo made, so it is not replaced; move it away"
        )


def _files(file: Path) -> Iterator[Path]:
    yield file
    for end in _LOGS:
        yield _with_suffix(file, end)


def _sync(new: Path) -> None:
    for path in (new, state_folder_beside(new) / MARK):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    sync_folder(state_folder_beside(new))
