"""Sample generation: records generated in child processes and stored by this one.

Generating an item takes about as long as storing it, so with two cores each application's data is generated in a child. A child
sends its requests through a pipe. Writes are acknowledged at once, since a new file rejects none of them; any other request waits
for its response:

    child (support desk) ──write──┐
    child (reviews)      ──write──┤  parent: engine.execute, commit every 64 messages
    child (service desk) ──read───┘  ◄── the response goes back only for reads
"""

from __future__ import annotations

import asyncio
import functools
import gc
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tavola.cli.applications import (
    SERVICE_DESK,
    SUPPORT_DESK,
    TERRAFORM_REVIEW,
    Application,
)
from tavola.client.backend import encode_request
from tavola.client.connection import AsyncConnection
from tavola.entropy import SeededEntropy
from tavola.errors import ErrorKind, TavolaError
from tavola.protocol.faults import InternalServerFault

if TYPE_CHECKING:
    from tavola import Progress
    from tavola.apps.shell import OpenedStore
    from tavola.engine import Engine
    from tavola.protocol.arns import Scope

_WRITES: dict[str, dict[str, Any]] = {
    "BatchWriteItem": {"UnprocessedItems": {}},
    "TransactWriteItems": {},
    "PutItem": {},
}
_WRITE, _READ, _PROGRESS, _DONE, _FAILED = b"w", b"?", b"p", b"d", b"!"  # the first byte of a message
_COMMIT_MESSAGES = 64
CHILDREN_LEAST = 2_000  # records from which child processes pay; one takes a second to start
_JOIN_S = 5.0
# Collect garbage rarely: generated objects have no cycles, and the collector would take a fifth of the time.
_GC_THRESHOLDS = (50_000, 20, 100)

Show = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """The records to generate for one application, for the month before `now`."""

    application: Application
    label: str
    count: int
    seed: int
    now: datetime
    state: Path


class GenerationError(TavolaError):
    """Sample data that could not be generated."""

    code = "generation-failed"
    kind = ErrorKind.INTERNAL


def generate(jobs: Sequence[GenerationJob], engine: Engine, scope: Scope, show: Show) -> None:
    """Generate and store records, in child processes if there are many."""
    if sum(job.count for job in jobs) < CHILDREN_LEAST:
        asyncio.run(_generate_here(jobs, engine, scope, show))
    else:
        _generate_in_children(jobs, engine, scope, show)


async def _generate_here(jobs: Sequence[GenerationJob], engine: Engine, scope: Scope, show: Show) -> None:
    from tavola.apps.shell import AppSettings, opened_store

    for job in jobs:
        settings = AppSettings(target=engine, region=scope.region, state=job.state)
        async with opened_store(settings) as opened:
            await _load(opened, job, functools.partial(_show_progress, show, job.label))


def _show_progress(show: Show, label: str, progress: Progress) -> None:
    show(label, progress.done, progress.total)


def _generate_in_children(jobs: Sequence[GenerationJob], engine: Engine, scope: Scope, show: Show) -> None:
    pipes: dict[Any, GenerationJob] = {}
    with _children(jobs, pipes):
        messages = 0
        engine.collect_writes()
        try:
            while pipes:
                for pipe in wait(list(pipes)):
                    job = pipes[pipe]
                    try:
                        message = pipe.recv_bytes()  # type: ignore[union-attr]  # all are pipes
                    except EOFError as error:
                        raise GenerationError(f"{job.label}: the generating process ended early") from error
                    if _handle_message(message, pipe, job, engine, scope, show):
                        del pipes[pipe]
                    messages += 1
                    if messages % _COMMIT_MESSAGES == 0:
                        engine.commit()
                        engine.collect_writes()
        except BaseException:
            # An interrupt in the middle of a write has rolled the group back; its error must not replace the interrupt.
            with suppress(TavolaError):
                engine.commit()
            raise
        engine.commit()


def _handle_message(
    message: bytes, pipe: Any, job: GenerationJob, engine: Engine, scope: Scope, show: Show
) -> bool:
    """Handle a child's message; return whether it was the last."""
    kind, content = message[:1], message[1:]
    if kind in (_WRITE, _READ):
        operation, _, body = content.partition(b"\n")
        response = engine.execute(operation.decode(), body, scope)
        if kind == _READ:
            pipe.send_bytes(response)
    elif kind == _PROGRESS:
        done, total = msgspec.json.decode(content)
        show(job.label, done, total)
    elif kind == _FAILED:
        raise GenerationError(f"{job.label}: {content.decode()}")
    return kind == _DONE


@contextmanager
def _children(jobs: Sequence[GenerationJob], pipes: dict[Any, GenerationJob]) -> Iterator[None]:
    """Start a process for each job; none is left when the block ends."""
    context = get_context("spawn")
    children = []
    try:
        for job in jobs:
            ours, theirs = context.Pipe()
            child = context.Process(target=_run_child, args=(theirs, job), daemon=True)
            with _blocking_interrupts():
                child.start()
            theirs.close()
            children.append((child, ours))
            pipes[ours] = job
        yield
    finally:
        for child, pipe in children:
            pipe.close()
            child.join(_JOIN_S if not pipes else 0)
            if child.is_alive():
                child.terminate()
                child.join()


@contextmanager
def _blocking_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the block ends; a process started in it never receives one.

    A terminal sends the signal to all of its processes, and the parent decides what happens to the children.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it inside the block would reset the signal mask
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


# The code below runs in a child.


def _run_child(pipe: Pipe, job: GenerationJob) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where the mask is not inherited
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        asyncio.run(_generate_in_child(pipe, job))
        pipe.send_bytes(_DONE)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the parent has ended
    except Exception as error:  # noqa: BLE001 - reported by the parent process
        with suppress(OSError):
            pipe.send_bytes(_FAILED + f"{type(error).__name__}: {error}".encode())


async def _generate_in_child(pipe: Pipe, job: GenerationJob) -> None:
    from tavola.apps.shell import AppSettings, opened_store

    def report(progress: Progress) -> None:
        pipe.send_bytes(_PROGRESS + msgspec.json.encode((progress.done, progress.total)))

    async with opened_store(AppSettings(target="memory:", state=job.state)) as opened:
        db = AsyncConnection(_PipeBackend(pipe), "the file that is being created", opened.db.context)
        await _load(replace(opened, db=db), job, report)


class _PipeBackend:
    """A backend that sends requests to the parent process."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request; wait for the response unless it only writes."""
        body = operation.encode() + b"\n" + encode_request(operation, request)
        if operation in _WRITES:
            self._pipe.send_bytes(_WRITE + body)
            return dict(_WRITES[operation])
        self._pipe.send_bytes(_READ + body)
        try:
            response: dict[str, Any] = msgspec.json.decode(self._pipe.recv_bytes())
        except EOFError as error:
            raise InternalServerFault("the parent process has ended") from error
        return response

    async def close(self) -> None:
        """Nothing to close."""


async def _load(opened: OpenedStore, job: GenerationJob, report: Callable[[Progress], None]) -> None:
    """Generate the records of a job into a store."""
    entropy, now = SeededEntropy(job.seed), job.now
    if job.application.name == SUPPORT_DESK.name:
        from tavola.apps.support_desk import seed as support_seed
        from tavola.apps.support_desk.web import support_store

        tickets = support_store(opened)
        await support_seed.load(tickets, tickets=job.count, entropy=entropy, now=now, progress=report)
    elif job.application.name == SERVICE_DESK.name:
        from tavola.apps.service_desk import seed as service_seed
        from tavola.apps.service_desk.web import desk_store

        desk = desk_store(opened)
        await service_seed.load(desk, tickets=job.count, entropy=entropy, now=now, progress=report)
    elif job.application.name == TERRAFORM_REVIEW.name:
        from tavola.apps.terraform_review import seed as review_seed
        from tavola.apps.terraform_review.web import review_store

        store = review_store(opened)
        await review_seed.load(store, reviews=job.count, entropy=entropy, now=now, progress=report)
    else:
        raise ValueError(f"no sample data for {job.application.name}")
