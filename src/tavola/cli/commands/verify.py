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
    """Check that everything in FILE is as it was written: pages, items, index entries, counts, logs.

    Each problem is a line with its place; the exit code is 1 if there is any. Nothing is mended.
    """
    if not file.is_file():
        complain(f"Cannot verify {file}.", "It is not there.", "Name the file of a store.")
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
        note(f"{report.tables} tables, {report.items} items and {report.changes} changes were gone through.")
    if problems:
        if not as_json:
            complain(
                f"{file} has {len(problems) + report.untold} problems.",
                "What is in it is not all as it was written.",
                "Restore it from a copy; keep this one until the copy is verified too.",
            )
        raise typer.Exit(Exit.FAILED)
    if not as_json:
        say(f"{file} is sound.")
