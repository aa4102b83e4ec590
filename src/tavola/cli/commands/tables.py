"""`tavola tables`: a design's tables held against those that are there, and made what the design says."""

from __future__ import annotations

from typing import Annotated, Any

import click

from tavola.cli.designs import DesignOption, TableName, connect_to_tables, load_tables
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import note, say, say_json
from tavola.cli.parameters import BUNDLE, Option
from tavola.cli.targets import TargetOptions


def tables(
    design: DesignOption,
    apply: Annotated[
        bool,
        Option("--apply", help="Make the tables what the design says, one change after the other."),
    ] = False,
    drop: Annotated[
        bool, Option("--drop", help="With --apply: also take away what the design does not have.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the changes as JSON.")] = False,
    table_name: TableName = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Compare deployed tables with their design. Exits with 1 if there are differences.

    A missing table is made with --apply, and so are indexes, the stream and settings. What takes something away is
    done with --drop alone. A key or a local index cannot be changed in place.
    """
    left: list[Any] = []
    with reporting_errors(f"Cannot compare the tables of {design}."):
        found = load_tables(design)
        with at.open(new=apply) as target:
            db = connect_to_tables(target, found, table_name)
            for table in found:
                if apply:
                    for change in db.apply_changes(table, drop=drop).changes:
                        note(f"Done: {change}.")
                left.append(db.table_changes(table))
    for changes in left:
        if as_json:
            say_json(
                "tavola.table-changes/1",
                {
                    "table": changes.table,
                    "changes": [
                        {"kind": each.kind, "what": each.what, "removes": each.removes}
                        for each in changes.changes
                    ],
                    "refusals": list(changes.refusals),
                },
            )
        else:
            say(str(changes))
    if any(left):
        raise click.exceptions.Exit(Exit.FAILED)
