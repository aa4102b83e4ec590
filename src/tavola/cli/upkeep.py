"""Upkeep: the options of commands that go through a whole table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Segments: TypeAlias = Annotated[
    int, typer.Option("--segments", min=1, max=64, help="In how many parts the table is read side by side.")
]
UnitsPerSecond: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--units-per-second",
        min=0.1,
        help="The most write units to take a second, of the table and its indexes together; all there are if left out.",
        show_default=False,
    ),
]
CheckpointPath: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="The file that holds how far the work is; with it, work that was stopped goes on.",
        show_default=False,
    ),
]
