"""`tavola verify`: a store's file gone through whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tavola.cli.exits import Exit
from tavola.cli.failures import told
from tavola.cli.keys import Key, KeyCommand, KeyFile, key_from
from tavola.cli.output import complain, note, say, say_json


def verify(
    file: Annotated[Path, typer.Argument(help="The store's file; no process may have it open.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    key_file: KeyFile = None,
    key_command: KeyCommand = None,
    key: Key = None,
) -> None:
    """Check that everything in FILE is as it was written: pages, items, index entries, backups, counts, logs.

    Each problem is a line with its place; the exit code is 1 if there is any. Nothing is mended.
    """
    if not file.is_file():
        why = "It is a folder." if file.is_dir() else "It is not there."
        complain(f"Cannot verify {file}.", why, "Name the file of a store.")
        raise typer.Exit(Exit.NOT_FOUND)
    with told(f"Cannot verify {file}."):
        from tavola.engine import verify as verified

        report = verified(file, key=key_from(key_file, key_command, key))
    problems = [{"place": each.place, "problem": each.what} for each in report.problems]
    if as_json:
        say_json(
            "tavola.verify/1",
            {
                "tables": report.tables,
                "backups": report.backups,
                "items": report.items,
                "changes": report.changes,
                "problems": problems,
                "untold": report.untold,
            },
        )
    else:
        for each in problems:
            say(f"{each['place']}: {each['problem']}")
        if report.untold:
            say(f"and {report.untold} more")
        note(
            f"{_counted(report.tables, 'table')}, {_counted(report.backups, 'backup')}, "
            f"{_counted(report.items, 'item')} and {_counted(report.changes, 'change')} were gone through."
        )
    if problems:
        if not as_json:
            complain(
                f"{file} has {_counted(len(problems) + report.untold, 'problem')}.",
                "What is in it is not all as it was written.",
                "Restore it from a copy; keep this one until the copy is verified too.",
            )
        raise typer.Exit(Exit.FAILED)
    if not as_json:
        say(f"{file} is sound.")


def _counted(number: int, what: str) -> str:
    """Return a number of things, as a person says it."""
    return f"{number} {what}{'' if number == 1 else 's'}"
