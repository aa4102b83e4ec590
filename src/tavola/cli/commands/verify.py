"""`tavola verify`: check a database file for damage, or the index keys of a design's tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tavola.cli.designs import TableNameOption, connect_to_tables, load_tables
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.output import bar, count_noun, note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, AsJson, Option
from tavola.cli.targets import PaceOptions, TargetOptions, missing_file
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.client.reports import KeyReport


def verify(
    file: Annotated[Path | None, Argument(help="Database file; no other process may have it open.")] = None,
    design: Annotated[
        str | None,
        Option(
            "--design", metavar="MODULE[:TABLE]",
            help="Check the index keys and unique values of this design's tables instead.",
        ),
    ] = None,
    repair: Annotated[
        bool, Option("--repair", help="With --design: fix wrong index keys and unique-value guards.")
    ] = False,
    as_json: AsJson = False,
    table_name: TableNameOption = None,
    pace: PaceOptions = BUNDLE,
    at: TargetOptions = BUNDLE,
) -> None:  # fmt: skip
    """Check a database file or a table's index keys for errors.

    Without --design, check all of FILE: pages, items, index entries, backups, counts and logs.

    With --design, check that the index keys of every item match its fields, and that unique values are reserved for one item.
    The tables are in FILE, or at --store or --endpoint. Nothing is changed without --repair.

    Exits with 1 if problems remain.
    """
    if design is None:
        _verify_file(file, at, as_json=as_json, repair=repair)
    else:
        at = replace(at, store=file or at.store)
        _verify_design(design, at, table_name, pace, as_json=as_json, repair=repair)


def _verify_design(
    design: str, at: TargetOptions, table_name: str | None, pace: PaceOptions, *, as_json: bool, repair: bool
) -> None:
    with reporting_errors(f"Cannot verify the keys of {design}."):
        tables = load_tables(design)
        if pace.checkpoint is not None and len(tables) > 1:
            raise CommandError("--checkpoint needs a design with one table.", "Use --design MODULE:TABLE.")
        pace.check()
        reports = []
        with at.open() as target:
            db = connect_to_tables(target, tables, table_name)
            for table in tables:
                name = table_name or table.settings.name
                total = target.call("DescribeTable", TableName=name)["Table"].get("ItemCount", 0)
                with bar(f"Verifying {name}", total) as show:
                    reports.append(db.verify_keys(table, repair=repair, **pace.as_arguments(show)))
    for report in reports:
        _say_report(report, as_json=as_json)
    if any(_has_problems(report, repair) for report in reports):
        with reporting_errors(f"{design} has wrong index keys or unique values."):
            raise CommandError(
                "Queries miss these items or find them under an old key; a unique value may be unprotected.",
                None if repair else "Run the command again with --repair.",
                ErrorKind.INVALID,
            )


def _has_problems(report: KeyReport, repair: bool) -> bool:
    """Return whether problems remain after the run."""
    if not repair:
        return not report.sound
    return any(report.counts[kind] for kind in ("misplaced", "unreadable", "left", "taken"))


def _say_report(report: KeyReport, *, as_json: bool) -> None:
    if as_json:
        say_json(
            "tavola.verify-keys/1",
            {
                "table": report.table,
                "items": report.items,
                "entities": dict(report.by_entity),
                "counts": dict(report.counts),
                "repaired": report.repaired,
                "problems": [
                    {
                        "key": problem.key, "entity": problem.entity, "index": problem.index, "kind": problem.kind,
                        "stored": problem.stored, "right": problem.right,
                    }
                    for problem in report.problems
                ],
                "guards": [
                    {
                        "key": guard.key, "entity": guard.entity, "field": guard.field, "kind": guard.kind,
                        "guard": guard.guard, "owner": guard.owner,
                    }
                    for guard in report.guards
                ],
                "unknown": list(report.unknown),
                "unreadable": [
                    {"key": item.key, "entity": item.entity, "reason": item.reason} for item in report.unreadable
                ],
            },
        )  # fmt: skip
        return
    for problem in (*report.problems, *report.guards):
        say(str(problem))
    for item in report.unreadable:
        say(f"{item.entity} {item.key_text}: cannot be read: {item.reason}")
    if report.unknown:
        note(
            f"Skipped {count_noun(report.counts['unknown'], 'item')} that belong to no entity of the design."
        )
    note(f"{report}.")


def _verify_file(file: Path | None, at: TargetOptions, *, as_json: bool, repair: bool) -> None:
    with reporting_errors("Cannot verify." if file is None else f"Cannot verify {file}."):
        from tavola.engine import verify as verify_store

        if repair:
            raise CommandError(
                "--repair fixes index keys, not a damaged file.",
                "Add --design, or restore the file from a backup.",
            )
        if file is None:
            raise CommandError("No database file is named.", "Name a file, or a design with --design.")
        if not file.is_file():
            raise missing_file(file)
        report = verify_store(file, key=at.read_key())
    problems = [{"place": problem.place, "problem": problem.what} for problem in report.problems]
    if as_json:
        members = {
            "tables": report.tables, "backups": report.backups, "items": report.items, "changes": report.changes,
            "problems": problems, "unlisted": report.unlisted,
        }  # fmt: skip
        say_json("tavola.verify/1", members)
    else:
        for problem in problems:
            say(f"{problem['place']}: {problem['problem']}")
        if report.unlisted:
            say(f"and {report.unlisted} more")
        counts = [
            count_noun(report.tables, "table"), count_noun(report.backups, "backup"),
            count_noun(report.items, "item"), count_noun(report.changes, "change"),
        ]  # fmt: skip
        note(f"Checked {', '.join(counts)}.")
    if problems:
        with reporting_errors(f"{file} has {count_noun(len(problems) + report.unlisted, 'problem')}."):
            raise CommandError(
                "The file does not hold what was written to it.",
                "Restore it from a backup copy, and keep this file until the copy is verified.",
                ErrorKind.INVALID,
            )
    if not as_json:
        say(f"{file}: no problems found.")
