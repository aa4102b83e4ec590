"""Output: everything that a command prints.

Results go to standard output, so that programs can read them; progress, notes and errors go to standard error. Progress is a
single line that is rewritten in place, and only on a terminal.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from tavola.cli.terminal import style

_BAR_CHARACTERS = 24
_REDRAW_S = 0.1
_REPORT_S = 10.0  # without a terminal, between two lines about a part


def say(text: str) -> None:
    """Print a line of the command's result."""
    click.echo(text)


def say_bytes(content: bytes) -> None:
    """Print part of a binary result: a file, a stream of events."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def say_json(schema: str, members: Mapping[str, object]) -> None:
    """Print a result as one line of JSON; `schema` names its format and version."""
    say(json.dumps({"schema": schema, **members}))


def note(text: str) -> None:
    """Print a line for the person at the terminal."""
    click.echo(text, err=True)


def remark(text: str) -> None:
    """Print a remark on the input, such as a setting of a template that was not imported."""
    note(f"{style('Note:', 'advice')} {text}")


def warn(text: str) -> None:
    """Print a warning for the person at the terminal."""
    note(f"{style('Warning:', 'warning')} {text}")


def print_error(what: str, cause: str, remedy: str | None) -> None:
    """Print an error in up to three lines: what failed, the cause, and how to fix it."""
    note(f"{style('Error:', 'error')} {what}")
    note(f"  Cause: {cause}")
    if remedy is not None:
        note(f"  Fix:   {remedy}")


def print_usage_error(error: click.ClickException) -> None:
    """Print what is wrong with a command line, below the usage of its command."""
    context = getattr(error, "ctx", None)
    if context is not None:
        note(context.get_usage())
        note(f"Try '{context.command_path} --help' for help.\n")
    note(f"{style('Error:', 'error')} {error.format_message()}")


def count_noun(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: "1 item", "2,000 items"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def is_terminal() -> bool:
    """Return whether results are shown on a terminal, not piped or redirected."""
    return sys.stdout.isatty()


def terminal_width() -> int:
    """Return the number of columns of the terminal."""
    return shutil.get_terminal_size().columns


def text_width(most: int) -> int:
    """Return the width for wrapped text: that of the terminal up to `most` columns, and `most` in a pipe or file."""
    return min(terminal_width(), most) if is_terminal() else most


def own_command() -> str:
    """Return the command that runs this program again: `tavola` if it is on PATH, else its path."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m tavola"
    if path.stem != "tavola":  # run from within another program
        return "tavola"
    known = shutil.which("tavola")
    return (
        "tavola" if known is not None and Path(known).samefile(path) else shlex.quote(os.path.abspath(path))
    )


class _ProgressLine:
    """One line on a terminal that shows how far each part of some work is; silent anywhere else."""

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()
        self._parts: dict[str, tuple[int, int | None]] = {}
        self._drawn_at_s = 0.0

    def update(self, what: str, done: int, total: int | None) -> None:
        """Record a part's progress and redraw, at most ten times a second."""
        from tavola.clock import monotonic

        self._parts[what] = done, total
        now_s = monotonic()
        if self.is_terminal and (now_s - self._drawn_at_s > _REDRAW_S or done == total):
            self._drawn_at_s = now_s
            self._draw()

    def close(self) -> None:
        """Draw the last state and end the line."""
        if self.is_terminal and self._parts:
            self._draw()
            print(file=sys.stderr, flush=True)

    def _draw(self) -> None:
        shown = "  ".join(_progress_text(what, *progress) for what, progress in self._parts.items())
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{shown[:width]:<{width}}", end="", file=sys.stderr, flush=True)


def _progress_text(what: str, done: int, total: int | None) -> str:
    if not total:
        return f"{what} {done:,}"
    filled = min(done, total) * _BAR_CHARACTERS // total
    return f"{what} [{'#' * filled}{'-' * (_BAR_CHARACTERS - filled)}] {done:,}/{total:,}"


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error; yield the function to call with the number done. A total of 0 is unknown."""
    line = _ProgressLine()
    try:
        yield lambda done: line.update(what, min(done, total) if total else done, total or None)
    finally:
        line.close()


@contextmanager
def stages() -> Iterator[Callable[[str, int, int | None], None]]:
    """Show the progress of several parts of some work; without a terminal, print a line per part from time to time and when it is complete.

    Yields the function to call with the part's name, the number done and the total, None if unknown.
    """
    from tavola.clock import monotonic

    line = _ProgressLine()
    began_at_s: dict[str, float] = {}
    reported_at_s: dict[str, float] = {}

    def show(what: str, done: int, total: int | None) -> None:
        now_s = monotonic()
        began_at_s.setdefault(what, now_s)
        line.update(what, done, total)
        if line.is_terminal:
            return
        if done == total:
            note(f"  {what}: {done:,} in {now_s - began_at_s[what]:.1f} s")
        elif now_s - reported_at_s.setdefault(what, now_s) >= _REPORT_S:
            reported_at_s[what] = now_s
            note(f"  {what}: {done:,}" + (f" of {total:,}" if total else ""))

    try:
        yield show
    finally:
        line.close()


def log_to_terminal() -> None:
    """Send Tavola's log messages to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("tavola")
    logger.handlers[:] = [handler]
    logger.propagate = False
