"""`tavola verify`: a store's file gone through whole, or the index keys of a design's tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.designs import TableName, connect_to_tables, load_tables
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.keys import Key, read_store_key
from tavola.cli.output import bar, complain, note, say, say_json
from tavola.cli.pace_options import CheckpointPath, PaceOptions, Segments, UnitsPerSecond
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.targets import Target, TargetOptions, TargetRefused


def verify(
    file: Annotated[Path | None, Argument(help="The store's file; no process may have it open.")] = None,
    design: Annotated[
        str | None,
        Option(
            "--design",
            metavar="MODULE[:TABLE]",
            help="Check the index keys of this design's tables instead; of FILE, or of --store or --endpoint.",
        ),
    ] = None,
    repair: Annotated[
        bool, Option("--repair", help="With --design: put wrong index keys and guards right.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the report as JSON.")] = False,
    table_name: TableName = None,
    segments: Segments = 1,
    units_per_second: UnitsPerSecond = None,
    checkpoint: CheckpointPath = None,
    at: TargetOptions = BUNDLE,
    key: Key = None,
) -> None:
    """Check that everything in FILE is as it was written: pages, items, index entries, backups, counts, logs.

    With --design, check instead that every index key of every item is what the item's fields say, and that every unique
    value is kept for one item, anywhere: in FILE, in a --store, or at an --endpoint. Each problem is a line with its place; the exit code is 1 if any is left. Only
    --repair changes anything.
    """
    if design is None:
        _verify_file(file, (at.key_file, at.key_command, key), as_json=as_json, repair=repair)
        return
    with reporting_errors(f"Cannot verify the keys of {design}."):
        tables = load_tables(design)
        if checkpoint is not None and len(tables) > 1:
            raise TargetRefused("A checkpoint is of one table; name it with --design MODULE:TABLE")
        with replace(at, store=file or at.store, store_key=key).open() as target:
            db = connect_to_tables(target, tables, table_name)
            pace = PaceOptions(segments, units_per_second, checkpoint)
            reports = [_verify_table(target, db, table, table_name, pace, repair=repair) for table in tables]
    for report in reports:
        _tell_keys(report, as_json=as_json)
    if any(_problems_left(report, repair) for report in reports):
        if not as_json:
            complain(
                "There are keys or guards that are not what their items say.",
                "Queries miss such items, or find them where they are not; a unique value is kept for nobody, or is had twice.",
                None
                if repair
                else "Put them right with --repair; see the guide's page on changing a design.",
            )
        raise click.exceptions.Exit(Exit.FAILED)


def _verify_table(
    target: Target, db: Any, table: Any, name: str | None, pace: PaceOptions, *, repair: bool
) -> Any:
    name = name or table.settings.name
    total = target.call("DescribeTable", TableName=name)["Table"].get("ItemCount", 0)
    with bar(f"Verifying {name}", total) as show:
        return db.verify_keys(table, repair=repair, **pace.options(lambda done: show(done.done)))


def _problems_left(report: Any, repair: bool) -> bool:
    """Return whether something is wrong still."""
    if not repair:
        return not report.sound
    return any(report.counts[kind] for kind in ("misplaced", "unreadable", "left", "taken"))


def _tell_keys(report: Any, *, as_json: bool) -> None:
    if as_json:
        say_json(
            "tavola.verify-keys/1",
            {
                "table": report.table,
                "items": report.items,
                "entities": dict(report.by_entity),
                "counts": dict(report.counts),
                "repaired": report.repaired,
                "faults": [
                    {
                        "key": each.key, "entity": each.entity, "index": each.index, "kind": each.kind,
                        "stored": each.stored, "right": each.right,
                    }
                    for each in report.faults
                ],
                "guards": [
                    {
                        "key": each.key, "entity": each.entity, "field": each.field, "kind": each.kind,
                        "guard": each.guard, "owner": each.owner,
                    }
                    for each in report.guards
                ],
                "unknown": list(report.unknown),
                "unreadable": [
                    {"key": each.key, "entity": each.entity, "reason": each.reason} for each in report.unreadable
                ],
            },
        )  # fmt: skip
        return
    for fault in (*report.faults, *report.guards):
        say(str(fault))
    for each in report.unreadable:
        say(f"{each.entity} {each.plain_key}: it cannot be read: {each.reason}")
    if report.unknown:
        note(
            f"{_count_phrase(report.counts['unknown'], 'item')} of no entity in the design were passed over."
        )
    note(f"{report}.")


def _verify_file(
    file: Path | None, keys: tuple[Path | None, str | None, str | None], *, as_json: bool, repair: bool
) -> None:
    if file is None or repair:
        why = "No file is named." if file is None else "A store's file is never mended."
        do = "Name the file of a store, or a design with --design."
        complain(
            "Cannot verify.", why, do if file is None else "Name a design with --design to repair its keys."
        )
        raise click.exceptions.Exit(Exit.USAGE)
    if not file.is_file():
        why = "It is a folder." if file.is_dir() else "It is not there."
        complain(f"Cannot verify {file}.", why, "Name the file of a store.")
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    with reporting_errors(f"Cannot verify {file}."):
        from tavola.engine import verify as verified

        report = verified(file, key=read_store_key(*keys))
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
            f"{_count_phrase(report.tables, 'table')}, {_count_phrase(report.backups, 'backup')}, "
            f"{_count_phrase(report.items, 'item')} and {_count_phrase(report.changes, 'change')} were gone through."
        )
    if problems:
        if not as_json:
            complain(
                f"{file} has {_count_phrase(len(problems) + report.untold, 'problem')}.",
                "What is in it is not all as it was written.",
                "Restore it from a copy; keep this one until the copy is verified too.",
            )
        raise click.exceptions.Exit(Exit.FAILED)
    if not as_json:
        say(f"{file} is sound.")


def _count_phrase(number: int, what: str) -> str:
    """Return a number of things, as a person says it."""
    return f"{number} {what}{'' if number == 1 else 's'}"
