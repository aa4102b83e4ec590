"""Checkpoints: how far a long job has come, stored so that another process can continue it.

A checkpoint is a small JSON object. `CheckpointStore` is the one interface to what stores it: backfills, subscriptions
and triggers all load, save and clear through it. Here are a file and memory; triggers add a log file for frequent
saves, and an application may store it in an item. The job checks that a checkpoint is its own: one made with another
design or for another table is refused, because half a table rewritten by one rule and half by another is
what checkpoints exist to prevent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tavola.errors import TavolaError
from tavola.folders import write_whole


class CheckpointRefused(TavolaError):
    """A checkpoint that was made by another job or with another design, or that cannot be read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The checkpoint cannot be resumed: {reason}; remove it to start from the beginning")


class CheckpointStore(Protocol):
    """Stores one checkpoint: in a file, an item, anything that outlives the process."""

    def load(self) -> Mapping[str, Any] | None:
        """Return the checkpoint saved last, None if there is none."""
        ...

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Replace the stored checkpoint; it is durable when this returns."""
        ...

    def clear(self) -> None:
        """Remove the checkpoint: the job is done."""
        ...


class MemoryCheckpoint:
    """A checkpoint that lives as long as its object, for tests and for readers that hold their own position."""

    def __init__(self, checkpoint: Mapping[str, Any] | None = None) -> None:
        self.checkpoint = checkpoint

    def load(self) -> Mapping[str, Any] | None:
        """Return the checkpoint saved last."""
        return self.checkpoint

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Replace the checkpoint."""
        self.checkpoint = checkpoint

    def clear(self) -> None:
        """Remove the checkpoint."""
        self.checkpoint = None


class CheckpointFile:
    """A checkpoint in a file, replaced as a whole: a power cut leaves the old checkpoint or the new one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def load(self) -> Mapping[str, Any] | None:
        """Return the file's checkpoint, None if there is no file."""
        try:
            checkpoint = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CheckpointRefused(f"{self.path} cannot be read ({error})") from error
        if not isinstance(checkpoint, dict):
            raise CheckpointRefused(f"{self.path} does not contain a checkpoint")
        return checkpoint

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Replace the file's content; it is durable on return. A new file is readable by its owner only."""
        write_whole(self.path, json.dumps(checkpoint), private=True)

    def clear(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def open_checkpoints(store: str | os.PathLike[str] | CheckpointStore | None) -> CheckpointStore | None:
    """Return `store`, or the checkpoint file at that path."""
    if isinstance(store, str | os.PathLike):
        return CheckpointFile(store)
    return store
