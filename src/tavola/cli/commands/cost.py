"""`tavola cost`: estimate what a design costs in a month, and how to lower it."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tavola.cli.designs import load_design
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import write_result
from tavola.cli.output import note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, AsJson, Option
from tavola.cli.price_books import DEFAULT_REGION, PriceOptions
from tavola.cli.terminal import style_report

if TYPE_CHECKING:
    from tavola.design.cost import Assumptions, TableDemand
    from tavola.prices import PriceBook

_TABLE_CLASSES = {"standard": "STANDARD", "standard-ia": "STANDARD_INFREQUENT_ACCESS"}
_DESIGN_OPTIONS = ("--mode", "--stream-polls", "--sparse-share", "--chart")
_RATE_OPTIONS = ("--item-kb", "--eventual", "--indexes")


def cost(
    design: Annotated[
        str | None,
        Argument(metavar="[DESIGN]", help="A module or file, as `tavola lint` takes it; or use --reads and --writes."),
    ] = None,
    price_options: PriceOptions = BUNDLE,
    mode: Annotated[
        Literal["on-demand", "provisioned"] | None,
        Option("--mode", help="Capacity mode of all tables. Default: as declared for each."),
    ] = None,
    table_class: Annotated[
        Literal["standard", "standard-ia"] | None,
        Option("--table-class", help="Table class of all tables. Default: as declared for each."),
    ] = None,
    target_utilization: Annotated[
        int,
        Option("--target-utilization", metavar="PERCENT", help="Target utilization of auto scaling.", min=20, max=90),
    ] = 70,
    free_tier: Annotated[bool, Option("--free-tier", help="Subtract the monthly free tier.")] = False,
    backups: Annotated[
        int, Option("--backups", metavar="COUNT", help="On-demand backups kept per table.", min=0)
    ] = 0,
    stream_polls: Annotated[
        float | None,
        Option(
            "--stream-polls", metavar="RATE", min=0, show_default="0",
            help="GetRecords calls per second on each stream, not counting Lambda.",
        ),
    ] = None,
    sparse_share: Annotated[
        float | None,
        Option(
            "--sparse-share", metavar="SHARE", min=0, max=1, show_default="0.1",
            help="Share of the items that a sparse index contains.",
        ),
    ] = None,
    storage_gb: Annotated[
        list[str] | None,
        Option("--storage-gb", metavar="GB|TABLE=GB", help="Measured size of a table; repeatable."),
    ] = None,
    reads: Annotated[
        float | None, Option("--reads", metavar="RATE", help="Without a design: reads per second.", min=0)
    ] = None,
    writes: Annotated[
        float | None, Option("--writes", metavar="RATE", help="Without a design: writes per second.", min=0)
    ] = None,
    item_kb: Annotated[
        float | None,
        Option("--item-kb", metavar="KB", help="Without a design: item size.", show_default="1"),
    ] = None,
    indexes: Annotated[
        int | None,
        Option(
            "--indexes", metavar="COUNT", min=0, max=20, show_default="0",
            help="Without a design: number of indexes that project all attributes.",
        ),
    ] = None,
    hours_per_day: Annotated[
        int, Option("--hours-per-day", metavar="HOURS", help="Hours of traffic per day.", min=1, max=24)
    ] = 24,
    eventual: Annotated[
        bool, Option("--eventual", help="Without a design: eventually consistent reads.")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, Option("--csv", help="Print the bill and the access patterns as CSV.")] = False,
    chart: Annotated[
        Path | None, Option("--chart", metavar="FILE.svg|FILE.png", help="Draw the bill as a chart.")
    ] = None,
) -> None:  # fmt: skip
    """Estimate the monthly cost of a design.

    Shows the bill by resource and by access pattern, compares capacity modes, and suggests savings. Prices come from dated price
    books; a month has 730 hours. Without a design, --reads and --writes give the required capacity and its cost.
    """
    with reporting_errors(
        "Cannot estimate the cost." if design is None else f"Cannot estimate the cost of {design}."
    ):
        from tavola.design import cost as costs
        from tavola.design.charts import chart_format

        has_rates = reads is not None or writes is not None
        if has_rates == (design is not None):
            problem = (
                "A design and rates cannot be combined."
                if has_rates
                else "No design and no rates were given."
            )
            raise CommandError(problem, "Name a design, or use --reads and --writes without one.")
        used = {
            "--mode": mode is not None, "--stream-polls": stream_polls is not None,
            "--sparse-share": sparse_share is not None, "--chart": chart is not None,
            "--item-kb": item_kb is not None, "--eventual": eventual, "--indexes": indexes is not None,
        }  # fmt: skip
        _check_options([name for name, is_used in used.items() if is_used], has_rates=has_rates)
        if as_json and as_csv:
            raise CommandError("--json and --csv cannot be combined.", "Use one of them.")
        chart_type = "svg" if chart is None else chart_format(chart)
        book = price_options.load_book()
        # With --date the user chose old prices, so they are not reported as outdated.
        today = _today() if price_options.date is None else book.date
        options: dict[str, Any] = {
            "mode": mode,
            "table_class": table_class and _TABLE_CLASSES[table_class],
            "target": target_utilization,
            "hours_per_day": hours_per_day,
            "free_tier": free_tier,
            "backups": backups,
        }
        if stream_polls is not None:
            options["stream_polls_per_second"] = stream_polls
        if sparse_share is not None:
            options["sparse_share"] = sparse_share
        if design is None:
            demand = costs.TableDemand(
                reads or 0.0,
                writes or 0.0,
                1.0 if item_kb is None else item_kb,
                _parse_sizes(storage_gb, ("table",)).get("table", 0.0),
                hours_per_day,
                consistent=not eventual,
                indexes=indexes or 0,
            )
            _say_calculation(
                demand, book, costs.Assumptions(**options), today, as_json=as_json, as_csv=as_csv
            )
            return
        loaded = load_design(design)
        sizes = _parse_sizes(storage_gb, tuple(table.name for table in loaded.tables))
        report = costs.report_cost(loaded, costs.Assumptions(**options, storage_gb=sizes), book, today)
        if chart is not None:
            write_result(chart, costs.draw_chart(report, chart_type), "--chart")
            note(f"Wrote {chart}.")
    if as_json:
        say_json("tavola.cost/1", costs.render_document(report))
    elif as_csv:
        say(costs.render_csv(report).rstrip())
    else:
        say(style_report(costs.render_text(report)))


def _check_options(used: list[str], *, has_rates: bool) -> None:
    """Reject options that would have no effect."""
    unused = [name for name in used if name in (_DESIGN_OPTIONS if has_rates else _RATE_OPTIONS)]
    if unused and has_rates:
        raise CommandError(f"{', '.join(unused)} needs a design.", "Name a design, or leave it out.")
    if unused:
        raise CommandError(f"{', '.join(unused)} cannot be combined with a design.", "Leave it out.")


def _say_calculation(
    demand: TableDemand,
    book: PriceBook,
    assumptions: Assumptions,
    today: datetime.date,
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    from tavola.design import cost as costs
    from tavola.prices import labelled_book, load_book

    calculation = costs.calculate(demand, book, assumptions)
    steps: Any = ()
    if book.label == costs.DOCUMENT:
        steps = costs.compare_with_document(demand, labelled_book(costs.DOCUMENT), load_book(DEFAULT_REGION))
    notes = costs.book_notes(book, today)
    if as_json:
        say_json("tavola.cost-calculation/1", costs.calculation_document(calculation, steps, notes))
    elif as_csv:
        say(costs.calculation_csv(calculation).rstrip())
    else:
        say(style_report(costs.calculation_text(calculation, steps, notes)))


def _parse_sizes(options: list[str] | None, tables: tuple[str, ...]) -> dict[str, float]:
    """Return the table sizes of `--storage-gb` options by table name."""
    sizes: dict[str, float] = {}
    for text in options or ():
        name, sign, size = text.rpartition("=")
        if not sign and len(tables) != 1:
            raise CommandError(
                f"--storage-gb {text} does not name a table.",
                f"Use TABLE=GB; the tables are {', '.join(tables)}.",
            )
        if sign and name not in tables:
            raise CommandError(f"The design has no table {name}.", f"Its tables are {', '.join(tables)}.")
        try:
            sizes[name or tables[0]] = float(size)
        except ValueError as error:
            raise CommandError(
                f"--storage-gb {text} is not a size.", f"Use gigabytes, such as 50 or {tables[0]}=50."
            ) from error
    return sizes


def _today() -> datetime.date:
    from tavola.clock import SYSTEM_CLOCK

    return datetime.datetime.fromtimestamp(SYSTEM_CLOCK.now(), tz=datetime.UTC).date()
