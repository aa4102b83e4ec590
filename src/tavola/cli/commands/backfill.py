"""`tavola backfill`: rewrite a table's items to match its current design, or show what that would take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tavola.cli.designs import ModuleArgument, TableNameOption, connect_to_tables, load_table
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import read_text
from tavola.cli.output import bar, count_noun, note, say, say_json
from tavola.cli.parameters import BUNDLE, AsJson, Option
from tavola.cli.targets import PaceOptions, TargetOptions, parse_json_object
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.client.reports import BackfillReport, MigrationPlan
    from tavola.model import Entity, Table


def backfill(
    design: ModuleArgument,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show what would be rewritten and its cost; write nothing.")
    ] = False,
    previous_design: Annotated[
        Path | None,
        Option(
            "--previous-design", metavar="FILE",
            help="With --dry-run: the previous design document, to list the differences.",
        ),
    ] = None,
    exact: Annotated[
        bool, Option("--exact", help="With --dry-run: read every item instead of a sample.")
    ] = False,
    entity: Annotated[
        list[str] | None, Option("--entity", metavar="NAME", help="Rewrite only this entity; repeatable.")
    ] = None,
    remove_attribute: Annotated[
        list[str] | None,
        Option(
            "--remove-attribute", metavar="NAME",
            help="Remove an attribute that the design no longer declares; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
    table_name: TableNameOption = None,
    pace: PaceOptions = BUNDLE,
    at: TargetOptions = BUNDLE,
) -> None:  # fmt: skip
    """Rewrite items to match the current design.

    Updates keys, shards, schemas and defaults. The application may keep running: an item is written only if it did not change
    since it was read. An interrupted run resumes with the same --checkpoint; running it twice is harmless.
    """
    with reporting_errors(f"Cannot backfill {design}."):
        table = load_table(design)
        entities = None if not entity else [_find_entity(table, name) for name in entity]
        previous = None
        if previous_design is not None:
            previous = parse_json_object("--previous-design", read_text(previous_design, "--previous-design"))
        pace.check()
        with at.open() as target:
            db = connect_to_tables(target, (table,), table_name, at.region)
            if dry_run:
                _say_plan(db.plan_migration(table, was=previous, exact=exact), as_json=as_json)
                return
            name = table_name or table.settings.name
            total = target.call("DescribeTable", TableName=name)["Table"].get("ItemCount", 0)
            with bar(f"Backfilling {name}", total) as show:
                removed = tuple(remove_attribute or ())
                report = db.backfill(table, entities=entities, forget=removed, **pace.as_arguments(show))
        _say_report(report, as_json=as_json)
        if report.left_count:
            raise CommandError(
                f"{count_noun(report.left_count, 'item')} could not be rewritten; the reasons are above.",
                "Fix or move these items and run the command again.",
                ErrorKind.INVALID,
            )


def _find_entity(table: type[Table], name: str) -> type[Entity]:
    entities = {entity.__name__: entity for entity in table.entities.values()}
    if name not in entities:
        remedy = f"Use one of its entities: {', '.join(entities)}."
        raise CommandError(f"{table.__name__} has no entity {name}.", remedy)
    return entities[name]


def _say_plan(plan: MigrationPlan, *, as_json: bool) -> None:
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
            "total_known": plan.total_known,
            "removed_attributes": list(plan.removed_attributes),
            "differences": [
                {"entity": difference.entity, "what": difference.what, "consequence": difference.consequence} for difference in plan.differences
            ],
            "entities": [
                {
                    "entity": entity.entity, "items": entity.items, "rewritten": entity.rewritten,
                    "write_units": entity.write_units, "reasons": dict(entity.reasons),
                }
                for entity in plan.entities
            ],
        },
    )  # fmt: skip


def _say_report(report: BackfillReport, *, as_json: bool) -> None:
    if as_json:
        members = {
            "table": report.table, "items": report.items, "written": report.written,
            "entities": dict(report.by_entity), "guards": report.guards, "write_units": report.write_units,
            "left": report.left_count, "resumed": report.resumed,
            "reasons": [{"key": item.key, "entity": item.entity, "reason": item.reason} for item in report.left],
        }  # fmt: skip
        say_json("tavola.backfill/1", members)
        return
    for item in report.left:
        say(f"{item.entity} {item.key_text}: {item.reason}")
    note(f"{report}, for {report.write_units:,.0f} write units.")
