"""Images: what a disk can hold after a power cut, made from the log of what was done to it.

What was synced is there. Of the writes since, any may be lost, and of a write any 512 bytes. What was done to
the folder is there once the folder was synced, which SQLite does with the first sync of a new journal or
log; until then a deletion may come undone and a new file be missing. Writes before a sync that failed may be lost although a later sync
succeeds, because a kernel may forget them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.durability.disk import Event

_SECTOR = 512
_SYNCS_FOLDER = ("-journal", "-wal")
MODES = ("none", "all", "prefix", "subset", "torn")


@dataclass(slots=True)
class _File:
    stable: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)
    named: bool = False  # in the folder as the disk has it
    fresh: bool = True  # not synced since it was made


def image(events: Sequence[Event], point: int, random: Random) -> dict[str, bytes]:
    """Return the files as a power cut before event number `point` may leave them."""
    files: dict[str, _File] = {}
    ghosts: dict[str, _File] = {}
    for event in events[:point]:
        name = event.file
        if event.kind == "delete":
            ghost = files.pop(name, None)
            if ghost is not None and not event.offset:
                ghosts[name] = ghost
            continue
        if event.kind == "create":
            ghosts.pop(name, None)
            files[name] = _File()
            continue
        file = files.setdefault(name, _File())
        if event.kind == "sync":
            for write in file.pending:
                _apply(file.stable, write)
            file.pending.clear()
            if file.fresh and name.endswith(_SYNCS_FOLDER):
                ghosts.clear()
                for each in files.values():
                    each.named = True
            file.fresh = False
        elif event.kind == "failed-sync":
            for write in file.pending:
                if random.random() < 0.5:
                    _apply(file.stable, write)
            file.pending.clear()
        else:
            file.pending.append(event)
    files |= {name: ghost for name, ghost in ghosts.items() if random.random() < 0.3}
    mode = random.choice(MODES)
    left: dict[str, bytes] = {}
    for name, file in files.items():
        if not file.named and random.random() < 0.3:
            continue
        left[name] = _left(file, mode, random)
    return left


def write_image(files: dict[str, bytes], folder: Path) -> None:
    """Write an image into an empty folder."""
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _left(file: _File, mode: str, random: Random) -> bytes:
    content = bytearray(file.stable)
    pending = file.pending
    if mode == "all":
        kept = pending
    elif mode == "none":
        kept = []
    elif mode == "prefix":
        kept = pending[: random.randint(0, len(pending))]
    else:
        share = random.random()
        kept = [write for write in pending if random.random() < share]
    for write in kept:
        if mode == "torn" and write.kind == "write":
            for piece in _sectors(write):
                if random.random() < 0.7:
                    _apply(content, piece)
        else:
            _apply(content, write)
    return bytes(content)


def _sectors(write: Event) -> list[Event]:
    pieces: list[Event] = []
    at = 0
    while at < len(write.data):
        end = min(len(write.data), at + _SECTOR - (write.offset + at) % _SECTOR)
        pieces.append(Event("write", write.file, write.offset + at, write.data[at:end]))
        at = end
    return pieces


def _apply(content: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        if event.offset <= len(content):
            del content[event.offset :]
        else:
            content.extend(bytes(event.offset - len(content)))
        return
    end = event.offset + len(event.data)
    if end > len(content):
        content.extend(bytes(end - len(content)))
    content[event.offset : end] = event.data
