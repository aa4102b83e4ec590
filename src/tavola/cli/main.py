"""Main: the command tree, the environment and the last word on what went wrong."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from tavola import __version__
from tavola.cli.commands.api import api
from tavola.cli.commands.app import app as app_
from tavola.cli.commands.backfill import backfill
from tavola.cli.commands.backup import app as backup
from tavola.cli.commands.backup import restore
from tavola.cli.commands.check import check, probe
from tavola.cli.commands.cost import cost
from tavola.cli.commands.demo import demo
from tavola.cli.commands.design import design
from tavola.cli.commands.env import env
from tavola.cli.commands.iac import app as iac
from tavola.cli.commands.iam import app as iam
from tavola.cli.commands.lint import explain, lint
from tavola.cli.commands.log import log
from tavola.cli.commands.plan import deploy, plan
from tavola.cli.commands.read import history, read
from tavola.cli.commands.rekey import rekey
from tavola.cli.commands.serve import serve
from tavola.cli.commands.simulate import simulate
from tavola.cli.commands.solve import solve
from tavola.cli.commands.studio import studio
from tavola.cli.commands.tables import tables
from tavola.cli.commands.transfer import export, import_
from tavola.cli.commands.trigger import trigger
from tavola.cli.commands.verify import verify
from tavola.cli.exits import Exit
from tavola.cli.output import complain, note, say, say_json

_EXITS = "  ".join(f"{code.value} {code.sentence}." for code in Exit)

app = typer.Typer(
    name="tavola",
    help="DynamoDB in your own process, and over HTTP as AWS speaks it.",
    epilog=f"Exit codes: {_EXITS}",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(studio)
app.command()(api)
app.command()(env)
app.command()(log)
app.command()(design)
app.command()(lint)
app.command()(explain)
app.command()(simulate)
app.command()(cost)
app.command()(solve)
app.command()(read)
app.command()(history)
app.add_typer(backup)
app.command()(restore)
app.command()(export)
app.command(name="import")(import_)
app.add_typer(iam)
app.add_typer(iac)
app.command()(rekey)
app.command()(verify)
app.command()(plan)
app.command()(deploy)
app.command()(tables)
app.command()(backfill)
app.command()(trigger)
app.add_typer(app_)
app.command()(check)
app.command()(probe)
app.command()(demo)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the version as JSON.")] = False,
) -> None:
    """DynamoDB in your own process, and over HTTP as AWS speaks it."""
    if version:
        say_version(as_json)
        raise typer.Exit(Exit.OK)
    if context.invoked_subcommand is None:
        note(context.get_help())
        raise typer.Exit(Exit.USAGE)


def say_version(as_json: bool) -> None:
    """Print the version, for a person or for a program."""
    if as_json:
        say_json("tavola.version/1", {"version": __version__, "python": sys.version.split()[0]})
    else:
        say(f"tavola {__version__}")


def run() -> NoReturn:
    """Run the command line of this process, and exit with its code; no error shows a traceback.

    `TAVOLA_DEBUG=1` shows it nevertheless, for whoever looks for the mistake.
    """
    try:
        app()
    except Exception as error:  # noqa: BLE001 - whatever it is, a person is told in a sentence
        if os.environ.get("TAVOLA_DEBUG"):
            note(traceback.format_exc())
        complain(
            "Tavola failed in a way it should not.",
            f"{type(error).__name__}: {error}",
            "Report it with the steps that led here; TAVOLA_DEBUG=1 shows where it happened.",
        )
        sys.exit(Exit.INTERNAL)
    sys.exit(Exit.OK)
