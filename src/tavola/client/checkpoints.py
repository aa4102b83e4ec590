"""Checkpoints: where a long walk through a table stands, kept so that another process can go on from there.

A checkpoint is a small JSON object. It names the table and the design it was made with, and one of another design is
refused: half a table rewritten by one rule and half by another is what it is there to prevent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tavola.errors import TavolaError
from tavola.folders import sync_folder


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
    """A checkpoint in a file of its own, replaced whole each time; a power cut leaves the one before or this one."""

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
        """Write the file beside itself, then put it in its place; both are on the disk when this returns."""
        beside = self.path.with_name(f"{self.path.name}.new")
        with beside.open("w", encoding="utf-8") as file:
            file.write(json.dumps(checkpoint))
            file.flush()
            os.fsync(file.fileno())  # or a power cut leaves the name with nothing in it
        beside.replace(self.path)
        with suppress(
            PermissionError
        ):  # where folders cannot be opened, as on Windows, there is no such need
            sync_folder(self.path.parent)

    def clear(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def kept_in(told: str | os.PathLike[str] | Checkpoints | None) -> Checkpoints | None:
    """Return where checkpoints are kept: the file of a path, or what was given."""
    if isinstance(told, str | os.PathLike):
        return CheckpointFile(told)
    return told
