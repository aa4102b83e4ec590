"""`tavola simulate`: simulate the traffic of a design on DynamoDB partitions and report throttling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from tavola.cli.commands.log import check_access_log
from tavola.cli.designs import DesignArgument, load_design
from tavola.cli.errors import CommandError, Exit, reporting_errors
from tavola.cli.files import write_result
from tavola.cli.output import bar, note, say, say_json
from tavola.cli.parameters import AsJson, Option
from tavola.cli.terminal import style_report
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.design.simulation import Burst

_BURST = re.compile(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)(s|m|h)(?:@(\d+(?:\.\d+)?))?")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_DAY_HOURS = 24.0
_DEFAULT_PEAK = 2.0


def simulate(
    design: DesignArgument,
    hours: Annotated[
        float | None,
        Option(show_default="24", metavar="HOURS", help="Hours to simulate; less than a day is around the busiest hour."),
    ] = None,
    rate_factor: Annotated[float, Option(metavar="FACTOR", help="Multiply all rates by this factor.")] = 1.0,
    skew: Annotated[
        float,
        Option(metavar="EXPONENT", help="Zipf exponent for patterns that declare none; 0 is a uniform distribution."),
    ] = 0.8,
    peak: Annotated[
        float | None,
        Option(
            metavar="FACTOR", show_default="2",
            help="Ratio of peak to mean rate, for patterns that declare no peak.",
        ),
    ] = None,
    burst: Annotated[
        list[str] | None,
        Option(
            metavar="FACTORxTIME[@PER_HOUR]",
            help="Add bursts: 5x60s@2 is five times the traffic for a minute, twice an hour.",
        ),
    ] = None,
    mode: Annotated[
        Literal["on-demand", "provisioned"] | None, Option(help="Capacity mode. Default: as each table declares.")
    ] = None,
    read_units: Annotated[
        float | None, Option(metavar="UNITS", help="Provisioned read units of every table and index.")
    ] = None,
    write_units: Annotated[
        float | None, Option(metavar="UNITS", help="Provisioned write units of every table and index.")
    ] = None,
    quota: Annotated[
        float, Option(metavar="UNITS", help="The account's limit of on-demand units per table.")
    ] = 40_000,
    warm: Annotated[
        bool, Option("--warm", help="Start with the partitions that days of this traffic lead to.")
    ] = False,
    cold: Annotated[
        bool, Option("--cold", help="Start with the partitions of a new table, even if less than a day is simulated.")
    ] = False,
    trace: Annotated[
        Path | None,
        Option(metavar="FILE", help="Replay an access log of `tavola serve` instead of the declared rates."),
    ] = None,
    seed: Annotated[int, Option(help="Seed of the random numbers.")] = 0,
    chart: Annotated[
        Path | None,
        Option(metavar="FILE.svg|FILE.png", help="Draw heat maps of the most throttled tables and indexes."),
    ] = None,
    chart_table: Annotated[
        str | None,
        Option("--chart-table", metavar="TABLE[/INDEX]", help="Draw only this one; append ' reads' or ' writes'."),
    ] = None,
    fail_above: Annotated[
        float | None,
        Option("--fail-above", metavar="PERCENT", help="Exit with 1 if more requests than this are throttled."),
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Simulate a day of traffic and report throttling.

    Runs the access patterns of the design on a model of DynamoDB's partitions. A whole day and a trace start with the partitions
    of a new table unless --warm is given; less than a day starts with those of the day before.
    """
    with reporting_errors(f"Cannot simulate {design}.", failed=Exit.USAGE):
        from tavola.design import simulation
        from tavola.design.charts import chart_format
        from tavola.design.simulation import Scenario

        chart_type = "svg" if chart is None else chart_format(chart)
        _check_combinations(trace, hours, peak, burst, chart, chart_table, fail_above)
        if warm and cold:
            raise CommandError("--warm and --cold cannot be combined.", "Use one of them.")
        if mode == "on-demand" and (read_units is not None or write_units is not None):
            raise CommandError(
                "--read-units and --write-units apply to provisioned tables.",
                "Leave them out, or change --mode.",
            )
        is_provisioned = read_units is not None or write_units is not None
        scenario = Scenario(
            hours=_DAY_HOURS if hours is None else hours,
            seed=seed,
            rate_factor=rate_factor,
            skew=skew,
            peak=_DEFAULT_PEAK if peak is None else peak,
            bursts=tuple(_parse_burst(text) for text in burst or ()),
            mode="provisioned" if is_provisioned else mode or "declared",
            read_units=read_units,
            write_units=write_units,
            quota=quota,
            warm=warm,
            settled=trace is None and hours is not None and hours < _DAY_HOURS and not cold,
        )
        loaded = load_design(design)
        if trace is None:
            workload = simulation.build_workload(loaded, scenario)
        else:
            workload = simulation.read_trace(_read_records(trace), loaded, scenario)
        with bar("Simulating", workload.rates.seconds) as show:
            result = simulation.run_workload(workload, scenario, lambda done, _total: show(done))
        if as_json:
            say_json(simulation.SCHEMA, result.to_json())
        else:
            say(style_report("\n".join(simulation.report_lines(result))))
        if chart is not None:
            write_result(chart, simulation.chart(result, chart_type, chart_table), "--chart")
            note(f"Wrote {chart}.")
    if fail_above is not None and result.throttled * 100 > fail_above:
        note(f"{result.throttled * 100:.2f}% of requests are throttled, more than {fail_above:g}%.")
        raise click.exceptions.Exit(Exit.FAILED)


def _check_combinations(
    trace: Path | None,
    hours: float | None,
    peak: float | None,
    burst: list[str] | None,
    chart: Path | None,
    chart_table: str | None,
    fail_above: float | None,
) -> None:
    """Reject options that would have no effect."""
    rate_options = {"--hours": hours, "--peak": peak, "--burst": burst or None}
    unused = [name for name, value in rate_options.items() if value is not None]
    if trace is not None and unused:
        raise CommandError(
            f"{', '.join(unused)} cannot be combined with --trace, which has its own times.",
            "Leave it out, or scale the trace with --rate-factor.",
        )
    if chart_table is not None and chart is None:
        raise CommandError("--chart-table needs --chart.", "Add --chart FILE.svg, or leave it out.")
    if fail_above is not None and not 0 <= fail_above <= 100:
        raise CommandError(f"--fail-above is {fail_above:g}.", "Give a percentage from 0 to 100.")


def _parse_burst(text: str) -> Burst:
    from tavola.design.simulation import Burst

    match = _BURST.fullmatch(text.strip())
    if match is None:
        raise CommandError(
            f"{text!r} is not a burst.", "Use a form such as 5x60s, or 5x60s@2 for two bursts an hour."
        )
    return Burst(float(match[1]), float(match[2]) * _SECONDS[match[3]], float(match[4] or 1.0))


def _read_records(path: Path) -> Iterator[object]:
    """Yield each line of an access log as data, None for a line that is not JSON."""
    import msgspec

    from tavola.server.log_files import files_of

    check_access_log(path)
    for file in files_of(path):
        try:
            with file.open("rb") as lines:
                for line in lines:
                    try:
                        yield msgspec.json.decode(line)
                    except msgspec.DecodeError:
                        yield None
        except OSError as error:
            cause = f"{file} cannot be read: {error.strerror or error}."
            raise CommandError(
                cause, "Name a readable access log with --trace.", ErrorKind.NOT_FOUND
            ) from error
