"""Cli: the command line.

Holds the commands, their settings, their exit codes and the one place that prints. Reads the environment
and wires engine and server together; nothing below it does either. Knows every room and is known by none.
Each command loads its rooms when it runs, so that `tavola --version` opens no SQLite.
"""

from tavola.cli.exits import Exit
from tavola.cli.launch import run

__all__ = ["Exit", "run"]
