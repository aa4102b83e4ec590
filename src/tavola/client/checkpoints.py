"""Checkpoints: where a long walk through a table stands, kept so that another process can go on from there.

A checkpoint is a small JSON object. It names the table and the design it was made with, and one of another design is
refused: half a table rewritten by one rule and half by another is what it is there to prevent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tavola.errors import TavolaError
from tavola.values import Item

SCHEMA = "tavola.checkpoint/1"


class CheckpointRefused(TavolaError):
    """A checkpoint that was not made by the same work on the same design, or cannot be read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The checkpoint cannot be gone on from: {reason}; remove it to begin again")


class Checkpoints(Protocol):
    """Where a checkpoint is kept: a file, a row, whatever outlives the process."""

    def load(self) -> Mapping[str, Any] | None:
        """Return what was saved last, None if there is nothing to go on from."""
        ...

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Keep a checkpoint in the place of the one before."""
        ...

    def clear(self) -> None:
        """Forget it: the work is done."""
        ...


class CheckpointFile:
    """A checkpoint in a file of its own, replaced whole each time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def load(self) -> Mapping[str, Any] | None:
        """Return what the file holds, None if there is none."""
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CheckpointRefused(f"{self.path} cannot be read ({error})") from error
        if not isinstance(found, dict):
            raise CheckpointRefused(f"{self.path} holds no checkpoint")
        return found

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Write the file beside itself, then put it in its place."""
        beside = self.path.with_name(f"{self.path.name}.new")
        beside.write_text(json.dumps(checkpoint), "utf-8")
        beside.replace(self.path)

    def clear(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def kept_in(told: str | os.PathLike[str] | Checkpoints | None) -> Checkpoints | None:
    """Return where checkpoints are kept: the file of a path, or what was given."""
    if isinstance(told, str | os.PathLike):
        return CheckpointFile(told)
    return told


@dataclass(slots=True)
class Standing:
    """Where each segment of a table's scan stands, and what was counted so far."""

    work: str  # what is being done, to which table, by which design
    starts: list[Item | None]  # where each segment goes on; None: from its beginning
    ended: list[bool]
    counts: dict[str, int]

    @classmethod
    def new(cls, work: str, segments: int) -> Standing:
        """Return the beginning."""
        return cls(work, [None] * segments, [False] * segments, {})

    @classmethod
    def read(cls, work: str, told: Mapping[str, Any]) -> Standing:
        """Return where a checkpoint stands; refuse one of other work."""
        if told.get("schema") != SCHEMA:
            raise CheckpointRefused("it is of another version, or none at all")
        if told.get("work") != work:
            raise CheckpointRefused(f"it was made by {told.get('work')}, and this is {work}")
        return cls(work, list(told["starts"]), list(told["ended"]), dict(told["counts"]))

    def document(self) -> dict[str, Any]:
        """Return the checkpoint as it is kept."""
        return {
            "schema": SCHEMA, "work": self.work, "starts": self.starts, "ended": self.ended, "counts": self.counts,
        }  # fmt: skip
