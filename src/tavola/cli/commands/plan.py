"""`tavola plan` and `tavola deploy`: show what a design changes in its deployed tables, and apply it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import click

from tavola.cli.designs import DesignArgument, TableNameOption, load_deployable_design
from tavola.cli.errors import CommandError, Exit, reporting_errors
from tavola.cli.output import count_noun, note, say, say_json, terminal_width
from tavola.cli.parameters import BUNDLE, AsJson, Option
from tavola.cli.targets import NewTargetOptions, Target, TargetOptions
from tavola.cli.terminal import Role, style

if TYPE_CHECKING:
    from tavola.iac import AppliedChange, DesignChange, TableComparison
    from tavola.model.document import Design

Remaining = tuple["DesignChange", "str | None"]  # a change that was not made, and what it needs

_MARKS: dict[str, tuple[str, Role]] = {
    "create": ("+", "success"), "in place": ("~", "warning"), "backfill": ("~", "warning"), "rebuild": ("!", "error"),
    "rewrite": ("~", "warning"), "replace": ("!", "error"), "remove": ("-", "error"), "elsewhere": (">", "muted"),
}  # fmt: skip
_LABELS = {"elsewhere": "by IaC"}  # effects that read differently on a terminal
_INFRASTRUCTURE = "infrastructure"


def plan(
    context: click.Context,
    design: DesignArgument,
    previous_design: Annotated[
        str | None,
        Option(
            "--previous-design", metavar="DESIGN",
            help="Compare with this design instead of deployed tables; with --store or --endpoint, only for the items.",
        ),
    ] = None,
    as_json: AsJson = False,
    table_name: TableNameOption = None,
    at: TargetOptions = BUNDLE,
) -> None:  # fmt: skip
    """Show the changes that a deployment would make.

    Compares the design with the tables in a database file or at an endpoint, and shows how each change is made (in place,
    backfill, rewrite, replacement) and what it costs. Changes nothing.

    Exits with 0 if there is nothing to change, and with 1 if there is.
    """
    with reporting_errors(f"Cannot plan {design}.", failed=Exit.USAGE):
        from tavola.iac import compare_designs, compare_live, compare_nothing

        loaded = load_deployable_design(design)
        previous = None if previous_design is None else load_deployable_design(previous_design)
        # TAVOLA_ENDPOINT alone does not select the endpoint
        source = context.get_parameter_source("endpoint")
        is_live = at.store is not None or (source is not None and source.name == "COMMANDLINE")
        if previous is not None and not is_live:
            if table_name is not None:
                raise CommandError(
                    "--table-name names a deployed table, and --previous-design compares with none.",
                    "Leave one of them out, or add --store or --endpoint.",
                )
            comparisons = compare_designs(previous, loaded)
        elif at.store is not None and not at.store.exists() and at.endpoint is None:
            note(f"{at.store} does not exist yet; deploy creates it.")
            comparisons = compare_nothing(loaded, _table_names(loaded, table_name))
        else:
            with at.open() as target:
                comparisons = compare_live(
                    target.connection, loaded, previous, _table_names(loaded, table_name)
                )
        prices = _ChangePrices(at.region, loaded)
        if as_json:
            _say_plan_json(comparisons, prices)
        else:
            _say_plan(comparisons, prices, options=_required_options(loaded, comparisons, table_name))
    if any(comparison.changes for comparison in comparisons):
        raise click.exceptions.Exit(Exit.FAILED)


def deploy(
    design: DesignArgument,
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be done; change nothing.")] = False,
    drop: Annotated[
        bool,
        Option("--drop", help="Also remove indexes, streams and capacity that the design does not have."),
    ] = False,
    allow_replacement: Annotated[
        bool,
        Option(
            "--allow-replacement", help="Also replace indexes and streams that cannot be changed in place."
        ),
    ] = False,
    as_json: AsJson = False,
    table_name: TableNameOption = None,
    at: NewTargetOptions = BUNDLE,
) -> None:
    """Create or update tables to match a design.

    Makes one change after the other; an interrupted deployment continues when it is run again. Indexes are removed only with
    --drop or --allow-replacement, and tables never.

    Exits with 1 if changes remain, other than those that infrastructure code makes.
    """
    remaining: Sequence[Remaining] = ()
    applied: Sequence[AppliedChange] = ()
    with reporting_errors(f"Cannot deploy {design}.", failed=Exit.USAGE):
        from tavola.iac import Deployment, DeployPermissions, compare_nothing

        loaded = load_deployable_design(design)
        names = _table_names(loaded, table_name)
        prices = _ChangePrices(at.region, loaded)
        is_plan_shown = False
        if at.store is not None and not at.store.exists():  # the file is created after the confirmation
            comparisons = compare_nothing(loaded, names)
            _say_plan(comparisons, prices, to=note if as_json else say)
            changes = [change for comparison in comparisons for change in comparison.changes]
            if dry_run:
                remaining = [(change, None if change.parts else _INFRASTRUCTURE) for change in changes]
                _say_result(comparisons, applied, remaining, as_json=as_json, dry_run=True)
                raise click.exceptions.Exit(Exit.FAILED)
            if not yes:
                _confirm(sum(change.effect == "create" for change in changes), str(at))
            is_plan_shown = yes = True
        with at.open(new=not dry_run) as target:
            deployment = Deployment(
                target.connection,
                loaded,
                names=names,
                allowed=DeployPermissions(drop, allow_replacement),
                wait=lambda name: _wait_for_table(target, name),
            )
            comparisons = deployment.compare()
            changes = [change for comparison in comparisons for change in comparison.changes]
            permitted = [change for change in changes if deployment.required_option(change) is None]
            if not is_plan_shown:
                _say_plan(comparisons, prices, to=note if as_json else say)
            if permitted and not dry_run:
                if not yes:
                    _confirm(len(permitted), str(at))
                try:
                    applied = deployment.apply(*permitted, on_step=note)
                except KeyboardInterrupt:
                    note("Interrupted. The changes above were started; run the command again to continue.")
                    raise
                changes = [change for comparison in deployment.compare() for change in comparison.changes]
            remaining = [(change, deployment.required_option(change)) for change in changes]
    _say_result(comparisons, applied, remaining, as_json=as_json, dry_run=dry_run)
    if any(needs != _INFRASTRUCTURE for _, needs in remaining):
        raise click.exceptions.Exit(Exit.FAILED)


def _table_names(design: Design, table_name: str | None) -> dict[str, str]:
    if table_name is None:
        return {}
    if len(design.tables) > 1:
        labels = ", ".join(table.label for table in design.tables)
        raise CommandError(
            f"--table-name needs a design with one table; this one has {labels}.", "Name one: MODULE:TABLE."
        )
    return {design.tables[0].name: table_name}


def _confirm(count: int, where: str) -> None:
    """Ask before anything is changed; exit unless the user agrees."""
    if not sys.stdin.isatty():
        raise CommandError(
            f"Applying {count_noun(count, 'change')} needs confirmation, and standard input is not a terminal.",
            "Add --yes to apply them, or --dry-run to show them.",
        )
    if not click.confirm(f"Apply {count_noun(count, 'change')} to {where}?", err=True):
        note("Nothing was changed.")
        raise click.exceptions.Exit(Exit.FAILED)


def _wait_for_table(target: Target, name: str) -> None:
    """Wait until a table and its indexes are active, showing the progress of an index that is being built."""
    from tavola.iac import backfill_progress

    def describe() -> dict[str, Any]:
        described: dict[str, Any] = target.call("DescribeTable", TableName=name)["Table"]
        return described

    described = describe()
    if backfill_progress(described) is not None:
        total = described.get("ItemCount", 0)
        target.follow(f"Waiting for {name}", total, lambda: backfill_progress(describe()))


class _ChangePrices:
    """Prices of the item reads and writes of a change; provisioned tables have paid for their units."""

    def __init__(self, region: str | None, design: Design) -> None:
        from tavola.prices import UnknownPriceBook, load_book

        substitute = ""
        try:
            self._book = load_book(region or "us-east-1")
        except UnknownPriceBook:
            self._book = load_book("us-east-1")
            substitute = f" (there is no price book for {region})"
        self.title = f"{self._book.title}{substitute}"
        self.source = f"{self._book.region} prices of {self._book.date.isoformat()}"
        if substitute:
            self.source += f"; there is no price book for {region}"
        self._provisioned = {table.name for table in design.tables if table.settings.read_units is not None}

    def cost_of(self, change: DesignChange) -> Decimal | None:
        """Return the cost of a change in dollars; None if it is free or unknown."""
        work = change.work
        if work is None or work.write_units is None or change.table in self._provisioned:
            return None
        writes = self._book.price("write_request_unit").of(work.write_units)
        reads = self._book.price("read_request_unit").of(work.read_units or 0.0)
        return writes + reads


def _required_options(
    design: Design, comparisons: Sequence[TableComparison], table_name: str | None
) -> dict[int, str]:
    """Return the option of `tavola deploy` that each change needs, by the change's id."""
    from tavola.iac import DeployPermissions, required_option

    tables = {name: table for table in design.tables for name in (table.name, table_name) if name is not None}
    needed = {}
    for change in (
        change for comparison in comparisons for change in comparison.changes if change.table in tables
    ):
        option = required_option(change, tables[change.table], DeployPermissions())
        if option is not None and option.startswith("--"):
            needed[id(change)] = option
    return needed


def _say_plan(
    comparisons: Sequence[TableComparison],
    prices: _ChangePrices,
    to: Callable[[str], None] = say,
    options: Mapping[int, str] | None = None,
) -> None:
    changes = [change for comparison in comparisons for change in comparison.changes]
    if not changes:
        tables = comparisons[0].table if len(comparisons) == 1 else f"all {len(comparisons)} tables"
        match = "match" if len(comparisons) > 1 else "matches"
        limit = (
            "; see the notes for settings that are not compared"
            if any(comparison.notes for comparison in comparisons)
            else ""
        )
        to(style(f"No changes: {tables} {match} the design{limit}.", "success"))
    for comparison in comparisons:
        if not comparison.changes and not comparison.notes:
            continue
        to(style(f"Table {comparison.table}", "heading"))
        for change in comparison.changes:
            mark, role = _MARKS[change.effect]
            first, *rest = _wrap(change.what, 14, 14)
            to(f"  {style(f'{mark} {_LABELS.get(change.effect, change.effect):<9}', role)} {first.lstrip()}")
            for line in (*rest, *_detail_lines(change, prices, (options or {}).get(id(change)))):
                to(line)
        for remark in comparison.notes:
            for line in _wrap(f"note: {remark}", 4):
                to(line)
    if changes:
        to(_summarize(changes, prices))


def _detail_lines(change: DesignChange, prices: _ChangePrices, option: str | None) -> Iterator[str]:
    """Yield the work, cost, assumptions and warnings of a change, and the option that `tavola deploy` needs for it."""
    from tavola.design.text import format_money

    work = change.work
    if work is not None:
        usd = prices.cost_of(change) if work.items else None
        yield from _wrap(f"{work}{'' if usd is None else f'; {format_money(usd)}'}", 6)
        if work.items != 0:
            for assumption in work.assumed:
                yield from _wrap(f"assumed: {assumption}", 6)
    for warning in change.warnings:
        yield from _wrap(f"note: {warning}", 6)
    if option is not None:
        yield f"      deploy needs {option} for this"


def _wrap(text: str, indent: int, hanging: int | None = None) -> list[str]:
    """Wrap a text to the terminal; further lines are indented by two columns more, or by `hanging`."""
    return wrap(
        text,
        max(terminal_width(), 60),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2 if hanging is None else hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summarize(changes: Sequence[DesignChange], prices: _ChangePrices) -> str:
    from tavola.design.text import format_money

    counts = {effect: sum(change.effect == effect for change in changes) for effect in _MARKS}
    effects = ", ".join(
        f"{number} {_LABELS.get(effect, effect)}" for effect, number in counts.items() if number
    )
    costs = [usd for change in changes if (usd := prices.cost_of(change))]
    total = style(format_money(sum(costs, Decimal(0))), "money")
    cost = f"; one-time cost {total} ({prices.source})" if costs else ""
    return f"{count_noun(len(changes), 'change')}: {effects}{cost}."


def _say_plan_json(comparisons: Sequence[TableComparison], prices: _ChangePrices) -> None:
    tables = [
        {
            "table": comparison.table,
            "exists": comparison.exists,
            "changes": [_change_document(change, prices.cost_of(change)) for change in comparison.changes],
            "notes": list(comparison.notes),
        }
        for comparison in comparisons
    ]
    say_json("tavola.plan/1", {"prices": prices.title, "tables": tables})


def _change_document(change: DesignChange, usd: Decimal | None = None) -> dict[str, Any]:
    work = change.work
    return {
        "kind": change.kind,
        "effect": change.effect,
        "place": change.place,
        "what": change.what,
        "removes": change.removes,
        "warnings": list(change.warnings),
        "work": None
        if work is None
        else {
            "kind": work.kind,
            "items": work.items,
            "write_units": work.write_units,
            "read_units": work.read_units,
            "at_most": work.most,
            "seconds": work.seconds,
            "usd": None if usd is None else str(usd),
            "assumed": list(work.assumed),
        },
    }


def _say_result(
    comparisons: Sequence[TableComparison],
    applied: Sequence[AppliedChange],
    remaining: Sequence[Remaining],
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Print what was applied and what remains; in a dry run, the changes that would be applied remain."""
    if as_json:
        members = {
            "tables": [comparison.table for comparison in comparisons],
            "done": [
                {
                    **_change_document(applied_change.change),
                    "table": applied_change.change.table,
                    "note": applied_change.note,
                }
                for applied_change in applied
            ],
            "left": [
                {**_change_document(change), "table": change.table, "needs": needs}
                for change, needs in remaining
            ],
        }
        say_json("tavola.deploy/1", members)
        return
    for applied_change in applied:
        if applied_change.note:
            note(f"{applied_change.change.table}: {applied_change.note}.")
    if applied:
        say(style(f"Applied {count_noun(len(applied), 'change')}.", "success"))
    if any(
        applied_change.change.kind == "add index" and applied_change.change.warnings
        for applied_change in applied
    ):
        note("Existing items lack the keys of a new index; `tavola backfill --dry-run` shows them.")
    for change, needs in remaining:
        if needs is not None or not dry_run:
            say(f"Not applied: {change}. {_remedy_for(needs)}".rstrip())


def _remedy_for(needs: str | None) -> str:
    if needs is None or needs == _INFRASTRUCTURE:
        return ""
    if needs.startswith("--"):
        return f"Apply it with {needs}."
    if needs.startswith("tavola "):
        return f"Run `{needs}`."
    return "deploy never deletes a table: the steps are listed with the change."
