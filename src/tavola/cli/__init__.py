"""Cli: the command line.

Contains the commands, their settings and exit codes, and the only module that prints. It reads environment variables and
connects engine, server, applications and studio; no package below does either, and none imports this one. A command imports
what it needs when it runs, so `tavola --version` does not load SQLite. A server executes itself again in `launch`, and what is
loaded before that is loaded twice; so this package imports nothing else.
"""

from tavola.cli.launch import run

__all__ = ["run"]
