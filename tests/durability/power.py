"""Power cuts: a history is recorded once, then cut at random moments and opened from what is left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tavola.engine import Engine, StoreError, isolation, writes
from tavola.engine.storage import SqliteTableStore, Store, files, open_file, store, wal_binding
from tests.durability.disk import Disk, Event, Plan
from tests.durability.history import (
    History,
    Step,
    Unavailable,
    open_store,
    perform,
    random_history,
)
from tests.durability.images import image, write_image
from tests.durability.recovery import faults_after

NAME = "store.db"


@contextmanager
def checkpoint_every(pages: int) -> Iterator[None]:
    """Fold the log into the file much sooner than a store does by itself."""
    before = open_file._CHECKPOINT_PAGES
    open_file._CHECKPOINT_PAGES = pages
    try:
        yield
    finally:
        open_file._CHECKPOINT_PAGES = before


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder in memory where there is one, and remove it."""
    shm = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="tavola-", dir=shm if shm.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def record(
    disk: Disk,
    history: History,
    *,
    sync: str = "full",
    reopen_at: int | None = None,
    perform_: Perform | None = None,
    plan: Plan | None = None,
) -> tuple[list[Event], list[int]]:
    """Do a history on a file; return what was done to the disk, and how long that log was at each answer.

    With a plan a call of the disk fails on the way; the rest is then not done, and the store closed.
    """
    with scratch() as folder:
        events = disk.record()
        disk.arm(plan)
        answers: list[int] = []
        try:
            engine = open_store(folder / NAME, sync)
            try:
                for place, step in enumerate(history.steps):
                    if place == reopen_at:
                        engine.close()
                        engine = open_store(folder / NAME, sync)
                    if perform_ is None:
                        perform(engine, step)
                        answers.append(len(events))
                    else:
                        perform_(engine, step, lambda: answers.append(len(events)))
            finally:
                engine.close()
        except (Unavailable, StoreError):
            assert disk.failed, "a sound disk, and yet a step failed"
        disk.arm(None)
        disk.events = None
    return events, answers


def cut(history: History, events: list[Event], answers: list[int], random: Random) -> list[str]:
    """Cut the power once, at random; return what is wrong with what comes back."""
    # Every seventh time while the store is being made, which is short and happens once.
    point = random.randint(0, len(events) if random.random() < 6 / 7 else min(30, len(events)))
    acknowledged = sum(answer <= point for answer in answers)
    with scratch() as folder:
        write_image(image(events, point, random), folder)
        found = faults_after(folder / NAME, history, acknowledged)
    return [f"cut at {point} of {len(events)}: {fault}" for fault in found]


def trial_run(disk: Disk, seed: int, images: int, plant: str | None = None) -> Iterator[list[str]]:
    """Record one random history and cut it this many times; give what was wrong each time."""
    random = Random(seed)
    history = random_history(random, random.randint(5, 40))
    reopen_at = random.randint(1, len(history.steps))
    with checkpoint_every(random.choice([8, 40, 4096])), planted(plant) as perform_:
        sync = "off" if plant == "sync-off" else "full"
        # A sync that fails once: what it should have kept may be lost although later ones succeed.
        plan = Plan("sync", random.randint(1, 50)) if random.random() < 0.3 and not plant else None
        events, answers = record(disk, history, sync=sync, reopen_at=reopen_at, perform_=perform_, plan=plan)
    for _ in range(images):
        yield cut(history, events, answers, random)


Perform = Callable[[Engine, Step, Callable[[], None]], None]


@contextmanager
def planted(fault: str | None) -> Iterator[Perform | None]:
    """Give a way to do steps that has a defect which the trials must find."""
    if fault == "early-answer":
        yield _answers_early
    elif fault == "torn-group":
        yield _tears_groups
    elif fault == "stale-index":
        with _replaced(SqliteTableStore, "replace", _keeps_old_entries):
            yield None
    elif fault == "no-record":
        with _replaced(writes, "_log_modification", lambda *_: None):
            yield None
    elif fault == "no-number":
        with _replaced(wal_binding, "_bind_wal", lambda _: None):
            yield None
    elif fault == "no-token":
        with _replaced(isolation.ClientTokens, "save_receipt", lambda *_: None):
            yield None
    else:
        yield None


@contextmanager
def planted_in_store(fault: str | None) -> Iterator[None]:
    """Plant a defect in the store itself: a failed commit that is answered as done, or pages without sums."""
    if fault == "blind-commit":
        with _replaced(Store, "commit", _commits_blindly):
            yield
    elif fault == "no-checksums":
        with (
            _replaced(files, "_CHECKSUM_VFS", "unix"),
            _replaced(files, "_CHECKED_BYTES_MAX", 0),
            _replaced(store, "crc32", lambda *_: _Never()),
        ):
            yield
    else:
        yield


class _Never:
    """A sum that differs from none."""

    def __ne__(self, other: object) -> bool:
        return False


_commit = Store.commit


def _commits_blindly(store: Any) -> None:
    try:
        _commit(store)
    except StoreError:
        store.rollback()


def _answers_early(engine: Engine, step: Step, answer: Callable[[], None]) -> None:
    answer()
    perform(engine, step)


def _tears_groups(engine: Engine, step: Step, answer: Callable[[], None]) -> None:
    for call in step.calls:
        perform(engine, Step((call,)))
    answer()


_replace = SqliteTableStore.replace


def _keeps_old_entries(rack: Any, row: int, size: int, item: bytes, old: Any, entries: Any) -> None:
    _replace(rack, row, size, item, old, old)


@contextmanager
def _replaced(owner: object, name: str, stand_in: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, stand_in)
    try:
        yield
    finally:
        setattr(owner, name, before)
