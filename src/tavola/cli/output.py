"""Output: the only print.

What a program may read goes to standard output, and nothing else does; what a person should know beside it
goes to standard error.
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
from typing import Any


def say(text: str) -> None:
    """Print a line of the command's result."""
    print(text, flush=True)


def say_bytes(content: bytes) -> None:
    """Print a part of a result that is bytes already: a file, a stream of events."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def say_json(schema: str, members: Mapping[str, object]) -> None:
    """Print a result as one line of JSON; `schema` names its form, and its number grows with a break."""
    say(json.dumps({"schema": schema, **members}))


def note(text: str) -> None:
    """Print a line for the person at the terminal."""
    print(text, file=sys.stderr, flush=True)


def complain(what: str, why: str, remedy: str | None) -> None:
    """Print what went wrong, why, and what to do about it: a line each; no remedy where the reason has it."""
    note(f"Error: {what}")
    note(f"  Why: {why}")
    if remedy is not None:
        note(f"  Do:  {remedy}")


def own_command() -> str:
    """Return what a person types to run this program again: its name where the shell finds it by that, else its path."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m tavola"
    if path.stem != "tavola":  # run from within another program
        return "tavola"
    known = shutil.which("tavola")
    return (
        "tavola" if known is not None and Path(known).samefile(path) else shlex.quote(os.path.abspath(path))
    )


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show on standard error how many of how many are done; give the function that is told the number.

    A total of 0 is one that nobody knows.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total or None)
        yield lambda done: progress.update(task, completed=min(done, total) if total else done)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int | None], None]]:
    """Show on standard error how far the parts of longer work are; without a terminal, a line when one is done.

    Gives the function that is told what it is, how many are done, and of how many; None: nobody knows.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tavola.clock import monotonic

    console = Console(stderr=True)
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    begun: dict[str, tuple[Any, float]] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def show(what: str, done: int, total: int | None) -> None:
            if what not in begun:
                begun[what] = (progress.add_task(f"{what:<28}", total=total), monotonic())
            task, began_s = begun[what]
            progress.update(task, completed=done, total=total)
            if done == total and not console.is_terminal:
                note(f"  {what}: {done:,}, {monotonic() - began_s:.1f} s")

        yield show


def log_to_terminal() -> None:
    """Let what the server logs be read on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("tavola")
    logger.handlers[:] = [handler]
    logger.propagate = False
