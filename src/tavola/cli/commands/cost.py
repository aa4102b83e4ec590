"""`tavola cost`: what a design costs in a month, by whom and for what, and what would change it."""

from __future__ import annotations

import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.designs import load_design
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.files import deliver
from tavola.cli.output import complain, note, say, say_json
from tavola.cli.parameters import Argument, Option
from tavola.cli.price_books import DEFAULT_REGION, Date, Prices, Region, load_chosen_book


class Mode(StrEnum):
    """How tables are paid for."""

    ON_DEMAND = "on-demand"
    PROVISIONED = "provisioned"


class TableClass(StrEnum):
    """Where tables are kept."""

    STANDARD = "standard"
    STANDARD_IA = "standard-ia"


def cost(
    target: Annotated[
        str | None,
        Argument(
            metavar="[MODULE[:TABLE]|FILE]",
            help="The module that declares the design, a document of one, or a file of another tool; none with --reads.",
        ),
    ] = None,
    region: Region = None,
    date: Date = None,
    prices: Prices = None,
    mode: Annotated[
        Mode | None, Option("--mode", help="How all tables are paid for; by default as each declares.")
    ] = None,
    table_class: Annotated[
        TableClass | None,
        Option("--class", help="The class of all tables; by default as each declares."),
    ] = None,
    utilisation: Annotated[
        int,
        Option("--target-utilisation", help="Per cent that auto scaling keeps units used.", min=20, max=90),
    ] = 70,
    free_tier: Annotated[
        bool, Option("--free-tier", help="Take off what an account has free each month.")
    ] = False,
    backups: Annotated[
        int, Option("--backups", help="On-demand backups that are kept of each table.", min=0)
    ] = 0,
    stream_polls: Annotated[
        float | None,
        Option(
            "--stream-polls",
            help="GetRecords calls a second on each stream, Lambda's aside.",
            min=0,
            show_default="0",
        ),
    ] = None,
    sparse_share: Annotated[
        float | None,
        Option(
            "--sparse-share",
            help="Which part of the items is in a sparse index.",
            min=0,
            max=1,
            show_default="0.1",
        ),
    ] = None,
    storage_gb: Annotated[
        list[str] | None,
        Option("--storage-gb", metavar="GB|TABLE=GB", help="What a table holds, where it was measured."),
    ] = None,
    reads: Annotated[float | None, Option("--reads", help="Without a design: reads a second.", min=0)] = None,
    writes: Annotated[
        float | None, Option("--writes", help="Without a design: writes a second.", min=0)
    ] = None,
    item_kb: Annotated[
        float | None,
        Option("--item-kb", help="Without a design: the size of an item.", show_default="1"),
    ] = None,
    indexes: Annotated[
        int | None,
        Option(
            "--indexes",
            help="Without a design: indexes that hold whole items.",
            min=0,
            max=20,
            show_default="0",
        ),
    ] = None,
    hours_per_day: Annotated[
        int, Option("--hours-per-day", help="In how many hours a day there is traffic.", min=1, max=24)
    ] = 24,
    eventual: Annotated[
        bool, Option("--eventual", help="Without a design: read eventually, for half the units.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print everything as JSON.")] = False,
    as_csv: Annotated[bool, Option("--csv", help="Print lines and access patterns as CSV.")] = False,
    chart: Annotated[
        Path | None,
        Option("--chart", metavar="FILE.svg|FILE.png", help="Draw the bill into a file too."),
    ] = None,
) -> None:
    """Print a month of a design: line by line, by access pattern, under each way of paying, and what would change it.

    Prices come from dated books; every sum says its date, its region and its month of 730 hours. Without a design,
    --reads and --writes are enough for the capacity that they need and what that costs.
    """
    calculated = reads is not None or writes is not None
    if calculated == (target is not None):
        complain(
            "Nothing to compute a cost of." if target is None else "A design has its own rates.",
            "a design and rates were given" if calculated else "neither a design nor rates were given",
            "Name a design, as `tavola cost shop.model`, or give --reads and --writes without one.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    given = {
        "--mode": mode is not None,
        "--stream-polls": stream_polls is not None,
        "--sparse-share": sparse_share is not None,
        "--chart": chart is not None,
        "--item-kb": item_kb is not None,
        "--eventual": eventual,
        "--indexes": indexes is not None,
    }
    with reporting_errors(f"Cannot compute the cost{'' if target is None else f' of {target}'}."):
        from tavola.design.charts import chart_format
        from tavola.design.cost import Assumptions, TableDemand

        _only_what_applies([name for name, there in given.items() if there], calculated=calculated)
        _only_one(("--json", as_json), ("--csv", as_csv))
        form = None if chart is None else chart_format(chart)
        book = load_chosen_book(region, date, prices)
        today = _today() if date is None else book.date  # prices of a day that was asked for are not old
        options: dict[str, Any] = {
            "mode": None if mode is None else mode.value,
            "table_class": None if table_class is None else _CLASSES[table_class],
            "target": utilisation,
            "hours_per_day": hours_per_day,
            "free_tier": free_tier,
            "backups": backups,
        }
        if stream_polls is not None:
            options["stream_polls_per_second"] = stream_polls
        if sparse_share is not None:
            options["sparse_share"] = sparse_share
        if target is None:
            sizes = _sizes(storage_gb, ("table",))
            demand = TableDemand(
                reads or 0.0,
                writes or 0.0,
                1.0 if item_kb is None else item_kb,
                sizes.get("table", 0.0),
                hours_per_day,
                consistent=not eventual,
                indexes=indexes or 0,
            )
            _calculate(demand, book, Assumptions(**options), today, as_json=as_json, as_csv=as_csv)
            return
        design = load_design(target)
        names = tuple(table.name for table in design.tables)
        assumptions = Assumptions(**options, storage_gb=_sizes(storage_gb, names))
        from tavola.design import cost as room

        costing = room.report_cost(design, assumptions, book, today)
        if chart is not None:
            deliver(chart, room.draw_chart(costing, form or "svg"), "--chart")
            note(f"Drew {chart}.")
    if as_json:
        say_json("tavola.cost/1", room.render_document(costing))
    elif as_csv:
        say(room.render_csv(costing).rstrip())
    else:
        say(room.render_text(costing))


_CLASSES = {TableClass.STANDARD: "STANDARD", TableClass.STANDARD_IA: "STANDARD_INFREQUENT_ACCESS"}


_DESIGNS_ALONE = ("--mode", "--stream-polls", "--sparse-share", "--chart")
_RATES_ALONE = ("--item-kb", "--eventual", "--indexes")


def _only_what_applies(given: list[str], *, calculated: bool) -> None:
    """Refuse options that would change nothing."""
    from tavola.design.cost import CostRefused

    idle = [name for name in given if name in (_DESIGNS_ALONE if calculated else _RATES_ALONE)]
    if idle and calculated:
        raise CostRefused(
            f"{', '.join(idle)} changes nothing without a design; name a design, or leave it out"
        )
    if idle:
        raise CostRefused(
            f"{', '.join(idle)} is for --reads and --writes, and a design says it itself; leave it out"
        )


def _only_one(*options: tuple[str, bool]) -> None:
    """Refuse options of which the first has the say and the others would be silent."""
    from tavola.design.cost import CostRefused

    first, *others = options
    beside = [name for name, there in others if there]
    if first[1] and beside:
        raise CostRefused(f"{first[0]} and {beside[0]} cannot both be followed; give one of them")


def _calculate(
    demand: Any, book: Any, assumptions: Any, today: datetime.date, *, as_json: bool, as_csv: bool
) -> None:
    from tavola.design import cost
    from tavola.prices import labelled_book, load_book

    calculation = cost.calculate(demand, book, assumptions)
    steps: Any = ()
    if book.label == cost.DOCUMENT:
        steps = cost.compare_with_document(demand, labelled_book(cost.DOCUMENT), load_book(DEFAULT_REGION))
    notes = cost.book_notes(book, today)
    if as_json:
        say_json("tavola.cost-calculation/1", cost.calculation_document(calculation, steps, notes))
    elif as_csv:
        say(cost.calculation_csv(calculation).rstrip())
    else:
        say(cost.calculation_text(calculation, steps, notes))


def _sizes(options: list[str] | None, names: tuple[str, ...]) -> dict[str, float]:
    from tavola.design.cost import CostRefused

    sizes: dict[str, float] = {}
    for each in options or ():
        name, sign, size = each.rpartition("=")
        if not sign and len(names) != 1:
            raise CostRefused(
                f"--storage-gb {each} does not say of which table, and there are {', '.join(names)}; give TABLE=GB"
            )
        if sign and name not in names:
            raise CostRefused(
                f"--storage-gb {each} names no table of the design; there are {', '.join(names)}"
            )
        try:
            sizes[name or names[0]] = float(size)
        except ValueError as error:
            raise CostRefused(
                f"--storage-gb {each} is no size; give gigabytes, as 50 or {names[0]}=50"
            ) from error
    return sizes


def _today() -> datetime.date:
    from tavola.clock import SYSTEM_CLOCK

    return datetime.datetime.fromtimestamp(SYSTEM_CLOCK.now(), tz=datetime.UTC).date()
