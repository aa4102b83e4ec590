"""Main: the command tree, and what is printed when a command fails in a way that it should not."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, NoReturn

import click

from tavola import __version__
from tavola.cli.exits import Exit
from tavola.cli.output import complain, note, say, say_json
from tavola.cli.parameters import LazyGroup, Option, command

_EXITS = "  ".join(f"{code.value} {code.sentence}." for code in Exit)

_HOMES = {
    "serve": "serve:serve",
    "studio": "studio:studio",
    "api": "api:api",
    "env": "env:env",
    "log": "log:log",
    "design": "design:design",
    "lint": "lint:lint",
    "explain": "lint:explain",
    "simulate": "simulate:simulate",
    "cost": "cost:cost",
    "solve": "solve:solve",
    "read": "read:read",
    "history": "read:history",
    "backup": "backup:app",
    "restore": "backup:restore",
    "export": "transfer:export",
    "import": "transfer:import_",
    "iam": "iam:app",
    "iac": "iac:app",
    "rekey": "rekey:rekey",
    "verify": "verify:verify",
    "plan": "plan:plan",
    "deploy": "plan:deploy",
    "tables": "tables:tables",
    "backfill": "backfill:backfill",
    "trigger": "trigger:trigger",
    "app": "app:app",
    "check": "check:check",
    "probe": "check:probe",
    "demo": "demo:demo",
}


def _root(
    context: click.Context,
    version: Annotated[bool, Option("--version", help="Print the version.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the version as JSON.")] = False,
) -> None:
    """DynamoDB in your own process, and over HTTP as AWS speaks it."""
    if version:
        say_version(as_json)
        raise click.exceptions.Exit(Exit.OK)
    if context.invoked_subcommand is None:
        note(context.get_help())
        raise click.exceptions.Exit(Exit.USAGE)


_own = command(_root, "tavola")
app = LazyGroup(
    "tavola",
    homes={name: f"tavola.cli.commands.{home}" for name, home in _HOMES.items()},
    callback=_own.callback,
    params=_own.params,
    help=_own.help,
    epilog=f"Exit codes: {_EXITS}",
    invoke_without_command=True,
)


def say_version(as_json: bool) -> None:
    """Print the version, for a person or for a program."""
    if as_json:
        say_json("tavola.version/1", {"version": __version__, "python": sys.version.split()[0]})
    else:
        say(f"tavola {__version__}")


def run() -> NoReturn:
    """Run the command line of this process, and exit with its code; no error shows a traceback.

    `TAVOLA_DEBUG=1` shows the traceback.
    """
    try:
        app()
    except Exception as error:  # noqa: BLE001 - any bug is reported in a sentence
        if os.environ.get("TAVOLA_DEBUG"):
            note(traceback.format_exc())
        complain(
            "Tavola failed in a way it should not.",
            f"{type(error).__name__}: {error}",
            "Report it with the steps that led here; TAVOLA_DEBUG=1 shows where it happened.",
        )
        sys.exit(Exit.INTERNAL)
    sys.exit(Exit.OK)
