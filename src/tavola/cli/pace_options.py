"""Upkeep: the options of commands that go through a whole table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from tavola.cli.parameters import Option

Segments: TypeAlias = Annotated[
    int, Option("--segments", min=1, max=64, help="In how many parts the table is read side by side.")
]
UnitsPerSecond: TypeAlias = Annotated[
    float | None,
    Option(
        "--units-per-second",
        min=0.1,
        help="The most write units to take a second, of the table and its indexes together; all there are if left out.",
        show_default=False,
    ),
]
CheckpointPath: TypeAlias = Annotated[
    Path | None,
    Option(
        "--checkpoint",
        help="The file that holds how far the work is; with it, work that was stopped goes on.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """How the work goes, as the options say."""

    segments: int
    units_per_second: float | None
    checkpoint: Path | None

    def options(self, progress: Callable[[Any], object]) -> dict[str, Any]:
        """Return it as the client's methods take it."""
        return {
            "segments": self.segments, "units_per_second": self.units_per_second, "checkpoint": self.checkpoint,
            "progress": progress,
        }  # fmt: skip
