"""`tavola backfill`: a table's items rewritten as its design would write them now, or what that would take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.designs import DesignOption, TableName, connect_to_tables, load_table
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import bar, complain, note, say, say_json
from tavola.cli.pace_options import CheckpointPath, PaceOptions, Segments, UnitsPerSecond
from tavola.cli.parameters import BUNDLE, Option
from tavola.cli.targets import TargetOptions, TargetRefused, parse_json_object


def backfill(
    design: DesignOption,
    plan: Annotated[
        bool,
        Option("--plan", help="Tell what would be rewritten and what it costs, and write nothing."),
    ] = False,
    was: Annotated[
        Path | None,
        Option("--was", help="With --plan: the older design's document, to be told what is otherwise."),
    ] = None,
    exact: Annotated[
        bool, Option("--exact", help="With --plan: look at every item, not at a sample.")
    ] = False,
    entity: Annotated[
        list[str] | None, Option("--entity", help="Rewrite items of this entity; all if left out.")
    ] = None,
    forget: Annotated[
        list[str] | None,
        Option("--forget", help="Remove this attribute, which the design has given up."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print the report as JSON.")] = False,
    table_name: TableName = None,
    segments: Segments = 1,
    units_per_second: UnitsPerSecond = None,
    checkpoint: CheckpointPath = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Rewrite every item of a table that its design would write otherwise now: keys, shards, schemas, defaults.

    The application may go on meanwhile: an item is written only if it still is as it was read. Work that is stopped
    goes on where it was if it is started again with the same --checkpoint; done twice, it does nothing twice.
    """
    with reporting_errors(f"Cannot backfill {design}."):
        table = load_table(design)
        entities = None if not entity else [_entity(table, each) for each in entity]
        older = None if was is None else _document(was)
        with at.open() as target:
            db = connect_to_tables(target, (table,), table_name, at.region)
            if plan:
                _tell_plan(db.plan_migration(table, was=older, exact=exact), as_json=as_json)
                return
            name = table_name or table.settings.name
            total = target.call("DescribeTable", TableName=name)["Table"].get("ItemCount", 0)
            pace = PaceOptions(segments, units_per_second, checkpoint)
            with bar(f"Backfilling {name}", total) as show:
                options = pace.options(lambda done: show(done.done))
                report = db.backfill(table, entities=entities, forget=tuple(forget or ()), **options)
    _tell(report, as_json=as_json)


def _entity(table: Any, name: str) -> Any:
    for entity in table.entities.values():
        if entity.__name__ == name:
            return entity
    known = ", ".join(entity.__name__ for entity in table.entities.values())
    raise TargetRefused(f"{table.__name__} has no entity {name}; it has {known}")


def _document(path: Path) -> dict[str, Any]:
    try:
        return parse_json_object("--was", path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TargetRefused(f"--was {path} cannot be read: {error}") from error


def _tell_plan(plan: Any, *, as_json: bool) -> None:
    if not as_json:
        say(str(plan))
        return
    say_json(
        "tavola.migration-plan/1",
        {
            "table": plan.table,
            "items": plan.items,
            "exact": plan.exact,
            "rewritten": plan.rewritten,
            "write_units": plan.write_units,
            "read_units": plan.read_units,
            "usd": str(plan.usd),
            "prices": plan.book,
            "misplaced": plan.misplaced,
            "unreadable": plan.unreadable,
            "unknown": plan.unknown,
            "taken": plan.taken,
            "counted": plan.counted,
            "given_up": list(plan.given_up),
            "differences": [
                {"entity": each.entity, "what": each.what, "means": each.means} for each in plan.differences
            ],
            "entities": [
                {
                    "entity": each.entity, "items": each.items, "rewritten": each.rewritten,
                    "write_units": each.write_units, "reasons": dict(each.reasons),
                }
                for each in plan.entities
            ],
        },
    )  # fmt: skip


def _tell(report: Any, *, as_json: bool) -> None:
    if as_json:
        say_json(
            "tavola.backfill/1",
            {
                "table": report.table,
                "items": report.items,
                "written": report.written,
                "entities": dict(report.by_entity),
                "guards": report.guards,
                "write_units": report.write_units,
                "left": report.left_count,
                "resumed": report.resumed,
                "reasons": [
                    {"key": each.key, "entity": each.entity, "reason": each.reason} for each in report.left
                ],
            },
        )
    else:
        for each in report.left:
            say(f"{each.entity} {each.plain_key}: {each.reason}")
        note(f"{report}, for {report.write_units:,.0f} write units.")
    if report.left_count:
        if not as_json:
            complain(
                f"{report.left_count} items could not be rewritten.",
                "Each is named above with the reason.",
                "Mend or move them, then start again; what is done is not done twice.",
            )
        raise click.exceptions.Exit(Exit.FAILED)
