"""Generating: records made in processes of their own, and stored by this one.

To make an item takes as long as to store it, and there are two cores. What a child would ask of DynamoDB it sends here: a write
is answered at once, for who generates into a new file has nothing to be told; anything else waits for its answer.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection as Line
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tavola.cli.applications import (
    SERVICE_DESK,
    SUPPORT_DESK,
    TERRAFORM_REVIEW,
    Application,
    module_of,
    shell,
)
from tavola.client.backend import encode_request
from tavola.entropy import SeededEntropy
from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.protocol.faults import InternalServerFault

if TYPE_CHECKING:
    from tavola.engine import Engine

_WRITES: dict[str, dict[str, Any]] = {
    "BatchWriteItem": {"UnprocessedItems": {}},
    "TransactWriteItems": {},
    "PutItem": {},
}
_WRITE, _ASK, _PROGRESS, _DONE, _FAILED = b"w", b"?", b"p", b"d", b"!"
_TOGETHER = 64  # writes in a commit
WORTH_IT = 2_000  # records; a process takes a second to begin
_ENDS_S = 5.0
_COLLECTS = (
    50_000,
    20,
    100,
)  # rarely: what is generated is let go by itself, and looking for more takes a fifth of the time

Show = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What one child generates: how many records of which application, from a seed, for the month before a moment."""

    application: Application
    what: str
    count: int
    seed: int
    now: datetime
    state: Path


class GeneratingFailed(TavolaError):
    """Records that could not be made."""


def generate(jobs: Sequence[Job], engine: Engine, scope: Any, show: Show) -> None:
    """Generate and store; where it is worth it, in processes of their own, all of them at once."""
    if sum(job.count for job in jobs) < WORTH_IT:
        asyncio.run(_generate_here(jobs, engine, scope, show))
    else:
        _generate_there(jobs, engine, scope, show)


async def _generate_here(jobs: Sequence[Job], engine: Engine, scope: Any, show: Show) -> None:
    for job in jobs:
        settings = shell().Settings(target=engine, region=scope.region, state=job.state)
        async with shell().opened_store(settings) as opened:
            await _load(opened, job, functools.partial(_show, show, job.what))


def _show(show: Show, what: str, progress: Any) -> None:
    show(what, progress.done, progress.total)


def _generate_there(jobs: Sequence[Job], engine: Engine, scope: Any, show: Show) -> None:
    lines: dict[Any, Job] = {}
    with _children(jobs, lines):
        gathered = 0
        engine.collect_writes()
        try:
            while lines:
                for line in wait(list(lines)):
                    job = lines[line]
                    try:
                        frame = line.recv_bytes()  # type: ignore[union-attr]  # these are lines
                    except EOFError as error:
                        raise GeneratingFailed(
                            f"{job.what} were not made: the process that made them ended"
                        ) from error
                    if _took(frame, line, job, engine, scope, show):
                        del lines[line]
                    gathered += 1
                    if gathered % _TOGETHER == 0:
                        engine.commit()
                        engine.collect_writes()
        finally:
            engine.commit()


def _took(frame: bytes, line: Any, job: Job, engine: Engine, scope: Any, show: Show) -> bool:
    """Do what a child asks for; return whether it was its last word."""
    kind, rest = frame[:1], frame[1:]
    if kind in (_WRITE, _ASK):
        operation, _, body = rest.partition(b"\n")
        answer = engine.execute(operation.decode(), body, scope)
        if kind == _ASK:
            line.send_bytes(answer)
    elif kind == _PROGRESS:
        done, total = msgspec.json.decode(rest)
        show(job.what, done, total)
    elif kind == _FAILED:
        raise GeneratingFailed(f"{job.what} were not made: {rest.decode()}")
    return kind == _DONE


@contextmanager
def _children(jobs: Sequence[Job], lines: dict[Any, Job]) -> Iterator[None]:
    """Start a process for each job; none is left when the block ends."""
    context = get_context("spawn")
    children = []
    try:
        for job in jobs:
            ours, theirs = context.Pipe()
            child = context.Process(target=_child, args=(theirs, job), daemon=True)
            with _deaf():
                child.start()
            theirs.close()
            children.append((child, ours))
            lines[ours] = job
        yield
    finally:
        for child, line in children:
            line.close()
            child.join(_ENDS_S if not lines else 0)
            if child.is_alive():
                child.terminate()
                child.join()


@contextmanager
def _deaf() -> Iterator[None]:
    """Let Ctrl-C wait until the block ends; a process that is started in it never hears one.

    A terminal sends it to all of its processes, and who started them decides.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would end the block's deafness, if it had to be started in it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# What runs in a child.


def _child(line: Line, job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where the mask is not inherited
    gc.set_threshold(*_COLLECTS)
    try:
        asyncio.run(_work(line, job))
        line.send_bytes(_DONE)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the parent has gone
    except Exception as error:  # noqa: BLE001 - reported by the parent process
        with suppress(OSError):
            line.send_bytes(_FAILED + f"{type(error).__name__}: {error}".encode())


async def _work(line: Line, job: Job) -> None:
    settings = shell().Settings(target="memory:", state=job.state)

    def tell(progress: Any) -> None:
        line.send_bytes(_PROGRESS + msgspec.json.encode((progress.done, progress.total)))

    async with shell().opened_store(settings) as opened:
        db = AsyncConnection(_Sending(line), "the file that is being made", opened.db.context)
        await _load(replace(opened, db=db), job, tell)


class _Sending:
    """A backend in another process."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a call; wait for its answer unless it only writes."""
        body = operation.encode() + b"\n" + encode_request(operation, request)
        if operation in _WRITES:
            self._line.send_bytes(_WRITE + body)
            return dict(_WRITES[operation])
        self._line.send_bytes(_ASK + body)
        try:
            answer: dict[str, Any] = msgspec.json.decode(self._line.recv_bytes())
        except EOFError as error:
            raise InternalServerFault("nobody answers any more") from error
        return answer

    async def close(self) -> None:
        """Nothing is held."""


def support_store(opened: Any) -> Any:
    """Return the tickets of the support desk in an opened store."""
    return module_of(SUPPORT_DESK, "web").support_store(opened)


def review_store(opened: Any) -> Any:
    """Return the Terraform reviews in an opened store."""
    return module_of(TERRAFORM_REVIEW, "web").review_store(opened)


async def _load_support(opened: Any, job: Job, options: dict[str, Any]) -> None:
    await module_of(SUPPORT_DESK, "seed").load(support_store(opened), tickets=job.count, **options)


async def _load_service(opened: Any, job: Job, options: dict[str, Any]) -> None:
    store = module_of(SERVICE_DESK, "web").desk_store(opened)
    await module_of(SERVICE_DESK, "seed").load(store, tickets=job.count, **options)


async def _load_reviews(opened: Any, job: Job, options: dict[str, Any]) -> None:
    await module_of(TERRAFORM_REVIEW, "seed").load(review_store(opened), reviews=job.count, **options)


_LOADS: dict[str, Callable[[Any, Job, dict[str, Any]], Awaitable[None]]] = {
    SUPPORT_DESK.name: _load_support,
    SERVICE_DESK.name: _load_service,
    TERRAFORM_REVIEW.name: _load_reviews,
}


async def _load(opened: Any, job: Job, tell: Callable[[Any], None]) -> None:
    options = {"entropy": SeededEntropy(job.seed), "now": job.now, "progress": tell}
    await _LOADS[job.application.name](opened, job, options)
