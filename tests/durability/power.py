"""Power cuts: a history is recorded once, then cut at random moments and opened from what is left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tavola.engine import Engine
from tavola.engine.storage import sqlite
from tests.durability.disk import Disk, Event
from tests.durability.history import History, Step, open_store, perform, random_history
from tests.durability.images import image, write_image
from tests.durability.recovery import faults_after

NAME = "store.db"


@contextmanager
def checkpoint_every(pages: int) -> Iterator[None]:
    """Fold the log into the file much sooner than a store does by itself."""
    before = sqlite._CHECKPOINT_PAGES
    sqlite._CHECKPOINT_PAGES = pages
    try:
        yield
    finally:
        sqlite._CHECKPOINT_PAGES = before


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
    perform_: Callable[[Engine, Step, Callable[[], None]], None] | None = None,
) -> tuple[list[Event], list[int]]:
    """Do a history on a file; return what was done to the disk, and how long that log was at each answer."""
    with scratch() as folder:
        events = disk.record()
        answers: list[int] = []
        engine = open_store(folder / NAME, sync)
        for place, step in enumerate(history.steps):
            if place == reopen_at:
                engine.close()
                engine = open_store(folder / NAME, sync)
            if perform_ is None:
                perform(engine, step)
                answers.append(len(events))
            else:
                perform_(engine, step, lambda: answers.append(len(events)))
        engine.close()
        disk.events = None
    return events, answers


def cut(history: History, events: list[Event], answers: list[int], random: Random) -> list[str]:
    """Cut the power once, at random; return what is wrong with what comes back."""
    point = random.randint(0, len(events))
    acknowledged = sum(answer <= point for answer in answers)
    with scratch() as folder:
        write_image(image(events, point, random), folder)
        found = faults_after(folder / NAME, history, acknowledged)
    return [f"cut at {point} of {len(events)}: {fault}" for fault in found]


def trial_run(disk: Disk, seed: int, images: int, sync: str = "full") -> Iterator[list[str]]:
    """Record one random history and cut it so many times; give what was wrong each time."""
    random = Random(seed)
    history = random_history(random, random.randint(5, 40))
    with checkpoint_every(random.choice([8, 40, 4096])):
        events, answers = record(disk, history, sync=sync, reopen_at=random.randint(1, len(history.steps)))
    for _ in range(images):
        yield cut(history, events, answers, random)
