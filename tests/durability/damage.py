"""Damage: bytes of a store's files changed behind its back, and whether anybody is reported something wrong.

What is read of a damaged store is an error or the truth (I10). The log is a special case: a log that is cut
or damaged is what a power cut leaves, so SQLite goes back to the last whole transaction before the spot. Then
the store must be in the state of an earlier step, whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tavola.engine import StoreError
from tavola.engine.storage import files
from tavola.protocol.faults import Fault
from tests.durability.history import History, open_store, perform, random_history
from tests.durability.power import NAME
from tests.durability.state import faults_in, read_state, settle

PAGE = 4096
FILE_KINDS = (
    "flip",
    "flips",
    "zero sector",
    "random sector",
    "zero page",
    "swap pages",
    "repeat page",
    "truncate",
)
# What the checksums of pages and items find by themselves, without a walk through the whole file.
LARGE_KINDS = ("flip", "flips", "zero sector", "random sector", "zero page", "truncate")
LOG_KINDS = ("flip", "zero sector", "random sector", "truncate")


def make_store(folder: Path, random: Random) -> History:
    """Do a history in a folder and leave two copies: `closed`, and `open` with its log unfolded."""
    history = random_history(random, 40)
    (folder / "open").mkdir()
    (folder / "closed").mkdir()
    engine = open_store(folder / NAME)
    for step in history.steps:
        perform(engine, step)
    for file in folder.glob(f"{NAME}*"):
        shutil.copy(file, folder / "open")
    engine.close()
    shutil.copy(folder / NAME, folder / "closed")
    return history


def damaged(data: bytes, kind: str, random: Random) -> bytes:
    """Return bytes with one kind of damage at a random place."""
    out = bytearray(data)
    pages = len(data) // PAGE
    match kind:
        case "flip" | "flips":
            for _ in range(1 if kind == "flip" else random.randint(2, 40)):
                out[random.randrange(len(out))] ^= 1 << random.randrange(8)
        case "zero sector" | "random sector":
            at = random.randrange(max(1, len(out) // 512)) * 512
            out[at : at + 512] = bytes(512) if kind == "zero sector" else random.randbytes(512)
        case "zero page":
            at = random.randrange(pages) * PAGE
            out[at : at + PAGE] = bytes(PAGE)
        case "swap pages" | "repeat page":
            one, other = (page * PAGE for page in random.sample(range(pages), 2))
            first, second = data[one : one + PAGE], data[other : other + PAGE]
            out[one : one + PAGE] = second
            if kind == "swap pages":
                out[other : other + PAGE] = first
        case "truncate":
            del out[random.randrange(len(out)) :]
        case _:
            raise AssertionError(kind)
    return bytes(out)


def verdict(path: Path, history: History, *, log: bool) -> str:
    """Open a damaged store and read all of it: "reported", "harmless", "earlier" (of a log), or what was wrong."""
    try:
        engine = open_store(path)
    except StoreError:
        return "told"
    except Exception as error:  # noqa: BLE001  # whatever else comes out is the finding
        return f"wrong: opening raised what is no error of the store's ({error!r})"
    try:
        settle(engine)
        state = read_state(engine)
        faults = faults_in(engine)
    except (StoreError, Fault):
        return "told"
    except Exception as error:  # noqa: BLE001  # what is served is no item, or no answer at all
        return f"wrong: reading came to {error!r}"
    finally:
        try:
            engine.close()
        except StoreError:
            pass
    if faults:
        return f"wrong: {faults[0]}"
    if state == history.states[-1]:
        return "harmless"
    if log and state in history.states:
        return "earlier"
    return "wrong: the state is not the one that was stored"


@contextmanager
def as_if_large() -> Iterator[None]:
    """Open stores as large ones are opened: without a walk through all of their pages."""
    before = files._CHECKED_BYTES_MAX
    files._CHECKED_BYTES_MAX = 0
    try:
        yield
    finally:
        files._CHECKED_BYTES_MAX = before


def trial(folder: Path, source: Path, history: History, target: str, kind: str, random: Random) -> str:
    """Copy a store, damage one of its files, and return the verdict."""
    for old in folder.glob(f"{NAME}*"):
        old.unlink()
    for file in source.glob(f"{NAME}*"):
        shutil.copy(file, folder)
    victim = folder / f"{NAME}{target}"
    victim.write_bytes(damaged(victim.read_bytes(), kind, random))
    return verdict(folder / NAME, history, log=target == "-wal")
