"""Print an exception of Tavola as an error message and leave the command with an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from tavola.cli.exits import Exit
from tavola.cli.output import complain
from tavola.errors import ErrorKind, TavolaError

_EXIT_CODES = {
    ErrorKind.USAGE: Exit.USAGE,
    ErrorKind.NOT_FOUND: Exit.NOT_FOUND,
    ErrorKind.IN_USE: Exit.CONFLICT,
    ErrorKind.UNAVAILABLE: Exit.UNREACHABLE,
}  # every other kind: Exit.FAILED


@contextmanager
def reporting_errors(
    what: str, *, location_option: str = "--endpoint", failed: Exit = Exit.FAILED
) -> Iterator[None]:
    """Report an exception of Tavola raised in the block, and exit; `what` is the first line of the report.

    `place` is the option that names the tables' location in this command. `failed` replaces `Exit.FAILED` in commands
    where exit code 1 has another meaning.
    """
    try:
        yield
    except TavolaError as error:
        reason = "; ".join((str(error), *getattr(error, "__notes__", ())))
        remedy = error.remedy
        if remedy is not None:
            remedy = None if remedy in reason else remedy.replace("--endpoint", location_option)
        complain(what, reason, remedy)
        raise click.exceptions.Exit(_EXIT_CODES.get(error.kind, failed)) from error
