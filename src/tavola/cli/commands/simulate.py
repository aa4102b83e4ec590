"""`tavola simulate`: how a design bears its traffic, before any table is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.designs import DesignArgument, load_design
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.files import deliver
from tavola.cli.output import bar, complain, note, say, say_json
from tavola.cli.parameters import Option

_BURST = re.compile(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)(s|m|h)(?:@(\d+(?:\.\d+)?))?")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def simulate(
    target: DesignArgument,
    hours: Annotated[
        float | None,
        Option(help="How long, 24 unless told; less than a day is around the busiest hour."),
    ] = None,
    rate_factor: Annotated[float, Option(help="So many times every declared rate.")] = 1.0,
    skew: Annotated[
        float,
        Option(help="Zipf's exponent of patterns that say none: 0 is even, 1 leaves little to most keys."),
    ] = 0.8,
    peak: Annotated[
        float | None,
        Option(help="The peak of patterns that say none, in times of their mean; 2 unless told."),
    ] = None,
    burst: Annotated[
        list[str] | None,
        Option(
            metavar="FACTORxTIME[@PER_HOUR]",
            help="Bursts: 5x60s@2 is five times the traffic, for a minute, twice an hour.",
        ),
    ] = None,
    mode: Annotated[
        str | None, Option(metavar="on-demand|provisioned", help="Instead of what the design declares.")
    ] = None,
    read_units: Annotated[
        float | None, Option(help="Provisioned units of reading, of every table and index.")
    ] = None,
    write_units: Annotated[
        float | None, Option(help="Provisioned units of writing, of every table and index.")
    ] = None,
    quota: Annotated[float, Option(help="Units that the account lets a table have on demand.")] = 40_000,
    warm: Annotated[
        bool,
        Option(
            "--warm",
            help="Begin with partitions as days of this traffic have left them, and with burst saved; for a whole day or "
            "a trace.",
        ),
    ] = False,
    cold: Annotated[
        bool,
        Option(
            "--cold",
            help="Begin with the partitions of a new table; less than a day begins with those of the day before.",
        ),
    ] = False,
    trace: Annotated[
        Path | None,
        Option(help="Take the traffic of an access log of `tavola serve` instead of the declared rates."),
    ] = None,
    seed: Annotated[int, Option(help="What chance is made from.")] = 0,
    chart: Annotated[
        Path | None, Option(help="Draw the heat maps of the worst places: FILE.svg or FILE.png.")
    ] = None,
    place: Annotated[
        str | None,
        Option(help="Draw this one: a table, or table/index; with ` reads` or ` writes` behind."),
    ] = None,
    fail_over: Annotated[
        float | None,
        Option(
            metavar="PERCENT",
            help="Exit with 1 if more than that is throttled. A whole day and a trace begin cold: see --warm.",
        ),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print everything that was found as JSON.")] = False,
) -> None:
    """Simulate a day of a design's access patterns on DynamoDB's partitions, and say what is throttled, where and why."""
    with reporting_errors(f"Cannot simulate {target}.", failed=Exit.USAGE):
        from tavola.design import simulation
        from tavola.design.charts import chart_format
        from tavola.design.simulation import Scenario

        form = None if chart is None else chart_format(chart)
        _check(trace, {"--hours": hours, "--peak": peak, "--burst": burst or None}, chart, place, fail_over)
        if warm and cold:
            raise simulation.SimulationRefused("--warm and --cold exclude one another; leave one out")
        scenario = Scenario(
            hours=24.0 if hours is None else hours,
            seed=seed,
            rate_factor=rate_factor,
            skew=skew,
            peak=2.0 if peak is None else peak,
            bursts=tuple(_burst(text) for text in burst or ()),
            mode=_mode(mode, read_units, write_units),
            read_units=read_units,
            write_units=write_units,
            quota=quota,
            warm=warm,
            settled=trace is None and hours is not None and hours < 24 and not cold,
        )
        design = load_design(target)
        if trace is None:
            workload = simulation.build_workload(design, scenario)
        else:
            workload = simulation.read_trace(_records(trace), design, scenario)
        with _progress(workload.rates.seconds) as progress:
            found = simulation.run_workload(workload, scenario, progress)
        if as_json:
            say_json(simulation.SCHEMA, found.to_json())
        else:
            for line in simulation.report_lines(found):
                say(line)
        if chart is not None:
            deliver(chart, simulation.chart(found, form or "svg", place), "--chart")
            note(f"Drew {chart}.")
        if fail_over is not None and found.throttled * 100 > fail_over:
            note(f"{found.throttled * 100:.2f} % is throttled, more than {fail_over:g} %.")
            raise click.exceptions.Exit(Exit.FAILED)


def _check(
    trace: Path | None,
    declared: dict[str, Any],
    chart: Path | None,
    place: str | None,
    fail_over: float | None,
) -> None:
    """Refuse options that would be passed over, or mean nothing."""
    from tavola.design.simulation import SimulationRefused

    idle = [name for name, value in declared.items() if value is not None]
    if trace is not None and idle:
        raise SimulationRefused(
            f"{', '.join(idle)} is of declared rates, and --trace has its own times; leave it out, or play the trace "
            "louder with --rate-factor"
        )
    if place is not None and chart is None:
        raise SimulationRefused("--place is of a chart; give --chart FILE.svg too, or leave it out")
    if fail_over is not None and not 0 <= fail_over <= 100:
        raise SimulationRefused(f"--fail-over is {fail_over:g}; give 0 to 100, a percentage")


def _mode(mode: str | None, read_units: float | None, write_units: float | None) -> Any:
    from tavola.design.simulation import SimulationRefused

    if mode not in (None, "on-demand", "provisioned"):
        raise SimulationRefused(f"--mode {mode} is none; give on-demand or provisioned")
    if read_units is None and write_units is None:
        return mode or "declared"
    if mode == "on-demand":
        raise SimulationRefused(
            "--read-units and --write-units are of provisioned tables; leave them out, or the mode"
        )
    return "provisioned"


def _burst(text: str) -> Any:
    from tavola.design.simulation import Burst, SimulationRefused

    found = _BURST.fullmatch(text.strip())
    if found is None:
        raise SimulationRefused(
            f"--burst {text} is none; write for instance 5x60s, or 5x60s@2 for two an hour"
        )
    return Burst(float(found[1]), float(found[2]) * _SECONDS[found[3]], float(found[4] or 1.0))


def _records(path: Path) -> Iterator[object]:
    """Yield each line of a log as data, None for a line that is not JSON."""
    import msgspec

    from tavola.server.log_files import files_of

    files = list(files_of(path))
    if not files:
        complain(
            f"Cannot read {path}.",
            "There is no such file.",
            "Name the file that `tavola serve --access-log` was given.",
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    for file in files:
        try:
            with file.open("rb") as lines:
                for line in lines:
                    try:
                        yield msgspec.json.decode(line)
                    except msgspec.DecodeError:
                        yield None
        except OSError as error:
            complain(
                f"Cannot read {file}.",
                f"{error.strerror or error}.",
                "Name the file that `tavola serve --access-log` was given.",
            )
            raise click.exceptions.Exit(Exit.NOT_FOUND) from error


@contextmanager
def _progress(seconds: int) -> Iterator[Any]:
    with bar("Simulating", seconds) as show:
        yield lambda done, _: show(done)
