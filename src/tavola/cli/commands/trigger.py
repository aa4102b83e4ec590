"""`tavola trigger`: run a Lambda handler on a table's stream, as an event source mapping would."""

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
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from tavola.cli.errors import CommandError, Exit, reporting_errors
from tavola.cli.output import count_noun, log_to_terminal, note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, AsJson, Option
from tavola.cli.targets import TargetOptions
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.triggers import HandlerRefused, Statistics, Trigger


def trigger(
    handler: Annotated[
        str, Argument(help="Handler function: module:function or module.function.", metavar="HANDLER")
    ],
    table_name: Annotated[
        str | None, Option("--table-name", metavar="NAME", help="Table with the stream to read.")
    ] = None,
    stream_arn: Annotated[
        str | None, Option("--stream-arn", metavar="ARN", help="Stream to read, instead of --table-name.")
    ] = None,
    batch_size: Annotated[
        int, Option(metavar="COUNT", help="Maximum number of records per invocation.")
    ] = 100,
    maximum_batching_window_in_seconds: Annotated[
        int, Option(metavar="S", help="How long to collect records for a batch.")
    ] = 0,
    filters: Annotated[
        list[str] | None,
        Option("--filter", metavar="JSON", help="Event filter pattern; repeatable, up to five."),
    ] = None,
    starting_position: Annotated[
        Literal["TRIM_HORIZON", "LATEST"], Option(help="Where to start a stream without a checkpoint.")
    ] = "TRIM_HORIZON",
    maximum_retry_attempts: Annotated[
        int, Option(metavar="COUNT", help="Retries before a failed batch is discarded; -1: no limit.")
    ] = -1,
    maximum_record_age_in_seconds: Annotated[
        int, Option(metavar="S", help="Age at which a record is discarded; -1: no limit.")
    ] = -1,
    bisect_batch_on_function_error: Annotated[
        bool, Option("--bisect-batch-on-function-error", help="Split a failed batch in two before a retry.")
    ] = False,
    report_batch_item_failures: Annotated[
        bool,
        Option(
            "--report-batch-item-failures",
            help="Read batchItemFailures from the response, and retry from the first of them.",
        ),
    ] = False,
    parallelization_factor: Annotated[
        int, Option(metavar="COUNT", help="Number of concurrent batches per shard.")
    ] = 1,
    tumbling_window_in_seconds: Annotated[
        int, Option(metavar="S", help="Length of the windows in which the handler keeps a state; 0: none.")
    ] = 0,
    timeout: Annotated[
        float, Option("--timeout", metavar="S", help="Time limit of one invocation, in seconds.")
    ] = 900,
    checkpoints: Annotated[
        Path | None,
        Option(metavar="FILE", help="Save the position in the stream here, to resume after a restart."),
    ] = None,
    dead_letters: Annotated[
        Path | None, Option(metavar="FILE", help="Append a line to this file for each discarded batch.")
    ] = None,
    dead_letter_payload: Annotated[
        bool, Option("--dead-letter-payload", help="Include the records in the dead-letter file.")
    ] = False,
    once: Annotated[bool, Option("--once", help="Process the records that exist now, then exit.")] = False,
    at: TargetOptions = BUNDLE,
    as_json: AsJson = False,
) -> None:
    """Run a Lambda handler on a table's stream.

    Behaves as a Lambda event source mapping: batches, filters, retries, checkpoints and dead letters. The options have the
    names of the mapping's parameters.
    """
    log_to_terminal()
    logging.getLogger("tavola.triggers").setLevel(logging.INFO)
    # Keeps a handler's prints out of the JSON
    redirected = redirect_stdout(sys.stderr) if as_json else nullcontext()
    stream = table_name or stream_arn
    with redirected, reporting_errors(f"Cannot run {handler}."), _naming_options():
        from tavola.triggers import EventSourceMapping, Trigger

        if (table_name is None) == (stream_arn is None):
            problem = (
                "No stream is named."
                if stream is None
                else "--table-name and --stream-arn cannot be combined."
            )
            raise CommandError(problem, "Use --table-name NAME, or --stream-arn ARN.")
        mapping = EventSourceMapping(
            batch_size=batch_size,
            maximum_batching_window_in_seconds=maximum_batching_window_in_seconds,
            starting_position=starting_position,
            parallelization_factor=parallelization_factor,
            maximum_retry_attempts=maximum_retry_attempts,
            maximum_record_age_in_seconds=maximum_record_age_in_seconds,
            bisect_batch_on_function_error=bisect_batch_on_function_error,
            tumbling_window_in_seconds=tumbling_window_in_seconds,
            report_batch_item_failures=report_batch_item_failures,
            filter_criteria=filters,
        )
        function = load_handler(handler)
        with (
            at.open() as target,
            Trigger(
                target.connection,
                handler=function,
                table=table_name,
                stream_arn=stream_arn,
                mapping=mapping,
                checkpoints=checkpoints,
                dead_letters=dead_letters,
                dead_letter_payload=dead_letter_payload,
                name=handler.replace(":", "-").replace(".", "-"),
                timeout_s=timeout,
            ) as running,
        ):
            note(f"Running {handler} on the stream of {stream} at {at}. Press Ctrl-C to stop.")
            if checkpoints is None and not once:
                note(f"Without --checkpoints, the next run starts at {starting_position} again.")
            failure = _process(running, once=once)
    _say_statistics(running.statistics, running.stream_arn, as_json=as_json)
    loss = _find_loss(running.statistics, failure, dead_letters)
    if loss is None:
        return
    unread = running.statistics.unread_failures
    with reporting_errors("Records would be lost on AWS." if unread else "Not all records were processed."):
        cause, remedy = loss
        raise CommandError(cause, remedy, ErrorKind.INVALID)


def _find_loss(
    statistics: Statistics, failure: str | None, dead_letters: Path | None
) -> tuple[str, str] | None:
    """Return what must not go unnoticed, and its remedy; None if every record was processed."""
    from tavola.triggers import UNREAD, UNREAD_REMEDY

    if statistics.unread_failures:
        times = count_noun(statistics.unread_failures, "time")
        left = "" if failure is None else " Here they are left for the next run."
        return f"{times}, {UNREAD}.{left}", f"{UNREAD_REMEDY}."
    if failure is not None:
        return failure, "Fix the handler and run the command again, or limit --maximum-retry-attempts."
    if statistics.discarded:
        records_note = (
            "Add --dead-letters FILE to keep a record of them."
            if dead_letters is None
            else f"See {dead_letters}."
        )
        return (
            f"Discarded {count_noun(statistics.discarded, 'record')}: the handler failed too often, or they were too old.",
            f"Fix the handler; the log above shows the errors. {records_note}",
        )
    if statistics.discarded_windows:
        return (
            f"Discarded the state of {count_noun(statistics.discarded_windows, 'tumbling window')}; the log above shows why.",
            "Fix the handler, and compute these windows again.",
        )
    if statistics.gaps:
        return (
            f"Records had expired before they were read, in {count_noun(statistics.gaps, 'place')} of the stream.",
            "Run the command more often than once a day, and process the affected items again.",
        )
    return None


def load_handler(text: str) -> Callable[[dict[str, Any], Any], Any]:
    """Return the function that a text names: `module:function`, or `module.function` as on Lambda."""
    from tavola.triggers import HandlerBroken

    module_name, colon, name = text.partition(":")
    if not colon:
        module_name, _, name = text.rpartition(".")
    if not module_name or not name:
        raise _refuse_handler(
            f"{text!r} is not a handler.", "Use module:function, such as projector:handler."
        )
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the current folder can be named
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            remedy = "Run the command in the module's folder, or install its package."
            raise _refuse_handler(f"There is no module {module_name}.", remedy) from error
        raise HandlerBroken(module_name, str(error)) from error
    except Exception as error:
        raise HandlerBroken(module_name, f"{type(error).__name__}: {error}") from error
    member: Any = module
    for part in name.split("."):
        member = getattr(member, part, None)
    if not callable(member):
        raise _refuse_handler(f"{module_name} has no function {name}.", "Check the name of the handler.")
    handler: Callable[[dict[str, Any], Any], Any] = member
    return handler


def _refuse_handler(cause: str, remedy: str) -> HandlerRefused:
    from tavola.triggers import HandlerRefused

    error = HandlerRefused(cause)
    error.remedy = remedy
    return error


@contextmanager
def _naming_options() -> Iterator[None]:
    """Report a rejected setting of the mapping under its option's name."""
    from tavola.triggers import MappingRefused

    try:
        yield
    except MappingRefused as error:
        option = f"--{error.setting.removesuffix('_s').replace('_', '-')}"
        raise MappingRefused(option, error.value, error.rule) from error


def _process(running: Trigger, *, once: bool) -> str | None:
    """Process the stream until it ends or a signal stops it; return why records remain, or None."""
    from tavola.triggers import HandlerFailing

    try:
        with _stopping_on_signals(running.stop):
            if once:
                running.drain(timeout_s=float("inf"), patient=False)
            else:
                running.run()
                if running.has_ended:
                    note("The stream was disabled and has been processed to its end.")
    except KeyboardInterrupt:
        note("Stopped; the current batch will be processed again.")
        raise click.exceptions.Exit(Exit.INTERRUPTED) from None
    except HandlerFailing as error:
        return str(error)
    return None


@contextmanager
def _stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop after the current batch on the first signal, and at once on the second."""
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_signal(number: int, frame: FrameType | None) -> None:
        note("Stopping after the current batch; press Ctrl-C again to stop at once.")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    for number in previous:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _say_statistics(statistics: Statistics, stream_arn: str | None, *, as_json: bool) -> None:
    if as_json:
        say_json("tavola.trigger/1", {"stream": stream_arn, **asdict(statistics)})
    else:
        say(
            f"Processed {count_noun(statistics.handled, 'record')} in "
            f"{count_noun(statistics.invocations, 'invocation')} ({statistics.failures} failed); "
            f"filtered {statistics.filtered}, discarded {statistics.discarded}."
        )
