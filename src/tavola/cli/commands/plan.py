"""`tavola plan` and `tavola deploy`: what a design changes where its tables are, and making it so."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

import click

from tavola.cli.designs import DesignArgument, DesignRefused, TableName, load_design
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import complain, note, say, say_json
from tavola.cli.parameters import BUNDLE, Option
from tavola.cli.targets import (
    Target,
    TargetOptions,
    TargetRefused,
)

AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print the changes as JSON.")]

_MARKS = {
    "create": "+", "in place": "~", "backfill": "~", "rebuild": "!", "rewrite": "~", "replace": "!", "remove": "-", "elsewhere": ">",
}  # fmt: skip
_BY = {
    "a copy by hand": "Deploy deletes no table: the steps are told with the change.",
    "infrastructure": "",
}


def plan(
    context: click.Context,
    target: DesignArgument,
    former: Annotated[
        str | None,
        Option(
            "--from",
            metavar="MODULE[:TABLE]|FILE",
            help="The design as it was: what becomes of its tables and items. With --store or --endpoint, of items alone.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    table_name: TableName = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Show what a design changes, how (in place, backfill, rewrite, replacement) and what it costs.

    It is held against the tables of a store or an endpoint, or with --from against a former design. Nothing is changed. The exit
    code is 0 if there is nothing to change, and 1 if there is.
    """
    with reporting_errors(f"Cannot plan {target}.", failed=Exit.USAGE):
        from tavola.iac import compare_designs, compare_live, compare_nothing

        design = _design(target)
        was = None if former is None else _design(former)
        source = context.get_parameter_source("endpoint")  # one of the environment is no wish to ask it
        live = at.store is not None or (source is not None and source.name == "COMMANDLINE")
        if was is not None and not live:
            if table_name is not None:
                raise TargetRefused(
                    "--table-name says what a table is called where it is, and --from asks no store and no endpoint; leave one out"
                )
            found = compare_designs(was, design)
        elif at.store is not None and not at.store.exists() and at.endpoint is None:
            note(f"{at.store} is not there yet: deploy makes it.")
            found = compare_nothing(design, _names(design, table_name))
        else:
            with at.open() as there:
                found = compare_live(there.connection, design, was, _names(design, table_name))
        money = _Money(at.region, design)
        if as_json:
            _say_json(found, money)
        else:
            _say(found, money, options=_options(design, found, table_name))
    if any(each.changes for each in found):
        raise click.exceptions.Exit(Exit.FAILED)


def deploy(
    target: DesignArgument,
    yes: Annotated[bool, Option("--yes", help="Do it without asking.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Tell what would be done, and do nothing.")] = False,
    drop: Annotated[
        bool,
        Option("--drop", help="Also take away what the design does not have: indexes, a stream, units."),
    ] = False,
    allow_replacement: Annotated[
        bool,
        Option(
            "--allow-replacement",
            help="Also end what must begin otherwise: an index of another key, a stream of another view. No table is deleted.",
        ),
    ] = False,
    as_json: AsJson = False,
    table_name: TableName = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Make the tables of a design in a store or at an endpoint, or make them what the design says.

    One change is made after the other and waited for; broken off, it goes on when it is run again. No index is taken away unless
    --drop or --allow-replacement says so, and no table ever. The exit code is 1 if anything is left that is otherwise, beside what
    infrastructure does.
    """
    left: Sequence[Any] = ()
    done: Sequence[Any] = ()
    with reporting_errors(f"Cannot deploy {target}.", failed=Exit.USAGE):
        from tavola.iac import Deployment, DeployPermissions, compare_nothing

        design = _design(target)
        names = _names(design, table_name)
        money = _Money(at.region, design)
        seen = False
        if at.store is not None and not at.store.exists():  # nothing is created before the user confirms
            found = compare_nothing(design, names)
            _say(found, money, to=note if as_json else say)
            if dry_run:
                changes = [change for each in found for change in each.changes]
                left = [(change, None if change.parts else "infrastructure") for change in changes]
                _tell(found, done, left, as_json=as_json, dry=True)
                raise click.exceptions.Exit(Exit.FAILED)
            yes = yes or _confirm(
                sum(each.effect == "create" for comparison in found for each in comparison.changes), str(at)
            )
            seen = True
        with at.open(new=not dry_run) as there:
            allowed = DeployPermissions(drop, allow_replacement)
            work = Deployment(
                there.connection, design, names=names, allowed=allowed, wait=lambda name: _wait(there, name)
            )
            found = work.compare()
            changes = [change for each in found for change in each.changes]
            wanted = [change for change in changes if work.required_option(change) is None]
            if not seen:
                _say(found, money, to=note if as_json else say)
            if wanted and not dry_run:
                if not yes:
                    _confirm(len(wanted), str(at))
                try:
                    done = work.apply(*wanted, on_step=note)
                except KeyboardInterrupt:
                    note(
                        "Broken off: what was told above was begun, the rest was not. Run it again, and it goes on from there."
                    )
                    raise
                changes = [change for each in work.compare() for change in each.changes]
            left = [(change, work.required_option(change)) for change in changes]
    _tell(found, done, left, as_json=as_json, dry=dry_run)
    if any(needs != "infrastructure" for _, needs in left):
        raise click.exceptions.Exit(Exit.FAILED)


def _design(text: str) -> Any:
    design = load_design(text)
    if not design.tables:
        raise DesignRefused(text, "it has no table; declare one, or name another module or file")
    return design


def _names(design: Any, table_name: str | None) -> dict[str, str]:
    if table_name is None:
        return {}
    if len(design.tables) > 1:
        known = ", ".join(table.label for table in design.tables)
        raise TargetRefused(f"--table-name is given for several tables: {known}; name one, as MODULE:TABLE")
    return {design.tables[0].name: table_name}


def _confirm(count: int, where: str) -> bool:
    """Ask before anything is changed, and return that it may be; who cannot be asked must have said so."""
    if not sys.stdin.isatty():
        complain(
            f"Not deployed to {where}.",
            f"{_count_changes(count)} would be made, and nobody is there to be asked.",
            "Say --yes to make them, or --dry-run to look alone.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    if not click.confirm(f"Make {_count_changes(count)} at {where}?", err=True):
        note("Nothing was changed.")
        raise click.exceptions.Exit(Exit.FAILED)
    return True


def _count_changes(count: int) -> str:
    return f"{count} {'change' if count == 1 else 'changes'}"


def _wait(there: Target, name: str) -> None:
    """Wait until a table and its indexes are active, showing how far an index is that is being filled."""
    from tavola.iac import backfill_progress

    def asked() -> Any:
        return there.call("DescribeTable", TableName=name)["Table"]

    described = asked()
    if backfill_progress(described) is not None:
        there.follow(f"Waiting for {name}", described.get("ItemCount", 0), lambda: backfill_progress(asked()))


class _Money:
    """What work on items costs on demand, by a price book; a provisioned table has paid for its units."""

    def __init__(self, region: str | None, design: Any) -> None:
        from tavola.prices import BookUnknown, load_book

        self.title = ""
        try:
            self.book = load_book(region or "us-east-1")
        except BookUnknown:
            self.book = load_book("us-east-1")
            self.title = f", for there is no price book of {region}"
        self.title = f"{self.book.title}{self.title}"
        self._provisioned = {table.name for table in design.tables if table.settings.read_units is not None}

    def of(self, change: Any) -> Decimal | None:
        """Return the cost of a change in dollars; None if it is free or unknown."""
        work = change.work
        if work is None or work.write_units is None or change.table in self._provisioned:
            return None
        writes: Decimal = self.book.price("write_request_unit").of(work.write_units)
        reads: Decimal = self.book.price("read_request_unit").of(work.read_units or 0.0)
        return writes + reads


def _options(design: Any, found: Sequence[Any], table_name: str | None) -> dict[int, str]:
    """Return which option of deploy each change takes, by its identity; none where deploy makes it, or does not."""
    from tavola.iac import DeployPermissions, required_option

    tables = {name: table for table in design.tables for name in (table.name, table_name) if name is not None}
    needed = {}
    for change in (change for each in found for change in each.changes if change.table in tables):
        option = required_option(change, tables[change.table], DeployPermissions())
        if option is not None and option.startswith("--"):
            needed[id(change)] = option
    return needed


def _say(
    found: Sequence[Any], money: _Money, to: Any = say, options: Mapping[int, str] | None = None
) -> None:
    changes = [change for each in found for change in each.changes]
    if not changes:
        if any(each.notes for each in found):
            to(
                f"No changes of what is looked at: {_tables(found)} as the design says, as far as a table tells."
            )
        else:
            to(f"No changes: {_tables(found)} as the design says.")
    for each in found:
        if not each.changes and not each.notes:
            continue
        to(each.table)
        for change in each.changes:
            to(f"  {_MARKS[change.effect]} {change.effect:<9} {change.what}")
            if change.work is not None:
                usd = money.of(change)
                to(f"      {change.work}{'' if usd is None else f'; ${usd:,.2f}'}")
                for assumed in change.work.assumed:
                    to(f"      assumed: {assumed}")
            for warning in change.warnings:
                to(f"      note: {warning}")
            if options and id(change) in options:
                to(f"      deploy makes it with {options[id(change)]} alone")
        for remark in each.notes:
            to(f"    note: {remark}")
    if changes:
        to(_summary(changes, money))


def _tables(found: Sequence[Any]) -> str:
    return f"the {len(found)} tables are" if len(found) != 1 else f"{found[0].table} is"


def _summary(changes: Sequence[Any], money: _Money) -> str:
    counts = {effect: sum(change.effect == effect for change in changes) for effect in _MARKS}
    effects = ", ".join(f"{number} {effect}" for effect, number in counts.items() if number)
    priced = [usd for change in changes if (usd := money.of(change)) is not None]
    cost = f"; ${sum(priced):,.2f} once, by {money.title}" if priced else ""
    return f"{_count_changes(len(changes))}: {effects}{cost}."


def _say_json(found: Sequence[Any], money: _Money) -> None:
    say_json(
        "tavola.plan/1",
        {
            "prices": money.title,
            "tables": [
                {
                    "table": each.table,
                    "exists": each.exists,
                    "changes": [_as_data(change, money.of(change)) for change in each.changes],
                    "notes": list(each.notes),
                }
                for each in found
            ],
        },
    )


def _as_data(change: Any, usd: Decimal | None = None) -> dict[str, Any]:
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


def _tell(
    found: Sequence[Any],
    done: Sequence[Any],
    left: Sequence[tuple[Any, str | None]],
    *,
    as_json: bool,
    dry: bool,
) -> None:
    """Tell what was done, and what is left; of a dry run, what would be done is left."""
    if as_json:
        say_json(
            "tavola.deploy/1",
            {
                "tables": [each.table for each in found],
                "done": [
                    {**_as_data(each.change), "table": each.change.table, "told": each.note} for each in done
                ],
                "left": [
                    {**_as_data(change), "table": change.table, "needs": needs} for change, needs in left
                ],
            },
        )
        return
    for each in done:
        if each.note:
            note(f"{each.change.table}: {each.note}.")
    if done:
        say(f"Done: {_count_changes(len(done))}.")
    if any(each.change.kind == "add index" and each.change.warnings for each in done):
        note(
            "Items that were written before lack the keys of a new index; tavola backfill --plan tells of them."
        )
    for change, needs in left:
        if needs or not dry:
            wanted = _BY.get(needs, f"{needs} makes it so.") if needs else ""
            say(f"Left: {change}. {wanted}".rstrip())
