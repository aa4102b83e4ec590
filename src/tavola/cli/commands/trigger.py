"""`tavola trigger`: a handler on a table's stream, run as Lambda would run it, until it is asked to stop."""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

import click

from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import complain, log_to_terminal, note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.targets import TargetOptions

Start = Literal["TRIM_HORIZON", "LATEST"]

# What the mapping calls its settings, and what the command calls them.
_OPTIONS = {
    "batch_size": "--batch-size",
    "maximum_batching_window_in_seconds": "--window-s",
    "parallelization_factor": "--parallel",
    "maximum_retry_attempts": "--retries",
    "maximum_record_age_in_seconds": "--max-age-s",
    "tumbling_window_in_seconds": "--tumbling-window-s",
    "timeout_s": "--timeout-s",
}


def trigger(
    handler: Annotated[str, Argument(help="The handler, as module:function.", metavar="MODULE:HANDLER")],
    table: Annotated[str | None, Option("--table", help="The table whose stream is read.")] = None,
    stream_arn: Annotated[
        str | None,
        Option("--stream-arn", help="One stream by its ARN, instead of a table's present one."),
    ] = None,
    batch_size: Annotated[int, Option(help="The most records of one invocation.")] = 100,
    window_s: Annotated[int, Option(help="How long a batch may wait for more records. [s]")] = 0,
    filters: Annotated[
        list[str] | None,
        Option("--filter", help="A pattern of the records that are wanted, as JSON; up to five."),
    ] = None,
    start: Annotated[Start, Option(help="Where a stream that was never read is begun.")] = "TRIM_HORIZON",
    retries: Annotated[
        int, Option(help="How often a failed batch is tried again before it is given up; -1: for ever.")
    ] = -1,
    max_age_s: Annotated[int, Option(help="The age from which a record is given up; -1: none. [s]")] = -1,
    bisect: Annotated[bool, Option("--bisect", help="Try a failed batch again in halves.")] = False,
    report_failures: Annotated[
        bool, Option("--report-failures", help="The response names failures (ReportBatchItemFailures).")
    ] = False,
    parallel: Annotated[int, Option(help="How many batches of a shard run at once.")] = 1,
    tumbling_window_s: Annotated[
        int, Option(help="The length of windows over which the handler keeps a state; 0: none. [s]")
    ] = 0,
    timeout_s: Annotated[float, Option(help="How long an invocation may take. [s]")] = 900,
    checkpoints: Annotated[
        Path | None, Option(help="The file that keeps how far the stream is handled.")
    ] = None,
    dead_letters: Annotated[
        Path | None, Option(help="The file that takes a line for each batch that is given up.")
    ] = None,
    dead_letter_payload: Annotated[
        bool, Option("--dead-letter-payload", help="Keep the records too in the dead-letter file.")
    ] = False,
    once: Annotated[bool, Option("--once", help="Handle what is there now, and end.")] = False,
    at: TargetOptions = BUNDLE,
    as_json: Annotated[bool, Option("--json", help="Print what was done as one JSON line.")] = False,
) -> None:
    """Run a Lambda handler on a table's stream as an event source mapping would: batches, retries, checkpoints."""
    log_to_terminal()
    logging.getLogger("tavola.triggers").setLevel(logging.INFO)
    if (table is None) == (stream_arn is None):
        complain(
            f"Cannot run {handler}.",
            "Nothing says whose stream it shall read."
            if table is None
            else "Both a table and a stream are named, and a trigger reads one stream.",
            "Give --table NAME for a table's present stream, or --stream-arn ARN for one by its ARN.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    # What a handler prints is no part of a result that a program reads.
    apart = redirect_stdout(sys.stderr) if as_json else nullcontext()
    with (
        apart,
        reporting_errors(f"Cannot run {handler} on the stream of {table or stream_arn}."),
        _named_as_options(),
    ):
        from tavola.triggers import REPORT_FAILURES, Mapping, Trigger

        mapping = Mapping(
            batch_size=batch_size,
            maximum_batching_window_in_seconds=window_s,
            starting_position=start,
            parallelization_factor=parallel,
            maximum_retry_attempts=retries,
            maximum_record_age_in_seconds=max_age_s,
            bisect_batch_on_function_error=bisect,
            tumbling_window_in_seconds=tumbling_window_s,
            function_response_types=(REPORT_FAILURES,) if report_failures else (),
            filter_criteria=filters,
        )
        found = load_handler(handler)
        with (
            at.open() as target,
            Trigger(
                target.connection,
                handler=found,
                table=table,
                stream_arn=stream_arn,
                mapping=mapping,
                checkpoints=checkpoints,
                dead_letters=dead_letters,
                dead_letter_payload=dead_letter_payload,
                name=handler.replace(":", "-").replace(".", "-"),
                timeout_s=timeout_s,
            ) as made,
        ):
            where = at
            note(f"Runs {handler} on the stream of {table or stream_arn} at {where}. Ctrl-C stops it.")
            if checkpoints is None and not once:
                note(f"Without --checkpoints FILE the next start begins at {start} again.")
            unfinished = _work(made, once=once)
    _conclude(asdict(made.statistics), made.stream_arn, as_json=as_json)
    _end_failed(made.statistics.discarded, unfinished, dead_letters)


def load_handler(text: str) -> Callable[[dict[str, Any], Any], Any]:
    """Return the function that a text names: `module:function`, or Lambda's own `module.function`."""
    from tavola.triggers import HandlerBroken, HandlerRefused

    module_name, colon, name = text.partition(":")
    if not colon:
        module_name, _, name = text.rpartition(".")
    if not module_name or not name:
        raise HandlerRefused(f"{text!r} names no handler; give module:function, such as projector:handler")
    if "" not in sys.path:
        sys.path.insert(0, "")  # handlers are looked for where the command is run
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise HandlerRefused(
                f"There is no module {module_name}; run the command in its folder, or install it"
            ) from error
        raise HandlerBroken(module_name, str(error)) from error
    except Exception as error:
        raise HandlerBroken(module_name, f"{type(error).__name__}: {error}") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise HandlerRefused(f"{module_name} has no function {name}")
    handler: Callable[[dict[str, Any], Any], Any] = found
    return handler


@contextmanager
def _named_as_options() -> Iterator[None]:
    """Let a setting that is refused be called what the command line calls it."""
    from tavola.triggers import MappingRefused

    try:
        yield
    except MappingRefused as error:
        option = _OPTIONS.get(error.setting, error.setting)
        raise MappingRefused(option, error.value, error.rule) from error


def _work(made: Any, *, once: bool) -> str | None:
    """Handle what is to be handled; return why something is left that should not be."""
    from tavola.triggers import HandlerFailing

    try:
        with _stopped_by_signals(made.stop):
            if once:
                made.drain(timeout_s=float("inf"), patient=False)
            else:
                made.run()
                if made.ended:
                    note("The stream was disabled, and is handled to its end.")
    except KeyboardInterrupt:
        note("Stopped at once; the batch at hand comes again.")
        raise click.exceptions.Exit(Exit.FAILED) from None
    except HandlerFailing as error:
        return str(error)
    return None


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let the first signal ask for an end after the batch at hand; the second ends it at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def heard(number: int, frame: FrameType | None) -> None:
        note("Stops after the batch at hand; Ctrl-C again stops at once.")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    for number in before:
        signal.signal(number, heard)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(statistics: dict[str, int], stream_arn: str | None, *, as_json: bool) -> None:
    if as_json:
        say_json("tavola.trigger/1", {"stream": stream_arn, **statistics})
    else:
        say(
            f"{statistics['handled']} records handled in {statistics['invocations']} invocations "
            f"({statistics['failures']} failed), {statistics['filtered']} filtered, "
            f"{statistics['discarded']} given up"
        )


def _end_failed(discarded: int, unfinished: str | None, dead_letters: Path | None) -> None:
    """End with the code of a failure where records were not handled."""
    if unfinished is not None:
        complain(
            "Not everything was handled.",
            unfinished,
            "Mend the handler, and start again; or let --retries say when a record is given up.",
        )
    elif discarded:
        complain(
            f"{discarded} records were given up.",
            "The handler failed on them too often, or they were too old; the log above says which.",
            "Name a file with --dead-letters that keeps a trace of them."
            if dead_letters is None
            else f"Mend the handler; what was given up is told in {dead_letters}.",
        )
    if unfinished is not None or discarded:
        raise click.exceptions.Exit(Exit.FAILED)
