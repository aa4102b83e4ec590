"""Main: the command tree, and the report of an internal error."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Annotated, Any, NoReturn

import click

from tavola import __version__
from tavola.cli.errors import Exit
from tavola.cli.output import note, print_error, print_usage_error, say, say_json
from tavola.cli.parameters import LazyGroup, Option, command, no_color_option

COMMANDS = "tavola.cli.commands"
SECTIONS = {
    "Run": {
        "serve": "serve:serve",
        "demo": "demo:demo",
        "studio": "studio:studio",
        "app": "app:app",
        "trigger": "trigger:trigger",
        "api": "api:api",
        "env": "env:env",
    },
    "Design": {
        "design": "design:design",
        "lint": "lint:lint",
        "explain": "lint:explain",
        "cost": "cost:cost",
        "simulate": "simulate:simulate",
        "solve": "solve:solve",
        "check": "check:check",
        "probe": "check:probe",
    },
    "Data": {
        "read": "read:read",
        "history": "read:history",
        "export": "transfer:export",
        "import": "transfer:import_",
        "backup": "backup:app",
        "restore": "backup:restore",
        "backfill": "backfill:backfill",
        "verify": "verify:verify",
    },
    "Security": {
        "iam": "iam:app",
        "rekey": "rekey:rekey",
        "log": "log:log",
    },
    "Infrastructure": {
        "plan": "plan:plan",
        "deploy": "plan:deploy",
        "iac": "iac:app",
    },
}


def _root(
    context: click.Context,
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
    as_json: Annotated[bool, Option("--json", help="With --version: print it as JSON.")] = False,
) -> None:
    """Design, run and operate DynamoDB single-table systems."""
    if version:
        if as_json:
            say_json("tavola.version/1", {"version": __version__, "python": sys.version.split()[0]})
        else:
            say(f"tavola {__version__}")
        raise click.exceptions.Exit(Exit.OK)
    if context.invoked_subcommand is None:
        note(context.get_help())
        raise click.exceptions.Exit(Exit.USAGE)


class _Program(LazyGroup):
    """The root of the command tree; Ctrl-C ends it with 130, as it ends other programs."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
            sys.stdout.flush()  # here, so that a full disk is reported
        except click.Abort as stopped:  # Ctrl-C, or the end of input at a prompt
            is_end_of_input = isinstance(stopped.__cause__, EOFError)
            note("Cancelled." if is_end_of_input else "Interrupted.")
            sys.exit(Exit.FAILED if is_end_of_input else Exit.INTERRUPTED)
        except click.ClickException as error:
            print_usage_error(error)
            sys.exit(error.exit_code)
        sys.exit(code or Exit.OK)  # a command that exits by itself returns its code, any other None


_root_command = command(_root, "tavola")
app = _Program(
    "tavola",
    sections={
        heading: {name: f"{COMMANDS}.{path}" for name, path in names.items()}
        for heading, names in SECTIONS.items()
    },
    callback=_root_command.callback,
    params=[*_root_command.params[:-1], no_color_option(hidden=False)],
    help=_root_command.help,
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code.value:<3} {code.meaning}" for code in Exit),
    invoke_without_command=True,
)


def run() -> NoReturn:
    """Run the command line of this process and exit with its code.

    An unexpected exception is reported without a traceback; `TAVOLA_DEBUG=1` shows it.
    """
    try:
        app()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            _report_bug(error)
        print_error("Cannot write the output.", "No space is left on the device.", "Free some disk space.")
        sys.exit(Exit.FAILED)
    except Exception as error:  # noqa: BLE001 - any bug is reported as a message
        _report_bug(error)
    sys.exit(Exit.OK)


def _report_bug(error: Exception) -> NoReturn:
    if os.environ.get("TAVOLA_DEBUG"):
        note("".join(traceback.format_exception(error)))
    print_error(
        "Internal error.",
        f"{type(error).__name__}: {error}",
        "Report this as a bug; TAVOLA_DEBUG=1 shows the traceback.",
    )
    sys.exit(Exit.INTERNAL)
