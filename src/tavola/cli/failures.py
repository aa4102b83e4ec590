"""Failures: an error of any room, as what a person is told and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tavola.cli.exits import Exit
from tavola.cli.output import complain
from tavola.errors import TavolaError


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn an error of Tavola inside the block into three lines and an exit code; `what` is the first."""
    try:
        yield
    except TavolaError as error:
        remedy, code = _remedy_of(error)
        complain(what, str(error), remedy)
        raise typer.Exit(code) from error


def _remedy_of(error: TavolaError) -> tuple[str, Exit]:
    from tavola.engine import StoreDamaged, StoreError, StoreFull, StoreInUse
    from tavola.server import AddressInUse, AddressUnusable

    match error:
        case AddressInUse():
            return "Choose another port with --port; 0 takes a free one.", Exit.CONFLICT
        case AddressUnusable():
            return "Choose an address of this machine with --host, or another --port.", Exit.UNREACHABLE
        case StoreInUse():
            return "Stop the other process, or use its endpoint; one process owns a file.", Exit.CONFLICT
        case StoreDamaged():
            return "Restore the file from a copy; what is in it is not served.", Exit.FAILED
        case StoreFull():
            return "Make room on the disk and start again; nothing that was confirmed is lost.", Exit.FAILED
        case StoreError():
            return "Name another file, or make this one a readable and writable file.", Exit.FAILED
        case _:
            return "See `tavola --help`.", Exit.FAILED
