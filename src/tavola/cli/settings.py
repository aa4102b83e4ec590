"""Settings: what a person may turn, one row each. The help and the manual are made from these rows.

A setting is given as an option, or else by the environment (`TAVOLA_PORT` for `--port`), or else it has
its default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be turned: its name, its default, its unit and a sentence."""

    name: str
    default: str | int
    unit: str
    sentence: str
    least: int | None = None
    most: int | None = None

    @property
    def flag(self) -> str:
        """The option that sets it."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"TAVOLA_{self.name.upper().replace('-', '_')}"


HOST = Setting("host", "127.0.0.1", "", "The address to listen on; the default lets only this machine in.")
PORT = Setting("port", 8000, "", "The port to listen on; 0 takes a free one.", least=0, most=65535)
SYNC = Setting(
    "sync",
    "full",
    "",
    "When a write to a file counts as done: on the disk (full), or when the system has it (off).",
)
CACHE_MB = Setting(
    "cache-mb",
    1024,
    "MB",
    "The most memory that pages of a file may take, as they are read; what is in memory takes what it needs.",
    least=1,
    most=65536,
)
WORDING = Setting(
    "wording",
    "current",
    "",
    "Which words refusals use: AWS's mixture of today (current), the older (classic), the newer (modern).",
)
TABLE_DELAY_MS = Setting(
    "table-delay-ms", 0, "ms", "How long a new table or index stays CREATING.", least=0, most=3_600_000
)

SETTINGS = (HOST, PORT, SYNC, CACHE_MB, WORDING, TABLE_DELAY_MS)


def option(setting: Setting) -> Any:
    """Return a setting as an option of a command."""
    unit = f" [{setting.unit}]" if setting.unit else ""
    return typer.Option(
        setting.flag,
        envvar=setting.variable,
        help=f"{setting.sentence}{unit}",
        min=setting.least,
        max=setting.most,
    )
